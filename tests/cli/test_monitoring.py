"""What a monitoring system asks: ``status --check``, ``metrics``, log lines as JSON."""

from __future__ import annotations

import json
import logging
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.cli.conftest import Place
from tests.serving.house import build, declare
from warehouse.cli.logs import JsonFormatter, configure
from warehouse.epochs.journal import epoch_path, write_record
from warehouse.epochs.lock import announce, writer_lock
from warehouse.epochs.points import Moment, Point, nobody
from warehouse.epochs.records import StepSeconds
from warehouse.operations.context import logged
from warehouse.time import HOUR, parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cli.conftest import Ended

NEWEST = parse_instant("2013-01-01T03:30:00Z")
STREAM: dict[str, object] = {
    "landing": "landing",
    "format": "json",
    "search_key": "name",
    "arrival": "to_timestamp(name)",
    "columns": {"name": "string", "value": "int", "weight": "double", "parts": "array<int>"},
}


def declare_bound(directory: Path, stale_after: str) -> None:
    """Write ``warehouse.toml`` with that bound."""
    streams: dict[str, object] = {"names": {**STREAM, "stale_after": stale_after}}
    declare(directory, streams=streams, health={"ignore": ["overdue", "rejected", "undeclared"]})


@pytest.fixture
def place(tmp_path: Path, invoke: Callable[..., Ended]) -> Iterator[Place]:
    """A project with a bound that is kept for decades."""
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "waits.json").write_text("{}\n")
    house = build(tmp_path / "data")
    last = house.epochs[-1]
    states = tuple(replace(state, newest=NEWEST if state.name == "names" else None) for state in last.tables)
    path = epoch_path(house.root, last.number)
    path.unlink()
    steps = (StepSeconds("tables/names: move-window", 1.5),)
    write_record(path, replace(last, tables=states, seconds=steps, planned_at=last.committed_at - 2_500_000))
    made = Place(tmp_path, house, invoke)
    declare_bound(tmp_path, "20000d")
    yield made
    configure([])


def test_status_shows_the_newest_row_and_whether_it_is_too_old(place: Place) -> None:
    """A bound of decades is kept; tables without one are neither."""
    ended = place.command("status", "--check", "-o", "json")
    assert ended.code == 0, ended.err
    rows = {row["table"]: row for row in json.loads(ended.out)}
    assert (rows["names"]["newest_data"], rows["names"]["stale"]) == ("2013-01-01T03:30:00Z", False)
    assert (rows["pairs"]["newest_data"], rows["pairs"]["stale"]) == (None, None)


def test_a_stale_table_makes_a_check_fail(place: Place) -> None:
    """Exit code 4 with the reason; without --check it is only told."""
    declare_bound(place.directory, "2h")
    ended = place.command("status", "--check")
    assert ended.code == 4
    assert "warning: names: is stale: the last update was committed at 2013-01-01T04:01:00Z" in ended.err
    assert place.command("status").code == 0


def test_a_table_for_people_has_the_verdict_and_a_line_for_each_table(place: Place) -> None:
    """The verdict, each concern with its level, an empty line, the tables: none of its lines is wider than 100 columns."""
    declare_bound(place.directory, "2h")
    ended = place.command("status", "-o", "table")
    verdict, concern, empty, *table = ended.out.splitlines()
    assert verdict.startswith("attention: 1 thing needs a person; epoch 2 of window time 2013-01-01T04:00:00Z, updated 2013")
    assert concern.startswith("  attention: names: is stale: the last update was committed at 2013-01-01T04:01:00Z")
    assert empty == ""
    assert max(map(len, table)) <= 100
    (names,) = [line for line in table if line.startswith("names")]
    assert names.rstrip().endswith("stale")
    assert "is stale" not in ended.err
    full = place.command("status", "-x", "-o", "table").out
    assert full.splitlines()[:3] == [verdict, concern, empty]
    assert "gone_from_disk_within" in full


def test_thirty_tables_take_one_screen(place: Place) -> None:
    """Each table has one line of at most 100 columns, however long its name is, and there are at most six other lines."""
    last = place.house.epochs[-1]
    names = next(state for state in last.tables if state.name == "names")
    states = []
    for number in range(30 - len(last.tables)):
        name = f"observations_of_the_station_number_{number}"
        shutil.copytree(place.house.root / "tables" / "names", place.house.root / "tables" / name)
        states.append(replace(names, name=name))
    path = epoch_path(place.house.root, last.number)
    path.unlink()
    write_record(path, replace(last, tables=(*last.tables, *states)))
    lines = place.command("status", "-o", "table").out.splitlines()
    assert sum("observations_of_the_st" in line for line in lines) == len(states)
    table = lines[lines.index("") + 1 :]
    assert (max(map(len, table)) <= 100, len(table) >= 32, len(lines) <= 30 + 6) == (True, True, True), table


def test_what_ends_next_is_what_the_rows_say(place: Place) -> None:
    """Each table has the live rows that expire with the next update, within six hours and within a day."""
    tau = parse_instant("2013-01-01T04:00:00Z")
    lines = place.command("status", "-v", "-o", "table").out.splitlines()
    for name in ("names", "pairs"):
        (line,) = [line for line in lines if line.startswith(f"{name} ")]
        ends = [row.exp for row in place.house[name].live(4)]
        numbers = [int(cell.split(" ")[0]) for cell in re.split(r"\s{2,}", line)[2:5]]
        assert numbers == [sum(end <= tau + hours * HOUR for end in ends) for hours in (1, 6, 24)], line


