"""Changed declarations, migrations, restatements: the commands that messages name let the tables follow."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

from deltalake import DeltaTable, write_deltalake

from tests.operations.projects import Project, csv, row, stream
from warehouse.storage.entries import entry_path

from .executed import advised, executes, typed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def append(place: Path) -> int:
    """Commit the rows of a table once more, as an outsider, and return the version."""
    table = DeltaTable(str(place))
    write_deltalake(str(place), table.to_pyarrow_table(), mode="append")
    return table.version() + 1


_UPDATE = "stream-wh update --at 2024-01-01T04:00:00Z"


@executes("stream-wh migrate ○", "stream-wh migrate ○ --rebuild")
def test_a_layout_and_a_wider_type(past: Project) -> None:
    """The table is written again, then updates go on."""
    past.change("a", layout={"grid": [2, 2]})
    printed = typed(past.directory, _UPDATE, code=2)
    typed(past.directory, advised(printed, "stream-wh migrate ○"))
    typed(past.directory, _UPDATE)
    columns = past.streams["a"]["columns"]
    past.change("a", search_key=["k", "b"], columns={**columns, "more": "int"})  # type: ignore[dict-item]
    printed = typed(past.directory, "stream-wh update", code=2)
    typed(past.directory, advised(printed, "stream-wh migrate ○ --rebuild"))
    typed(past.directory, "stream-wh update")


@executes("`stream-wh migrate ○ --rename ○=NEW` if it is called otherwise now", "`stream-wh restate ○ --since first`")
def test_a_column_that_is_gone(past: Project) -> None:
    """One command keeps the column's values; the other loads all files again."""
    past.views.clear()
    past.declare()
    for name in ("counts", "once", "named"):
        typed(past.directory, f"stream-wh drop {name}")
    renamed = {"k": "string", "b": "timestamp", "until": {"type": "timestamp", "from": "e"}}
    past.change("a", columns=renamed, expires="until")
    printed = typed(past.directory, _UPDATE, code=2)
    rename = advised(printed, "`stream-wh migrate ○ --rename ○=NEW` if it is called otherwise now")
    typed(past.directory, rename.replace("NEW", "until"))
    typed(past.directory, _UPDATE)
    past.change("a", columns={"k": "string", "b": "timestamp"}, expires="b + INTERVAL 3 HOURS", sources={"e": "string"})
    printed = typed(past.directory, "stream-wh update --at 2024-01-01T05:00:00Z", code=2)
    typed(past.directory, advised(printed, "`stream-wh restate ○ --since first`"))
    typed(past.directory, "stream-wh update --at 2024-01-01T05:00:00Z")


@executes(
    "stream-wh migrate --rebuild",
    "so the slots of all tables are counted again: `stream-wh migrate --rebuild`",
    "○: `stream-wh drop ○` first",
    "restore ○, `stream-wh update --at ○`, then change it and migrate",
)
def test_another_grid_of_times(past: Project) -> None:
    """Undeclared tables are dropped first, and the window time must be on both grids."""
    del past.views["once"]
    past.warehouse["update_interval"] = "2h"
    past.declare()
    printed = typed(past.directory, _UPDATE, code=2)
    command = advised(printed, "stream-wh migrate --rebuild")
    part = "so the slots of all tables are counted again: `stream-wh migrate --rebuild`"
    assert advised(typed(past.directory, "stream-wh migrate a", code=2), part) == command
    printed = typed(past.directory, command, code=2)
    typed(past.directory, advised(printed, "○: `stream-wh drop ○` first"), code=2)  # the file does not fit yet
    past.warehouse["update_interval"] = "1h"
    past.declare()
    typed(past.directory, advised(printed, "○: `stream-wh drop ○` first"))
    past.warehouse["update_interval"] = "2h"
    past.declare()
    printed = typed(past.directory, command, code=2)
    back = advised(printed, "restore ○, `stream-wh update --at ○`, then change it and migrate")
    assert 'update_interval = "1h"' in printed
    past.warehouse["update_interval"] = "1h"
    past.declare()
    typed(past.directory, back)
    past.warehouse["update_interval"] = "2h"
    past.declare()
    typed(past.directory, command)
    typed(past.directory, "stream-wh update --at 2024-01-01T06:00:00Z")


@executes(
    "`stream-wh restate ○ --since first` loads it again",
    "it is for rows loaded from now on; `stream-wh restate ○` applies it to others",
    "restore them, or give --allow-lost to do without their rows",
)
def test_restating(past: Project) -> None:
    """A relation is loaded again, a stream by another expression; missing files are named with a remedy."""
    printed = typed(past.directory, "stream-wh migrate r", code=2)
    typed(past.directory, advised(printed, "`stream-wh restate ○ --since first` loads it again"))
    past.change("a", expires="e + INTERVAL 1 HOUR")
    printed = typed(past.directory, "stream-wh plan")
    typed(past.directory, advised(printed, "it is for rows loaded from now on; `stream-wh restate ○` applies it to others"))
    (past.directory / "landing/a/2.csv").unlink()
    printed = typed(past.directory, "stream-wh restate a", code=2)
    assert "--allow-lost" in advised(printed, "restore them, or give --allow-lost to do without their rows")
    typed(past.directory, "stream-wh restate a --allow-lost")


