"""The log entries that an epoch names, by content: what the next plan starts from, and nothing else of that number.

{ (path, version, sha256) : path is a directory of the epoch, version the one it names, sha256 the sum of that entry }
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.epochs.records import PinnedEntry
from warehouse.errors import ForeignChangeError, MissingPartError
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import NO_ENTRY, LogEntry, entry_at, require_entry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from warehouse.epochs.records import Epoch

__all__ = ["base_entry", "pinned_entries", "with_entries"]

def base_entry(root: Path, path: str, version: int, last: Epoch | None) -> LogEntry:
    """Return the entry from which a plan starts in a table (directory relative to the root), as the log has it.

    Raises
    ------
    MissingPartError
        When the log does not have that version.
    ForeignChangeError
        When it is not the entry that the last epoch names: another sum, or, where an older build recorded none, a commit of
        somebody else.

    """
    if version < 0:
        return NO_ENTRY
    pinned = last.entry(path) if last else None
    known = pinned is not None and pinned.version == version
    try:
        entry = require_entry(root / path, LogEntry(version, pinned.sha256 if pinned and known else None))
    except MissingPartError:
        raise MissingPartError(
            f"{root / path}: version {version} of the table is not there, though the last epoch names it; nothing was "
            f"written. Restore the directory from a copy, then update again"
        ) from None
    if not known:
        commit = next(commits_after(root / path, version - 1))
        if not commit.ours:
            raise ForeignChangeError(path, version, f"({commit.operation or 'unknown'}) is not of the last epoch")
    return entry


def pinned_entries(
    root: Path, epoch: Epoch, last: Epoch | None, heads: Mapping[str, LogEntry]
) -> tuple[PinnedEntry, ...]:
    """Return the entries that an epoch names, where ``heads`` has the newest entries of the tables that its plan looked at."""
    entries = []
    for state in epoch.tables:
        for path, version in ((state.path, state.version), *((side.path, side.version) for side in state.sides)):
            before, head = last.entry(path) if last else None, heads.get(path)
            if head is not None and head.version == version:
                sum_ = head.sha256
            elif before is not None and before.version == version:
                sum_ = before.sha256
            else:
                sum_ = entry_at(root / path, version).sha256
            entries.append(PinnedEntry(path, version, sum_ or ""))
    return tuple(entries)


def with_entries(
    root: Path, epoch: Epoch, last: Epoch | None, heads: Mapping[str, LogEntry]
) -> Epoch:
    """Return an epoch with the entries that it names."""
    return replace(epoch, entries=pinned_entries(root, epoch, last, heads))
