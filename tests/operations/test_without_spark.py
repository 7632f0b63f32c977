"""Updates by which nothing arrives start no Spark: rows expire, views follow, what is short-lived is kept, all in this process.

Rows of two hours and of five, so that some expire in the fourth hour and the others later::

    hour    0.........1.........2.........3.........4.........5.........6
    a  x     [....................)
       y     [..........................................)
    b  x          [..............................)
       z          [...............................................)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, row, stream
from tests.views.warehouses import asked, land, served, view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

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
LINES = {
    1: {"a": [row("x", 0.2, 2.5) + ",1", row("y", 0.3, 4.5) + ",2"], "b": [row("x", 0.6, 3.8) + ",3", row("z", 0.7, 5.3) + ",4"]},
    2: {"a": [row("x", 1.2, 3.5) + ",5"], "b": [row("y", 1.5, 4.4) + ",6"]},
}


@pytest.mark.parametrize(("technique", "expires"), [("norebuild", "e"), ("rebuild", "least(e, ts + INTERVAL 5 HOURS)")])
def test_rows_expire_without_a_session(tmp_path: Path, spark: SparkSession, technique: str, expires: str) -> None:
    """A session that must not be opened: every view is its query, over one hour and over two, until nothing is left."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
    keys = {"columns": columns, "layout": {"technique": technique}, "expires": expires, "max_lifetime": "6h"}
    streams = {name: stream(landing=f"landing/{name}", **keys) for name in "ab"}
    project = Project(tmp_path, spark, streams, views=VIEWS)
    for hour, lines in LINES.items():
        land(project, hour, lines, "k,b,e,v")
        project.update(hour)
    project.spark = None
    for hour in (3, 4, 6):
        project.update(hour)
        for name, declared in VIEWS.items():
            assert served(project, name) == asked(project, str(declared["sql"])), f"{name} at {hour}"
        assert {step.jobs for step in project.epoch.seconds} <= {0}
    assert not project.live("a")
    assert not project.live("b")


def test_an_update_of_nothing_starts_no_spark(tmp_path: Path, spark: SparkSession) -> None:
    """No row has come or gone: the windows move, and each table stays as it is."""
    project = Project(tmp_path, spark, views={"seen": view("SELECT DISTINCT k FROM a")})
    project.land("1.csv", "k,b,e\n" + row("x", 0.5, 4) + "\n")
    project.update(1)
    versions = {state.name: state.version for state in project.epoch.tables}
    project.spark = None
    project.update(2)
    assert project.epoch.slot > 0
    assert {state.name: state.version for state in project.epoch.tables} == versions
