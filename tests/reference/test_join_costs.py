"""Counted comparisons against the cost model (window-joins sheet, section 8), and shares of lost results (section 7)."""

from __future__ import annotations

from math import prod
from random import Random

import pytest

from tests.reference.engine.changes import arrivals
from tests.reference.engine.joins import eager_join
from tests.reference.engine.periodic import lost
from tests.reference.engine.tuples import Row, combine

STREAMS = ((4, 25, 20), (1, 25, 12), (1, 50, 8), (2, 25, 4))  # rows per unit of time, window, distinct values
WARM, LONG = 60, 160  # units of time
FINE = 1000  # ticks per unit, so that few rows share one


def predicted(order: tuple[int, ...], buckets: int = 1) -> float:
    """Attribute comparisons per unit of time of Algorithm 2, written out from section 8."""
    total = 0.0
    for i in order:
        partial, distinct = float(STREAMS[i][0]), STREAMS[i][2]
        for q in order:
            if q == i:
                continue
            rate, window, values = STREAMS[q]
            total += partial * rate * window / buckets
            partial *= rate * window / max(distinct, values)
            distinct = min(distinct, values)
    return total


def simulated(order: tuple[int, ...], buckets: int, seed: int) -> float:
    """Comparisons per unit of time, counted after the windows are full; every value comes equally often."""
    random = Random(seed)  # noqa: S311 - a simulation
    inputs = []
    for i, (rate, window, values) in enumerate(STREAMS):
        count = rate * (WARM + LONG)
        drawn = [value for _ in range(0, count, values) for value in random.sample(range(values), values)]
        instants = sorted(random.choices(range((WARM + LONG) * FINE), k=count))
        inputs.append([Row((i, n), (drawn[n],), ts, ts + window * FINE) for n, ts in enumerate(instants)])
    warm = [arrivals(row for row in rows if row.ts < WARM * FINE) for rows in inputs]
    whole = [arrivals(rows) for rows in inputs]
    probed = [eager_join(changes, order=order, buckets=buckets).probed for changes in (warm, whole)]
    return (probed[1] - probed[0]) / LONG


@pytest.mark.parametrize(("order", "buckets"), [((0, 1, 2, 3), 1), ((3, 2, 1, 0), 1), ((1, 0, 2, 3), 4)])
def test_counted_comparisons_match_the_model(order: tuple[int, ...], buckets: int) -> None:
    """Nested loops and hash joins look at as many rows as the model says, within sampling noise."""
    assert simulated(order, buckets, 1) == pytest.approx(predicted(order, buckets), rel=0.08)


def share_lost(lengths: tuple[int, ...], interval: int, draws: int, seed: int) -> float:
    """The share of results that no re-evaluation sees, of parts at uniform instants that lived together."""
    random = Random(seed)  # noqa: S311 - a simulation
    results = []
    for _ in range(draws):
        base = random.randrange(interval)
        instants = [base, *(base + random.randrange(-max(lengths), max(lengths)) for _ in lengths[1:])]
        parts = [Row(i, ("k",), ts, ts + length) for i, (ts, length) in enumerate(zip(instants, lengths, strict=True))]
        results.append(combine(parts))
    alive = [result for result in results if result.ts < result.exp]
    return sum(lost(result, interval) for result in alive) / len(alive)


def exact_share(lengths: tuple[int, ...], interval: int) -> float:
    """The formula of section 7."""
    partial = sum(prod(length for j, length in enumerate(lengths) if j != i) for i in range(len(lengths)))
    return 1 - (prod(lengths) - prod(length - interval for length in lengths)) / (interval * partial)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [((60, 60), 0.0833), ((60, 30), 0.1111), ((60, 60, 60), 0.1574), ((60,) * 4, 0.2234), ((100,) * 4, 0.1402)],
)
def test_share_of_lost_results(lengths: tuple[int, ...], expected: float) -> None:
    """The share lost at an interval of 10 is that of the table, by the formula and by simulation."""
    fine = tuple(length * FINE for length in lengths)
    assert exact_share(lengths, 10) == pytest.approx(expected, abs=0.0001)
    assert share_lost(fine, 10 * FINE, 20_000, 1) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(("extra", "expected"), [(0, 9 / 119), (1, 9 / 121)])
def test_share_lost_on_an_integer_clock(extra: int, expected: float) -> None:
    """With windows of 60 and an interval of 10, all pairs of integer instants give 9/119 exclusive and 9/121 inclusive."""
    length, interval = 60 + extra, 10
    results = [
        Row("pair", (), max(left_ts, right_ts), min(left_ts, right_ts) + length)
        for left_ts in range(100, 100 + interval)
        for right_ts in range(left_ts - length, left_ts + length)
    ]
    alive = [row for row in results if row.ts < row.exp]
    assert sum(lost(row, interval) for row in alive) / len(alive) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("lag", "expected"), [(50, 0), (52, 0.2), (55, 0.5), (58, 0.8)])
def test_share_lost_behind_a_lag(lag: int, expected: float) -> None:
    """Results of a stream that trails the other by nearly the window are mostly lost: 1 - (T - lag)/interval of them."""
    results = [Row("pair", (), ts, ts - lag + 60) for ts in range(100, 200)]
    assert sum(lost(row, 10) for row in results) / len(results) == pytest.approx(expected)
