"""Outsiders commit while an update by which rows expire is at work: each kind of change, at each moment, without Spark.

As :mod:`.test_foreign_within` shows of updates that load rows; these cost a tenth of the time.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from warehouse.epochs.points import Point

from .outsiders import CHANGES
from .projects import StoppedError
from .test_foreign import faults, rows_of, table_of
from .test_foreign_within import ALL, acting_at, cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .projects import Project

OF_B = {"pairs", "lonely", "maybe", "either"}
"""The views that read it."""
QUICK = [
    ("overwrite", Point.STAGED, "undo"),
    ("columns", Point.STEP_COMMITTED, "undo"),
    ("optimize", Point.STEP_STARTED, "repair"),
    ("protocol", Point.STEPS_DONE, "undo"),
]

Rows = dict[str, list[str]]


@pytest.fixture(scope="module")
def waiting(expiring: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project before an update that writes table b again, since a row of it expires."""
    project = expiring.copy(tmp_path_factory.mktemp("waiting") / "project")
    project.update(3)
    return project


def _all_rows(project: Project) -> Rows:
    return {state.name: rows_of(project, state.name) for state in project.epoch.tables}


@pytest.fixture(scope="module")
def model(waiting: Project, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """The rows of the tables and views after the update, had nobody come."""
    project = waiting.copy(tmp_path_factory.mktemp("model") / "project")
    project.update(4)
    assert _all_rows(project)["b"] != _all_rows(waiting)["b"]
    return _all_rows(project)


@pytest.fixture(scope="module")
def killed(waiting: Project, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Point], Project]:
    """Warehouses whose update was killed at a point, each of which is made once; tests take copies."""

    def stop() -> None:
        raise StoppedError

    def make(point: Point) -> Project:
        project = waiting.copy(tmp_path_factory.mktemp("killed") / "project")
        with pytest.raises(StoppedError):
            project.update(4, observer=acting_at(project, point, stop, "tables/b"))
        return project

    return cache(make)


@pytest.mark.parametrize(
    ("name", "point", "verb"), [pytest.param(*case, marks=() if case in QUICK else pytest.mark.long) for case in cases()]
)
def test_an_update_by_which_rows_expire_is_finished_whatever_outsiders_committed(
    killed: Callable[[Point], Project], tmp_path: Path, model: Rows, name: str, point: Point, verb: str
) -> None:
    """What changes no row is taken back by itself; anything else stops the table alone, until its command takes it back."""
    project = killed(point).copy(tmp_path / "project")
    ALL[name](table_of(project, "b"))
    if verb == "undo":
        if name in CHANGES and name not in ("lying optimize", "torn"):
            report = project.update(4)
            assert [table for table, why in report.stopped if "repair --undo-foreign b" in why] == ["b"]
            assert {view for view, _ in report.failed_views} == OF_B
            assert rows_of(project, "a") == model["a"]
            assert {fault.split(":")[0] for fault in faults(project)} == {"foreign_commit"}
        told = project.updater().undo_foreign("b", dry_run=True)
        assert all(each.how in ("followed", "removed") for each in told), told
        assert project.updater().undo_foreign("b") == told
    if verb == "repair":
        project.updater().repair()
    project.update(4)
    assert _all_rows(project) == model
    assert not faults(project)
