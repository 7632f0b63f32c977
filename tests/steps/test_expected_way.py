"""The engine that `plan` expects to make each step's rows, and the number of Spark jobs that the step took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import Project, at, row, stream
from tests.views.warehouses import land, view
from warehouse.limits import limited
from warehouse.operations.window_times import UpdateOptions
from warehouse.serving.explanation import explained
from warehouse.serving.reader import Reader
from warehouse.steps.registry import explain

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEWS = {
    "large": view("SELECT k FROM a WHERE k > 'b'"),
    "seen": view("SELECT DISTINCT k FROM a"),
    "counted": view("SELECT k, count(*) AS n FROM a GROUP BY k"),
    "pairs": view("SELECT a.k FROM a JOIN b ON a.k = b.k"),
}
LINES = {hour: {"a": [row("x", hour - 0.5, hour + 3)], "b": [row("x", hour - 0.4, hour + 2)]} for hour in (1, 2, 3, 4)}
LINES[2]["a"] += [row(f"y{number}", 1.5, 9) for number in range(12)]


def _expected(project: Project, hour: int) -> dict[str, str | None]:
    """Return the expected way of each step of a planned update, by the step's position in the records."""
    plan, _ = project.updater().plan(UpdateOptions(at=at(hour)))
    steps = explain(plan, project.epoch if project.numbers else None, project.root)
    return {
        f"{plan.steps[explanation.step].path}: {type(plan.steps[explanation.step]).__struct_config__.tag}": explanation.way
        for explanation in steps
    }


def _jobs(project: Project) -> dict[str, int | None]:
    return {step.step: step.jobs for step in project.epoch.seconds}


def test_the_way_that_is_told_is_the_way_that_is_taken(tmp_path: Path, spark: SparkSession) -> None:
    """The driver makes every step of a view of few rows, also a first build; many rows take jobs of Spark.

    A keyed table may have more rows than the driver takes from Spark: it rewrites those itself when few of its keys change.
    """
    project = Project(tmp_path, spark, {name: stream(landing=f"landing/{name}") for name in "ab"}, views=VIEWS)
    land(project, 1, LINES[1])
    first = _expected(project, 1)
    project.update(1)
    assert {way for way in first.values() if way} == {"driver"}
    assert first["tables/a: create-table"] is None
    assert not any(_jobs(project).values()), "the rows of a first update are read before it is planned"

    land(project, 2, LINES[2])
    few = _expected(project, 2)
    project.update(2)
    assert {way for way in few.values() if way} == {"driver"}
    jobs = _jobs(project)
    assert sum(jobs[step] or 0 for step in few if step.startswith("tables/") and step.split(":")[0][7:] not in "ab") == 0
    assert sum(count or 0 for count in jobs.values()) > 0, "Spark reads what arrived"
    catalog = project.updater().catalog
    with Reader.open(project.root) as reader:
        assert explained(catalog, "pairs", reader).jobs == 0

    land(project, 3, LINES[3])
    with limited(driver_rows=8):
        keyed = _expected(project, 3)
        project.update(3)
    assert sum(part.rows for part in project.epoch.table("counted").partitions) > 8
    assert keyed["tables/counted: rewrite-buckets"] == "driver"
    assert _jobs(project)["tables/counted: rewrite-buckets"] == 0

    land(project, 4, LINES[4])
    with limited(driver_rows=0, driver_bytes=-1):
        many = _expected(project, 4)
        project.update(4)
    assert {way for way in many.values() if way} == {"spark"}
    assert (_jobs(project)["tables/a: move-window"] or 0) > 0
