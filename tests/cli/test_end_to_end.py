"""The path of a new user through the real entry point, on the bundled example, its views included."""

from __future__ import annotations

import csv
import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable

from tests.docs.tutorial import copied
from warehouse.cli.main import run
from warehouse.epochs.journal import newest_epoch
from warehouse.sample_data.make_expected import EXPECTED, QUERIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


IN_TURN = """
import json, sys
from warehouse.cli.main import run
for arguments in json.loads(sys.argv[1]):
    code = run(arguments)
    if code:
        sys.exit(f"{arguments} ended with {code}")
"""


def _isolated(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python as its own process, one that may write nothing under the project, even when root runs it."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "JAVA_HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=_without_write_permission,
    )


def _read(project: Path, *arguments: str) -> str:
    """Return what a reading verb prints, in this process."""
    with CliRunner().isolation() as (out, err, _):
        code = _in_process(project, *arguments)
        sys.stdout.flush()
        assert code == 0, err.getvalue().decode()
        return out.getvalue().decode()


@pytest.fixture(scope="module")
def flights(tutorial: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tutorial's project: the bundled example, updated at 11, 12 and 18 o'clock; here made read-only."""
    project = copied(tutorial, tmp_path_factory.mktemp("flights") / "w")
    for path in [project, *project.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    return project


def test_a_probe_finds_the_aircraft_in_the_air(flights: Path) -> None:
    """N14228 left Newark at 10:17 UTC for 227 minutes, so it is live at 12:00."""
    probe = ["probe", "flights", "N14228", "-o", "json", "--as-of", "2013-01-01T12:00:00Z"]
    process = _isolated("-m", "warehouse.cli", "-C", str(flights), *probe)
    assert process.returncode == 0, process.stderr
    rows = json.loads(process.stdout)
    assert [(row["tailnum"], row["departed_at"], row["landed_at"]) for row in rows] == [
        ("N14228", "2013-01-01T10:17:00Z", "2013-01-01T14:04:00Z"),
    ]
    assert "2013-01-01T12:00:00Z" in process.stderr


def test_every_reading_command_works_without_write_permission_and_without_java(flights: Path) -> None:
    """Reading needs read permission only: no file under the project appears or changes, no JVM is started."""
    before = {path: path.stat().st_mtime_ns for path in flights.rglob("*")}
    written = ["rejected", "flights", "-o", "csv", "--output-file", str(flights / "out.csv")]
    attempt = _isolated("-m", "warehouse.cli", "-C", str(flights), *written)
    assert attempt.returncode != 0, "the process could write after all, so this test would prove nothing"
    commands = (
        ["scan", "flights", "--limit", "3"],
        ["scan", "flights", "--where", "carrier = 'UA'", "--columns", "tailnum"],
        ["sql", "select carrier, count(*) from flights group by 1 order by 2 desc"],
        ["probe", "flights", "--from", "N1", "--to", "N2", "--explain"],
        ["probe", "flights", "N14228", "--as-of", "2013-01-01T12:00:00Z"],
        ["status"],
        ["status", "-v"],
        ["tables"],
        ["describe", "flights"],
        ["describe", "with_weather"],
        ["describe", "planes"],
        ["files", "flights"],
        ["history"],
        ["rejected", "flights"],
        ["rejected", "planes"],
        ["restored", "with_weather"],
        ["explain", "with_weather"],
        ["validate"],
    )
    process = _isolated("-c", IN_TURN, json.dumps([["-C", str(flights), *arguments] for arguments in commands]))
    assert process.returncode == 0, process.stderr
    assert {path: path.stat().st_mtime_ns for path in flights.rglob("*")} == before


def _answer(project: Path, hour: int, *arguments: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = json.loads(_read(project, *arguments, "-o", "json", "--as-of", f"2013-01-01T{hour}:00:00Z"))
    return rows


def _bag(rows: Iterable[Mapping[str, object]], names: Sequence[str]) -> list[tuple[object, ...]]:
    """Return rows as a sorted list of values, numbers as numbers."""
    return sorted(tuple(_plain(row[name]) for name in names) for row in rows)


def _plain(value: object) -> object:
    try:
        return round(float(str(value)), 9)
    except ValueError:
        return str(value)


@pytest.mark.parametrize("hour", [12, 18])
@pytest.mark.parametrize("query", [query.__name__ for query in QUERIES if query.__name__ != "without_rain"])
def test_views_answer_as_their_queries_do_from_scratch(flights: Path, query: str, hour: int) -> None:
    """At each window time a view has the rows that loops and if statements find in the landing files.

    12:00Z was moved to by an hour, 18:00Z by an update that caught up with six; at the latter the wind is strong at two
    of the three airports.
    """
    with (EXPECTED / f"2013-01-01T{hour}" / f"{query}.csv").open(newline="") as file:
        expected = list(csv.DictReader(file))
    names = tuple(expected[0])
    rows = _answer(flights, hour, "scan", query, "--columns", ",".join(names))
    assert _bag(rows, names) == _bag(expected, names)


def test_a_flight_meets_the_plane_that_was_known_at_departure(flights: Path) -> None:
    """The as-of lookup gives the rows of a join of the landing files: every plane was known before the day began."""
    source = "read_csv('{0}/*.csv.gz', header = true, all_varchar = true)"
    planes, departures = (source.format(flights / "landing" / name) for name in ("planes", "flights"))
    at = "2013-01-01T18:00:00Z"
    expected = duckdb.connect().sql(
        f"SELECT f.tailnum, f.flight, p.manufacturer, p.model, p.seats FROM {departures} f JOIN {planes} p USING (tailnum) "
        f"WHERE f.departed_at <= '{at}' AND f.landed_at > '{at}'"
    )
    names = ("tailnum", "flight", "manufacturer", "model", "seats")
    rows = [dict(zip(names, row, strict=True)) for row in expected.fetchall()]
    assert len(rows) > 100
    assert _bag(_answer(flights, 18, "scan", "with_plane"), names) == _bag(rows, names)


def test_short_lived_results_are_those_that_no_update_saw(flights: Path) -> None:
    """`restored` has exactly the pairs of flight and weather that began and ended between two updates."""
    rows = json.loads(_read(flights, "restored", "with_weather", "-o", "json"))
    source = "read_csv('{0}/*.csv.gz', header = true, all_varchar = true)"
    weather, departures = (source.format(flights / "landing" / name) for name in ("weather", "flights"))
    expected = duckdb.connect().sql(
        "SELECT tailnum, flight, began, ended FROM (SELECT f.tailnum, f.flight, greatest(f.departed_at, w.observed_at) AS began, "
        f"least(f.landed_at, w.valid_until) AS ended FROM {departures} f JOIN {weather} w ON f.origin = w.origin "
        "WHERE f.landed_at IS NOT NULL) WHERE began < ended "
        "AND ((began > '2013-01-01T12:00:00Z' AND ended <= '2013-01-01T18:00:00Z') "
        "OR (began > '2013-01-01T11:00:00Z' AND ended <= '2013-01-01T12:00:00Z'))"
    ).fetchall()
    assert len(expected) > 100
    assert _bag(rows, ("tailnum", "flight", "_ts", "_exp")) == sorted(tuple(map(_plain, row)) for row in expected)
    assert {row["_epoch"] for row in rows} == {1, 2}


def test_explain_tells_the_plan_and_what_was_measured(flights: Path) -> None:
    """The command shows labels and structures of each view, the share of short-lived results and the sizes of a join's inputs."""
    joined = json.loads(_read(flights, "explain", "with_weather", "-o", "json"))
    assert [(line["operator"], line["state_label"], line["structure"]) for line in joined["plan"]] == [
        ("join", "WK", "doubly partitioned"),
        ("scan", "WK", "doubly partitioned"),
        ("scan", "WK", "doubly partitioned"),
    ]
    counted = joined["short_lived"]["counted"]
    assert counted["short_lived"] == len(json.loads(_read(flights, "restored", "with_weather", "-o", "json")))
    (order,) = joined["join_orders"]
    live = {name: len(_answer(flights, 18, "scan", name)) for name in ("flights", "weather")}
    assert {join_input["name"].split()[0]: join_input["rows"] for join_input in order["inputs"]} == live
    shown = _read(flights, "explain", "without_strong_wind")
    assert shown.splitlines()[0].endswith("  rows can leave early; without_strong_wind: buckets by key")


def test_any_delta_reader_finds_the_same_rows(flights: Path) -> None:
    """delta-rs and DuckDB on the plain table, filtered as the docs say, give what scan gives."""
    scanned = _read(flights, "scan", "flights", "-o", "json", "--columns", "tailnum,departed_at")
    view_rows = sorted((row["tailnum"], row["departed_at"]) for row in json.loads(scanned))
    epoch = newest_epoch(flights / "data")
    assert epoch is not None
    stored = DeltaTable(str(flights / "data" / "tables" / "flights")).to_pyarrow_table()
    assert stored.num_rows >= len(view_rows)
    query_rows = duckdb.connect().sql(
        "SELECT tailnum, strftime(departed_at AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ') FROM stored "
        f"WHERE epoch_us(_exp) > {epoch.window_time}",
    ).fetchall()
    assert sorted(query_rows) == view_rows


def test_files_lists_what_another_engine_needs(flights: Path) -> None:
    """DuckDB over the listed files, with the listed filter, counts what scan counts."""
    listed = json.loads(_read(flights, "files", "flights", "-o", "json"))
    assert listed
    names = [entry["path"] for entry in listed]
    assert all(Path(name).is_file() for name in names)
    condition = listed[0]["filter"]
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    count = connection.sql(f"SELECT count(*) FROM read_parquet({names!r}) WHERE {condition}").fetchall()[0][0]
    total = json.loads(_read(flights, "sql", "select count(*) as n from flights", "-o", "json"))[0]["n"]
    assert count == total


def test_a_plan_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    """A plan of the first update, with all views to build, leaves no directory behind."""
    del spark
    project = tmp_path / "w"
    assert run(["init", str(project), "--example", "flights"]) == 0
    assert _in_process(project, "plan", "--at", "2013-01-01T11:00:00Z") == 0
    assert not (project / "data").exists()


def test_updating_again_at_the_same_time_does_nothing(flights: Path, tmp_path: Path) -> None:
    """A second update at the same time exits 0 and writes no epoch, and so does a plan; views and relations included."""
    project = tmp_path / "w"
    shutil.copytree(flights, project)
    for path in [project, *project.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    at = ["--at", "2013-01-01T18:00:00Z"]
    before = sorted(path.name for path in (project / "data" / "epochs").glob("*.json"))
    assert _in_process(project, "update", *at) == 0
    assert _in_process(project, "plan", *at) == 0
    assert sorted(path.name for path in (project / "data" / "epochs").glob("*.json")) == before


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
