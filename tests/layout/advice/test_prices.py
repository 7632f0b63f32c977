"""Prices: the cost of work with its uncertainty; and how runs are distributed over tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.layout.advice import LayoutPrices, Lifetimes, busiest_task, shares
from warehouse.layout.tasks import distribute, key_ranges, loads


def test_an_estimate_has_the_variance_of_its_parts() -> None:
    """3 of price 2 ± 0.5 and 4 of price 1 ± 0.1, independent: 10 ± sqrt(2.25 + 0.16)."""
    estimate = LayoutPrices(("a", "b"), (2.0, 1.0), ((0.25, 0.0), (0.0, 0.01))).cost((3.0, 4.0))
    assert estimate.value == pytest.approx(10.0)
    assert estimate.high - estimate.value == pytest.approx(1.645 * (2.25 + 0.16) ** 0.5)
    assert estimate.low == pytest.approx(2 * estimate.value - estimate.high)


@given(st.lists(st.integers(1, 6_000_000), min_size=1, max_size=30), st.integers(1, 8))
def test_the_busiest_worker_has_its_share_and_whole_tasks(sizes: list[int], workers: int) -> None:
    """Never less than a fair share; as much as the fullest task that is not cut, or the ranges of its last round."""
    busiest = busiest_task(sizes, workers)
    tasks = distribute(sizes, workers)
    ranges = key_ranges(sizes, tasks, workers)
    assert busiest >= sum(sizes) / workers - 1e-6 or not ranges
    assert busiest >= (sum(sizes) / ranges if ranges else max(loads(sizes, tasks))) - 1e-6
    assert busiest <= sum(sizes)


@given(st.sampled_from(("uniform", "exponential", "constant")), st.floats(0.1, 60), st.integers(1, 50))
def test_shares_of_lifetimes_are_a_distribution(kind: str, size: float, periods: int) -> None:
    """They are not negative and add up to one."""
    distribution = shares(Lifetimes(kind, size), periods)  # type: ignore[arg-type]
    assert len(distribution) == periods
    assert min(distribution) >= 0
    assert sum(distribution) == pytest.approx(1.0)


@pytest.mark.parametrize(("kind", "size", "mean"), [("uniform", 36, 18.25), ("constant", 12, 12.0), ("exponential", 3.6, 4.1)])
def test_rows_are_live_for_as_long_as_they_live(kind: str, size: float, mean: float) -> None:
    """The mean distance of inserted rows: half a slot more than their lifetime, since the shortest-lived are not inserted."""
    average = sum(distance * share for distance, share in enumerate(shares(Lifetimes(kind, size), 36), start=1))  # type: ignore[arg-type]
    assert average == pytest.approx(mean, rel=0.02)
