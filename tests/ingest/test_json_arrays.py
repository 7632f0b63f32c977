"""JSON files that are one array of objects: each object is a record; a file that Spark would not read whole is left out first."""

from __future__ import annotations

import bz2
import gzip
import json
from typing import TYPE_CHECKING

from tests.ingest.records import declared
from tests.operations.erasure.test_landing import _found
from tests.operations.projects import Project, stream, text
from warehouse.ingest.bounds import bounds_problems
from warehouse.ingest.dialect import session_settings
from warehouse.ingest.landing import list_landing
from warehouse.ingest.reading import read_files
from warehouse.storage.session import table_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

GOOD = {"b": text(0.9), "e": text(3)}


def test_arrays_beside_lines(tmp_path: Path, spark: SparkSession) -> None:
    """Over many lines or one, compressed or not; a record's number is its position; new fields are found, broken arrays named."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "int"}
    project = Project(tmp_path, spark, {"a": stream(format="json", columns=columns, unknown_columns="add")})
    objects = [{"k": "a", **GOOD, "x": {"y": [1, "]"]}}, {"k": "b", "n": "z", **GOOD}, {"k": "c", "n": 7, **GOOD}]
    project.land("pretty.json", "\ufeff" + json.dumps(objects, indent=2))
    project.land("marked.json", "\ufeff" + json.dumps({"k": "m", **GOOD}) + "\n \n\t\n \t\f \r\n")  # blank lines are no records
    project.land("marked.json.gz", gzip.compress(("\ufeff" + json.dumps({"k": "z", **GOOD}) + "\n").encode()))
    project.land("flat.json.bz2", bz2.compress(json.dumps([{"k": "d", **GOOD}]).encode()))
    twice = json.dumps({"k": "f", **GOOD}) * 2
    project.land("lines.json", json.dumps({"k": "e", **GOOD, "x": [{}, {}]}) + f"\n[{{}}]\n{twice}\n")
    project.land("empty.json", "[ ]\n")
    project.land("cut.json", json.dumps(objects)[:-1])
    report = project.update(1)
    assert [(entry.file.path, entry.reason) for _, entry in report.left_out] == [("cut.json", "unreadable")]
    assert sorted((row["k"], row["n"], row.get("x")) for row in project.live()) == [
        ("a", None, '{"y":[1,"]"]}'), ("c", 7, None), ("d", None, None), ("e", None, "[{},{}]"), ("m", None, None),
        ("z", None, None),
    ]  # fmt: skip
    rejected = {(row["file"], row["record"]): row["reason"] for row in project.rejected()}
    assert rejected == {("pretty.json", 2): "mistyped", ("lines.json", 2): "malformed", ("lines.json", 3): "malformed"}


def test_objects_over_several_lines(tmp_path: Path, spark: SparkSession) -> None:
    """With `multiline`: each is a record, lines and arrays too; a file that is broken anywhere is left out as a whole."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "t": "string"}
    project = Project(tmp_path, spark, {"a": stream(format="json", columns=columns, options={"multiline": True})})
    objects = [{"k": "a", **GOOD, "t": "} {"}, {"k": "b", **GOOD, "t": '}\n{"'}, {"k": "c", "b": "soon", "e": None}]
    pretty = "\n".join(json.dumps(value, indent=2) for value in objects)
    project.land("pretty.json", "\ufeff" + pretty.replace("\n", "\r\n") + "\n\n")
    project.land("lines.json.gz", gzip.compress("".join(json.dumps({"k": key, **GOOD}) + "\n" for key in "de").encode()))
    project.land("array.json", json.dumps([{"k": "f", **GOOD}], indent=1))
    project.land("blank.json", "\n \n")
    project.land("cut.json", pretty[:-3])
    project.land("beside.json", '{"k": "x"} {"k": "y"}')
    project.land("broken.json", pretty.replace("}\\n{", "}\n{"))
    project.land("return.json", json.dumps({"k": "g", **GOOD}) + "\r" + json.dumps({"k": "h", **GOOD}))
    project.land("name.json", '{"k": "x"}\n{"' + "n" * 60_000 + '": 1}')  # which only Spark does not take
    messages = {entry.file.path: entry.message for _, entry in project.update(1).left_out}
    assert messages.keys() == {"beside.json", "broken.json", "cut.json"}
    assert all(message.startswith("it begins as JSON over several lines, and is none: ") for message in messages.values())
    assert sorted((row["k"], row["t"]) for row in project.live()) == [
        ("a", "} {"), ("b", '}\n{"'), ("d", None), ("e", None), ("f", None), ("g", None), ("h", None),
    ]  # fmt: skip
    rejected = {(row["file"], row["record"]): row["reason"] for row in project.rejected()}
    assert rejected == {("pretty.json", 3): "mistyped", ("name.json", 1): "malformed"}


