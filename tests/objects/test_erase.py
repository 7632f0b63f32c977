"""Erasing in a store: no object with an erased row is left, and the receipt names what the store may keep besides objects."""

from __future__ import annotations

import io
import os
import re
import shutil
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.objects.server import StoreProject, made_bucket
from tests.operations.projects import StoppedError, at, csv, row, stop_at, stream
from warehouse.checking.check import check
from warehouse.cli.erasure import erasure_report
from warehouse.epochs.journal import plan_path, read_record
from warehouse.epochs.points import Point
from warehouse.errors import StoreBusyError, UsageError
from warehouse.operations.erasure.overdue import dead_since
from warehouse.planning.plan_record import Plan
from warehouse.planning.steps import EraseRows
from warehouse.serving import Reader
from warehouse.storage import bucket as buckets
from warehouse.storage.copies import copies_of
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.objects.path import ObjectPath

VIEWS: dict[str, dict[str, object]] = {
    "counts": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"},
    "early": {"sql": "SELECT k, b FROM a", "search_key": "k"},
}


def asked(method: str, path: str, body: str = "") -> str:
    """Send a request to the server without signing it, and return the answer."""
    connection = HTTPConnection(os.environ["AWS_ENDPOINT_URL"].removeprefix("http://"), timeout=10)
    connection.request(method, path, body=body)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    assert answer.status < 300, text
    return text


def versioning(root: ObjectPath, status: str) -> None:
    """Let a bucket keep versions, or suspend versioning."""
    asked("PUT", f"/{root.parts[1]}?versioning", f"<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>")


def holding(root: ObjectPath, key: str) -> list[str]:
    """Return every object under a root that shows a key: rows and statistics of Parquet files, all other bytes."""
    paths = []
    for path in root.rglob("*"):
        content = path.read_bytes()
        shown = content.decode(errors="replace")
        if path.suffix == ".parquet":
            file = pq.ParquetFile(io.BytesIO(content))
            shown = repr(file.read().to_pylist()) + repr(file.metadata.to_dict())
        if key in shown:
            paths.append(str(path))
    return paths


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> StoreProject:
    """A warehouse with a key in live, dead, archived, deferred and invalid rows, in two epochs and in views."""
    streams, root = {"a": stream(on_expiry="archive")}, made_bucket("begun") / "house"
    project = StoreProject(tmp_path_factory.mktemp("begun") / "project", spark, streams, views=VIEWS, place=root)
    spans = ((0.2, 0.9), (0.5, 1.5), (0.5, 4.2))
    project.land("1.csv", csv(*(row("vanished", *span) for span in spans), row("kept", 0.5, 4.4)))
    project.update(1)
    lines = (row("vanished", 1.2, 5.1), row("vanished", 6.5, 8), row("vanished", 1.5, "?"), row("kept", 1.5, 5))
    project.land("2.csv", csv(*lines))
    project.update(3)
    return project


@pytest.fixture
def loaded(begun: StoreProject, bucket: ObjectPath, tmp_path: Path) -> StoreProject:
    """Return a copy of the warehouse for each test."""
    for path in begun.root.rglob("*"):
        (bucket / path.key).write_bytes(path.read_bytes())
    shutil.copytree(begun.directory, tmp_path / "project")
    return StoreProject(tmp_path / "project", begun.spark, begun.streams, views=VIEWS, place=bucket / "house")


def test_no_object_holds_an_erased_key(loaded: StoreProject) -> None:
    """Nor does a local copy; unfinished uploads under the root are aborted, other uploads stay; updates continue."""
    root = loaded.root
    name = root.parts[1]
    for key in ("house/tables/a/part", "housekeeping/part"):
        asked("POST", f"/{name}/{key}?uploads")
    with Reader.open(root) as reader:
        assert len(reader.probe("a", ["vanished"]).all()) == 2
    copies = copies_of(root)
    assert copies is not None
    assert any(path.is_file() for path in copies.directory.rglob("*"))
    assert len(holding(root, "vanished")) > 8
    for file in ("1.csv", "2.csv"):
        (loaded.directory / "landing/a" / file).unlink()
    outlook, receipt = loaded.updater().erase("a", ["vanished"])
    assert receipt is not None
    assert holding(root, "vanished") == []
    assert receipt.store is not None
    assert (receipt.store.former_versions, receipt.store.uploads_aborted, receipt.store.unproved) == ("none", 1, ())
    assert receipt.store.copies_removed > 0
    assert not copies.directory.exists()
    assert (receipt.whole, erasure_report(root, outlook, receipt).exit_code, receipt.proof.files > 10) == (True, 0, True)
    assert re.findall("<Key>(.*)</Key>", asked("GET", f"/{name}?uploads")) == ["housekeeping/part"]
    loaded.land("3.csv", csv(row("new", 3.5, 8)))
    loaded.update(4)
    assert (loaded.keys(), loaded.keys("counts"), loaded.keys("early")) == ("kept kept new", "kept new", "kept kept new")
    assert [finding for finding in check(root).findings if finding.severity == "fault"] == []


