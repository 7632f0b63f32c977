"""Windows of many slots: one update of several is simulated, and the result agrees with every update where both can be."""

from __future__ import annotations

import pytest

from warehouse.layout import Layout, resolve
from warehouse.layout.advice import DEFAULT_PRICES, Lifetimes, Workload, appended_runs, footprint, shares

P = 300
LIFETIMES = [Lifetimes("uniform", P), Lifetimes("exponential", 12.0), Lifetimes("constant", 130)]


def load(lifetimes: Lifetimes, periods: int = P) -> Workload:
    """Return a workload of 1000 rows an update."""
    return Workload(periods, 1000.0, shares(lifetimes, periods), 1000.0, probes=1.0)


def blocks(rows: int, columns: int, width: int, *, seal: bool) -> Layout:
    """Return a layout of appended runs."""
    return Layout("norebuild", rows, columns, "staggered", "blocks", P, width, seal=seal)


LAYOUTS = [
    (blocks(10, 4, 75, seal=True), 7),
    (blocks(10, 1, 300, seal=True), 7),
    (blocks(15, 8, 38, seal=True), 3),
    (blocks(1, 1, 150, seal=False), 7),
    (blocks(1, 6, 50, seal=False), 7),
    (Layout("norebuild", 4, 4, "round-robin", "round-robin", P, 75, seal=False), 7),
    (Layout("norebuild", 3, 2, "chronological", "chronological", P, 150, seal=False), 7),
]


@pytest.mark.parametrize("lifetimes", LIFETIMES, ids=lambda lifetimes: lifetimes.kind)
@pytest.mark.parametrize(("layout", "stride"), LAYOUTS, ids=str)
def test_some_updates_tell_what_all_do(layout: Layout, stride: int, lifetimes: Lifetimes) -> None:
    """Rows and costs within 5 percent, files within 10."""
    complete, sampled = (footprint(layout, load(lifetimes), stride=step) for step in (1, stride))
    costs = [DEFAULT_PRICES.update.cost(predicted.mean_work.vector()).value for predicted in (complete, sampled)]
    assert len(sampled.updates) <= len(complete.updates)
    assert sampled.files == pytest.approx(complete.files, rel=0.10)
    assert sampled.key_files == pytest.approx(complete.key_files, rel=0.05)
    assert (sampled.rows, sampled.written) == pytest.approx((complete.rows, complete.written), rel=0.05)
    assert costs[1] == pytest.approx(costs[0], rel=0.05)


@pytest.mark.parametrize("lifetimes", LIFETIMES, ids=lambda lifetimes: lifetimes.kind)
def test_very_many_blocks_are_simulated_together(lifetimes: Lifetimes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wider blocks, each of which stands for two, make about the files and rows of these."""
    layout = blocks(10, 60, 5, seal=True)
    complete = footprint(layout, load(lifetimes), stride=1)
    monkeypatch.setattr(appended_runs, "_MAX_BLOCKS", 30)
    grouped = footprint(layout, load(lifetimes), stride=1)
    assert grouped.files == pytest.approx(complete.files, rel=0.33)
    assert (grouped.rows, grouped.written) == pytest.approx((complete.rows, complete.written), rel=0.20)


def test_a_month_of_minutes_is_simulated_in_some_thousand_updates() -> None:
    """A window of 43 200 slots is like a window of 432 slots that are a hundred times as long; files grow with the root of p."""
    month, short = (footprint(resolve(periods=p, label="WK"), load(Lifetimes("uniform", p), p)) for p in (43_200, 432))
    assert len(month.updates) < 5000
    live = [load(Lifetimes("uniform", p), p).live for p in (43_200, 432)]
    assert month.rows / live[0] == pytest.approx(short.rows / live[1], rel=0.05)
    assert month.written / 1000.0 == pytest.approx(2.0, rel=0.05)
    assert month.files == pytest.approx(10 * short.files, rel=0.3)
    assert month.key_files == pytest.approx(1.0)
