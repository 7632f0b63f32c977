"""The vectors of the window-joins sheet, section 10."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import TYPE_CHECKING

import pytest

from tests.reference.engine.changes import Change, answer, arrivals, lifetimes
from tests.reference.engine.join_sets import Mode, batches, f1, f2, new_results, short_lived, view
from tests.reference.engine.join_state import complete, probe_order
from tests.reference.engine.joins import eager_join
from tests.reference.engine.lazy_joins import LazyJoin
from tests.reference.engine.strict_joins import as_changes, count_window_tombstones, effective, negative_results
from tests.reference.engine.tuples import Boundary, Row, combine, with_boundary

from .notation import label, labels, named

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

RUNS = (0, 5, 10, 15, 20)


def joined(row: Row) -> str:
    """``x1y1``, as the sheet writes results."""
    return label(row.id).replace("·", "")


def names(rows: Sequence[Row]) -> str:
    """Results, sorted, as the sheet writes them."""
    return " ".join(sorted(joined(row) for row in rows))


def fresh(inputs: Sequence[Sequence[Row]], previous: int, now: int) -> list[list[Row]]:
    """The rows of each input that arrived in ``(previous, now]``."""
    return [[row for row in rows if previous < row.ts <= now] for rows in inputs]


# --- A: two inputs ---

A = [named("x1:k@1 x2:k@7 x3:m@10", 10), named("y1:k@3 y2:k@4 y3:k@9 y4:k@11 y5:m@18", 6)]

A_RESULTS = [  # result, ts, exp, run; inclusive and exclusive: in no-restore, in restore
    ("x1y1", 3, 9, 5, "yes yes", "yes yes"),
    ("x1y2", 4, 10, 5, "yes yes", "yes yes"),
    ("x1y3", 9, 11, 10, "yes yes", "yes yes"),
    ("x2y1", 7, 9, 10, "no yes", "no yes"),
    ("x2y2", 7, 10, 10, "yes yes", "no yes"),
    ("x2y3", 9, 15, 10, "yes yes", "yes yes"),
    ("x1y4", 11, 11, 15, "no yes", "no no"),
    ("x2y4", 11, 17, 15, "yes yes", "yes yes"),
    ("x3y5", 18, 20, 20, "yes yes", "no yes"),
]

A_VIEWS: dict[Boundary, list[str]] = {
    "inclusive": ["x1y1 x1y2", "x1y2 x1y3 x2y2 x2y3", "x2y3 x2y4", "x3y5"],
    "exclusive": ["x1y1 x1y2", "x1y3 x2y3", "x2y4", ""],
}

A_KEPT: dict[tuple[Boundary, Mode], list[str]] = {
    ("inclusive", "no-restore"): ["x1 y2", "x2 x3 y3", "x3", ""],
    ("inclusive", "restore"): ["x1 y1 y2", "x1 x2 x3 y2 y3", "x2 x3 y3 y4", "x3 y5"],
    ("exclusive", "no-restore"): ["x1", "x2 x3", "", ""],
    ("exclusive", "restore"): ["x1 y1 y2", "x1 x2 x3 y3", "x2 x3 y4", "y5"],
}


def ended(inputs: Sequence[Sequence[Row]], boundary: Boundary) -> list[list[Row]]:
    """The inputs with exclusive ends."""
    return [with_boundary(rows, boundary) for rows in inputs]


@pytest.mark.parametrize("boundary", ["inclusive", "exclusive"])
@pytest.mark.parametrize("mode", ["no-restore", "restore"])
def test_two_inputs_report_what_the_table_says(boundary: Boundary, mode: Mode) -> None:
    """Each result of table A is reported in its run, with its times, if the table says so; both formulas agree."""
    column = 4 if boundary == "inclusive" else 5
    position = 0 if mode == "no-restore" else 1
    tick = 1 if boundary == "inclusive" else 0
    inputs, lazy = ended(A, boundary), LazyJoin(2, mode)
    for previous, now in pairwise(RUNS):
        expected = sorted(
            (row[0], row[1], row[2] + tick) for row in A_RESULTS if row[3] == now and str(row[column]).split()[position] == "yes"
        )
        split = batches(inputs, previous, now, mode)
        for results in (
            new_results(inputs, previous, now, mode),
            f1(split, now, mode),
            f2(split, now, mode),
            lazy.reevaluate(now, now + 5, fresh(inputs, previous, now)),
        ):
            assert sorted((joined(row), row.ts, row.exp) for row in results) == expected


@pytest.mark.parametrize("boundary", ["inclusive", "exclusive"])
def test_views_of_two_inputs(boundary: Boundary) -> None:
    """The current answers are those of the second table, by definition and event by event."""
    inputs = ended(A, boundary)
    eager = eager_join([arrivals(rows) for rows in inputs]).changes
    assert [names(view(inputs, now)) for now in RUNS[1:]] == A_VIEWS[boundary]
    assert [names(answer(eager, now)) for now in RUNS[1:]] == A_VIEWS[boundary]


@pytest.mark.parametrize(("boundary", "mode"), A_KEPT)
def test_rows_kept_of_two_inputs(boundary: Boundary, mode: Mode) -> None:
    """After each run exactly the rows that may still be needed are kept."""
    inputs, lazy, kept_labels = ended(A, boundary), LazyJoin(2, mode), []
    for previous, now in pairwise(RUNS):
        lazy.reevaluate(now, now + 5, fresh(inputs, previous, now))
        kept_labels.append(" ".join(labels([row for rows in lazy.kept() for row in rows])))
    assert kept_labels == A_KEPT[boundary, mode]


# --- B: three inputs ---

B = [named("x1:k@3 x2:k@14", 8), named("y1:k@4 y2:k@9", 8), named("z1:k@11 z2:k@7", 8)]

B_NEW: dict[tuple[Boundary, Mode], list[str]] = {
    ("inclusive", "no-restore"): ["", "x1y1z2 x1y2z2", "x2y2z1 x2y2z2", ""],
    ("inclusive", "restore"): ["", "x1y1z2 x1y2z2", "x1y1z1 x1y2z1 x2y2z1 x2y2z2", ""],
    ("exclusive", "no-restore"): ["", "x1y1z2 x1y2z2", "x2y2z1", ""],
    ("exclusive", "restore"): ["", "x1y1z2 x1y2z2", "x2y2z1 x2y2z2", ""],
}


@pytest.mark.parametrize(("boundary", "mode"), B_NEW)
def test_three_inputs_report_what_the_table_says(boundary: Boundary, mode: Mode) -> None:
    """Table B holds for Algorithms 4 and 5 in every probe order, and for the definition."""
    inputs = ended(B, boundary)
    expected = B_NEW[boundary, mode]
    assert [names(new_results(inputs, previous, now, mode)) for previous, now in pairwise(RUNS)] == expected
    for order in permutations(range(3)):
        lazy = LazyJoin(3, mode, order=order)
        reported = [names(lazy.reevaluate(now, now + 5, fresh(inputs, previous, now))) for previous, now in pairwise(RUNS)]
        assert reported == expected


class PrintedAlgorithm5(LazyJoin):
    """Algorithm 5 with the final test as it is printed: the other parts against the pivot's ts only."""

    def _of_group(self, i: int, key: Hashable, group: Sequence[Row], now: int) -> list[Row]:
        del now
        completed = complete(self.windows, {}, key, probe_order(i, self.order), lambda _: True)
        chosen = [({**partners, i: pivot}, pivot) for partners in completed for pivot in group]
        return [
            combine([parts[j] for j in range(len(self.windows))])
            for parts, pivot in chosen
            if all(part.exp > pivot.ts for part in parts.values())
        ]


