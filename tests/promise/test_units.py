"""The ledger of owed units, and how a budget is allotted to them: a model of pairs shows that none is lost or made twice."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.promise.units import BUCKETS, FIRST, LAST, Ledger, Position, Prefer, Unit, allotted, slice_end

PREFERENCES: tuple[Prefer, ...] = ("desc", "asc", "weighted")
COUNTS = st.dictionaries(st.builds(Unit, st.integers(0, 3), st.integers(0, BUCKETS - 1)), st.integers(0, 50), max_size=20)


@given(COUNTS, st.integers(1, 200), st.sampled_from(PREFERENCES))
def test_a_budget_is_used_and_never_exceeded(pairs: dict[Unit, int], budget: int, prefer: Prefer) -> None:
    """All of it goes to units, as long as these have so many pairs; none gets more than it has."""
    found = allotted(pairs, budget, prefer)
    assert sum(found.values()) == min(budget, sum(pairs.values()))
    assert all(0 < quota <= pairs[unit] for unit, quota in found.items())


def test_the_preferred_come_first() -> None:
    """Most pairs, fewest, or the same share of all (promising-tuples sheet, P3: largest remainders)."""
    pairs = {Unit(0, 1): 3569, Unit(0, 2): 3346, Unit(0, 3): 2855, Unit(0, 4): 2230}
    assert [*allotted(pairs, 4000, "desc").values()] == [3569, 431]
    assert [unit.bucket for unit in allotted(pairs, 4000, "asc")] == [4, 3]
    assert [*allotted(pairs, 12, "weighted").values()] == [4, 3, 3, 2]
    assert [*allotted({Unit(0, 5): 2, Unit(1, 9): 2}, 2, "desc")] == [Unit(1, 9)]


@given(st.integers(FIRST, LAST), st.integers(1, 10**9), st.integers(1, 10**6), st.integers(1, 10**4))
def test_a_slice_goes_on(place: int, pairs: int, quota: int, slack: int) -> None:
    """It begins at the position and ends with the last place at the latest."""
    assert place <= slice_end(Position(place), pairs, quota, slack) <= LAST


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3), st.sampled_from(PREFERENCES)), min_size=1, max_size=4),
)
def test_ranges_and_positions_cover_each_pair_once(
    rows: list[tuple[int, int]], moves: list[tuple[int, int, Prefer]]
) -> None:
    """Pairs (slot, bucket) that are made in any order, whole or one by one, and those that are owed, are all pairs once."""
    ledger, slot, made = Ledger(), 0, []
    for budget, step, prefer in moves:
        slot += step
        ledger = msgspec.convert(msgspec.json.decode(msgspec.json.encode(ledger.with_slots(slot))), Ledger)
        owed = {unit: _of(ledger, unit, rows) for unit in ledger.units()}
        counts = {unit: len(pairs) - ledger.position(unit).made for unit, pairs in owed.items()}
        positions: dict[Unit, Position | None] = {unit: None for unit, count in counts.items() if not count}
        for unit, quota in allotted(counts, budget, prefer).items():
            before = ledger.position(unit).made
            made += owed[unit][before : before + quota]
            positions[unit] = None if quota == counts[unit] else Position(0, 0, before + quota)
        ledger = ledger.with_positions(positions).without_empty()
        left = [pair for unit in ledger.units() for pair in _of(ledger, unit, rows)[ledger.position(unit).made :]]
        later = [pair for pair in rows if pair[0] > slot]
        assert sorted([*made, *left, *later]) == sorted(rows)


def _of(ledger: Ledger, unit: Unit, rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    each = ledger.ranges[unit.range]
    inside = [pair for pair in rows if (each.above is None or pair[0] > each.above) and pair[0] <= each.upto]
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
