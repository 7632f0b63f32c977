"""``sql``: any DuckDB SELECT over the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import click

from cli import library
from cli.options import command, moment_options, project, rows_command

if TYPE_CHECKING:
    from pathlib import Path

    from cli.outcome import Rows

__all__ = ["sql"]


@command(
    "sql",
    "Any DuckDB SELECT over the tables.",
    'stream-wh sql "select carrier, count(*) from flights group by 1 order by 2 desc"',
    'stream-wh sql "select * from system.flights limit 3"',
    "stream-wh sql -f report.sql --as-of 2013-01-01T12:00:00Z",
)
@click.argument("query", required=False)
@click.option("-f", "--file", "file", type=click.File("r", encoding="utf-8"), help="Read the query from a file, or -.")
@moment_options
@rows_command
@project
def sql(directory: Path, query: str | None, file: TextIO | None, as_of: int | None, now: int | None) -> Rows:
    """Run a read-only DuckDB query over the live rows of all tables.

    Tables go by their names with the declared columns; schema `system` has them with the system columns. SHOW TABLES,
    DESCRIBE, and the tables _epochs, _files and _rejected work too.
    """
    if (query is None) == (file is None):
        raise click.UsageError("give a query or -f FILE" + (", not both" if query else ""))
    text = file.read() if file else query
    return library.queried(directory, text or "", as_of=as_of, now=now)
