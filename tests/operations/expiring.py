"""A warehouse whose next updates need no Spark: nothing arrives any more, rows expire, views follow.

Rows of two hours and of five, so that some expire in the third hour and the others later::

    hour    0.........1.........2.........3.........4.........5.........6
    a  x     [....................)
       x                [..................)
       y     [..........................................)
    b  x          [..............................)
       z          [...............................................)
       y                     [.............................)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.views.warehouses import land, view
from warehouse.publishing.database import replace_database_if_needed

from .histories import copy_of_shared
from .projects import Project, row, stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["VIEWS", "expiring_of"]

VIEWS = {
    "large": view("SELECT k, v FROM a WHERE v > 1"),
    "seen": view("SELECT DISTINCT k FROM a"),
    "counted": view("SELECT k, count(*) AS n, sum(v) AS total FROM a GROUP BY k"),
    "pairs": view("SELECT l.k, l.v, r.v AS w FROM a l JOIN b r ON l.k = r.k"),
    "lonely": view("SELECT k, v FROM b r WHERE NOT EXISTS (SELECT 1 FROM a l WHERE l.k = r.k)", short_lived="report"),
    "maybe": view("SELECT r.k, r.v, l.v AS other FROM b r LEFT JOIN a l ON l.k = r.k"),
    "either": view("SELECT k, v FROM a UNION ALL SELECT k, v FROM b"),
    "again": view("SELECT k, n FROM counted WHERE n > 0"),
}
_LINES = {
    1: {"a": [row("x", 0.2, 2.5) + ",1", row("y", 0.3, 4.5) + ",2"], "b": [row("x", 0.6, 3.8) + ",3", row("z", 0.7, 5.3) + ",4"]},
    2: {"a": [row("x", 1.2, 3.5) + ",5"], "b": [row("y", 1.5, 4.4) + ",6"]},
}
_COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}


def expiring_of(own: Path, shared: Path, spark: Callable[[], SparkSession]) -> Project:
    """Return the warehouse in a directory of this process's own; the processes of one run make it once, in ``shared``."""
    copy_of_shared(own, shared, lambda directory: _make(directory, spark()))
    project = _declared(own, None)
    replace_database_if_needed(project.root, project.epoch)
    return project


def _make(directory: Path, spark: SparkSession) -> None:
    """Make two epochs."""
    project = _declared(directory, spark)
    for hour, lines in _LINES.items():
        land(project, hour, lines, "k,b,e,v")
        project.update(hour)


def _declared(directory: Path, spark: SparkSession | None) -> Project:
    common = {"columns": _COLUMNS, "max_lifetime": "6h"}
    at_most = {**common, "expires": "least(e, ts + INTERVAL 5 HOURS)"}
    streams = {
        "a": stream(landing="landing/a", layout={"technique": "norebuild"}, **common),
        "b": stream(landing="landing/b", layout={"technique": "rebuild"}, **at_most),
    }
    return Project(directory, spark, streams, views=dict(VIEWS))
