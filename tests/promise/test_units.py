"""The ledger of owed units, and how a budget is allocated to them: a model of pairs shows that none is lost or made twice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.promise.allocation import Worth, allocate
from warehouse.promise.units import (
    BUCKETS,
    FIRST,
    LAST,
    PREFERENCES,
    RANGES,
    BudgetPlan,
    Ledger,
    Position,
    Unit,
    ViewBudget,
    slice_end,
)

COUNTS = st.dictionaries(st.builds(Unit, st.integers(0, 3), st.integers(0, BUCKETS - 1)), st.integers(0, 50), max_size=20)


@given(COUNTS, st.integers(1, 200), st.sampled_from(PREFERENCES))
def test_a_budget_is_used_and_never_exceeded(pairs: dict[Unit, int], budget: int, prefer: str) -> None:
    """Units get the whole budget while they have so many pairs; no unit gets more pairs than it has."""
    quotas = of_pairs(pairs, budget, prefer)
    assert sum(quotas.values()) == min(budget, sum(pairs.values()))
    assert all(0 < quota <= pairs[unit] for unit, quota in quotas.items())


def test_the_preferred_come_first() -> None:
    """Most pairs, fewest, or the same share of all (promising-tuples sheet, P3: largest remainders)."""
    pairs = {Unit(0, 1): 3569, Unit(0, 2): 3346, Unit(0, 3): 2855, Unit(0, 4): 2230}
    assert [*of_pairs(pairs, 4000, "desc").values()] == [3569, 431]
    assert [unit.bucket for unit in of_pairs(pairs, 4000, "asc")] == [4, 3]
    assert [*of_pairs(pairs, 12, "weighted").values()] == [4, 3, 3, 2]
    assert [*of_pairs({Unit(0, 5): 2, Unit(1, 9): 2}, 2, "desc")] == [Unit(1, 9)]


@given(
    st.dictionaries(
        st.builds(Unit, st.integers(0, 3), st.integers(0, BUCKETS - 1)),
        st.tuples(st.integers(1, 9), st.integers(1, 9)).map(
            lambda sides: Worth(sides[0] * sides[1], sum(sides), right=sides[1])
        ),
        min_size=1,
        max_size=20,
    ),
    st.integers(2, 60),
    st.sampled_from((*PREFERENCES, "left_count")),
)
def test_a_budget_of_rows_joins_no_more_and_something(units: dict[Unit, Worth], budget: int, prefer: str) -> None:
    """A part of a unit counts its share of the first input's rows and all rows of the second; one pair always fits."""
    quotas = allocate(units, ViewBudget(rows=budget, prefer=prefer), budget)
    assert quotas
    assert all(0 < quota <= units[unit].pairs for unit, quota in quotas.items())
    assert sum(min(joined(units[unit], quota), 2 * quota) for unit, quota in quotas.items()) <= budget


