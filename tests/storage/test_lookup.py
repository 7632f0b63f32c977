"""Lookups give the rows that Spark's semi-join gives, or leave it to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from warehouse.storage import lookup
from warehouse.storage.lookup import Bound, driver_connection, looked_up, query_in_driver
from warehouse.storage.snapshot import DataFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

TYPES = {
    "a b": StringType(), "n": IntegerType(), "d": DateType(), "m": DecimalType(20, 3), "at": TimestampType(),
    "x": BinaryType(), "l": ArrayType(StringType()), "s": StructType([StructField("v", IntegerType())]),
}  # fmt: skip
SCHEMA = StructType([StructField(name, kind) for name, kind in TYPES.items()])
ROWS = """
    ('it''s', 1, DATE '0001-01-01', 1.5, TIMESTAMP '0001-01-02 00:00:00', X'00', array('p', NULL), named_struct('v', 1)),
    ('', NULL, DATE '9999-12-31', NULL, TIMESTAMP '9999-12-31 00:00:00', X'FF', array(), named_struct('v', CAST(NULL AS int))),
    (NULL, 2, NULL, -12345678901234567.125, NULL, NULL, NULL, NULL),
    (NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL),
    ('é', 1, DATE '2024-02-29', 1, TIMESTAMP '2024-02-29 12:00:00.000001', X'', array('q'), named_struct('v', 2)),
    ('e', 1, DATE '2024-02-29', 1, TIMESTAMP '2024-02-29 12:00:00.000001', X'', array('q'), named_struct('v', 2))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> list[DataFile]:
    """Return two files that Spark wrote, with the rows above twice each; the directory's name has a quote in it."""
    directory = tmp_path_factory.mktemp("look'up") / "rows"
    kinds = ", ".join(f"CAST(col{number} AS {field.dataType.simpleString()}) AS `{field.name}`"
                      for number, field in enumerate(SCHEMA.fields, start=1))  # fmt: skip
    rows = spark.sql(f"SELECT {kinds} FROM VALUES {ROWS}")
    rows.unionByName(rows).repartition(2).write.parquet(str(directory))
    return [DataFile(str(path), path.stat().st_size, None, 1, 0, {}) for path in sorted(directory.glob("*.parquet"))]


@pytest.mark.parametrize(
    "keys",
    [
        {"a b": ["it's", "é", "nobody"]},
        {"a b": ["", None]},
        {"n": [1, 7]},
        {"N": [2, None]},
        {"d": [None]},
        {"a b": [None, "e"], "n": [2, 1]},
        {"a b": [None], "n": [None], "m": [None]},
        {"n": []},
    ],
)
def test_what_is_found_is_what_spark_finds(
    spark: SparkSession, files: list[DataFile], keys: dict[str, list[object]]
) -> None:
    """Null keys equal nulls; a column that cannot be compared (the decimal) leaves more rows, never fewer."""
    names = {field.name.lower(): field for field in SCHEMA.fields}
    kinds = {"a b": pa.string(), "n": pa.int32(), "d": pa.date32(), "m": pa.decimal128(20, 3)}
    table = pa.table({name: pa.array(values, kinds[name.lower()]) for name, values in keys.items()})
    rows = looked_up(files, SCHEMA, table)
    assert rows is not None
    assert rows.column_names == SCHEMA.names
    stored = spark.read.schema(SCHEMA).parquet(*[file.path for file in files])
    key_frame = spark.createDataFrame(table, StructType([StructField(name, names[name.lower()].dataType) for name in keys]))
    compared = [name for name in keys if name != "m"]
    equal = " AND ".join(f"stored.`{name}` <=> wanted.`{name}`" for name in compared)
    stored.createOrReplaceTempView("stored")
    key_frame.createOrReplaceTempView("wanted")
    expected = spark.sql(f"SELECT * FROM stored LEFT SEMI JOIN wanted ON {equal}").collect()
    assert sorted(map(str, spark.createDataFrame(rows, SCHEMA).collect())) == sorted(map(str, expected))


