from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import inf

import numpy as np
import pytest

from tests.views.source_shares import rule_share, short_share
from warehouse.views.costs.losses import is_lost, lagged_share, lost_share

TABLE = [
    ((60, 60), 10, 0.1667, 0.0833, 0.1667),
    ((60, 30), 10, None, 0.1111, 0.222),
    ((60, 60, 60), 10, 0.1667, 0.1574, 0.305),
    ((60,) * 4, 10, 0.1667, 0.2234, 0.421),
    ((100,) * 4, 10, 0.1000, 0.1402, 0.271),
]


@pytest.mark.parametrize(("lifetimes", "interval", "rule", "lost", "short"), TABLE)
def test_table_of_the_sheet(lifetimes: tuple[int, ...], interval: int, rule: float | None, lost: float, short: float) -> None:
    """Rule, exact share and share of short lifetimes are those of section 7."""
    assert float(lost_share(lifetimes, interval)) == pytest.approx(lost, abs=0.00006)
    assert float(short_share(lifetimes, interval)) == pytest.approx(short, abs=0.0006)
    if rule is not None:
        assert float(rule_share(lifetimes, interval)) == pytest.approx(rule, abs=0.00006)


def test_two_inputs() -> None:
    """Two inputs lose Δ/(T_1 + T_2), which is Δ/(2T) and half of the rule when they are alike."""
    assert lost_share((60, 60), 10) == Fraction(1, 12) == rule_share((60, 60), 10) / 2
    assert short_share((60, 60), 10) == rule_share((60, 60), 10)
    assert lost_share((7, 19), 4) == Fraction(4, 26)


def test_small_intervals() -> None:
    """For small Δ and n alike inputs the share is nearly (n-1)Δ/(2T)."""
    for n in (2, 3, 4, 6):
        assert float(lost_share((10**6,) * n, 1)) == pytest.approx((n - 1) / (2 * 10**6), rel=1e-5)


def test_the_rule_with_unlike_lifetimes() -> None:
    """Single Δ/T are weighted by rates, and count the same without; an input that never expires loses nothing by itself."""
    assert rule_share((60, 30), 10) == Fraction(1, 4)
    assert rule_share((60, 30), 10, rates=(3, 1)) == Fraction(5, 24)
    assert rule_share((60, 30), 10, rates=(0, 0)) == Fraction(1, 4)
    assert rule_share((60, inf), 10) == Fraction(1, 12)
    assert rule_share((5,), 10) == 1
    with pytest.raises(ValueError, match="zip"):
        rule_share((60, 30), 10, rates=(3, 1, 1))


def test_what_loses_nothing() -> None:
    """One window of at least Δ and inputs that never expire lose nothing, and do not change what others lose."""
    assert lost_share((60,), 60) == short_share((60,), 60) == 0
    assert lost_share((inf, inf), 10) == short_share((inf,), 10) == 0
    assert lost_share((60, inf, 30), 10) == lost_share((60, 30), 10)
    assert short_share((60, inf, 30), 10) == short_share((60, 30), 10)


def test_intervals_beyond_the_shortest_window() -> None:
    """A lone window below Δ loses 1 - T/Δ; two of 30 and 60 give lives of 20 on average, 1/30 of 600."""
    assert lost_share((30,), 40) == Fraction(1, 4)
    assert short_share((30, 60), 31) == 1
    shares = [lost_share((30, 60), interval) for interval in (10, 29, 30, 31, 60, 600)]
    assert shares == sorted(shares)
    assert shares[-1] == Fraction(29, 30)


@pytest.mark.parametrize(
    ("lifetimes", "interval"), [((), 10), ((0, 10), 10), ((-1,), 10), ((10,), 0), ((float("nan"), 3), 1)]
)
def test_wrong_numbers(lifetimes: tuple[float, ...], interval: float) -> None:
    """No lifetimes, or a lifetime or interval that is not above 0, is an error."""
    for share in (lost_share, short_share, rule_share):
        with pytest.raises(ValueError, match="give lifetimes and an interval above 0"):
            share(lifetimes, interval)