def test_the_printed_test_of_algorithm_5_is_wrong() -> None:
    """The printed per-pivot test emits x2y1z1, whose parts y1 and x2 never lived together."""
    inputs, printed = ended(B, "inclusive"), PrintedAlgorithm5(3, "restore")
    runs = [printed.reevaluate(now, now + 5, fresh(inputs, previous, now)) for previous, now in pairwise(RUNS)]
    assert names(runs[2]) == "x1y1z1 x1y2z1 x2y1z1 x2y2z1 x2y2z2"


# --- C: strict input ---

C_LEFT = [Row(f"u{i}", (value,), ts) for i, (value, ts) in enumerate([("k", 1), ("k", 3), ("m", 6), ("k", 8), ("k", 14)], 1)]
C = [C_LEFT, named("w1:k@2 w2:k@7 w3:k@12", 10)]
C_STONES = count_window_tombstones(C_LEFT, 2, 0)

C_LOG = "2+u1w1 3+u2w1 6-u1w1 7+u2w2 8-u2w1 8-u2w2 8+u4w1 8+u4w2 12+u4w3 14+u5w2 14+u5w3"

C_TABLE = [  # run, I_nr, restore adds, D, V
    (5, "u1w1 u2w1", [], [], "u1w1 u2w1"),
    (10, "u4w1 u4w2", [("u2w2", 7, 8)], [("u1w1", 6), ("u2w1", 8)], "u4w1 u4w2"),
    (15, "u4w3 u5w2 u5w3", [], [], "u4w2 u4w3 u5w2 u5w3"),
    (20, "", [], [], "u4w3 u5w3"),
]


