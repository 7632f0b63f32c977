from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from warehouse.views.costs.join_order import JoinInput
from warehouse.views.costs.negation_cost import (
    ActPrices,
    Negation,
    Placement,
    PlanCost,
    StructureCost,
    negation_placement,
    structure_cost,
    uniform_negation,
)

FREE = ActPrices(compare=0, count=0, scan=0, look_up=0, negative=0, keep=0)


# --- how an answer is kept, section 5.4 ---


def test_structure_costs_as_written() -> None:
    """Calendar e·π·R·c_scan, hash e·c_hash + rate·c_extra_negatives, the rate by default that of natural expirations."""
    prices = ActPrices(scan=0.5, look_up=3, negative=2)
    assert structure_cost(100, 10, 0.4, prices=prices) == StructureCost(calendar=200, hash=30 + 12)
    assert structure_cost(100, 10, 0.4, extra_negatives=50, prices=prices) == StructureCost(calendar=200, hash=30 + 100)
    assert structure_cost(100, 10, 0.4) == StructureCost(calendar=400, hash=16)


def test_without_premature_expirations_the_calendar_queue_wins() -> None:
    """If the inputs of a negation share no values, π is 0 and the calendar queue costs nothing, however large the result."""
    cost = structure_cost(10**9, 1000, 0)
    assert (cost.calendar, cost.cheaper, cost.least) == (0, "calendar", 0)


@pytest.mark.parametrize("premature", [0.01, 0.4, 1])
def test_small_results_stay_in_a_calendar_queue(premature: float) -> None:
    """For a given π the calendar queue wins up to a size of the result, hash beyond; equal costs leave the calendar queue."""
    prices = ActPrices(scan=0.25, look_up=4, negative=2)
    limit = (prices.look_up + (1 - premature) * prices.negative) / (premature * prices.scan)
    assert structure_cost(limit * 0.99, 7, premature, prices=prices).cheaper == "calendar"
    assert structure_cost(limit * 1.01, 7, premature, prices=prices).cheaper == "hash"
    assert structure_cost(16, 7, 1, prices=prices) == StructureCost(calendar=28, hash=28)
    assert structure_cost(16, 7, 1, prices=prices).cheaper == "calendar"


@pytest.mark.parametrize("premature", [-0.1, 1.1, float("nan")])
def test_premature_is_a_share(premature: float) -> None:
    """A π outside 0 to 1 is an error."""
    with pytest.raises(ValueError, match="give the share"):
        structure_cost(10, 10, premature)


# --- where the negation stands, section 6.3 ---

LEFT = JoinInput("S1", rate=0.55, lifetime=240, distinct=20)
RIGHT = JoinInput("S2", rate=0.40, lifetime=200, distinct=20)
NEGATED = JoinInput("S3", rate=0.05, lifetime=260, distinct=20)


@dataclass
class Counted:
    """What both plans did in a simulated time, per tick, and how the negation acted."""

    negation: Negation
    up_compared: float
    up_joined: float
    down_compared: float
    down_compared_for_negatives: float
    down_entered: float
    answered: float
    answers_cancelled: float


