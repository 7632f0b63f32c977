"""Rows that are too old leave a table by one commit: whole files if possible, else by rewriting a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from warehouse.storage.commit import CommitFacts
from warehouse.storage.entries import entry_at
from warehouse.storage.overdue import drop_overdue
from warehouse.storage.reshaping import reshape

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("codec", ["UNCOMPRESSED", "SNAPPY", "ZSTD", "GZIP", "BROTLI", "LZ4_RAW"])
def test_a_file_is_written_again_as_it_was_compressed(tmp_path: Path, codec: str) -> None:
    """With any compression of an outsider's OPTIMIZE, or without compression."""
    table = tmp_path / "rejected"
    rows = pa.table({"raw": [f"row {number}" for number in range(9)], "epoch": pa.array(range(9), pa.int64())})
    write_deltalake(str(table), rows, writer_properties=WriterProperties(compression=codec))  # type: ignore[arg-type]
    made = drop_overdue(table, entry_at(table, 0), "epoch", 4, facts=CommitFacts({}), staged=lambda: None)
    assert made is not None
    left = DeltaTable(str(table), version=made.version)
    assert left.to_pyarrow_table().to_pylist() == rows.slice(5).to_pylist()
    (file,) = left.file_uris()
    assert pq.read_metadata(file).row_group(0).column(0).compression == ("LZ4" if codec == "LZ4_RAW" else codec)


@pytest.mark.parametrize("way", ["without overdue rows", "with a column of another type"])
def test_no_reader_loses_a_nan_of_a_file_that_is_written_again(tmp_path: Path, way: str) -> None:
    """NaN is above all numbers; readers would skip its row if the bounds omitted it."""
    table = tmp_path / "restored"
    rows = {"value": [1.0, 2.0, float("nan")], "n": pa.array(range(3), pa.int32()), "_epoch": pa.array(range(3), pa.int64())}
    write_deltalake(str(table), pa.table(rows))
    base, facts = entry_at(table, 0), CommitFacts({})
    if way == "without overdue rows":
        made = drop_overdue(table, base, "_epoch", 0, facts=facts, staged=lambda: None)
    else:
        kinds = {"value": "double", "n": "long", "_epoch": "long"}
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in kinds.items()]
        schema = {"type": "struct", "fields": fields}
        made = reshape(table, base, schema, statistics=("_epoch",), facts=facts, at=1, staged=lambda: None)
    assert made is not None
    (file,) = DeltaTable(str(table), version=made.version).file_uris()
    relation = duckdb.read_parquet(file)
    assert relation.filter("value > 5").count("*").fetchall() == [(1,)]
    assert pq.read_metadata(file).row_group(0).column(1).statistics.has_min_max
