"""An update that stops in the middle of its views: the next one makes what an undisturbed one makes, restored rows included.

::

    hour    0.........1.........2              hour    0.........1.........2
    a  x     [..................)              b  w        [.................
       y       [..........)                       x                [.........
       x         [...............                 x               [.)           dead on arrival, meets the first two x
       x               [...)        dead          y                 [....)      dead, hides y for a while
       y                [........                 z                   [......   hides z, which was there before unseen
       z                  [......
       w                   [.....
       x                     [...                                               spare: outlives the x that is shown
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.projects import Project, StoppedError, row, stop_at, stream
from tests.operations.test_processes import started
from warehouse.epochs.journal import plan_path, read_record
from warehouse.epochs.points import Moment, Point
from warehouse.planning.plan_record import Plan
from warehouse.planning.steps import CreateTable, RewriteBuckets

from .warehouses import asked, land, restored, stored, view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
VIEWS = {
    "joined": view("SELECT l.k, l.v AS lv, r.v AS rv FROM a l JOIN b r ON l.k = r.k", short_lived="report"),
    "met": view("SELECT DISTINCT k FROM joined"),
    "odd": view("SELECT DISTINCT k, v % 2 AS odd FROM a"),
    "grouped": view("SELECT k, count(*) AS n, sum(v) AS s FROM a GROUP BY k"),
    "lonely": view("SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", short_lived="report"),
}
FIRST = {
    "a": [row("x", 0.1, 2) + ",1", row("y", 0.3, 1.5) + ",2", row("x", 0.5, 3.5) + ",3"],
    "b": [row("w", 0.4, 3) + ",4"],
}
SECOND = {
    "a": [
        row("x", 1.1, 1.5) + ",5", row("z", 1.4, 3) + ",6", row("y", 1.2, 4) + ",4", row("w", 1.5, 4) + ",7",
        row("x", 1.7, 5) + ",9",
    ],
    "b": [row("x", 1.3, 3) + ",1", row("x", 1.2, 1.4) + ",2", row("y", 1.4, 1.9) + ",3", row("z", 1.6, 3) + ",8"],
}
THIRD = {"a": [row("z", 2.5, 5) + ",9"], "b": [row("x", 2.1, 2.4) + ",9"]}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """The warehouse after its first update, with the files of the second waiting."""
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}") for name in "ab"}
    project = Project(tmp_path_factory.mktemp("begun") / "project", spark, streams, views=VIEWS)
    land(project, 1, FIRST, ",".join(COLUMNS))
    project.update(1)
    land(project, 2, SECOND, ",".join(COLUMNS))
    return project


def answers(project: Project) -> dict[str, Any]:
    """Return the rows, the restored results and the counts of every table."""
    rows = {state.name: project.live(state.name) for state in project.epoch.tables}
    counts = {counted.stream: (counted.inserted, counted.dead, counted.expired) for counted in project.epoch.counts}
    reported = {name: restored(project, name, "k", "v" if name == "lonely" else "lv") for name in ("joined", "lonely")}
    return {"epoch": project.epoch.number, "rows": rows, "restored": reported, "counts": counts}


@pytest.fixture(scope="module")
def undisturbed(begun: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the answers after an undisturbed second update: each view equals its query, and results came and went unseen."""
    project = begun.copy(tmp_path_factory.mktemp("undisturbed") / "project")
    project.update(2)
    for name, keys in VIEWS.items():
        assert stored(project, name) == asked(project, str(keys["sql"]))
    state = answers(project)
    assert all(state["restored"].values())
    assert state["rows"]["odd.spare"]
    return state


@pytest.mark.long
def test_an_update_stopped_again_and_again_makes_the_same_answers(
    begun: Project, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """Each attempt stops one point later; readers see epoch n until n+1 is written, and then exactly that."""
    project = begun.copy(tmp_path / "project")
    before, seen = answers(project), set[tuple[Point, int]]()

    def observe(moment: Moment) -> None:
        if (moment.point, moment.step) not in seen:
            seen.add((moment.point, moment.step))
            raise StoppedError

    while True:
        points_seen = len(seen)
        try:
            project.update(2, observer=observe)
        except StoppedError:
            written = Point.EPOCH_WRITTEN in {point for point, _ in seen}
            assert project.epoch.number == (1 if written else 0)
        if len(seen) == points_seen:
            break
    assert begun.epoch.number == before["epoch"]
    committed = {step for point, step in seen if point == Point.STEP_COMMITTED}
    plan = _plan(begun, project)
    views = {plan.steps[step].stream for step in committed}
    assert views >= {"joined", "met", "odd", "odd.spare", "grouped", "lonely"}
    assert answers(project) == undisturbed


def _plan(begun: Project, project: Project) -> Plan:
    return read_record(plan_path(project.root, begun.epoch.number + 1), Plan)


def _steps(plan: Plan, table: str) -> list[int]:
    return [number for number, step in enumerate(plan.steps) if step.stream == table and not isinstance(step, CreateTable)]


@pytest.fixture(scope="module")
def planned(begun: Project, tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """The plan of the second update."""
    project = begun.copy(tmp_path_factory.mktemp("planned") / "project")
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(Point.PLAN_WRITTEN))
    return _plan(begun, project)


@pytest.mark.parametrize("table", ["b", "joined", "odd.spare"])
def test_what_a_stopped_update_had_in_memory_is_found_again(
    begun: Project, undisturbed: dict[str, Any], planned: Plan, tmp_path: Path, table: str
) -> None:
    """After a table's commit everything else starts again; rows that were dead on arrival are read from their files again."""
    project = begun.copy(tmp_path / "project")
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(Point.STEP_COMMITTED, _steps(planned, table)[0]))
    project.update(2)
    assert answers(project) == undisturbed


def test_a_view_is_maintained_after_a_kill_in_the_middle_of_its_step(
    begun: Project, undisturbed: dict[str, Any], planned: Plan, tmp_path: Path
) -> None:
    """The process dies with the spare rows of a DISTINCT written and its own rows not; then the update after that goes on."""
    project = begun.copy(tmp_path / "project")
    assert isinstance(planned.steps[_steps(planned, "odd.spare")[0]], RewriteBuckets)
    killed = started(project, 2, Point.STEP_READY, _steps(planned, "odd")[0])
    assert killed.stdout is not None
    assert killed.stdout.readline() == "held\n"
    killed.kill()
    killed.communicate(timeout=600)
    assert project.epoch.number == 0
    project.update(2)
    assert answers(project) == undisturbed
    land(project, 3, THIRD, ",".join(COLUMNS))
    project.update(3)
    for name, keys in VIEWS.items():
        assert stored(project, name) == asked(project, str(keys["sql"]))
