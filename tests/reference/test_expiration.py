"""The same plans under both ways to expire state: by exp, and by a negative tuple for each expiration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reference.engine.aggregates import count, group_by
from tests.reference.engine.changes import Change, answer, arrivals
from tests.reference.engine.distinct import counting_distinct, weak_distinct
from tests.reference.engine.expiration import announced
from tests.reference.engine.joins import join
from tests.reference.engine.negation import anti_join, bag_difference
from tests.reference.engine.stateless import projection, union
from tests.reference.engine.tuples import Row, bag
from warehouse.time import NEVER

from .generators import cancelling, instants, seeds, weak
from .notation import negatives

if TYPE_CHECKING:
    from collections.abc import Callable

PLANS: dict[str, Callable[[list[Change], list[Change]], list[Change]]] = {
    "join": join,
    "union": union,
    "counting distinct": lambda left, right: counting_distinct(union(left, right)),
    "weak distinct": lambda left, right: weak_distinct(union(left, right)),
    "distinct of a join": lambda left, right: weak_distinct(projection(join(left, right), lambda value: value[:1])),
    "counts of a join": lambda left, right: group_by(join(left, right), lambda value: value[:1], [count]),
    "anti-join": anti_join,
    "bag difference": bag_difference,
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_both_approaches_have_equal_answers(plan: Callable[[list[Change], list[Change]], list[Change]]) -> None:
    """At every instant a plan answers the same, whether windows announce expirations or operators look at exp."""
    for random in seeds(60):
        left, right = weak(random, "l"), weak(random, "r")
        direct = plan(arrivals(left), arrivals(right))
        negative = plan(announced(arrivals(left)), announced(arrivals(right)))
        assert all(bag(answer(direct, tau)) == bag(answer(negative, tau)) for tau in instants(left, right))
        assert all(change.row.exp == NEVER for change in negative)


def test_every_row_is_handled_twice() -> None:
    """With announced expirations a window emits two changes for each row, and a join a negative for each result."""
    for random in seeds(30):
        rows = weak(random, "l"), weak(random, "r")
        windows = [announced(arrivals(side)) for side in rows]
        assert [len(window) for window in windows] == [2 * len(side) for side in rows]
        results = join(*windows)
        assert negatives(results) * 2 == len(results)
        assert negatives(join(*(arrivals(side) for side in rows))) == 0


def test_premature_ends_are_announced_once() -> None:
    """A row that is cancelled early gets one negative tuple, at that instant."""
    for random in seeds(30):
        rows = weak(random, "r")
        changes = cancelling(random, rows)
        window = announced(changes)
        early = {change.row.id: change.at for change in changes if change.sign < 0}
        ends = {change.row.id: change.at for change in window if change.sign < 0}
        assert ends == {row.id: early.get(row.id, row.exp) for row in rows}


def test_rows_without_end_are_not_announced() -> None:
    """A row that never expires gets no negative tuple."""
    assert negatives(announced(arrivals([Row("a", ("a",), 1), Row("b", ("b",), 2, 5)]))) == 1
