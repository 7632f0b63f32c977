"""A landing in an object store: each object is loaded once, by its name and tag, in every format and codec."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.operations.projects import Project, StoppedError, at, csv, row, stop_at, stream
from warehouse.catalog.load import load_catalog
from warehouse.epochs.points import Point
from warehouse.errors import LandingError
from warehouse.objects import path as object_path
from warehouse.objects.path import ObjectPath
from warehouse.planning.inputs import landing_facts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def landing(bucket: ObjectPath) -> ObjectPath:
    """Return a directory in the store where files land."""
    return bucket / "in"


@pytest.fixture
def project(tmp_path: Path, landing: ObjectPath, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project with a local root, and a cache of its own."""
    monkeypatch.setenv("STREAM_WH_CACHE", str(tmp_path / "cache"))
    return Project(tmp_path / "project", spark, {"a": stream(landing=str(landing))})


def put(landing: ObjectPath, name: str, *lines: str) -> None:
    """Put a CSV file into the store."""
    (landing / name).write_bytes(csv(*lines).encode())


def test_objects_are_loaded_once_and_told_by_their_tags(project: Project, landing: ObjectPath, tmp_path: Path) -> None:
    """The same bytes put again are the same object; other bytes are a changed object, which waits for `reload`. No copy stays."""
    put(landing, "day=1/x.csv", row("x", 0.9, 4))
    put(landing, "_hidden/y.csv", row("y", 0.9, 4))
    put(landing, "z.csv.tmp", row("z", 0.9, 4))
    (landing / "w.csv.gz").write_bytes(gzip.compress(csv(row("w", 0.9, 4)).encode()))
    put(landing, "bad.csv", "no,header,here,at all")
    (landing / "torn.csv.gz").write_bytes(b"\x1f\x8b not gzip")
    report = project.update(1)
    assert (project.keys(), [entry.file.path for _, entry in report.left_out]) == ("w x", ["torn.csv.gz"])
    assert [(rejected["file"], rejected["record"]) for rejected in project.rejected()] == [("bad.csv", 1)]
    assert not list((tmp_path / "cache").rglob("*.csv*"))

    put(landing, "day=1/x.csv", row("x", 0.9, 4))
    assert project.update(2).landing[0].changed == ()
    put(landing, "day=1/x.csv", row("x2", 0.9, 4), row("x3", 0.9, 4))
    changed = project.update(2.5).landing[0].changed
    assert [file.path for file in changed] == ["day=1/x.csv"]
    assert project.keys() == "w x"
    project.updater().reload(f"{landing}/day=1/x.csv")
    project.update(3)
    assert project.keys() == "w x x2 x3"


def test_every_format_and_folder_columns(project: Project, landing: ObjectPath) -> None:
    """Copies keep their names, so folders give columns; Parquet and JSON arrays are read as from a disk."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "day": "date"}
    for form in ("json", "parquet"):
        directory = landing / form
        project.streams[form] = stream(landing=str(directory), format=form, columns=columns, partitions=["day"])
    del project.streams["a"]
    project.declare()
    texts = dict(zip(("k", "b", "e"), row("j", 0.9, 4).split(","), strict=True))
    (landing / "json/day=2026-01-02/ü 1.json").write_bytes(f"[{texts}]".replace("'", '"').encode())
    kinds = pa.schema({"k": pa.string(), "b": pa.timestamp("us", "UTC"), "e": pa.timestamp("us", "UTC")})
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{"k": "p", "b": at(0.9), "e": at(4)}]).cast(kinds), content)
    (landing / "parquet/day=2026-01-03/p.parquet").write_bytes(content.getvalue())
    assert project.update(1).left_out == ()
    rows = [(live_row["k"], live_row["day"].day) for name in ("json", "parquet") for live_row in project.live(name)]
    assert rows == [("j", 2), ("p", 3)]


def test_an_update_that_was_stopped_copies_its_objects_again(
    project: Project, landing: ObjectPath, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A plan names objects, not copies: another machine, whose cache is empty, can complete it."""
    put(landing, "x.csv", row("x", 0.9, 4))
    with pytest.raises(StoppedError):
        project.update(1, observer=stop_at(Point.PLANNED))
    monkeypatch.setenv("STREAM_WH_CACHE", str(tmp_path / "elsewhere"))
    project.update(2)
    assert project.keys() == "x"


