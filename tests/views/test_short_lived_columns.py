"""Short-lived results of a view whose columns change: none is lost, old and new ones are read, and ``check`` has nothing to say.

At each hour a pair of rows meets for half an hour that nobody sees, so each update reports one result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from tests.operations.projects import Project, StoppedError, at, row, stop_at, stream
from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.operations.migration import MigrationRequest
from warehouse.operations.update import UpdateOptions
from warehouse.project import Warehouse
from warehouse.steps import definitions
from warehouse.steps.registry import explain

from .warehouses import land, view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int", "w": "string"}
JOINED = "FROM a l JOIN b r ON l.k = r.k"
FIRST = f"SELECT l.k, l.v AS value, l.w AS word {JOINED}"


def meet(project: Project, hour: int) -> None:
    """Land two rows that are both there for half an hour, between two updates, and make the second of these."""
    for name in "ab":
        land(project, hour, {name: [row("x", hour - 0.8, hour - 0.3) + f",{hour},w{hour}"]}, ",".join(COLUMNS))
    project.update(hour)


def told(project: Project) -> list[dict[str, Any]]:
    """Return the reported results without their times, by epoch."""
    with Warehouse.open(project.directory) as warehouse:
        rows = warehouse.restored("met").arrow().to_pylist()
    return [{name: value for name, value in result.items() if name not in ("_ts", "_exp", "_epoch")} for result in by_epoch(rows)]


def by_epoch(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in the order of the epochs that reported them."""
    return sorted(rows, key=lambda result: int(result["_epoch"]))


def by_delta(project: Project) -> list[dict[str, Any]]:
    """Return the rows that other tools read at the epoch's version."""
    state = project.epoch.table("met")
    assert state is not None
    assert state.restored is not None
    table = DeltaTable(str(project.root / state.restored.path), version=state.restored.version)
    rows = by_epoch(table.to_pyarrow_table().to_pylist())
    assert len(rows) == state.restored.rows
    return [{name: value for name, value in result.items() if name not in ("_ts", "_exp", "_epoch")} for result in rows]


def by_spark(project: Project, spark: SparkSession) -> list[dict[str, Any]]:
    """Return the same rows, read with Delta's own reader."""
    rows = [spark_row.asDict() for spark_row in spark.read.format("delta").load(str(project.root / "restored" / "met")).collect()]
    return [{name: value for name, value in result.items() if name not in ("_ts", "_exp", "_epoch")} for result in by_epoch(rows)]


def declare(project: Project, select: str, key: str = "k", **keys: object) -> None:
    """Declare other columns for the view."""
    project.views["met"] = view(f"SELECT {select} {JOINED}", key, **{"short_lived": "report", **keys})
    project.declare()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """A warehouse after two updates, of which the second has reported a result."""
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}") for name in "ab"}
    views = {"met": view(FIRST, short_lived="report")}
    project = Project(tmp_path_factory.mktemp("short") / "project", spark, streams, views=views)
    project.update(0)
    meet(project, 1)
    assert told(project) == [{"k": "x", "value": 1, "word": "w1"}]
    return project


@pytest.fixture
def project(begun: Project, tmp_path: Path) -> Project:
    """A copy of it for each test."""
    return begun.copy(tmp_path / "project")


def assert_sound(project: Project, spark: SparkSession) -> None:
    """Nothing is wrong, and every reader of the Delta table gives the same rows."""
    assert check(project.root).findings == ()
    assert by_delta(project) == by_spark(project, spark)


@pytest.mark.parametrize("moved", [True, False])
def test_a_column_comes(project: Project, spark: SparkSession, *, moved: bool) -> None:
    """The results of before have null in it, whether the update that rebuilds the view moves the window or not."""
    declare(project, "l.k, l.v AS value, l.w AS word, r.v AS other")
    if not moved:
        project.update(1)
        assert_sound(project, spark)
    project.update(2)
    meet(project, 3)
    expected = [{"k": "x", "value": 1, "word": "w1", "other": None}, {"k": "x", "value": 3, "word": "w3", "other": 3}]
    assert told(project) == by_delta(project) == expected
    assert_sound(project, spark)


def test_a_column_goes_and_comes_back(project: Project, spark: SparkSession) -> None:
    """The column stays in the table with its former values; declared again, the view shows them again."""
    declare(project, "l.k, l.v AS value")
    project.update(2)
    meet(project, 3)
    assert told(project) == [{"k": "x", "value": 1}, {"k": "x", "value": 3}]
    assert [result["word"] for result in by_delta(project)] == ["w1", None]
    assert_sound(project, spark)
    declare(project, "l.k, l.w AS word, l.v AS value")
    meet(project, 4)  # it builds the view, so it reports nothing
    meet(project, 5)
    assert [(result["word"], result["value"]) for result in told(project)] == [("w1", 1), (None, 3), ("w5", 5)]
    assert_sound(project, spark)


