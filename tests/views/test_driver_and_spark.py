"""Every operator of views over few rows: the driver makes what Spark makes, cell by cell, in the same order.

Two projects get the same files; in one of them Spark does everything. Rows come, come late, come twice, and end between updates.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from tests.operations.projects import Project, row, stream, text
from warehouse.limits import limited
from warehouse.project import Warehouse
from warehouse.storage import lookup
from warehouse.storage.snapshot import read_snapshot
from warehouse.views.maintenance import appended, cache, distinct, driver_keyed, inputs, joins
from warehouse.views.maintenance import replaced as keyed

from .warehouses import all_asked, land, stored, view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
HEADER = ",".join(COLUMNS)
HOURS = 4
"""The last brings nothing: rows end."""
VIEWS = {
    "values": view("SELECT DISTINCT k, v % 3 AS d FROM a", short_lived="report"),
    "unpaid": view("SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > 2)", short_lived="report"),
    "paid": view("SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"),
    "maybe": view("SELECT l.k, l.v AS lv, r.v AS rv FROM a l LEFT JOIN b r ON l.k = r.k AND l.v < r.v"),
    "either": view("SELECT l.k, r.k AS other, l.v + r.v AS total FROM a l FULL JOIN b r ON l.k = r.k"),
    "rest": view("SELECT k, v FROM a EXCEPT ALL SELECT k, v FROM b"),
    "first": view("SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v DESC) AS n FROM a) WHERE n <= 2"),
    "groups": view("SELECT k, count(*) AS n, max(lv) AS most FROM maybe GROUP BY k"),
    "whole": view("SELECT count(*) AS n, sum(v) AS total, 'x' AS k FROM a"),
    "joined": view("SELECT g.k, g.n, b.v FROM groups g JOIN b ON g.k = b.k"),
    "shown": view("SELECT k, v FROM unpaid WHERE v > 1 UNION ALL SELECT k, v FROM b WHERE v > 4"),
    "recent": view("SELECT k, count(*) AS n FROM time_window(a, INTERVAL 2 HOURS) GROUP BY k"),
    "priced": view("SELECT a.k, a.v, p.price FROM a JOIN p ON a.k = p.k"),
}
LOOKING_BACK = ("priced", "recent", "groups", "joined", "shown")
"""They read versions, a window or other views: no query over the live rows of the streams gives them."""
QUERIES = {name: str(keys["sql"]) for name, keys in VIEWS.items() if name not in LOOKING_BACK}
PRICES = {1: [("x", 2, 0.5), ("y", 3, 0.6)], 2: [("x", 4, 1.5)], 3: [("z", 9, 2.2), ("y", 1, 2.4)]}


def _rows(chance: random.Random, hour: int) -> list[str]:
    """Return rows of an hour: a few keys, nulls among them; some rows are late, some end before any update."""
    lines = []
    for _ in range(chance.randrange(1, 9)):
        begins = max(0.05, hour - chance.choice([0.9, 0.7, 0.3, 1.6]))
        ends = begins + chance.choice([0.1, 0.4, 1, 2.5, 4])
        lines.append(row(chance.choice(["x", "y", "z", "q", ""]), begins, ends) + f",{chance.randrange(6)}")
    return lines


@pytest.fixture
def by_spark(monkeypatch: pytest.MonkeyPatch) -> Callable[[Project, int], None]:
    """Update a project with Spark alone."""

    def update(project: Project, hour: int) -> None:
        with monkeypatch.context() as patch, limited(driver_rows=0, driver_bytes=-1):
            patch.setattr(lookup, "LARGE", -1)
            for module in (joins, cache, distinct, appended, inputs, driver_keyed):
                patch.setattr(module, "FEW", 0)
            project.update(hour)

    return update


def _project(directory: Path, spark: SparkSession) -> Project:
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}") for name in "ab"}
    price = {"landing": "landing/p", "format": "csv", "search_key": "k", "changed_at": "c", "retroactive": False}
    columns = {"k": "string", "price": "int", "c": "timestamp"}
    return Project(directory, spark, streams, views=VIEWS, relations={"p": {**price, "columns": columns}})


def _cells(project: Project, table: str) -> dict[tuple[int, int], list[tuple[Any, ...]]]:
    """Return the live rows of each cell of a view, and their keys in the order of the files' rows."""
    state = project.epoch.table(table)
    runs_of: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
    if state is None or state.view is None:
        return runs_of
    keys = ", ".join(f'"{name}"' for name in (*state.view.node.search_key, "_exp"))
    for file in read_snapshot(project.root, state.path, state.version, ()).files:
        with duckdb.connect() as engine:
            live = f"FROM '{file.path}' WHERE _exp_slot > {project.epoch.slot}"
            rows, order = (engine.sql(f"SELECT {shown} {live}").fetchall() for shown in ("*", keys))
        runs_of.setdefault((file.sub_index, file.exp_block), []).append((sorted(rows, key=repr), order))
    return {cell: sorted(runs, key=repr) for cell, runs in runs_of.items() if any(rows for rows, _ in runs)}


def _told(project: Project, view: str) -> list[str]:
    with Warehouse.open(project.directory) as warehouse:
        return sorted(map(repr, warehouse.restored(view).arrow().to_pylist()))


@pytest.fixture
def declined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the tables that the driver left to Spark although it should do everything."""
    tables: list[str] = []

    def watched(node_inputs: inputs.NodeInputs) -> Any:  # noqa: ANN401 - passed on
        result = driver_keyed.replaced_in_driver(node_inputs)
        if result is None:
            tables.append(node_inputs.node.table)
        return result

    monkeypatch.setattr(keyed, "replaced_in_driver", watched)
    return tables


def test_the_driver_and_spark_make_the_same_tables(
    tmp_path: Path, spark: SparkSession, by_spark: Callable[[Project, int], None], declined: list[str]
) -> None:
    """Rows of each cell, their order, times and slots, and short-lived results; the driver leaves no view to Spark.

    So it is when the views are built in the first hour, too.
    """
    here, there = (_project(tmp_path / name, spark) for name in ("here", "there"))
    chance = random.Random(0)  # noqa: S311 - test data
    for hour in range(1, HOURS + 1):
        lines = {name: _rows(chance, hour) if hour < HOURS else [] for name in "ab"}
        prices = [f"{key},{price},{text(changed)}" for key, price, changed in PRICES.get(hour, ())]
        for project in (here, there):
            land(project, hour, lines, HEADER)
            land(project, hour, {"p": prices}, "k,price,c")
        declined.clear()
        here.update(hour)
        assert not declined
        by_spark(there, hour)
        for name, expected in all_asked(here, QUERIES).items():
            assert stored(here, name) == expected, name
        tables = {state.name for state in here.epoch.tables}
        assert {name: _cells(here, name) for name in tables} == {name: _cells(there, name) for name in tables}
        assert [_told(here, name) for name in ("values", "unpaid")] == [_told(there, name) for name in ("values", "unpaid")]