@pytest.fixture(params=["inclusive", "exclusive"])
def strict(request: pytest.FixtureRequest) -> list[list[Row]]:
    """The inputs of table C under a boundary."""
    return ended(C, request.param)


def test_tombstones_of_a_count_window() -> None:
    """A row of a window of 2 dies when the second later one arrives."""
    assert [(stone.id, stone.at) for stone in C_STONES] == [("u1", 6), ("u2", 8), ("u3", 14)]


def test_events_of_strict_input(strict: list[list[Row]]) -> None:
    """Algorithm 2 logs the events of the sheet."""
    changes = eager_join(as_changes(strict, C_STONES)).changes
    assert " ".join(f"{change.at}{'+' if change.sign > 0 else '-'}{joined(change.row)}" for change in changes) == C_LOG


def test_strict_input_reports_what_the_table_says(strict: list[list[Row]]) -> None:
    """Table C holds for the sets with effective ends, and for Algorithms 4 and 5 with tombstones."""
    no_restore, restore = LazyJoin(2, "no-restore", strict=True), LazyJoin(2, "restore", strict=True)
    kept_labels = []
    for (previous, now), (run, new, restored, deleted, answered) in zip(pairwise(RUNS), C_TABLE, strict=True):
        assert now == run
        known_rows = effective(strict, C_STONES, now)
        assert names(new_results(known_rows, previous, now, "no-restore")) == new
        assert [(joined(row), row.ts, row.exp) for row in short_lived(known_rows, previous, now)] == restored
        assert sorted((joined(c.row), c.at) for c in negative_results(strict, C_STONES, previous, now)) == deleted
        assert names(view(known_rows, now)) == answered
        stones = [stone for stone in C_STONES if previous < stone.at <= now]
        arrived = fresh(strict, previous, now)
        assert names(no_restore.reevaluate(now, now + 5, arrived, stones)) == new
        assert sorted((joined(row), row.ts, row.exp) for row in restore.reevaluate(now, now + 5, arrived, stones)) == sorted(
            (joined(row), row.ts, row.exp) for row in new_results(known_rows, previous, now, "restore")
        )
        kept_labels.append(" ".join(labels([row for rows in no_restore.kept() for row in rows])))
    assert kept_labels == ["u1 u2 w1", "u3 u4 w1 w2", "u4 u5 w2 w3", "u4 u5 w3"]


def test_event_log_and_sets_agree_on_lifetimes(strict: list[list[Row]]) -> None:
    """What Algorithm 2 emitted lived as long as the sets with all tombstones say."""
    eager: list[Change] = eager_join(as_changes(strict, C_STONES)).changes
    whole = new_results(effective(strict, C_STONES, 20), 0, 20, "restore")
    assert sorted((joined(row), row.ts, row.exp) for row in lifetimes(eager)) == sorted(
        (joined(row), row.ts, row.exp) for row in whole
    )
