"""What a vacuum would free, for ``vacuum --dry-run``: it holds no lock, finishes no update and writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.errors import EpochVacuumedError, MissingPartError, StoreBusyError
from warehouse.operations.after_load import put_away
from warehouse.operations.vacuum import GRACE, VacuumReport, retire, sweep, tidy_records, trim_logs
from warehouse.publishing.live.publish import free
from warehouse.publishing.live.rules import live_rules
from warehouse.steps.foreign import foreign_changes

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.planning.steps import Plan

__all__ = ["vacuum_outlook"]

_LOOKS = 5


def vacuum_outlook(catalog: Catalog, newest: Epoch | None, unfinished: Plan | None, *, now: int) -> VacuumReport:
    """Return what a vacuum would delete now.

    Parameters
    ----------
    catalog
        The declarations in force.
    newest
        The newest epoch; None: there is none yet.
    unfinished
        The plan of an update that was begun; what its tables hold beyond the newest epoch is not counted, nor what is in
        tables that outsiders changed.
    now
        The clock's instant in microseconds.

    Raises
    ------
    StoreBusyError
        When updates delete files faster than they are counted.

    """
    from deltalake.exceptions import DeltaError  # noqa: PLC0415 - slow to import

    spared = {step.path for step in unfinished.steps} if unfinished is not None else _changed(catalog.root, newest)
    for _ in range(_LOOKS):
        try:
            return _counted(catalog, newest, spared, now)
        except (FileNotFoundError, EpochVacuumedError, MissingPartError, DeltaError) as error:
            failed = error  # an update, whose lock is not held, deleted what was looked at
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
        space = free(root, newest, live_rules(catalog), now=now, grace=GRACE, dry_run=True)
        freed += VacuumReport(space.files, space.bytes)
    return freed + VacuumReport(landing=put_away(catalog, dry_run=True))
