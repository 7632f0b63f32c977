from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from tests.reference.engine import snapshot as q
from tests.reference.engine.changes import Change, answer, arrivals, minus, timeline
from tests.reference.engine.distinct import DeltaStar, counting_distinct, delta_star, weak_distinct
from tests.reference.engine.joins import join
from tests.reference.engine.negation import anti_join, bag_difference
from tests.reference.engine.stateless import projection
from tests.reference.engine.tuples import Row, bag, live_rows

from .generators import agrees, cancelling, seeds, weak, weakest
from .notation import emissions, intervals, negatives, stream

if TYPE_CHECKING:
    from collections.abc import Callable

DISTINCT = q.distinct(q.scan("rows"))


def weak_youngest(changes: list[Change]) -> list[Change]:
    """The straightforward form that shows the youngest row."""
    return weak_distinct(changes, "youngest")


def weak_oldest(changes: list[Change]) -> list[Change]:
    """The straightforward form that shows the oldest row."""
    return weak_distinct(changes, "oldest")


def youngest_spare(changes: list[Change]) -> list[Change]:
    """The source's delta*."""
    return delta_star(changes, "youngest")


Form = pytest.mark.parametrize("form", [weak_youngest, weak_oldest, delta_star, counting_distinct])


@pytest.mark.parametrize("form", [weak_youngest, delta_star, youngest_spare])
def test_emissions_of_the_weak_forms(form: Callable[[list[Change]], list[Change]]) -> None:
    """TV-4: delta* and the weak form that picks the youngest emit the same four rows."""
    changes = form(arrivals(stream("x1 x4 y5 x8 x18", 10)))
    assert intervals(changes) == [("x1", 1, 11), ("y5", 5, 15), ("x8", 11, 18), ("x18", 18, 28)]
    assert negatives(changes) == 0


def test_emissions_of_the_other_forms() -> None:
    """TV-4: picking the oldest emits one row more; counting announces each end."""
    changes = arrivals(stream("x1 x4 y5 x8 x18", 10))
    assert intervals(weak_oldest(changes)) == [
        ("x1", 1, 11), ("y5", 5, 15), ("x4", 11, 14), ("x8", 14, 18), ("x18", 18, 28),
    ]  # fmt: skip
    assert emissions(counting_distinct(changes)) == ["+x@1", "+y@5", "-y@15", "-x@18", "+x@18", "-x@28"]


@Form
def test_answers_of_all_forms(form: Callable[[list[Change]], list[Change]]) -> None:
    """TV-4: {x} from 1, {x, y} 5 to 14, {x} 15 to 27, {} from 28."""
    changes = form(arrivals(stream("x1 x4 y5 x8 x18", 10)))
    expected = ["", *["x"] * 4, *["xy"] * 10, *["x"] * 13, ""]
    assert ["".join(sorted(row.value[0] for row in answer(changes, tau))) for tau in range(29)] == expected


P, Q, R = Row("p", ("x",), 1, 10), Row("q", ("x",), 2, 30), Row("r", ("x",), 3, 15)


def test_the_spare_lives_longest() -> None:
    """TV-5(a): on weak input the latest exp is right, and the youngest arrival loses the value from 15 to 29."""
    assert intervals(delta_star(arrivals([P, Q, R]))) == [("p", 1, 10), ("q", 10, 30)]
    assert intervals(youngest_spare(arrivals([P, Q, R]))) == [("p", 1, 10), ("r", 10, 15)]
    assert emissions(counting_distinct(arrivals([P, Q, R]))) == ["+x@1", "-x@30"]


def test_strict_input_needs_another_form() -> None:
    """TV-5(b): a cancelled spare would lose x from 10 on, so delta* refuses negatives; the other forms show x from 1 to 11."""
    q2, r3 = Row("q", ("x",), 2, 12), Row("r", ("x",), 3, 13)
    changes = [*arrivals([P, q2, r3]), minus(r3, 5)]
    with pytest.raises(ValueError, match=r"delta\* takes no negative tuples"):
        delta_star(changes)
    operator = DeltaStar()
    for row in (P, q2, r3):
        operator.tick(row.ts, [row])
    assert operator.spare[("x",)] == r3  # q, which stays live, was not kept
    for form in (weak_youngest, weak_oldest, counting_distinct):
        assert [tau for tau in range(20) if answer(form(changes), tau)] == list(range(1, 12))


