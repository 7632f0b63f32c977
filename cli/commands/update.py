"""``plan`` and ``update``: what moving the windows would do, and doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from warehouse.cli import writing
from warehouse.cli.options import command, project, report_command, update_options
from warehouse.cli.progress import progress

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["plan", "update"]


@command(
    "update",
    "Load what arrived, remove what expired.",
    "stream-wh update",
    "stream-wh update --at 2013-01-01T12:00:00Z",
    "stream-wh update --from first --each",
)
@update_options
@click.option("--dry-run", is_flag=True, help="Tell what would be done, as `plan` does, and do nothing.")
@report_command
@project
def update(directory: Path, *, dry_run: bool, **options: Any) -> Report:  # noqa: ANN401 - update_options lists them
    """Load the rows that have arrived and move every window to the last grid point at or before --at.

    Rows that expired by then are removed, each file is loaded once, and all tables change together, in one epoch. An update that
    was interrupted is completed first. Exit code 1 if a landing file could not be read (all others are loaded), 3 if another
    update is running.
    """
    check(options)
    if dry_run:
        return writing.plan(directory, options)
    with progress() as step:
        return writing.update(directory, options, step)


@command("plan", "Tell what an update would do.", "stream-wh plan --at 2013-01-01T12:00:00Z", "stream-wh plan --sample 1000")
@update_options
@click.option(
    "--sample",
    type=click.IntRange(1, 100_000),
    metavar="ROWS",
    help="Read so many waiting rows of each stream, and show what would become of them.",
)
@report_command
@project
def plan(directory: Path, *, sample: int | None, **options: Any) -> Report:  # noqa: ANN401 - update_options lists them
    """Show the plan of an update with the same options: files, waiting rows, sub-indices written and removed."""
    check(options)
    if sample is not None:
        if options["each"]:
            raise click.UsageError("--sample looks at one update; leave out --each")
        return writing.sample(directory, sample, at=options["at"], future=options["future"])
    return writing.plan(directory, options)


def check(options: dict[str, Any]) -> None:
    """Refuse options that do not go together."""
    if options["start"] is not None and not options["each"]:
        raise click.UsageError("--from needs --each, since one update for all slots has no first one; give --each too")