@pytest.mark.parametrize("lifetimes", [(1,), (4,), (5, 5), (6, 3), (7, 2, 4), (3, 3, 5)])
@pytest.mark.parametrize("interval", [1, 2, 3, 5, 8])
def test_every_result_on_a_clock_of_ticks(lifetimes: tuple[int, ...], interval: int) -> None:
    """With one row of each input in each tick, the results that start in one Δ and are lost are exactly the share.

    T = 3, T = 2, Δ = 4: the row of tick 1 of the first meets rows of the second of ticks 0 to 3.

        tick   0   1   2   3   4
        S1         |-----------)
        S2     |-------)                lives [1, 2): lost
        S2                 |-------)    lives [3, 4): lost, no evaluation before 4
    """
    results = [
        (max(starts), end)
        for starts in product(range(-max(lifetimes), interval), repeat=len(lifetimes))
        if (end := min(start + lifetime for start, lifetime in zip(starts, lifetimes, strict=True))) > max(starts) >= 0
    ]
    lost = [is_lost(gen, end, 0, interval) for gen, end in results]
    assert lost_share(lifetimes, interval, tick=1) == Fraction(sum(lost), len(results))
    assert lost_share(lifetimes, interval, tick=1) <= lost_share(lifetimes, interval)


@pytest.mark.parametrize("lifetimes", [(60, 60), (60, 30), (60, 60, 60), (60,) * 4, (100,) * 4, (20, 50, 35)])
@pytest.mark.parametrize("interval", [10, 25])
def test_simulated_results(lifetimes: tuple[int, ...], interval: int) -> None:
    """Rows of random arrival around a row of the first input: lost and short results are as many as predicted."""
    rng = np.random.default_rng(20130101)
    length = np.array(lifetimes)
    starts = rng.uniform(-length, lifetimes[0], size=(600_000, len(lifetimes)))
    starts[:, 0] = 0
    gen, exp = starts.max(axis=1), (starts + length).min(axis=1)
    phase = rng.uniform(0, interval, size=len(gen))
    result = exp > gen
    lost = np.ceil((gen - phase) / interval) * interval + phase >= exp
    short = exp - gen < interval
    for measured, predicted in ((lost, lost_share(lifetimes, interval)), (short, short_share(lifetimes, interval))):
        share, count = float(predicted), int(result.sum())
        error = (share * (1 - share) / count) ** 0.5
        assert float(measured[result].mean()) == pytest.approx(share, abs=4 * error + 1e-12)


@pytest.mark.parametrize(("lag", "expected"), [(0, 0), (50, 0), (52, 0.2), (55, 0.5), (58, 0.8), (60, 1), (70, 1)])
def test_lagging_stream(lag: int, expected: float) -> None:
    """The share lost for T = 60 and Δ = 10 rises from 0 at a lag of 50 to 1 at 60 (section 7)."""
    assert float(lagged_share(60, lag, 10)) == expected


@pytest.mark.parametrize("lag", [52, 55, 58])
def test_simulated_lag(lag: int) -> None:
    """A row that meets only rows of age `lag` gives results of T - lag, lost as often as no evaluation falls into them."""
    phases = [Fraction(number, 1000) * 10 for number in range(1000)]
    lost = [is_lost(0, 1000 * (60 - lag), int(1000 * phase), 10_000) for phase in phases]
    assert Fraction(sum(lost), len(lost)) == pytest.approx(lagged_share(60, lag, 10), abs=0.001)


def test_lost_exactly_when_no_evaluation_sees_it() -> None:
    """For instants of any sign, every anchor and every interval, a result is lost iff no grid point lies in [gen, exp)."""
    for interval, anchor, gen in product(range(1, 7), range(-7, 8), range(-9, 10)):
        for exp in range(gen + 1, gen + 9):
            seen = any((instant - anchor) % interval == 0 for instant in range(gen, exp))
            assert is_lost(gen, exp, anchor, interval) is not seen


def test_large_instants_are_exact() -> None:
    """One microsecond decides, also where floats have no microseconds."""
    hour, grid_point = 3_600_000_000, 2**62 // 3_600_000_000 * 3_600_000_000
    assert is_lost(grid_point - 5, grid_point, 0, hour)
    assert not is_lost(grid_point - 5, grid_point + 1, 0, hour)
    assert not is_lost(-grid_point, -grid_point + 1, 0, hour)
    assert is_lost(-grid_point + 1, -grid_point + hour, 0, hour)


def test_a_short_life_is_needed_and_not_enough() -> None:
    """No result that lives Δ is lost, and one of a microsecond may be seen."""
    assert not any(is_lost(gen, gen + 10, 0, 10) for gen in range(-30, 30))
    assert not is_lost(20, 21, 0, 10)
    assert is_lost(20, 20, 0, 10)
