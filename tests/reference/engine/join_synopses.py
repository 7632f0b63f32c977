"""Synopses of a join of two windows, by expiration: basic interval, interval and running (shared-aggregates sheet, section 4).

A result whose parts arrived in the epochs ``k1`` and ``k2`` expires in ``min(k1, k2) + b``. Each expiration epoch has a vector:
one value for each ``d = k1 - k2``, cut off at ``-g`` and ``g``, which is exact for all joins of two lengths that differ by at
most ``g`` (section 4.1).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["BasicIntervalJoin", "IntervalJoin", "RunningJoin"]

Result: TypeAlias = tuple[int, int, int]
"""The epochs in which its parts arrived, and a value."""
Vector: TypeAlias = dict[int, int]
Merge: TypeAlias = "Callable[[int, int], int]"


class _JoinSynopsis:
    """What the three have in common: which vectors a lookup takes, and which differences of each.

    Parameters
    ----------
    periods, difference
        b, the longest window in periods; g, by how many periods the lengths may differ.
    merge
        The aggregate of two disjoint parts.
    """

    def __init__(self, periods: int, difference: int, merge: Merge) -> None:
        self.t, self._b, self._g, self._merge = 0, periods, difference, merge

    def _entry(self, result: Result) -> tuple[int, int, int]:
        """Return the expiration epoch of a result, its difference and its value."""
        first, second, value = result
        return min(first, second) + self._b, max(-self._g, min(self._g, first - second)), value

    def probe(self, one: int, two: int) -> int | None:
        """Return the aggregate of the join of windows of both lengths in periods; None without a result.

        Raises
        ------
        ValueError
            When the lengths differ by more than g.
        """
        if abs(one - two) > self._g:
            raise ValueError(f"{one} and {two} differ by more than {self._g}")
        short, long, sign = min(one, two), max(one, two), 1 if one <= two else -1
        aggregate: int | None = None
        vectors = [(vector, -self._g) for vector in self._whole(self.t + self._b - short, self.t + self._b)]
        for offset in range(self._b - long + 1, self._b - short + 1):
            vectors += [(vector, self._b - short - offset + 1) for vector in self._whole(self.t + offset - 1, self.t + offset)]
        for vector, least in vectors:
            for value in (value for d, value in vector.items() if sign * d >= least):
                aggregate = value if aggregate is None else self._merge(aggregate, value)
        return aggregate

    def _whole(self, after: int, through: int) -> Iterator[Vector]:
        """The vectors that make up the expiration epochs after one up to another."""
        raise NotImplementedError


class BasicIntervalJoin(_JoinSynopsis):
    """A vector for each of the b expiration epochs to come."""

    def __init__(self, periods: int, difference: int, merge: Merge) -> None:
        super().__init__(periods, difference, merge)
        self.vectors: defaultdict[int, Vector] = defaultdict(dict)

    def update(self, results: Iterable[Result]) -> None:
        """End an epoch with these results."""
        self.t += 1
        for epoch, d, value in map(self._entry, results):
            vector = self.vectors[epoch]
            vector[d] = self._merge(vector[d], value) if d in vector else value
        for epoch in [stored for stored in self.vectors if stored <= self.t]:
            del self.vectors[epoch]

    def _whole(self, after: int, through: int) -> Iterator[Vector]:
        yield from (self.vectors[epoch] for epoch in range(after + 1, through + 1) if epoch in self.vectors)


class IntervalJoin(_JoinSynopsis):
    """A vector for each interval of 1, 2, 4, .. b expiration epochs, aligned to multiples of their length."""

    def __init__(self, periods: int, difference: int, merge: Merge) -> None:
        super().__init__(periods, difference, merge)
        self._lengths = [1 << level for level in range(periods.bit_length())]
        self._parts: defaultdict[tuple[int, int], Vector] = defaultdict(dict)

    def update(self, results: Iterable[Result]) -> None:
        """End an epoch with these results: each changes an interval of every length."""
        self.t += 1
        for epoch, d, value in map(self._entry, results):
            for length in self._lengths:
                vector = self._parts[length, (epoch - 1) // length * length]
                vector[d] = self._merge(vector[d], value) if d in vector else value
        for length, start in [part for part in self._parts if part[1] < self.t]:
            del self._parts[length, start]

    def _whole(self, after: int, through: int) -> Iterator[Vector]:
        while after < through:
            length = max(candidate for candidate in self._lengths if after % candidate == 0 and after + candidate <= through)
            yield self._parts.get((length, after), {})
            after += length


class RunningJoin(_JoinSynopsis):
    """Of b + 1 expiration epochs the vector of all results that expire up to it; for counts and sums."""

    def __init__(self, periods: int, difference: int) -> None:
        super().__init__(periods, difference, int.__add__)
        self.running: list[Vector] = [{} for _ in range(periods + 1)]

    def update(self, results: Iterable[Result]) -> None:
        """End an epoch with these results; results that are already dead never enter."""
        self.t += 1
        self.running = [dict(vector) for vector in (*self.running[1:], self.running[-1])]
        for epoch, d, value in map(self._entry, results):
            for position in range(epoch - self.t if epoch > self.t else self._b + 1, self._b + 1):
                self.running[position][d] = self.running[position].get(d, 0) + value

    def _whole(self, after: int, through: int) -> Iterator[Vector]:
        before, last = self.running[after - self.t], self.running[through - self.t]
        yield {d: last.get(d, 0) - before.get(d, 0) for d in {*before, *last}}
