"""``sql``: any DuckDB SELECT over the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TextIO

import click

from warehouse.cli import reading
from warehouse.cli.accuracy import coalesced_options
from warehouse.cli.bounds import bounds_options
from warehouse.cli.options import command, isolation_option, project, rows_command, time_options, within_option

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Rows

__all__ = ["sql"]


@command(
    "sql",
    "Any DuckDB SELECT over the tables.",
    'stream-wh sql "select carrier, count(*) from flights group by 1 order by 2 desc"',
    'stream-wh sql "select * from system.flights limit 3"',
    "stream-wh sql -f report.sql --as-of 2013-01-01T12:00:00Z",
    'stream-wh sql "select origin, count(*), avg(distance) from flights group by origin" --within 200ms',
)
@click.argument("query", required=False)
@click.option("-f", "--file", "file", type=click.File("r", encoding="utf-8"), help="Read the query from a file, or -.")
@time_options
@coalesced_options
@isolation_option
@within_option
@bounds_options
@rows_command
@project
def sql(
    directory: Path, query: str | None, file: TextIO | None, as_of: int | None, memory: int | None, timeout: int | None,
    **options: Any,  # noqa: ANN401 - listed above
) -> Rows:  # fmt: skip
    """Run a read-only DuckDB query over the live rows of all tables.

    Tables go by their names with the declared columns; schema `system` has them with the system columns. SHOW TABLES,
    DESCRIBE, and the tables _epochs, _files and _rejected work too.
    """
    if (query is None) == (file is None):
        raise click.UsageError("give a query or -f FILE" + (", not both" if query else ""))
    try:
        text = file.read() if file else query
    except UnicodeDecodeError as error:
        raise click.UsageError(f"{file.name if file else 'the query'} is not UTF-8 text; convert it") from error
    return reading.sql(directory, text or "", options, as_of=as_of, memory=memory, timeout=timeout)
