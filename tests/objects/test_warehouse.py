"""A warehouse in a store equals the warehouse that the same files and verbs make on a disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.objects.server import StoreProject
from tests.operations.projects import Project, csv, row, stream
from warehouse.catalog.declared_paths import root_path
from warehouse.catalog.problem_report import ProblemReport
from warehouse.checking.check import check
from warehouse.cli.main import run
from warehouse.epochs.journal import read_epoch
from warehouse.operations.unneeded_files import GRACE
from warehouse.operations.update import UpdateOptions
from warehouse.project import Warehouse
from warehouse.serving import Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.objects.path import ObjectPath

VIEWS: dict[str, dict[str, object]] = {
    "pairs": {"sql": "SELECT a.k, a.e FROM a JOIN b ON a.k = b.k", "search_key": "k"},
    "counts": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"},
}
STREAMS = {"a": stream(on_expiry="archive"), "b": stream(landing="landing/b")}
HOURS = (2, 5)


def landed(project: Project) -> None:
    """Land early and late rows, short-lived and long-lived rows, and a line that is no row."""
    for hour in (0, 1, 2, 3, 4):
        lines = [row(f"{key}{hour}", hour + 0.5, hour + 0.5 + length) for key, length in (("x", 0.4), ("y", 1.5), ("z", 4))]
        project.land(f"{hour}.csv", csv(*lines, row("same", hour + 0.2, hour + 3), row("later", hour + 1.5, hour + 3), "bad,,"))
        project.land(f"{hour}.csv", csv(row("same", hour + 0.1, hour + 2), row(f"z{hour}", hour, hour + 3)), landing="landing/b")


def told(reader: Reader, since: int) -> dict[str, object]:
    """Return all answers of a reader."""
    answers: dict[str, object] = {}
    for table in ("a", "b", "pairs", "counts", "a_archive"):
        answers[table] = sorted(map(repr, reader.scan(table, system_columns=True).all()))
        answers[f"{table} changes"] = sorted(map(repr, reader.changes(table, since=since).all()))
        answers[f"{table} same"] = sorted(map(repr, reader.probe(table, ["same"]).all()))
        answers[f"{table} absent"] = reader.probe(table, ["absent"]).all()
        answers[f"{table} again"] = sorted(map(repr, reader.probe(table, ["z3"]).all()))
    answers["sql"] = reader.sql("SELECT count(*), max(_exp) FROM system.a").all()
    answers["rejected"] = sorted(map(repr, reader.sql("SELECT file, record, reason FROM _rejected").all()))
    return answers


def test_it_holds_what_a_local_one_holds(
    tmp_path: Path, bucket: ObjectPath, spark: SparkSession, set_limits: Callable[..., object]
) -> None:
    """Streams, views, archives, waiting and invalid rows, probes, scans, SQL and changes: all answers are the same.

    Logs are summed up where an epoch names the version, never above. And so after going back, and after what fell out of
    `retain` was deleted.
    """
    set_limits(checkpoint_interval=2)
    stored = StoreProject(tmp_path / "stored", spark, dict(STREAMS), {"retain": "1h"}, views=VIEWS, place=bucket / "house")
    local = Project(tmp_path / "local", spark, dict(STREAMS), {"retain": "1h"}, views=VIEWS)
    for project in (stored, local):
        landed(project)
        for hours in HOURS:
            project.update(hours)
        project.updater().rollback(0)
        project.update(6)
    log = stored.root / "tables" / "a" / "_delta_log"
    sums = [int(path.name.split(".")[0]) for path in log.rglob("*.checkpoint.parquet")]
    assert sums
    states = [read_epoch(stored.root, number).table("a") for number in stored.numbers]
    assert set(sums) <= {state.version for state in states if state}
    in_memory = Reader.open(stored.root, hot=["a", "b", "pairs", "counts", "a_archive"])
    with Reader.open(stored.root) as ours, Reader.open(local.root) as theirs, in_memory:
        assert told(ours, 2) == told(theirs, 2) == told(in_memory, 2)
    assert [finding for finding in check(stored.root).findings if finding.severity == "fault"] == []
    before = {path.key for path in stored.root.rglob("*.parquet")}
    stored.clock += 2 * 3_600_000_000 + 10 * GRACE
    report = stored.updater().vacuum()
    after = {path.key for path in stored.root.rglob("*.parquet")}
    assert (report.epochs, after < before) == (len(HOURS) + 1, True)
    with Reader.open(stored.root) as ours, Reader.open(local.root) as theirs:
        assert sorted(map(repr, ours.scan("a").all())) == sorted(map(repr, theirs.scan("a").all()))
    assert [finding for finding in check(stored.root).findings if finding.severity == "fault"] == []


def test_verbs_and_commands_work(project: StoreProject, tmp_path: Path) -> None:
    """The address opens it, the next probe sees the next epoch, and errors say what to do instead."""
    landed(project)
    with Warehouse.open(project.directory) as house:
        house.update("2024-01-01T01:00:00Z", spark=project.spark)
        assert {record[0] for record in house.probe("a", ["same", "y0"]).all()} == {"same", "y0"}
        house.update("2024-01-01T02:00:00Z", spark=project.spark)
        assert {record[0] for record in house.probe("a", ["y1"]).all()} == {"y1"}
    environment = {**os.environ, "STREAM_WH_CACHE": str(tmp_path / "cache")}

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        whole = [sys.executable, "-m", "warehouse.cli.main", "-C", str(project.directory), *arguments]
        return subprocess.run(whole, capture_output=True, text=True, check=False, env=environment)

    def here(*arguments: str) -> tuple[int, str, str]:
        with CliRunner().isolation() as (out, err, _):
            code = run(["-C", str(project.directory), *arguments])
            sys.stdout.flush()
            sys.stderr.flush()
            return code, out.getvalue().decode(), err.getvalue().decode()

    shown = command("probe", "a", "same", "-o", "json")
    assert [record["k"] for record in json.loads(shown.stdout)] == ["same", "same"], shown.stderr
    assert "with conditional puts" in command("doctor").stdout
    assert f"{project.root}/tables/a/staged-" in here("files", "a", "-o", "json")[1]
    for command_line in (("status",), ("history",), ("describe", "a"), ("check",), ("metrics",)):
        code, _, errors = here(*command_line)
        assert code == 0, (command_line, errors)
    code, _, errors = here("connect", "duckdb", "a")
    assert (code, "stream-wh files a" in errors) == (2, True)


@pytest.mark.parametrize("text", ["s3://bucket/%41", "s3://bucket/a?b", "s3://bucket/../x", "ftp://x/y", "s3://"])
def test_an_address_that_means_nothing_is_refused(text: str, tmp_path: Path) -> None:
    """Addresses must be plain names; the error names an unknown scheme."""
    report = ProblemReport("warehouse.toml")
    assert root_path(text, tmp_path, "warehouse.root", report) is None
    assert len(report.problems) == 1


def test_a_dry_run_writes_nothing(project: StoreProject) -> None:
    """A dry run plans without a claim."""
    landed(project)
    plan, _ = project.updater().plan(UpdateOptions(at=project.clock, allow_dead=True))
    assert plan is not None
    assert list(project.root.rglob("*")) == []
