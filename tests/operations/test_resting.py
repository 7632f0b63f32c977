"""Tables at rest for longer than Delta keeps a log: only the warehouse's own trim cuts a log, after the epoch.

Before each update all files of all logs are set 40 days back, and every commit makes a checkpoint due::

    k = 3        4        5        5        6
        |-40 d---|-40 d---|-40 d---|-40 d---|      each table: rows, waiting, rejected, restored; relation and views
        update   stopped  finished update
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.checking.check import check
from warehouse.epochs.journal import epoch_path, read_epoch, write_record
from warehouse.epochs.points import Point
from warehouse.serving.reader import Reader
from warehouse.storage import checkpoints
from warehouse.storage import replay as replaying
from warehouse.storage.commit import CommitFacts, commit
from warehouse.storage.definition_commits import create_table
from warehouse.storage.entries import entry_at, entry_path
from warehouse.storage.tables import PROPERTIES, rows_schema, table_properties
from warehouse.time import DAY

from .projects import Project, StoppedError, csv, row, stop_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LAST = 5
"""The hour whose update is stopped and finished."""
LONG_AGO = time.time() - 40 * 86_400


def rest(root: Path) -> None:
    """Set the files of all logs back."""
    for path in root.glob("*/*/_delta_log/*"):
        os.utime(path, (LONG_AGO, LONG_AGO))


def versions(project: Project) -> set[tuple[str, int]]:
    """Return all table versions that readable epochs name."""
    states = [state for number in project.numbers for state in read_epoch(project.root, number).tables]
    return {(table.path, table.version) for state in states for table in (state, *state.sides)}


def require_open(project: Project) -> None:
    """Require that every version of a readable epoch exists, and that every reader opens it."""
    for path, version in versions(project):
        assert entry_path(project.root / path, version).exists(), (path, version)
        assert DeltaTable(str(project.root / path), version=version).version() == version


def test_a_log_of_whatever_age_is_not_cut_by_a_commit(tmp_path: Path) -> None:
    """Nor by a checkpoint, nor by another writer that commits with its default settings."""
    table = tmp_path / "t"
    create_table(
        table,
        table_id="5f0c9a0e-0000-4000-8000-000000000002",
        schema=rows_schema([]),
        partition_columns=["sub_index", "exp_block"],
        properties=table_properties([], 0),
        metadata={},
        created_at=0,
    )
    for version in range(30):
        for path in (table / "_delta_log").iterdir():
            os.utime(path, (LONG_AGO, LONG_AGO))
        commit(table, entry_at(table, version), statistics=[], leaving=None, facts=CommitFacts({}))
        if checkpoints.checkpoint_due(table, version, version + 1):
            checkpoints.checkpoint(table, version + 1)
    assert all(entry_path(table, version).exists() for version in range(31))
    now = pa.array([None], pa.timestamp("us", "UTC"))
    none = pa.array([None], pa.int64())
    cells = pa.array([1], pa.int32())
    names = ["_ts", "_exp", "_load_slot", "_exp_slot", "sub_index", "exp_block"]
    blocks = pa.array([1], DeltaTable(table).to_pyarrow_dataset().schema.field("exp_block").type)
    rows = pa.table([now, now, none, none, cells, blocks], names=names)
    for _ in range(10):
        write_deltalake(table, rows, mode="append")
        for path in (table / "_delta_log").iterdir():
            os.utime(path, (LONG_AGO, LONG_AGO))
    assert max(replaying.checkpoints(table / "_delta_log")) > 30, "the other writer has made one"
    assert all(entry_path(table, version).exists() for version in range(41))


def test_tables_of_every_kind_rest_at_each_version(history: Project, tmp_path: Path, set_limits: Callable[..., object]) -> None:
    """Updates, a stopped and finished update, reads, checks, rollbacks and vacuums still work."""
    set_limits(checkpoint_interval=1)
    project = history.copy(tmp_path / "project")
    sql = "SELECT a.k, b.e FROM a JOIN b ON a.k = b.k"
    project.views["short"] = {"sql": sql, "search_key": "k", "short_lived": "report"}
    project.declare()
    for hour in (4, 5):
        brief = row("brief", hour - 0.8, hour - 0.2)
        project.land(f"{hour}.csv", csv(row("x", hour - 0.5, 9), row("w3", hour + 1.5, 9), brief, row("no", 1, "?")))
        project.land(f"{hour}.csv", csv(row("x", hour - 0.5, 9), brief), landing="landing/b")
        project.land(f"{hour}.csv", f"k,c,name\ny,2023-01-0{hour}T00:00:00Z,Y\n", landing="landing/r")
        rest(project.root)
        if hour == LAST:
            with pytest.raises(StoppedError):
                project.update(hour, observer=stop_at(Point.STEPS_DONE))
            rest(project.root)
        project.update(hour)
        require_open(project)
    assert {path.split("/")[0] for path, _ in versions(project)} == {"tables", "deferred", "rejected", "restored"}
    assert {state.kind for state in project.epoch.tables} >= {"stream", "relation", "view"}
    rest(project.root)
    assert check(project.root).faults == ()
    project.updater().rollback(3)
    rest(project.root)
    project.updater().repair()
    require_open(project)
    project.clock += 30 * DAY
    project.updater().vacuum()
    assert project.numbers == [5]
    require_open(project)
    with Reader.open(project.root) as reader:
        assert reader.sql("SELECT k FROM a ORDER BY k").all()
    project.update(6)
    require_open(project)
    assert check(project.root).faults == ()


def test_an_older_builds_tables_are_kept_from_others_cleanup(project: Project) -> None:
    """By the next update, in one commit each; the check does not report it before."""
    project.land("1.csv", csv(row("a", 0.5, 4), row("waits", 2.5, 6), "short"))
    project.update(1)
    epoch = project.epoch
    assert {state.properties for state in epoch.tables} == {PROPERTIES}
    for entry in epoch.entries:
        path = entry_path(project.root / entry.path, 0)
        path.write_text(path.read_text().replace('"delta.enableExpiredLogCleanup":"false"', '"x":"y"'))
    epoch_path(project.root, 0).unlink()
    older = tuple(replace(state, properties=1) for state in epoch.tables)
    write_record(epoch_path(project.root, 0), replace(epoch, entries=(), tables=older))
    assert check(project.root).faults == ()
    project.land("2.csv", csv(row("b", 1.5, 4), "short"))
    project.update(2)
    assert {state.properties for state in project.epoch.tables} == {PROPERTIES}
    for entry in project.epoch.entries:
        configuration = DeltaTable(str(project.root / entry.path)).metadata().configuration
        assert configuration["delta.enableExpiredLogCleanup"] == "false"
        assert entry_at(project.root / entry.path, entry.version).sha256 == entry.sha256
    made = versions(project)
    project.update(3)
    assert not any(path == "rejected/a" for path, _ in versions(project) - made)
