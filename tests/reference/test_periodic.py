from __future__ import annotations

from itertools import pairwise

from tests.reference.engine.changes import arrivals
from tests.reference.engine.distinct import counting_distinct, weak_distinct
from tests.reference.engine.joins import join
from tests.reference.engine.periodic import Evaluation, evaluations, lost, restored_values, seen_at
from tests.reference.engine.tuples import BEGINNING, Row

from .generators import cancelling, seeds, weak, weakest
from .notation import labels, spans, stream

RESULTS = join(arrivals(stream("a1 b3 a6", 10)), arrivals(stream("a4 c5 b12 a13", 10)))


def test_streams_of_a_join() -> None:
    """TV-1: what each re-evaluation at a multiple of 5 reports; b3·b12 is seen by restore only."""
    table = [
        (run.at, labels(run.rstream), labels(run.istream), labels(run.dstream), labels(run.restored))
        for run in evaluations(RESULTS, [5, 10, 15, 20])
    ]
    assert table == [
        (5, ["a1·a4"], ["a1·a4"], [], []),
        (10, ["a1·a4", "a6·a4"], ["a6·a4"], [], []),
        (15, ["a6·a13"], ["a6·a13"], ["a1·a4", "a6·a4"], ["b3·b12"]),
        (20, [], [], ["a6·a13"], []),
    ]
    third = evaluations(RESULTS, [5, 10, 15])[2]
    assert labels(third.istream_restore) == labels(third.rstream_restore) == ["a6·a13", "b3·b12"]


def test_streams_of_distinct_rows() -> None:
    """TV-6: the promoted row is restored at 15, though its value had been reported; counting has nothing to restore."""
    rows = arrivals(stream("x1 x2 y3", 10))
    weakly, counting = evaluations(weak_distinct(rows), [5, 10, 15]), evaluations(counting_distinct(rows), [5, 10, 15])
    for runs in (weakly, counting):
        assert [sorted(row.value[0] for row in run.rstream) for run in runs] == [["x", "y"], ["x", "y"], []]
    assert [spans(run.restored) for run in weakly] == [[], [], [("x2", 11, 12)]]
    assert not any(run.restored for run in counting)
    assert not any(restored_values(*pair) for pair in pairwise(weakly))


def test_values_that_were_unseen_are_restored_once() -> None:
    """Two short-lived rows of an unseen value are one restored value."""
    rows = (Row(1, ("x",), 6, 7), Row(2, ("x",), 8, 9))
    before = Evaluation(5, (), (), (), ())
    after = Evaluation(10, (), (), (), rows)
    assert restored_values(before, after) == {("x",): 1}
    assert restored_values(None, after) == {("x",): 1}
    assert restored_values(Evaluation(5, rows[:1], (), (), ()), after) == {}


def test_reports_add_up() -> None:
    """An answer is the one before without Dstream and with Istream, and each row is new or restored exactly once."""
    for random in seeds(60):
        changes, interval = cancelling(random, weak(random, "r", count=12)), random.randint(1, 6)
        runs = evaluations(changes, range(interval, 40 + interval, interval))
        for previous, run in pairwise(runs):
            assert set(run.rstream) == (set(previous.rstream) - set(run.dstream)) | set(run.istream)
            assert not set(run.istream) & set(previous.rstream)
        reported = [row for run in runs for row in run.istream_restore]
        assert len(reported) == len(set(reported)) == len({change.row for change in changes if change.sign > 0})


def test_a_row_is_seen_at_the_grid_points_of_its_life() -> None:
    """A row is in the answers from the first grid point at or after ts to the last before exp; lost if there is none."""
    seen = 0
    for random in seeds(60):
        interval = random.randint(1, 7)
        for row in weak(random, "r", count=12):
            instants = [tau for tau in range(0, 50, interval) if row.live(tau)]
            assert list(seen_at(row, interval)) == instants
            assert lost(row, interval) == (not instants)
            assert not lost(row, interval) or row.exp - row.ts < interval
            seen += bool(instants) and row.exp - row.ts < interval
    assert seen > 20  # a short life need not be lost


def test_equal_lifetimes_are_never_lost() -> None:
    """Rows that live as long as the interval are all seen."""
    for random in seeds(30):
        interval = random.randint(1, 7)
        assert not any(lost(row, interval) for row in weakest(random, "r", interval))


def test_the_first_evaluation_counts_everything_before() -> None:
    """Without a previous instant all rows so far are new; with one, only later ones."""
    rows = arrivals(stream("a1 a6", 10))
    assert labels(evaluations(rows, [8], BEGINNING)[0].istream) == ["a1", "a6"]
    assert labels(evaluations(rows, [8], 5)[0].istream) == ["a6"]
