"""JSON files that are one array of objects: each object is a record; what Spark would not read whole is left out first."""

from __future__ import annotations

import bz2
import json
from typing import TYPE_CHECKING

from tests.ingest.records import declared
from tests.operations.erasure.test_landing import _found
from tests.operations.projects import Project, stream, text
from warehouse.ingest.bounds import beyond_bounds
from warehouse.ingest.landing import list_landing

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

GOOD = {"b": text(0.9), "e": text(3)}


def test_arrays_beside_lines(tmp_path: Path, spark: SparkSession) -> None:
    """Over many lines or one, compressed or not; a record's number is its place; new fields are found, a broken array is told."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "int"}
    project = Project(tmp_path, spark, {"a": stream(format="json", columns=columns, unknown_columns="add")})
    objects = [{"k": "a", **GOOD, "x": {"y": [1, "]"]}}, {"k": "b", "n": "z", **GOOD}, {"k": "c", "n": 7, **GOOD}]
    project.land("pretty.json", "\ufeff" + json.dumps(objects, indent=2))
    project.land("flat.json.bz2", bz2.compress(json.dumps([{"k": "d", **GOOD}]).encode()))
    project.land("lines.json", json.dumps({"k": "e", **GOOD}) + "\n[{}]\n")
    project.land("empty.json", "[ ]\n")
    project.land("cut.json", json.dumps(objects)[:-1])
    report = project.update(1)
    assert [(entry.file.path, entry.reason) for _, entry in report.left_out] == [("cut.json", "unreadable")]
    assert sorted((row["k"], row["n"], row.get("x")) for row in project.live()) == [
        ("a", None, '{"y":[1,"]"]}'), ("c", 7, None), ("d", None, None), ("e", None, None),
    ]  # fmt: skip
    kept = {(row["file"], row["record"]): row["reason"] for row in project.rejected()}
    assert kept == {("pretty.json", 2): "mistyped", ("lines.json", 2): "malformed"}


def test_arrays_that_are_left_out(tmp_path: Path) -> None:
    """Larger than a record may be, with other things than objects, numbers that Spark would change."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "decimal(30,20)"}
    given = declared(tmp_path, format="json", max_record="1KB", columns=columns)
    objects = {
        "fits": '[{"k":"a"}]', "long": "[" + ",".join(['{"k":"a"}'] * 200) + "]", "mixed": '[{"k":"a"}, 5]',
        "huge": '[{"n":1e400}]', "digits": '[{"n":0.12345678901234567890}]', "trailing": '[{"k":"a"}] x',
    }  # fmt: skip
    for name, content in objects.items():
        (given.landing / f"{name}.json").write_text(content)
    found = {each.path.removesuffix(".json"): each for each in beyond_bounds(given, list(list_landing(given.landing, "*")))}
    assert {name: each.reason for name, each in found.items()} == {
        "long": "record_too_long", "mixed": "unreadable", "huge": "unreadable", "digits": "unreadable", "trailing": "unreadable",
    }  # fmt: skip
    assert found["long"].message.endswith("(1000 bytes); `jq -c '.[]'` makes lines of it, or raise max_record")
    assert "element 2 is no object" in found["mixed"].message


def test_keys_in_arrays_are_found(tmp_path: Path) -> None:
    """By what erases them, though they stand on one line with others."""
    files = {"held.json": b'[{"tailnum":"N2"},\n{"tailnum":"N1"}]', "other.json": b'[{"tailnum":"N2"}, {"x":"N1"}]'}
    assert _found(tmp_path, files, format="json") == ["held.json"]
