"""Rows that a process keeps of its files equal the rows in the files, and leave memory soon."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.storage.test_driver_writer import rows
from warehouse.storage.commit import staged_place
from warehouse.storage.driver_writer import encoded_in_driver, stage_in_driver
from warehouse.storage.lookup import FILE, looked_up
from warehouse.storage.recent_rows import SMALL, RecentRows, recent_rows
from warehouse.storage.snapshot import DataFile

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_just_written_are_what_the_file_has(tmp_path: Path) -> None:
    """Rows of every type that is converted to Arrow, cell by cell, with column names in lower case."""
    table = tmp_path / "t"
    staged = stage_in_driver(encoded_in_driver(rows(), key=["k", "n"], filtered=["k"], file_rows=2, group_rows=10), table)
    files = sorted(staged.rglob("*.parquet"))
    assert len(files) == 5
    for file in files:
        in_memory = recent_rows().of(str(table / staged_place(file.relative_to(staged))), 0)
        read = RecentRows().of(str(file), file.stat().st_size)
        assert in_memory is not None
        assert read is not None
        assert in_memory.schema.remove_metadata() == read.schema.remove_metadata()
        assert str(in_memory.to_pylist()) == str(read.to_pylist())


def test_what_an_update_does_not_ask_for_is_dropped(tmp_path: Path) -> None:
    """A file's rows stay for the next update, and are read again in a later one."""
    recent, path = RecentRows(), str(tmp_path / "gone.parquet")
    recent.begin()
    recent.keep(path, pa.table({"K": [1]}))
    recent.begin()
    assert recent.of(path, 1) == pa.table({"k": [1]})
    recent.begin()
    recent.begin()
    with pytest.raises(FileNotFoundError):
        recent.of(path, 1)


def test_large_files_and_wide_rows_are_not_kept(tmp_path: Path) -> None:
    """DuckDB reads them when they are needed; the rows of several batches are wide together."""
    wide = tmp_path / "wide.parquet"
    pq.write_table(pa.table({"k": pa.array(["x" * 5_000]).take([0] * 2000)}), wide, compression="zstd")
    assert wide.stat().st_size < SMALL
    assert RecentRows().of(str(wide), wide.stat().st_size) is None
    assert RecentRows().of(str(wide), SMALL + 1) is None


def test_a_part_of_more_rows_does_not_keep_the_others() -> None:
    """What a step writes is cut into files: one of them that is still asked for keeps neither memory nor rows of the others."""
    table, recent = pa.table({"k": range(100_000), "v": ["x" * 20] * 100_000}), RecentRows()
    recent.keep("/t/a.parquet", table.slice(7, 3))
    rows = recent.of("/t/a.parquet", 1)
    assert rows == table.slice(7, 3)
    assert rows.get_total_buffer_size() < 1_000


def test_bytes_that_are_no_text_are_left_to_the_engine_that_refuses_them(tmp_path: Path) -> None:
    """For rows in memory as for rows in a file."""
    broken, path = pa.table({"k": pa.array([b"\xff"]).view(pa.string())}), tmp_path / "broken.parquet"
    pq.write_table(broken, path)
    with pytest.raises(pa.ArrowInvalid):
        RecentRows().of(str(path), 1)
    recent = RecentRows()
    recent.keep(str(tmp_path / "other.parquet"), broken)
    with pytest.raises(FileNotFoundError):
        recent.of(str(tmp_path / "other.parquet"), 1)


def test_files_with_other_columns_are_looked_up_together(tmp_path: Path) -> None:
    """A column that a file lacks is null there, whatever the letters' case; each row can say which file has it.

    DuckDB knows the case of ASCII letters only.
    """
    parts = [pa.table({"K": [1, 2]}), pa.table({"k": [3], "v": ["x"], "Ähre": [5]})]
    files = []
    for number, part in enumerate(parts):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(part, path)
        files.append(DataFile(str(path), path.stat().st_size, part.num_rows, 1, 0, {}))
    schema = StructType([StructField("k", LongType()), StructField("V", StringType()), StructField("Ähre", LongType())])
    matches = looked_up(files, schema, pa.table({"k": pa.array([2, 3], pa.int64())}), with_file=True)
    assert matches is not None
    assert sorted(matches.to_pylist(), key=str) == [
        {"k": 2, "V": None, "Ähre": None, FILE: files[0].path},
        {"k": 3, "V": "x", "Ähre": 5, FILE: files[1].path},
    ]
