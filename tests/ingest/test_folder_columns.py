"""Columns that folders give: date folders and others, plain or as Hive writes them, in every format, through whole updates."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.operations.projects import Project, at, csv, row, stream
from warehouse.catalog.folder_values import folder_values
from warehouse.catalog.load import load_catalog
from warehouse.errors import ConfigurationError
from warehouse.operations.erasure.landing import files_with_keys
from warehouse.serving.keys import KeyColumn
from warehouse.steps.erased_keys import ErasedKeys

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ODD = "landing/a b+%41"
COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp"}


def dated(**changes: object) -> dict[str, object]:
    """Return a stream with the folder columns day and host."""
    return stream(**{"columns": {**COLUMNS, "day": "date", "host": "string"}, "partitions": ["day", "host"], **changes})


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("2026-01-01/h1/x.csv", ("2026-01-01", "h1")),
        ("2026-01-01/h1/more/x.csv", ("2026-01-01", "h1")),
        ("dns/day=2026-01-01/host=a%2Fb+c/x.csv", ("2026-01-01", "a/b+c")),
        ("host=h/day=2026-01-01/x.csv", ("2026-01-01", "h")),
        ("day=2026-01-01/host=__HIVE_DEFAULT_PARTITION__/x.csv", ("2026-01-01", None)),
        ("day=2026-01-01/h1/x.csv", None),
        ("2026-01-01/x.csv", None),
    ],
)
def test_what_folders_say(path: str, values: tuple[str | None, ...] | None) -> None:
    """Of Hive's form by name wherever they stand, else in order below the landing directory."""
    assert folder_values(path, ("day", "host")) == values


def test_rows_have_the_values_of_their_folders(tmp_path: Path, spark: SparkSession) -> None:
    """Typed by the declared column; a file without folders is left out by name, a folder of no such type rejects its rows."""
    project = Project(tmp_path / "project", spark, {"a": dated(landing=ODD)})
    project.land("2026-01-02/h 1/x.csv", csv(row("plain", 0.9, 4)), landing=ODD)
    project.land("feed/host=a%2Fb+ü/day=2026-01-03/x.csv", csv(row("hive", 0.9, 4)), landing=ODD)
    project.land("day=__HIVE_DEFAULT_PARTITION__/host=h/x.csv", csv(row("none", 0.9, 4)), landing=ODD)
    project.land("yesterday/h/x.csv", csv(row("odd", 0.9, 4), row("odd2", 0.9, 4)), landing=ODD)
    project.land("top.csv", csv(row("top", 0.9, 4)), landing=ODD)
    report = project.update(1)
    assert [(entry.file.path, entry.reason) for _, entry in report.left_out] == [("top.csv", "name")]
    assert "day=.../host=..." in report.left_out[0][1].message
    assert {entry["k"]: (entry["day"], entry["host"]) for entry in project.live()} == {
        "plain": (date(2026, 1, 2), "h 1"),
        "hive": (date(2026, 1, 3), "a/b+ü"),
        "none": (None, "h"),
    }
    assert [(entry["file"], entry["record"], entry["reason"]) for entry in project.rejected()] == [
        ("yesterday/h/x.csv", 1, "mistyped"),
        ("yesterday/h/x.csv", 2, "mistyped"),
    ]
    assert project.rejected()[0]["message"] == 'column "day": its folder "yesterday" is no date'


