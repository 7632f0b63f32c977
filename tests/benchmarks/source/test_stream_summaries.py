"""Summaries of streams in the experiments: the sheet's vectors P2 and P4 to P8."""

from __future__ import annotations

import pytest

from benchmarks.source.stream_summaries import (
    CountSketch,
    Granularities,
    Hash,
    break_even,
    drift,
    found_by_pyramid,
    hits_within,
    outputs_per_row,
    zones,
)

PLACES, SIGNS = [(1, 0), (3, 1), (5, 2)], [(2, 1), (4, 3), (7, 5)]
HASHES = tuple((Hash(*bucket, 13), Hash(*sign, 13)) for bucket, sign in zip(PLACES, SIGNS, strict=True))


def sketch(values: list[int]) -> CountSketch:
    """Return the sketch of values, with the vector's hashes."""
    filled = CountSketch.empty(4, HASHES)
    for value in values:
        filled.summarize(value)
    return filled


def test_levels_collapse() -> None:
    """Vector P2: the ticks of each level; the older ticks have left."""
    expected = {
        2: [[[1], [2]], [[0]], []],
        5: [[[4], [5]], [[0, 1], [2, 3]], []],
        6: [[[5], [6]], [[2, 3], [4]], [[0, 1]]],
        8: [[[7], [8]], [[4, 5], [6]], [[0, 1, 2, 3]]],
        13: [[[12], [13]], [[8, 9], [10, 11]], [[0, 1, 2, 3], [4, 5, 6, 7]]],
        14: [[[13], [14]], [[10, 11], [12]], [[4, 5, 6, 7], [8, 9]]],
    }
    levels = Granularities(2, 3)
    for tick in range(15):
        levels.add(tick)
        if tick in expected:
            assert levels.levels == expected[tick]


def test_a_count_sketch_is_linear_and_errs_on_both_sides() -> None:
    """Vector P4: counters, estimates, sums; a value that is there may be estimated as absent."""
    left, right = sketch([5, 5, 5, 9, 3, 5, 9]), sketch([5, 2, 2, 9, 1])
    both = left.plus(right)
    assert left.counters == ([0, -2, 0, -1], [0, 0, 3, 4], [-1, -4, 0, 0])
    assert right.counters == ([0, -1, -2, 0], [-1, 0, 1, -1], [1, -1, 0, 1])
    assert [left.estimate(value) for value in (1, 2, 3, 5, 9)] == [0, -1, 1, 4, 1]
    assert [right.estimate(value) for value in (1, 2, 3, 5, 9)] == [1, 1, 1, 1, -1]
    assert [both.estimate(value) for value in (1, 2, 3, 5, 9)] == [1, 0, 1, 3, 0]
    assert both.counters == sketch([5, 5, 5, 9, 3, 5, 9, 5, 2, 2, 9, 1]).counters
    assert both.plus(left, -1) == right
    assert (left.inner(left), right.inner(right), left.inner(right)) == (17, 3, 2)
    assert left.variance == pytest.approx(2.6875)
    with pytest.raises(ValueError, match="other hashes"):
        left.plus(CountSketch.seeded(3, 4, 1))


def test_zones_follow_the_data() -> None:
    """Vector P5: a zone ends where behaviour changes, or where it is full."""
    chunks = ["aaab", "aaba", "abbb", "bbab", "bbba", "bbbb"]
    assert zones(chunks, 0.6, 3) == [[0, 1], [2, 3, 4], [5]]
    assert [drift("aaab", chunks[1]), drift("abbb", chunks[3]), drift("abbbbbabbbba", chunks[5])] == [1, 1, 0.75]


def test_a_pyramid_pays_for_many_zones() -> None:
    """Vector P6: sums that are looked at until each zone is found."""
    assert [*found_by_pyramid([0, 3, 0, 0, 0, 0, 1, 0])] == [(1, 7), (6, 11), (-1, 11)]
    assert [*found_by_pyramid([0] * 8)] == [(-1, 1)]
    assert [*found_by_pyramid([int(zone in (10, 51)) for zone in range(64)])][-1] == (-1, 23)


def test_when_guiding_pays() -> None:
    """Vectors P7 and P8: results of each row by the time between two, and hits of the zones that are read first."""
    guided, plain = (4, 2), (1, 5)
    outputs = [(outputs_per_row(gap, *guided), outputs_per_row(gap, *plain)) for gap in (5, 6, 50, 100)]
    assert outputs == [(0.5, 0.8), (1.0, 1.0), (23.0, 9.8), (48.0, 19.8)]
    assert break_even(guided, plain) == 6
    arrived = [(10, hits) for hits in (0, 5, 1, 0)]
    best = sorted(arrived, key=lambda zone: -zone[1])
    assert [(hits_within(best, rows), hits_within(arrived, rows)) for rows in (10, 20)] == [(5, 0), (6, 5)]
