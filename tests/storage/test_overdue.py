"""Rows that are too old leave a table by one commit: in whole files where it can be, else by writing a file again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from warehouse.storage.commit import CommitFacts
from warehouse.storage.entries import entry_at
from warehouse.storage.overdue import drop_overdue

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("codec", ["UNCOMPRESSED", "SNAPPY", "ZSTD", "GZIP", "BROTLI", "LZ4_RAW"])
def test_a_file_is_written_again_as_it_was_compressed(tmp_path: Path, codec: str) -> None:
    """Whatever an outsider's OPTIMIZE has compressed it by, or not at all."""
    table = tmp_path / "rejected"
    rows = pa.table({"raw": [f"row {number}" for number in range(9)], "epoch": pa.array(range(9), pa.int64())})
    write_deltalake(str(table), rows, writer_properties=WriterProperties(compression=codec))  # type: ignore[arg-type]
    made = drop_overdue(table, entry_at(table, 0), "epoch", 4, facts=CommitFacts({}), staged=lambda: None)
    assert made is not None
    left = DeltaTable(str(table), version=made.version)
    assert left.to_pyarrow_table().to_pylist() == rows.slice(5).to_pylist()
    (file,) = left.file_uris()
    assert pq.read_metadata(file).row_group(0).column(0).compression == ("LZ4" if codec == "LZ4_RAW" else codec)
