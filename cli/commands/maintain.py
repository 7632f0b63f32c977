"""``reload``, ``drop``, ``restate``, ``rebuild``, ``complete``, ``rollback`` and ``vacuum``: what is done now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli import library
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
        return library.reloaded(directory, file, step)


@command("drop", "Forget a table no longer declared.", "stream-wh drop old_stream")
@table_argument
@report_command
@project
def drop(directory: Path, table: str) -> Report:
    """Forget a TABLE that warehouse.toml no longer declares; its files go when no retained epoch needs them."""
    with progress() as step:
        return library.dropped(directory, table, step)


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
    """Read landing files of TABLE once more under today's warehouse.toml, in place of the rows that they gave.

    For a corrected expression or rule: the table goes back to what it held at --since, and the files that were loaded
    afterwards are loaded again, in one new epoch at the same window time; views that read the table are rebuilt. With
    --since first nothing of the table stays, so columns, search key and layout may have changed too. With --rejected nothing
    leaves the table: records that were rejected and pass now are added.
    """
    if rejected and since is not None:
        raise click.UsageError("--rejected tries all that was rejected; leave out --since")
    with progress() as step:
        return library.restated(directory, table, step, since=since, rejected=rejected, allow_lost=allow_lost)


@command("rebuild", "Rebuild a view.", "stream-wh rebuild with_weather")
@click.argument("view")
@report_command
@project
def rebuild(directory: Path, view: str) -> Report:
    """Rebuild VIEW over the live rows, with every view that reads it, and compare each with its query.

    For a view that `check --views` found to differ. The new epoch is of the same window time. What a view keeps of rows that are
    gone (an output window, an internal one) begins again. Exit code 4 if a view differs still: then it is not served.
    """
    with progress() as step:
        return library.rebuilt(directory, view, step)


@command("complete", "Make what a view owes.", "stream-wh complete pairs --within 10m")
@click.argument("view")
@click.option("--within", type=DURATION, metavar="DURATION", help="End with the chunk in which so much time is over.")
@click.option("--dry-run", is_flag=True, help="Tell what is owed and what making it takes, and make nothing.")
@report_command
@project
def complete(directory: Path, view: str, *, within: int | None, dry_run: bool) -> Report:
    """Make the results that VIEW owes by its budget, the preferred ones first, until none is owed.

    Results come in chunks; each is an epoch of the same window time, together with the views above, and between two chunks an
    update can begin. Pairs of which a row has ended are not owed any more. Nothing owed: exit code 0, and no epoch.
    """
    with progress() as step:
        return library.completed(directory, view, step, within=within, dry_run=dry_run)


@command("rollback", "Go back to an epoch's contents.", "stream-wh rollback --to-epoch 41")
@click.option("--to-epoch", type=int, required=True, metavar="N", help="The epoch whose contents to go back to.")
@report_command
@project
def rollback(directory: Path, to_epoch: int) -> Report:
    """Write a new epoch with the contents of an earlier one, in all streams, relations and views.

    Window time does not go back: the new epoch is of the newest window time, and holds of the old contents what is still
    live. Landing files that were loaded since are forgotten; the next update that moves the windows loads those that are
    there. Refused when the epoch is not readable any more.
    """
    with progress() as step:
        return library.rolled_back(directory, to_epoch, step)


@command("vacuum", "Remove files no epoch needs.", "stream-wh vacuum --dry-run")
@click.option("--dry-run", is_flag=True, help="Only count.")
@report_command
@project
def vacuum(directory: Path, *, dry_run: bool) -> Report:
    """Remove the files that no retained epoch needs, leftovers of interrupted work too; reports files and bytes."""
    with progress() as step:
        return library.vacuumed(directory, step, dry_run=dry_run)
