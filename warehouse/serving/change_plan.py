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

__all__ = ["ChangePlan", "Expiring", "Held", "MovedFiles", "changes_between"]


@dataclass(frozen=True)
class Held:
    """A table at one epoch: its files, the window time (microseconds) and the slot that ends with it.

    ``settled`` means that rows which the epoch before had too are in the same partitions.
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

    All such rows of ``came`` were inserted, all of ``went`` removed; rows of ``both_came`` and ``both_went`` are compared.
    """

    epoch: int
    window_time: int
    came: tuple[DataFile, ...] = ()
    went: tuple[DataFile, ...] = ()
    both_came: tuple[DataFile, ...] = ()
    both_went: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class ChangePlan:
    """The files to read, by their purpose."""

    expiring: tuple[Expiring, ...]
    moved: tuple[MovedFiles, ...]

    @property
    def files(self) -> frozenset[str]:
        """The paths of all files that are read."""
        groups = [each.files for each in self.expiring]
        groups += [files for each in self.moved for files in (each.came, each.went, each.both_came, each.both_went)]
        return frozenset(file.path for group in groups for file in group)

    def at(self, places: Mapping[str, str]) -> ChangePlan:
        """Return the same plan with the files where they are read."""

        def placed(files: Sequence[DataFile]) -> tuple[DataFile, ...]:
            return tuple(replace(file, path=places[file.path]) for file in files)

        return ChangePlan(
            tuple(replace(each, files=placed(each.files)) for each in self.expiring),
            tuple(
                replace(
                    each,
                    came=placed(each.came),
                    went=placed(each.went),
                    both_came=placed(each.both_came),
                    both_went=placed(each.both_went),
                )
                for each in self.moved
            ),
        )


def changes_between(held: Sequence[Held]) -> ChangePlan:
    """Return the files to read for the changes from the first of consecutive epochs to the last."""
    return ChangePlan(tuple(_expiring(held)), tuple(_moved(before, after) for before, after in pairwise(held)))


def _expiring(held: Sequence[Held]) -> Iterator[Expiring]:
    """Yield, for each span of epochs, the files that existed in exactly this span and whose rows expired in it."""
    spans: dict[tuple[int, int], list[DataFile]] = {}
    for file, first, last in _spans(held):
        until = held[min(last + 1, len(held) - 1)]  # the epoch that removed the file reported its expired rows
        if _ends_within(file, held[first].slot, until.slot):
            spans.setdefault((held[first].window_time, until.window_time), []).append(file)
    for (after, until_time), files in spans.items():
        yield Expiring(after, until_time, tuple(files))


def _spans(held: Sequence[Held]) -> Iterator[tuple[DataFile, int, int]]:
    """Yield each file with the first and the last position of a span without gap in which it is there."""
    began: dict[str, tuple[DataFile, int]] = {}
    for position, each in enumerate(held):
        here = {file.path: file for file in each.files}
        for path in [path for path in began if path not in here]:
            file, first = began.pop(path)
            yield file, first, position - 1
        for path, file in here.items():
            began.setdefault(path, (file, position))
    for file, first in began.values():
        yield file, first, len(held) - 1


def _moved(before: Held, after: Held) -> MovedFiles:
    old, new = ({file.path for file in each.files} for each in (before, after))
    came = [file for file in after.files if file.path not in old and _outlives(file, after.slot)]
    went = [file for file in before.files if file.path not in new and _outlives(file, after.slot)]
    place: Callable[[DataFile], object] = _partition if after.settled else _anywhere
    shared = {place(file) for file in came} & {place(file) for file in went}
    return MovedFiles(
        after.epoch,
        after.window_time,
        came=_those(came, lambda file: place(file) not in shared),
        went=_those(went, lambda file: place(file) not in shared),
        both_came=_those(came, lambda file: place(file) in shared),
        both_went=_those(went, lambda file: place(file) in shared),
    )


def _those(files: Iterable[DataFile], wanted: Callable[[DataFile], bool]) -> tuple[DataFile, ...]:
    return tuple(file for file in files if wanted(file))


def _partition(file: DataFile) -> object:
    return file.sub_index, file.exp_block


def _anywhere(_: DataFile) -> object:
    return None


def _outlives(file: DataFile, slot: int) -> bool:
    last = file.max_exp_slot
    return last is None or last > slot


def _ends_within(file: DataFile, after: int, until: int) -> bool:
    first = file.min_exp_slot
    return after < until and _outlives(file, after) and (first is None or first <= until)
