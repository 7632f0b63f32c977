"""A table is the same table for Spark, deltalake, DuckDB and the warehouse's own reader, for every type."""

from __future__ import annotations

import base64
import json
import math
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from tests.operations.projects import Project, counts_of, parquet, stream
from warehouse import Warehouse
from warehouse.storage.snapshot import read_snapshot
from warehouse.storage.tables import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Epoch

START = datetime(2013, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)

TYPES: dict[str, tuple[str, pa.DataType]] = {
    "flag": ("boolean", pa.bool_()),
    "i8": ("tinyint", pa.int8()),
    "i16": ("smallint", pa.int16()),
    "i32": ("int", pa.int32()),
    "i64": ("bigint", pa.int64()),
    "f32": ("float", pa.float32()),
    "f64": ("double", pa.float64()),
    "price": ("decimal(10,2)", pa.decimal128(10, 2)),
    "wide": ("decimal(38,10)", pa.decimal128(38, 10)),
    "name": ("string", pa.string()),
    "raw": ("binary", pa.binary()),
    "day": ("date", pa.date32()),
    "at": ("timestamp", pa.timestamp("us", tz="UTC")),
    "list": ("array<int>", pa.list_(pa.int32())),
    "parts": (
        "array<struct<a:bigint,b:string>>",
        pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ),
    "nested": (
        "struct<x:double,y:array<string>,z:struct<q:decimal(5,1),w:timestamp,d:date>>",
        pa.struct(
            [
                ("x", pa.float64()),
                ("y", pa.list_(pa.string())),
                ("z", pa.struct([("q", pa.decimal128(5, 1)), ("w", pa.timestamp("us", tz="UTC")), ("d", pa.date32())])),
            ],
        ),
    ),
}
SCHEMA = pa.schema(
    [
        *((name, kind) for name, (_, kind) in TYPES.items()),
        ("begins", pa.timestamp("us", tz="UTC")),
        ("ends", pa.timestamp("us", tz="UTC")),
    ],
)
COLUMNS = list(SCHEMA.names)


def row(number: int, **values: object) -> dict[str, Any]:
    """Return a row of nulls and the given values; it lives for about 3 h, from shortly before hour ``number``."""
    begins = START + number * HOUR - timedelta(microseconds=1)
    return {**dict.fromkeys(COLUMNS), "begins": begins, "ends": begins + 3 * HOUR + timedelta(microseconds=7), **values}


ORDINARY = {
    "flag": True,
    "i8": 1,
    "i16": 2,
    "i32": 3,
    "i64": 4,
    "f32": 0.5,
    "f64": 0.1,
    "price": Decimal("12.30"),
    "wide": Decimal("1.0000000001"),
    "name": "plain",
    "raw": b"\x00\xff",
    "day": date(2013, 2, 28),
    "at": datetime(2013, 3, 10, 2, 30, 0, 123456, UTC),
    "list": [1, None, 3],
    "parts": [{"a": 1, "b": "x"}, None, {"a": None, "b": None}],
    "nested": {
        "x": 1.5,
        "y": ["p", None, ""],
        "z": {"q": Decimal("-9999.9"), "w": START, "d": date(1970, 1, 1)},
    },
}
LEAST = {
    "flag": False,
    "i8": -(2**7),
    "i16": -(2**15),
    "i32": -(2**31),
    "i64": -(2**63),
    "f32": -math.inf,
    "f64": -math.inf,
    "price": Decimal("-99999999.99"),
    "wide": Decimal("-9999999999999999999999999999.9999999999"),
    "name": "",
    "raw": b"",
    "day": date(1, 1, 1),
    "at": datetime(1, 1, 1, tzinfo=UTC),
    "list": [],
    "parts": [],
    "nested": {"x": -0.0, "y": [], "z": None},
}
GREATEST = {
    "flag": True,
    "i8": 2**7 - 1,
    "i16": 2**15 - 1,
    "i32": 2**31 - 1,
    "i64": 2**63 - 1,
    "f32": math.inf,
    "f64": math.nan,
    "price": Decimal("99999999.99"),
    "wide": Decimal("9999999999999999999999999999.9999999999"),
    "name": "\U0001f6eb naïve\n\"quoted\", 'x' \\ \t",
    "raw": bytes(range(256)),
    "day": date(9999, 12, 31),
    "at": datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
    "list": [-(2**31), 2**31 - 1],
    "parts": [{"a": 2**63 - 1, "b": "ü"}] * 3,
    "nested": {"x": 5e-324, "y": ["\U0001f6eb"], "z": {"q": None, "w": None, "d": date(1582, 10, 4)}},
}
OLD = {"name": "old", "day": date(1582, 10, 10), "at": datetime(1883, 11, 18, 12, 3, 57, 999999, UTC)}

FIRST = [row(3, **ORDINARY), row(3, **LEAST), row(3, name="gone", ends=START + 4 * HOUR)]
SECOND = [row(4, **ORDINARY), row(4, **GREATEST), row(4, **OLD), row(4), row(4)]
LIVE = [*FIRST[:2], *SECOND]

