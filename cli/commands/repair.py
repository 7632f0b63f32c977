"""``repair``: repair what needs no decision, or take back what outsiders did to tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import writing
from warehouse.cli.options import command, project, report_command
from warehouse.cli.progress import progress

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["repair"]


@command(
    "repair",
    "Repair the warehouse, or take back foreign changes.",
    "stream-wh repair",
    "stream-wh repair --undo-foreign flights --dry-run",
)
@click.argument("table", required=False)
@click.option("--undo-foreign", is_flag=True, help="Take back what outsiders committed to TABLE [all tables].")
@click.option("--dry-run", is_flag=True, help="With --undo-foreign: only show what would be done.")
@report_command
@project
def repair(directory: Path, table: str | None, *, undo_foreign: bool, dry_run: bool) -> Report:
    """Make the safe repairs of `check --repair`, without a check.

    With --undo-foreign, undo exactly the outsiders' commits to a table since its newest epoch: a following commit adds the files
    that they removed and removes the files that they added. Entries of the log are removed only if a commit cannot undo them: a
    torn entry, or a changed protocol. Commits that changed no row stay, and the next update adopts them.
    """
    if not undo_foreign and (table is not None or dry_run):
        raise click.UsageError("TABLE and --dry-run go with --undo-foreign; give that too")
    with progress() as step:
        if undo_foreign:
            return writing.undo_foreign(directory, table, step, dry_run=dry_run)
        return writing.repair(directory, step)
