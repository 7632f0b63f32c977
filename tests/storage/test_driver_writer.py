"""The driver writes the same files as Spark from the same rows."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.layout.columns import CELL
from warehouse.storage.arrow_types import frame_of
from warehouse.storage.commit import stage, staged_place
from warehouse.storage.driver_writer import encoded_in_driver, stage_in_driver
from warehouse.storage.fingerprint import damage, has_sum
from warehouse.storage.footers import file_statistics
from warehouse.storage.session import table_session
from warehouse.storage.writer import key_settings, place

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NAN = float("nan")
SPANS = pa.struct([pa.field("from", pa.int32()), pa.field("to", pa.list_(pa.field("element", pa.float64())))])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "k": (pa.string(), ["b", None, "a", "\U0010ffff", "", "a", "ab", "é"]),
    "n": (pa.int64(), [1, 2, None, 4, -5, 2**62, 7, -(2**63)]),
    "t": (pa.int8(), [1, -128, 127, None, 0, 1, 2, 3]),
    "f": (pa.float64(), [1.0, NAN, None, -0.0, 0.0, math.inf, -1.0, NAN]),
    "g": (pa.float32(), [1.0, 2.0, None, -0.0, 0.0, math.inf, -1.0, 3.5]),
    "d": (pa.decimal128(9, 2), [Decimal("1.10"), None, *map(Decimal, ("-2", "0", "3.00", "4", "5", "9999999.99"))]),
    "w": (pa.decimal128(38, 3), [Decimal("1.1"), None, *map(Decimal, ("-2", "0", "3.00", "4", "5", "1e34"))]),
    "day": (pa.date32(), [date(1, 1, 1), None, date(9999, 12, 31), *[date(2024, 1, day) for day in range(1, 6)]]),
    "yes": (pa.bool_(), [True, False, None, True, False, True, False, True]),
    "raw": (pa.binary(), [b"\x00", b"", None, b"\xff", b"a", b"b", b"c", b"d"]),
    "s": (SPANS, [{"from": 1, "to": [1.0, NAN]}, None, {"from": None, "to": None}, {"from": 2, "to": []}] * 2),
    "odd.`name": (pa.string(), ["x"] * 8),
}
BOUNDED = ["k", "n", "day", "g", "_exp"]
CELLS = [(1, 0), (1, 0), (2, 5), (1, 0), (2, 5), (2, 5), (1, -3), (1, 0)]


def rows() -> pa.Table:
    """Return rows with values of every kind that is converted to Arrow, in three cells."""
    times = [datetime(2024, 1, 1, hour, tzinfo=UTC) for hour in range(8)]
    columns = {name: pa.array(values, kind) for name, (kind, values) in VALUES.items()}
    system = {
        "_ts": pa.array(times, pa.timestamp("us", "Europe/Berlin")),
        "_exp": pa.array(times[::-1], pa.timestamp("us", "Europe/Berlin")),
        "sub_index": pa.array([cell for cell, _ in CELLS], pa.int32()),
        "exp_block": pa.array([block for _, block in CELLS], pa.int64()),
    }
    return pa.table({**columns, **system})


def told(directory: Path, key: list[str], filtered: list[str]) -> dict[str, Any]:
    """Return what readers see of each file, by its cell: fields, rows in order, bounds, keys that filters exclude, encodings."""
    facts = {}
    for file in directory.rglob("*.parquet"):
        parquet = pq.ParquetFile(file)
        query = "SELECT bloom_filter_excludes FROM parquet_bloom_probe(?, 'k', 'nowhere')"
        absent = duckdb.connect().execute(query, [str(file)]).fetchall()
        facts[staged_place(file.relative_to(directory)).parent.as_posix()] = (
            [(field.name, str(field.type)) for field in parquet.schema_arrow],
            [str(row) for row in parquet.read().to_pylist()],
            file_statistics(file, key)[1].replace("-0.0", "0.0"),  # as a lower bound both are right
            absent,
            {name: _encodings(parquet, name) for name in filtered},
        )
        assert has_sum(file.name)
        assert damage(file) is None
    return facts


def _encodings(file: pq.ParquetFile, column: str) -> set[str]:
    chunk = file.metadata.row_group(0).column(file.schema_arrow.get_field_index(column))
    return set(chunk.encodings) - {"RLE"}  # how levels are encoded, which one of the writers does not list


@pytest.mark.parametrize("key", [("k",), ("f", "k"), ("day", "n"), ("d", "yes", "_ts")])
def test_both_writers_write_the_same(tmp_path: Path, spark: SparkSession, key: tuple[str, ...]) -> None:
    """Fields, order of rows, bounds and filters of each cell are equal; each writer removes what the other left."""
    table = rows()
    kinds = {"k": "string", "n": "bigint", "day": "date", "d": "decimal(9,2)", "yes": "boolean", "f": "double"}
    typed = [(name, kinds[name]) for name in key if name in kinds]
    session = table_session(spark, {**key_settings(typed), "spark.sql.session.timeZone": "UTC"})
    frame = place(frame_of(session, table), key, {cell: CELLS.count(cell) for cell in CELLS})
    ordered = (*CELL, *key, "_exp")
    filtered = [name for name, kind in typed if kind in ("string", "bigint", "date", "decimal(9,2)")]
    by_spark = told(stage(frame, tmp_path, CELL, 1000, ordered), BOUNDED, filtered)
    runs = encoded_in_driver(table, key=list(key), filtered=filtered, file_rows=1000, group_rows=10_000)
    staged = stage_in_driver(runs, tmp_path)
    by_driver = told(staged, BOUNDED, filtered)
    bounds = pq.read_metadata(next(staged.glob("sub_index=1,exp_block=0,*"))).row_group(0)
    assert [bounds.column(index).is_stats_set for index in (3, 4)] == [False, True]  # of f, with NaN, and of g
    assert by_driver.keys() == by_spark.keys()
    for cell, facts in by_spark.items():
        for name, of_driver, of_spark in zip(
            ("fields", "rows", "bounds", "filter", "encodings"), by_driver[cell], facts, strict=True
        ):
            assert (cell, name, of_driver) == (cell, name, of_spark)
    assert len(by_spark) == len(set(CELLS))


def test_long_runs_are_cut(tmp_path: Path) -> None:
    """They are cut into files of a maximal number of rows, and these into row groups, in order of the key."""
    table = pa.table({
        "k": pa.array([f"{number % 97:03d}" for number in range(1000)]),
        "_exp": pa.array(range(1000), pa.timestamp("us", "UTC")),
        "sub_index": pa.repeat(pa.scalar(1, pa.int32()), 1000),
        "exp_block": pa.repeat(pa.scalar(0, pa.int64()), 1000),
    })  # fmt: skip
    staged = stage_in_driver(
        encoded_in_driver(table, key=["k"], filtered=["k"], file_rows=400, group_rows=150), tmp_path
    )
    files = sorted(staged.rglob("*.parquet"))
    assert [pq.read_metadata(file).num_rows for file in files] == [400, 400, 200]
    assert [pq.read_metadata(file).num_row_groups for file in files] == [3, 3, 2]
    encodings = [pq.read_metadata(files[0]).row_group(0).column(index).encodings for index in (0, 1)]
    assert [set(column) - {"RLE"} for column in encodings] == [{"DELTA_BYTE_ARRAY"}, {"DELTA_BINARY_PACKED"}]
    keys = [key for file in files for key in pq.ParquetFile(file).read(["k"])["k"].to_pylist()]
    assert keys == sorted(keys)
