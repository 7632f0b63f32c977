"""``reload``, ``drop``, ``restate``, ``rebuild``, ``complete``, ``rollback`` and ``vacuum``: occasional maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import writing
from warehouse.cli.options import DURATION, InstantOrFirst, command, project, report_command, table_argument
from warehouse.cli.progress import progress

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["complete", "drop", "rebuild", "reload", "restate", "rollback", "vacuum"]


@command("reload", "Load a changed file at the next update.", "stream-wh reload landing/flights/2013-01-01T15.csv.gz")
@click.argument("file")
@report_command
@project
def reload(directory: Path, file: str) -> Report:
    """Load a changed or unreadable landing FILE at the next update that moves the window.

    A file is loaded once; when it changes afterwards, updates report it and leave it alone until this command names
    it. Rows that the former version brought stay until they expire, unless `restate` replaces them after that update.
    """
    with progress() as step:
        return writing.reload(directory, file, step)


@command("drop", "Forget a table no longer declared.", "stream-wh drop old_stream")
@table_argument
@report_command
@project
def drop(directory: Path, table: str) -> Report:
    """Forget a TABLE that warehouse.toml no longer declares; its files go when no retained epoch needs them."""
    with progress() as step:
        return writing.drop(directory, table, step)


@command(
    "restate",
    "Read landing files once more.",
    "stream-wh restate flights --since 2013-01-01T12:00:00Z",
    "stream-wh restate flights --rejected",
)
@table_argument
@click.option(
    "--since",
    type=InstantOrFirst(),
    help='Files loaded after this window time [all whose epochs are still readable]; "first" is every file that is known.',
)
@click.option("--rejected", is_flag=True, help="Only records that were rejected, and files that could not be read.")
@click.option("--allow-lost", is_flag=True, help="Do without the rows of files that are not there any more.")
@report_command
@project
def restate(directory: Path, table: str, *, since: int | str | None, rejected: bool, allow_lost: bool) -> Report:
    """Load landing files of TABLE again under the present warehouse.toml, and replace the rows that they gave.

    Use it after a corrected expression or rule: the table gets its contents at --since, and the files that were loaded later are
    loaded again, in one new epoch at the same window time; views that read the table are rebuilt. With --since first all rows of
    the table are replaced, so columns, search key and layout may have changed, too. With --rejected no row leaves the table:
    rejected records that are valid now are added.
    """
    if rejected and since is not None:
        raise click.UsageError("--rejected tries all that was rejected; leave out --since")
    with progress() as step:
        return writing.restate(directory, table, step, since=since, rejected=rejected, allow_lost=allow_lost)


@command("rebuild", "Rebuild a view.", "stream-wh rebuild with_weather")
@click.argument("view")
@report_command
@project
def rebuild(directory: Path, view: str) -> Report:
    """Rebuild VIEW over the live rows, with every view that reads it, and compare each with its query.

    Use it for a view that `check --views` found to differ. The new epoch has the same window time. The view loses results of
    expired rows (of an output window, or an internal one). Exit code 4 if a view still differs; it is then not served.
    """
    with progress() as step:
        return writing.rebuild(directory, view, step)


@command("complete", "Make what a view owes.", "stream-wh complete pairs --within 10m")
@click.argument("view")
@click.option("--within", type=DURATION, metavar="DURATION", help="End with the chunk in which so much time is over.")
@click.option("--dry-run", is_flag=True, help="Tell what is owed and what making it takes, and make nothing.")
@report_command
@project
def complete(directory: Path, view: str, *, within: int | None, dry_run: bool) -> Report:
    """Make the results that VIEW owes under its budget, the preferred ones first, until none is owed.

    Results are made in chunks. Each chunk is an epoch of the same window time, and includes the views that read VIEW; an update
    can begin between two chunks. Pairs with a row that has ended are no longer owed. If nothing is owed, the exit code is 0, and
    there is no new epoch.
    """
    with progress() as step:
        return writing.complete(directory, view, step, within=within, dry_run=dry_run)


@command("rollback", "Go back to an epoch's contents.", "stream-wh rollback --to-epoch 41")
@click.option("--to-epoch", type=int, required=True, metavar="N", help="The epoch whose contents to go back to.")
@report_command
@project
def rollback(directory: Path, to_epoch: int) -> Report:
    """Write a new epoch with the contents of an earlier one, in all streams, relations and views.

    Window time does not go back: the new epoch has the newest window time, and the rows of the old contents that are still live.
    Landing files that were loaded since are forgotten; the next update that moves the windows loads those that still exist. It is
    refused if the epoch is no longer readable.
    """
    with progress() as step:
        return writing.rollback(directory, to_epoch, step)


@command("vacuum", "Remove files no epoch needs.", "stream-wh vacuum --dry-run")
@click.option("--dry-run", is_flag=True, help="Only count.")
@report_command
@project
def vacuum(directory: Path, *, dry_run: bool) -> Report:
    """Remove the files that no retained epoch needs, leftovers of interrupted work too; reports files and bytes."""
    with progress() as step:
        return writing.vacuum(directory, step, dry_run=dry_run)
