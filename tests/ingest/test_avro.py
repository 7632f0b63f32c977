"""Avro: its values and times as Parquet's are read in every codec; files that are cut, damaged or beyond a bound are left out."""

from __future__ import annotations

import io
import sys
import uuid
import zlib
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from tests.ingest.records import declared, read
from tests.operations.projects import Project, at, stream
from warehouse.catalog.avro_files import avro_batches, avro_schema
from warehouse.catalog.initialise import write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.proposal import propose
from warehouse.errors import PlatformError
from warehouse.ingest.avro_bounds import avro_bounds_problem
from warehouse.ingest.dialect import session_settings
from warehouse.ingest.landing import list_landing
from warehouse.ingest.reading import read_files
from warehouse.operations.erasure.landing import files_with_keys
from warehouse.serving.keys import KeyColumn
from warehouse.steps.erased_keys import ErasedKeys
from warehouse.storage.session import table_session
from warehouse.time import to_micros

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

MB = 10**6
MOMENT = {"type": "long", "logicalType": "timestamp-micros"}
LAST = datetime(9999, 12, 31, 23, 59, 59, 123456, UTC)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
FIELDS = {
    "k": ["null", "string"],
    "b": {"type": "long", "logicalType": "timestamp-millis"},
    "seen": ["null", MOMENT],
    "local": {"type": "long", "logicalType": "local-timestamp-micros"},
    "day": {"type": "int", "logicalType": "date"},
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 4},
    "id": {"type": "string", "logicalType": "uuid"},
    "kind": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]},
    "other": ["null", "Kind"],
    "number": ["int", "long"],
    "either": ["int", "string"],
    "tags": {"type": "array", "items": ["null", "string"]},
    "counts": {"type": "map", "values": "int"},
    "inner": {"type": "record", "name": "Inner", "fields": [{"name": "ttl", "type": "string"}]},
}


