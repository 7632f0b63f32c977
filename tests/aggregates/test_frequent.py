"""Lists of frequent items: the worked example, and the guarantees G1 to G7 of the frequent-items sheet."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.aggregates.frequent import Summary, above, bounds, summarise, top

if TYPE_CHECKING:
    from fractions import Fraction

SLOTS = ("aaaabbbccd", "aaaaacccdb", "bbbbaaaccd", "cccccaabbd", "ddddddccca")
"""Section 6: k = 2, ten rows a slot, windows of three slots."""

BAGS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=14), min_size=1, max_size=6)
K = st.integers(1, 5)
TIGHT = st.booleans()


def lists(bags: list[str] | list[list[str]], k: int, *, tight: bool = False) -> list[Summary]:
    """Return the summary of each bag."""
    summaries = [summarise(Counter(bag), k) for bag in bags]
    return [summary.tight() for summary in summaries] if tight else summaries


def reported(summaries: list[Summary]) -> dict[str, int]:
    """Return the items that Algorithm 6 reports: items above the sum of the deltas."""
    window = bounds(summaries)
    return {item: least for item, (least, _) in window.items.items() if least > window.delta}


@pytest.mark.parametrize(
    ("closed", "listed", "delta", "least", "found"),
    [
        (1, "a4 b3", 3, {"a": 4, "b": 3}, {"a": 4}),
        (2, "a5 c3", 6, {"a": 9, "b": 3, "c": 3}, {"a": 9}),
        (3, "b4 a3", 9, {"a": 12, "b": 7, "c": 3}, {"a": 12}),
        (4, "c5 a2", 8, {"a": 10, "b": 4, "c": 8}, {"a": 10}),
        (5, "d6 c3", 8, {"a": 5, "b": 4, "c": 8, "d": 6}, {}),
    ],
)
def test_worked_example(closed: int, listed: str, delta: int, least: dict[str, int], found: dict[str, int]) -> None:
    """Section 6, row by row."""
    window = lists(list(SLOTS[max(0, closed - 3) : closed]), 2)
    assert " ".join(f"{item}{count}" for item, count in window[-1].listed) == listed
    assert bounds(window).delta == delta
    assert {item: low for item, (low, _) in bounds(window).items.items()} == least
    assert reported(window) == found


def test_worked_example_upper_ends_and_tight_deltas() -> None:
    """Section 6: the upper ends after five slots, and the tight variant."""
    last = bounds(lists(list(SLOTS[2:]), 2))
    assert {item: high for item, (_, high) in last.items.items()} == {"a": 8, "b": 9, "c": 11, "d": 11}
    assert [summary.delta for summary in lists(list(SLOTS), 2, tight=True)] == [2, 1, 2, 2, 1]
    assert [reported(lists(list(SLOTS[end - 3 : end]), 2, tight=True)) for end in (3, 4, 5)] == [
        {"a": 12, "b": 7},
        {"a": 10, "c": 8},
        {"c": 8, "d": 6},
    ]


def test_ties_and_nulls_are_ranked_by_item() -> None:
    """Ties go to the smaller item, None last; a list that holds every item leaves nothing out."""
    assert summarise({None: 2, "b": 2, "a": 2}, 3) == Summary((("a", 2), ("b", 2), (None, 2)), 2, 0, 6, 3)
    assert summarise({"b": 2, "a": 2}, 3).delta == 0
    assert summarise({}, 3) == Summary((), 0, 0, 0, 0)


@given(bags=BAGS, k=K, tight=TIGHT)
def test_guarantees(bags: list[list[str]], k: int, *, tight: bool) -> None:
    """G1, G2, G4 to G6 hold for every item, G7 for the sum of the deltas."""
    window = bounds(lists(bags, k, tight=tight))
    true = Counter(item for bag in bags for item in bag)
    items = reported(lists(bags, k, tight=tight))
    for item, count in true.items():
        low, high = window.items.get(item, (0, window.delta))
        assert low <= count <= high  # G1, G4
        assert count <= window.delta or item in window.items  # G6
        assert count <= window.delta + (high - low) or item in items  # G5
    assert all(true[item] >= least > window.delta for item, least in items.items())  # G2
    assert window.delta * k <= window.rows == sum(true.values())  # G7
    if not tight:
        assert window.delta >= sum(len(set(bag)) >= k for bag in bags)  # G7


@given(BAGS, K, st.fractions(0, 1, max_denominator=40))
def test_above(bags: list[list[str]], k: int, share: Fraction) -> None:
    """Certain items are above the threshold; items above it are there if the answer says that it is complete."""
    answer = above(bounds(lists(bags, k)), share)
    true = Counter(item for bag in bags for item in bag)
    heavy = {item for item, count in true.items() if count > share * sum(true.values())}
    assert {item.item for item in answer.items if item.certain} <= heavy
    assert all(item.at_least <= true[item.item] <= item.at_most for item in answer.items)
    if answer.complete:
        assert heavy <= {item.item for item in answer.items}


@given(BAGS, K, st.integers(1, 5))
def test_top(bags: list[list[str]], k: int, n: int) -> None:
    """A certain item is among the most frequent whatever the order of ties; a complete answer has all of them."""
    answer = top(bounds(lists(bags, k)), n)
    true = Counter(item for bag in bags for item in bag)
    for item in answer.items:
        if item.certain:
            assert sum(count >= true[item.item] for count in true.values()) <= n
    if answer.complete:
        surely = {item for item, count in true.items() if sum(other >= count for other in true.values()) <= n}
        assert surely <= {shown.item for shown in answer.items}


@given(st.lists(st.sampled_from("abcdefgh"), max_size=20), K, K)
def test_shortened(bag: list[str], long: int, short: int) -> None:
    """A longer list gives the summary of each shorter one; a list never grows."""
    summary = summarise(Counter(bag), max(long, short))
    assert summary.shortened(min(long, short)) == summarise(Counter(bag), min(long, short))
    if summary.distinct > len(summary.listed):
        with pytest.raises(ValueError, match="first ones"):
            summary.shortened(len(summary.listed) + 1)
    with pytest.raises(ValueError, match="first ones"):
        summary.shortened(0)
