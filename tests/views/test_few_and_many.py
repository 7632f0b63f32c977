"""Rows that arrived are collected when they are few, otherwise cached; rows that ended stay in files for a while.

Blocks of six hours, so that what ends in the first hours is stored still when the last update reads its files::

    hour    0.........1.........2.........3
    a  x     [.............)                         ended, and in its file still
       null   [..............................
       z       [.............................
       q                   [........)                late, dead on arrival
    b  w     [...............................
       x                    [................        late: when it is loaded, x of a has gone
       q                      [....)                 late, dead on arrival: met q unseen
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, row, stream
from warehouse.epochs.points import Point
from warehouse.storage import lookup
from warehouse.storage.arrow_types import can_be_collected
from warehouse.views.algebra import Filter, Named, Scan, TimeWindow, UnionAll, scanned
from warehouse.views.algebra import Project as Projection
from warehouse.views.maintenance import appended, cache, distinct, joins
from warehouse.views.maintenance.joins import local_results
from warehouse.views.maintenance.pipelines import picks_only

from .warehouses import all_asked, asked, land, restored, stored, view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment
    from warehouse.views.algebra import Join, Operator
    from warehouse.views.maintenance.joins import JoinInputs

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
NAMED = "named_struct('v', 1)"
NOTHING = -1
"""No file is so small, not even none: Spark reads everything."""
MADE = f"CASE WHEN v > 2 THEN {NAMED} END"
"""Null, or a structure whose field is never null, which Arrow cannot hold."""
VIEWS = {
    "changed": view("SELECT k, v + 1 AS w FROM a WHERE v > 1"),
    "counted": view("SELECT k, count(*) AS n, sum(v) AS total FROM a GROUP BY k"),
    "greatest": view("SELECT k, max(v) AS most FROM b GROUP BY k"),
    "joined": view("SELECT l.k, l.v AS lv, r.v AS rv FROM a l JOIN b r ON l.k = r.k", short_lived="report"),
    "seen": view("SELECT DISTINCT k FROM a"),
    "lonely": view("SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    "paired": view(f"SELECT l.k, l.n.v AS n FROM (SELECT k, {MADE} AS n FROM a) l JOIN b r ON l.k = r.k"),
    "three": view("SELECT l.k, l.v AS lv, r.v AS rv, c.v AS cv FROM a l JOIN b r ON l.k = r.k JOIN c ON r.v = c.v"),
    "common": view("SELECT k FROM a INTERSECT SELECT k FROM b"),
    "either": view(
        "SELECT l.k, l.v AS lv, r.v AS rv FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) l "
        "JOIN (SELECT k, v + 1 AS v FROM b WHERE v > 3) r ON l.k = r.k AND l.v < r.v"
    ),
    "tagged": view(
        "SELECT l.k, l.one, r.v FROM (SELECT k, 1 AS one FROM a UNION ALL SELECT k, 2 AS one FROM c) l JOIN b r ON l.k = r.k"
    ),
    "made": view(f"SELECT k, s.n.v AS n FROM (SELECT DISTINCT k, {MADE} AS n FROM a) s"),
}
LINES = {
    1: {
        "a": [row("x", 0.1, 1.5) + ",1", row("", 0.2, 5) + ",2", row("z", 0.3, 4) + ",3"],
        "b": [row("w", 0.1, 9) + ",4"],
        "c": [row("p", 0.2, 9) + ",4"],
    },
    2: {"a": [row("", 1.2, 5) + ",5"]},
    3: {
        "a": [row("q", 1.1, 1.9) + ",6", row("w", 2.5, 6) + ",7", row("", 2.5, 6) + ",8"],
        "b": [row("x", 1.2, 5) + ",9", row("q", 1.3, 1.8) + ",10", row("z", 2.5, 5) + ",11"],
        "c": [row("r", 2.2, 4) + ",9", row("s", 2.9, 4) + ",11"],
    },
}


def loaded(project: Project, run: int) -> None:
    """Load what came in a run, and require that each view is its query."""
    land(project, run, LINES[run], ",".join(COLUMNS))
    project.update(run)
    same = {name: str(keys["sql"]).replace(NAMED, "struct_pack(v := 1)") for name, keys in VIEWS.items()}  # as DuckDB calls it
    for name, expected in all_asked(project, same).items():
        assert stored(project, name) == expected, name


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """After two runs of few rows: the views are built, and one more row has come."""
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}") for name in "abc"}
    project = Project(tmp_path_factory.mktemp("few") / "project", spark, streams, views=VIEWS)
    for run in (1, 2):
        loaded(project, run)
    return project


@pytest.mark.parametrize(("few", "large"), [(cache.FEW, lookup.LARGE), (cache.FEW, NOTHING), (0, lookup.LARGE)])
def test_few_rows_and_many_make_the_same_answers(
    tmp_path: Path,
    begun: Project,
    monkeypatch: pytest.MonkeyPatch,
    set_limits: Callable[..., object],
    few: int,
    large: int,
) -> None:
    """Collected or not, looked up or not, null keys among them: each view equals its query; no row meets an earlier dead row."""
    for module in (joins, cache, distinct, appended):
        monkeypatch.setattr(module, "FEW", few)
    if not few:
        set_limits(driver_rows=0, driver_bytes=NOTHING)
    monkeypatch.setattr(lookup, "LARGE", large)
    in_driver: set[tuple[str, ...]] = set()

    def watched(join: Join, inputs: JoinInputs, operator: Operator) -> pa.Table | None:
        results = local_results(join, inputs, operator)
        in_driver.update([tuple(sorted(set(scanned(join))))] if results is not None else [])
        return results

    monkeypatch.setattr(appended, "local_results", watched)
    project = begun.copy(tmp_path / "project")
    loaded(project, 3)
    assert restored(project, "joined", "k", "lv", "rv") == [("q610", 1.3, 1.8)]
    without_spark = {("a", "b"), ("a", "b", "c"), ("common.1", "common.2")} if few and large > 0 else set()
    assert in_driver == without_spark


WITHOUT_JOBS = {
    "filtered": view("SELECT k, v FROM a WHERE v > 1 AND k <> 'q'"),
    "computed": view("SELECT k, v + 1 AS w, CASE WHEN v > 6 THEN upper(k) ELSE 'less' END AS u FROM a"),
    "united": view("SELECT k, v * 2 AS v FROM a WHERE v > 1 UNION ALL SELECT k, v FROM b"),
    "counted": view("SELECT k, count(*) AS n, sum(v) AS total, avg(v) AS mean FROM a GROUP BY k"),
    "grouped": view("SELECT v % 2 AS k, count(v) AS n FROM b WHERE v > 3 GROUP BY v % 2"),
    "bounded": view("SELECT k, max(v) AS most, min(b) AS since FROM a GROUP BY k"),
    "matched": view("SELECT l.k, l.v + r.v AS total FROM a l JOIN b r ON l.k = r.k WHERE l.v < r.v AND r.v <> 4"),
    "seen": view("SELECT DISTINCT k, v % 2 AS odd FROM a"),
    "lonely": view("SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    "met": view("SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    "beside": view("SELECT l.k, l.v AS lv, r.v AS rv FROM a l LEFT JOIN b r ON l.k = r.k"),
    "best": view("SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v) AS n FROM a) WHERE n = 1"),
    "rest": view("SELECT k, v FROM a EXCEPT ALL SELECT k, v FROM b"),
    "sized": view("SELECT n AS k, count(*) AS keys FROM counted GROUP BY n"),
}


def test_views_of_few_rows_start_no_job_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    """Operators of every kind, views of views too: what arrived is in files, and the driver does the rest."""
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    started: list[tuple[str, int]] = []

    def observe(moment: Moment) -> None:
        if moment.point in (Point.STEP_STARTED, Point.STEPS_DONE):
            started.append((moment.text.rpartition(" ")[2], jobs()))

    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}") for name in "ab"}
    project = Project(tmp_path / "project", spark, streams, views=WITHOUT_JOBS)
    for run, lines in LINES.items():
        lived = {name: [line for line in lines.get(name, ()) if line[0] != "q"] for name in streams}
        land(project, run, lived, ",".join(COLUMNS))
        started.clear()
        project.update(run, observer=observe)
        for name, expected in all_asked(project, {name: str(keys["sql"]) for name, keys in WITHOUT_JOBS.items()}).items():
            assert stored(project, name) == expected, name
    spent = {name: after - before for (name, before), (_, after) in pairwise(started)}
    views = {name: jobs for name, jobs in spent.items() if name.split(".")[0] in WITHOUT_JOBS}
    assert views.keys() >= WITHOUT_JOBS.keys()
    assert views == dict.fromkeys(views, 0)


@pytest.mark.parametrize(
    ("sql", "goes"),
    [
        ("SELECT collate('a', 'UTF8_LCASE') AS s", False),
        ("SELECT array(CAST(1.5 AS decimal(9,2))) AS d, date'0001-01-01' AS e, X'00' AS x", True),
        ("SELECT from_json('{}', 'v int, w array<struct<u: string>>') AS n", True),
        ("SELECT named_struct('v', 1) AS n", False),
        ("SELECT make_ym_interval(1, 2) AS i", False),
    ],
)
def test_what_arrow_does_not_hold_is_not_gathered(spark: SparkSession, sql: str, *, goes: bool) -> None:
    """Spark caches such rows, as it caches many rows."""
    rows = spark.sql(sql)
    assert can_be_collected(rows.schema) == goes
    if goes:
        collected, _ = cache.collected(rows)
        assert collected.collect() == rows.collect()


def test_a_pipeline_that_only_picks_columns_can_be_asked_of_rows_that_have_gone() -> None:
    """Picking, renaming, ending rows: yes; an expression, which may fail for some row, or a condition: no."""
    scan = Scan("a")
    plain = UnionAll((Projection(scan, (Named("n", "`k`"), Named("m", "`v`"))), TimeWindow(scan, 5)))
    assert picks_only(scan)
    assert picks_only(plain)
    assert not picks_only(Projection(scan, (Named("one", "1"),)))
    assert not picks_only(Projection(plain, (Named("n", "1 / n"),)))
    assert not picks_only(UnionAll((scan, Filter(scan, "k = 1"))))


@pytest.mark.parametrize("large", [lookup.LARGE, NOTHING])
def test_a_row_dead_on_arrival_with_a_column_that_views_do_not_read(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    """The stream takes up the column, the join goes on without it and reports what met, for all that nobody could see it."""
    monkeypatch.setattr(lookup, "LARGE", large)
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}", unknown_columns="add") for name in "ab"}
    project = Project(tmp_path / "project", spark, streams, views={"joined": VIEWS["joined"]})
    land(project, 1, {"a": [row("x", 0.1, 5) + ",1"], "b": [row("x", 0.2, 1.8) + ",2"]}, ",".join(COLUMNS))
    project.update(1)
    land(project, 3, {"a": [row("q", 1.1, 1.9) + ",3,new", row("z", 2.1, 9) + ",4,"]}, ",".join([*COLUMNS, "added"]))
    land(project, 3, {"b": [row("q", 1.3, 1.8) + ",5", row("z", 1.2, 9) + ",6"]}, ",".join(COLUMNS))
    project.update(3)
    assert stored(project, "joined") == asked(project, str(VIEWS["joined"]["sql"]))
    assert restored(project, "joined", "k", "lv", "rv") == [("q35", 1.3, 1.8)]
