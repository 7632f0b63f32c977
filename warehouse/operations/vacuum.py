"""Vacuums: deletes files that no readable epoch needs, also leftovers of crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import newest_epoch
from warehouse.errors import EpochVacuumedError, MissingPartError, StoreBusyError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import finish, recorded_plan
from warehouse.operations.landing_archive import archive_loaded
from warehouse.operations.publication import free_live_tables, publish_if_behind
from warehouse.operations.unneeded_files import GRACE, VacuumReport, retire, sweep, tidy_records, trim_logs
from warehouse.publishing.live.publish import free_live_space, live_rules
from warehouse.steps.foreign import foreign_changes

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.planning.plan_record import Plan

__all__ = ["vacuum"]

_LOOKS = 5


def vacuum(context: WriteContext, *, dry_run: bool = False) -> VacuumReport:
    """Delete files that no readable epoch needs, leftovers included; a dry run needs no lock and writes nothing.

    Raises
    ------
    StoreBusyError
        In a dry run, when updates delete files faster than they are counted.

    """
    root, catalog = context.root, context.catalog
    if dry_run:
        last = newest_epoch(root)
        return _outlook(catalog, last, recorded_plan(root, last), now=context.clock())
    with locked(context):
        current = finish(context)
        publish_if_behind(context, current.last)  # otherwise files that it names could be deleted before it shows a newer epoch
        now = context.clock()
        freed = retire(root, retain=catalog.retain, now=now)
        freed += sweep(root, now=now, spared=current.stopped)
        freed += trim_logs(root, catalog.erase_within)
        freed += tidy_records(root, now=now)
        freed += free_live_tables(context, current.last)
        return freed + VacuumReport(landing=archive_loaded(catalog))


def _outlook(catalog: Catalog, newest: Epoch | None, unfinished: Plan | None, *, now: int) -> VacuumReport:
    """Return the files that a vacuum would delete now; ``now`` is in microseconds.

    Files that an ``unfinished`` plan has added to its tables are not counted, nor files of tables that outsiders changed.
    """
    spared = {step.path for step in unfinished.steps} if unfinished is not None else _changed(catalog.root, newest)
    for _ in range(_LOOKS):
        try:
            return _counted(catalog, newest, spared, now)
        except (FileNotFoundError, EpochVacuumedError, MissingPartError) as error:
            failed = error  # an update deleted the files meanwhile: the lock is not held
    if isinstance(failed, MissingPartError):
        raise failed
    raise StoreBusyError("files were deleted while they were counted; try again between updates") from failed


def _changed(root: Path, newest: Epoch | None) -> set[str]:
    """The directories that outsiders changed: their files stay, whether the vacuum adopts them or the table stands still."""
    changes = foreign_changes(root, newest) if newest is not None else {}
    return {path for path, change in changes.items() if change.kind != "none"}


def _counted(catalog: Catalog, newest: Epoch | None, spared: Collection[str], now: int) -> VacuumReport:
    root = catalog.root
    freed = retire(root, retain=catalog.retain, now=now, dry_run=True)
    freed += sweep(root, now=now, dry_run=True, spared=spared)
    freed += trim_logs(root, catalog.erase_within, dry_run=True)
    freed += tidy_records(root, now=now, dry_run=True)
    if newest is not None:
        space = free_live_space(root, newest, live_rules(catalog), now=now, grace=GRACE, dry_run=True)
        freed += VacuumReport(space.files, space.bytes)
    return freed + VacuumReport(landing=archive_loaded(catalog, dry_run=True))
