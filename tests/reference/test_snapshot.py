from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.reference.engine import snapshot as q
from tests.reference.engine.aggregates import count, max_of, sum_of
from tests.reference.engine.tuples import Row

if TYPE_CHECKING:
    from collections import Counter

    from tests.reference.engine.tuples import Value

LEFT = [Row(1, ("a", 1), 1, 11), Row(2, ("a", 1), 2, 12), Row(3, ("b", 2), 3, 13), Row(4, (None, 3), 3, 13)]
RIGHT = [Row(5, ("a",), 4, 14), Row(6, ("c",), 5, 15), Row(7, (None,), 5, 15)]
SOURCES = {"left": LEFT, "right": RIGHT}
L, R = q.scan("left"), q.scan("right")


def at(expression: q.Expression, tau: int = 6) -> Counter[Value]:
    """The answer while everything is live, or at another instant."""
    return q.snapshot(expression, SOURCES, tau)


def test_only_live_rows_count() -> None:
    """A source is its rows from ts on and before exp, with duplicates."""
    assert [at(L, tau).total() for tau in (0, 1, 2, 3, 10, 11, 12, 13)] == [0, 1, 2, 4, 4, 3, 2, 0]
    assert at(L) == {("a", 1): 2, ("b", 2): 1, (None, 3): 1}


def test_selection_projection_union() -> None:
    """Duplicates are kept by all three."""
    assert at(q.select(L, lambda value: value[0] == "a")) == {("a", 1): 2}
    assert at(q.project(L, lambda value: (value[1] % 2,))) == {(1,): 3, (0,): 1}
    assert at(q.union(R, R, q.project(L, lambda value: value[:1]))) == {("a",): 4, ("c",): 2, (None,): 3, ("b",): 1}


def test_joins() -> None:
    """Multiplicities multiply, and null equals nothing."""
    assert at(q.join(L, R, q.matches())) == {("a", 1, "a"): 2}
    assert at(q.join(R, R, q.matches())) == {("a", "a"): 1, ("c", "c"): 1}
    assert at(q.join(R, R, lambda left, right: left != right)).total() == 6


def test_sets_and_bags() -> None:
    """Distinct and intersect give sets, and null is a value to them; bag difference subtracts counts."""
    keys = q.project(L, lambda value: value[:1])
    assert at(q.distinct(keys)) == {("a",): 1, ("b",): 1, (None,): 1}
    assert at(q.intersect(keys, R)) == {("a",): 1, (None,): 1}
    assert at(q.except_all(keys, R)) == {("a",): 1, ("b",): 1}
    assert at(q.except_all(R, keys)) == {("c",): 1}


def test_rows_with_and_without_partners() -> None:
    """Every left row is in exactly one of the two."""
    semi, anti = q.semi_join(L, R, q.matches()), q.anti_join(L, R, q.matches())
    assert at(semi) == {("a", 1): 2}
    assert at(anti) == {("b", 2): 1, (None, 3): 1}
    assert at(anti, 3) == at(L, 3)
    assert at(semi) + at(anti) == at(L)


@pytest.mark.parametrize(
    ("kind", "padded"),
    [
        ("left", {("b", 2, None): 1, (None, 3, None): 1}),
        ("right", {(None, None, "c"): 1, (None, None, None): 1}),
        ("full", {("b", 2, None): 1, (None, 3, None): 1, (None, None, "c"): 1, (None, None, None): 1}),
    ],
)
def test_outer_joins(kind: Literal["left", "right", "full"], padded: dict[Value, int]) -> None:
    """Rows without a partner are padded with nulls, on the sides that are kept."""
    assert at(q.outer_join(L, R, q.matches(), kind=kind, widths=(2, 1))) == {("a", 1, "a"): 2, **padded}


def test_groups() -> None:
    """Null is a group; a query without groups has a row even of nothing."""
    assert at(q.group(L, lambda value: value[:1], [count, sum_of(1)])) == {("a", 2, 2): 1, ("b", 1, 2): 1, (None, 1, 3): 1}
    assert at(q.group(L, None, [count, max_of(1)])) == {(4, 3): 1}
    assert at(q.group(L, None, [count, max_of(1)]), 0) == {(0, None): 1}
    assert at(q.group(L, lambda value: value[:1], [count]), 0) == {}


def test_the_first_rows() -> None:
    """The first k rows, duplicates among them, of everything and of each group."""
    assert at(q.top(L, 3, lambda value: value[1])) == {("a", 1): 2, ("b", 2): 1}
    assert at(q.top(L, 2, lambda value: -value[1])) == {(None, 3): 1, ("b", 2): 1}
    assert at(q.top(L, 1, lambda value: value[1], lambda value: value[:1])) == {("a", 1): 1, ("b", 2): 1, (None, 3): 1}
    assert at(q.top(q.project(R, lambda value: (value[0] or "",)), 2, lambda _: 0)) == {("",): 1, ("a",): 1}