def test_an_object_that_is_replaced_while_it_is_loaded_is_left_out(
    project: Project, landing: ObjectPath, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan loads the bytes that were listed; the next update loads the object that replaced them."""
    put(landing, "x.csv", row("x", 0.9, 4))
    put(landing, "y.csv", row("y", 0.9, 4))
    fetch: Callable[..., str] = ObjectPath.download

    def late(self: ObjectPath, target: Path) -> str:
        if self.name == "x.csv":
            put(landing, "x.csv", row("later", 0.9, 4))
        return fetch(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(object_path.ObjectPath, "download", late)
        assert [(entry.file.path, entry.reason) for _, entry in project.update(1).left_out] == [("x.csv", "changed")]
    project.update(2)
    assert project.keys() == "later y"


def test_a_name_that_no_file_can_have_is_left_out(project: Project, landing: ObjectPath) -> None:
    """A store can have `a` beside `a/b`, and names that are too long for a file."""
    put(landing, "a", row("a", 0.9, 4))
    put(landing, "a/b.csv", row("b", 0.9, 4))
    put(landing, "n" * 300, row("n", 0.9, 4))
    left = {entry.file.path: entry for _, entry in project.update(1).left_out}
    assert {entry.reason for entry in left.values()} == {"name"}
    assert "n" * 300 in left
    assert len(left) == 2
    assert "give the object another name" in left["n" * 300].message


def test_only_names_behind_the_last_are_listed_where_that_is_declared(
    project: Project, landing: ObjectPath, monkeypatch: pytest.MonkeyPatch, set_limits: Callable[..., object]
) -> None:
    """Left-out files and files to reload are requested by name; another pattern lists everything once."""
    set_limits(files_per_plan=2)
    starts: list[str | None] = []
    listed = ObjectPath.tagged

    def seen(self: ObjectPath, after: str | None = None) -> object:
        starts.append(after)
        return listed(self, after)

    monkeypatch.setattr(ObjectPath, "tagged", seen)
    project.change(listing="after_last", files="*.csv*")
    for name in ("1.csv", "1/a.csv", "1-b.csv", "2.csv"):
        put(landing, name, row(name, 0.9, 9))
    (landing / "0.csv.gz").write_bytes(b"\x1f\x8b not gzip")
    (landing / "0.txt").write_bytes(csv(row("txt", 0.9, 9)).encode())
    for hour in (1, 2, 3, 4):
        project.update(hour)
    assert project.keys() == "1-b.csv 1.csv 1/a.csv 2.csv"
    assert starts[-1] == "2.csv"
    facts = landing_facts(load_catalog(project.directory), project.epoch, project.clock)[0]
    assert [entry.file.path for entry in facts.unreadable] == ["0.csv.gz"]

    put(landing, "0.csv", row("before", 0.9, 9))
    (landing / "0.csv.gz").write_bytes(gzip.compress(csv(row("mended", 0.9, 9)).encode()))
    put(landing, "3.csv", row("3.csv", 0.9, 9))
    project.update(5)
    assert project.keys() == "1-b.csv 1.csv 1/a.csv 2.csv 3.csv mended"
    project.change(files="*")
    project.update(6)
    project.update(7)
    assert project.keys() == "1-b.csv 1.csv 1/a.csv 2.csv 3.csv before mended txt"


def test_erasure_names_the_objects_that_hold_a_key(project: Project, landing: ObjectPath) -> None:
    """The erasure copies the objects one by one to search them."""
    put(landing, "x.csv", row("x", 0.9, 4))
    put(landing, "y.csv", row("y", 0.9, 4))
    project.update(1)
    _, receipt = project.updater().erase("a", ["x"])
    assert receipt is not None
    assert receipt.landing == (f"{landing}/x.csv",)


def test_a_bucket_that_is_not_there_is_named(project: Project) -> None:
    """The error names the key to correct."""
    project.change(landing="s3://there-is-none/in")
    with pytest.raises(LandingError, match=r"s3://there-is-none/in .*`landing`"):
        project.update(1)
