from __future__ import annotations

from fractions import Fraction

from tests.reference.engine import snapshot as q
from tests.reference.engine.aggregates import (
    appended,
    avg_of,
    count,
    count_of,
    group_by,
    max_of,
    min_of,
    prune_for_max,
    sum_of,
)
from tests.reference.engine.changes import Change, answer, arrivals, lifetimes, timeline
from tests.reference.engine.output_windows import wstream_rows
from tests.reference.engine.periodic import evaluations
from tests.reference.engine.row_windows import row_window
from tests.reference.engine.tuples import Row, bag, live_rows

from .generators import agrees, cancelling, instants, seeds, weak
from .notation import negatives

NUMBERS = arrivals(Row(ts, (value,), ts) for ts, value in enumerate([3, 1, 4, 1, 5, 9, 2], 1))
GROUPED = arrivals(
    Row(f"{group}{ts}", (group, value), ts, ts + 4) for group, value, ts in [("g", 5, 1), ("h", 7, 2), ("g", 1, 3), ("g", 2, 9)]
)


def numbers(changes: list[Change]) -> list[object]:
    """The last column of each row that came into the answer."""
    return [change.row.value[-1] for change in changes if change.sign > 0]


def test_sums_over_a_count_window_and_without_a_window() -> None:
    """TV-9(a): the sums of the newest 5 and of all; a change is emitted once an instant, and only if the value changed."""
    newest = row_window(NUMBERS, 5)
    sums = group_by(newest, None, [sum_of(0)])
    assert numbers(sums) == [3, 4, 8, 9, 14, 20, 21]
    assert numbers(group_by(NUMBERS, None, [sum_of(0)])) == [3, 4, 8, 9, 14, 23, 25]
    assert numbers(group_by(newest, None, [count])) == [1, 2, 3, 4, 5]
    assert [[row.value[0] for row in answer(sums, tau)] for tau in range(1, 8)] == [[n] for n in [3, 4, 8, 9, 14, 20, 21]]
    internal = appended(sums)
    assert [row.value[0] for row in answer(internal, 6)] == [3, 4, 8, 9, 14, 20]
    assert (negatives(internal), negatives(sums)) == (0, 6)


def test_sums_per_group() -> None:
    """TV-9(b): rows of groups are replaced, and an empty group has none."""
    sums = group_by(GROUPED, lambda value: value[:1], [sum_of(1)])
    expected = {1: "g5", 2: "g5 h7", 3: "g6 h7", 4: "g6 h7", 5: "g1 h7", 6: "g1", 7: "", 8: "", 13: ""}
    expected |= dict.fromkeys(range(9, 13), "g2")
    assert {tau: " ".join(sorted(f"{row.value[0]}{row.value[1]}" for row in answer(sums, tau))) for tau in expected} == expected
    assert [(change.at, change.row.value) for change in appended(sums)] == [
        (1, ("g", 5)), (2, ("h", 7)), (3, ("g", 6)), (5, ("g", 1)), (9, ("g", 2)),
    ]  # fmt: skip


def test_an_aggregate_without_groups_always_has_a_row() -> None:
    """TV-9(b): SUM is null and COUNT 0 when nothing is live."""
    scalar = group_by(GROUPED, None, [sum_of(1), count])
    expected = {1: (5, 1), 2: (12, 2), 3: (13, 3), 4: (13, 3), 5: (8, 2), 6: (1, 1), 7: (None, 0), 8: (None, 0), 13: (None, 0)}
    expected |= dict.fromkeys(range(9, 13), (2, 1))
    assert {tau: [row.value for row in answer(scalar, tau)] for tau in expected} == {t: [v] for t, v in expected.items()}


def test_sums_at_re_evaluations() -> None:
    """TV-9(b): every 5 ticks, the sums 5 and 6 of g are never seen."""
    runs = evaluations(group_by(GROUPED, lambda value: value[:1], [sum_of(1)]), [5, 10, 15])
    assert [sorted(row.value for row in run.rstream) for run in runs] == [[("g", 1), ("h", 7)], [("g", 2)], []]


