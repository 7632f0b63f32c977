"""The vectors of joins as real streams: tables A, B and C of the window-joins sheet (section 10), TV-1 and TV-2.

A tick is an hour, Delta is five of them, and a row's end is exclusive. Table A::

    tick   0....5....10...15...20
    x1(k)   [1.......11)
    x2(k)         [7.......17)
    x3(m)            [10.......20)
    y1(k)     [3....9)
    y2(k)      [4....10)
    y3(k)           [9....15)
    y4(k)             [11...17)
    y5(m)                    [18...24)
    runs        |    |    |    |
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.operations.projects import Project, text
from tests.reference.notation import named
from tests.reference.test_join_vectors import A_RESULTS, A_VIEWS, C_TABLE, RUNS, A, B

from .warehouses import FOREVER, Lifetimes, land, lives, restored, shown, unbounded, view, windowed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from tests.reference.engine.tuples import Row

C_LEFT = named("u1:k@1 u2:k@3 u3:m@6 u4:k@8 u5:k@14", 0)
C_RIGHT = named("w1:k@2 w2:k@7 w3:k@12", 10)
LEFT, RIGHT = named("a1:a@1 b3:b@3 a6:a@6", 0), named("a4:a@4 c5:c@5 b12:b@12 a13:a@13", 0)
CHAIN = [named("a1:a@1 b1:b@1", 0), named("a2:a@2 b2:b@2", 0), named("a7:a@7 b3:b@3", 0)]
"""TV-2, and beside it a value b whose parts do meet."""
ROWS: dict[str, Sequence[Row]] = {
    **{f"a{number}": rows for number, rows in enumerate(A)},
    **{f"b{number}": rows for number, rows in enumerate(B)},
    "c0": C_LEFT, "c1": C_RIGHT, "lefts": LEFT, "rights": RIGHT,
    **{f"s{number}": rows for number, rows in enumerate(CHAIN)},
}  # fmt: skip
UNBOUNDED = ("c0", "lefts", "rights", "s0", "s1", "s2")
PAIR = "SELECT l.id || r.id AS id, l.k FROM {} l JOIN {} r ON l.k = r.k"
TRIPLE = "SELECT l.id || m.id || r.id AS id, l.k FROM {} l JOIN {} m ON l.k = m.k JOIN {} r ON m.k = r.k"
WINDOW, INTERNAL = "time_window({}, INTERVAL {} HOURS)", "time_window({}, INTERVAL {} HOURS, internal => true)"
VIEWS = {
    "a": PAIR.format("a0", "a1"),
    "b": TRIPLE.format("b0", "b1", "b2"),
    "c": PAIR.format("row_window(c0, 2)", "c1"),
    "external": PAIR.format(WINDOW.format("lefts", 10), WINDOW.format("rights", 10)),
    "left_external": PAIR.format(WINDOW.format("lefts", 10), INTERNAL.format("rights", 10)),
    "internal": PAIR.format(INTERNAL.format("lefts", 10), INTERNAL.format("rights", 10)),
    "chain": TRIPLE.format(*(INTERNAL.format(name, 5) for name in ("s0", "s1", "s2"))),
}


class Run(NamedTuple):
    """What a view shows after a run, which of these rows are new, and what was restored."""

    shown: Lifetimes
    new: Lifetimes
    restored: Lifetimes


def _lines(rows: Sequence[Row], previous: int, now: int, *, ends: bool) -> list[str]:
    arrived = [row for row in rows if previous < row.ts <= now]
    return [
        ",".join([row.value[0], text(row.ts), *([text(row.exp)] if ends else []), str(row.id)]) for row in arrived
    ]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> dict[str, list[Run]]:
    """Return the results of every view after each run."""
    streams = {name: unbounded(name) if name in UNBOUNDED else windowed(name, 10) for name in ROWS}
    reported = {"short_lived": "report"}
    views = {name: view(sql, "k", **(reported if name != "c" else {})) for name, sql in VIEWS.items()}  # c is computed by keys
    interval = {"update_interval": "5h"}
    project = Project(tmp_path_factory.mktemp("vectors") / "project", spark, streams, interval, views=views)
    project.update(0)
    runs_of: dict[str, list[Run]] = {name: [] for name in VIEWS}
    for previous, now in pairwise(RUNS):
        for name, rows in ROWS.items():
            ends = name not in UNBOUNDED
            header = "k,b,e,id" if ends else "k,b,id"
            land(project, now, {name: _lines(rows, previous, now, ends=ends)}, header)
        project.update(now)
        for name in VIEWS:
            new: list[dict[str, Any]] = [row for row in project.live(name) if row["_load_slot"] == now // 5]
            restored_rows = restored(project, name, "id") if name != "c" else []
            runs_of[name].append(Run(shown(project, name, "id"), lives(new, "id"), restored_rows))
    return runs_of


def test_two_inputs_report_what_table_a_says(runs: dict[str, list[Run]]) -> None:
    """Each result is new or restored in its run, with its times; without a lifetime it is no result."""
    for now, run in zip(RUNS[1:], runs["a"], strict=True):
        results = [(name, ts, end, answers.split()) for name, ts, end, at_run, _, answers in A_RESULTS if at_run == now]
        assert run.new == sorted((name, ts, end) for name, ts, end, answers in results if answers[0] == "yes")
        assert run.restored == sorted((name, ts, end) for name, ts, end, answers in results if answers == ["no", "yes"])


def test_the_view_of_two_inputs(runs: dict[str, list[Run]]) -> None:
    """Its rows at each run are those of the sheet's second table."""
    assert [" ".join(name for name, _, _ in run.shown) for run in runs["a"]] == A_VIEWS["exclusive"]


