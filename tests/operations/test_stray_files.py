"""Files and directories that other programs leave under the root stop no verb, and change no answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.frozen.story import answers
from tests.frozen.test_frozen import HERE, thawed
from tests.operations.projects import csv, row
from warehouse.checking.check import check
from warehouse.epochs.journal import newest_epoch, numbers, record_path
from warehouse.epochs.known import keep_ledger, prune_ledgers
from warehouse.operations.backup import back_up, verify
from warehouse.operations.migrate import MigrationRequest
from warehouse.operations.unneeded_files import merge_ledgers
from warehouse.project import Warehouse
from warehouse.publishing.live.log import LIVE, newest_state
from warehouse.publishing.live.publish import live_rules, purge_live_tables

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operations.projects import Project

STRAY = (".DS_Store", "Thumbs.db", "notes.txt", ".sync.tmp", "copy.json")
DIRECTORIES = ("@eaDir", ".stversions.tmp")


def sprinkle(root: Path) -> None:
    """Put stray files and directories into logs and into every directory below a root that is not a table's."""
    for directory in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        if any(name in directory.parts for name in DIRECTORIES):
            continue
        for name in STRAY:
            path = directory / name
            path.write_bytes(b"stray")
            os.utime(path, (0, 0))
        for name in DIRECTORIES:
            (directory / name / "inner").mkdir(parents=True, exist_ok=True)
            (directory / name / "inner" / "file").write_bytes(b"stray")


@pytest.mark.parametrize("name", ["wave", "past"])
def test_no_stray_file_stops_a_verb_that_needs_no_spark(name: str, tmp_path: Path) -> None:
    """With live tables and a ledger; the stray files stay where they were."""
    frozen = thawed(HERE / "61b4f80" / name, tmp_path / "project")
    configuration = frozen.directory / "warehouse.toml"
    configuration.write_text(configuration.read_text().replace("[warehouse]\n", '[warehouse]\npublish = "delta"\n'))
    frozen.updater().repair()
    newest = newest_epoch(frozen.root)
    assert newest is not None
    keep_ledger(frozen.root, newest, numbers(frozen.root, "epoch")[0])
    sprinkle(frozen.root)
    frozen.updater().vacuum(dry_run=True)
    frozen.updater().vacuum()
    sprinkle(frozen.root)
    frozen.updater().undo_foreign()
    frozen.updater().landing()
    back_up(frozen.root, configuration, tmp_path / "backup", now=1)
    verify(tmp_path / "backup")
    sprinkle(frozen.root)
    assert frozen.faults() == []
    frozen.updater().repair()
    sprinkle(frozen.root)
    purge_live_tables(frozen.root, newest, live_rules(frozen.updater().catalog))
    merge_ledgers(frozen.root)
    prune_ledgers(frozen.root, newest.number)
    with Warehouse(frozen.directory, frozen.root) as warehouse:
        warehouse.metrics()
    assert answers(frozen.directory) == frozen.expected["now"]
    for table in ("a", "pairs"):
        state = newest_state(frozen.root / LIVE / table)
        assert state is not None
        assert state.is_of(newest)
    record_path(frozen.root, newest.number + 1, "plan").write_bytes(b"{}")  # which an update makes again
    frozen.updater().repair()
    assert answers(frozen.directory) == frozen.expected["now"]


def test_no_stray_file_stops_a_verb_that_writes(history: Project, tmp_path: Path) -> None:
    """An update with files, a rollback, a restatement, a rebuild, a migration, a reload, an erasure, a dropped table."""
    project = history.copy(tmp_path / "project")
    project.warehouse["publish"] = "delta"
    project.declare()
    sprinkle(project.root)
    project.land("4.csv", csv(row("new", 3.2, 7), row("short", 3.5, 4.6)))
    project.update(4)
    assert project.keys() == "bad new short w x x"
    sprinkle(project.root)
    project.updater().rollback(1)
    project.updater().restate("a", allow_lost=True)
    sprinkle(project.root)
    project.updater().rebuild("counts")
    project.change("a", layout={"grid": [1, 2]})
    project.updater().migrate("a", MigrationRequest())
    project.updater().reload("landing/b/2.csv")
    sprinkle(project.root)
    project.updater().erase("a", ["new"])
    sprinkle(project.root)
    project.update(5)
    assert check(project.root, published={"a", "b", "r", "counts", "once", "named"}).faults == ()
    del project.streams["b"]
    project.declare()
    project.updater().drop("b")
    project.updater().vacuum()
