"""Compares ``erase_within`` with the disk: the oldest dead row of each table, and whether it is overdue.

A row is on disk as long as a readable epoch names a file with it. Its end is known up to the slot: ``dead_since`` is the begin of
its slot, so a row may be reported as overdue up to one slot early, but never late.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, newest_epoch, read_epoch
from warehouse.errors import EpochVacuumedError, MissingPartError
from warehouse.storage.deltalog import commits_after
from warehouse.storage.snapshot import read_snapshot
from warehouse.time import at_slot, format_duration, format_instant, grid_slot, rough

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.epochs.records import Epoch, TableState

__all__ = ["DeadRow", "dead_since", "overdue"]


@dataclass(frozen=True)
class DeadRow:
    """The oldest dead row of a table, state tables named by their view: since when, and the bound (microseconds).

    ``window_time`` is that of the newest epoch: rows that ended after it are still the table's, until an update.
    """

    table: str
    since: int
    bound: int
    window_time: int

    @property
    def command(self) -> str:
        """The command that removes it."""
        return "stream-wh update" if self.since >= self.window_time else "stream-wh erase --expired"

    def message(self, now: int) -> str:
        """Return a message for people, with the numbers."""
        since, duration = format_instant(self.since), rough(now - self.since)
        return (
            f'table "{self.table}" holds rows on disk that are dead since {since}, for {duration}; erase_within allows '
            f"{format_duration(self.bound)}; `{self.command}` removes them"
        )


def dead_since(root: Path, now: int | None = None) -> dict[str, int]:
    """Return, by table, since when the oldest dead row on disk is dead; a table without dead rows is left out.

    Rows that ended by ``now`` (microseconds; None: the window time) are dead. Rows of relations are never dead: versions may be
    looked up after their end. A table that cannot be read is left out: reading it is an error.
    """
    newest, readable = newest_epoch(root), epoch_numbers(root)
    if newest is None:
        return {}
    oldest = read_epoch(root, readable[0])
    last = newest.slot if now is None else grid_slot(now, newest.anchor, newest.update_interval)
    since = {}
    for state in newest.tables:
        slots: list[int] = []
        with suppress(MissingPartError, EpochVacuumedError):
            slots = [] if state.kind == "relation" else [slot for slot in _ends(root, oldest, state) if slot <= last]
        if slots:
            since[state.name] = at_slot(min(slots) - 1, newest.anchor, newest.update_interval)
    return since


def overdue(root: Path, bounds: Mapping[str, int], now: int) -> tuple[DeadRow, ...]:
    """Return the tables whose oldest dead row is on disk for longer than its bound allows.

    Parameters
    ----------
    root
        The warehouse's directory, absolute.
    bounds
        ``erase_within`` by the name of the stream or view, microseconds.
    now
        The clock's instant in microseconds.

    """
    newest = newest_epoch(root)
    if newest is None:
        return ()
    owners = {state.name: state.owner for state in newest.tables}
    dead = dead_since(root, now) if bounds else {}
    window_time = newest.window_time
    rows = [DeadRow(name, since, bounds[owners[name]], window_time) for name, since in dead.items() if owners[name] in bounds]
    return tuple(row for row in rows if now - row.since > row.bound)


def _ends(root: Path, oldest: Epoch, state: TableState) -> Iterator[int]:
    """Yield the smallest expiration slot of each file that a readable epoch names."""
    before = oldest.table(state.name)
    version = before.version if before is not None and before.table_id == state.table_id else state.version
    for file in read_snapshot(root, state.path, version, ("_exp_slot",)).files:
        if file.min_exp_slot is not None:
            yield file.min_exp_slot
    for commit in commits_after(root / state.path, version):
        if commit.version <= state.version:
            yield from (file.min_exp_slot for file in commit.added if file.min_exp_slot is not None)