def test_a_column_changes_its_type(project: Project, spark: SparkSession) -> None:
    """Values are converted; values that do not fit the new type stay in another column, and come back with the old type."""
    declare(project, "l.k, CAST(l.v AS string) AS value, r.v AS word")
    project.update(2)
    assert_sound(project, spark)
    meet(project, 3)
    assert told(project) == [{"k": "x", "value": "1", "word": None}, {"k": "x", "value": "3", "word": 3}]
    assert [result["_former_word_string"] for result in by_delta(project)] == ["w1", None]
    assert "_former_value_int32" not in by_delta(project)[0]
    assert_sound(project, spark)
    declare(project, "l.k, l.v AS value, l.w AS word")
    project.update(4)
    meet(project, 5)
    assert told(project) == [{"k": "x", "value": value, "word": word} for value, word in ((1, "w1"), (3, "3"), (5, "w5"))]
    assert_sound(project, spark)


def test_types_that_do_not_convert(project: Project, spark: SparkSession) -> None:
    """A number becomes a list: former results have null there, and their number in another column."""
    declare(project, "l.k, array(l.v) AS VALUE, l.w AS word")
    project.update(2)
    meet(project, 3)
    rows = by_delta(project)
    assert [(result["VALUE"], result["_former_VALUE_int32"]) for result in rows] == [(None, 1), ([3], None)]
    assert [result["VALUE"] for result in told(project)] == [None, [3]]
    assert_sound(project, spark)


def test_the_columns_of_a_stream_are_migrated(project: Project, spark: SparkSession) -> None:
    """A migration that gives a stream's column another type rebuilds the view: its results stay."""
    land(project, 2, {"a": [row("late", 1.5, 9) + ",1,w"]}, ",".join(COLUMNS))
    project.update(2)
    for name in "ab":
        project.change(name, columns={**COLUMNS, "v": "bigint"})
    project.updater().migrate(None, MigrationRequest())
    assert_sound(project, spark)
    meet(project, 3)
    assert told(project) == [{"k": "x", "value": value, "word": f"w{value}"} for value in (1, 3)]
    assert_sound(project, spark)
    state = project.epoch.table("met")
    assert state is not None
    assert {column.name: column.type for column in state.declaration.columns}["value"] == "bigint"


def test_results_that_are_reported_no_more(project: Project, spark: SparkSession) -> None:
    """The view has other columns and does not report: its results of before stay readable, in the new columns."""
    declare(project, "l.k, l.w AS value", short_lived="drop")
    meet(project, 2)
    meet(project, 3)
    assert told(project) == [{"k": "x", "value": "1"}]
    assert_sound(project, spark)


def test_going_back(project: Project, spark: SparkSession) -> None:
    """A rollback brings back the columns with the results; the next change of columns is as the first."""
    before = by_delta(project)
    declare(project, "l.k, l.w AS value")
    project.update(2)
    meet(project, 3)
    assert told(project) == [{"k": "x", "value": "1"}, {"k": "x", "value": "w3"}]
    declare(project, FIRST.removeprefix("SELECT ").removesuffix(f" {JOINED}"))
    project.updater().rollback(1)
    assert told(project) == by_delta(project) == before
    assert_sound(project, spark)


def test_going_back_to_before_the_first_result(project: Project, spark: SparkSession) -> None:
    """The table is empty then, with columns of later; the next results are written with their own."""
    declare(project, "l.k, l.w AS value")
    project.update(2)
    declare(project, FIRST.removeprefix("SELECT ").removesuffix(f" {JOINED}"))
    project.updater().rollback(0)
    assert told(project) == []
    assert check(project.root).findings == ()
    project.update(3)
    meet(project, 4)
    assert told(project)[-1] == {"k": "x", "value": 4, "word": "w4"}
    assert_sound(project, spark)


@pytest.mark.parametrize("point", [Point.STAGED, Point.STEP_COMMITTED])
def test_an_update_that_stops_in_between(project: Project, spark: SparkSession, point: Point) -> None:
    """The next update finishes it, and converts nothing twice."""
    declare(project, "l.k, l.w AS value")
    plan, _ = project.updater().plan(UpdateOptions(at=at(2)))
    assert plan is not None
    number = next(position for position, step in enumerate(plan.steps) if step.path == "restored/met")
    assert "add columns" in explain(plan, project.epoch, project.root)[number].action
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(point, number))
    project.update(2)
    meet(project, 3)
    assert told(project) == [{"k": "x", "value": "1"}, {"k": "x", "value": "w3"}]
    assert_sound(project, spark)


def test_a_table_that_an_earlier_build_left_behind(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log has the columns of before, and files of later have others: ``check`` names the rebuild, and that mends it."""
    with monkeypatch.context() as earlier:
        earlier.setattr(definitions, "reshape", lambda *_, **__: None)
        declare(project, "l.k, l.w AS value, r.v AS other")
        project.update(2)
        meet(project, 3)
    finding = check(project.root).findings[0]
    assert (finding.code, finding.subject, finding.table) == ("columns", "restored/met", "met")
    assert "`stream-wh rebuild met`" in finding.remedy
    project.updater().rebuild("met")
    assert told(project) == [{"k": "x", "value": "1", "other": None}, {"k": "x", "value": "w3", "other": 3}]
    assert_sound(project, spark)
