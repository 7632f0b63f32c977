"""A log that was cut opens at its first version and contains nothing of earlier versions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.errors import ForeignChangeError, MissingPartError
from warehouse.storage.entries import entry_at, entry_path
from warehouse.storage.local_disk import LocalDisk
from warehouse.storage.logcut import commit_mark, cut_log, trim_log
from warehouse.storage.replay import replay

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four commits and a checkpoint at version 2; the first file, of key Secret, has left."""
    path = tmp_path / "k=v" / "table"
    path.parent.mkdir()
    for number, key in enumerate(("Secret", "b", "c")):
        rows = pa.table({"k": [key, key], "n": [number, number], "p": [number % 2, 1]})
        write_deltalake(path, rows, mode="overwrite" if number == 1 else "append", partition_by=["p"])
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, pa.table({"k": ["d"], "n": [3], "p": [1]}), mode="append")
    return path


def _rows(table: Path, version: int) -> list[str]:
    return sorted(DeltaTable(table, version=version).to_pyarrow_table()["k"].to_pylist())


def _secrets(table: Path) -> list[str]:
    log = table / "_delta_log"
    return [path.name for path in sorted(log.iterdir()) if b"Secret" in path.read_bytes()]


def test_a_cut_log_opens_at_its_version_with_all_that_it_said(table: Path) -> None:
    """Files, statistics and properties stay; earlier entries are gone, and cutting again changes nothing."""
    assert _secrets(table)
    before = replay(table, 3)
    commit_mark(table, entry_at(table, 3), {"epoch": 1}, 5_000_000)
    removed = cut_log(table, 4)
    assert len(removed) >= 5
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
    """With the checkpoint written and some commits deleted, or with neither."""
    commit_mark(table, entry_at(table, 3), {}, 0)
    cut_log(table, 4)
    (table / "_delta_log" / f"{1:020d}.json").write_text('{"add": {"path": "Secret"}}')
    (table / "_delta_log" / "_last_checkpoint").unlink()
    assert cut_log(table, 4) == (f"{1:020d}.json",)
    assert _rows(table, 4) == ["b", "b", "c", "c", "d"]


def test_a_mark_never_takes_the_place_of_a_commit(table: Path) -> None:
    """The write is exclusive."""
    with pytest.raises(ForeignChangeError):
        commit_mark(table, entry_at(table, 2), {}, 0)


def test_a_log_that_lacks_a_commit_is_not_cut(table: Path) -> None:
    """Nothing is removed."""
    commit_mark(table, entry_at(table, 3), {}, 0)
    entry_path(table, 3).unlink()
    with pytest.raises(MissingPartError):
        cut_log(table, 4)
    assert _secrets(table)


def test_trimming_keeps_every_version_from_the_oldest_on(table: Path) -> None:
    """Entries below the newest checkpoint at or before the oldest version are not needed."""
    assert trim_log(table, 1) == ()
    assert len(trim_log(table, 3, dry_run=True)) == 2
    checkpoint = table / "_delta_log" / f"{2:020d}.checkpoint.parquet"
    content = checkpoint.read_bytes()
    checkpoint.write_bytes(content[:-9])
    assert trim_log(table, 3) == (), "one that was cut short is nothing to rely on"
    checkpoint.write_bytes(content)
    assert trim_log(table, 3) == (f"{0:020d}.json", f"{1:020d}.json")
    assert [len(_rows(table, version)) for version in (2, 3)] == [4, 5]


def _checkpoint(table: Path) -> Path:
    return table / "_delta_log" / f"{2:020d}.checkpoint.parquet"


def _flipped(content: bytes, share: float) -> bytes:
    """Change some bytes in the middle; the file still ends as a Parquet file does."""
    at = int(len(content) * share)
    return content[:at] + bytes(byte ^ 0xFF for byte in content[at : at + 8]) + content[at + 8 :]


def test_a_damaged_checkpoint_is_nothing_to_rely_on(table: Path) -> None:
    """Whichever of its bytes are damaged: the commits stay, or the checkpoint has the same content as before."""
    before = [replay(table, version) for version in (2, 3)]
    content = _checkpoint(table).read_bytes()
    noticed = 0
    for percent in range(4, 100, 4):
        _checkpoint(table).write_bytes(_flipped(content, percent / 100))
        try:
            same = [replay(table, version) for version in (2, 3)] == before
        except MissingPartError:
            same = False
        noticed += not same
        assert bool(trim_log(table, 3, dry_run=True)) == same, percent
    assert noticed > 3
    _checkpoint(table).write_bytes(_flipped(content, 0.95))
    assert trim_log(table, 3) == ()
    assert entry_path(table, 0).exists()


def test_a_checkpoint_that_the_commits_contradict_is_nothing_to_rely_on(table: Path) -> None:
    """Its commit may have been removed by somebody; an earlier checkpoint that is right is used."""
    DeltaTable(table).create_checkpoint()
    right = _checkpoint(table).read_bytes()
    (table / "_delta_log" / f"{3:020d}.checkpoint.parquet").write_bytes(right)
    assert trim_log(table, 3, dry_run=True) == (f"{0:020d}.json", f"{1:020d}.json")
    assert trim_log(table, 3) == (f"{0:020d}.json", f"{1:020d}.json")
    assert len(_rows(table, 2)) == 4


def test_where_nothing_is_removed_nothing_is_synced(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trimming again costs one listing."""
    assert trim_log(table, 3)
    monkeypatch.setattr(LocalDisk, "sync_tree", None)
    monkeypatch.setattr("warehouse.storage.logcut.checkpointed", None)
    assert trim_log(table, 3) == ()


@pytest.mark.parametrize("how", ["damaged", "foreign"])
def test_a_log_is_not_cut_at_a_checkpoint_that_is_wrong(table: Path, how: str) -> None:
    """The checkpoint is written again from the commits before anything is removed."""
    commit_mark(table, entry_at(table, 3), {}, 0)
    before = replay(table, 4)
    content = _checkpoint(table).read_bytes()
    path = table / "_delta_log" / f"{4:020d}.checkpoint.parquet"
    path.write_bytes(content if how == "foreign" else _flipped(content, 0.3))
    assert cut_log(table, 4)
    assert replay(table, 4).files.keys() == before.files.keys()
    assert _rows(table, 4) == ["b", "b", "c", "c", "d"]


def _named(checkpoint: Path) -> list[str]:
    actions = pq.read_table(checkpoint).to_pylist()
    return [action["remove"]["path"] for action in actions if action["remove"] is not None and action["remove"]["path"]]


def test_a_cut_log_names_no_file_that_has_left(table: Path) -> None:
    """If deltalake already made a checkpoint of the version, which names them, it is written again."""
    before = replay(table, 2)
    assert _named(_checkpoint(table))
    cut_log(table, 2)
    assert not _named(_checkpoint(table))
    assert replay(table, 2).files.keys() == before.files.keys()
    written = _checkpoint(table).stat().st_mtime_ns
    assert cut_log(table, 2) == ()
    assert _checkpoint(table).stat().st_mtime_ns == written, "it is written once"
