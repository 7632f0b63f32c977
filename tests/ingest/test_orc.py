"""ORC: its values and times as Parquet's are read, files beyond a bound or of other columns left out."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import orc

from tests.ingest.records import declared, read
from tests.operations.projects import Project, at, stream
from warehouse.catalog.proposal import propose
from warehouse.operations.erasure.landing import files_with_keys
from warehouse.serving.keys import KeyColumn
from warehouse.steps.erased_keys import ErasedKeys
from warehouse.time import to_micros

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MB = 10**6
KIND = pa.timestamp("us", "UTC")
LAST = datetime(9999, 12, 31, 23, 59, 59, 123456, UTC)


def content(**columns: Any) -> bytes:  # noqa: ANN401 - arrays, or lists of values
    """Return an ORC file."""
    sink = pa.BufferOutputStream()
    orc.write_table(pa.table(columns), sink, compression="zlib")
    return bytes(sink.getvalue())


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_values_and_times(tmp_path: Path, spark: SparkSession, zone: str) -> None:
    """Instants stay, local times are of the stream's or the column's zone whatever the JVM's is, fields have paths."""
    local = pa.timestamp("us")
    moment = datetime(2026, 7, 1, 12)  # noqa: DTZ001 - a local time
    past = datetime(1969, 7, 1, 12)  # noqa: DTZ001 - same
    columns = {
        "k": "string",
        "b": "timestamp",
        "local": "timestamp",
        "tokyo": {"type": "timestamp", "from": "inner.local", "timezone": "Asia/Tokyo"},
        "ttl": {"type": "int", "from": "inner.ttl"},
        "price": "decimal(20,4)",
        "tags": "array<string>",
    }
    target = declared(tmp_path / "p", format="orc", expires=None, max_lifetime=None, timezone="Europe/Berlin", columns=columns)
    kinds = pa.struct({"ttl": pa.string(), "local": local})
    inner = pa.array([{"ttl": "7", "local": moment}, {"ttl": "x", "local": None}], kinds)
    file = content(
        k=["x", "y"],
        b=pa.array([moment.replace(tzinfo=UTC), None], KIND),
        local=pa.array([moment, past], local),
        inner=inner,
        price=[Decimal("12.5000"), None],
        tags=[["a", None], []],
    )
    jvm: Any = spark._jvm
    zones = jvm.java.util.TimeZone
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(zone))
    try:
        rows = read(spark, target, {"x.orc": file})
    finally:
        zones.setDefault(before)
    assert rows[0] == {
        "k": "x",
        "b": "2026-07-01 12:00:00.000000",
        "local": "2026-07-01 10:00:00.000000",
        "tokyo": "2026-07-01 03:00:00.000000",
        "ttl": 7,
        "price": 12.5,
        "tags": ["a", None],
    }
    assert (rows[1]["local"], rows[1]["why"]) == ("1969-07-01 11:00:00.000000", 'column "ttl": the value is no int')


def test_times_of_the_last_year_and_files_that_are_left_out(tmp_path: Path, spark: SparkSession) -> None:
    """Each with its reason, and the rest is loaded: rows keep the number that they have in their file."""
    project = Project(tmp_path / "project", spark, {"a": stream(format="orc", max_expansion=20, max_lifetime="4h")})

    def land(name: str, keys: list[Any], **more: Any) -> None:  # noqa: ANN401 - values
        times = {"b": pa.array([at(0.9)] * len(keys), KIND), "e": pa.array([to_micros(LAST)] * len(keys), KIND)}
        project.land(name, content(k=keys, **{**times, **more}))

    land("good.orc", ["good", "bad", "fine"], e=[str(LAST), "soon", str(LAST)])
    land("last.orc", ["last"])
    land("extra.orc", ["extra"], more=[1])
    land("nested.orc", [["k"]])
    land("rows.orc", ["x"] * (MB + 1))
    land("values.orc", ["x" * 500_000] * 140)
    land("wide.orc", ["x" * 17 * MB])
    whole = (tmp_path / "project/landing/a/good.orc").read_bytes()
    project.land("cut.orc", whole[: len(whole) // 2])
    project.land("zero.orc", b"")
    reasons = {entry.file.path: entry.reason for _, entry in project.update(1).left_out}
    assert reasons == {
        "extra.orc": "unknown_columns",
        "nested.orc": "mistyped",
        "rows.orc": "expands_too_much",
        "values.orc": "expands_too_much",
        "wide.orc": "record_too_long",
        "cut.orc": "unreadable",
    }
    assert {row["k"]: row["e"] for row in project.live()} == dict.fromkeys(("fine", "good", "last"), LAST)
    assert [(entry["file"], entry["record"]) for entry in project.rejected()] == [("good.orc", 2)]


def test_erasure_looks_into_them(tmp_path: Path) -> None:
    """By the key, if that is no time."""
    target = declared(tmp_path / "p", format="orc")
    for name in ("x", "y"):
        (target.landing / f"{name}.orc").write_bytes(content(k=[name]))
    (target.landing / "cut.orc").write_bytes(b"ORC")
    key = ErasedKeys((KeyColumn("k", "VARCHAR"),), (("x",),))
    assert sorted(path.name for path in files_with_keys(target, (target.landing,), key)) == ["cut.orc", "x.orc"]


def test_init_proposes_a_stream_for_one(tmp_path: Path) -> None:
    """As for Parquet."""
    many = range(200)
    path = tmp_path / "leases.orc"
    begins = [at(0.9) + number * MB for number in many]
    ends = pa.array([begin + 9 * MB for begin in begins], KIND)
    path.write_bytes(content(mac=[f"m{number}" for number in many], seen=pa.array(begins, KIND), until=ends))
    declared_text = bytes(propose(path)["warehouse.toml"]).decode()  # type: ignore[arg-type]
    assert 'format = "orc"' in declared_text
    assert 'expires = "until"' in declared_text
