"""``reload``, ``drop`` and ``vacuum``: what is done now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli import library
from cli.options import command, project, report_command, table_argument
from cli.progress import progress

if TYPE_CHECKING:
    from pathlib import Path

    from cli.outcome import Report

__all__ = ["drop", "reload", "vacuum"]


@command("reload", "Load a changed file at the next update.", "stream-wh reload landing/flights/2013-01-01T15.csv.gz")
@click.argument("file")
@report_command
@project
def reload(directory: Path, file: str) -> Report:
    """Load a changed or unreadable landing FILE at the next update that moves the window.

    A file is loaded once; when it changes afterwards, updates report it and leave it alone until this command names
    it. Rows that the former version brought stay until they expire.
    """
    with progress() as step:
        return library.reloaded(directory, file, step)


@command("drop", "Forget a table no longer declared.", "stream-wh drop old_stream")
@table_argument
@report_command
@project
def drop(directory: Path, table: str) -> Report:
    """Forget a TABLE that warehouse.toml no longer declares; its files go when no retained epoch needs them."""
    with progress() as step:
        return library.dropped(directory, table, step)


@command("vacuum", "Remove files no epoch needs.", "stream-wh vacuum --dry-run")
@click.option("--dry-run", is_flag=True, help="Only count.")
@report_command
@project
def vacuum(directory: Path, *, dry_run: bool) -> Report:
    """Remove the files that no retained epoch needs, leftovers of interrupted work too; reports files and bytes."""
    with progress() as step:
        return library.vacuumed(directory, step, dry_run=dry_run)
