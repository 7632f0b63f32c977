"""Sets aside a damaged record of the newest epoch, so that the next update rebuilds the record.

The update executes the epoch's plan again, which the tables' logs show as done, and writes the record. A record is written whole
or not at all, so only a disk that lost or changed bytes leaves a damaged record. Until the next update, readers read the epoch
before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, epoch_path, plan_path, read_epoch, read_record
from warehouse.errors import TornRecordError
from warehouse.planning.plan_record import Plan
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["set_aside_damaged"]


def set_aside_damaged(root: Path) -> Path | None:
    """Rename the newest epoch's record if it is damaged and can be rebuilt; return its new path, or None if it is intact.

    The caller holds the writer lock and finishes the epoch's plan next.

    Raises
    ------
    TornRecordError
        When its plan or the epoch before it is damaged, too; then the record must be restored from a copy.

    """
    numbers = epoch_numbers(root)
    if not numbers:
        return None
    path = epoch_path(root, numbers[-1])
    try:
        read_epoch(root, numbers[-1])
    except TornRecordError:
        if (len(numbers) == 1 and numbers[0] > 0) or not plan_path(root, numbers[-1]).exists():
            raise
        read_record(plan_path(root, numbers[-1]), Plan)
        aside = path.with_name(f"{path.name}.damaged")  # `repair` removes it once nobody needs it
        path.replace(aside)
        store_of(path.parent).sync_directory(path.parent)
        return aside
    return None
