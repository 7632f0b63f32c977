"""Updates without arrivals start no Spark: rows expire, views follow, short-lived results are kept, all in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.views.warehouses import asked, served, view

from .expiring import VIEWS
from .projects import Project, row

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_rows_expire_without_a_session(expiring: Project, tmp_path: Path) -> None:
    """The session must not be opened: every view equals its query, over one hour and over two, until no row is left."""
    project = expiring.copy(tmp_path / "project")
    for hour in (3, 4, 6):
        project.update(hour)
        for name, declared in VIEWS.items():
            assert served(project, name) == asked(project, str(declared["sql"])), f"{name} at {hour}"
        assert {step.jobs for step in project.epoch.seconds} <= {0}
    assert not project.live("a")
    assert not project.live("b")


def test_an_update_of_nothing_starts_no_spark(tmp_path: Path, spark: SparkSession) -> None:
    """No row has come or gone: the windows move, and each table is unchanged."""
    project = Project(tmp_path, spark, views={"seen": view("SELECT DISTINCT k FROM a")})
    project.land("1.csv", "k,b,e\n" + row("x", 0.5, 4) + "\n")
    project.update(1)
    versions = {state.name: state.version for state in project.epoch.tables}
    project.spark = None
    project.update(2)
    assert project.epoch.slot > 0
    assert {state.name: state.version for state in project.epoch.tables} == versions
