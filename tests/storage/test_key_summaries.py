"""The summary of a data file has the keys that a reader asks for, whatever the type of the column."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.limits import limited
from warehouse.promise.presence import bits_of, hash_of, holds
from warehouse.promise.summaries import stored_part
from warehouse.serving.key_summaries import Summaries
from warehouse.serving.keys import KeyColumn, keys_of
from warehouse.storage.key_summaries import (
    count_keys,
    counts_of,
    is_readable,
    read_filter,
    read_summary,
    summary_path,
    write_summary,
)
from warehouse.storage.snapshot import DataFile

if TYPE_CHECKING:
    from pathlib import Path

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "VARCHAR": (pa.string(), [None, "", "a", "ü", "\U0010ffff"]),
    "BIGINT": (pa.int64(), [None, -(2**63), -1, 0, 2**63 - 1]),
    "TINYINT": (pa.int8(), [-128, 0, 127]),
    "BOOLEAN": (pa.bool_(), [False, True]),
    "DATE": (pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    "TIMESTAMP WITH TIME ZONE": (pa.timestamp("us", "UTC"), [datetime(year, 1, 1, 5, tzinfo=UTC) for year in (1900, 2024)]),
    "DECIMAL(9,2)": (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("2.00"), Decimal("2.05")]),
    "DECIMAL(38,0)": (pa.decimal128(38, 0), [Decimal(-(10**30)), Decimal(5), Decimal(10**37)]),
}


def written(file: Path, columns: dict[str, pa.Array]) -> None:
    """Write a data file of sorted rows and its summary."""
    pq.write_table(pa.table(columns), file)
    with limited(summary_share=50.0):
        write_summary(file, list(columns))


@pytest.mark.parametrize("kind", TYPES)
def test_a_reader_finds_each_key(tmp_path: Path, kind: str) -> None:
    """Each key three times, as a reader asks for it, and no other key."""
    arrow, values = TYPES[kind]
    file = tmp_path / "a.parquet"
    written(file, {"k": pa.array([value for value in values for _ in range(3)], arrow)})
    summary = read_summary(str(file), 3 * len(values))
    assert summary is not None
    keys = keys_of(values, [KeyColumn("k", kind)]).keys
    assert {tuple(map(stored_part, key)): 3 for key in keys} == dict(summary.counts)
    assert count_keys(file, ["k"]) == summary
    bloom_filter = read_filter(str(file), 3 * len(values))
    assert bloom_filter is not None
    hashes = [hash_of(tuple(map(stored_part, key))) for key in keys]
    assert all(holds(bloom_filter, hashed, bits_of(hashed)) for hashed in hashes)
    assert read_filter(str(file), 3 * len(values) + 1) is None, "of another file"


@pytest.mark.parametrize("kind", TYPES)
def test_nulls_are_one_key(tmp_path: Path, kind: str) -> None:
    """Whatever bytes the writer of a file leaves beneath nulls."""
    arrow, values = TYPES[kind]
    file = tmp_path / "a.parquet"
    written(file, {"k": pa.array([None] * 50 + [values[-1]] * 3, arrow)})
    summary = read_summary(str(file), 53)
    assert summary is not None
    assert summary.exact
    assert summary.counts == {(None,): 50, (stored_part(keys_of(values[-1:], [KeyColumn("k", kind)]).keys[0][0]),): 3}


def test_a_wider_type_of_the_column_has_the_same_keys(tmp_path: Path) -> None:
    """Files from before a column became a decimal, or a wider decimal, are found by its new keys."""
    written(tmp_path / "a.parquet", {"k": pa.array([1, 1, 5, 5], pa.int32())})
    written(tmp_path / "b.parquet", {"k": pa.array([Decimal("1.50")] * 2, pa.decimal128(9, 2))})
    wider = KeyColumn("k", "DECIMAL(20,4)")
    for name, rows, value in (("a", 4, 5), ("b", 2, Decimal("1.5"))):
        summary = read_summary(str(tmp_path / f"{name}.parquet"), rows)
        assert summary is not None
        (key,) = keys_of([value], [wider]).keys
        assert summary.between(tuple(map(stored_part, key))) == (2, 2)


def test_a_damaged_filter_leaves_the_counts_and_the_other_way_round(tmp_path: Path) -> None:
    """Each part has its own checksum: a flipped bit makes the part unknown, never wrong."""
    file = tmp_path / "a.parquet"
    written(file, {"k": pa.array([1, 1, 2, 2])})
    bloom_filter, summary, content = read_filter(str(file), 4), read_summary(str(file), 4), summary_path(file).read_bytes()
    assert bloom_filter is not None
    assert summary is not None
    assert counts_of(content) in content
    for offset in range(len(content)):
        summary_path(file).write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
        assert read_filter(str(file), 4) in (None, bloom_filter)
        assert read_summary(str(file), 4) in (None, summary)
        assert not is_readable(
            file, filtered=read_filter(str(file), 4) is not None, counted=read_summary(str(file), 4) is not None
        )


def test_counts_alone_are_those_of_earlier_builds(tmp_path: Path) -> None:
    """A summary without a filter can still be read."""
    file = tmp_path / "a.parquet"
    written(file, {"k": pa.array([1, 1, 2, 2])})
    summary_path(file).write_bytes(counts_of(summary_path(file).read_bytes()))
    summary = read_summary(str(file), 4)
    assert summary is not None
    assert summary.counts == {(1,): 2, (2,): 2}
    assert read_filter(str(file), 4) is None


def test_keys_of_several_columns_and_of_other_types(tmp_path: Path) -> None:
    """Runs of a composite key cover all its parts; floats have no summary, since a float may differ from itself."""
    written(tmp_path / "a.parquet", {"a": pa.array([1, 1, 1, 2, 2]), "b": pa.array(["x", "x", "y", "y", "y"])})
    summary = read_summary(str(tmp_path / "a.parquet"), 5)
    assert summary is not None
    assert summary.counts == {(1, "x"): 2, (1, "y"): 1, (2, "y"): 2}
    written(tmp_path / "f.parquet", {"f": pa.array([1.0, 1.0])})
    assert not summary_path(tmp_path / "f.parquet").exists()
    assert read_summary(str(tmp_path / "a.parquet"), 6) is None
    assert read_summary(str(tmp_path / "a.parquet"), 5, 8) is None


def test_files_without_a_use_have_none(tmp_path: Path) -> None:
    """Nearly unique keys, no rows, and a limit of a few bytes."""
    written(tmp_path / "unique.parquet", {"k": pa.array(list(range(1000)))})
    written(tmp_path / "empty.parquet", {"k": pa.array([], pa.int64())})
    pq.write_table(pa.table({"k": pa.array([1, 1])}), tmp_path / "small.parquet")
    write_summary(tmp_path / "small.parquet", ["k"])
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".keys")] == []


def test_what_a_reader_holds_of_files_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing filter takes memory too, and a reader that is open for weeks meets many files."""
    monkeypatch.setattr("warehouse.serving.key_summaries._MOST_FILTER_BYTES", 100)
    summaries = Summaries()
    for number in range(50):
        assert summaries.filter_of(DataFile(f"/nowhere/{number}.parquet", 1, 1, 1, 0, {})) is None
    assert len(summaries.filters) < 10
