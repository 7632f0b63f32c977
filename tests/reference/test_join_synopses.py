"""Synopses of a join of two windows answer joins of other lengths; shared-aggregates sheet, section 4."""

from __future__ import annotations

from itertools import product
from math import ceil
from operator import add

import pytest

from tests.reference.engine.join_synopses import BasicIntervalJoin, IntervalJoin, RunningJoin

from .generators import seeds

Made = list[tuple[int, int, int]]


def made_in(left: list[float], right: list[float], periods: int) -> dict[int, Made]:
    """Return the results of a join by the epoch in which they were made; each has the value 1."""
    results: dict[int, Made] = {}
    for left_time, right_time in product(left, right):
        if max(left_time, right_time) < min(left_time, right_time) + periods:
            results.setdefault(ceil(max(left_time, right_time)), []).append((ceil(left_time), ceil(right_time), 1))
    return results


def inside(made: dict[int, Made], t: int, periods: int, lengths: tuple[int, int]) -> list[int]:
    """Return the values of a join of windows of both lengths, at the end of epoch t."""
    results = [result for epoch, results in made.items() if epoch <= t for result in results]
    left_length, right_length = lengths
    return [value for k1, k2, value in results if t - left_length < k1 and t - right_length < k2 and min(k1, k2) + periods > t]


def test_the_vector_of_the_sheet() -> None:
    """Section 4.2: counts by expiration and difference, answers for all lengths, and the contents of each synopsis."""
    results = made_in([0.5, 1.5, 2.5, 3.4], [0.7, 2.2], 3)
    basic, interval, running = BasicIntervalJoin(3, 2, add), IntervalJoin(3, 2, add), RunningJoin(3, 2)
    answers, stored = {}, {}
    for t in range(1, 5):
        for synopsis in (basic, interval, running):
            synopsis.update(results.get(t, []))
        lengths = [*product((1, 2, 3), repeat=2)]
        answers[t] = [[synopsis.probe(*pair) or 0 for pair in lengths] for synopsis in (basic, interval, running)]
        stored[t] = {epoch: dict(sorted(vector.items())) for epoch, vector in sorted(basic.vectors.items())}
    assert answers[3] == [[1, 1, 2, 2, 2, 4, 3, 3, 6]] * 3
    assert answers[4] == [[0, 1, 1, 0, 2, 2, 0, 3, 3]] * 3
    assert stored[3] == {4: {-2: 1, 0: 1, 1: 1, 2: 1}, 5: {-1: 1}, 6: {0: 1}}
    assert stored[4] == {5: {-1: 1}, 6: {0: 1, 1: 1}}
    assert [sum(vector.values()) for vector in running.running] == [4, 5, 7, 7]


def test_lookups_equal_brute_force() -> None:
    """All lengths that differ by at most g, at every epoch: counts from all three, maxima from the intervals."""
    for random in seeds(40):
        periods = random.choice([2, 3, 4, 8])
        most = random.randrange(periods)
        left, right = ([random.uniform(0.01, 20) for _ in range(random.randrange(12))] for _ in range(2))
        counted = made_in(left, right, periods)
        ranked = {t: [(first, second, random.randrange(100)) for first, second, _ in results] for t, results in counted.items()}
        counts = [BasicIntervalJoin(periods, most, add), IntervalJoin(periods, most, add), RunningJoin(periods, most)]
        maxima = [BasicIntervalJoin(periods, most, max), IntervalJoin(periods, most, max)]
        for t in range(1, 24):
            for synopsis in counts:
                synopsis.update(counted.get(t, []))
            for synopsis in maxima:
                synopsis.update(ranked.get(t, []))
            for lengths in product(range(1, periods + 1), repeat=2):
                if abs(lengths[0] - lengths[1]) <= most:
                    own = inside(ranked, t, periods, lengths)
                    assert [synopsis.probe(*lengths) or 0 for synopsis in counts] == [len(own)] * 3
                    assert [synopsis.probe(*lengths) for synopsis in maxima] == [max(own, default=None)] * 2


def test_three_values_are_not_enough() -> None:
    """Claim SS3 of the source fails for lengths that differ by two: with g = 1 such a probe is refused."""
    with pytest.raises(ValueError, match="differ by more than 1"):
        BasicIntervalJoin(3, 1, add).probe(1, 3)
