from __future__ import annotations

import pytest

from tests.reference.engine.changes import answer, arrivals, lifetimes, minus, plus, timeline
from tests.reference.engine.stateless import projection, selection, union
from tests.reference.engine.tuples import Row, live_rows, with_boundary
from warehouse.time import NEVER

from .generators import cancelling, instants, seeds, weak
from .notation import intervals, stream


def test_real_lifetimes_give_the_same_answers() -> None:
    """At every instant the rows in the answer are those whose real lifetime holds the instant."""
    for random in seeds(50):
        rows = weak(random, "r")
        changes = cancelling(random, rows)
        assert len(changes) >= len(rows)
        for tau in instants(rows):
            assert [row.id for row in answer(changes, tau)] == [row.id for row in live_rows(lifetimes(changes), tau)]


def test_a_negative_tuple_cancels_one_of_equal_rows() -> None:
    """Of two equal rows one remains, and nothing can be cancelled twice."""
    row = Row("a", ("a",), 1, 9)
    changes = [plus(row), plus(row), minus(row, 4)]
    assert [len(answer(changes, tau)) for tau in (1, 3, 4, 8, 9)] == [2, 2, 1, 1, 0]
    assert sorted(life.exp for life in lifetimes(changes)) == [4, 9]
    with pytest.raises(ValueError, match="nothing to cancel at 6"):
        lifetimes([*changes, minus(row, 5), minus(row, 6)])


def test_order_inside_a_tick() -> None:
    """At one instant cancellations of older rows come before arrivals, and what changes nothing is left out."""
    old, young, dead = Row("o", ("o",), 1, 9), Row("y", ("y",), 4, 9), Row("d", ("d",), 4, 4)
    left, right = [plus(young), minus(young, 4), plus(dead)], [plus(old), minus(old, 4), minus(old, 9)]
    ticks = timeline(left, right)
    happened = {tick.now: [(number, change.sign, change.row.id) for number, change in tick.changes] for tick in ticks}
    assert happened == {1: [(1, 1, "o")], 4: [(1, -1, "o"), (0, 1, "y"), (0, -1, "y")], 9: []}


def test_inclusive_ends_are_one_tick_later() -> None:
    """An inclusive window of 10 spans 11 ticks; never stays never."""
    assert [row.exp for row in with_boundary([*stream("a1", 10), *stream("b2")], "inclusive")] == [12, NEVER]
    assert [row.exp for row in with_boundary(stream("a1", 10), "exclusive")] == [11]


def test_stateless_operators_keep_the_times() -> None:
    """Selection and projection keep ts and exp, also of negative tuples."""
    changes = [*arrivals(stream("a1 b2 a3", 10)), minus(stream("a3", 10)[0], 5)]
    chosen = projection(selection(changes, lambda value: value == ("a",)), lambda value: (*value, 0))
    assert intervals(chosen) == [("a1", 1, 11), ("a3", 3, 5)]
    assert {change.row.value for change in chosen} == {("a", 0)}


def test_union_of_unequal_windows() -> None:
    """TV-3: a row of the shorter window leaves first although it was generated later."""
    assert intervals(union(arrivals(stream("y2", 5)), arrivals(stream("x1", 10)))) == [("x1", 1, 11), ("y2", 2, 7)]
