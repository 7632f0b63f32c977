"""``check --views``: every view compared with its query at an epoch, while updates go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, newest_epoch, read_epoch
from warehouse.errors import EpochVacuumedError, NoEpochError
from warehouse.operations.verification import ViewVerdict, kept_verdicts, verdicts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Epoch

__all__ = ["checked_views"]

_ATTEMPTS = 3


def checked_views(
    root: Path, spark: Callable[[int], SparkSession], *, epoch: int | None, now: int
) -> tuple[ViewVerdict, ...]:
    """Return the verdict of each view at an epoch (none: the newest), and record those of the newest one.

    The lock is not taken: an epoch's files stay for as long as it is readable. When it is retired meanwhile, the newest one is
    looked at in its place.

    Raises
    ------
    NoEpochError, EpochVacuumedError
        When there is no such epoch, or none any more.

    """
    for _ in range(_ATTEMPTS):
        pinned = _pinned(root, epoch)
        stored = sum(part.bytes for state in pinned.tables for part in state.partitions)
        try:
            verdicts = tuple(verdicts_of(root, pinned, spark(stored)))
        except Exception:
            if pinned.number in epoch_numbers(root):
                raise
            continue  # its files went with it
        if pinned.number in epoch_numbers(root):
            newest = newest_epoch(root)
            if newest is not None and newest.number == pinned.number:
                kept_verdicts(root, verdicts, now)
            return verdicts
    raise EpochVacuumedError("epochs are retired faster than views can be compared; raise `retain`, or check between updates")


def _pinned(root: Path, number: int | None) -> Epoch:
    newest = newest_epoch(root)
    if newest is None:
        raise NoEpochError(f"nothing has been loaded under {root} yet; run `stream-wh update` first")
    if number is None:
        return newest
    if number not in epoch_numbers(root):
        raise EpochVacuumedError(f"epoch {number} cannot be read (any more); `stream-wh history` lists those that can")
    return read_epoch(root, number)