def joined(worth: Worth, quota: int) -> int:
    """How many rows a part of a unit joins."""
    return worth.right + -(-(worth.rows - worth.right) * quota // worth.pairs)


def test_units_by_what_they_give_for_their_rows_and_by_an_expression() -> None:
    """A budget of rows takes most pairs a row first; an expression's greatest value comes first, none at the end."""
    units = {Unit(0, 1): Worth(100, 101, 3.0, 100), Unit(0, 2): Worth(100, 20, None, 10), Unit(0, 3): Worth(4, 4, 7.5, 2)}
    assert [unit.bucket for unit in allocate(units, ViewBudget(rows=200), 200)] == [2, 3, 1]
    assert [unit.bucket for unit in allocate(units, ViewBudget(rows=30), 30)] == [2, 3]
    assert allocate(units, ViewBudget(rows=15), 15) == {Unit(0, 2): 50}
    assert allocate(units, ViewBudget(rows=3), 3) == {Unit(0, 3): 2}, "a part of the one of which a part fits"
    assert allocate(units, ViewBudget(rows=2), 2) == {Unit(0, 2): 1}, "no part fits"
    assert [unit.bucket for unit in allocate(units, ViewBudget(pairs=999, prefer="age"), 999)] == [3, 1, 2]


def of_pairs(pairs: dict[Unit, int], budget: int, prefer: str) -> dict[Unit, int]:
    """What a budget of results allots to units of so many pairs."""
    return allocate({unit: Worth(count, 0) for unit, count in pairs.items()}, ViewBudget(budget, prefer), budget)


def test_a_ledger_that_is_never_completed_stays_small() -> None:
    """If each update leaves work owed, new slots wait for others: ranges grow as the logarithm of the updates."""
    ledger, opened = Ledger(), 0
    for slot in range(20_000):
        ledger = ledger.with_slots(slot)
        newest = len(ledger.ranges) - 1
        if ledger.waiting is None and ledger.ranges[newest].untouched:
            ledger = ledger.with_positions({Unit(newest, 7): None, Unit(newest, 8): Position(1, 2, 3)})
            opened = slot
        assert slot - opened <= 1 + slot / RANGES
    assert len(ledger.ranges) < 8 * RANGES
    assert [slot_range.above for slot_range in ledger.ranges[1:]] == [slot_range.upto for slot_range in ledger.ranges[:-1]]


def test_seconds_are_turned_into_results_once() -> None:
    """A plan that is resumed makes what it was planned for; a chunk makes its own number."""
    plan = BudgetPlan(ViewBudget(seconds=2.5), Ledger(allowed=1234), 5)
    assert plan.effective_budget.amount == 1234
    assert BudgetPlan(ViewBudget(rows=10), Ledger(), 5, chunk=77).effective_budget == ViewBudget(pairs=77)
    with pytest.raises(ValueError, match="before an update is planned"):
        _ = ViewBudget(seconds=2.5).amount


@given(st.integers(FIRST, LAST), st.integers(1, 10**9), st.integers(1, 10**6), st.integers(1, 10**4))
def test_a_slice_goes_on(place: int, pairs: int, quota: int, slack: int) -> None:
    """It begins at the position and ends with the last place at the latest."""
    assert place <= slice_end(Position(place), pairs, quota, slack) <= LAST


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3), st.sampled_from(PREFERENCES)), min_size=1, max_size=4),
)
def test_ranges_and_positions_cover_each_pair_once(
    rows: list[tuple[int, int]], moves: list[tuple[int, int, str]]
) -> None:
    """Pairs (slot, bucket) that are made in any order, whole or one by one, and those that are owed, are all pairs once."""
    ledger, slot, pairs = Ledger(), 0, []
    for budget, step, prefer in moves:
        slot += step
        ledger = msgspec.convert(msgspec.json.decode(msgspec.json.encode(ledger.with_slots(slot))), Ledger)
        owed = {unit: _of(ledger, unit, rows) for unit in ledger.units()}
        counts = {unit: len(pairs) - ledger.position(unit).made for unit, pairs in owed.items()}
        positions: dict[Unit, Position | None] = {unit: None for unit, count in counts.items() if not count}
        for unit, quota in of_pairs(counts, budget, prefer).items():
            before = ledger.position(unit).made
            pairs += owed[unit][before : before + quota]
            positions[unit] = None if quota == counts[unit] else Position(0, 0, before + quota)
        ledger = ledger.with_positions(positions).without_empty()
        left = [pair for unit in ledger.units() for pair in _of(ledger, unit, rows)[ledger.position(unit).made :]]
        later = [pair for pair in rows if pair[0] > slot]
        assert sorted([*pairs, *left, *later]) == sorted(rows)


def _of(ledger: Ledger, unit: Unit, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    slot_range = ledger.ranges[unit.range]
    inside = [pair for pair in rows if (slot_range.above is None or pair[0] > slot_range.above) and pair[0] <= slot_range.upto]
    return [pair for pair in inside if pair[1] == unit.bucket]


@pytest.mark.parametrize(
    ("ledger", "shares"),
    [
        (Ledger(), (1.0, 1.0)),
        (Ledger(exact=0).with_slots(3), (1.0, 1.0)),
        (Ledger(exact=10, least=2, most=4).with_slots(3), (0.6, 0.8)),
        (Ledger(exact=None, least=0, most=4).with_slots(3), (0.0, 1.0)),
    ],
)
def test_shares(ledger: Ledger, shares: tuple[float, float]) -> None:
    """All of nothing, bounds of what was counted, and nothing certain under a condition."""
    assert ledger.shares == shares
