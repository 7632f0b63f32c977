"""What a join owes and how it is made later: the sheet's vectors A5 to A10, and that no pair is lost or made twice."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.source.join_memory import archive_metric, exact, kept, play
from benchmarks.source.owed_work import (
    Archive,
    KeyRun,
    Measures,
    independent,
    kept_runs,
    metric_by_formula,
    most_kept,
    position,
)
from warehouse.promise.allocation import Worth, allocate
from warehouse.promise.units import Unit, ViewBudget

A1 = ([1, 1, 1, 3, 2], [2, 3, 1, 1, 3])


def test_three_relations_drop_their_rows_independently() -> None:
    """Vector A5: the loss is at most the sum of what each relation loses alone, at most three times the least."""
    first, middle, last = (2, 1, 2), ((1, 2), (2, 1), (1, 2)), (2, 1, 2)
    results = [
        (a, b, c)
        for a, x in enumerate(first)
        for b, (left, right) in enumerate(middle)
        for c, y in enumerate(last)
        if x == left and y == right
    ]
    alone, lost_results = independent(results, (3, 3, 3), (2, 1, 1))
    best = most_kept(results, (3, 3, 3), (2, 1, 1))
    assert (len(results), alone, lost_results, best) == (6, [2, 2, 2], 5, 4)
    assert max(alone) <= len(results) - best <= lost_results <= sum(alone) <= 3 * (len(results) - best)


def test_how_like_two_answers_are() -> None:
    """Vector A6: five of seven."""
    measures = Measures.of(Counter(range(5)), Counter(range(7)))
    assert measures[:2] == (2, 5)
    assert measures[2:] == pytest.approx((0.8333, 0.7143, 0.8452, 1.0), abs=1e-4)
    assert Measures.of(Counter("aab"), Counter("abb")).missing == 2, "bags, not sets"


def test_rows_that_left_early_owe_their_younger_partners() -> None:
    """Vector A7: A1 under PROB; completing each row's range gives the three missing pairs."""
    last = play(A1, 3, 2, "PROB").last
    evicted = {(stream, number): end for stream in (0, 1) for number, end in enumerate(last[stream])}
    archive = Archive.of(A1, 3, evicted)
    assert archive.owed() == {(0, 0): [(0, 2)], (0, 1): [(1, 3)], (1, 1): [(3, 1)]}
    joined = archive.delivered()
    assert metric_by_formula(A1, 3, last) == archive_metric(exact(A1, 3), joined) == 6
    delivered = [pair for row in [*archive.owed()] for pair in archive.forward(row, 2 * (row[1] + 2) + 1)]
    assert sorted(delivered) == [(0, 2), (1, 3), (3, 1)]
    assert not archive.owed()


def test_rows_that_were_dropped_unseen_owe_their_older_partners() -> None:
    """Vector A8."""
    archive = Archive.of(A1, 3, {(0, 1): 1}, [(1, 2)])
    assert archive.delivered() == [(2, 3), (3, 1), (3, 4)]
    assert archive.owed() == {(1, 2): [(0, 2), (1, 2), (2, 2)], (0, 1): [(1, 3)]}
    assert archive_metric(exact(A1, 3), archive.delivered()) == 5
    assert archive.forward((0, 1), 9) == [(1, 3)], "not (1, 2), which the unseen row owes"
    assert archive.backward((1, 2)) == [(0, 2), (1, 2), (2, 2)]
    assert (archive.owed(), archive.backward((1, 2))) == ({}, [])


def test_a_batch_under_a_budget_reads_what_gives_most_for_a_row() -> None:
    """Vector A9, by the warehouse's own allocation: the second sub-index fits four rows, the third has no pair."""
    batch = Counter("aabc")
    zones = [Counter("abbbbddddd"), Counter("aaac"), Counter("dddddd")]
    worth = {Unit(0, number): Worth(pairs(batch, zone), zone.total()) for number, zone in enumerate(zones, start=1)}
    assert [value.pairs for value in worth.values()] == [6, 7, 0]
    assert allocate(worth, ViewBudget(rows=4), 4) == {Unit(0, 2): 7}
    assert [*allocate(worth, ViewBudget(rows=14), 14)] == [Unit(0, 2), Unit(0, 1)]
    owed = zones[0]
    reached = sum(count for key, count in owed.items() if batch[key])
    assert (sum(count for key, count in batch.items() if owed[key]) + reached, reached) == (8, 5)


def pairs(one: Counter[str], other: Counter[str]) -> int:
    """How many pairs have equal keys."""
    return sum(count * other[key] for key, count in one.items())


def test_runs_of_a_key_stay_by_priority_and_the_last_one_is_cut() -> None:
    """Vector A10."""
    runs = [KeyRun("R", "a", 1, 3, 0.4), KeyRun("R", "a", 3, 2, 0.4), KeyRun("S", "b", 2, 2, 0.3), KeyRun("R", "c", 3, 4, 0.1)]
    assert [*kept_runs(runs, 5).items()] == [(runs[1], 2), (runs[0], 3)]
    assert [*kept_runs(runs, 6).items()] == [(runs[1], 2), (runs[0], 3), (runs[2], 1)]


VALUES = st.lists(st.integers(0, 2), min_size=1, max_size=9)


@given(VALUES, VALUES, st.integers(1, 5), st.data())
def test_in_time_and_later_are_together_the_answer(one: list[int], other: list[int], window: int, data: st.DataObject) -> None:
    """Whatever was evicted or dropped, and in whatever pieces and order it is completed: each pair once."""
    length = min(len(one), len(other))
    streams = (one[:length], other[:length])
    rows = [(stream, number) for stream in (0, 1) for number in range(length)]
    evicted = {row: row[1] + data.draw(st.integers(0, window - 1)) for row in data.draw(st.sets(st.sampled_from(rows)))}
    archive = Archive.of(streams, window, evicted, data.draw(st.sets(st.sampled_from(rows))))
    delivered = archive.delivered()
    assert not {pair for owed in archive.owed().values() for pair in owed} & set(delivered)
    for row in data.draw(st.lists(st.sampled_from(rows), max_size=12)):
        delivered += archive.backward(row)
        delivered += archive.forward(row, position(row) + data.draw(st.integers(0, 2 * window)))
    for row in rows:
        delivered += archive.backward(row)
        delivered += archive.forward(row, 2 * (row[1] + window - 1) + 1)
    assert sorted(delivered) == sorted(exact(streams, window))
    assert not archive.owed()


@given(VALUES, st.integers(2, 5), st.integers(1, 3), st.sampled_from(["PROB", "LIFE", "RAND"]), st.booleans())
def test_the_formula_counts_rows_of_missing_pairs(
    values: list[int], window: int, half: int, policy: str, variable: bool
) -> None:
    """The Archive-metric by its formula, and as rows that occur in a missing pair, are the same."""
    streams = (values, values[::-1])
    run = play(streams, window, 2 * half, policy, variable=variable)  # type: ignore[arg-type]
    joined = kept(exact(streams, window), run)
    assert metric_by_formula(streams, window, run.last) == archive_metric(exact(streams, window), joined)
