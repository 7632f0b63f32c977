"""``changes``: the rows that entered or left a table between two epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from warehouse.cli import reading
from warehouse.cli.options import columns_option, command, limit_option, project, rows_command, table_argument

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Rows

__all__ = ["changes"]


@command(
    "changes",
    "What entered a table, and what left it, between two epochs.",
    "stream-wh changes flights --since 41",
    "stream-wh changes flights --since 41 --to 44 --columns tailnum -o jsonl",
)
@table_argument
@click.option("--since", type=int, required=True, metavar="EPOCH", help="The epoch up to which changes are known.")
@click.option("--to", type=int, metavar="EPOCH", help="The last epoch whose changes are shown [the newest].")
@columns_option
@limit_option
@click.option("--system-columns", is_flag=True, help="Also _ts and _exp.")
@rows_command
@project
def changes(directory: Path, table: str, **options: Any) -> Rows:  # noqa: ANN401
    """Print the changes of TABLE after --since, in the order in which they are to be applied."""
    return reading.changes(directory, table, options)
