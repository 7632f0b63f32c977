"""``check``: is the warehouse what its records say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import verification
from warehouse.cli.options import command, project, rows_command

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Rows

__all__ = ["check"]


@command(
    "check",
    "Verify the warehouse, without Spark.",
    "stream-wh check",
    "stream-wh check --quick -o json",
    "stream-wh check --views",
)
@click.option("--quick", is_flag=True, help="Look at sizes and footers of files instead of reading every row.")
@click.option("--repair", is_flag=True, help="First repair what is safe to repair; this takes the writer lock.")
@click.option("--views", is_flag=True, help="Compare every view with its query instead, by Spark.")
@click.option("--epoch", type=int, metavar="N", help="With --views: at this epoch [the newest].")
@rows_command
@project
def check(directory: Path, *, quick: bool, repair: bool, views: bool, epoch: int | None) -> Rows:
    """Verify records, tables' logs, files and every row against the warehouse's invariants; nothing is written.

    It prints one row for each finding: a fault violates an invariant, a note is a harmless leftover. Exit code 4 if there is a
    fault. It needs no lock, so it can run during an update.

    With --views it compares each view with Spark's answer to the view's SQL over the live rows of the epoch: a view that differs
    is a fault, with the first rows of both; a view that cannot be compared is a note with the reason.

    With --repair it first completes an unfinished update (which may start Spark), makes a damaged record of the newest epoch
    again from its plan, writes lost zero-row files again and removes leftovers; then it reports the remaining findings.
    """
    if epoch is not None and not views:
        raise click.UsageError("--epoch is for --views; give both, or leave --epoch out")
    if views and (quick or repair):
        raise click.UsageError("--views looks at views only; leave out --quick and --repair")
    if views:
        return verification.check_views(directory, epoch)
    return verification.check(directory, rows=not quick, repair=repair)