def test_arrays_that_are_left_out(tmp_path: Path) -> None:
    """Larger than a record may be, with other things than objects, numbers that Spark would change."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "decimal(30,20)"}
    target = declared(tmp_path, format="json", max_record="1KB", columns=columns)
    objects = {
        "fits": '[{"k":"a","n":0.12345678901234567890}]', "long": "[" + ",".join(['{"k":"a"}'] * 200) + "]",
        "mixed": '[{"k":"a"}, 5]',
        "huge": '[{"n":1e400}]', "digits": '[{"n":0.1234567890123456789012345678901234567890}]', "trailing": '[{"k":"a"}] x',
    }  # fmt: skip
    for name, content in objects.items():
        (target.landing / f"{name}.json").write_text(content)
    problems = {
        problem.path.removesuffix(".json"): problem
        for problem in bounds_problems(target, list(list_landing(target.landing, "*")))
    }
    assert {name: problem.reason for name, problem in problems.items()} == {
        "long": "record_too_long", "mixed": "unreadable", "huge": "unreadable", "digits": "unreadable", "trailing": "unreadable",
    }  # fmt: skip
    assert problems["long"].message.endswith("(1000 bytes); `jq -c '.[]'` makes lines of it, or raise max_record")
    assert "element 2 is no object" in problems["mixed"].message


def test_a_file_over_several_lines_is_bounded(tmp_path: Path) -> None:
    """A task reads it whole, so it may have no more bytes than a record; the message names the command that makes lines of it."""
    target = declared(tmp_path, format="json", max_record="1KB", options={"multiline": True})
    (target.landing / "x.json").write_text('{\n"k": "a"\n}\n' * 100)
    (problem,) = bounds_problems(target, list(list_landing(target.landing, "*")))
    assert (problem.reason, problem.message) == (
        "record_too_long",
        "it is JSON over several lines of more than max_record (1000 bytes); `jq -c .` makes lines of it, or raise max_record",
    )


def test_keys_in_arrays_are_found(tmp_path: Path) -> None:
    """Erasure finds them, though they stand on one line with others."""
    files = {"held.json": b'[{"tailnum":"N2"},\n{"tailnum":"N1"}]', "other.json": b'[{"tailnum":"N2"}, {"x":"N1"}]'}
    assert _found(tmp_path, files, format="json") == ["held.json"]
    pretty = {"held.json": b'{\n"tailnum":"N2"\n}\n{\n"tailnum":"N1"\n}\n', "other.json": b'{\n"x":"N1"\n}'}
    assert _found(tmp_path / "over", pretty, format="json", options={"multiline": True}) == ["held.json"]


def test_numbers_in_arrays_stay_as_they_are(tmp_path: Path, spark: SparkSession) -> None:
    """Decimals beyond double precision too, also nested; an array with an object that has a name twice is no array."""
    columns = {"k": "string", "n": "decimal(38,18)", "id": "decimal(38,0)"}
    columns |= {"parts": "array<struct<p:decimal(30,20)>>", "b": "timestamp"}
    target = declared(tmp_path, format="json", expires=None, max_lifetime=None, columns=columns)
    number, whole = "12345678901234567890.123456789012345678", "12345678901234567890123456789012345678"
    small = "0.12345678901234567891"
    files: dict[str, str | bytes] = {
        "x.json": f'\ufeff[{{"k":"a","n":{number},"id":{whole},"parts":[{{"p":{small}}}]}},{{"k":"b\\u00e9"}}]',
        "twins.json": f'[{{"k":"c","k":"d","n":{number}}}]',
        "plain.json": '[{"k":"e","n":1.5}]',
    }
    for name, content in files.items():
        (target.landing / name).write_text(str(content))
    session = table_session(spark, session_settings(target))
    rows = read_files(session, target, [((), list(list_landing(target.landing, "*")))]).orderBy("k").collect()
    results = [(row["k"], row["n"] and str(row["n"]), row["id"] and str(row["id"]), row["_fault"]) for row in rows]
    assert results == [
        (None, None, None, "malformed"),
        ("a", number, whole, None),
        ("b\u00e9", None, None, None),
        ("e", "1.500000000000000000", None, None),
    ]
    assert [str(part["p"]) for part in rows[1]["parts"]] == [small]
