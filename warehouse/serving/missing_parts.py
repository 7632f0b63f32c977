"""The error to raise when a part of the newest epoch cannot be read.

A file that an epoch names is deleted only when a newer epoch exists, and then the reader moves to that one. If a file of the
newest epoch is missing, another program removed it, and reading again does not help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.errors import RESTORE_TABLE, EpochVacuumedError, MissingPartError, WarehouseError
from warehouse.storage.entries import LogEntry, is_replaced

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.epochs.records import Epoch, TableState

__all__ = ["missing_part_error", "replaced_table"]

def missing_part_error(root: Path, epoch: Epoch, error: WarehouseError) -> WarehouseError:
    """Return the error about a part that the newest epoch names and that could not be read.

    If the table's log is the epoch's, the error stays an error to retry: a disk that several hosts share may show a new epoch
    later than the deletion of the former epoch's files.
    """
    if not isinstance(error, EpochVacuumedError):
        return error
    text = str(error)
    for state in epoch.tables:
        is_named = any(f"{root / path}/" in text or f"{root / path}:" in text for path in state.paths)
        if is_named and (replaced := replaced_table(root, epoch, state)):
            return replaced
    return EpochVacuumedError(
        f"{text}. If that does not help, `stream-wh check` lists what is missing, and `stream-wh check --repair` repairs what it "
        f"can; restore the rest from a copy, or the warehouse from a backup (`stream-wh restore DIR --replace`)"
    )


def replaced_table(root: Path, epoch: Epoch, state: TableState) -> MissingPartError | None:
    """Return the error of a table that is missing or was replaced by another one or an older copy; None if it is unchanged."""
    for path, version in _versions(state):
        pinned = epoch.entry(path)
        if pinned is None or pinned.version != version:
            continue
        if is_replaced(root / path, LogEntry(version, pinned.sha256)):
            fault = "is not there" if not (root / path).is_dir() else "was replaced by another one or an older copy"
            return MissingPartError(f'table "{state.name}": its directory {root / path} {fault}. {RESTORE_TABLE}')
    return None


def _versions(state: TableState) -> Iterator[tuple[str, int]]:
    yield state.path, state.version
    yield from ((side.path, side.version) for side in state.sides)