@executes(
    "Take it back with `stream-wh repair --undo-foreign ○` (--dry-run shows what it would do)",
    'table "○" stood still, and can go on: `stream-wh update` moves it',
)
def test_what_outsiders_changed(past: Project) -> None:
    """The change is undone, and the next update moves the table."""
    state = past.epoch.table("a")
    assert state is not None
    append(past.root / state.path)
    printed = typed(past.directory, _UPDATE, code=1)
    part = "Take it back with `stream-wh repair --undo-foreign ○` (--dry-run shows what it would do)"
    command = advised(printed, part)
    typed(past.directory, f"{command} --dry-run")
    typed(past.directory, command)
    typed(past.directory, _UPDATE)
    version = append(past.root / state.path)
    typed(past.directory, "stream-wh update --at 2024-01-01T05:00:00Z", code=1)
    entry_path(past.root / state.path, version).unlink()
    printed = typed(past.directory, "stream-wh status")
    typed(past.directory, advised(printed, 'table "○" stood still, and can go on: `stream-wh update` moves it'))
    assert "stood still" not in typed(past.directory, "stream-wh status")


@executes('set on_expiry = "drop" and `stream-wh drop ○` first')
def test_an_archive(tmp_path: Path, spark: SparkSession) -> None:
    """An archive has no slots to count again, and its rows cannot follow new columns."""
    project = Project(tmp_path / "project", spark, {"a": stream(on_expiry="archive")})
    project.land("1.csv", csv(row("x", 0.5, 4), row("y", 0.5, 1.5)))
    project.update(1)
    project.update(2)
    project.warehouse["update_interval"] = "2h"
    project.declare()
    printed = typed(project.directory, "stream-wh migrate --rebuild", code=2)
    part = 'set on_expiry = "drop" and `stream-wh drop ○` first'
    command = advised(printed, part)
    project.warehouse["update_interval"] = "1h"
    project.change("a", on_expiry="drop")
    typed(project.directory, command)
    project.warehouse["update_interval"] = "2h"
    project.declare()
    typed(project.directory, "stream-wh migrate --rebuild")


@executes("it was declared after the last update; the next one builds it: `stream-wh update`")
def test_a_view_that_was_declared_after_the_last_update(past: Project) -> None:
    """The next update builds the view."""
    past.views["late"] = {"sql": "SELECT k, b FROM a", "search_key": "k"}
    past.declare()
    printed = typed(past.directory, "stream-wh status -o csv")
    part = "it was declared after the last update; the next one builds it: `stream-wh update`"
    typed(past.directory, advised(printed, part))
    assert "it was declared" not in typed(past.directory, "stream-wh status -o csv")


@executes(
    "is declared and has no rows: it cannot be maintained (○); correct [views.○], look at it with `stream-wh validate`, then run "
    "`stream-wh update`",
)
def test_a_view_that_cannot_be_maintained(past: Project) -> None:
    """The view is corrected, validated and built."""
    past.views["broken"] = {"sql": "SELECT k, nothing FROM a", "search_key": "k"}
    past.declare()
    typed(past.directory, _UPDATE, code=1)
    printed = typed(past.directory, "stream-wh scan broken", code=1)
    part = (
        "is declared and has no rows: it cannot be maintained (○); correct [views.○], look at it with `stream-wh validate`, then "
        "run `stream-wh update`"
    )
    command = advised(printed, part)
    past.views["broken"]["sql"] = "SELECT k, b FROM a"
    past.declare()
    for line in re.findall(r"`(stream-wh validate|stream-wh update)`", printed):
        typed(past.directory, line)
    assert command == "stream-wh update"
    typed(past.directory, "stream-wh scan broken")


@executes(
    "is not empty; restore into another project, or give --replace to set it aside",
    "(`stream-wh restore DIR --replace`)",
    "holds a backup that was stopped before it was whole; run `stream-wh backup ○` again",
    "○ is damaged: ○; `stream-wh check` says what to do",
)
def test_backups(past: Project, tmp_path: Path) -> None:
    """A stopped backup is made again and replaces damaged data; damage is not backed up."""
    target = tmp_path / "my backup"
    typed(past.directory, f"stream-wh backup '{target}'")
    assert "--replace" in advised(
        typed(past.directory, f"stream-wh restore '{target}'", code=1),
        "is not empty; restore into another project, or give --replace to set it aside",
    )
    (target / "backup.json").rename(target / "gone")
    (target / "backup.begun").touch()
    printed = typed(past.directory, f"stream-wh restore '{target}'", code=1)
    part = "holds a backup that was stopped before it was whole; run `stream-wh backup ○` again"
    typed(past.directory, advised(printed, part))
    state = past.epoch.table("a")
    assert state is not None
    shutil.rmtree(past.root / state.path)
    printed = typed(past.directory, "stream-wh scan a", code=1)
    typed(past.directory, advised(printed, "(`stream-wh restore DIR --replace`)"), DIR=str(target))
    typed(past.directory, "stream-wh scan a")
    file = next((past.root / state.path).rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    printed = typed(past.directory, f"stream-wh backup '{tmp_path / 'other'}'", code=1)
    assert file.name in typed(past.directory, advised(printed, "○ is damaged: ○; `stream-wh check` says what to do"), code=4)


@executes("give --since ○ or leave it out")
def test_a_time_that_no_epoch_reaches(past: Project) -> None:
    """The message names the oldest possible time."""
    past.warehouse["retain"] = "0s"
    past.declare()
    past.updater().vacuum()
    printed = typed(past.directory, "stream-wh restate a --since 2024-01-01T01:00:00Z", code=2)
    since = advised(printed, "give --since ○ or leave it out").split()[2]
    typed(past.directory, f"stream-wh restate a --since {since}")
