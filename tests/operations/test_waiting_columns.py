"""Waiting rows whose stream's columns change: all of them come, and ``check`` finds nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.checking.check import check
from warehouse.operations.migration import MigrationRequest

from .projects import Project, csv, row, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
WIDER = {**COLUMNS, "c": "string"}


def land(project: Project, name: str, *lines: str, header: str = "k,b,e,v") -> None:
    """Land a file."""
    project.land(name, csv(*lines, header=header))


@pytest.fixture
def waiting(tmp_path: Path, spark: SparkSession) -> Project:
    """Return a warehouse of one epoch in which a row waits for the sixth hour."""
    project = Project(tmp_path / "project", spark, {"a": stream(columns=COLUMNS)})
    land(project, "1.csv", row("x", 0.5, 3) + ",1", row("early", 5.5, 8) + ",7")
    project.update(1)
    assert [record["k"] for record in project.deferred()] == ["early"]
    return project


def come(project: Project, *names: str) -> list[dict[str, object]]:
    """Let the waiting rows come, and return their values in some columns."""
    assert check(project.root).findings == ()
    project.update(6)
    assert check(project.root).findings == ()
    return [{name: record[name] for name in names} for record in project.live()]


def test_a_column_comes(waiting: Project) -> None:
    """The earlier row has null in it, a new waiting row has its value."""
    waiting.change(columns=WIDER)
    land(waiting, "2.csv", row("late", 5.6, 8) + ",8,word", header="k,b,e,v,c")
    waiting.update(2)
    assert come(waiting, "k", "v", "c") == [{"k": "early", "v": 7, "c": None}, {"k": "late", "v": 8, "c": "word"}]


def test_a_type_changes(waiting: Project) -> None:
    """A migration converts waiting rows."""
    waiting.change(columns={**COLUMNS, "v": "bigint"})
    waiting.updater().migrate(None, MigrationRequest())
    land(waiting, "2.csv", row("late", 5.6, 8) + f",{2**40}")
    waiting.update(2)
    assert come(waiting, "k", "v") == [{"k": "early", "v": 7}, {"k": "late", "v": 2**40}]


def test_a_column_has_another_name(waiting: Project) -> None:
    """A migration that renames the column renames it in waiting rows."""
    waiting.change(columns={**{name: kind for name, kind in COLUMNS.items() if name != "v"}, "n": "int"})
    waiting.updater().migrate("a", MigrationRequest(renamed=(("v", "n"),)))
    land(waiting, "2.csv", row("late", 5.6, 8) + ",8", header="k,b,e,n")
    waiting.update(2)
    assert come(waiting, "k", "n") == [{"k": "early", "n": 7}, {"k": "late", "n": 8}]


def test_going_back_to_before_a_column(waiting: Project) -> None:
    """A rollback restores the waiting rows without the column; the next update adds it again."""
    waiting.change(columns=WIDER)
    land(waiting, "2.csv", row("late", 5.6, 8) + ",8,word", header="k,b,e,v,c")
    waiting.update(2)
    waiting.updater().rollback(0)
    assert check(waiting.root).findings == ()
    assert come(waiting, "k", "c") == [{"k": "early", "c": None}, {"k": "late", "c": "word"}]