TIMES = {
    "arrival": "begins",
    "expires": "ends",
    "columns": {**{name: kind for name, (kind, _) in TYPES.items()}, "begins": "timestamp", "ends": "timestamp"},
}
STREAMS = {
    "files": stream(
        landing="landing/files",
        format="parquet",
        search_key=["name", "i32"],
        layout={"technique": "rebuild", "grid": [1, 1]},
        **TIMES,
    ),
    "lines": stream(
        landing="landing/lines",
        format="json",
        search_key=["day", "flag", "price"],
        layout={"grid": [2, 1], "expiry_block": 2},
        **TIMES,
    ),
}


@dataclass(frozen=True)
class Loaded:
    """The warehouse after two updates; the second one rewrites (rebuild) or merges (seal) what the first one wrote."""

    root: Path
    warehouse: Warehouse
    epoch: Epoch
    spark: SparkSession


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    """Load both parts through Parquet and through JSON lines."""
    project = Project(tmp_path_factory.mktemp("engines"), spark, STREAMS, {"anchor": START.isoformat()})
    warehouse = Warehouse.open(project.directory)
    for number, rows in enumerate((FIRST, SECOND), 3):
        project.land(f"{number}.parquet", parquet(pa.Table.from_pylist(rows, SCHEMA)), landing="landing/files")
        lines = "".join(json.dumps(as_json(record)) + "\n" for record in rows)
        project.land(f"{number}.json", lines, landing="landing/lines")
        (epoch,) = warehouse.update(f"2013-01-01T0{number}:00:00Z", spark=spark).epochs
    return Loaded(warehouse.root, warehouse, epoch, spark)


def as_json(value: object) -> Any:  # noqa: ANN401 - any JSON value
    """Return a value as JSON lines hold it: an absent field is null."""
    match value:
        case dict():
            return {name: as_json(field) for name, field in value.items() if field is not None}
        case list():
            return [as_json(item) for item in value]
        case datetime():
            return value.isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        case _:
            return value


def comparable(table: pa.Table) -> list[str]:
    """Return rows as sorted text, in which NaN equals NaN and -0.0 is not 0.0; engines spell UTC in different ways."""
    plain = pa.Table.from_pylist(table.select(COLUMNS).to_pylist(), SCHEMA)
    return sorted(repr(record) for record in plain.to_pylist())


def by_spark(loaded: Loaded, stream: str) -> pa.Table:
    """Return what Spark reads of a table's newest version."""
    rows = loaded.spark.read.format("delta").load(str(loaded.root / "tables" / stream))
    return rows.where(f"_exp > timestamp_micros({loaded.epoch.window_time})").toArrow()


def by_deltalake(loaded: Loaded, stream: str) -> pa.Table:
    """Return what delta-rs reads of a table's newest version."""
    table = DeltaTable(str(loaded.root / "tables" / stream)).to_pyarrow_table()
    return table.filter(pa.compute.greater(table["_exp"].cast(pa.int64()), loaded.epoch.window_time))


def by_duckdb(loaded: Loaded, stream: str) -> pa.Table:
    """Return what plain DuckDB reads of the files of the epoch's version."""
    state = loaded.epoch.table(stream)
    assert state is not None
    paths = [file.path for file in read_snapshot(loaded.root, state.path, state.version, ()).files]
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = "SELECT * FROM read_parquet(?) WHERE epoch_us(_exp) > ?"
        return connection.sql(query, params=[paths, loaded.epoch.window_time]).to_arrow_table()


def by_reader(loaded: Loaded, stream: str) -> pa.Table:
    """Return what the warehouse answers."""
    return loaded.warehouse.scan(stream).arrow()


@pytest.mark.parametrize("engine", [by_spark, by_deltalake, by_duckdb, by_reader])
@pytest.mark.parametrize("stream", ["files", "lines"])
def test_every_engine_reads_what_landed(
    loaded: Loaded, stream: str, engine: Callable[[Loaded, str], pa.Table]
) -> None:
    """Values of every type, the least and the greatest, come back as they landed, through Parquet and through JSON."""
    assert comparable(engine(loaded, stream)) == comparable(pa.Table.from_pylist(LIVE, SCHEMA))


@pytest.mark.parametrize("stream", ["files", "lines"])
def test_every_engine_reads_the_same_system_columns(loaded: Loaded, stream: str) -> None:
    """The system and partition columns are the same for Spark, delta-rs and the warehouse's reader."""
    names = [name for name, _ in SYSTEM_COLUMNS]

    def system(table: pa.Table) -> list[tuple[int, ...]]:
        columns = [table[name].cast(pa.int64()).to_pylist() for name in names]
        return sorted(zip(*columns, strict=True))

    answer = loaded.warehouse.scan(stream, system_columns=True).arrow()
    assert system(by_spark(loaded, stream)) == system(by_deltalake(loaded, stream)) == system(answer)
    assert len(system(answer)) == len(LIVE)


@pytest.mark.parametrize(("stream", "rows"), [("files", len(FIRST)), ("lines", len(FIRST) - 1)])
def test_the_second_update_wrote_the_first_rows_again(loaded: Loaded, stream: str, rows: int) -> None:
    """The rows that the tests read were written twice: rebuilt, or merged by a seal in another block than the dead row's."""
    counts = counts_of(loaded.epoch, stream)
    assert counts.rewritten == rows
    assert counts.rejected == 0
