"""``scan``: all live rows of a table, or the rows that fulfil a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from warehouse.cli import reading
from warehouse.cli.accuracy import coalesced_options
from warehouse.cli.bounds import bounds_options
from warehouse.cli.options import (
    columns_option,
    command,
    isolation_option,
    limit_option,
    project,
    rows_command,
    system_columns_option,
    table_argument,
    time_options,
)

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Rows

__all__ = ["scan"]


@command(
    "scan",
    "All live rows of a table.",
    "stream-wh scan flights -o csv | head",
    "stream-wh scan flights --where \"dest = 'SFO'\" --columns tailnum,landed_at",
    "stream-wh scan flights --output-file flights.parquet",
)
@table_argument
@click.option("--where", metavar="SQL", help="A DuckDB condition; it may name _ts and _exp.")
@columns_option
@limit_option
@time_options
@coalesced_options
@system_columns_option
@isolation_option
@bounds_options
@rows_command
@project
def scan(
    directory: Path, table: str, as_of: int | None, memory: int | None, timeout: int | None, **options: Any  # noqa: ANN401
) -> Rows:
    """Print the live rows of TABLE, in no order. --memory and --timeout bound a condition."""
    return reading.scan(directory, table, options, as_of=as_of, memory=memory, timeout=timeout)