def test_health_is_one_record_for_programs(place: Place) -> None:
    """The record has the level and the concerns with their remedies; the exit code is 4, or 0 if all is well."""
    assert (place.command("health").code, place.command("health").out.partition(";")[0]) == (0, "ok")
    (place.directory / "landing" / "waits.json").unlink()
    (place.directory / "landing").rmdir()
    declare_bound(place.directory, "2h")
    ended = place.command("health", "-o", "json")
    record = json.loads(ended.out)
    assert (ended.code, record["health"], record["epoch"]) == (4, "broken", 2)
    assert [(entry["kind"], entry["level"]) for entry in record["concerns"]] == [("landing", "broken"), ("stale", "attention")]


def test_an_update_that_runs_is_named_with_its_step(place: Place) -> None:
    """While the lock is held; after an error, which leaves the record of the holder, nobody is at work."""
    now = parse_instant("2026-01-01T00:00:00Z")
    with suppress(ValueError), writer_lock(place.house.root, now):
        announce(place.house.root, "epoch 3, step 1: load names")
        (note,) = json.loads(place.command("health", "-o", "json").out)["notes"]
        assert note.startswith("an update is running since 2026-01-01T00:00:00Z, by process ")
        assert note.endswith(": epoch 3, step 1: load names")
        raise ValueError
    assert json.loads(place.command("health", "-o", "json").out)["notes"] == []


def test_metrics_are_text_for_prometheus(place: Place, tmp_path: Path) -> None:
    """Its own parser reads them; tables, the update, the landing directory are there."""
    ended = place.command("metrics")
    assert ended.code == 0, ended.err
    samples = {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels, reverse=True))): sample.value
        for family in text_string_to_metric_families(ended.out)
        for sample in family.samples
    }
    assert samples["stream_wh_epoch",] == 2
    assert samples["stream_wh_health",] == 0
    assert samples["stream_wh_window_time_seconds",] == parse_instant("2013-01-01T04:00:00Z") / 1e6
    assert samples["stream_wh_table_live_rows", "names"] == len(place.house["names"].live(4))
    assert samples["stream_wh_update_rows", "names", "inserted"] == 9
    assert samples["stream_wh_update_seconds",] == 2.5
    assert samples["stream_wh_update_step_seconds", "tables/names: move-window"] == 1.5
    assert samples["stream_wh_landing_files", "names", "waiting"] == 1
    assert samples["stream_wh_table_stale", "names"] == 0
    assert samples["stream_wh_table_newest_seconds", "names"] == NEWEST / 1e6
    file = tmp_path / "collector" / "stream_wh.prom"
    file.parent.mkdir()
    assert place.command("metrics", "--output-file", str(file)).code == 0
    assert file.read_text().startswith("# HELP stream_wh_")
    assert [path.name for path in file.parent.iterdir()] == ["stream_wh.prom"]


def test_log_lines_are_objects_with_a_time_a_level_and_a_message(place: Place) -> None:
    """What a command tells on standard error is JSON; data on standard output is as ever."""
    ended = place.invoke("--log-format", "json", "-C", str(place.directory), "tables", "-o", "csv")
    assert ended.code == 0
    assert ended.out.startswith("table,kind")
    (line,) = [json.loads(text) for text in ended.err.splitlines()]
    assert (line["level"], line["logger"]) == ("info", "stream-wh")
    assert "as of window time 2013-01-01T04:00:00Z" in line["message"]
    assert line["time"].endswith("Z")


def test_an_error_is_one_object_with_its_code(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the format comes from the environment, and when -o json asks for an object as well."""
    monkeypatch.setenv("STREAM_WH_LOG_FORMAT", "json")
    ended = place.command("rollback", "--to-epoch", "7", "-o", "json")
    assert ended.code == 2
    lines = [json.loads(text) for text in ended.err.splitlines()]
    assert [(line["level"], line["code"], line["exit_code"]) for line in lines if line["level"] == "error"] == [
        ("error", "rollback", 2)
    ]
    assert lines[0]["message"] == "locked"
    wrong = place.command("tables", "--nonsense")
    assert json.loads(wrong.err)["code"] == "usage"


def test_a_report_is_in_the_log_as_it_is_in_json(place: Place) -> None:
    """The record that -o json prints is a member of the line."""
    ended = place.invoke("--log-format=json", "-C", str(place.directory), "validate")
    last = json.loads(ended.err.splitlines()[-1])
    assert last["report"]["streams"] == ["names"]
    assert place.command("validate").err.startswith("warning:") or "ok" in place.command("validate").err


def test_each_moment_of_an_update_is_a_record(caplog: pytest.LogCaptureFixture) -> None:
    """The record has the epoch and the step as fields, and nothing of rows or settings."""
    observe = logged(nobody)
    with caplog.at_level(logging.INFO, "warehouse.updates"):
        observe(Moment(Point.LOCKED, -1))
        observe(Moment(Point.STEP_STARTED, 7, 2, "append to tables/a"))
        observe(Moment(Point.STEP_COMMITTED, 7, 2, "append to tables/a"))
    records = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert [line["message"] for line in records] == ["locked", "step committed: append to tables/a"]
    assert (records[1]["epoch"], records[1]["step"], records[1]["point"]) == (7, 2, "step committed")
    assert "epoch" not in records[0]
