"""Declarations and files through whole updates: mistakes are reported with their key, refused files are tried again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, at, csv, row, stream
from warehouse.catalog.load import load_catalog
from warehouse.epochs.journal import plan_path
from warehouse.errors import ConfigurationError
from warehouse.operations.erasure.landing import files_with_keys
from warehouse.serving.keys import KeyColumn
from warehouse.steps.erased_keys import ErasedKeys

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

LOG = {
    "client": {"type": "string", "from": "id.orig_h"},
    "b": {"type": "timestamp", "from": "ts", "format": "epoch_seconds"},
    "TTLs": "array<double>",
    "least": {"type": "double", "expr": "array_min(TTLs)"},
}
ENDS = "timestampadd(MICROSECOND, CAST(least * 1000000 AS bigint), ts)"


def line(client: str, hours: float, *ttls: float) -> str:
    """Return a line of a log, its time in seconds since 1970."""
    return json.dumps({"id.orig_h": client, "ts": at(hours) / 1e6, "TTLs": ttls}) + "\n"


def log(**changes: object) -> dict[str, object]:
    """Return a stream of such lines; a row ends with the least of its TTLs."""
    declaration = {"format": "json", "columns": LOG, "search_key": "client", "arrival": "b", "expires": ENDS}
    return stream(**declaration | changes)


def test_mistakes_of_types_are_found_before_anything_is_read(tmp_path: Path, spark: SparkSession) -> None:
    """Whatever Spark refuses of an expression is a mistake of its key, in a first run as later; nothing is written."""
    project = Project(tmp_path / "project", spark, {"a": log()})
    project.land("1.json", line("x", 0.9, 7200.0, 9000.5))
    wrong: dict[str, object] = {
        "streams.a.expires": {"expires": "element_at(map('x', TTLs), client)"},
        "streams.a.arrival": {"arrival": "element_at(map('x', least), client)"},
        "streams.a.columns.least": {"columns": {**LOG, "least": {"type": "double", "expr": "array_min(`id.orig_h`)"}}},
    }
    for key, changes in wrong.items():
        project.streams["a"] = log() | changes  # type: ignore[operator]
        project.declare()
        with pytest.raises(ConfigurationError) as caught:
            project.update(1)
        assert [problem.key for problem in caught.value.problems] == [key]
    project.streams["a"] = log(columns={**LOG, "least": {"type": "int", "expr": "array_min(TTLs)"}})
    project.declare()
    with pytest.raises(ConfigurationError, match="which gives double"):
        project.update(1)
    assert not plan_path(project.root, 0).exists()
    project.streams["a"] = log()
    project.declare()
    project.update(1)
    assert [(entry["client"], entry["least"]) for entry in project.live()] == [("x", 7200.0)]


def test_a_refused_file_is_tried_again_when_the_declaration_lets_it_in(tmp_path: Path, spark: SparkSession) -> None:
    """By itself: a declared column, an ignored column, a raised bound. Files without such a change stay left out."""
    project = Project(tmp_path / "project", spark)
    project.land("good.csv", csv(row("good", 0.9, 4)))
    project.land("more.csv", csv(row("more", 0.9, 4) + ",7", header="k,b,e,n"))
    project.land("odd.csv", csv(row("odd", 0.9, 4), header="Key No.,b,e"))
    assert {entry.file.path for _, entry in project.update(1).left_out} == {"more.csv", "odd.csv"}
    assert {entry.file.path for entry in project.update(1.5).landing[0].unreadable} == {"more.csv", "odd.csv"}
    project.change(over_lifetime="clamp")
    assert project.update(2).left_out == (), "nothing changed by which they were refused"
    columns = {"k": "string", "b": "timestamp", "e": "timestamp"}
    project.change(columns={**columns, "n": "int"})
    assert [entry.file.path for _, entry in project.update(2.9).left_out] == []
    assert [entry.file.path for _, entry in project.update(3).left_out] == ["odd.csv"], "tried, and refused again"
    assert project.keys() == "good more"
    project.change(columns={**columns, "k": {"type": "string", "from": "Key No."}, "n": "int"})
    project.land("late.csv", csv(row("late", 2.9, 5), header="Key No.,b,e"))
    assert project.update(3.95).left_out == ()
    assert project.update(4.5).landing[0].unreadable == ()


def test_erasure_looks_for_keys_where_files_have_them(tmp_path: Path) -> None:
    """By the name or path that the column is taken from; a calculated key can be in any file."""
    project = Project(tmp_path / "project", None, {"a": log()})
    project.land("has.json", line("x", 1, 1.0))
    project.land("has_not.json", json.dumps({"client": "x", "id.orig_h": "y", "ts": 1, "TTLs": []}) + "\n")
    project.land("nested.json", json.dumps({"id": {"orig_h": "x"}, "ts": 1, "TTLs": []}) + "\n")
    keys = ErasedKeys((KeyColumn("client", "VARCHAR"),), (("x",),))
    declared = load_catalog(project.directory).streams[0]
    assert sorted(path.name for path in files_with_keys(declared, (declared.landing,), keys)) == ["has.json", "nested.json"]
    calculated = {**LOG, "client": {"type": "string", "expr": "upper(`id.orig_h`)"}}
    project.streams["a"] = log(columns=calculated, sources={"id.orig_h": "string"})
    project.declare()
    declared = load_catalog(project.directory).streams[0]
    names = sorted(path.name for path in files_with_keys(declared, (declared.landing,), keys))
    assert names == ["has.json", "has_not.json", "nested.json"]
