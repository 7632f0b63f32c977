"""Files above a log's newest commit, and checkpoints that contradict the commits."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from warehouse.storage import entries
from warehouse.storage.entries import entry_path
from warehouse.storage.leftover import commits_beyond, drop_wrong, remove_commits, wrong_checkpoints

COMMITS = 12


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Commits 0 to 11, with a checkpoint every third."""
    for number in range(COMMITS):
        write_deltalake(tmp_path, pa.table({"n": [number]}), mode="append")
        if number % 3 == 2:
            DeltaTable(tmp_path).create_checkpoint()
    return tmp_path


def test_only_what_is_above_a_gap_is_beyond(table: Path) -> None:
    """A commit that landed since the log was read is not beyond; a commit above a free number is."""
    assert commits_beyond(table, COMMITS - 1) == []
    assert commits_beyond(table, COMMITS - 2) == []
    assert commits_beyond(table, COMMITS - 4) == [], "three have landed meanwhile"
    entry_path(table, 9).rename(entry_path(table, 99))
    assert commits_beyond(table, 8) == [10, 11, 99]


def test_each_commit_is_read_once(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many checkpoints the log has."""
    read: list[str] = []
    plain = Path.read_bytes

    def counted(path: Path) -> bytes:
        if path.suffix == ".json":
            read.append(path.name)
        return plain(path)

    monkeypatch.setattr(Path, "read_bytes", counted)
    assert list(wrong_checkpoints(table, COMMITS - 1)) == []
    assert sorted(read) == [f"{number:020d}.json" for number in range(COMMITS)]


@pytest.mark.parametrize("damage", ["torn", "gone"])
def test_a_checkpoint_is_not_wrong_for_want_of_commits(table: Path, damage: str) -> None:
    """If the commits before it cannot be read, nobody calls the checkpoint wrong or removes it."""
    if damage == "torn":
        entry_path(table, 4).write_text('{"commitInfo": {"op')
    else:
        entry_path(table, 4).unlink()
    assert list(wrong_checkpoints(table, COMMITS - 1)) == []
    assert drop_wrong(table, COMMITS - 1) == []


def test_a_checkpoint_that_cannot_be_read_hides_no_other(table: Path) -> None:
    """The commits reach it, so it is wrong too, and can be removed; the others are still compared."""
    log = table / "_delta_log"
    (log / f"{5:020d}.checkpoint.parquet").write_bytes(b"PAR1 nothing PAR1")
    right = (log / f"{8:020d}.checkpoint.parquet").read_bytes()
    (log / f"{11:020d}.checkpoint.parquet").write_bytes(right)
    contradicting = list(wrong_checkpoints(table, COMMITS - 1))
    assert [wrong.version for wrong in contradicting] == [5, 11]
    messages = ["it cannot be read", "it lacks 3 file(s), and has 0 that are not there"]
    assert [wrong.message.split(" (/")[0] for wrong in contradicting] == messages
    assert drop_wrong(table, COMMITS - 1) == [wrong.name for wrong in contradicting]


def test_a_checkpoint_that_is_gone_is_not_said_to_be_there(table: Path) -> None:
    """Otherwise deltalake does not open the table, though all commits exist; a repair does not touch its only source."""
    log = table / "_delta_log"
    for checkpoint in log.glob("*.checkpoint.parquet"):
        checkpoint.unlink()
    with pytest.raises(DeltaError):
        DeltaTable(str(table))
    (wrong,) = wrong_checkpoints(table, COMMITS - 1)
    assert (wrong.version, wrong.name, wrong.message) == (COMMITS - 1, "_last_checkpoint", "it is gone")
    entry = entry_path(table, 0)
    content = entry.read_bytes()
    entry.unlink()
    assert drop_wrong(table, COMMITS - 1) == []
    entry.write_bytes(content)
    assert drop_wrong(table, COMMITS - 1) == ["_last_checkpoint"]
    assert DeltaTable(str(table)).version() == COMMITS - 1


def test_other_statistics_are_a_contradiction(table: Path) -> None:
    """Readers skip files by statistics."""
    path = entry_path(table, 7)
    actions = [json.loads(line) for line in entries.entry_lines(path.read_text())]
    for action in actions:
        if "add" in action:
            action["add"]["stats"] = json.dumps({**json.loads(action["add"]["stats"]), "maxValues": {"n": 3}})
    path.write_text(entries.entry_text(actions))
    assert [wrong.version for wrong in wrong_checkpoints(table, COMMITS - 1)] == [8, 11]


@pytest.mark.parametrize("other", [None, 7])
def test_what_sums_up_commits_goes_with_them(table: Path, other: int | None) -> None:
    """Checkpoints, sums, compacted commits, the pointer to the newest; sidecars stay while another checkpoint may name them."""
    log, uuid = table / "_delta_log", "80a083e8-7026-4e79-81be-64bd76c43a11"
    remaining = [path.name for path in log.iterdir() if path.name[:1].isdigit() and int(path.name[:20]) <= 8]
    below = [f"{8:020d}.crc", f".{8:020d}.json.crc", f"{6:020d}.{8:020d}.compacted.json"]
    above = [f"{9:020d}.crc", f".{11:020d}.json.crc", f"{8:020d}.{9:020d}.compacted.json", f"{11:020d}.checkpoint.{uuid}.json"]
    below += [] if other is None else [f"{other:020d}.checkpoint.{uuid}.parquet"]
    for name in (*below, *above):
        (log / name).write_text("{}")
    (log / "_sidecars").mkdir()
    (log / "_sidecars" / "part.parquet").write_bytes(b"PAR1")
    remove_commits(table, 8)
    assert sorted(path.name for path in log.iterdir()) == sorted([*remaining, *below, *([] if other is None else ["_sidecars"])])
    assert DeltaTable(table).version() == 8
