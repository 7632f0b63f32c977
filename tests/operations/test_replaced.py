"""Reads while a table is replaced by another table, an older copy or nothing: the errors say what to do."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.cli.main import run
from warehouse.cli.status import status
from warehouse.errors import EpochVacuumedError, MissingPartError, Transient
from warehouse.project import Warehouse

from .outsiders import CHANGES
from .projects import Project, csv, row
from .test_foreign import REPLACED, faults, table_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READS: dict[str, Callable[[Warehouse], object]] = {
    "scan": lambda warehouse: warehouse.scan("a").all(),
    "scan where": lambda warehouse: warehouse.scan("a", where="k > 'a'").all(),
    "probe": lambda warehouse: warehouse.probe("a", ["x"]).all(),
    "sql": lambda warehouse: warehouse.sql("SELECT k FROM a").all(),
    "files": lambda warehouse: warehouse.files("a"),
    "changes": lambda warehouse: warehouse.changes("a", since=1).all(),
}


@pytest.fixture
def idle(history: Project, tmp_path: Path) -> Project:
    """A copy that needs no Spark."""
    copy = history.copy(tmp_path / "project")
    copy.spark = None
    return copy


def _stands(project: Project) -> dict[str, dict[str, Any]]:
    result = status(project.directory, verbose=False, expanded=True).result
    return {record["table"]: record for batch in result.batches() for record in batch.to_pylist()}


@pytest.mark.parametrize("name", REPLACED)
def test_reading_it_says_what_brings_it_back(idle: Project, tmp_path: Path, name: str) -> None:
    """In each way of reading; no error says to retry; other tables can be read, `status` shows all; a restored copy is read."""
    table = table_of(idle)
    before = {table_name: idle.live(table_name) for table_name in ("a", "b")}
    shutil.copytree(table, tmp_path / "copy")
    REPLACED[name](table)
    with Warehouse.open(idle.directory) as warehouse:
        for read in READS.values():
            with pytest.raises(MissingPartError, match="Restore its directory from a copy, or the ware") as error:
                read(warehouse)
            assert not isinstance(error.value, Transient)
            assert str(table) in str(error.value)
        assert sorted(warehouse.scan("b", columns=["k"]).all()) == sorted((record["k"],) for record in before["b"])
    stands = _stands(idle)
    assert "Restore its directory from a copy" in stands["a"]["failed"]
    assert (stands["a"]["live_rows"], stands["b"]["live_rows"]) == (0, len(before["b"]))
    assert stands["a"]["rows"] >= len(before["a"])
    assert run(["-C", str(idle.directory), "status", "-v"]) == 0
    shutil.rmtree(table, ignore_errors=True)
    shutil.copytree(tmp_path / "copy", table)
    assert idle.live("a") == before["a"]
    assert _stands(idle)["a"]["failed"] is None


@pytest.mark.parametrize("name", ["longer", "gone"])
def test_it_is_said_so_while_the_table_stands_still(history: Project, tmp_path: Path, name: str) -> None:
    """Updates have continued without it: each epoch is newer, and none has the table."""
    project = history.copy(tmp_path / "project")
    REPLACED[name](table_of(project))
    project.land("4.csv", csv(row("n", 3.5, 7)))
    project.update(4)
    with Warehouse.open(project.directory) as warehouse:
        for read in READS.values():
            with pytest.raises(MissingPartError, match="Restore its directory from a copy"):
                read(warehouse)


def test_a_file_of_the_newest_epoch_that_is_gone(idle: Project) -> None:
    """A retry may help if several hosts share the disk; the error says what to do otherwise."""
    table = table_of(idle)
    with Warehouse.open(idle.directory) as warehouse:
        (table.parents[1] / warehouse.files("a").files[0].path).unlink()
        with pytest.raises(EpochVacuumedError, match=r"run again.*`stream-wh check` lists"):
            warehouse.scan("a").all()


@pytest.mark.parametrize("dry_run", [True, False])
def test_taking_back_all_tables_goes_through_all(idle: Project, capsys: pytest.CaptureFixture[str], dry_run: bool) -> None:
    """A table that cannot be taken back is reported, with exit code 1, and the others are still taken back."""
    rows = idle.live("b")
    REPLACED["gone"](table_of(idle, "a"))
    CHANGES["append"](table_of(idle, "b"))
    capsys.readouterr()
    arguments = ["repair", "--undo-foreign", *(["--dry-run"] if dry_run else []), "-o", "json"]
    assert run(["-C", str(idle.directory), *arguments]) == 1
    done = {entry["path"]: entry for entry in json.loads(capsys.readouterr().out)["done"]}
    assert {path: entry["how"] for path, entry in done.items()} == {"tables/a": "not possible", "tables/b": "followed"}
    assert "Restore its directory from a copy" in done["tables/a"]["message"]
    if not dry_run:
        assert idle.live("b") == rows
        assert not any("foreign" in fault for fault in faults(idle))
