"""Views that read an aggregate: after every verb each equals its query over the live answers.

Updates at 1, 2, 5 and 8; rows as (key, arrival); answers stay for six hours::

    hour   0.....1.....2.....3.....4.....5.....6.....7.....8
    1        a a b
    2          A   b b                                         A is late
    5                       a           b
    8                                          a a a     b
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from warehouse.checking.check import check

from .projects import Project, csv, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS: dict[int, list[tuple[str, float]]] = {
    1: [("a", 0.2), ("a", 0.3), ("b", 0.5)],
    2: [("a", 0.7), ("b", 1.5), ("b", 1.6)],
    5: [("a", 2.5), ("b", 4.5)],
    8: [("a", 6.2), ("a", 6.3), ("a", 6.4), ("b", 7.5)],
}


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return the project after the updates up to 5, with the file of 8."""
    answers = {"from": "a", "group_by": "k", "select": {"n": "count(*)"}, "windows": ["1h", "3h"], "keep": "6h"}
    views = {
        "busy": {"search_key": "k", "sql": "SELECT k, window_end, n FROM seen WHERE window_length = '1h' AND n > 1"},
        "most": {"search_key": "k", "sql": "SELECT k, max(n) AS n, count(*) AS answers FROM seen GROUP BY k"},
    }
    project = Project(tmp_path_factory.mktemp("views"), spark, {"a": stream()}, views=views, aggregates={"seen": answers})
    for hour, rows in ROWS.items():
        project.land(f"{hour}.csv", csv(*(f"{k},{text(ts)},{text(ts + 2)}" for k, ts in rows), header="k,b,e"))
        if hour < 8:
            project.update(hour)
    return project


def require_equal(project: Project) -> None:
    """Compare both views with their queries over the live answers."""
    live = project.live("seen")
    assert live
    busy = Counter((row["k"], row["window_end"], row["n"]) for row in live if row["window_length"] == "1h" and row["n"] > 1)
    assert Counter((row["k"], row["window_end"], row["n"]) for row in project.live("busy")) == busy
    most = {key: [row["n"] for row in live if row["k"] == key] for key in {row["k"] for row in live}}
    answers = {row["k"]: (row["n"], row["answers"]) for row in project.live("most")}
    assert answers == {key: (max(counts), len(counts)) for key, counts in most.items()}
    assert list(check(project.root).findings) == []


def test_a_view_of_an_aggregate_is_its_query_over_the_answers(moved: Project, tmp_path: Path) -> None:
    """When answers come, and when they expire."""
    require_equal(moved)
    project = moved.copy(tmp_path / "copy")
    assert {row["k"] for row in project.live("busy")} == {"a", "b"}
    project.update(8)
    require_equal(project)
    project.update(12)
    assert {row["n"] for row in project.live("busy")} == {3}
    require_equal(project)


def test_it_follows_when_answers_go_back_or_are_erased(moved: Project, tmp_path: Path) -> None:
    """A rollback removes its rows with the answers; erased answers leave it too."""
    project = moved.copy(tmp_path / "copy")
    project.updater().rollback(1)
    require_equal(project)
    project.update(8)
    require_equal(project)
    project.updater().erase("a", ["a"])
    require_equal(project)
    assert {row["k"] for row in project.live("most")} == {"b"}


def test_it_is_built_with_its_aggregate_when_the_windows_move(moved: Project, tmp_path: Path) -> None:
    """Both may be declared after the stream was loaded; until the windows move the view waits, then it is built."""
    project = moved.copy(tmp_path / "copy")
    project.aggregates["more"] = {"from": "a", "select": {"n": "count(*)"}, "windows": ["1h"], "keep": "6h"}
    project.views["quiet"] = {"search_key": "n", "sql": "SELECT n, window_end FROM more WHERE n < 3"}
    project.declare()
    project.update(5)
    assert project.epoch.table("more") is None
    project.update(8)
    assert len(project.live("quiet")) == sum(row["n"] < 3 for row in project.live("more")) > 0
    require_equal(project)
