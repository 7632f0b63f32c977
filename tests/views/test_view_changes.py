"""Views that are added, changed and taken away while their inputs go on.

Every test goes on from the same beginning::

    hour   0.........1.........2
    rows     aaa bb  |  aa b
    views    joined, over (reads joined), odd, nested (two operators with state below it)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, at, row, stream
from warehouse.errors import UsageError
from warehouse.project import Warehouse
from warehouse.time import DAY

from .warehouses import asked, counted, land, restored, served, stored, view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int"}
JOINED = "SELECT l.k, l.v AS lv, r.v AS rv FROM a l JOIN b r ON l.k = r.k"
OVER = "SELECT k, count(*) AS n FROM joined GROUP BY k"
ODD = "SELECT DISTINCT k, v % 2 AS odd FROM a"
NESTED = "SELECT s.k, g.n FROM (SELECT DISTINCT k FROM a) s JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) g ON s.k = g.k"
FIRST = {
    "a": [row("x", 0.2, 3) + ",1", row("x", 0.4, 1.5) + ",3", row("y", 0.5, 4) + ",2", row("x", 0.1, 0.9) + ",5"],
    "b": [row("x", 0.3, 2.5) + ",7", row("y", 0.6, 1.2) + ",8", row("x", 0.1, 0.5) + ",9"],
}
SECOND = {
    "a": [row("y", 1.1, 3) + ",4", row("z", 1.6, 5) + ",1", row("x", 1.2, 1.7) + ",2"],
    "b": [row("z", 1.5, 4) + ",6", row("x", 1.4, 4) + ",6"],
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """The warehouse after its first update, with the rows of the second waiting."""
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}") for name in "ab"}
    views = {"joined": view(JOINED), "over": view(OVER), "odd": view(ODD), "nested": view(NESTED)}
    project = Project(tmp_path_factory.mktemp("begun") / "project", spark, streams, views=views)
    land(project, 1, FIRST, ",".join(COLUMNS))
    project.update(1)
    land(project, 2, SECOND, ",".join(COLUMNS))
    return project


@pytest.fixture
def project(begun: Project, tmp_path: Path) -> Project:
    """A copy of it for each test."""
    return begun.copy(tmp_path / "project")


def declare(project: Project, **views: dict[str, object] | None) -> None:
    """Declare views, or other queries for them; ``None`` takes one away."""
    for name, keys in views.items():
        project.views.pop(name, None)
        if keys is not None:
            project.views[name] = keys
    project.declare()


def state(project: Project, name: str) -> list[str]:
    """Return the tables that store a view."""
    return sorted(table.name for table in project.epoch.tables if table.owner == name)


def assert_all_current(project: Project) -> None:
    """Every declared view is its query, for readers of the warehouse and of its Delta table."""
    for name, keys in project.views.items():
        assert served(project, name) == stored(project, name) == asked(project, str(keys["sql"])), name


def test_an_added_view_is_built_without_new_rows(project: Project) -> None:
    """An update that moves no window builds it over the live rows, as a new epoch of the same time; nothing was short-lived."""
    declare(project, later=view(JOINED, short_lived="report"), on_top=view("SELECT DISTINCT k FROM later"))
    report = project.update(1)
    assert [epoch.window_time for epoch in report.epochs] == [at(1)]
    assert project.epoch.number == 1
    assert served(project, "later") == served(project, "joined") != counted([])
    assert_all_current(project)
    assert restored(project, "later", "k") == []
    assert project.update(1).epochs == ()


def test_an_added_view_is_built_with_the_next_rows(project: Project) -> None:
    """An update that moves the windows builds it at its own time, and the one after maintains it."""
    declare(project, later=view(JOINED, short_lived="report"))
    project.update(2)
    assert served(project, "later") == served(project, "joined")
    assert restored(project, "later", "k") == []
    land(project, 3, {"b": [row("x", 2.1, 2.9) + ",1", row("y", 2.2, 5) + ",3"]}, ",".join(COLUMNS))
    project.update(3)
    assert_all_current(project)
    assert restored(project, "later", "k", "rv") == [("x1", 2.1, 2.9), ("y3", 2.2, 3.0)]


def test_a_changed_view_is_built_anew_with_those_that_read_it(project: Project) -> None:
    """New columns and a new key, in the same table; the epoch before keeps the old ones, and the update says so."""
    before = served(project, "joined")
    declare(project, joined=view("SELECT l.v + r.v AS total, l.k, r.v AS rv FROM a l JOIN b r ON l.k = r.k", "total"))
    report = project.update(2)
    assert_all_current(project)
    declaration = project.epoch.table("joined").declaration  # type: ignore[union-attr]
    assert ([column.name for column in declaration.columns], declaration.search_key) == (["total", "k", "rv"], ("total",))
    warnings = [text for epoch in report.epochs for text in epoch.warnings]
    assert {name for name in ("joined", "over", "odd", "nested") if any(f'"{name}"' in text for text in warnings)} == {
        "joined", "over",
    }  # fmt: skip
    with Warehouse.open(project.directory) as warehouse:
        assert counted(warehouse.scan("joined", as_of=at(1)).arrow().to_pylist()) == before
        assert counted(warehouse.sql(OVER, as_of=at(1)).arrow().to_pylist()) == counted(
            warehouse.scan("over", as_of=at(1)).arrow().to_pylist()
        )
        total = next(iter(served(project, "joined")))
        assert warehouse.probe("joined", [int(str(dict(total)["total"]))]).arrow().num_rows >= 1


def test_a_changed_view_is_built_anew_without_new_rows(project: Project) -> None:
    """At the same window time, as a new epoch; then it is maintained again."""
    declare(project, odd=view("SELECT DISTINCT v AS value FROM a", "value"))
    assert [epoch.window_time for epoch in project.update(1).epochs] == [at(1)]
    assert_all_current(project)
    project.update(2)
    assert_all_current(project)


def test_state_of_an_old_plan_is_forgotten(project: Project) -> None:
    """Tables of operators that the changed view does not have leave the epoch, and later the disk; nothing else does."""
    old = state(project, "nested")
    assert len(old) >= 4
    declare(project, nested=view("SELECT DISTINCT k, v FROM b"))
    project.update(2)
    assert state(project, "nested") == ["nested", "nested.spare"]
    forgotten = sorted(set(old) - {"nested", "nested.spare"})
    assert {entry.table for entry in project.epoch.removed if entry.whole} == {f"tables/{name}" for name in forgotten}
    assert all((project.root / "tables" / name).is_dir() for name in forgotten)
    project.clock += 8 * DAY
    project.update(3)
    assert project.numbers == [1, 2]
    assert not any((project.root / "tables" / name).exists() for name in forgotten)
    assert_all_current(project)


def test_rebuilt_tables_keep_what_readable_epochs_need(project: Project) -> None:
    """While the old epoch can be read, vacuum leaves its files; once it is retired they go, and the new ones stay."""
    declare(project, joined=view("SELECT l.k, r.v AS rv FROM a l JOIN b r ON l.k = r.k", "rv"))
    project.update(2)
    old = sorted(project.stored("joined", 0), key=repr)
    files = {path for path in (project.root / "tables" / "joined").rglob("*.parquet") if path.parent.parent.name != "joined"}
    project.clock += DAY
    project.updater().vacuum()
    assert sorted(project.stored("joined", 0), key=repr) == old
    project.clock += 8 * DAY
    project.updater().vacuum()
    assert project.numbers == [1]
    assert any(not path.exists() for path in files)
    assert_all_current(project)


def test_a_view_that_was_away_is_built_anew(project: Project) -> None:
    """A view that is declared again has the rows that came meanwhile; so do its readers."""
    declare(project, joined=None, over=None, odd=None)
    project.update(2)
    land(project, 3, {"b": [row("x", 2.1, 3.5) + ",1"]}, ",".join(COLUMNS))
    declare(project, joined=view(JOINED), over=view(OVER), odd=view(ODD))
    report = project.update(3)
    assert_all_current(project)
    warnings = [text for epoch in report.epochs for text in epoch.warnings]
    assert sum("was not declared for a while" in text for text in warnings) == 3
    declare(project, joined=None)  # alone, and back again before the windows move
    declare(project, joined=view(JOINED))
    assert project.update(3).epochs == ()


def test_distinct_over_a_stream_whose_rows_ended_once(project: Project) -> None:
    """Rows from before `expires` was removed still end; a value that later rows have stays."""
    project.change("a", expires=None, max_lifetime=None)
    project.update(1)  # rebuilt: y is shown by a row that ends at 4, and the next one never does
    assert state(project, "odd") == ["odd", "odd.spare"]
    assert state(project, "nested") == ["nested", "nested.1", "nested.1.spare", "nested.2"]  # of which b's was left alone
    for hour in (2, 3, 5):
        project.update(hour)
        assert_all_current(project)
    assert {dict(served_row)["k"] for served_row in served(project, "odd")} == {"x", "y", "z"}


def test_a_view_that_is_taken_away_stays_as_it_is(project: Project) -> None:
    """The view is frozen with its state and warned about; `drop` removes it for good."""
    tables, rows = state(project, "nested"), project.stored("nested")
    declare(project, nested=None)
    report = project.update(2)
    assert any('table "nested" is no longer declared' in text for text in report.warnings)
    assert state(project, "nested") == tables
    assert {table.declared for table in project.epoch.tables if table.owner == "nested"} == {False}
    assert sorted(project.stored("nested"), key=repr) == sorted(rows, key=repr)
    with pytest.raises(UsageError, match="still declared"):
        project.updater().drop("odd")
    project.updater().drop("nested")
    assert state(project, "nested") == []
    assert {entry.table for entry in project.epoch.removed if entry.whole} == {f"tables/{name}" for name in tables}
    project.update(3)
    assert_all_current(project)
