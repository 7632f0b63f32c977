"""What a window join owes after it could not keep or look at everything, and how that is made later without a pair twice.

No warehouse: rows of two streams with their residence (approximate-joins sheet, 2, 3 and 9.2). A row that was *seen* took part in
the join until a position; a row that was dropped unseen owes its older partners, a row that left early its younger partners.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.source.join_memory import exact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Archive", "KeyRun", "Measures", "independent", "kept_runs", "metric_by_formula", "most_kept", "position"]

Row = tuple[int, int]
"""A row: its stream (0 or 1), and when it arrived."""
Pair = tuple[int, int]
"""When the rows of the first and of the second stream arrived."""


def position(row: Row) -> int:
    """Return the position of a row in the order of all arrivals: at one time, the first stream's row comes first."""
    return 2 * row[1] + row[0]


@dataclass
class Archive:
    """Rows with their residence: ``until`` which position each took part; ``unseen`` are the rows whose older partners are owed.

    The invariant: each pair is delivered, or one of its rows owes it, never both and never two.
    """

    streams: tuple[Sequence[int], Sequence[int]]
    window: int
    until: dict[Row, int]
    dropped: frozenset[Row] = frozenset()
    unseen: set[Row] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        streams: tuple[Sequence[int], Sequence[int]],
        window: int,
        evicted: Mapping[Row, int] | None = None,
        dropped: Iterable[Row] = (),
    ) -> Archive:
        """Return the archive after rows were evicted at a time, or dropped unseen; all others lived to their natural end."""
        unseen = frozenset(dropped)
        until = {}
        for row in ((stream, number) for stream in (0, 1) for number in range(len(streams[stream]))):
            last = row[1] + window - 1 if evicted is None or row not in evicted else evicted[row]
            until[row] = position(row) if row in unseen else 2 * last + 1
        return cls(streams, window, until, unseen, set(unseen))

    def pairs(self) -> list[Pair]:
        """Return the exact answer."""
        return exact(self.streams, self.window)

    def _older(self, pair: Pair) -> tuple[Row, Row]:
        first, second = sorted(((0, pair[0]), (1, pair[1])), key=position)
        return first, second

    def delivered(self) -> list[Pair]:
        """Return the pairs that were made in time: the younger row was seen while the older row was kept."""
        return [pair for pair in self.pairs() if self._owner(pair) is None]

    def _owner(self, pair: Pair) -> Row | None:
        older, younger = self._older(pair)
        if younger in self.dropped:
            return younger if younger in self.unseen else None
        return older if self.until[older] < position(younger) else None

    def owed(self) -> dict[Row, list[Pair]]:
        """Return the pairs that each row owes."""
        pairs_of_rows: dict[Row, list[Pair]] = {}
        for pair in self.pairs():
            owner = self._owner(pair)
            if owner is not None:
                pairs_of_rows.setdefault(owner, []).append(pair)
        return pairs_of_rows

    def backward(self, row: Row) -> list[Pair]:
        """Make the pairs of a row that was dropped unseen with its older partners."""
        pairs = [pair for pair in self.pairs() if row in self.unseen and self._older(pair)[1] == row]
        self.unseen.discard(row)
        return pairs

    def forward(self, row: Row, upto: int) -> list[Pair]:
        """Make the pairs of a row with younger partners that were seen, up to a position."""
        pairs = []
        for pair in self.pairs():
            older, younger = self._older(pair)
            if older == row and younger not in self.dropped and self.until[row] < position(younger) <= upto:
                pairs.append(pair)
        self.until[row] = max(self.until[row], upto)
        return pairs


def metric_by_formula(
    streams: tuple[Sequence[int], Sequence[int]], window: int, last: tuple[Sequence[int], Sequence[int]]
) -> int:
    """Return how many rows miss a partner, by the source's formula with the sheet's brackets (section 2.1).

    ``last`` is when each row took part in the join for the last time.
    """
    incomplete = 0
    for stream in (0, 1):
        values, partner_values = streams[stream], streams[1 - stream]
        for number, value in enumerate(values):
            partners = [other for other, theirs in enumerate(partner_values) if theirs == value and abs(other - number) < window]
            later = max((other for other in partners if other >= number), default=number)
            earlier = [other for other in partners if other < number]
            complete = last[stream][number] >= later and all(last[1 - stream][other] >= number for other in earlier)
            incomplete += not complete
    return incomplete


class Measures(NamedTuple):
    """How similar a delivered answer is to its exact answer, as bags (section 2)."""

    missing: int
    matching: int
    dice: float
    jaccard: float
    cosine: float
    overlap: float

    @classmethod
    def of(cls, delivered: Counter[object], answer: Counter[object]) -> Measures:
        """Return the measures of two bags with a row in each."""
        both, first, second = (delivered & answer).total(), delivered.total(), answer.total()
        apart = ((delivered - answer) + (answer - delivered)).total()
        union = (delivered | answer).total()
        return cls(
            apart, both, 2 * both / (first + second), both / union, both / math.sqrt(first * second), both / min(first, second)
        )


class KeyRun(NamedTuple):
    """Rows of one key that came with one batch of a stream: a policy by priorities does not tell them apart (section 9.1)."""

    stream: str
    key: str
    batch: int
    rows: int
    priority: float


def kept_runs(runs: Sequence[KeyRun], capacity: int) -> dict[KeyRun, int]:
    """Return the runs that a memory keeps, and how many rows of each: the last run is cut, and its later rows stay."""
    rows_of_runs = {}
    for run in sorted(runs, key=lambda run: (-run.priority, -run.batch)):
        if rows := min(run.rows, capacity):
            rows_of_runs[run] = rows
            capacity -= rows
    return rows_of_runs


# --- joins of more relations ---


def independent(results: Sequence[tuple[int, ...]], sizes: Sequence[int], drops: Sequence[int]) -> tuple[list[int], int]:
    """Return the results lost by dropping the rows with the fewest: for each relation alone, and together (section 3).

    ``results`` are the numbers of the joined rows, one of each relation.
    """
    alone, dropped_rows = [], []
    for relation, (size, dropped) in enumerate(zip(sizes, drops, strict=True)):
        counts = Counter(result[relation] for result in results)
        chosen = sorted(range(size), key=lambda row: (counts[row], row))[:dropped]
        dropped_rows.append(set(chosen))
        alone.append(sum(counts[row] for row in chosen))
    lost_results = sum(any(row in dropped_rows[relation] for relation, row in enumerate(result)) for result in results)
    return alone, lost_results


def most_kept(results: Sequence[tuple[int, ...]], sizes: Sequence[int], drops: Sequence[int]) -> int:
    """Return the most results that remain after dropping ``drops`` rows of each relation, by trying all choices."""
    choices = [combinations(range(size), size - dropped) for size, dropped in zip(sizes, drops, strict=True)]
    return max(
        sum(all(row in rows for row, rows in zip(result, choice, strict=True)) for result in results)
        for choice in product(*choices)
    )
