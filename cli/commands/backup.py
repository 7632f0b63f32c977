"""``backup`` and ``restore``: a consistent copy of the warehouse, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warehouse.cli import writing
from warehouse.cli.options import command, project, report_command

if TYPE_CHECKING:
    from warehouse.cli.outcome import Report

__all__ = ["backup", "restore"]


@command("backup", "Copy a consistent state elsewhere.", "stream-wh backup /backups/2013-01-01")
@click.argument("target", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--copy", is_flag=True, help="Copy every byte; without it data files are hard links where that is possible.")
@report_command
@project
def backup(directory: Path, target: Path, *, copy: bool) -> Report:
    """Copy the newest epoch to DIR, with everything that later updates need. It can run during an update.

    DIR is new or empty, or has an incomplete backup. Links cost no space and no time but share the bytes of the warehouse's
    files: to be safe from a failing disk, name a DIR on another disk, or give --copy. Landing files are not in it. A backup keeps
    rows that are erased later, until you delete it.
    """
    return writing.back_up(directory, target, copy=copy)


@command("restore", "Bring a backup back.", "stream-wh restore /backups/2013-01-01 --replace")
@click.argument("backup", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Set a root that is there aside, as ROOT.before-N; nothing of it is deleted.")
@report_command
@project
def restore(directory: Path, backup: Path, *, replace: bool) -> Report:
    """Bring the backup in DIR back into the project, after each of its files was verified.

    The root appears whole or not at all, and never over another one. The project's own warehouse.toml stays if there is one.
    The next update loads the landing files that the backup does not know.
    """
    return writing.restore(directory, backup, replace=replace)
