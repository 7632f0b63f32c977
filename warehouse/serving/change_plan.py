"""Chooses the files that show the changes between epochs of a table: a pure function of the lists of files and bounds.

Let `L(n) = { r : r in a file of epoch n, r._exp > tau(n) }` be the bag of live rows of epoch n. Its change is

    expired(n)  = { r in L(n-1) : r._exp <= tau(n) } moved(n)    = L(n) - { r in L(n-1) : r._exp > tau(n) }          as bags:
    above 0 are insertions, below 0 removals

A file of both epochs is in both terms of `moved(n)`, so it need not be read for it, and each file is read once for all its rows
that expire while it exists. An update leaves a row in its partition (the partition is a function of the row), so partitions that
only gained files, or only lost files, need no comparison of rows. Rows of a coalesced table move within their bucket
(:mod:`warehouse.coalescing.cells`), so they are always compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from warehouse.storage.snapshot import DataFile

__all__ = ["ChangePlan", "Expiring", "MovedFiles", "TableAtEpoch", "changes_between"]


@dataclass(frozen=True)
class TableAtEpoch:
    """A table at one epoch: its files, the window time (microseconds) and the slot that ends with it.

    ``settled``: rows that the epoch before also had are in the same partitions.
    """

    epoch: int
    window_time: int
    slot: int
    files: tuple[DataFile, ...] = ()
    settled: bool = True


@dataclass(frozen=True)
class Expiring:
    """Files whose rows with ``after < _exp <= until`` expired while they were live; microseconds."""

    after: int
    until: int
    files: tuple[DataFile, ...]


@dataclass(frozen=True)
class MovedFiles:
    """Files that only one of two neighbouring epochs has, with rows that outlive the later window time.

    All such rows of ``added`` files were inserted, and all such rows of ``removed`` files left; rows of other files are compared.
    """

    epoch: int
    window_time: int
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    compared_added: tuple[DataFile, ...] = ()
    compared_removed: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class ChangePlan:
    """The files to read, by their purpose."""

    expiring: tuple[Expiring, ...]
    moved: tuple[MovedFiles, ...]

    @property
    def files(self) -> frozenset[str]:
        """The paths of all files that are read."""
        groups = [expiring.files for expiring in self.expiring]
        for moved in self.moved:
            groups += [moved.added, moved.removed, moved.compared_added, moved.compared_removed]
        return frozenset(file.path for group in groups for file in group)

    def at(self, places: Mapping[str, str]) -> ChangePlan:
        """Return the same plan with the paths at which the files are read; ``places`` has them by the recorded path."""

        def placed(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
            return tuple(replace(file, path=places[file.path]) for file in files)

        return ChangePlan(
            tuple(replace(expiring, files=placed(expiring.files)) for expiring in self.expiring),
            tuple(
                replace(
                    moved,
                    added=placed(moved.added),
                    removed=placed(moved.removed),
                    compared_added=placed(moved.compared_added),
                    compared_removed=placed(moved.compared_removed),
                )
                for moved in self.moved
            ),
        )


def changes_between(tables: Sequence[TableAtEpoch]) -> ChangePlan:
    """Return the files to read for the changes from the first of consecutive epochs to the last."""
    return ChangePlan(tuple(_expiring(tables)), tuple(_moved(before, after) for before, after in pairwise(tables)))


def _expiring(tables: Sequence[TableAtEpoch]) -> Iterator[Expiring]:
    """Yield, for each span of epochs, the files that existed in exactly this span and whose rows expired in it."""
    spans: dict[tuple[int, int], list[DataFile]] = {}
    for file, first, last in _spans(tables):
        until = tables[min(last + 1, len(tables) - 1)]  # the epoch that removed the file reported its expired rows
        if _ends_within(file, tables[first].slot, until.slot):
            spans.setdefault((tables[first].window_time, until.window_time), []).append(file)
    for (after, until_time), files in spans.items():
        yield Expiring(after, until_time, tuple(files))


def _spans(tables: Sequence[TableAtEpoch]) -> Iterator[tuple[DataFile, int, int]]:
    """Yield each file with the first and the last position of each unbroken span of tables that have it."""
    began: dict[str, tuple[DataFile, int]] = {}
    for position, table in enumerate(tables):
        present = {file.path: file for file in table.files}
        for path in [path for path in began if path not in present]:
            file, first = began.pop(path)
            yield file, first, position - 1
        for path, file in present.items():
            began.setdefault(path, (file, position))
    for file, first in began.values():
        yield file, first, len(tables) - 1


def _moved(before: TableAtEpoch, after: TableAtEpoch) -> MovedFiles:
    old, new = ({file.path for file in table.files} for table in (before, after))
    added = [file for file in after.files if file.path not in old and _outlives(file, after.slot)]
    removed = [file for file in before.files if file.path not in new and _outlives(file, after.slot)]
    group_of: Callable[[DataFile], object] = _partition if after.settled else _whole_table
    shared = {group_of(file) for file in added} & {group_of(file) for file in removed}
    return MovedFiles(
        after.epoch,
        after.window_time,
        added=_matching(added, lambda file: group_of(file) not in shared),
        removed=_matching(removed, lambda file: group_of(file) not in shared),
        compared_added=_matching(added, lambda file: group_of(file) in shared),
        compared_removed=_matching(removed, lambda file: group_of(file) in shared),
    )


def _matching(files: Iterable[DataFile], condition: Callable[[DataFile], bool]) -> tuple[DataFile, ...]:
    return tuple(file for file in files if condition(file))


def _partition(file: DataFile) -> object:
    return file.sub_index, file.exp_block


def _whole_table(_: DataFile) -> object:
    return None


def _outlives(file: DataFile, slot: int) -> bool:
    last = file.max_exp_slot
    return last is None or last > slot


def _ends_within(file: DataFile, after: int, until: int) -> bool:
    first = file.min_exp_slot
    return after < until and _outlives(file, after) and (first is None or first <= until)
