"""Which layouts are shown, and which is recommended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.layout import resolve
from warehouse.layout.advice import DEFAULT_PRICES, Estimate, Evaluation, candidates, choose, decision, evaluate
from warehouse.layout.advice.choice import pareto

from .test_footprint import uniform

BASE = evaluate(resolve(periods=8, label="WK"), uniform(8), DEFAULT_PRICES)
FIGURES = st.tuples(*(st.integers(1, 5) for _ in range(3)))


def of(update: float, probe: float, disk: float, probes: float = 1.0) -> Evaluation:
    """Return an evaluation with these figures."""
    return replace(
        BASE,
        update=Estimate(update, update, update),
        probe=Estimate(probe, probe, probe),
        disk=disk,
        interval=update + probes * probe,
    )


def beats(one: Evaluation, other: Evaluation) -> bool:
    """Return whether ``one`` is at least as good in all three figures and better in one figure."""
    pairs = [(one.update.value, other.update.value), (one.probe.value, other.probe.value), (one.disk, other.disk)]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


@given(st.lists(FIGURES, min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats(figures: list[tuple[int, int, int]]) -> None:
    """Every layout is on the front or beaten by a layout of it, and no layout of the front beats another."""
    evaluations = [of(*numbers) for numbers in figures]
    front = pareto(evaluations)
    for candidate in evaluations:
        on_front = any(
            (candidate.update, candidate.probe, candidate.disk) == (other.update, other.probe, other.disk) for other in front
        )
        assert on_front != any(beats(other, candidate) for other in evaluations)


@given(st.lists(FIGURES, min_size=1, max_size=12))
def test_the_recommended_layout_costs_least_for_an_interval(figures: list[tuple[int, int, int]]) -> None:
    """No layout costs less by more than a fiftieth, few are shown, and the recommended one is among them."""
    evaluations = [of(*numbers) for numbers in figures]
    choice = choose(evaluations)
    assert choice.best.interval <= 1.02 * min(evaluation.interval for evaluation in evaluations)
    assert any(evaluation is choice.best for evaluation in choice.front)
    assert len(choice.front) <= 6


def test_probes_decide_between_fast_updates_and_few_files() -> None:
    """Without probes runs are left as they are; with very many, layouts of few files win."""
    load = uniform(24, rate=100_000.0)
    seldom, often = (
        choose([evaluate(layout, replace(load, probes=probes), DEFAULT_PRICES) for layout in candidates(24)]).best
        for probes in (0.0, 1e6)
    )
    assert not seldom.layout.seal
    assert often.footprint.files < seldom.footprint.files
    assert often.update.value > seldom.update.value


def test_scans_pay_for_every_file() -> None:
    """Sheet, section 5.4: Q f x^2; a layout of twice the files costs twice as much for each scan."""
    load = uniform(24, rate=100_000.0)
    layout = resolve(periods=24, label="WK")
    none, many = (evaluate(layout, replace(load, scans=scans), DEFAULT_PRICES) for scans in (0.0, 100.0))
    price = DEFAULT_PRICES.probe.values[DEFAULT_PRICES.probe.names.index("opened_file")]
    assert many.interval - none.interval == pytest.approx(100 * none.footprint.files * price)


@pytest.mark.parametrize("periods", [1, 2, 3, 7, 24, 100])
def test_candidates_can_exist_for_every_window(periods: int) -> None:
    """Each is a layout of p, no layout comes twice, and both techniques occur."""
    layouts = candidates(periods)
    assert len(set(layouts)) == len(layouts)
    assert {layout.periods for layout in layouts} == {periods}
    assert {layout.technique for layout in layouts} == {"norebuild", "rebuild"}
    assert all(layout.expiry_block <= 2 for layout in candidates(periods, widest=2))


def test_every_candidate_can_be_evaluated_for_the_smallest_windows() -> None:
    """Windows of one to five slots, with all rows living for one of them, cost something finite."""
    for periods in range(1, 6):
        for layout in candidates(periods):
            load = replace(uniform(periods), shares=(1.0, *(0.0,) * (periods - 1)))
            assert 0 < evaluate(layout, load, DEFAULT_PRICES).update.value < 1e6


@pytest.mark.parametrize(
    ("live_bytes", "query_cost", "choice"),
    [(1e6, 0.0, "NoRebuild 4x4"), (1e6, 9.0, "Rebuild 2x2"), (1e12, 0.0, "NoRebuild 3x3"), (1e12, 9.0, "NoRebuild 2x2")],
)
def test_the_decision_table_is_the_source_s(live_bytes: float, query_cost: float, choice: str) -> None:
    """Sheet, section 8.3."""
    decided = decision(periods=36, live_bytes=live_bytes, memory=1e9, query_cost=query_cost, update_cost=1.0)
    assert decided.choice == choice
    assert decided.choice.lower().startswith(decided.layout.technique)
