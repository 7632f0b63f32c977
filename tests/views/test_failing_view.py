"""A view whose SQL fails on a row, or that cannot be maintained as declared, stands still; every other table keeps moving."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, at, csv, row, stream
from warehouse import Warehouse
from warehouse.cli.status import status
from warehouse.errors import ConfigurationError, ViewFailedError
from warehouse.operations.update import UpdateOptions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
HEADER = "k,b,e,v"
TIMED = "SELECT a.k FROM a JOIN a AS o ON a.k = o.k AND window(a.b, '1 hour').start = o.b"
"""A query on which Spark's analyser fails."""


def test_a_view_that_fails_is_told_and_built_anew_when_it_can_be(tmp_path: Path, spark: SparkSession) -> None:
    """It is not served meanwhile, nor is what reads it; its epoch before is."""
    views = {
        "ratio": {"sql": "SELECT k, 10 div v AS q FROM a", "search_key": "k"},
        "over": {"sql": "SELECT DISTINCT k FROM ratio", "search_key": "k"},
        "counted": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"},
    }
    project = Project(tmp_path / "project", spark, {"a": stream(columns=COLUMNS)}, views=views)
    project.land("1.csv", csv(f"{row('x', 0.5, 4)},2", header=HEADER))
    assert project.update(1).failed_views == ()
    project.land("2.csv", csv(f"{row('zero', 1.5, 3)},0", header=HEADER))
    report = project.update(2)
    assert [view for view, _ in report.failed_views] == ["ratio", "over"]
    assert all("DIVIDE_BY_ZERO" in reason for _, reason in report.failed_views)
    with Warehouse.open(project.directory) as warehouse:
        assert warehouse.sql("SELECT k, n FROM counted ORDER BY k").all() == [("x", 1), ("zero", 1)]
        for view in ("ratio", "over"):
            with pytest.raises(ViewFailedError, match="rebuilt"):
                warehouse.scan(view)
            with pytest.raises(ViewFailedError):
                warehouse.sql(f"SELECT * FROM {view}")
        assert warehouse.scan("ratio", as_of="2024-01-01T01:00:00Z").all() == [("x", 5)]
    report = project.update(3)  # the row has expired
    assert report.failed_views == ()
    assert any('"ratio" is rebuilt' in text for text in report.epochs[-1].warnings)
    with Warehouse.open(project.directory) as warehouse:
        assert warehouse.scan("ratio").all() == [("x", 5)]
        assert warehouse.scan("over").all() == [("x",)]


def test_a_faulty_declaration_stops_its_view_alone(tmp_path: Path, spark: SparkSession) -> None:
    """Each update reports a view that `validate` or Spark refuses, until it is corrected; then it is rebuilt."""
    good = {"sql": "SELECT k, v FROM a", "search_key": "k"}
    views = {"plain": good, "over": {"sql": "SELECT DISTINCT k FROM plain", "search_key": "k"}}
    project = Project(tmp_path / "project", spark, {"a": stream(columns=COLUMNS)}, views=dict(views))
    project.land("1.csv", csv(f"{row('x', 0.5, 4)},2", header=HEADER))
    project.update(1)
    views["counted"] = {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"}
    views["lasting"] = {"sql": "SELECT k, make_dt_interval(v) AS m FROM a", "search_key": "k"}  # only Spark tells its type
    views["timed"] = {"sql": TIMED, "search_key": "k"}
    views["mapped"] = {"sql": "SELECT k, map('v', v) AS m FROM a", "search_key": "k"}  # a type that no table has
    project.views = {**views, "plain": {**good, "sql": "SELECT k, w FROM a"}}
    project.declare()
    project.land("2.csv", csv(f"{row('y', 1.5, 5)},3", header=HEADER))
    plan, _ = project.updater().plan(UpdateOptions(at=at(2)))
    assert plan is not None
    assert [view for view, _ in plan.refused] == ["mapped", "over", "plain"]
    report = project.update(2)
    reasons = dict(report.failed_views)
    assert sorted(reasons) == ["lasting", "mapped", "over", "plain", "timed"]
    assert 'the unknown column "w"' in reasons["plain"]
    assert reasons["over"] == "it reads plain, which cannot be maintained"
    assert "map('v', v), a map" in reasons["mapped"]
    messages = ('column "m" of type interval day to second', "Spark fails to analyse its query: ")
    assert all(text in reasons[view] for view, text in zip(("lasting", "timed"), messages, strict=True))
    assert (project.keys("a"), project.keys("counted"), project.epoch.table("mapped")) == ("x y", "x y", None)
    assert [view for view, _ in project.epoch.refused] == ["lasting", "mapped", "timed"]
    with Warehouse.open(project.directory) as warehouse:
        for view in ("plain", "over"):
            with pytest.raises(ViewFailedError):
                warehouse.scan(view)
        for view in ("lasting", "mapped"):  # never built: what reads them is told why, not that they are unknown
            for read in (warehouse.scan, lambda view: warehouse.sql(f"SELECT * FROM {view}")):
                with pytest.raises(ViewFailedError, match=r"cannot be maintained .*(interval day|a map).* `stream-wh validate`"):
                    read(view)
        assert warehouse.explain("counted").name == "counted"
        with pytest.raises(ConfigurationError):
            warehouse.explain("plain")
    repeated = project.update(2)
    assert (repeated.epochs, [view for view, _ in repeated.failed_views]) == ((), ["lasting", "mapped", "over", "plain", "timed"])
    project.views = {**project.views, "new": {"sql": "SELECT nothing FROM a", "search_key": "k"}}
    project.declare()
    stand = status(project.directory, verbose=False, expanded=True).result
    failed = {row["table"]: row["failed"] for batch in stand.batches() for row in batch.to_pylist()}
    assert set(failed) == {"a", *project.views}
    assert {view: bool(why) for view, why in failed.items()} == {view: view not in {"a", "counted"} for view in failed}
    assert "interval day to second" in failed["lasting"]
    assert 'the unknown column "nothing"' in failed["new"]
    mended = {"sql": "SELECT k, v AS m FROM a", "search_key": "k"}
    project.views = {**views, "mapped": mended, "lasting": mended, "timed": mended}
    project.declare()
    assert project.update(3).failed_views == ()
    assert project.epoch.refused == ()
    assert {project.keys(view) for view in ("plain", "over", "mapped", "counted")} == {"x y"}
