"""What is not done twice, and not held longer than needed: views over a view, stopped between them, and left unchanged.

Rows of ``a`` (hours)::

    hour   0.....1.....2.....3
    x 5      ....|.....|.....|        the highest of its group
    x 1          | ....|.....|        changes no highest
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, StoppedError, row, stream
from warehouse.epochs.points import Moment, Point
from warehouse.steps import node_source

from .warehouses import asked, land, stored, view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.views.maintenance.inputs import NodeInputs
    from warehouse.views.maintenance.keyed import Replacement

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
VIEWS = {
    "highest": view("SELECT k, max(v) AS v FROM a GROUP BY k"),
    "lonely": view("SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    "above": view("SELECT k, v FROM lonely WHERE v > 0"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """The warehouse after an update, with a row for the next one."""
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}") for name in "ab"}
    project = Project(tmp_path_factory.mktemp("begun") / "project", spark, streams, views=VIEWS)
    land(project, 1, {"a": [row("x", 0.2, 4) + ",5"]}, ",".join(COLUMNS))
    project.update(1)
    return project


def test_a_view_whose_rows_are_committed_is_not_computed_again(
    begun: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after the first view's commit, which says that no result was short-lived, an update computes the other one only."""
    project = begun.copy(tmp_path / "project")
    land(project, 2, {"a": [row("y", 1.2, 4) + ",7"]}, ",".join(COLUMNS))
    computed: list[str] = []

    def watched(inputs: NodeInputs) -> tuple[Replacement, object]:
        computed.append(inputs.node.table)
        return original(inputs)

    original = node_source.replaced
    monkeypatch.setattr(node_source, "replaced", watched)

    def stopped(moment: Moment) -> None:
        if moment.point == Point.STEP_STARTED and moment.text == "replace what changed of above":
            raise StoppedError

    with pytest.raises(StoppedError):
        project.update(2, observer=stopped)
    assert computed.count("lonely") == 1
    computed.clear()
    project.update(2)
    assert computed == ["above"]
    for name, keys in VIEWS.items():
        assert stored(project, name) == asked(project, str(keys["sql"]))


def test_a_view_that_did_not_change_holds_no_rows(begun: Project, tmp_path: Path, spark: SparkSession) -> None:
    """Rows that were cached for a comparison are dropped at once, not at the end of the plan."""
    project = begun.copy(tmp_path / "project")
    land(project, 2, {"a": [row("x", 1.2, 4) + ",1"]}, ",".join(COLUMNS))
    cached: dict[str, set[int]] = {}

    def observe(moment: Moment) -> None:
        if moment.point in (Point.STEP_STARTED, Point.STEPS_DONE):
            cached[moment.text] = set(spark._jsc.getPersistentRDDs().keySet())  # type: ignore[union-attr]

    before = project.epoch.table("highest")
    project.update(2, observer=observe)
    after = project.epoch.table("highest")
    assert before is not None
    assert after is not None
    assert before.version == after.version
    first, second = (cached[f"replace what changed of {name}"] for name in ("highest", "lonely"))
    assert second <= first
