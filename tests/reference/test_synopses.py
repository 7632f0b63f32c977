from __future__ import annotations

from collections import Counter
from math import log2
from operator import add
from typing import TypeAlias

import pytest

from tests.reference.engine.synopses import BasicIntervalSynopsis, IntervalSynopsis, RunningSynopsis

from .generators import seeds

Parts: TypeAlias = list[IntervalSynopsis | BasicIntervalSynopsis]


@pytest.mark.parametrize("periods", [1, 2, 4, 8, 16, 32])
def test_how_much_each_stores(periods: int) -> None:
    """Running keeps b + 1 values, interval 2b - 1, basic interval b, at every period once they are full."""
    running = RunningSynopsis(periods)
    interval, basic = IntervalSynopsis(periods, add), BasicIntervalSynopsis(periods, add)
    for period in range(1, 5 * periods + 1):
        running.add(1)
        interval.add(1)
        basic.add(1)
        assert running.stored == periods + 1
        if period >= periods:
            assert basic.stored == periods
            assert interval.stored == 2 * periods - 1


@pytest.mark.parametrize(("periods", "most"), [(4, 3), (8, 4), (16, 6), (32, 8)])
def test_how_many_intervals_cover_a_window(periods: int, most: int) -> None:
    """A window that is not aligned needs up to 3, 4, 6 and 8 intervals, at most 2 log2(b)."""
    synopsis, pieces = IntervalSynopsis(periods, add), []
    for _ in range(4 * periods):
        synopsis.add(1)
        pieces += [len(synopsis.cover(n)) for n in range(1, periods + 1)]
    assert max(pieces) == most <= 2 * log2(periods)


def test_probes_are_the_aggregates_of_the_window() -> None:
    """Sums from all three, maxima and frequency counts from the intervals, are those of the last n periods."""
    for random in seeds(30):
        periods = random.choice([1, 2, 4, 8])
        parts = [[random.randint(1, 9) for _ in range(random.randint(1, 4))] for _ in range(30)]
        running = RunningSynopsis(periods)
        sums: Parts = [IntervalSynopsis(periods, add), BasicIntervalSynopsis(periods, add)]
        maxima: Parts = [IntervalSynopsis(periods, max), BasicIntervalSynopsis(periods, max)]
        frequencies = IntervalSynopsis(periods, add)
        for ended, part in enumerate(parts, 1):
            running.add(sum(part))
            for synopsis in sums:
                synopsis.add(sum(part))
            for synopsis in maxima:
                synopsis.add(max(part))
            frequencies.add(Counter(part))
            for n in range(1, min(periods, ended) + 1):
                window = [value for period in parts[ended - n : ended] for value in period]
                assert [running.probe(n), *(synopsis.probe(n) for synopsis in sums)] == [sum(window)] * 3
                assert [synopsis.probe(n) for synopsis in maxima] == [max(window)] * 2
                assert frequencies.probe(n) == Counter(window)


def test_before_the_first_period() -> None:
    """Nothing has been aggregated yet."""
    assert RunningSynopsis(4).probe(4) == 0
    assert IntervalSynopsis(4, add).probe(4) is None
    assert BasicIntervalSynopsis(4, add).probe(4) is None


def test_a_window_older_than_the_stream() -> None:
    """Asking for more periods than have ended gives all of them."""
    synopses = RunningSynopsis(4), IntervalSynopsis(4, add), BasicIntervalSynopsis(4, add)
    for synopsis in synopses:
        synopsis.add(3)
        synopsis.add(4)
    assert [synopsis.probe(4) for synopsis in synopses] == [7, 7, 7]


@pytest.mark.parametrize("periods", [0, 3, 12])
def test_intervals_double(periods: int) -> None:
    """The longest interval is a power of 2 of periods."""
    with pytest.raises(ValueError, match="not a power of 2"):
        IntervalSynopsis(periods, add)