@Form
def test_forms_agree_with_the_definition(form: Callable[[list[Change]], list[Change]]) -> None:
    """Every form shows each live value once at every instant, on rows with lifetimes of their own."""
    for random in seeds(80):
        rows = arrivals(weak(random, "r", count=14))
        assert agrees(form(rows), DISTINCT, rows=rows)


@pytest.mark.parametrize("form", [weak_youngest, weak_oldest, counting_distinct])
def test_strict_input_agrees_with_the_definition(form: Callable[[list[Change]], list[Change]]) -> None:
    """The forms for strict input do so with negative tuples too."""
    for random in seeds(80):
        rows = cancelling(random, weak(random, "r", count=14))
        assert agrees(form(rows), DISTINCT, rows=rows)


@pytest.mark.parametrize(
    ("spare", "lifetimes", "fails"),
    [("latest", "own", False), ("youngest", "own", True), ("youngest", "equal", False)],
)
def test_which_spare_is_right(spare: Literal["latest", "youngest"], lifetimes: str, fails: bool) -> None:
    """The youngest arrival as a spare is right for equal lifetimes only, the latest exp always."""
    wrong = 0
    for random in seeds(150):
        rows = weak(random, "r", count=14) if lifetimes == "own" else weakest(random, "r", 10, count=14)
        wrong += not agrees(delta_star(arrivals(rows), spare), DISTINCT, rows=arrivals(rows))
    assert (wrong > 15) if fails else (wrong == 0)


def test_space_of_delta_star() -> None:
    """It never keeps more than two rows for each live value."""
    for random in seeds(40):
        rows, operator = weak(random, "r", count=20, values="abc"), DeltaStar()
        for tick in timeline(arrivals(rows)):
            operator.tick(tick.now, [change.row for _, change in tick.changes])
            assert len(operator.shown) == len({row.value for row in live_rows(rows, tick.now)})
            assert len(operator.spare) <= len(operator.shown)


def test_counting_emits_fewer_rows_but_negatives() -> None:
    """Counting emits at most as many rows as a weak form, and a negative tuple for each."""
    for random in seeds(40):
        rows = arrivals(weak(random, "r", count=14))
        counting, weakly = counting_distinct(rows), delta_star(rows)
        assert len(counting) - negatives(counting) <= len(weakly)
        assert negatives(counting) * 2 == len(counting)


def test_intersect_and_exists_are_distinct_joins() -> None:
    """INTERSECT is delta* on the equality join; EXISTS is delta* on the join keyed by the left row."""
    for random in seeds(60):
        left, right = weak(random, "l"), weak(random, "r")
        both = projection(join(arrivals(left), arrivals(right)), lambda value: value[:1])
        sources = {"left": arrivals(left), "right": arrivals(right)}
        assert agrees(delta_star(both), q.intersect(q.scan("left"), q.scan("right")), **sources)
        identified = arrivals(Row(row.id, (*row.value, row.id), row.ts, row.exp) for row in left)
        partners = projection(join(identified, arrivals(right)), lambda value: value[:2])
        semi = projection(delta_star(partners), lambda value: value[:1])
        assert agrees(semi, q.semi_join(q.scan("left"), q.scan("right"), q.matches()), **sources)


def test_distinct_moves_through_an_anti_join_only() -> None:
    """Distinct below an anti-join changes nothing; below a bag difference it does (2 and 1 rows: {v} against {})."""
    for random in seeds(40):
        left, right = arrivals(weak(random, "l")), arrivals(weak(random, "r"))
        query = q.distinct(q.anti_join(q.scan("left"), q.scan("right"), q.matches()))
        assert agrees(weak_distinct(anti_join(left, right)), query, left=left, right=right)
        assert agrees(anti_join(delta_star(left), right), query, left=left, right=right)
    double, single = arrivals(stream("v1 v2", 50)), arrivals(stream("v3", 50))
    assert bag(answer(weak_distinct(bag_difference(double, single)), 4)) == {("v",): 1}
    assert bag(answer(bag_difference(delta_star(double), single), 4)) == {}


def test_distinct_of_a_stream_without_end() -> None:
    """On a stream that never expires each value is emitted once, when it first comes."""
    rows = arrivals(stream("x1 y2 x3"))
    for form in (weak_youngest, weak_oldest, delta_star, counting_distinct):
        assert emissions(form(rows)) == ["+x@1", "+y@2"]
