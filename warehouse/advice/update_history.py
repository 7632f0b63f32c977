"""The updates of a table, read from its epochs: their work and seconds, the rows that arrived, and rows that live too long."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, read_epoch
from warehouse.errors import MissingPartError, RecordDamagedError
from warehouse.layout.advice.work import UpdateWork, task_work
from warehouse.layout.tasks import file_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warehouse.epochs.records import Counts, Epoch, Partition, TableState

__all__ = ["MAX_EPOCHS", "RecentEpochs", "TableUpdate", "UpdateHistory", "recent_epochs", "target_rows_of", "update_history"]

MAX_EPOCHS = 200
"""How many of the newest epochs are read."""
_MAIN_STEPS = ("move-window", "rewrite-cells")


@dataclass(frozen=True)
class TableUpdate:
    """One update of a table, over ``slots`` slots; ``seconds`` is the duration of the table's step."""

    epoch: int
    slots: int
    counts: Counts
    work: UpdateWork
    seconds: float


@dataclass(frozen=True)
class UpdateHistory:
    """The updates of a table in the readable epochs, oldest first, without the first build."""

    updates: tuple[TableUpdate, ...]

    def per_slot(self, name: str) -> float:
        """Return a count of rows or files for each slot, by its name in `Counts`."""
        slots = sum(update.slots for update in self.updates)
        return sum(int(getattr(update.counts, name)) for update in self.updates) / slots if slots else 0.0

    @property
    def over_lifetime(self) -> float:
        """The share of inserted rows that live for longer than `max_lifetime`."""
        inserted = sum(update.counts.inserted for update in self.updates)
        return sum(update.counts.over_lifetime for update in self.updates) / inserted if inserted else 0.0

    @property
    def arrivals(self) -> tuple[int, ...]:
        """The rows that each update inserted, in the newest unbroken sequence of updates of one slot each."""
        rows: list[int] = []
        for later, update in pairwise((None, *reversed(self.updates))):
            if update is None or update.slots != 1 or (later is not None and later.epoch != update.epoch + 1):
                break
            rows.append(update.counts.inserted)
        return tuple(reversed(rows))


class RecentEpochs:
    """The newest readable epochs up to a given one, at most :data:`MAX_EPOCHS`; each is read once, when it is needed.

    An epoch that is damaged, or retired meanwhile, is left out.
    """

    def __init__(self, root: Path, newest: Epoch, most: int = MAX_EPOCHS) -> None:
        """Start with the newest epoch, which is read already."""
        self._root = root
        self._read = [newest]
        self._most = most

    @cached_property
    def _older_numbers(self) -> Iterator[int]:
        older = [number for number in reversed(epoch_numbers(self._root)) if number < self._read[0].number]
        return iter(older[: self._most - 1])

    def __iter__(self) -> Iterator[Epoch]:
        """Yield them, newest first."""
        yield from self._read
        for number in self._older_numbers:
            try:
                self._read.append(read_epoch(self._root, number))
            except (MissingPartError, RecordDamagedError):
                continue
            yield self._read[-1]

    def since(self, instant: int) -> tuple[Epoch, ...]:
        """Return the epochs committed after an instant (microseconds) and the epoch before them, oldest first."""
        epochs: list[Epoch] = []
        for epoch in self:
            epochs.append(epoch)
            if epoch.committed_at <= instant:
                break
        return tuple(reversed(epochs))

    def all(self) -> tuple[Epoch, ...]:
        """Return all of them, oldest first."""
        return tuple(reversed(list(self)))


def recent_epochs(root: Path, newest: Epoch, most: int = MAX_EPOCHS) -> tuple[Epoch, ...]:
    """Return the newest readable epochs up to ``newest``, oldest first; damaged and retired ones are left out."""
    return RecentEpochs(root, newest, most).all()


def update_history(epochs: Sequence[Epoch], table: str, workers: int, target_file_size: int | None = None) -> UpdateHistory:
    """Return the updates of a table since the last change of its layout.

    Parameters
    ----------
    epochs
        Readable epochs, oldest first.
    table
        The table's name.
    workers
        Tasks of an update that run at the same time.
    target_file_size
        Bytes of a file; None: the default.
    """
    return UpdateHistory(tuple(_updates(epochs, table, workers, target_file_size)))


def _updates(epochs: Sequence[Epoch], table: str, workers: int, target_file_size: int | None) -> Iterator[TableUpdate]:
    newest = epochs[-1].table(table)
    for before, epoch in pairwise(epochs):
        old, new = before.table(table), epoch.table(table)
        is_one_update = epoch.cause == "update" and epoch.number == before.number + 1 and epoch.slot > epoch.previous_slot
        if not is_one_update or old is None or new is None or newest is None or (old.layout, new.layout) != (newest.layout,) * 2:
            continue
        counts = next((entry for entry in epoch.counts if entry.stream == table), None)
        names = {f"{new.path}: {step}" for step in _MAIN_STEPS}
        seconds = sum(entry.seconds for entry in epoch.seconds if entry.step in names)
        if counts is None or seconds <= 0:
            continue
        runs, cells = _written_runs(old.partitions, new.partitions)
        rebuilds = new.layout.technique == "rebuild"
        work = task_work(
            runs=runs,
            files=counts.files_added or len(runs),
            read=counts.rewritten,
            workers=workers,
            sub_indices=counts.planned if rebuilds else cells,
            arriving=max(counts.rows + counts.taken, counts.inserted),
            landing_files=counts.files,
            target_rows=target_rows_of(old, target_file_size),
        )
        yield TableUpdate(epoch.number, epoch.slot - epoch.previous_slot, counts, work, seconds)


def target_rows_of(state: TableState, target_file_size: int | None) -> int:
    """Return how many rows an update of a table puts into a file."""
    parts = state.partitions
    return file_rows(target_file_size, rows=sum(part.rows for part in parts), size=sum(part.bytes for part in parts))


def _written_runs(before: Sequence[Partition], after: Sequence[Partition]) -> tuple[list[int], int]:
    """Return the rows of each run that is in ``after`` and not in ``before``, and the number of their sub-indices."""
    former = {(part.sub_index, part.exp_block): part for part in before}
    runs, cells = [], set()
    for part in after:
        former_part = former.get((part.sub_index, part.exp_block))
        if former_part == part:
            continue
        appended = former_part is not None and part.runs == former_part.runs + 1
        runs.append(part.rows - former_part.rows if appended and former_part is not None else part.rows)
        cells.add(part.sub_index)
    return runs, len(cells)
