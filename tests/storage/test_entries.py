"""A log entry can hold any text: our entries have one line each, and entries of others are read as written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.publishing.live.log import commits
from warehouse.storage.commit import commit
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import append_entry, entry_at, entry_lines, entry_path, raw_commits
from warehouse.storage.replay import replay

from .test_commit import FACTS, PLACE, empty_table, stage_keys

if TYPE_CHECKING:
    from pathlib import Path

SEPARATORS = ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
"""Where Python's ``splitlines`` ends a line, and JSON lines do not."""
TEXTS = [*(f"a{mark}b" for mark in SEPARATORS), "\u2027" * 40, "\x84" * 40, "é\U0001f600", "\U0010ffff" * 40, "\U000a0000"]
"""The bound of a long text ends with the character that follows its last one."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return an empty table."""
    return empty_table(tmp_path / "t")


def _all_read(table: Path, version: int, path: str) -> None:
    (read,) = commits_after(table, version - 1)
    assert read.readable
    assert [file.rows for file in read.added] == [1]
    (raw,) = raw_commits(table, version - 1)
    assert raw.actions is not None
    (live,) = commits(table, version - 1)
    assert live.version == version
    assert replay(table, version).files.keys() == {path}


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_an_entry_of_ours_ends_no_line_whatever_the_keys(table: Path, text: str) -> None:
    """The bounds in its statistics are texts of the keys; every reader reads them unchanged, and prunes no row by them."""
    stage_keys(table, "a.parquet", text)
    commit(table, entry_at(table, 0), statistics=["k"], leaving=None, facts=FACTS)
    content = entry_path(table, 1).read_bytes()
    assert len(content.decode().splitlines()) == content.count(b"\n")
    _all_read(table, 1, f"{PLACE}/a.parquet")
    (add,) = replay(table, 1).files.values()
    bounds = json.loads(add["stats"])
    assert bounds["minValues"]["k"] <= text <= bounds["maxValues"]["k"]
    read = DeltaTable(str(table)).to_pyarrow_table(filters=[("k", "=", text)])
    assert read.column("k").to_pylist() == [text]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_an_entry_of_others_is_read_with_raw_characters(table: Path, text: str) -> None:
    """Outsiders, and older builds of ours, do not escape characters."""
    stage_keys(table, "a.parquet", text)
    commit(table, entry_at(table, 0), statistics=["k"], leaving=None, facts=FACTS)
    path = entry_path(table, 1)
    actions = [json.loads(line) for line in entry_lines(path.read_text())]
    path.write_text("".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions), encoding="utf-8")
    assert not path.read_bytes().isascii() or text.isascii()
    _all_read(table, 1, f"{PLACE}/a.parquet")


def test_what_delta_rs_commits_is_read(tmp_path: Path) -> None:
    """Statistics of such keys by delta-rs."""
    for version, text in enumerate(TEXTS):
        write_deltalake(str(tmp_path), pa.table({"k": [text]}), mode="append")
        (raw,) = raw_commits(tmp_path, version - 1)
        assert raw.actions is not None, ascii(text)
    assert all(commit.readable for commit in commits_after(tmp_path, -1))
    assert len(replay(tmp_path, len(TEXTS) - 1).files) == len(TEXTS)


def test_metadata_have_such_texts_too(table: Path) -> None:
    """The text in a commit's metadata may have any character."""
    info = {"userMetadata": json.dumps({"why": "a\u2028b"}, ensure_ascii=False), "operation": "\x85"}
    made = append_entry(table, entry_at(table, 0), [{"commitInfo": info}])
    (read,) = commits_after(table, 0)
    assert (read.version, read.metadata, read.operation) == (made.version, {"why": "a\u2028b"}, "\x85")