def test_a_killed_erasure_is_completed_by_the_next_update(loaded: StoreProject) -> None:
    """Wherever the erasure was killed; the report names the landing files that hold the key."""
    with pytest.raises(StoppedError):
        loaded.updater(stop_at(Point.SWEPT)).erase("a", ["vanished"])
    assert holding(loaded.root, "vanished") != []
    for file in ("1.csv", "2.csv"):
        (loaded.directory / "landing/a" / file).unlink()
    loaded.update(3)
    assert holding(loaded.root, "vanished") == []
    assert loaded.keys() == "kept kept"


def test_a_bucket_that_keeps_versions_is_refused(loaded: StoreProject) -> None:
    """A bucket with suspended versioning is refused as well: it still has earlier versions. Nothing is written."""
    for status in ("Enabled", "Suspended"):
        versioning(loaded.root, status)
        before = loaded.numbers
        with pytest.raises(UsageError, match="keeps former versions"):
            loaded.updater().erase("a", ["vanished"])
        assert loaded.numbers == before
        assert len(loaded.keys().split()) == 4


def test_what_credentials_do_not_permit_is_not_claimed(project: StoreProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are erased, the receipt names the missing permissions, and the exit code is 4."""
    monkeypatch.setattr(buckets, "former_versions", lambda *_: "unknown")
    monkeypatch.setattr(buckets, "abort_uploads", lambda *_: None)
    project.land("1.csv", csv(row("vanished", 0.5, 4), row("kept", 0.5, 4)))
    project.update(1)
    (project.directory / "landing/a/1.csv").unlink()
    outlook, receipt = project.updater().erase("a", ["vanished"])
    assert (project.keys(), holding(project.root, "vanished")) == ("kept", [])
    assert receipt is not None
    assert receipt.store is not None
    denied = ("s3:GetBucketVersioning", "s3:AbortMultipartUpload")
    assert [action in text for action, text in zip(denied, receipt.store.unproved, strict=True)] == [True, True]
    report = erasure_report(project.root, outlook, receipt)
    assert (receipt.whole, report.exit_code, "not proved" in " ".join(report.lines)) == (False, 4, True)


def test_only_a_refusal_means_that_it_is_not_permitted(bucket: ObjectPath, spark: SparkSession) -> None:
    """A bucket that does not exist is a failure, not a missing permission."""
    assert buckets.former_versions(spark, bucket) == "none"
    with pytest.raises(StoreBusyError, match="NoSuchBucket"):
        buckets.former_versions(spark, bucket.parent / "nothere")
    with pytest.raises(StoreBusyError, match="NoSuchBucket"):
        buckets.abort_uploads(spark, bucket.parent / "nothere" / "x")


def test_dead_rows_leave_in_time_or_at_once(tmp_path: Path, bucket: ObjectPath, spark: SparkSession) -> None:
    """With `erase_within` an update rewrites files whose dead rows are due; `--expired` leaves no dead row."""
    layout = {"grid": [2, 1], "expiry_block": 4}
    project = StoreProject(tmp_path / "project", spark, {"a": stream(layout=layout)}, {"retain": "1h"}, place=bucket / "house")
    ages, steps = [], []
    for hour in range(1, 8):
        project.clock = at(hour + 1 / 12)
        project.land(f"{hour}.csv", csv(row(f"s{hour}", hour - 0.4, hour + 0.1), row(f"l{hour}", hour - 0.4, hour + 3)))
        if hour == 4:
            project.change(erase_within="4h", layout=None)
        project.update(hour)
        steps += read_record(plan_path(project.root, project.numbers[-1]), Plan).steps
        ages.append(max([0, *(project.clock - moment for moment in dead_since(project.root).values())]) / HOUR)
    assert max(ages[5:]) <= 4
    assert any(isinstance(step, EraseRows) for step in steps)
    assert dead_since(project.root) != {}
    _, receipt = project.updater().erase(None, None)
    assert receipt is not None
    assert (dead_since(project.root), receipt.whole) == ({}, True)
    assert project.keys() == "l5 l6 l7 s7"