def test_a_condition_and_no_keys(files: list[DataFile]) -> None:
    """All rows that satisfy the condition."""
    rows = looked_up(files, SCHEMA, None, [Bound("At", ">", 0), Bound("n", "<=", 1)])
    assert rows is not None
    assert sorted(rows["a b"].to_pylist()) == ["e", "e", "é", "é"]


def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "MATCHES", 3)


def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "WIDE", 10)


def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "LARGE", 10)


@pytest.mark.parametrize("limit", [_many, _wide, _large])
def test_what_is_too_much_is_left_to_spark(
    monkeypatch: pytest.MonkeyPatch, files: list[DataFile], limit: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """Matching rows, their bytes, and the files' bytes each have a limit."""
    keys = pa.table({"n": pa.array([1], pa.int32())})
    assert looked_up(files, SCHEMA, keys) is not None
    limit(monkeypatch)
    assert looked_up(files, SCHEMA, keys) is None


@pytest.mark.parametrize(
    "keys",
    [
        pa.table({"m": pa.array(["1.500"]).cast(pa.decimal128(20, 3))}),
        pa.table({"n": pa.array([1], pa.int64())}),
        pa.table({"a b": pa.array(["é"]).dictionary_encode()}),
        pa.table({"other": ["x"]}),
    ],
)
def test_keys_that_the_engines_might_compare_otherwise_are_left_to_spark(files: list[DataFile], keys: pa.Table) -> None:
    """A type that the engines compare differently, another type than the column's, a missing column."""
    assert looked_up(files, SCHEMA, keys) is None


def test_files_that_cannot_be_read_here_are_left_to_spark(files: list[DataFile], tmp_path: Path) -> None:
    """Missing, no Parquet, without a column, a pattern as name, bytes that are no text, in a store: Spark reads it or fails."""
    keys = pa.table({"n": pa.array([1], pa.int32())})
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 and no more")
    lean = tmp_path / "lean.parquet"
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), lean)
    odd = tmp_path / "o*d.parquet"
    pq.write_table(pa.table({name: pa.nulls(1, to_arrow_type(kind, timezone="UTC")) for name, kind in TYPES.items()}), odd)
    broken = tmp_path / "broken.parquet"
    texts = {name: pa.nulls(1, to_arrow_type(kind, timezone="UTC")) for name, kind in TYPES.items()}
    pq.write_table(pa.table({**texts, "a b": pa.array([b"\xff"]), "n": pa.array([1], pa.int32())}), broken)
    for path in (str(tmp_path / "gone.parquet"), str(damaged), str(lean), str(odd), str(broken), "s3://bucket/t/part.parquet"):
        assert looked_up([DataFile(path, 1, None, 1, 0, {})], SCHEMA, keys) is None
    rows = looked_up([*files, DataFile(str(lean), 1, None, 1, 0, {})], SCHEMA, keys)
    assert rows is not None  # a column added later is null in older files
    assert rows["a b"].to_pylist().count(None) == 1


def test_a_query_over_small_tables_or_none() -> None:
    """A query that cannot be run returns None."""
    rows = query_in_driver("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": [1]})})
    assert rows is not None
    assert rows.to_pydict() == {"b": [2]}
    assert query_in_driver("SELECT no_column FROM t", {"t": pa.table({"a": [1]})}) is None


def test_connections_of_the_driver_have_tables_of_their_own() -> None:
    """Also tables of one name, and they end with the connection; a new database replaces a failed one."""
    with driver_connection() as first, driver_connection() as second:
        for number, connection in enumerate((first, second)):
            connection.register("given", pa.table({"x": [number]}))
            connection.execute("CREATE OR REPLACE TEMP TABLE t AS SELECT x FROM given")
        assert (first.sql("FROM t").fetchall(), second.sql("FROM t").fetchall()) == ([(0,)], [(1,)])
    with driver_connection() as later, pytest.raises(duckdb.CatalogException):
        later.sql("FROM t")
    lookup._connection(None).close()
    with driver_connection() as again:
        assert again.sql("SELECT 1").fetchall() == [(1,)]
