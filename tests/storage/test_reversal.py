"""Commits that a later commit takes back; what delta-rs reads is the oracle."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

from warehouse.errors import ForeignChangeError, MissingPartError
from warehouse.storage.definition_commits import set_columns
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import LogEntry, append_entry, entry_at, entry_path, require_entry
from warehouse.storage.replay import replay
from warehouse.storage.reversal import counting, reversal, reverse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ODD = "1 /x=%é"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Six commits: rows 0 to 5 in two partitions, one of an odd name."""
    path = tmp_path / "a table%"
    for number in range(6):
        write_deltalake(path, pa.table({"k": [number], "p": [(ODD, "b")[number % 2]]}), mode="append", partition_by=["p"])
    return path


def keys(path: Path, version: int | None = None) -> list[int]:
    """Return the keys that delta-rs reads."""
    return sorted(DeltaTable(path, version=version).to_pyarrow_table()["k"].to_pylist())


def _delete(table: Path) -> None:
    DeltaTable(table).delete("k > 1")


def _optimize(table: Path) -> None:
    DeltaTable(table).optimize.compact()


def _overwrite(table: Path) -> None:
    write_deltalake(table, pa.table({"k": [9], "q": ["x"], "p": [ODD]}), mode="overwrite", schema_mode="overwrite")


def _properties(table: Path) -> None:
    DeltaTable(table).alter.set_table_properties({"delta.appendOnly": "false"})


def _twice(table: Path) -> None:
    _delete(table)
    write_deltalake(table, pa.table({"k": [7], "p": ["c"]}), mode="append")


@pytest.mark.parametrize("change", [_delete, _optimize, _overwrite, _properties, _twice])
@pytest.mark.parametrize("summed", [False, True], ids=["commits", "checkpoint"])
def test_what_was_done_is_taken_back_by_a_commit(table: Path, change: Callable[[Path], None], summed: bool) -> None:
    """Rows, files, columns and properties are as before, from commits alone and from a checkpoint of the change."""
    before, schema = replay(table, 5), DeltaTable(table).schema().to_json()
    change(table)
    if summed:
        DeltaTable(table).create_checkpoint()
    newest = entry_at(table, DeltaTable(table).version())
    assert replay(table, newest.version).files.keys() != before.files.keys() or change is _properties
    made = reverse(table, 5, newest, metadata={"epoch": 3}, at=10**15)
    assert made == entry_at(table, newest.version + 1)
    after = replay(table, made.version)
    assert (after.files.keys(), after.protocol) == (before.files.keys(), before.protocol)
    assert after.metadata["schemaString"] == before.metadata["schemaString"]
    assert (after.metadata.get("configuration") or {}) == (before.metadata.get("configuration") or {})
    assert {path: json.loads(add["stats"]) for path, add in after.files.items()} == {
        path: json.loads(add["stats"]) for path, add in before.files.items()
    }
    assert (keys(table), DeltaTable(table).schema().to_json()) == ([0, 1, 2, 3, 4, 5], schema)
    assert [commit.version for commit in counting(commits_after(table, 4))] == [5]
    last = list(commits_after(table, newest.version))[-1]
    assert (last.metadata, last.reverses) == ({"epoch": 3, "reverses": 5}, 5)


def test_a_reversal_is_reversed(table: Path) -> None:
    """A reversal is a commit like any other."""
    _delete(table)
    first = reverse(table, 5, entry_at(table, 6), metadata={}, at=0)
    second = reverse(table, 6, first, metadata={}, at=0)
    assert (keys(table, 7), keys(table, second.version)) == ([0, 1, 2, 3, 4, 5], [0, 1])


def test_a_changed_protocol_is_not_taken_back(table: Path) -> None:
    """Readers and writers that have seen the protocol may rely on it."""
    DeltaTable(table).alter.add_feature([TableFeatures.AppendOnly], allow_protocol_versions_increase=True)
    with pytest.raises(ValueError, match="protocol"):
        reversal(replay(table, 5), replay(table, 6), 0, {})
    with pytest.raises(MissingPartError):
        reverse(table, -1, entry_at(table, 5), metadata={}, at=0)


def test_only_an_entry_of_ours_takes_back(table: Path) -> None:
    """The metadata of another writer's commit hide no commit."""
    _delete(table)
    actions: list[dict[str, Any]] = [{"commitInfo": {"operation": "WRITE", "userMetadata": json.dumps({"reverses": 5})}}]
    append_entry(table, entry_at(table, 6), actions)
    assert [commit.version for commit in counting(commits_after(table, 5))] == [6, 7]


# --- entries by content ---


def test_an_entry_follows_its_base_and_no_other(table: Path) -> None:
    """If the base has other content, or another writer's entry follows it, the entry is refused and nothing is written."""
    base = entry_at(table, 5)
    content = entry_path(table, 5).read_bytes()
    entry_path(table, 5).write_bytes(content.replace(b'"operation":"WRITE"', b'"operation":"write"'))
    with pytest.raises(ForeignChangeError, match="commit 5"):
        append_entry(table, base, [{"commitInfo": {}}])
    assert not entry_path(table, 6).exists()
    entry_path(table, 5).write_bytes(content)
    _delete(table)
    foreign = entry_path(table, 6).read_bytes()
    with pytest.raises(ForeignChangeError, match="commit 6"):
        append_entry(table, base, [{"commitInfo": {}}])
    assert entry_path(table, 6).read_bytes() == foreign
    assert append_entry(table, entry_at(table, 6), [{"commitInfo": {}}]) == entry_at(table, 7)


def test_an_entry_that_is_gone_is_no_base(table: Path) -> None:
    """Nor is an entry that never existed; without a checksum, as in older records, any entry of the number is a base."""
    assert require_entry(table, LogEntry(5)) == entry_at(table, 5)
    for missing in (LogEntry(6), LogEntry(6, "x")):
        with pytest.raises(MissingPartError):
            append_entry(table, missing, [{"commitInfo": {}}])


def test_columns_that_were_changed_come_back(table: Path) -> None:
    """Also the columns of our own entry."""
    before = replay(table, 5)
    other = {**before.metadata, "schemaString": '{"type":"struct","fields":[]}'}
    set_columns(table, entry_at(table, 5), {"metaData": other}, {"epoch": 1, "step": 0}, 0)
    reverse(table, 5, entry_at(table, 6), metadata={"epoch": 1}, at=0)
    assert replay(table, 7).metadata["schemaString"] == before.metadata["schemaString"]
    assert keys(table) == [0, 1, 2, 3, 4, 5]
