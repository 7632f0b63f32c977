"""Joins of strict input as formulas: deletions are tombstones, and a tombstone shortens the life of its row.

``eff_end(t) = min(t.exp, at)`` over the tombstones of ``t`` known by now; with it the sets of :mod:`.join_sets` keep their
definitions. At one tick deletions come before arrivals, so a row is dead at its tombstone. Negative results at tau_k are
``D = { c in V(tau_k-1) : eff_end(c) in (tau_k-1, tau_k] and eff_end(c) < exp(c) }`` (window-joins sheet, section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, arrivals, minus
from tests.reference.engine.join_sets import combinations, view

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from tests.reference.engine.tuples import Key, Row

__all__ = ["Tombstone", "as_changes", "count_window_tombstones", "effective", "negative_results"]


@dataclass(frozen=True)
class Tombstone:
    """The row ``id`` of an input (a number, from 0) is deleted at an instant."""

    input: int
    id: Hashable
    at: int


def effective(inputs: Sequence[Iterable[Row]], tombstones: Iterable[Tombstone], now: int) -> list[list[Row]]:
    """The rows of each input with the ends that are known now."""
    deleted: dict[tuple[int, Hashable], int] = {}
    for stone in tombstones:
        if stone.at <= now:
            deleted[stone.input, stone.id] = min(stone.at, deleted.get((stone.input, stone.id), stone.at))
    return [
        [replace(row, exp=min(row.exp, deleted.get((i, row.id), row.exp))) for row in rows] for i, rows in enumerate(inputs)
    ]


def negative_results(
    inputs: Sequence[Sequence[Row]],
    tombstones: Sequence[Tombstone],
    previous: int,
    now: int,
    keys: Sequence[Key] | None = None,
) -> list[Change]:
    """The results that were in the answer at ``previous`` and were deleted since, before their natural end."""
    reported = view(effective(inputs, tombstones, previous), previous, keys)
    ends = {result.id: result.exp for result in combinations(effective(inputs, tombstones, now), keys)}
    return [minus(result, ends[result.id]) for result in reported if ends[result.id] < result.exp]


def count_window_tombstones(rows: Iterable[Row], size: int, number: int) -> list[Tombstone]:
    """The tombstones of a count-based window on input ``number``: a row is pushed out by the size-th later one.

    >>> from tests.reference.engine.tuples import Row
    >>> rows = [Row("u1", ("k",), 1), Row("u2", ("k",), 3), Row("u3", ("m",), 6)]
    >>> count_window_tombstones(rows, 2, 0)
    [Tombstone(input=0, id='u1', at=6)]
    """
    ordered = sorted(rows, key=lambda row: row.ts)
    return [Tombstone(number, old.id, new.ts) for old, new in zip(ordered, ordered[size:], strict=False)]


def as_changes(inputs: Sequence[Iterable[Row]], tombstones: Iterable[Tombstone]) -> list[list[Change]]:
    """The event lists of rows and tombstones, for Algorithm 2."""
    stones = list(tombstones)
    lists = []
    for i, rows in enumerate(inputs):
        mine = list(rows)
        by_id = {row.id: row for row in mine}
        negatives = [minus(by_id[stone.id], stone.at) for stone in stones if stone.input == i]
        lists.append(sorted([*arrivals(mine), *negatives], key=lambda change: change.at))
    return lists
