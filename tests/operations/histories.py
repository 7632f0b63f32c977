"""A warehouse with a past, made once for all tests that go back, verify or repair: they copy it and damage the copy.

Four slots deep; k is the slot that an update ends::

    k = 0        1        2        3        4
        x........x........x........x.....|         of 1.csv, loaded at 1; so is w, which waits until 3
                 bad......bad......bad......bad    of 2.csv, loaded at 2: what should not have come
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from filelock import FileLock

from warehouse.publishing.database import replace_database_if_needed

from .projects import Project, csv, row, stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["copy_of_shared", "counts", "history_of", "make_history"]

VIEWS: dict[str, dict[str, object]] = {
    "counts": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"},
    "once": {"sql": "SELECT DISTINCT k FROM a", "search_key": "k", "short_lived": "report"},
    "named": {"sql": "SELECT a.k, r.name, a.e FROM a JOIN r ON a.k = r.k", "search_key": "k"},
}
RELATION: dict[str, object] = {
    "landing": "landing/r",
    "format": "csv",
    "search_key": "k",
    "changed_at": "c",
    "columns": {"k": "string", "c": "timestamp", "name": "string"},
}
FIRST = csv(row("x", 0.5, 4.2), row("x", 0.2, 2.5), row("gone", 0.5, 2.5), row("w", 2.5, 6), row("no", 0, "?"))
SECOND = csv(row("bad", 1.5, 5), row("x", 1.2, 5), row("w2", 4.5, 6), row("no", 1, "?"))


def history_of(own: Path, shared: Path, spark: SparkSession) -> Project:
    """Return the warehouse in a directory of this process's own; the processes of one run make it once, in ``shared``."""
    copy_of_shared(own, shared, lambda directory: make_history(directory, spark))
    project = declared_history(own, spark)
    replace_database_if_needed(project.root, project.epoch)
    return project


def copy_of_shared(own: Path, shared: Path, make: Callable[[Path], object]) -> None:
    """Copy a directory that the processes of one run make once."""
    with FileLock(shared.with_name(shared.name + ".lock")):
        if not shared.exists():
            made = shared.with_name(shared.name + ".made")
            make(made)
            made.rename(shared)
        shutil.copytree(shared, own)


def declared_history(directory: Path, spark: SparkSession) -> Project:
    """Return a project with two streams, a relation and three views."""
    streams = {"a": stream(), "b": stream(landing="landing/b", layout={"technique": "rebuild"})}
    return Project(directory, spark, streams, views=dict(VIEWS), relations={"r": dict(RELATION)})


def make_history(directory: Path, spark: SparkSession) -> Project:
    """Make three epochs, of slots 1, 2 and 3, with waiting and rejected rows."""
    project = declared_history(directory, spark)
    project.land("1.csv", "k,c,name\nx,2023-01-01T00:00:00Z,X\nbad,2023-01-01T00:00:00Z,B\n", landing="landing/r")
    project.land("1.csv", FIRST)
    project.land("1.csv", csv(row("q", 0.5, 4)), landing="landing/b")
    project.update(1)
    project.land("2.csv", SECOND)
    project.land("2.csv", csv(row("q2", 1.5, 5)), landing="landing/b")
    project.update(2)
    project.update(3)
    assert (project.keys(), project.keys("once"), project.keys("named")) == ("bad w x x", "bad w x", "bad x x")
    assert counts(project) == {"bad": 1, "w": 1, "x": 2}
    return project


def counts(project: Project, number: int | None = None) -> dict[str, int]:
    """Return the groups of the view and their counts."""
    return {row["k"]: row["n"] for row in project.live("counts", number)}
