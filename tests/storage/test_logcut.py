"""A log that is cut is opened at its first version and tells nothing of what was before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.errors import ForeignChangeError, MissingPartError
from warehouse.storage.deltalog import commit_path
from warehouse.storage.entries import entry_at
from warehouse.storage.logcut import commit_mark, cut_log, trim_log
from warehouse.storage.replay import replay

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four commits and a checkpoint at version 2; the first file, of key Secret, has left."""
    place = tmp_path / "k=v" / "table"
    place.parent.mkdir()
    for number, key in enumerate(("Secret", "b", "c")):
        rows = pa.table({"k": [key, key], "n": [number, number], "p": [number % 2, 1]})
        write_deltalake(place, rows, mode="overwrite" if number == 1 else "append", partition_by=["p"])
    DeltaTable(place).create_checkpoint()
    write_deltalake(place, pa.table({"k": ["d"], "n": [3], "p": [1]}), mode="append")
    return place


def _rows(table: Path, version: int) -> list[str]:
    return sorted(DeltaTable(table, version=version).to_pyarrow_table()["k"].to_pylist())


def _secrets(table: Path) -> list[str]:
    log = table / "_delta_log"
    return [path.name for path in sorted(log.iterdir()) if b"Secret" in path.read_bytes()]


def test_a_cut_log_opens_at_its_version_with_all_that_it_said(table: Path) -> None:
    """Files, statistics, properties; what came before is gone, and cutting again changes nothing."""
    assert _secrets(table)
    before = replay(table, 3)
    commit_mark(table, entry_at(table, 3), {"epoch": 1}, 5_000_000)
    gone = cut_log(table, 4)
    assert len(gone) >= 5
    assert _secrets(table) == []
    assert sorted(path.name for path in (table / "_delta_log").iterdir()) == [
        f"{4:020d}.checkpoint.parquet",
        f"{4:020d}.json",
        "_last_checkpoint",
    ]
    assert _rows(table, 4) == ["b", "b", "c", "c", "d"]
    after = replay(table, 4)
    assert {path: json.loads(file["stats"]) for path, file in after.files.items()} == {
        path: json.loads(file["stats"]) for path, file in before.files.items()
    }
    assert after.metadata["schemaString"] == before.metadata["schemaString"]
    assert cut_log(table, 4) == ()
    write_deltalake(table, pa.table({"k": ["e"], "n": [4], "p": [1]}), mode="append")
    assert _rows(table, 5) == ["b", "b", "c", "c", "d", "e"]


def test_a_cut_stopped_half_way_is_finished_by_another(table: Path) -> None:
    """With the checkpoint written and some commits gone, or with neither."""
    commit_mark(table, entry_at(table, 3), {}, 0)
    cut_log(table, 4)
    (table / "_delta_log" / f"{1:020d}.json").write_text('{"add": {"path": "Secret"}}')
    (table / "_delta_log" / "_last_checkpoint").unlink()
    assert cut_log(table, 4) == (f"{1:020d}.json",)
    assert _rows(table, 4) == ["b", "b", "c", "c", "d"]


def test_a_mark_never_takes_the_place_of_a_commit(table: Path) -> None:
    """It is exclusive."""
    with pytest.raises(ForeignChangeError):
        commit_mark(table, entry_at(table, 2), {}, 0)


def test_a_log_that_lacks_a_commit_is_not_cut(table: Path) -> None:
    """Nothing is removed then."""
    commit_mark(table, entry_at(table, 3), {}, 0)
    commit_path(table, 3).unlink()
    with pytest.raises(MissingPartError):
        cut_log(table, 4)
    assert _secrets(table)


def test_trimming_keeps_every_version_from_the_oldest_on(table: Path) -> None:
    """Below the newest checkpoint at or before it nothing is needed."""
    assert trim_log(table, 1) == ()
    assert len(trim_log(table, 3, dry_run=True)) == 2
    checkpoint = table / "_delta_log" / f"{2:020d}.checkpoint.parquet"
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[:-9])
    assert trim_log(table, 3) == (), "one that was cut short is nothing to rely on"
    checkpoint.write_bytes(content)
    assert trim_log(table, 3) == (f"{0:020d}.json", f"{1:020d}.json")
    assert [len(_rows(table, version)) for version in (2, 3)] == [4, 5]
