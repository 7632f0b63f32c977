"""``advise``: which layout fits a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import reading
from warehouse.cli.options import command, complete_tables, project, report_command

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["advise"]


@command(
    "advise",
    "Which layout fits a table.",
    "stream-wh advise flights",
    "stream-wh advise flights --what-if probes=1000,rate=50000",
    "stream-wh advise --what-if lifetimes=exponential:2h,rate=100000,max_lifetime=1d,interval=1h",
)
@click.argument("table", required=False, shell_complete=complete_tables)
@click.option(
    "--what-if",
    metavar="KEY=VALUE,...",
    help="Suppose lifetimes=, rate=, rows=, probes=, scans=, row_bytes=, rows_per_key=, retain=; "
    "without TABLE also max_lifetime=, interval=.",
)
@report_command
@project
def advise(directory: Path, table: str | None, what_if: str | None) -> Report:
    """Compare layouts for TABLE, or for a table that does not exist yet, and recommend one.

    The workload comes from the epochs, the files and this user's read log; prices of files and rows are fitted to the updates and
    probes of this warehouse. It shows the layouts that no other layout beats in update time, probe time and space on disk, and
    the recommendation of the technique's authors. It needs no Spark and changes nothing.
    """
    return reading.advise(directory, table, what_if)
