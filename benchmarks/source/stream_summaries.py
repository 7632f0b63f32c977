"""Summaries of a stream as the source has them: Count-Sketches, zones that follow the data, granularities, pyramids.

The warehouse does not use them: its zones are files, its summaries exact tables of keys. They are here for the experiments beside
exact tables (promising-tuples sheet, 3 to 6; vectors P2 and P4 to P8).
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from statistics import median, pvariance
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["CountSketch", "Granularities", "break_even", "drift", "found_by_pyramid", "hits_within", "outputs_per_row", "zones"]

_PRIME = 2_147_483_647


@dataclass(frozen=True)
class Hash:
    """``(a x + c) mod prime``: modulo the counters it is a place, and its parity is a sign."""

    a: int
    c: int
    prime: int = _PRIME

    def __call__(self, value: int) -> int:
        """Return the hash of a value."""
        return (self.a * value + self.c) % self.prime


@dataclass(frozen=True)
class CountSketch:
    """A Count-Sketch (3.2): rows of counters, each with a hash for the bucket and a hash for the sign."""

    buckets: int
    hashes: tuple[tuple[Hash, Hash], ...]
    counters: tuple[list[int], ...]

    @classmethod
    def empty(cls, buckets: int, hashes: tuple[tuple[Hash, Hash], ...]) -> CountSketch:
        """Return a sketch of nothing."""
        return cls(buckets, hashes, tuple([0] * buckets for _ in hashes))

    @classmethod
    def seeded(cls, rows: int, buckets: int, seed: int) -> CountSketch:
        """Return a sketch of nothing, with hashes that are drawn."""
        random = Random(seed)  # noqa: S311 - hashes of an experiment
        drawn = [Hash(random.randrange(1, _PRIME), random.randrange(_PRIME)) for _ in range(2 * rows)]
        return cls.empty(buckets, tuple(zip(drawn[::2], drawn[1::2], strict=True)))

    def summarize(self, value: int, count: int = 1) -> None:
        """Add a value."""
        for row, (bucket_hash, sign) in zip(self.counters, self.hashes, strict=True):
            row[bucket_hash(value) % self.buckets] += count * _signed(sign, value)

    def estimate(self, value: int) -> float:
        """Return an estimate of the number of times that a value came; it may be too high or too low."""
        estimates = [
            row[bucket_hash(value) % self.buckets] * _signed(sign, value)
            for row, (bucket_hash, sign) in zip(self.counters, self.hashes, strict=True)
        ]
        return median(estimates)

    def plus(self, other: CountSketch, times: int = 1) -> CountSketch:
        """Return the sketch of both, or with -1 of this one without the other."""
        if (self.buckets, self.hashes) != (other.buckets, other.hashes):
            raise ValueError("sketches of other hashes or sizes cannot be added")
        both = zip(self.counters, other.counters, strict=True)
        return CountSketch(self.buckets, self.hashes, tuple([a + times * b for a, b in zip(*rows, strict=True)] for rows in both))

    def inner(self, other: CountSketch) -> float:
        """Return about how many pairs of equal values there are."""
        both = zip(self.counters, other.counters, strict=True)
        return median(sum(a * b for a, b in zip(*rows, strict=True)) for rows in both)

    @property
    def variance(self) -> float:
        """The median of the rows' variances, whose inverse is the source's confidence."""
        return median(pvariance(row) for row in self.counters)


def _signed(sign: Hash, value: int) -> int:
    return 1 if sign(value) % 2 == 0 else -1


def drift(zone: Sequence[str], chunk: Sequence[str]) -> float:
    """Return the confidence in a zone as a newer chunk sees it: 1 less half of how far the shares of values are apart.

    >>> drift("aaabaaba", "abbb")
    0.5
    """
    zone_counts, chunk_counts = Counter(zone), Counter(chunk)
    return 1 - sum(abs(zone_counts[key] / len(zone) - chunk_counts[key] / len(chunk)) for key in zone_counts | chunk_counts) / 2


def zones(chunks: Sequence[Sequence[str]], theta: float, longest: int) -> list[list[int]]:
    """Return the chunks of each zone: a zone begins where the confidence is below theta, or the open zone is full."""
    zone_lists: list[list[int]] = []
    for number, chunk in enumerate(chunks):
        opened = [value for member in zone_lists[-1] for value in chunks[member]] if zone_lists else []
        if not zone_lists or len(zone_lists[-1]) >= longest or drift(opened, chunk) < theta:
            zone_lists.append([])
        zone_lists[-1].append(number)
    return zone_lists


@dataclass
class Granularities:
    """The age classes of a stream, the newest first: ``n`` zones each, one of which is a whole class of the level before."""

    n: int
    depth: int
    levels: list[list[list[int]]] = field(init=False)

    def __post_init__(self) -> None:
        """Begin with nothing."""
        self.levels = [[] for _ in range(self.depth)]

    def add(self, tick: int) -> None:
        """Add a tick in a zone of its own; the zone that no longer fits a level goes to the next, or leaves."""
        self._push(0, [tick])

    def _push(self, level: int, ticks: list[int]) -> None:
        if level == self.depth:
            return
        zones_of_level = self.levels[level]
        if zones_of_level and len(zones_of_level[-1]) < self.n**level:
            zones_of_level[-1].extend(ticks)
            return
        if len(zones_of_level) == self.n:
            self._push(level + 1, zones_of_level.pop(0))
        zones_of_level.append(list(ticks))


def found_by_pyramid(counts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the zones that have a value, best first, with how many sums were looked at before; at the end their number and -1."""
    looks, ready = 1, [(-sum(counts), 0, len(counts))] if sum(counts) > 0 else []
    while ready:
        _, begin, end = heapq.heappop(ready)
        if end - begin == 1:
            yield begin, looks
            continue
        middle = (begin + end) // 2
        for part in ((begin, middle), (middle, end)):
            looks += 1
            if (total := sum(counts[slice(*part)])) > 0:
                heapq.heappush(ready, (-total, *part))
    yield -1, looks


def outputs_per_row(gap: float, insert: float, hit: float) -> float:
    """Return the number of results for each row: the time left between two rows, divided by the time for a result (6)."""
    return (gap - insert) / hit


def break_even(guided: tuple[float, float], plain: tuple[float, float]) -> float:
    """Return the time between rows from which on guiding pays; each way has seconds to insert a row and to reach a result.

    >>> break_even((4, 2), (1, 5))
    6.0
    """
    return (guided[0] * plain[1] - plain[0] * guided[1]) / (plain[1] - guided[1])


def hits_within(order: Sequence[tuple[int, int]], rows: int) -> int:
    """Return the hits in the zones (rows, hits) that are read in this order, up to a number of rows."""
    total_hits = 0
    for size, hits in order:
        rows -= size
        if rows < 0:
            break
        total_hits += hits
    return total_hits
