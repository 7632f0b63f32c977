from __future__ import annotations

import pytest

from tests.reference.engine import snapshot as q
from tests.reference.engine.changes import answer, arrivals, lifetimes
from tests.reference.engine.negation import Policy, anti_join, bag_difference
from tests.reference.engine.periodic import evaluations
from tests.reference.engine.tuples import Row

from .generators import agrees, cancelling, seeds, weak, weakest
from .notation import emissions, intervals, labels, negatives, spans, stream

EXCEPT_ALL = q.except_all(q.scan("left"), q.scan("right"))
NOT_EXISTS = q.anti_join(q.scan("left"), q.scan("right"), q.matches())
Policies = pytest.mark.parametrize("policy", ["oldest", "youngest"])


@Policies
def test_bag_difference_event_by_event(policy: Policy) -> None:
    """TV-7(a): the end of v1 leaves one row on each side, so v4 is cancelled at 11 and comes back at 12."""
    changes = bag_difference(arrivals(stream("v1 v4", 10)), arrivals(stream("v2", 10)), policy)
    sizes = [len(answer(changes, tau)) for tau in range(16)]
    assert sizes == [0, 1, 0, 0, *[1] * 7, 0, 1, 1, 0, 0]
    if policy == "youngest":
        assert emissions(changes) == ["+v@1", "-v@2", "+v@4", "-v@11", "+v@12"]
        assert intervals(changes) == [("v1", 1, 2), ("v4", 4, 11), ("v4", 12, 14)]
    else:
        assert intervals(changes) == [("v1", 1, 2), ("v1", 4, 11), ("v4", 12, 14)]
        assert negatives(changes) == 1


@Policies
def test_nothing_returns_at_equality(policy: Policy) -> None:
    """TV-7(b): when the first of two right rows ends there is still one for the one on the left."""
    changes = bag_difference(arrivals(stream("v1", 30)), arrivals(stream("v2 v3", 10)), policy)
    assert emissions(changes) == ["+v@1", "-v@2", "+v@13"]
    assert intervals(changes) == [("v1", 1, 2), ("v1", 13, 31)]


@Policies
def test_bag_difference_agrees_with_the_definition(policy: Policy) -> None:
    """The corrected rules give the right value counts at every instant: equal, own and unpredictable lifetimes."""
    for random in seeds(120):
        equal = arrivals(weakest(random, "l", 8)), arrivals(weakest(random, "r", random.randint(3, 12)))
        own = arrivals(weak(random, "l", count=12)), arrivals(weak(random, "r"))
        early = cancelling(random, weak(random, "l", count=12)), cancelling(random, weak(random, "r"))
        for left, right in (equal, own, early):
            assert agrees(bag_difference(left, right, policy), EXCEPT_ALL, left=left, right=right)


def test_the_result_is_the_oldest_or_the_youngest_rows() -> None:
    """With equal lifetimes the rows in the answer are the oldest, or the youngest, of each value on the left."""
    for random in seeds(40):
        left, right = weakest(random, "l", 8, count=12), weakest(random, "r", 8)
        for policy in ("oldest", "youngest"):
            changes = bag_difference(arrivals(left), arrivals(right), policy)
            for tau in range(40):
                shown = [row.id for row in answer(changes, tau)]
                for value in ("a", "b"):
                    live = [row.id for row in left if row.live(tau) and row.value == (value,)]
                    count = sum(row_id in live for row_id in shown)
                    chosen = live[:count] if policy == "oldest" else live[len(live) - count :]
                    assert sorted(map(str, chosen)) == sorted(str(row_id) for row_id in shown if row_id in live)


def test_the_oldest_rows_need_fewer_negatives() -> None:
    """With equal lifetimes, results that are the oldest rows are cancelled by right arrivals only, far less in all."""
    counts = {"oldest": 0, "youngest": 0}
    for random in seeds(100):
        left, right = arrivals(weakest(random, "l", 10, count=14)), arrivals(weakest(random, "r", 10))
        right_instants = {change.at for change in right}
        for policy in ("oldest", "youngest"):
            changes = bag_difference(left, right, policy)
            counts[policy] += negatives(changes)
            if policy == "oldest":
                assert all(change.at in right_instants for change in changes if change.sign < 0)
    assert counts["oldest"] * 1.5 < counts["youngest"]


def test_anti_join_event_by_event() -> None:
    """TV-8(a): v4 waits until the right row is gone; at 4 to 10 nothing is in the answer."""
    changes = anti_join(arrivals(stream("v1 v4", 10)), arrivals(stream("v2", 10)))
    assert emissions(changes) == ["+v@1", "-v@2", "+v@12"]
    assert intervals(changes) == [("v1", 1, 2), ("v4", 12, 14)]
    assert not any(answer(changes, tau) for tau in range(4, 11))


def test_anti_join_at_re_evaluations() -> None:
    """TV-8(b): with an interval of 4 both results are only seen by restore, with 5 one of them."""
    changes = anti_join(arrivals(stream("v1 u6", 10)), arrivals(stream("v0 u8", 10)))
    assert intervals(changes) == [("u6", 6, 8), ("v1", 10, 11)]
    by_four = evaluations(changes, [4, 8, 12])
    assert [labels(run.rstream) for run in by_four] == [[], [], []]
    assert [spans(run.restored) for run in by_four] == [[], [("u6", 6, 8)], [("v1", 10, 11)]]
    by_five = evaluations(changes, [5, 10, 15])
    assert [labels(run.rstream) for run in by_five] == [[], ["v1"], []]
    assert [labels(run.restored) for run in by_five] == [[], ["u6"], []]


def test_anti_join_agrees_with_the_definition() -> None:
    """The answer is right at every instant, on lifetimes of their own and on unpredictable ones."""
    for random in seeds(120):
        own = arrivals(weak(random, "l", values="abc")), arrivals(weak(random, "r", count=5, values="abc"))
        early = cancelling(random, weak(random, "l", values="abc")), cancelling(random, weak(random, "r", values="abc"))
        for left, right in (own, early):
            assert agrees(anti_join(left, right), NOT_EXISTS, left=left, right=right)


def test_natural_ends_on_the_left_need_no_negatives() -> None:
    """Every negative of an anti-join stands at the arrival of a right row."""
    for random in seeds(40):
        left, right = arrivals(weak(random, "l")), arrivals(weak(random, "r"))
        arrived = {change.at for change in right}
        assert all(change.at in arrived for change in anti_join(left, right) if change.sign < 0)


def test_null_has_no_partner() -> None:
    """A left row with a null key stays, and a right one removes nothing."""
    left = arrivals([Row("n", (None,), 1, 9), Row("a", ("a",), 1, 9)])
    right = arrivals([Row("m", (None,), 2, 9), Row("b", ("a",), 3, 9)])
    assert [(row.id, row.exp) for row in lifetimes(anti_join(left, right))] == [("n", 9), ("a", 3)]
    assert agrees(anti_join(left, right), NOT_EXISTS, left=left, right=right)


def test_both_forms_on_the_same_rows() -> None:
    """Two left rows and a right one: bag difference keeps one, the anti-join none."""
    left, right = arrivals(stream("v1 v4", 10)), arrivals(stream("v2", 10))
    assert (len(answer(bag_difference(left, right), 5)), len(answer(anti_join(left, right), 5))) == (1, 0)
