"""The path of a new user through the real entry point, on the bundled example."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from deltalake import DeltaTable

from cli.main import run
from warehouse.updates.journal import newest_epoch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent
_PR_CAPBSET_DROP = 24
_WRITE_ANYWHERE = (0, 1, 3)  # chown, dac_override, fowner


def _in_process(project: Path, *arguments: str) -> int:
    """Run a verb that needs Spark in this process, where the session of the tests is active."""
    return run(["-C", str(project), *arguments])


def _without_write_permission() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _WRITE_ANYWHERE:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def _read(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a reading verb as its own process, one that may write nothing under the project, even when root runs it."""
    return subprocess.run(
        [sys.executable, "-m", "cli", "-C", str(project), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "JAVA_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=_without_write_permission,
    )


@pytest.fixture(scope="module")
def flights(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of the bundled example, updated at 11, 12 and 13 o'clock, then made read-only."""
    del spark
    project = tmp_path_factory.mktemp("flights") / "w"
    assert run(["init", str(project), "--example", "flights"]) == 0
    for hour in (11, 12, 13):
        assert _in_process(project, "update", "--at", f"2013-01-01T{hour}:00:00Z") == 0
    for path in [project, *project.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    return project


def test_a_probe_finds_the_aircraft_in_the_air(flights: Path) -> None:
    """N14228 left Newark at 10:17 UTC for 227 minutes, so it is live at 13:00."""
    done = _read(flights, "probe", "flights", "N14228", "-o", "json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [(row["tailnum"], row["departed_at"], row["landed_at"]) for row in rows] == [
        ("N14228", "2013-01-01T10:17:00Z", "2013-01-01T14:04:00Z"),
    ]
    assert "2013-01-01T13:00:00Z" in done.stderr


def test_every_reading_command_works_without_write_permission_and_without_java(flights: Path) -> None:
    """Reading needs read permission only: no file under the project appears or changes, no JVM is started."""
    before = {path: path.stat().st_mtime_ns for path in flights.rglob("*")}
    attempt = _read(flights, "rejected", "flights", "-o", "csv", "--output-file", str(flights / "out.csv"))
    assert attempt.returncode != 0, "the process could write after all, so this test would prove nothing"
    for arguments in (
        ["scan", "flights", "--limit", "3"],
        ["scan", "flights", "--where", "carrier = 'UA'", "--columns", "tailnum"],
        ["sql", "select carrier, count(*) from flights group by 1 order by 2 desc"],
        ["probe", "flights", "--from", "N1", "--to", "N2", "--explain"],
        ["probe", "flights", "N14228", "--as-of", "2013-01-01T12:00:00Z"],
        ["status"],
        ["status", "-v"],
        ["tables"],
        ["describe", "flights"],
        ["files", "flights"],
        ["history"],
        ["rejected", "flights"],
        ["validate"],
    ):
        done = _read(flights, *arguments)
        assert done.returncode == 0, (arguments, done.stderr)
    assert {path: path.stat().st_mtime_ns for path in flights.rglob("*")} == before


def test_any_delta_reader_finds_the_same_rows(flights: Path) -> None:
    """delta-rs and DuckDB on the plain table, filtered as the docs say, give what scan gives."""
    scanned = _read(flights, "scan", "flights", "-o", "json", "--columns", "tailnum,departed_at")
    ours = sorted((row["tailnum"], row["departed_at"]) for row in json.loads(scanned.stdout))
    epoch = newest_epoch(flights / "data")
    assert epoch is not None
    stored = DeltaTable(str(flights / "data" / "tables" / "flights")).to_pyarrow_table()
    assert stored.num_rows >= len(ours)
    theirs = duckdb.sql(
        "SELECT tailnum, strftime(departed_at AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ') FROM stored "
        f"WHERE epoch_us(_exp) > {epoch.window_time}",
    ).fetchall()
    assert sorted(theirs) == ours


def test_files_lists_what_another_engine_needs(flights: Path) -> None:
    """DuckDB over the listed files, with the listed filter, counts what scan counts."""
    listed = json.loads(_read(flights, "files", "flights", "-o", "json").stdout)
    assert listed
    names = [entry["path"] for entry in listed]
    assert all(Path(name).is_file() for name in names)
    condition = listed[0]["filter"]
    duckdb.sql("SET TimeZone = 'UTC'")
    count = duckdb.sql(f"SELECT count(*) FROM read_parquet({names!r}) WHERE {condition}").fetchall()[0][0]
    total = json.loads(_read(flights, "sql", "select count(*) as n from flights", "-o", "json").stdout)[0]["n"]
    assert count == total


def test_updating_again_at_the_same_time_does_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A second update at the same time exits 0 and writes no epoch; a plan before it and after it writes nothing."""
    del spark
    project = tmp_path / "w"
    assert run(["init", str(project), "--example", "flights"]) == 0
    at = ["--at", "2013-01-01T11:00:00Z"]
    assert _in_process(project, "plan", *at) == 0
    assert not (project / "data").exists()
    assert _in_process(project, "update", *at) == 0
    assert _in_process(project, "update", *at) == 0
    assert _in_process(project, "plan", *at) == 0
    assert [path.name for path in (project / "data" / "epochs").glob("*.epoch.json")] == [f"{0:020d}.epoch.json"]


def test_old_data_is_not_lost_by_a_plain_first_update(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A first update now, on rows that died years ago, loads nothing, exits 1 and says how to go on."""
    del spark
    project = tmp_path / "w"
    assert run(["init", str(project), "--example", "flights"]) == 0
    assert _in_process(project, "update") == 1
    assert "--from first --each" in capsys.readouterr().err
    assert list((project / "data" / "epochs").glob("*")) == []
