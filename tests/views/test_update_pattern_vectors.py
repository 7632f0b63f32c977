"""TV-3 to TV-12 of the update-patterns sheet (section 7) as real streams, at the times of updates.

A tick is an hour; ``x4`` is a row with key x and ts 4, ``x4=7`` one with the value 7. Updates are at 0, 5, 10, 15, 20 and 30,
TV-8 (b) has another project with an update every four ticks.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.operations.projects import Project, stream, text
from warehouse import Warehouse

from .warehouses import FOREVER, Lifetimes, land, lives, restored, restored_in, shown, view

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

RUNS = (-1, 0, 5, 10, 15, 20, 30)
STREAMS = {
    "three_x": "x1", "three_y": "y2",
    "four": "x1 x4 y5 x8 x18",
    "six": "x1 x2 y3",
    "left": "v1 v4", "right": "v2", "longer": "v1", "shorter": "v2 v3",
    "other_left": "v1 u6", "other_right": "v0 u8",
    "nine_a": "a1=3 a2=1 a3=4 a4=1 a5=5 a6=9 a7=2",
    "nine_b": "g1=5 h2=7 g3=1 g9=2",
    "nine_c": "a1=75 a2=60 a4=73 a5=61",
    "same_sum": "i1=5 i6=0",
    "ten": "a1 b2 a3",
    "eleven": "Z2 A3 Z4 Z5 A6 A7",
    "twelve_a": "v1 w2", "twelve_b": "v3 v4 w5", "twelve_c": "v6",
}  # fmt: skip
CHANGES = {0: ["A,{0},upsert"], 5: ["Z,{4},upsert"], 10: ["A,{6},delete"], 15: ["A,{11},upsert"]}


def window(name: str, ticks: int = 10, *, internal: bool = False) -> str:
    """Return a window over a stream as it stands in FROM."""
    return f"time_window({name}, INTERVAL {ticks} HOURS{', internal => true' if internal else ''})"


ANTI = "SELECT k FROM {} l WHERE NOT EXISTS (SELECT 1 FROM {} r WHERE r.k = l.k)"
VIEWS = {
    "union": f"SELECT k FROM {window('three_y', 5)} UNION ALL SELECT k FROM {window('three_x')}",
    "distinct": f"SELECT DISTINCT k FROM {window('four')}",
    "distinct_of_own_ends": "SELECT DISTINCT k FROM five",
    "distinct_unseen": f"SELECT DISTINCT k FROM {window('six')}",
    "difference": f"SELECT k FROM {window('left')} EXCEPT ALL SELECT k FROM {window('right')}",
    "difference_of_longer": f"SELECT k FROM {window('longer', 30)} EXCEPT ALL SELECT k FROM {window('shorter')}",
    "anti": ANTI.format(window("left"), window("right")),
    "other_anti": ANTI.format(window("other_left"), window("other_right")),
    "sum_of_five": "SELECT sum(v) AS k, count(*) AS n FROM row_window(nine_a, 5)",
    "sum_of_all": "SELECT sum(v) AS k, count(*) AS n FROM nine_a",
    "sums": f"SELECT k, sum(v) AS n FROM {window('nine_b', 4)} GROUP BY k",
    "scalar": f"SELECT sum(v) AS k, count(*) AS n FROM {window('nine_b', 4)}",
    "appended": f"SELECT k, sum(v) AS n FROM {window('nine_b', 4, internal=True)} GROUP BY k",
    "appended_when_changed": f"SELECT k, sum(v) AS n FROM {window('same_sum', internal=True)} GROUP BY k",
    "highest": f"SELECT max(v) AS k FROM {window('nine_c', 6)}",
    "selected_after": "SELECT k FROM row_window(ten, 2) WHERE k = 'a'",
    "selected_before": "SELECT k FROM row_window((SELECT k FROM ten WHERE k = 'a'), 2)",
    "as_of": f"SELECT l.k FROM {window('eleven')} l JOIN known r ON r.k = l.k",
    "with_current": f"SELECT l.k FROM {window('eleven')} l JOIN current r ON r.k = l.k",
    "chosen": (
        f"SELECT s.k FROM {window('twelve_a')} s JOIN {window('twelve_b')} t ON t.k = s.k"
        f" WHERE NOT EXISTS (SELECT 1 FROM {window('twelve_c')} u WHERE u.k = s.k)"
    ),
}


class Run(NamedTuple):
    """What a view shows at an update: its columns and lifetimes; what is spare beside it; what was restored."""

    shown: Lifetimes
    spare: Lifetimes
    restored: Lifetimes

    @property
    def values(self) -> str:
        """The columns alone, in order."""
        return " ".join(value for value, _, _ in self.shown)


def _rows(words: str, previous: int, now: int) -> list[str]:
    rows = [(word[0], *word[1:].partition("=")) for word in words.split()]
    return [f"{key},{text(int(ts))},{value}" for key, ts, _, value in rows if previous < int(ts) <= now]


def _unbounded(name: str) -> dict[str, object]:
    columns = {"k": "string", "b": "timestamp", "v": "int"}
    return stream(landing=f"landing/{name}", columns=columns, max_lifetime=None, expires=None)


def _relation(name: str, *, retroactive: bool) -> dict[str, object]:
    columns = {"k": "string", "b": "timestamp", "op": "string"}
    return {
        "landing": f"landing/{name}", "format": "csv", "search_key": "k", "changed_at": "b", "op": "op",
        "retroactive": retroactive, "columns": columns,
    }  # fmt: skip


def _seen(project: Project, warehouse: Warehouse, table: str) -> Run:
    epoch = project.epoch
    state = epoch.table(table)
    assert state is not None
    columns = [column.name for column in state.declaration.columns]
    spare = epoch.table(f"{table}.spare")
    spare_rows = lives(project.live(spare.name), *columns) if spare else []
    return Run(shown(project, table, *columns), spare_rows, restored_in(warehouse, epoch.number, table, *columns))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """The warehouse, before its first update."""
    streams = {**{name: _unbounded(name) for name in STREAMS}, "five": stream(landing="landing/five", max_lifetime="30h")}
    relations = {"known": _relation("known", retroactive=False), "current": _relation("current", retroactive=True)}
    kinds = {name: {"short_lived": "report"} for name in ("anti", "other_anti", "distinct", "distinct_unseen")}
    views: Mapping[str, dict[str, object]] = {
        name: view(sql, **kinds.get(name, {})) for name, sql in VIEWS.items()
    }
    directory = tmp_path_factory.mktemp("patterns") / "project"
    return Project(directory, spark, streams, {"update_interval": "5h"}, views=dict(views), relations=relations)


@pytest.fixture(scope="module")
def runs(project: Project) -> dict[str, dict[int, Run]]:
    """Return the runs of every view at every update."""
    runs_of: dict[str, dict[int, Run]] = {name: {} for name in VIEWS}
    for previous, now in pairwise(RUNS):
        land(project, now, {name: _rows(words, previous, now) for name, words in STREAMS.items()}, "k,b,v")
        if now == RUNS[2]:
            land(project, now, {"five": [f"x,{text(1)},{text(10)}", f"x,{text(2)},{text(30)}", f"x,{text(3)},{text(15)}"]})
        changes = [line.format(*[text(tick) for tick in range(12)]) for line in CHANGES.get(now, [])]
        land(project, now, {"known": changes, "current": changes}, "k,b,op")
        project.update(now)
        with Warehouse.open(project.directory) as warehouse:
            for name in VIEWS:
                runs_of[name][now] = _seen(project, warehouse, name)
    return runs_of


def test_union(runs: dict[str, dict[int, Run]]) -> None:
    """TV-3: of windows of unequal length; what came later leaves first."""
    union = runs["union"]
    assert union[5].shown == [("x", 1, 11), ("y", 2, 7)]
    assert union[10].shown == [("x", 1, 11)]
    assert union[15].shown == []


def test_distinct(runs: dict[str, dict[int, Run]]) -> None:
    """TV-4: x is kept alive by its spare, which enters when the shown row dies; at most two rows of a live value are kept."""
    distinct = runs["distinct"]
    assert distinct[5].shown == [("x", 4, 14), ("y", 5, 15)]
    assert distinct[10].shown == [("x", 4, 14), ("y", 5, 15)]
    assert [(value, end) for value, _, end in distinct[10].spare] == [("x", 18)]
    assert distinct[15].shown == [("x", 14, 18)]
    assert distinct[20].shown == [("x", 18, 28)]
    assert distinct[30].shown == []
    for name in ("distinct", "distinct_of_own_ends", "distinct_unseen"):
        for run in runs[name].values():
            rows = Counter(value for value, _, _ in run.shown + run.spare)
            assert set(rows) == {value for value, _, _ in run.shown}
            assert not rows or max(rows.values()) <= 2


def test_distinct_of_rows_with_their_own_ends(runs: dict[str, dict[int, Run]]) -> None:
    """TV-5 (a): x is live from 1 to 29, because of the row that lives longest, which is not the youngest."""
    view_runs = runs["distinct_of_own_ends"]
    assert {now: run.values for now, run in view_runs.items()} == {0: "", 5: "x", 10: "x", 15: "x", 20: "x", 30: ""}
    assert {end for run in view_runs.values() for _, _, end in run.shown} == {30}


def test_periodic_distinct(runs: dict[str, dict[int, Run]]) -> None:
    """TV-6: a value that was shown is not reported again when another of its rows comes and goes."""
    view_runs = runs["distinct_unseen"]
    assert {now: run.values for now, run in view_runs.items()} == {0: "", 5: "x y", 10: "x y", 15: "", 20: "", 30: ""}
    assert all(run.restored == [] for run in view_runs.values())


def test_bag_difference(runs: dict[str, dict[int, Run]]) -> None:
    """TV-7: max(0, v1 - v2) rows; in (b) nothing enters at 12, when v1 = v2 = 1, but at 13."""
    assert {now: run.values for now, run in runs["difference"].items()} == {0: "", 5: "v", 10: "v", 15: "", 20: "", 30: ""}
    values = {now: run.values for now, run in runs["difference_of_longer"].items()}
    assert values == {0: "", 5: "", 10: "", 15: "v", 20: "v", 30: "v"}
    assert {end for run in runs["difference_of_longer"].values() for _, _, end in run.shown} == {31}


def test_anti_join(runs: dict[str, dict[int, Run]]) -> None:
    """TV-8: (a) v1 was there for one tick and v4 for two; (b) with an update every five ticks v1 is seen, and u6 is not."""
    view_runs = runs["anti"]
    assert {run.values for run in view_runs.values()} == {""}
    assert {now: run.restored for now, run in view_runs.items() if run.restored} == {5: [("v", 1, 2)], 15: [("v", 12, 14)]}
    view_runs = runs["other_anti"]
    assert {now: run.shown for now, run in view_runs.items() if run.shown} == {10: [("v", 10, 11)]}
    assert {now: run.restored for now, run in view_runs.items() if run.restored} == {10: [("u", 6, 8)]}


def test_anti_join_with_another_interval(tmp_path: Path, spark: SparkSession) -> None:
    """TV-8 (b) with an update every four ticks: no result is ever seen, and both are restored."""
    streams = {name: _unbounded(name) for name in ("other_left", "other_right")}
    views = {"anti": view(VIEWS["other_anti"], short_lived="report")}
    project = Project(tmp_path / "project", spark, streams, {"update_interval": "4h"}, views=views)
    results = []
    for previous, now in pairwise((-1, 0, 4, 8, 12)):
        land(project, now, {name: _rows(STREAMS[name], previous, now) for name in streams}, "k,b,v")
        project.update(now)
        results.append((shown(project, "anti", "k"), restored(project, "anti", "k")))
    assert results == [([], []), ([], []), ([], [("u", 6, 8)]), ([], [("v", 10, 11)])]


def test_aggregates_of_count_windows(runs: dict[str, dict[int, Run]]) -> None:
    """TV-9 (a): the sum of the last five and of all, with their number; a scalar aggregate of nothing is one row."""
    assert {now: run.values for now, run in runs["sum_of_five"].items()} == {
        0: "None0", 5: "145", 10: "215", 15: "215", 20: "215", 30: "215",
    }  # fmt: skip
    assert {now: run.values for now, run in runs["sum_of_all"].items()} == {
        0: "None0", 5: "145", 10: "257", 15: "257", 20: "257", 30: "257",
    }  # fmt: skip


def test_aggregates_of_time_windows(runs: dict[str, dict[int, Run]]) -> None:
    """TV-9 (b): an empty group has no row, a scalar aggregate keeps one; `_ts` is the update that changed it."""
    view_runs = runs["sums"]
    assert {now: run.values for now, run in view_runs.items()} == {0: "", 5: "g1 h7", 10: "g2", 15: "", 20: "", 30: ""}
    assert view_runs[5].shown == [("g1", 5, FOREVER), ("h7", 5, FOREVER)]
    scalar = {now: run.values for now, run in runs["scalar"].items()}
    assert scalar == {0: "None0", 5: "82", 10: "21", 15: "None0", 20: "None0", 30: "None0"}
    assert [run.shown[0][1] for run in runs["scalar"].values()] == [0, 5, 10, 15, 15, 15]
    assert {now: run.values for now, run in runs["highest"].items()} == {
        0: "None", 5: "75", 10: "61", 15: "None", 20: "None", 30: "None",
    }  # fmt: skip


def test_groups_over_an_internal_window(runs: dict[str, dict[int, Run]]) -> None:
    """TV-9 (b), internal: each new value is appended when it is seen, and stays; a sum that is as before is no new value."""
    assert runs["appended"][30].shown == [("g1", 5, FOREVER), ("g2", 10, FOREVER), ("h7", 5, FOREVER)]
    assert {now: run.values for now, run in runs["appended"].items()} == {
        0: "", 5: "g1 h7", 10: "g1 g2 h7", 15: "g1 g2 h7", 20: "g1 g2 h7", 30: "g1 g2 h7",
    }  # fmt: skip
    assert runs["appended_when_changed"][10].shown == [("i5", 5, FOREVER)]


def test_selections_and_count_windows(runs: dict[str, dict[int, Run]]) -> None:
    """TV-10: a selection after the window is not one before it."""
    assert [(value, ts) for value, ts, _ in runs["selected_after"][5].shown] == [("a", 3)]
    assert [(value, ts) for value, ts, _ in runs["selected_before"][5].shown] == [("a", 1), ("a", 3)]


def test_relations(runs: dict[str, dict[int, Run]], project: Project) -> None:
    """TV-11: as of each row's own time, or of now; a key that was deleted does not come back as of then."""
    as_of = runs["as_of"]
    assert as_of[5].shown == [("A", 3, 13), ("Z", 5, 15)]
    assert as_of[10].shown == [("A", 3, 13), ("A", 6, 16), ("Z", 5, 15)]
    assert as_of[15].shown == [("A", 6, 16)]
    assert as_of[20].shown == []
    current = runs["with_current"]
    assert current[5].shown == [("A", 3, 13), ("Z", 4, 12), ("Z", 4, 14), ("Z", 5, 15)]
    assert current[10].shown == [("Z", 4, 12), ("Z", 4, 14), ("Z", 5, 15)]
    assert current[15].shown == [("A", 11, 16), ("A", 11, 17)]
    assert [row["reason"] for row in project.rejected("known")] == ["key_reused"]
    assert project.rejected("current") == []


def test_a_negation_over_or_below_a_join(runs: dict[str, dict[int, Run]]) -> None:
    """TV-12: whichever plan is chosen, the answers are these."""
    values = {now: run.values for now, run in runs["chosen"].items()}
    assert values == {0: "", 5: "v v w", 10: "w", 15: "", 20: "", 30: ""}