def test_every_format_has_them_and_expressions_see_them(tmp_path: Path, spark: SparkSession) -> None:
    """The folder counts where records have a value of that name too; `expr`, `arrival` and the search key may use it."""
    columns = {**COLUMNS, "day": "date", "tag": {"type": "string", "expr": "concat(day, '/', upper(`k`))"}}
    declaration = {"columns": columns, "partitions": ["day"], "search_key": ["day", "k"]}
    formats = ("csv", "json", "parquet")
    project = Project(
        tmp_path / "project", spark, {name: stream(landing=f"landing/{name}", format=name, **declaration) for name in formats}
    )
    record = {"k": "x", "b": at(0.9), "e": at(4), "day": "1999-01-01"}
    texts = dict(zip(("k", "b", "e"), row("x", 0.9, 4).split(","), strict=True))
    project.land("day=2026-01-02/x.csv", csv(row("x", 0.9, 4) + ",1999-01-01", header="k,b,e,day"), landing="landing/csv")
    project.land("day=2026-01-02/x.json", json.dumps({**texts, "day": "1999-01-01"}) + "\n", landing="landing/json")
    table = pa.Table.from_pylist([record]).cast(
        pa.schema({"k": pa.string(), "b": pa.timestamp("us", "UTC"), "e": pa.timestamp("us", "UTC"), "day": pa.string()})
    )
    path = project.land("day=2026-01-02/x.parquet", b"", landing="landing/parquet")
    pq.write_table(table, path)
    assert project.update(1).left_out == ()
    for name in formats:
        assert [(entry["day"], entry["tag"]) for entry in project.live(name)] == [(date(2026, 1, 2), "2026-01-02/X")], name


def test_erasure_finds_keys_that_folders_are_a_part_of(tmp_path: Path) -> None:
    """A file holds the key only if its folder does, whatever the format."""
    key = ErasedKeys((KeyColumn("host", "VARCHAR"), KeyColumn("k", "VARCHAR")), (("h", "x"),))
    project = Project(tmp_path / "project", None, {"a": dated(search_key=["host", "k"])})
    project.land("2026-01-02/h/has.csv", csv(row("x", 0.9, 4)))
    project.land("2026-01-02/g/other.csv", csv(row("x", 0.9, 4)))
    project.land("nowhere.csv", csv(row("x", 0.9, 4)))
    declared = load_catalog(project.directory).streams[0]
    assert sorted(path.name for path in files_with_keys(declared, (declared.landing,), key)) == ["has.csv", "nowhere.csv"]
    project.change(format="parquet")
    for path in list(declared.landing.rglob("*.csv")):
        path.unlink()
    for folder in ("h", "g"):
        pq.write_table(pa.table({"k": ["x"]}), project.land(f"2026-01-02/{folder}/{folder}.parquet", b""))
    declared = load_catalog(project.directory).streams[0]
    assert [path.name for path in files_with_keys(declared, (declared.landing,), key)] == ["h.parquet"]


@pytest.mark.parametrize(
    ("changes", "key", "told"),
    [
        ({"partitions": ["dai"]}, "partitions", 'the unknown column "dai"'),
        ({"partitions": ["day", "day"]}, "partitions", '"day" twice'),
        ({"partitions": "day"}, "partitions", "a list of columns"),
        ({"columns": {**COLUMNS, "day": {"type": "date", "from": "d"}}, "partitions": ["day"]}, "columns.day", "folders give"),
        ({"columns": {**COLUMNS, "day": "array<int>"}, "partitions": ["day"], "format": "json"}, "columns.day", "without parts"),
    ],
)
def test_mistakes_name_their_key(tmp_path: Path, changes: dict[str, object], key: str, told: str) -> None:
    """An unknown column, a column from another source, a column with parts."""
    project = Project(tmp_path / "project", None, {"a": dated(**changes)})
    with pytest.raises(ConfigurationError) as caught:
        load_catalog(project.directory)
    assert [problem.key for problem in caught.value.problems] == [f"streams.a.{key}"]
    assert told in str(caught.value)


def test_a_file_without_folders_is_tried_again_when_they_are_not_asked_for_any_more(tmp_path: Path, spark: SparkSession) -> None:
    """The declaration refused it, so a changed declaration tries it again; loaded rows keep their values."""
    project = Project(tmp_path / "project", spark, {"a": dated()})
    project.land("2026-01-02/h/x.csv", csv(row("plain", 0.9, 4)))
    project.land("top.csv", csv(row("top", 0.9, 4)))
    project.update(1)
    project.change(partitions=None)
    assert project.update(2).left_out == ()
    assert {entry["k"]: entry["host"] for entry in project.live()} == {"plain": "h", "top": None}
