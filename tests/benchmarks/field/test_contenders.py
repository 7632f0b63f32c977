"""Every contender that is installed here answers as the oracle does, at a tiny size; the others say what they lack."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.field import run
from benchmarks.field.hosts import Here
from benchmarks.field.job import Job
from benchmarks.field.page import page
from benchmarks.field.results import Results
from benchmarks.field.roster import ROSTER, lake_is_ready, worker_for
from benchmarks.field.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.field.hosts import Host
    from benchmarks.field.roster import Entry

JOB = Job(rows=2_000, keys=100, updates=2, periods=8)
ON_SPARK = [entry for entry in ROSTER if entry.group == "spark" and entry.name not in ("rebuild", "r-ins", "d-exp")]
"""The sheet's own data goes through all techniques elsewhere: one of each kind is enough here."""

ALONE = [entry for entry in ROSTER if entry.group != "spark"]
FACTS = {"machine": {"processor": "a", "cores": 2, "memory": "b", "system": "c"}, "versions": {}, "load": 0.0, "started": "now"}


def played(place: Path, entries: list[Entry], job: Job = JOB) -> Results:
    """Run contenders in this process; DuckLake in its own environment, where a run has made that."""
    results = Results(place / "field.jsonl", job, FACTS)

    def host_for(entry: Entry) -> Host:
        return worker_for(entry, place, 60) if entry.lake and lake_is_ready() else Here()

    Run(job, entries, place / "work", results, host_for, lambda _: None).play()
    return results


@pytest.fixture
def open_path() -> Iterator[Path]:
    """Return a directory that every user may enter: PostgreSQL does not run as root, whose temporary paths are closed."""
    with tempfile.TemporaryDirectory(prefix="field-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


@pytest.mark.parametrize("entry", ALONE, ids=lambda entry: entry.name)
def test_without_spark(open_path: Path, entry: Entry) -> None:
    """All its answers after each update are right, and its files hold at least the live rows."""
    standing = played(open_path, [entry]).of(entry.name)
    if standing.failed is not None and standing.failed["missing"]:
        pytest.skip(standing.failed["reason"])
    assert standing.failed is None
    assert set(standing.done) == set(JOB.slots)
    for line in standing.done.values():
        assert line["stored"] >= line["live"] > 0
        assert line["bytes"] > line["live"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("entry", ON_SPARK, ids=lambda entry: entry.name)
def test_on_spark(tmp_path: Path, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    """So are the warehouse's answers by several techniques, and of Delta tables written by Spark; the page has its line.

    Each key is probed once: Spark takes long for a probe.
    """
    monkeypatch.setattr(run, "_REPEAT", 1)
    job = Job(rows=1_000, keys=100, updates=1, periods=8)
    results = played(tmp_path, [entry], job)
    assert results.of(entry.name).failed is None
    assert set(results.of(entry.name).done) == set(job.slots)
    assert f"\n| {entry.title} " in page(job, results, ROSTER)