@cache
def simulated(*, ticks: int = 60_000, warm_up: int = 1_000, values: int = 20) -> Counted:
    """Run both plans over one random history: a row of one input each tick, values uniform, windows of all inputs full."""
    rng = np.random.default_rng(20130101)
    inputs = (LEFT, RIGHT, NEGATED)
    assert sum(stream.rate for stream in inputs) == pytest.approx(1)
    kinds = rng.choice(3, size=ticks + warm_up, p=[stream.rate for stream in inputs]).tolist()
    drawn = rng.integers(values, size=ticks + warm_up).tolist()
    live = [Counter(dict.fromkeys(range(values), 0)) for _ in inputs]
    ends: list[deque[tuple[int, int]]] = [deque() for _ in inputs]
    done: Counter[str] = Counter()

    def kept() -> int:
        return sum(count for value, count in live[0].items() if not live[2][value])

    for now, (kind, value) in enumerate(zip(kinds, drawn, strict=True)):
        if now == warm_up:
            done.clear()
        left, right, negated = live
        for number, queue in enumerate(ends):
            while queue and queue[0][0] <= now:
                _, gone = queue.popleft()
                live[number][gone] -= 1
                if number == 2 and not negated[gone]:  # the last partner left: rows come back
                    done["down compared"] += left[gone] * len(ends[1])
                    done["down entered"] += left[gone]
                    done["answered"] += left[gone] * right[gone]
        done["live"] += len(ends[0])
        done["kept"] += kept()
        free = not negated[value]
        if kind == 0:
            done["up compared"] += len(ends[1])
            done["up joined"] += right[value]
            done["down compared"] += free * len(ends[1])
            done["down entered"] += free
            done["answered"] += free * right[value]
        elif kind == 1:
            done["up compared"] += len(ends[0])
            done["up joined"] += left[value]
            done["down compared"] += kept()
            done["answered"] += free * left[value]
        elif free:  # the first partner comes: rows are cancelled
            done["cancelled"] += left[value]
            done["down compared for negatives"] += left[value] * len(ends[1])
            done["answers cancelled"] += left[value] * right[value]
        live[kind][value] += 1
        ends[kind].append((now + int(inputs[kind].lifetime), value))
    per_tick = {name: count / ticks for name, count in done.items()}
    return Counted(
        Negation(kept=done["kept"] / done["live"], cancelled=per_tick["cancelled"]),
        per_tick["up compared"],
        per_tick["up joined"],
        per_tick["down compared"],
        per_tick["down compared for negatives"],
        per_tick["down entered"],
        per_tick["answered"],
        per_tick["answers cancelled"],
    )


def test_how_a_negation_acts_on_uniform_values() -> None:
    """The estimate agrees with a simulated history: rows without a partner, and rows that get one."""
    estimate, counted = uniform_negation(LEFT, NEGATED), simulated().negation
    assert estimate.kept == pytest.approx(np.exp(-13 / 20))
    assert estimate.kept == pytest.approx(counted.kept, rel=0.05)
    assert estimate.cancelled == pytest.approx(counted.cancelled, rel=0.05)


def test_values_that_the_negated_input_lacks_are_kept() -> None:
    """With five times as many values on the left, four fifths of its rows cannot meet a partner."""
    many = replace(LEFT, distinct=100)
    few = uniform_negation(LEFT, NEGATED)
    assert uniform_negation(many, NEGATED).kept == pytest.approx(0.8 + 0.2 * few.kept)
    assert uniform_negation(many, NEGATED).cancelled == pytest.approx(few.cancelled / 5)
    assert uniform_negation(LEFT, replace(NEGATED, distinct=100)).kept == pytest.approx(np.exp(-13 / 100))


@pytest.mark.parametrize("measured", [True, False])
def test_every_rate_against_a_simulated_history(*, measured: bool) -> None:
    """Single prices show single rates; both plans' are those counted, with the measured negation and the estimated one."""
    counted = simulated()

    def at(**prices: float) -> Placement:
        return negation_placement(
            LEFT, RIGHT, NEGATED, counted.negation if measured else None, prices=replace(FREE, **prices)
        )

    def near(number: float) -> object:
        return pytest.approx(number, rel=0.06)

    compare, count, negative, keep = at(compare=1), at(count=1), at(negative=1), at(keep=1)
    assert compare.pull_up == PlanCost(near(counted.up_compared), 0, 0)
    assert compare.push_down == PlanCost(near(counted.down_compared), near(counted.down_compared_for_negatives), 0)
    assert count.pull_up == PlanCost(near(counted.up_joined + 0.05), 0, 0)
    assert count.push_down == PlanCost(near(0.55 + 0.05), 0, 0)
    assert negative.pull_up == PlanCost(0, near(counted.answers_cancelled), 0)
    assert negative.push_down == PlanCost(0, near(counted.answers_cancelled + counted.negation.cancelled), 0)
    assert keep.pull_up == PlanCost(0, 0, near(1 + counted.up_joined + counted.answered))
    assert keep.push_down == PlanCost(0, 0, near(1 + counted.down_entered + counted.answered))


