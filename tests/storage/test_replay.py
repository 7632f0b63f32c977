"""A table's log replayed action by action, and tables restored by one commit; what delta-rs reads is the oracle."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.checking.odd_logs import odd_entries
from warehouse.errors import ForeignChangeError, MissingPartError
from warehouse.storage.definition_commits import replace_table
from warehouse.storage.deltalog import commits_after, whole
from warehouse.storage.entries import entry_at, entry_path
from warehouse.storage.replay import replay, replayed
from warehouse.storage.restore import lost_files, restore_table
from warehouse.storage.tables import deferred_schema

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Six commits: rows 0 to 4 in partitions of odd names, then the rows of one partition leave."""
    path = tmp_path / "a table%"
    for number in range(5):
        rows = pa.table({"k": [f"key {number}"], "p": [f"{number % 2} /x"]})
        write_deltalake(str(path), rows, mode="append", partition_by=["p"])
    DeltaTable(str(path)).delete("p = '1 /x'")
    return path


def keys(path: Path, version: int | None = None) -> list[str]:
    """Return the keys that delta-rs reads."""
    return sorted(DeltaTable(str(path), version=version).to_pyarrow_table()["k"].to_pylist())


def test_each_version_has_the_files_that_delta_rs_finds(table: Path) -> None:
    """With their sizes, partition values and statistics, from commits alone and from a checkpoint."""
    plain = {state.version: state for state in replayed(table, range(6))}
    for version, state in plain.items():
        delta = DeltaTable(str(table), version=version)
        assert sorted(state.files) == sorted(unquote(str(path)) for path in delta.get_add_actions().column("path").to_pylist())
        assert (state.metadata["id"], state.protocol["minWriterVersion"]) == (str(delta.metadata().id), 2)
    DeltaTable(str(table)).create_checkpoint()
    for version in range(6):
        entry_path(table, version).unlink()
    again = replay(table, 5)
    assert again.files.keys() == plain[5].files.keys()
    for path, add in again.files.items():
        for name in ("path", "partitionValues", "size"):
            assert add[name] == plain[5].files[path][name]
        assert json.loads(add["stats"]) == json.loads(plain[5].files[path]["stats"])
    with pytest.raises(MissingPartError, match="the commit is missing"):
        replay(table, 4)
    with pytest.raises(MissingPartError):
        replay(table, 6)


def test_a_table_goes_back_by_further_links_to_its_files(table: Path) -> None:
    """Also a second time, and to an empty table; no byte is written again, and each file is added and removed once."""
    restore_table(table, entry_at(table, 5), 3, epoch=8, metadata={"epoch": 8}, at=10**15)
    assert keys(table) == keys(table, 3) == ["key 0", "key 1", "key 2", "key 3"]
    (commit,) = commits_after(table, 5)
    assert (commit.metadata, commit.operation, whole(table, commit)) == ({"epoch": 8}, "RESTORE", True)
    names = [file.path.rsplit("/", 1)[1] for file in commit.added]
    assert all(name.startswith("restored-8-") for name in names)
    assert {(table / file.path).stat().st_nlink for file in commit.added} == {2}
    restore_table(table, entry_at(table, 6), -1, epoch=9, metadata={}, at=10**15)
    assert keys(table) == []
    restore_table(table, entry_at(table, 7), 6, epoch=10, metadata={}, at=10**15)
    assert keys(table) == ["key 0", "key 1", "key 2", "key 3"]
    assert not any("restored-10-restored" in path for path in replay(table, 8).files)
    paths = [file.path for commit in commits_after(table, -1) for file in commit.added]
    assert len(paths) == len(set(paths))


def test_a_commit_that_was_prepared_before_a_crash_is_made_again(table: Path) -> None:
    """Links of the first attempt do not prevent it; an existing version is never overwritten."""
    restore_table(table, entry_at(table, 5), 3, epoch=8, metadata={}, at=10**15)
    entry_path(table, 6).unlink()
    restore_table(table, entry_at(table, 5), 3, epoch=8, metadata={}, at=10**15)
    assert keys(table) == keys(table, 3)
    with pytest.raises(ForeignChangeError):
        restore_table(table, entry_at(table, 5), 3, epoch=8, metadata={}, at=10**15)


def test_columns_go_back_with_the_files(table: Path) -> None:
    """A table that was replaced in between has its former columns again."""
    before = DeltaTable(str(table)).schema().to_json()
    replace_table(
        table,
        entry_at(table, 5),
        table_id=str(DeltaTable(str(table)).metadata().id),
        schema=deferred_schema(()),
        partition_columns=["p"],
        properties={},
        metadata={},
        at=10**15,
    )
    restore_table(table, entry_at(table, 6), 5, epoch=1, metadata={}, at=10**15)
    assert (DeltaTable(str(table)).schema().to_json(), keys(table)) == (before, keys(table, 5))


def test_lost_files_are_named(table: Path) -> None:
    """Missing files, and files of another size."""
    assert lost_files(table, 4) == []
    first, second, *_ = sorted(replay(table, 4).files)
    (table / first).unlink()
    (table / second).write_bytes(b"x")
    assert sorted(lost_files(table, 4)) == [first, second]
    shutil.rmtree(table / "_delta_log")
    with pytest.raises(MissingPartError):
        lost_files(table, 4)


def test_an_odd_value_or_byte_makes_a_commit_another_or_a_damaged_one(table: Path) -> None:
    """Whatever is wrong in an entry: it is replayed, or the error names the entry that cannot be read."""
    entry = entry_path(table, 0)
    content = entry.read_bytes()
    odd = [text.encode() for _, texts in odd_entries(content.decode()) for text in texts]
    flipped = [content[:offset] + bytes([content[offset] ^ 4]) + content[offset + 1 :] for offset in range(len(content))]
    errors = []
    for changed in (*odd, *flipped):
        entry.write_bytes(changed)
        try:
            replay(table, 0)
        except MissingPartError as error:
            errors.append(str(error))
    assert {error.partition(" (")[0] for error in errors} == {f"{entry}: the commit cannot be read"}
    assert len(errors) > len(content) // 4
