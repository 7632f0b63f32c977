"""Prices are found again in measurements that were made with them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from warehouse.advice.fitting import fit_prices
from warehouse.layout.advice.prices import assumed_prices

NAMES = ("fixed", "file", "row")
PRICES = (0.5, 0.02, 2e-6)
PRIOR = assumed_prices(NAMES, (0.2, 0.01, 1e-6))


def works(count: int, seed: int = 0) -> list[tuple[float, ...]]:
    """Return updates that differ in files and rows."""
    rng = random.Random(seed)  # noqa: S311 - measurements
    return [(1.0, float(rng.randint(1, 60)), float(rng.randint(10_000, 400_000))) for _ in range(count)]


def seconds(lines: list[tuple[float, ...]], noise: float = 0.0, seed: int = 1) -> list[float]:
    """Return the seconds that the works take at the true prices."""
    rng = random.Random(seed)  # noqa: S311 - measurements
    exact = [sum(price * units for price, units in zip(PRICES, line, strict=True)) for line in lines]
    return [duration * (1 + rng.gauss(0, noise)) for duration in exact]


def test_prices_are_found_again() -> None:
    """Forty measurements with five percent of noise give each price within a fifth, whatever was brought along."""
    lines = works(40)
    prices = fit_prices(PRIOR, lines, seconds(lines, 0.05))
    assert prices.samples == 40
    assert prices.values == pytest.approx(PRICES, rel=0.2)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Of forty fits, the 90 percent interval of some work's cost holds the true cost in most."""
    covering = 0
    for seed in range(40):
        lines = works(30, seed)
        estimate = fit_prices(assumed_prices(NAMES, PRICES), lines, seconds(lines, 0.1, seed + 1000)).cost((1.0, 30.0, 150_000.0))
        covering += estimate.low <= 0.5 + 0.6 + 0.3 <= estimate.high
    assert 28 <= covering <= 40


def test_a_few_slow_updates_do_not_count() -> None:
    """Three of forty took ten times as long: the prices are the prices of the other updates."""
    lines = works(40)
    durations = seconds(lines, 0.02)
    for number in (3, 17, 30):
        durations[number] *= 10
    assert fit_prices(PRIOR, lines, durations).values == pytest.approx(PRICES, rel=0.3)


def test_measurements_all_alike_do_not_blame_the_layout() -> None:
    """Every update did the same and took ten seconds, as after a cold start: that is the same for every layout."""
    lines = [(1.0, 10.0, 100_000.0)] * 20
    prices = fit_prices(PRIOR, lines, [10.0] * 20)
    assert prices.cost(lines[0]).value == pytest.approx(10.0, rel=0.02)
    assert prices.values[0] > 9
    assert prices.values[1:] == pytest.approx(PRIOR.values[1:], rel=0.3)
    other = prices.cost((1.0, 60.0, 100_000.0))
    assert other.high - other.low > prices.cost(lines[0]).high - prices.cost(lines[0]).low


def test_a_storage_that_is_three_times_as_slow_is_told_by_updates_that_differ() -> None:
    """With work of many sizes the factor is found, and prices that no measurement tells apart keep their proportion."""
    lines = [(1.0, 4.0 * (1 + number % 3), 60_000.0 * (1 + number % 3)) for number in range(30)]
    prices = fit_prices(PRIOR, lines, [0.2 + 3 * (0.01 * files + 1e-6 * rows) for _, files, rows in lines])
    assert prices.values[1:] == pytest.approx([3 * value for value in PRIOR.values[1:]], rel=0.15)


def test_no_price_is_negative() -> None:
    """Where files come with less time, their price is held at nearly nothing."""
    rng = np.random.default_rng(5)
    lines = works(40)
    durations = [max(0.01, 1.5 - 0.02 * line[1] + 0.01 * rng.standard_normal()) for line in lines]
    prices = fit_prices(PRIOR, lines, durations)
    assert min(prices.values) >= 0
    assert prices.values[1] < PRIOR.values[1] / 1000