def test_strict_buffers_take_the_cheaper_structure() -> None:
    """Look-ups in the answer have the cost of section 5.4; push-down also looks up the inner result."""
    acts = Negation(kept=0.5, cancelled=0.2)
    prices = replace(FREE, scan=1, look_up=1, negative=1)
    costs = negation_placement(LEFT, RIGHT, NEGATED, acts, joining=0.01, prices=prices)
    partners = 0.01 * 80
    answered = 0.01 * (0.55 * 80 + 0.40 * 132) * 0.5 + 0.2 * partners
    answer = structure_cost(0.01 * 132 * 80 * 0.5, answered, 0.2 * partners / answered)
    inner = structure_cost(132 * 0.5, 0.55 * 0.5 + 0.2, 0.2 / (0.55 * 0.5 + 0.2))
    assert answer.cheaper == inner.cheaper == "hash"
    assert costs.pull_up.total == pytest.approx(answer.hash + 0.2 * partners)
    assert costs.push_down.total == pytest.approx(answer.hash + 0.2 * partners + inner.hash + 0.2)
    rare = negation_placement(LEFT, RIGHT, NEGATED, Negation(kept=0.5, cancelled=1e-6), joining=0.01, prices=prices)
    assert rare.push_down.negatives == pytest.approx(1e-6 * (0.8 * (0.01 * 132 * 80 * 0.5) + 0.8 + 132 * 0.5 + 1))


def test_pull_up_wins_while_the_join_is_not_much_larger_than_its_inputs() -> None:
    """With few partners and a negation that often changes pull-up wins; with an exploding join push-down wins."""
    acts = Negation(kept=0.9, cancelled=1)
    hashed = [replace(stream, buckets=100) for stream in (LEFT, RIGHT, NEGATED)]
    small = negation_placement(*hashed, acts, joining=1 / 200)
    assert small.cheaper == "pull-up"
    assert small.pull_up.negatives < small.push_down.negatives
    exploding = negation_placement(*hashed, acts, joining=1 / 2)
    assert exploding.cheaper == "push-down"
    assert exploding.pull_up.negatives < exploding.push_down.negatives


def test_push_down_wins_when_the_negation_leaves_little() -> None:
    """The fewer rows of S1 a negation keeps, the better is push-down; if it keeps all, both plans cost nearly the same."""
    gains = []
    for share_kept in (1, 0.5, 0.1, 0.01):
        costs = negation_placement(LEFT, RIGHT, NEGATED, Negation(kept=share_kept, cancelled=0))
        gains.append(costs.pull_up.operators - costs.push_down.operators)
    assert gains == sorted(gains)
    assert negation_placement(LEFT, RIGHT, NEGATED, Negation(kept=0.01, cancelled=0)).cheaper == "push-down"


def test_equal_costs_leave_the_plan_with_fewer_strict_edges() -> None:
    """When both plans cost the same, the negation is pulled up."""
    assert negation_placement(LEFT, RIGHT, NEGATED, prices=FREE).cheaper == "pull-up"


def test_hash_index() -> None:
    """Buckets divide only the compared rows, in both plans and for both signs."""
    acts = Negation(kept=0.5, cancelled=0.2)
    compare = replace(FREE, compare=1)
    plain = negation_placement(LEFT, RIGHT, NEGATED, acts, prices=compare)
    hashed = [replace(stream, buckets=4) for stream in (LEFT, RIGHT, NEGATED)]
    costs = negation_placement(*hashed, acts, prices=compare)
    assert costs.pull_up.total == pytest.approx(plain.pull_up.total / 4)
    assert costs.push_down.total == pytest.approx(plain.push_down.total / 4)
    prices = ActPrices(compare=0)
    assert negation_placement(*hashed, acts, prices=prices) == negation_placement(LEFT, RIGHT, NEGATED, acts, prices=prices)


def test_several_attributes() -> None:
    """The join and the negation may use different attributes of S1; each takes the values of its own."""
    left = replace(LEFT, distinct={"join": 20, "not in": 50})
    right, negated = replace(RIGHT, distinct={"join": 20}), replace(NEGATED, distinct={"not in": 50})
    same = replace(LEFT, distinct=20), RIGHT, NEGATED
    acts = uniform_negation(left, negated)
    assert acts.kept == pytest.approx(np.exp(-13 / 50))
    assert negation_placement(left, right, negated) == negation_placement(*same, acts)
    with pytest.raises(ValueError, match="one attribute in common"):
        uniform_negation(right, negated)


def test_nothing_arrives() -> None:
    """Inputs without rows cost nothing and divide nothing."""
    empty = [JoinInput(name, 0, 0, 0) for name in ("S1", "S2", "S3")]
    costs = negation_placement(*empty)
    assert costs.pull_up == costs.push_down == PlanCost(0, 0, 0)
    assert negation_placement(LEFT, RIGHT, empty[2]).push_down.negatives == 0
