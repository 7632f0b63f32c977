"""Structures and lists in Parquet, ORC and Avro: fields are found by name, and parts that cannot be converted reject the row."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from tests.operations.projects import Project, stream

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

BEGIN, END = datetime(2024, 1, 1, 0, 30, tzinfo=UTC), datetime(2024, 1, 1, 9, tzinfo=UTC)
VALUES = {"x": 1, "y": 2, "z": 3, "X": 1, "Y": 2}
COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp"}


def table(key: str, **columns: tuple[Any, pa.DataType]) -> pa.Table:
    """Return a table of one row."""
    times = {name: pa.array([moment], pa.timestamp("us", "UTC")) for name, moment in (("b", BEGIN), ("e", END))}
    return pa.table({"k": [key], **times, **{name: pa.array([value], kind) for name, (value, kind) in columns.items()}})


def written(rows: pa.Table, form: str, **options: object) -> bytes:
    """Return the bytes of a file."""
    sink = io.BytesIO()
    if form == "avro":
        record = {"type": "record", "name": "T", "fields": [_avro_field(field) for field in rows.schema]}
        fastavro.writer(sink, record, rows.to_pylist())
    elif form == "orc":
        orc.write_table(rows, sink)
    else:
        pq.write_table(rows, sink, **options)
    return sink.getvalue()


def _avro_field(field: pa.Field) -> dict[str, object]:
    return {"name": field.name, "type": _avro_type(field.type, field.name)}


def _avro_type(kind: pa.DataType, name: str) -> object:
    if pa.types.is_struct(kind):
        return {"type": "record", "name": f"R_{name}", "fields": [_avro_field(kind.field(i)) for i in range(kind.num_fields)]}
    if pa.types.is_list(kind):
        return {"type": "array", "items": _avro_type(kind.value_type, f"{name}_item")}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-micros"}
    return {"string": "string", "int32": "int", "int64": "long", "double": "double"}[str(kind)]


def project_of(directory: Path, spark: SparkSession, form: str, **columns: str) -> Project:
    """Return a project whose stream has further columns."""
    declared = stream(format=form, files="*", columns={**COLUMNS, **columns}, unknown_columns="ignore")
    return Project(directory, spark, {"a": declared})


def rows_of(project: Project) -> dict[str, dict[str, Any]]:
    """Return the live rows by key."""
    return {row["k"]: row for row in project.stored("a")}


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_fields_are_found_by_name(tmp_path: Path, spark: SparkSession, form: str) -> None:
    """In any order and case; a missing one is null, an additional one is ignored: as in JSON, also in lists."""
    project = project_of(tmp_path, spark, form, n="struct<x: int, y: int>", l="array<struct<x: int, y: int>>")
    files = {"same": "xy", "swapped": "yx", "more": "zxy", "less": "y", "case": "YX", "wide": "yx"}
    for key, names in files.items():
        kind = pa.struct([(name, pa.int64() if key == "wide" else pa.int32()) for name in names])
        value = {name: VALUES[name] for name in names}
        project.land(key, written(table(key, n=(value, kind), l=([value], pa.list_(kind))), form))
    project.update(1)
    assert project.counts().rejected == 0
    expected = {key: {"x": None if key == "less" else 1, "y": 2} for key in files}
    assert {key: row["n"] for key, row in rows_of(project).items()} == expected
    assert {key: row["l"] for key, row in rows_of(project).items()} == {key: [value] for key, value in expected.items()}


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_a_part_that_cannot_be_converted_rejects_the_row(tmp_path: Path, spark: SparkSession, form: str) -> None:
    """A text that is no number, a number with a fraction for a whole one, a structure for a number; nulls are no faults."""
    project = project_of(tmp_path, spark, form, n="struct<x: int, y: string>", l="array<int>")
    text = pa.struct([("y", pa.string()), ("x", pa.string())])
    half = pa.struct([("x", pa.float64()), ("y", pa.string())])
    deep = pa.struct([("x", text), ("y", pa.string())])
    several = pa.list_(pa.float64())
    landed = {
        "good": table("good", n=({"y": "b", "x": "7"}, text), l=([1.0, 2.0], several)),
        "text": table("text", n=({"y": "b", "x": "seven"}, text), l=([1.0], several)),
        "half": table("half", n=({"x": 1.5, "y": "b"}, half), l=([1.0], several)),
        "list": table("list", n=({"x": 1.0, "y": "b"}, half), l=([1.0, 2.5], several)),
        "deep": table("deep", n=({"x": {"y": "b", "x": "1"}, "y": "b"}, deep), l=([1.0], several)),
    }
    for key, rows in landed.items():
        project.land(key, written(rows, form))
    project.update(1)
    assert project.counts().rejected == 4
    assert {key: (row["n"], row["l"]) for key, row in rows_of(project).items()} == {"good": ({"x": 7, "y": "b"}, [1, 2])}


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_within_structures_and_lists(tmp_path: Path, spark: SparkSession, unit: str, zone: str | None) -> None:
    """In nanoseconds, as pandas writes them, which Spark reads as numbers."""
    project = project_of(tmp_path, spark, "parquet", s="struct<t: timestamp>", l="array<timestamp>")
    kind = pa.timestamp(unit, zone)
    value = BEGIN if zone else BEGIN.replace(tzinfo=None)
    rows = table("x", s=({"t": value}, pa.struct([("t", kind)])), l=([value, None], pa.list_(kind)))
    project.land("x", written(rows, "parquet"))
    project.update(1)
    assert project.counts().rejected == 0
    (row,) = rows_of(project).values()
    assert (row["s"], row["l"]) == ({"t": BEGIN}, [BEGIN, None])


def test_times_of_two_physical_types_in_one_update(tmp_path: Path, spark: SparkSession) -> None:
    """INT96, as Spark writes, and nanoseconds, as pandas does: Arrow takes both for the same."""
    project = project_of(tmp_path, spark, "parquet")
    kind = pa.timestamp("ns")
    times = {name: pa.array([moment.replace(tzinfo=None)], kind) for name, moment in (("b", BEGIN), ("e", END))}
    for key, options in (("spark", {"use_deprecated_int96_timestamps": True}), ("pandas", {"version": "2.6"})):
        project.land(key, written(pa.table({"k": [key], **times}), "parquet", **options))
    project.update(1)
    stored = {key: (row["b"], row["e"]) for key, row in rows_of(project).items()}
    assert stored == dict.fromkeys(["spark", "pandas"], (BEGIN, END))


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_a_fraction_is_no_whole_number(tmp_path: Path, spark: SparkSession, form: str) -> None:
    """A column of whole numbers with nulls is one of doubles to pandas, so 2.0 is one."""
    project = project_of(tmp_path, spark, form, d="bigint")
    values: Sequence[float] = (1.5, 2.0, 1e30, float("nan"), -3.0)
    for number, value in enumerate(values):
        project.land(f"{number}", written(table(f"{number}", d=(value, pa.float64())), form))
    project.update(1)
    assert {key: row["d"] for key, row in rows_of(project).items()} == {"1": 2, "4": -3}
    assert project.counts().rejected == 3


def test_lists_within_structures_within_lists(tmp_path: Path, spark: SparkSession) -> None:
    """Each level finds its fields by name, and a fault at any depth rejects the row; nulls at each level stay null."""
    project = project_of(tmp_path, spark, "parquet", d="array<struct<p: array<struct<x: int, y: string>>, q: int>>")
    inner = pa.struct([("y", pa.string()), ("x", pa.string())])
    kind = pa.list_(pa.struct([("q", pa.int64()), ("p", pa.list_(inner))]))
    good = [{"q": 4, "p": [{"y": "b", "x": "7"}, None]}, None, {"q": None, "p": None}]
    bad = [{"q": 4, "p": [{"y": "b", "x": "7"}, {"y": "b", "x": "seven"}]}]
    for key, value in {"good": good, "bad": bad, "none": None}.items():
        project.land(key, written(table(key, d=(value, kind)), "parquet"))
    project.update(1)
    assert project.counts().rejected == 1
    stored = {key: row["d"] for key, row in rows_of(project).items()}
    assert stored == {"good": [{"p": [{"x": 7, "y": "b"}, None], "q": 4}, None, {"p": None, "q": None}], "none": None}
