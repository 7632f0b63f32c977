"""Synopses that Spark calculates: one job for all aggregates of a stream, however many."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.publishing.reading import attached, comparable
from tests.publishing.test_connect import executed
from tests.storage.test_collecting import jobs_of
from warehouse.cli.aggregate_explanation import aggregate_report
from warehouse.project import Warehouse
from warehouse.serving import Reader
from warehouse.serving.aggregate_explanation import explained_aggregate

from .projects import Project, csv, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "g": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
ROWS = [("a", "x", 1), ("a", "y", 2), ("b", "x", 3), ("b", "y", 40)]


def declared(directory: Path, spark: SparkSession, names: str) -> Project:
    """Return some of eight aggregates, of which only the last shares synopses; Spark evaluates the conditions."""
    common = {"from": "a", "windows": ["1h", "2h"], "every": "1h", "keep": "9h"}
    declarations: dict[str, dict[str, object]] = {
        "k": {**common, "group_by": ["k"], "where": "v < 10", "select": {"n": "count(*)", "kinds": "count(DISTINCT g)"}},
        "g": {**common, "group_by": ["g"], "where": "v > 1", "select": {"n": "sum(v)"}},
        "h": {**common, "group_by": ["concat(k, g) AS h"], "select": {"n": "max(v)"}},
        "o": {**common, "where": "v < 10", "over": "live", "select": {"n": "min(v)"}},
        "i": {**common, "where": "v < 10", "frequent": {"item": "g", "top": 2}},
        "p": {**common, "where": "v = 1", "group_by": ["k"], "select": {"n": "count(*)", "t": "sum(v)"}},
        "q": {**common, "where": "v = 40 OR v = 3", "group_by": ["k"], "select": {"n": "sum(v)"}},
        "r": {**common, "where": "v IN (1, 3, 40)", "group_by": ["k"], "select": {"n": "count(*)", "m": "avg(v)"}},
    }
    aggregates = {name: declarations[name] for name in names}
    return Project(directory, spark, {"a": stream(columns=COLUMNS)}, aggregates=aggregates)


def jobs(project: Project, spark: SparkSession) -> int:
    """Make three updates, and return how many jobs the last one takes."""
    job_count = 0
    for now in (1, 2, 3):
        lines = (f"{k},{g},{v},{text(now - 0.5)},{text(now + 1)}" for k, g, v in ROWS)
        project.land(f"{now}.csv", csv(*lines, header="k,g,v,b,e"))
        job_count = jobs_of(spark, partial(project.update, now))
    return job_count


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Project, int]:
    """Return the project with all eight after three updates, and the number of jobs of the last."""
    project = declared(tmp_path_factory.mktemp("many"), spark, "kghoipqr")
    return project, jobs(project, spark)


def test_aggregates_share_the_job_of_their_stream(
    many: tuple[Project, int], tmp_path: Path, spark: SparkSession
) -> None:
    """Eight synopses take as many jobs as one, and every answer equals its own query."""
    project, job_count = many
    assert job_count == jobs(declared(tmp_path / "one", spark, "g"), spark)
    newest = {name: [row for row in project.stored(name) if row["window_length"] == "2h"] for name in "kghoi"}
    hour = {name: [row for row in rows if row["epoch"] == 2] for name, rows in newest.items()}
    assert {row["k"]: (row["n"], row["kinds"]) for row in hour["k"]} == {"a": (4, 2), "b": (2, 1)}
    assert {row["g"]: row["n"] for row in hour["g"]} == {"x": 6, "y": 84}
    assert {row["h"]: row["n"] for row in hour["h"]} == {"ax": 1, "ay": 2, "bx": 3, "by": 40}
    assert [row["n"] for row in hour["o"]] == [1]
    assert {row["item"]: row["at_least"] for row in hour["i"]} == {"x": 4, "y": 2}


def test_a_condition_that_others_cover_has_no_synopsis(many: tuple[Project, int]) -> None:
    """Its answers equal its own query, and `explain` names the conditions that it reads."""
    project, _ = many
    newest = [row for row in project.stored("r") if row["window_length"] == "2h" and row["epoch"] == 2]
    assert {row["k"]: (row["n"], row["m"], row["full"]) for row in newest} == {"a": (2, 1.0, True), "b": (4, 21.5, True)}
    conditions = [state.synopsis.synopsis.where for state in project.epoch.tables if state.synopsis is not None]
    assert (len(conditions), conditions.count("v IN (1, 3, 40)")) == (8, 0)
    explanation = explained_aggregate(project.updater().catalog, "r", project.epoch)
    assert explanation is not None
    assert [synopsis.where for synopsis in explanation.synopses] == ["v = 1", "v = 40 OR v = 3"]
    assert "where v = 1; " in "\n".join(aggregate_report(explanation).lines)


def test_a_condition_that_is_left_of_others_has_no_synopsis(tmp_path: Path, spark: SparkSession) -> None:
    """`v = 2` is `v IN (1, 2)` minus `v = 1`, for the hours that both know; groups without a remaining row have no answer."""
    project = declared(tmp_path, spark, "p")
    common = {"from": "a", "windows": ["1h", "2h"], "keep": "9h", "group_by": ["k"], "select": {"n": "count(*)", "t": "sum(v)"}}
    later = {2: ("w", "v IN (1, 2)", {}), 3: ("x", "v = 2", {}), 4: ("y", "v = 2", {"select": {"low": "min(v)"}})}
    for now in (1, 2, 3, 4):
        if now in later:
            name, where, changed = later[now]
            project.aggregates[name] = {**common, "where": where, **changed}
            project.declare()
        lines = (f"{k},{g},{v},{text(now - 0.5)},{text(now + 1)}" for k, g, v in (*ROWS, ("a", "z", 2)))
        project.land(f"{now}.csv", csv(*lines, header="k,g,v,b,e"))
        project.update(now)
    answers = {(row["k"], row["epoch"], row["window_length"]): (row["n"], row["t"], row["full"]) for row in project.stored("x")}
    assert answers == {
        ("a", 2, "1h"): (2, 4, True), ("a", 2, "2h"): (2, 4, False), ("a", 3, "1h"): (2, 4, True), ("a", 3, "2h"): (4, 8, True),
    }  # fmt: skip
    conditions = [state.synopsis.synopsis.where for state in project.epoch.tables if state.synopsis is not None]
    assert sorted(map(str, conditions)) == ["v = 1", "v = 2", "v IN (1, 2)"], "an extreme has one of its own, which begins later"
    explanation = explained_aggregate(project.updater().catalog, "x", project.epoch)
    assert explanation is not None
    lines = aggregate_report(explanation).lines
    assert [line.strip().partition(";")[0] for line in lines if ", where v " in line] == [
        "count of rows, count(v), sum(v), where v IN (1, 2)", "less count of rows, count(v), sum(v), where v = 1",
    ]  # fmt: skip
    assert "in one run with p, w" in lines[-3]


def test_other_tools_read_answers_row_by_row(many: tuple[Project, int]) -> None:
    """`warehouse.duckdb` and what `connect` prints give the live rows of the table, with all columns and their types."""
    project, _ = many
    warehouse = Warehouse(project.directory, project.root)
    with Reader.open(project.root) as reader, attached(project.root) as connection:
        for name in "kghoipqr":
            answer = reader.scan(name)
            shown = connection.sql(f"SELECT * FROM w.main.{name}")
            assert shown.columns == [column for column, _ in answer.columns]
            assert [str(kind) for kind in shown.types] == [kind for _, kind in answer.columns]
            rows = comparable(answer.all())
            assert len(rows) == len(project.live(name)) > 3, name
            assert comparable(shown.fetchall()) == rows
            with duckdb.connect() as other:
                other.execute("SET TimeZone = 'UTC'")
                assert comparable(other.execute(warehouse.connect("duckdb", name)).fetchall()) == rows
            assert comparable(executed(warehouse.connect("polars", name)).rows()) == rows
