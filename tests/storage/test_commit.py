"""A commit adds the files that were staged for it, and its statistics bound the values in the files."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.catalog.declaration import ColumnRecord
from warehouse.errors import ForeignChangeError
from warehouse.storage.checkpoints import checkpoint
from warehouse.storage.commit import CommitFacts, commit
from warehouse.storage.definition_commits import create_table
from warehouse.storage.entries import entry_at, entry_path
from warehouse.storage.footers import file_statistics
from warehouse.storage.local_disk import STAGED
from warehouse.storage.tables import rows_schema
from warehouse.storage.writer import RunTable, write_runs
from warehouse.time import NEVER

if TYPE_CHECKING:
    from pathlib import Path

TOP = "\U0010ffff"
ALPHABET = "a\x7f\u07ff\ud7ff\ue000\uffff\U00010000\U0010ffff"
FACTS = CommitFacts({"epoch": 1, "step": 0})
PLACE = "sub_index=1/exp_block=0"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return an empty table."""
    return empty_table(tmp_path / "t")


def empty_table(path: Path) -> Path:
    """Make a table with the key k and no rows."""
    create_table(
        path,
        table_id="5f0c9a0e-0000-4000-8000-000000000001",
        schema=rows_schema([ColumnRecord("k", "string")]),
        partition_columns=["sub_index", "exp_block"],
        properties={},
        metadata={},
        created_at=0,
    )
    return path


def stage_keys(table: Path, name: str, *keys: str) -> None:
    """Put a file where Spark would have written it."""
    now = pa.array([datetime(2024, 1, 1, tzinfo=UTC)] * len(keys), pa.timestamp("us", "UTC"))
    slots = pa.array([1] * len(keys), pa.int64())
    rows = pa.table({"k": list(keys), "_ts": now, "_exp": now, "_load_slot": slots, "_exp_slot": slots})
    directory = table / STAGED / PLACE
    directory.mkdir(parents=True)
    pq.write_table(rows, directory / name)


def _added(table: Path, version: int) -> list[str]:
    actions = [json.loads(line) for line in entry_path(table, version).read_text().splitlines()]
    return [action["add"]["path"] for action in actions if "add" in action]


def test_what_is_staged_is_added_and_partitions_leave(table: Path) -> None:
    """The second commit replaces the first one's partition; other readers see just its rows."""
    stage_keys(table, "a.parquet", "x", "y")
    commit(table, entry_at(table, 0), statistics=["k"], leaving=None, facts=FACTS)
    stage_keys(table, "b.parquet", "z")
    commit(table, entry_at(table, 1), statistics=["k"], leaving=lambda values: values["sub_index"] == 1, facts=FACTS)
    assert [_added(table, version) for version in (1, 2)] == [[f"{PLACE}/a.parquet"], [f"{PLACE}/b.parquet"]]
    assert DeltaTable(str(table)).get_add_actions(flatten=True).column("num_records").to_pylist() == [1]
    assert not (table / STAGED).exists()


def test_what_an_attempt_has_left_is_of_no_other_commit(table: Path) -> None:
    """A step that only removes files finds files of an unfinished step: they are dropped."""
    stage_keys(table, "left.parquet", "x")
    none = cast("Any", None)
    runs = RunTable(table, [("k", "string")], entry_at(table, 0))
    write_runs(none, runs, sizes={}, leaving=lambda *_: False, facts=FACTS)
    assert _added(table, 1) == []
    assert not (table / STAGED).exists()


def test_a_version_is_made_once(table: Path) -> None:
    """Another writer's commit is an error, and stays unchanged."""
    commit(table, entry_at(table, 0), statistics=[], leaving=None, facts=FACTS)
    before = entry_path(table, 1).read_bytes()
    with pytest.raises(ForeignChangeError):
        commit(table, entry_at(table, 0), statistics=[], leaving=None, facts=CommitFacts({"epoch": 2}))
    assert entry_path(table, 1).read_bytes() == before


def test_a_base_is_known_by_its_content(table: Path) -> None:
    """An entry of the same number by another writer is no base."""
    base = entry_at(table, 0)
    path = entry_path(table, 0)
    path.write_text(path.read_text().replace("CREATE TABLE", "CREATE OR REPLACE TABLE"))
    with pytest.raises(ForeignChangeError, match="commit 0"):
        commit(table, base, statistics=[], leaving=None, facts=FACTS)
    assert not entry_path(table, 1).exists()