def test_three_inputs_report_what_table_b_says(runs: dict[str, list[Run]]) -> None:
    """Combinations whose parts never lived together, x2y1z1 and x2y1z2, are reported nowhere."""
    assert [run.new for run in runs["b"]] == [[], [("x1y1z2", 7, 11), ("x1y2z2", 9, 11)], [("x2y2z1", 14, 17)], []]
    assert [run.restored for run in runs["b"]] == [[], [], [("x2y2z2", 14, 15)], []]
    assert [run.shown for run in runs["b"]] == [run.new for run in runs["b"]]


def test_a_count_window_and_a_time_window(runs: dict[str, list[Run]]) -> None:
    """The view over strict input is that of table C: rows pushed out of the count window take their results along."""
    assert [" ".join(name for name, _, _ in run.shown) for run in runs["c"]] == [shown for *_, shown in C_TABLE]


def test_external_and_internal_windows(runs: dict[str, list[Run]]) -> None:
    """TV-1: an external window ends results, an internal one bounds memory only."""
    a1a4, a6a4, b3b12, a6a13 = (("a1a4", 4.0), ("a6a4", 6.0), ("b3b12", 12.0), ("a6a13", 13.0))
    by_run = [run.new + run.restored for run in runs["external"]]
    assert by_run == [[(*a1a4, 11)], [(*a6a4, 14)], [(*a6a13, 16), (*b3b12, 13)], []]
    assert [run.restored for run in runs["external"]] == [[], [], [(*b3b12, 13)], []]
    by_run = [run.new for run in runs["left_external"]]
    assert by_run == [[(*a1a4, 11)], [(*a6a4, 16)], [(*a6a13, 16)], []]
    assert runs["left_external"][2].restored == [(*b3b12, 13)]
    assert runs["internal"][-1].shown == sorted((*result, FOREVER) for result in (a1a4, a6a4, a6a13))
    assert [run.restored for run in runs["internal"]] == [[], [], [(*b3b12, FOREVER)], []]


def test_views_of_windows_at_each_run(runs: dict[str, list[Run]]) -> None:
    """TV-1: Rstream at 5, 10, 15 and 20."""
    names_shown = [" ".join(name for name, _, _ in run.shown) for run in runs["external"]]
    assert names_shown == ["a1a4", "a1a4 a6a4", "a6a13", ""]


def test_internal_windows_still_end_what_is_joined(runs: dict[str, list[Run]]) -> None:
    """TV-2: a7 meets no pair whose parts its window has lost; b3 does, and the result stays."""
    assert [run.shown for run in runs["chain"]] == [[("b1b2b3", 3, FOREVER)]] * 4
    assert [run.restored for run in runs["chain"]] == [[]] * 4
