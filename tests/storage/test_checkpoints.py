"""A checkpoint appears whole or not at all, and a log with a torn checkpoint opens as it does without it."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.storage.checkpoints import checkpoint, checkpoint_due, drop_torn_checkpoints
from warehouse.storage.entries import entry_path
from warehouse.storage.local_disk import watching
from warehouse.storage.replay import checkpoints, replay

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Seven commits; the last one removes two files."""
    path = tmp_path / "a table%"
    for number in range(6):
        write_deltalake(path, pa.table({"k": [number], "p": [f"{number % 2} /x"]}), mode="append", partition_by=["p"])
    DeltaTable(path).delete("k in (0, 1)")
    return path


def keys(path: Path, version: int | None = None) -> list[int]:
    """Return the keys that delta-rs reads."""
    return sorted(DeltaTable(path, version=version).to_pyarrow_table()["k"].to_pylist())


def test_readers_begin_at_a_checkpoint(table: Path) -> None:
    """Also of an older version, and made from the checkpoint before; only the log's own files remain."""
    before = {version: replay(table, version).files.keys() for version in range(7)}
    checkpoint(table, 3)
    for version in range(3):
        entry_path(table, version).unlink()
    checkpoint(table, 6)
    assert sorted(checkpoints(table / "_delta_log")) == [3, 6]
    assert all(replay(table, version).files.keys() == before[version] for version in range(3, 7))
    assert (keys(table), keys(table, 4)) == ([2, 3, 4, 5], [0, 1, 2, 3, 4])
    entry_path(table, 4).unlink()
    assert keys(table) == [2, 3, 4, 5]
    assert DeltaTable(table).version() == 6
    assert [path.name for path in table.iterdir() if not path.name.startswith("p=")] == ["_delta_log"]
    write_deltalake(table, pa.table({"k": [9], "p": ["c"]}), mode="append")
    assert keys(table) == [2, 3, 4, 5, 9]


def test_removed_files_are_named_while_they_are_there(table: Path) -> None:
    """A VACUUM by others spares them as before; after their deletion a checkpoint no longer names them."""
    (remaining, deleted) = sorted(set(replay(table, 5).files) - set(replay(table, 6).files))
    (table / deleted).unlink()
    checkpoint(table, 6)
    log = table / "_delta_log"
    (name,) = checkpoints(log)[6]
    removed = pq.ParquetFile(log / name).read(columns=["remove.path"])["remove"].drop_null().to_pylist()
    assert [unquote(action["path"]) for action in removed] == [remaining]
    pointer = json.loads((log / "_last_checkpoint").read_text())
    assert (pointer["size"], pointer["sizeInBytes"]) == (pq.read_metadata(log / name).num_rows, (log / name).stat().st_size)
    before = replay(table, 6)
    for version in range(6):
        entry_path(table, version).unlink()
    assert replay(table, 6) == before
    write_deltalake(table, pa.table({"k": [9], "p": ["c"]}), mode="append")
    assert keys(table) == [2, 3, 4, 5, 9]


def test_spark_begins_at_a_checkpoint_without_deleted_files(table: Path, spark: SparkSession) -> None:
    """Spark with Delta reads it, makes a checkpoint itself, and commits above it."""
    for path in set(replay(table, 5).files) - set(replay(table, 6).files):
        (table / path).unlink()
    checkpoint(table, 6)
    for version in range(6):
        entry_path(table, version).unlink()
    directory = str(table.rename(table.with_name("t")))  # Spark takes the percent sign of the other name for an escape
    frame = spark.read.format("delta").load(directory)
    assert sorted(row["k"] for row in frame.collect()) == [2, 3, 4, 5]
    spark.sql(f"VACUUM delta.`{directory}`")
    spark.sql(f"DELETE FROM delta.`{directory}` WHERE k = 2")
    assert keys(table.with_name("t")) == [3, 4, 5]


@pytest.mark.parametrize("nth", range(4))
def test_a_checkpoint_has_its_name_when_it_is_on_the_disk(table: Path, nth: int) -> None:
    """Whichever sync fails: readers find the log as before, or a whole checkpoint; the next attempt makes one."""
    seen = 0

    def fail(kind: str, path: Path) -> None:
        nonlocal seen
        if kind == "sync":
            assert path.suffix != ".parquet" or "_checkpoint" in path.parts, "it is synced before it has its name"
            seen += 1
            if seen == nth + 1:
                raise OSError(errno.EIO, "a failing disk")

    with watching(fail):
        checkpoint(table, 6)
    assert seen > nth, "there are as many syncs"
    assert not (table / "_checkpoint").exists()
    assert keys(table) == [2, 3, 4, 5]
    checkpoint(table, 6)
    assert sorted(checkpoints(table / "_delta_log")) == [6]
    assert keys(table) == [2, 3, 4, 5]


@pytest.mark.parametrize(("size", "made"), [(400, [10, 20, 30, 40]), (10_000, [10, 30, 50]), (10**6, [10, 110, 210])])
def test_a_large_checkpoint_stands_for_more_commits(tmp_path: Path, size: int, made: list[int]) -> None:
    """The next checkpoint waits until the entries since are a fair part of it, at most a hundred commits."""
    log = tmp_path / "_delta_log"
    log.mkdir()
    versions = []
    for version in range(211):
        entry_path(tmp_path, version).write_bytes(b"x" * 150)
        if checkpoint_due(tmp_path, version - 1, version):
            versions.append(version)
            (log / f"{version:020d}.checkpoint.parquet").write_bytes(b"x" * size)
    assert versions[: len(made)] == made
    entry_path(tmp_path, versions[-1] - 3).unlink()
    assert checkpoint_due(tmp_path, versions[-1] - 1, versions[-1] + 10)


def test_a_torn_checkpoint_goes_where_the_log_reaches_without_it(table: Path) -> None:
    """Another writer or an older build left it, at an epoch's version or above; a needed checkpoint is never removed."""
    log = table / "_delta_log"
    for version in (3, 6):
        DeltaTable(table, version=version).create_checkpoint()
    whole = {version: (log / f"{version:020d}.checkpoint.parquet").read_bytes() for version in (3, 6)}
    (log / f"{6:020d}.checkpoint.parquet").write_bytes(whole[6][:-20])
    drop_torn_checkpoints(table, 7)
    assert sorted(checkpoints(log)) == [3, 6]
    drop_torn_checkpoints(table, 6)
    assert sorted(checkpoints(log)) == [3]
    assert keys(table) == [2, 3, 4, 5]
    entry_path(table, 1).unlink()
    (log / f"{3:020d}.checkpoint.parquet").write_bytes(b"")
    drop_torn_checkpoints(table, 0)
    assert sorted(checkpoints(log)) == [3], "only a copy of it can mend the log"