def test_a_log_that_is_summed_up_opens_without_what_is_below(table: Path) -> None:
    """Readers begin at a checkpoint, with its files and transactions; no commit makes a checkpoint or cuts the log."""
    for version in range(11):
        stage_keys(table, f"{version}.parquet", "x")
        commit(table, entry_at(table, version), statistics=["k"], leaving=None, facts=CommitFacts({}, "app", version))
        for path in (table / "_delta_log").iterdir():
            os.utime(path, (0, 0))
    assert {path.suffix for path in (table / "_delta_log").iterdir()} == {".json"}
    assert len(list((table / "_delta_log").iterdir())) == 12
    checkpoint(table, 10)
    for version in range(10):
        entry_path(table, version).unlink()
    current = DeltaTable(str(table))
    assert (current.version(), len(current.file_uris()), current.transaction_version("app")) == (11, 11, 10)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (pa.array([1, 5, None], pa.int32()), 1, 5),
        (pa.array(["b", "a"]), "a", "b"),
        (pa.array(["é" * 40, "z" * 40]), "z" * 32, "é" * 31 + "ê"),
        (pa.array([f"{TOP}{TOP}"]), TOP * 2, TOP * 2),
        (pa.array([TOP * 40]), TOP * 32, TOP * 40),
        (pa.array([TOP * 40 + "ab"]), TOP * 32, TOP * 40 + "b"),
        (pa.array(["a" + TOP * 40]), "a" + TOP * 31, "b"),
        (pa.array(["\ud7ff" * 33]), "\ud7ff" * 32, "\ud7ff" * 31 + "\ue000"),
        (pa.array(["x" * 5000, "b", None, "y" * 70_000]), "b", "y" * 31 + "z"),
        (pa.array([Decimal("-2.25"), Decimal("1.50")], pa.decimal128(8, 2)), -2.25, 1.5),
        (pa.array([date(2024, 1, 2), date(1969, 1, 1)]), "1969-01-01", "2024-01-02"),
        (pa.array([1500, 2001], pa.timestamp("us", "UTC")), "1970-01-01T00:00:00.001Z", "1970-01-01T00:00:00.003Z"),
        (pa.array([-1, NEVER], pa.timestamp("us", "UTC")), "1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999999Z"),
        (pa.array([None, None], pa.int32()), None, None),
        (pa.array([Decimal("1E-10"), Decimal(0)], pa.decimal128(38, 10)), 0, 1e-10),
        (pa.array([1.0, float("inf")]), 1.0, None),
        (pa.array([NEVER + 1], pa.timestamp("us", "UTC")), "9999-12-31T23:59:59.999Z", None),
        (pa.array([-(2**62)], pa.timestamp("us", "UTC")), None, "0001-01-01T00:00:00.000Z"),
        (pa.array([10_000_000, 0], pa.date32()), "1970-01-01", None),
        (pa.array([-10_000_000, 0], pa.date32()), None, "1970-01-01"),
        (pa.array([10_000_000], pa.date32()), "9999-12-31", None),
        (pa.array([-10_000_000], pa.date32()), None, "0001-01-01"),
        (pa.array([True, False, None]), False, True),
    ],
)
def test_bounds(tmp_path: Path, values: pa.Array, low: object, high: object) -> None:
    """Lower bounds are cut downwards and upper bounds upwards; values that the log cannot hold have no bounds."""
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": values}), file, row_group_size=2)
    rows, text = file_statistics(file, ["c", "absent"])
    stats = json.loads(text)
    assert (rows, stats["numRecords"]) == (len(values), len(values))
    assert (stats["minValues"].get("c"), stats["maxValues"].get("c")) == (low, high)
    assert stats["nullCount"] == {"c": values.null_count}


@settings(deadline=None)
@given(st.lists(st.text(alphabet=ALPHABET, max_size=40), min_size=1, max_size=5))
def test_bounds_of_strings_hold(tmp_path_factory: pytest.TempPathFactory, values: list[str]) -> None:
    """Every string is within its file's bounds, by its UTF-8 bytes; bounds are short if possible."""
    file = tmp_path_factory.mktemp("strings") / "x.parquet"
    pq.write_table(pa.table({"c": values}), file)
    stats = json.loads(file_statistics(file, ["c"])[1])
    low, high = (stats[side]["c"].encode() for side in ("minValues", "maxValues"))
    assert all(low <= value.encode() <= high for value in values)
    assert len(high.decode()) <= 32 or set(high.decode()[:32]) == {TOP}


def test_text_that_is_no_utf8_has_no_bounds(tmp_path: Path) -> None:
    """A column of strings may hold any bytes: neither the footer nor the log can say its bounds."""
    file = tmp_path / "x.parquet"
    raw = pa.array([b"\xff\xfe", b"a" * 5000])
    pq.write_table(pa.table({"c": pa.Array.from_buffers(pa.string(), 2, raw.buffers())}), file)
    stats = json.loads(file_statistics(file, ["c"])[1])
    assert (stats["numRecords"], stats["minValues"], stats["maxValues"], stats["nullCount"]) == (2, {}, {}, {"c": 0})


def test_decimals_are_written_without_exponent(tmp_path: Path) -> None:
    """Readers of the log take 1E-10 for null."""
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": pa.array([Decimal("1E-10")], pa.decimal128(38, 10))}), file)
    assert '"minValues":{"c":0.0000000001}' in file_statistics(file, ["c"])[1]