def content(fields: dict[str, Any], rows: Sequence[dict[str, Any]], codec: str = "deflate", **more: Any) -> bytes:  # noqa: ANN401
    """Return an Avro file."""
    schema = {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    sink = io.BytesIO()
    fastavro.writer(sink, schema, rows, codec=codec, **more)
    return sink.getvalue()


def _doubled(times: int) -> dict[str, Any]:
    """Return nested records, each of which holds the next record twice."""
    record: dict[str, Any] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    for number in range(times):
        fields = [{"name": "a", "type": record}, {"name": "b", "type": f"R{number}"}]
        record = {"type": "record", "name": f"R{number + 1}", "fields": fields}
    return record


def _row(key: str | None, ttl: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - values
    row: dict[str, Any] = {
        "k": key, "b": NOON, "seen": None, "local": NOON.replace(tzinfo=None), "day": date(2026, 7, 1), "price": Decimal("12.5"),
        "id": str(uuid.UUID(int=1)), "kind": "A", "other": "B", "number": 7, "either": "x", "tags": ["a", None],
        "counts": {"a": 1}, "inner": {"ttl": ttl},
    }  # fmt: skip
    return row | more


def test_values_and_times_in_every_codec(tmp_path: Path, spark: SparkSession) -> None:
    """Instants stay, local times are of the stream's zone; unions, enumerations and fields are as Spark reads them."""
    columns = {
        "k": "string", "b": "timestamp", "seen": "timestamp", "local": "timestamp", "day": "date", "price": "decimal(20,4)",
        "id": "string", "kind": "string", "other": "string", "number": "bigint",
        "word": {"type": "string", "from": "either.member1"}, "tags": "array<string>",
        "ttl": {"type": "int", "from": "inner.ttl"},
    }  # fmt: skip
    keys = {"format": "avro", "expires": None, "max_lifetime": None, "timezone": "Europe/Berlin", "unknown_columns": "ignore"}
    target = declared(tmp_path / "p", **keys, columns=columns)
    rows = [_row("x", "7", seen=NOON), _row(None, "soon", either=3)]
    files: dict[str, str | bytes] = {}
    files |= {f"{codec}.avro": content(FIELDS, rows, codec) for codec in ("bzip2", "deflate", "null", "xz")}
    for codec in ("snappy", "zstandard"):  # which fastavro writes with more packages only
        (tmp_path / "plain.avro").write_bytes(files["null.avro"])  # type: ignore[arg-type]
        frame = spark.read.format("avro").load(str(tmp_path / "plain.avro")).drop("either")
        frame.coalesce(1).write.format("avro").option("compression", codec).save(str(tmp_path / codec))
        (part,) = (tmp_path / codec).glob("*.avro")
        files[f"{codec}.avro"] = part.read_bytes()
        assert [row["k"] for batch in avro_batches(part) for row in batch.to_pylist()] == ["x", None]
    records = read(spark, target, files)
    assert len(records) == 2 * len(files)
    good = {
        "k": "x", "b": "2026-07-01 12:00:00.000000", "seen": "2026-07-01 12:00:00.000000", "local": "2026-07-01 10:00:00.000000",
        "day": "2026-07-01", "price": 12.5, "id": str(uuid.UUID(int=1)), "kind": "A", "other": "B", "number": 7, "word": "x",
        "tags": ["a", None], "ttl": 7,
    }  # fmt: skip
    for whole, bad, name in zip(records[::2], records[1::2], sorted(files), strict=True):
        by_spark = name in ("snappy.avro", "zstandard.avro")
        assert whole == {key: value for key, value in good.items() if key != "word" or not by_spark}
        assert bad["why"] == 'column "ttl": the value is no int'


def test_bytes_that_are_no_text(tmp_path: Path, spark: SparkSession) -> None:
    """They become the replacement character, wherever they are: other engines read no table with text that is not UTF-8."""
    columns = {"k": "string", "b": "timestamp", "tags": "array<string>", "inner": "struct<ttl:string,n:int>"}
    target = declared(tmp_path, format="avro", expires=None, max_lifetime=None, columns=columns)
    inner = {"type": "record", "name": "In", "fields": [{"name": "ttl", "type": "bytes"}, {"name": "n", "type": "int"}]}
    kinds = {"k": "bytes", "b": MOMENT, "tags": {"type": "array", "items": "bytes"}, "inner": ["null", inner]}
    rows = [
        {"k": b"caf\xe9", "b": NOON, "tags": [b"\xff", b"ok"], "inner": {"ttl": b"\xfe", "n": 1}},
        {"k": b"ok", "b": NOON, "tags": [], "inner": None},
    ]
    (target.landing / "x.avro").write_bytes(content(kinds, rows))
    session = table_session(spark, session_settings(target))
    read = read_files(session, target, [((), list(list_landing(target.landing, "*")))])
    texts = read.selectExpr("hex(k)", "transform(tags, each -> hex(each))", "hex(inner.ttl)", "inner.n").collect()
    good, sign = b"ok".hex().upper(), "EFBFBD"
    assert [tuple(text) for text in texts] == [(b"caf".hex().upper() + sign, [sign, good], sign, 1), (good, [], None, None)]


def test_files_that_are_left_out(tmp_path: Path, spark: SparkSession) -> None:
    """Each with its reason, nothing of it is loaded, and the rest is: rows keep the number that they have in their file."""
    project = Project(tmp_path / "project", spark, {"a": stream(format="avro", max_expansion=20, max_lifetime="4h")})
    times = {"b": at(0.9), "e": to_micros(LAST)}
    plain = {"k": "string", "b": MOMENT, "e": MOMENT}

    def land(name: str, keys: Sequence[Any], kinds: dict[str, Any] | None = None, **more: Any) -> bytes:  # noqa: ANN401 - values
        rows = [{**times, "k": key, **more} for key in keys]
        file = content({**plain, **(kinds or {})}, rows, sync_interval=2000)
        project.land(name, file)
        return file

    land("good.avro", ["good"] * 200)
    land("typed.avro", ["fine"], {"e": "string"}, e=str(LAST))
    texts = [{**times, "k": "u", "e": "soon"}, {**times, "k": "v", "e": str(LAST)}]
    project.land("bad.avro", content({**plain, "e": "string"}, texts))
    land("extra.avro", ["extra"], {"more": "int"}, more=1)
    land("nested.avro", [["k"]], {"k": {"type": "array", "items": "string"}})
    land("wide.avro", ["x" * 17 * MB])
    land("values.avro", ["x" * 500_000] * 140)
    whole = land("whole.avro", [f"key {number}" for number in range(2000)])
    project.land("cut.avro", whole[: len(whole) // 2])
    project.land("begun.avro", whole + b"\x02")
    project.land("damaged.avro", whole[:-100] + bytes(84) + whole[-16:])
    project.land("zero.avro", b"")
    reasons = {entry.file.path: entry.reason for _, entry in project.update(1).left_out}
    assert reasons == {
        "extra.avro": "unknown_columns",
        "nested.avro": "mistyped",
        "wide.avro": "record_too_long",
        "values.avro": "expands_too_much",
        "cut.avro": "unreadable",
        "begun.avro": "unreadable",
        "damaged.avro": "unreadable",
    }
    keys = [row["k"] for row in project.live()]
    assert (len(keys), set(keys) - {f"key {number}" for number in range(2000)}) == (2202, {"good", "fine", "v"})
    assert [(entry["file"], entry["record"]) for entry in project.rejected()] == [("bad.avro", 1)]


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        ({"x": {"type": "array", "items": "null"}}, "an array of values that take no bytes"),
        ({"x": ["null", {"type": "record", "name": "In", "fields": [{"name": "y", "type": ["null", "In"]}]}]}, "holds itself"),
        ({"x": {"type": "bytes", "logicalType": "decimal", "precision": 50}}, "decimals of 50 digits"),
        ({"x": _doubled(20)}, "more than 10000 parts"),
    ],
)
def test_schemas_that_no_update_reads(tmp_path: Path, kinds: dict[str, Any], told: str) -> None:
    """The message gives the reason: Spark would take them for damage, or for memory without end."""
    (tmp_path / "x.avro").write_bytes(content(kinds, []))
    with pytest.raises(ValueError, match=told):
        avro_schema(tmp_path / "x.avro")


def test_a_schema_that_is_too_deep(tmp_path: Path) -> None:
    """Is a fault of the file, so that nothing that looks at many stops at it."""
    schema = '{"type": "array", "items": ' * 3000 + '"int"' + "}" * 3000
    sink = io.BytesIO(b"Obj\x01")
    sink.seek(4)
    fields = f'{{"type": "record", "name": "R", "fields": [{{"name": "x", "type": {schema}}}]}}'
    fastavro.schemaless_writer(sink, {"type": "map", "values": "bytes"}, {"avro.schema": fields.encode()})
    (tmp_path / "x.avro").write_bytes(sink.getvalue() + bytes(16))
    with pytest.raises(ValueError, match="RecursionError"):
        avro_schema(tmp_path / "x.avro")


def test_records_without_bytes_count_as_rows(tmp_path: Path) -> None:
    """A block says that it has a billion of them; it is walked by, not read."""
    path = tmp_path / "x.avro"
    written = content({"x": "null"}, [], "null")
    marker = written[-16:]
    path.write_bytes(written + b"\x80\xa8\xd6\xb9\x07\x00" + marker)
    reason, message = avro_bounds_problem(path, path.stat().st_size, 1, 16 * MB, 200) or ("", "")
    assert (reason, "rows or more" in message) == ("expands_too_much", True)


def test_a_damaged_block_is_named(tmp_path: Path) -> None:
    """By its number; a block beyond the bounds is not read at once."""
    fields = {"x": "string"}
    file = content(fields, [{"x": "y" * 10_000}] * 100, "deflate", sync_interval=100_000)
    path = tmp_path / "x.avro"
    path.write_bytes(file[:-30] + bytes(14) + file[-16:])
    with pytest.raises(ValueError, match=r"its block \d+ is damaged"):
        list(avro_batches(path))
    assert zlib.crc32(file) != zlib.crc32(path.read_bytes())


def test_erasure_looks_into_them(tmp_path: Path) -> None:
    """By the key, if that is no time; a key of several types counts as there."""
    target = declared(tmp_path / "p", format="avro")
    for name in ("x", "y"):
        (target.landing / f"{name}.avro").write_bytes(content({"k": "string"}, [{"k": name}]))
    (target.landing / "either.avro").write_bytes(content({"k": ["int", "string"]}, [{"k": "z"}]))
    (target.landing / "cut.avro").write_bytes(b"Obj\x01")
    key = ErasedKeys((KeyColumn("k", "VARCHAR"),), (("x",),))
    names = sorted(path.name for path in files_with_keys(target, (target.landing,), key))
    assert names == ["cut.avro", "either.avro", "x.avro"]


def test_init_proposes_a_stream_for_one(tmp_path: Path) -> None:
    """As for Parquet, with fields by their paths; a name without an ending is known by its first bytes."""
    kinds = {**FIELDS, "k": "string", "b": MOMENT, "seen": MOMENT}
    begins = [at(0.9) + number * MB for number in range(200)]
    rows = [_row(f"m{number % 40}", "7", b=begin, seen=begin + 9 * MB) for number, begin in enumerate(begins)]
    (tmp_path / "leases").write_bytes(content(kinds, rows))
    write_project(tmp_path / "project", source=tmp_path / "leases")
    (proposed,) = load_catalog(tmp_path / "project").streams
    assert (proposed.format, proposed.arrival, proposed.expires) == ("avro", "b", "seen")
    assert {"inner_ttl": "inner.ttl", "either_member1": "either.member1"}.items() <= {
        column.name: column.source_name for column in proposed.columns
    }.items()


def test_without_the_library_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    (tmp_path / "x.avro").write_bytes(content({"k": "string"}, []))
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(PlatformError, match=r"pip install 'stream-wh\[avro\]'"):
        propose(tmp_path / "x.avro")