def test_maximum_with_a_pruned_window() -> None:
    """TV-9(c): 75 until 6, 73 until 9, 61 at 10, then null; at 5 three of four rows must be kept."""
    rows = [Row(ts, (value,), ts, ts + 6) for value, ts in [(75, 1), (60, 2), (73, 4), (61, 5)]]
    largest = group_by(arrivals(rows), None, [max_of(0)])
    maxima = [answer(largest, tau)[0].value[0] for tau in range(1, 13)]
    assert maxima == [75] * 6 + [73] * 3 + [61] + [None] * 2
    assert [row.value[0] for row in prune_for_max(live_rows(rows, 5), 0)] == [75, 73, 61]


def test_a_pruned_window_has_the_same_maximum() -> None:
    """Pruned at every arrival, the stored rows give the maximum of the whole window at every instant."""
    pruned = 0
    for random in seeds(60):
        rows, stored = weak(random, "r", values="abcdef", count=14), list[Row]()
        ticks = {tick.now: [change.row for _, change in tick.changes] for tick in timeline(arrivals(rows))}
        for tau in instants(rows):
            stored = prune_for_max([*live_rows(stored, tau), *ticks.get(tau, ())], 0)
            live = live_rows(rows, tau)
            assert max((row.value for row in stored), default=None) == max((row.value for row in live), default=None)
            pruned += len(live) - len(stored)
    assert pruned > 100


def test_groups_agree_with_the_definition() -> None:
    """All aggregates of groups and of everything are right at every instant, nulls among the values."""
    measures = [count, count_of(1), sum_of(1), min_of(1), max_of(1), avg_of(1)]
    for random in seeds(60):
        rows = [Row(row.id, (*row.value, random.choice([None, 1, 2, 5])), row.ts, row.exp) for row in weak(random, "r", count=12)]
        for changes in (arrivals(rows), cancelling(random, rows)):
            by_key = group_by(changes, lambda value: value[:1], measures)
            assert agrees(by_key, q.group(q.scan("rows"), lambda value: value[:1], measures), rows=changes)
            scalar, query = group_by(changes, None, measures), q.group(q.scan("rows"), None, measures)
            for tau in range(rows[0].ts, 40):
                assert bag(answer(scalar, tau)) == q.snapshot(query, {"rows": lifetimes(changes)}, tau)


def test_an_operator_above_sees_pairs() -> None:
    """A sum of counts per group stays right, since each replaced row is cancelled."""
    for random in seeds(40):
        rows = arrivals(weak(random, "r", count=12))
        counts = group_by(rows, lambda value: value[:1], [count])
        total = group_by(counts, None, [sum_of(1)])
        query = q.group(q.group(q.scan("rows"), lambda value: value[:1], [count]), None, [sum_of(1)])
        plain = [change.row for change in rows]
        assert all(bag(answer(total, tau)) == q.snapshot(query, {"rows": plain}, tau) for tau in range(plain[0].ts, 40))


def test_averages_are_exact() -> None:
    """The average of 1, 1 and 2 is four thirds, and of nothing null."""
    rows = arrivals(Row(n, (value,), 1, 9) for n, value in enumerate([1, 1, 2]))
    assert numbers(group_by(rows, None, [avg_of(0)])) == [Fraction(4, 3), None]


def test_chunked_sums() -> None:
    """The sum of the last ten 6-tick chunks (Wstream of sums) is the sum of the last 60 ticks."""
    for random in seeds(10):
        values = [(ts, random.randint(1, 9)) for ts in sorted(random.randint(1, 200) for _ in range(80))]
        chunks = [Row(k, (sum(value for ts, value in values if 6 * (k - 1) < ts <= 6 * k),), 6 * k) for k in range(1, 35)]
        chunked = group_by(wstream_rows(arrivals(chunks), 10), None, [sum_of(0)])
        for k in range(1, 35):
            direct = sum(value for ts, value in values if 6 * k - 60 < ts <= 6 * k)
            assert [row.value for row in answer(chunked, 6 * k)] == [(direct,)]
