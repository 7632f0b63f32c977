"""The join as an operator of plans: TV-1, TV-2, TV-12, and plans over random input."""

from __future__ import annotations

import pytest

from tests.reference.engine import snapshot as q
from tests.reference.engine.changes import answer, arrivals
from tests.reference.engine.joins import join
from tests.reference.engine.negation import anti_join, bag_difference
from tests.reference.engine.output_windows import wstream_range, wstream_rows
from tests.reference.engine.stateless import projection
from tests.reference.engine.tuples import bag
from warehouse.time import NEVER

from .generators import agrees, cancelling, instants, seeds, weak, weakest
from .notation import emissions, intervals, labels, negatives, stream

LEFT, RIGHT = arrivals(stream("a1 b3 a6", 10)), arrivals(stream("a4 c5 b12 a13", 10))


@pytest.mark.parametrize(
    ("external", "ends"),
    [(None, [11, 14, 13, 16]), ({0, 1}, [11, 14, 13, 16]), ({0}, [11, 16, 13, 16]), (set(), [NEVER] * 4)],
)
def test_external_windows_end_results(external: set[int] | None, ends: list[int]) -> None:
    """TV-1: a result ends with the first of its external parts, and never without any."""
    births = [("a1·a4", 4), ("a6·a4", 6), ("b3·b12", 12), ("a6·a13", 13)]
    expected = [(name, ts, exp) for (name, ts), exp in zip(births, ends, strict=True)]
    assert intervals(join(LEFT, RIGHT, external=external)) == expected


def test_output_windows() -> None:
    """TV-1: Wstream holds the newest results by time or by number, whatever the inputs' windows are."""
    results = join(LEFT, RIGHT, external=())
    by_time, by_rows = wstream_range(results, 10), wstream_rows(results, 2)
    everything = ["a1·a4", "a6·a13", "a6·a4", "b3·b12"]
    expected = {11: ["a1·a4", "a6·a4"], 13: everything, 14: everything[1:], 15: everything[1:], 22: ["a6·a13"], 23: []}
    expected |= {tau: ["a6·a13", "b3·b12"] for tau in range(16, 22)}
    assert {tau: labels(answer(by_time, tau)) for tau in expected} == expected
    assert labels(answer(by_rows, 12)) == ["a6·a4", "b3·b12"]
    assert all(labels(answer(by_rows, tau)) == ["a6·a13", "b3·b12"] for tau in range(13, 40))


def test_results_of_internal_windows_are_not_joined_again() -> None:
    """TV-2: if every state counts as external, the three-way join is empty; over results that never end it is not."""
    first, second, third = (arrivals(stream(text, 5)) for text in ("a1", "a2", "a7"))
    assert join(first, second, third) == join(join(first, second), third) == []
    assert intervals(join(join(first, second, external=()), third)) == [("a1·a2·a7", 7, 12)]


def test_joins_agree_with_the_definition() -> None:
    """Two- and three-way joins of weak and of strict input have the right answer at every instant."""
    for random in seeds(60):
        one, two = (arrivals(weak(random, name)) for name in "lr")
        three = cancelling(random, weak(random, "x", count=5))
        pair = q.join(q.scan("one"), q.scan("two"), q.matches())
        assert agrees(join(one, two), pair, one=one, two=two)
        assert agrees(join(one, two, three), q.join(pair, q.scan("three"), q.matches()), one=one, two=two, three=three)


def test_two_plans_of_one_query() -> None:
    """TV-12: negation above or below the join gives the same answers with 2 or 1 + 2 negative tuples."""
    first, second, third = arrivals(stream("v1 w2", 10)), arrivals(stream("v3 v4 w5", 10)), arrivals(stream("v6", 10))
    above = anti_join(join(first, second), third)
    negation = anti_join(first, third)
    below = join(negation, second)
    expected = ["", "", "", "v", "vv", "vvw", *["w"] * 6, ""]
    for plan in (above, below):
        firsts = projection(plan, lambda value: value[:1])
        assert ["".join(sorted(row.value[0] for row in answer(firsts, tau))) for tau in range(13)] == expected
    assert (negatives(above), negatives(negation), negatives(below)) == (2, 1, 2)


def test_anti_join_can_be_pulled_above_a_join() -> None:
    """Anti-join before or after a join on the retained side's key: equal answers on random input."""
    for random in seeds(60):
        first, second, third = (arrivals(weakest(random, name, random.randint(4, 10))) for name in "xyz")
        above, below = anti_join(join(first, second), third), join(anti_join(first, third), second)
        moments = instants(*([change.row for change in side] for side in (first, second, third)))
        assert all(bag(answer(above, tau)) == bag(answer(below, tau)) for tau in moments)


def test_bag_difference_cannot_be_pulled_above_a_join() -> None:
    """With 2, 2 and 1 rows of a value, bag difference gives 3 rows above the join and 2 below it."""
    first, second, third = arrivals(stream("v1 v2", 50)), arrivals(stream("v3 v4", 50)), arrivals(stream("v5", 50))
    above = bag_difference(projection(join(first, second), lambda value: value[:1]), third)
    below = join(bag_difference(first, third), second)
    assert (len(answer(above, 6)), len(answer(below, 6))) == (3, 2)


def test_wstream_over_joins_is_a_superset() -> None:
    """An output window as long as the inputs' holds at least the answer; over a weakest result exactly the answer."""
    more = 0
    for random in seeds(60):
        length = random.randint(3, 10)
        first, second = weakest(random, "l", length), weakest(random, "r", length)
        windowed = wstream_range(join(arrivals(first), arrivals(second), external=()), length)
        external = join(arrivals(first), arrivals(second))
        for tau in instants(first, second):
            wide, exact = bag(answer(windowed, tau)), bag(answer(external, tau))
            assert exact <= wide
            more += (wide - exact).total()
        union = sorted([*first, *second], key=lambda row: row.ts)
        output = wstream_range(arrivals(union), length)
        assert all(bag(answer(output, tau)) == bag(answer(arrivals(union), tau)) for tau in instants(union))
    assert more > 100


def test_results_do_not_expire_in_the_order_of_birth() -> None:
    """TV-1: b3·b12 is born after a6·a4 and expires before it, and with one external window lifetimes are 7, 10, 1, 3."""
    assert [exp for _, _, exp in intervals(join(LEFT, RIGHT))] != sorted(exp for _, _, exp in intervals(join(LEFT, RIGHT)))
    assert [exp - ts for _, ts, exp in intervals(join(LEFT, RIGHT, external={0}))] == [7, 10, 1, 3]
    assert emissions(join(LEFT, RIGHT)) == ["+a@4", "+a@6", "+b@12", "+a@13"]
