"""The operators, without Spark: what they run, what they make of its end, what they tell."""

from __future__ import annotations

import json
import logging
import signal
import threading
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from airflow._shared.timezones.timezone import coerce_datetime
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.execution_time.context import OutletEventAccessors

from airflow_stream_wh import (
    StreamWarehouseCheckOperator,
    StreamWarehouseUpdateOperator,
    StreamWarehouseVacuumOperator,
    table_asset,
)
from airflow_stream_wh.operators import StreamWarehouseOperator

from .fake import NOTHING, Fake, moved

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

AT = datetime(2024, 1, 1, 5, tzinfo=UTC)


class Log(logging.Handler):
    """Keeps what an operator logs."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record)

    def text(self, level: int) -> str:
        """Return the messages of a level."""
        return "\n".join(record.getMessage() for record in self.records if record.levelno == level)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    """Return an empty handler that collects the log records of operators."""
    handler = Log()
    logger = logging.getLogger("tests.airflow.task")
    logger.setLevel(logging.INFO)
    monkeypatch.setattr(logger, "handlers", [handler])
    monkeypatch.setattr(StreamWarehouseOperator, "log", logger)
    return handler


def context(**dates: object) -> Any:
    """Return as much of a running task's context as operators look at, its times being pendulum's as Airflow's are."""
    return {"outlet_events": OutletEventAccessors(), "data_interval_end": coerce_datetime(AT), **dates}


def update(fake: Fake, **options: Any) -> StreamWarehouseUpdateOperator:
    """Return an update of the project."""
    return StreamWarehouseUpdateOperator(
        task_id="update", project=str(fake.project), executable=fake.executable, **options
    )


def events(found: Mapping[str, Any], *tables: str) -> list[Any]:
    """Return what the events of tables carry."""
    return [found["outlet_events"][table_asset("garage", table)].extra for table in tables]


def test_an_update_runs_the_command_and_tells_where_the_tables_stand(fake: Fake) -> None:
    """There is one asset for each stream, relation and view; its event has window time, epoch and rows."""
    fake.answers("update", moved(7, "2024-01-01T05:00:00Z", cars=4, parked=2))
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40, owners=3, parked=20)
    running = context()
    operator = update(fake)
    assert [asset.uri for asset in operator.outlets] == [f"x-stream-wh://garage/{name}" for name in ("cars", "owners", "parked")]
    result = operator.execute(running)
    assert fake.calls[0] == ["update", "--at", "2024-01-01T05:00:00Z", "-o", "json"]
    where = {"window_time": "2024-01-01T05:00:00Z", "epoch": 7}
    expected = [
        {**where, "rows": 40, "inserted": 4, "expired": 1},
        {**where, "rows": 3, "inserted": 0, "expired": 0},
        {**where, "rows": 20, "inserted": 2, "expired": 1},
    ]
    assert events(running, "cars", "owners", "parked") == expected
    tables = dict(zip(("cars", "owners", "parked"), expected, strict=True))
    assert result == {**where, "moved": True, "health": "ok", "tables": tables}


def test_options_are_those_of_the_command(fake: Fake) -> None:
    """And the argument `at` comes before the run's dates."""
    fake.answers("update", NOTHING)
    fake.empty()
    operator = update(fake, at="2024-01-01T02:00:00Z", each=True, start="first", allow_dead=True, future=True)
    operator.execute(context())
    assert fake.calls[0][1:3] == ["--at", "2024-01-01T02:00:00Z"]
    assert fake.calls[0][5:] == ["--each", "--allow-dead", "--future", "--from", "first"]


def test_a_run_without_a_date_fails_at_once_and_runs_nothing(fake: Fake) -> None:
    """The wall clock is never asked."""
    with pytest.raises(AirflowFailException, match="no update time"):
        update(fake).execute(context(data_interval_end=None, logical_date=None))
    assert fake.calls == []


@pytest.mark.parametrize(
    ("code", "name", "retried"),
    [(3, "lock_held", True), (3, "spark_lost", True), (130, "cancelled", True), (2, "usage", False), (1, "landing", False)],
)
def test_errors_that_pass_are_retried_and_others_fail_the_task(fake: Fake, code: int, name: str, *, retried: bool) -> None:
    """With the command's own message."""
    fake.fails("update", code, name, f"because of {name}", retry=retried)
    with pytest.raises(AirflowException, match=f"because of {name}") as raised:
        update(fake).execute(context())
    assert isinstance(raised.value, AirflowFailException) is not retried


def test_a_killed_update_is_retried(fake: Fake) -> None:
    """Out of memory, for instance."""
    fake.answers("update", code=-9)
    with pytest.raises(AirflowException, match="killed by signal 9") as raised:
        update(fake).execute(context())
    assert not isinstance(raised.value, AirflowFailException)


def test_an_executable_that_is_not_there_fails_at_once(fake: Fake) -> None:
    """No retry would find it."""
    operator = update(fake)
    operator.executable = "/nowhere/stream-wh"
    with pytest.raises(AirflowFailException, match="/nowhere/stream-wh cannot be started"):
        operator.execute(context())


def test_files_that_need_a_person_fail_the_task_or_warn(fake: Fake, log: Log) -> None:
    """The epoch is committed either way; on request the task fails, so that somebody looks."""
    problems = [{"stream": "cars", "file": "bad.csv", "reason": "unreadable", "message": "truncated"}]
    fake.answers("update", {**moved(7, "2024-01-01T05:00:00Z", cars=4), "problems": problems}, code=1)
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40)
    with pytest.raises(AirflowFailException, match=r"committed, but 1 need a person: cars: bad.csv: truncated"):
        update(fake, on_problems="fail").execute(context())
    for answer in ("warn", "broken"):
        operator = update(fake, on_problems=answer, tables=["cars"])
        running = context()
        assert operator.execute(running)["moved"]
        assert "bad.csv" in log.text(logging.WARNING)
        assert events(running, "cars")[0]["rows"] == 40


def test_the_task_fails_where_the_warehouse_is_broken(fake: Fake, log: Log) -> None:
    """By default for that alone: what needs attention is a warning, one readable sentence with the way on."""
    rejected = {"level": "attention", "table": "cars", "text": "26% were rejected", "command": "stream-wh rejected cars"}
    still = {"level": "broken", "table": "parked", "text": "stands still: it fails", "command": None}
    record = moved(7, "2024-01-01T05:00:00Z", cars=4)
    for level, concerns in (("attention", [rejected]), ("attention", [rejected]), ("broken", [still, rejected])):
        fake.answers("update", {**record, "health": level, "concerns": concerns})
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40)
    assert update(fake, tables=["cars"]).execute(context())["health"] == "attention"
    assert "cars: 26% were rejected (`stream-wh rejected cars`)" in log.text(logging.WARNING)
    assert "epoch 7, cars: 4 inserted" in log.text(logging.INFO)
    with pytest.raises(AirflowFailException, match="the warehouse needs attention: cars: 26% were rejected"):
        update(fake, on_problems="fail").execute(context())
    with pytest.raises(AirflowFailException, match="the warehouse is broken: parked: stands still: it fails"):
        update(fake).execute(context())
    assert update(fake, on_problems="warn", tables=["cars"]).execute(context())["health"] == "broken"


def test_a_task_of_the_past_warns(fake: Fake, log: Log) -> None:
    """Clearing it changes nothing: windows move forward only. Its events still say where the tables stand."""
    fake.answers("update", NOTHING)
    fake.stands("2024-01-01T09:00:00Z", 11, cars=40, owners=3, parked=20)
    running = context()
    operator = update(fake)
    assert operator.execute(running)["moved"] is False
    warning = log.text(logging.WARNING)
    assert "the window is already at 2024-01-01T09:00:00Z (epoch 11)" in warning
    assert "past this task's update time 2024-01-01T05:00:00Z" in warning
    assert events(running, "cars")[0] == {
        "window_time": "2024-01-01T09:00:00Z", "epoch": 11, "rows": 40, "inserted": 0, "expired": 0
    }


@pytest.mark.parametrize("at", [AT, datetime(2024, 1, 1, 5, 59, tzinfo=UTC)])
def test_a_task_that_runs_twice_is_no_cause_for_a_warning(fake: Fake, log: Log, at: datetime) -> None:
    """The windows are where it wanted them."""
    fake.answers("update", NOTHING)
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40, owners=3, parked=20)
    operator = update(fake)
    operator.execute(context(data_interval_end=coerce_datetime(at)))
    assert "window" not in log.text(logging.WARNING)
    assert "already at" in log.text(logging.INFO)


def test_a_completed_update_counts_as_moved(fake: Fake) -> None:
    """The try after a crash reports what it completed, though it may have nothing else to do."""
    record = moved(7, "2024-01-01T05:00:00Z", cars=4)
    fake.answers("update", {**record, "completed": record["epochs"], "epochs": []})
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40, owners=3, parked=20)
    running = context()
    assert update(fake).execute(running)["moved"] is True
    assert events(running, "cars")[0]["inserted"] == 4


def test_warnings_of_the_command_are_warnings_of_the_task(fake: Fake, log: Log) -> None:
    """Also a table without an epoch is told, and what goes to standard error."""
    fake.answers("update", {**moved(7, "2024-01-01T05:00:00Z"), "warnings": ["max_lifetime was raised"]}, err="hello from Spark")
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40)
    operator = update(fake)
    operator.execute(context())
    assert "max_lifetime was raised" in log.text(logging.WARNING)
    assert 'table "parked" is not in epoch 7' in log.text(logging.WARNING)
    assert "hello from Spark" in log.text(logging.INFO)


def test_steps_are_told_as_they_are_done(fake: Fake, log: Log) -> None:
    """The command logs one JSON object a line; the task's log has their messages with their levels."""
    lines = [
        {"level": "info", "message": "step committed: append to cars", "step": 0},
        {"level": "warning", "message": "the disk is slow"},
    ]
    fake.answers("update", NOTHING, err="\n".join(json.dumps(line) for line in lines))
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40, owners=3, parked=20)
    update(fake).execute(context())
    assert "step committed: append to cars" in log.text(logging.INFO).splitlines()
    assert "the disk is slow" in log.text(logging.WARNING).splitlines()
    assert fake.log_formats == ["json", "", ""], "a command that only reads the status logs no steps"


def test_a_report_is_written_and_linked(fake: Fake, log: Log) -> None:
    """After what was committed, also where the health then fails the task; a report that fails is a warning."""
    fake.answers("report", "")
    fake.fails("report", 1, "no_epoch", "nothing has been loaded yet")
    still = {"level": "broken", "table": "parked", "text": "stands still", "command": None}
    fake.answers("update", {**moved(7, "2024-01-01T05:00:00Z", cars=4), "health": "broken", "concerns": [still]})
    fake.answers("update", NOTHING)
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40, owners=3, parked=20)
    operator = update(fake, report="report.html")
    with pytest.raises(AirflowFailException, match="is broken"):
        operator.execute(context())
    page = fake.project / "report.html"
    assert fake.calls[1] == ["report", "--output-file", str(page)]
    operator.execute(context())
    assert "the report was not written: stream-wh ended with exit code 1: nothing has" in log.text(logging.WARNING)
    (link,) = operator.operator_extra_links
    assert (link.name, link.get_link(operator, ti_key=None)) == ("Report", page.as_uri())  # type: ignore[arg-type]
    served = update(fake, report=page, report_url="https://example.com/flights.html")
    assert link.get_link(served, ti_key=None) == "https://example.com/flights.html"  # type: ignore[arg-type]
    assert update(fake).operator_extra_links == ()


def test_killing_a_task_interrupts_its_command(fake: Fake) -> None:
    """As Ctrl-C does; the try counts as one that is worth repeating."""
    fake.answers("update", holds="holds")
    operator = update(fake)

    def kill() -> None:
        while not fake.holding.exists():
            time.sleep(0.01)  # polling a file of another process; nothing depends on how long
        operator.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(AirflowException, match="exit code 130") as raised:
        operator.execute(context())
    killer.join()
    assert not isinstance(raised.value, AirflowFailException)


def test_a_time_limit_ends_the_command(fake: Fake) -> None:
    """Airflow raises in the middle of the wait; nothing is left running."""
    fake.answers("update", holds="holds")

    def limit(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, limit)
    operator = update(fake)
    try:
        signal.setitimer(signal.ITIMER_REAL, 2)
        with pytest.raises(TimeoutError):
            operator.execute(context())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert operator._running is not None
    assert operator._running.wait(print).code in (130, -2, 1)


def test_templates_are_rendered() -> None:
    """Everything that may differ from run to run."""
    assert set(StreamWarehouseUpdateOperator.template_fields) == {
        "project", "executable", "env", "at", "start", "report", "report_url"
    }  # fmt: skip


def test_assets_need_names(fake: Fake, tmp_path: Path) -> None:
    """They are known when the DAG is parsed: from the project, or as given; an unusual name is quoted."""
    assert update(fake, tables=[]).outlets == []
    assert StreamWarehouseUpdateOperator(task_id="update", project=fake.project).outlets == update(fake).outlets
    assert [asset.uri for asset in update(fake, tables=["a"], warehouse="x/y z").outlets] == ["x-stream-wh://x%2Fy%20z/a"]
    with pytest.raises(Exception, match="name the tables"):
        StreamWarehouseUpdateOperator(task_id="update", project=str(tmp_path / "nowhere"))
    with pytest.raises(Exception, match="give `warehouse`"):
        StreamWarehouseUpdateOperator(task_id="update", project="{{ params.project }}", tables=["a"])
    with pytest.raises(ValueError, match='"broken", "fail" or "warn"'):
        update(fake, on_problems="ignore")


def test_check_fails_with_what_it_found(fake: Fake, log: Log) -> None:
    """The task fails at once with exit code 4: a retry would not help."""
    finding = {"severity": "fault", "subject": "tables/cars/x.parquet", "message": "is missing", "remedy": "restore it"}
    fake.answers("check", [finding, {**finding, "severity": "note"}], code=4)
    fake.answers("check", [])
    operator = StreamWarehouseCheckOperator(task_id="check", project=str(fake.project), executable=fake.executable)
    with pytest.raises(AirflowFailException) as raised:
        operator.execute(context())
    assert str(raised.value) == "the check found 1 fault: tables/cars/x.parquet: is missing (restore it)"
    assert "is missing" in log.text(logging.ERROR)
    operator.quick = True
    assert operator.execute(context()) == []
    assert fake.calls == [["check", "-o", "json"], ["check", "--quick", "-o", "json"]]


def test_vacuum_reports_and_makes_way_for_an_update(fake: Fake) -> None:
    """While an update holds the lock it is tried again later."""
    fake.fails("vacuum", 3, "lock_held", "being updated by process 7", retry=True)
    fake.answers("vacuum", {"files": 3, "bytes": 10})
    operator = StreamWarehouseVacuumOperator(task_id="vacuum", project=str(fake.project), executable=fake.executable)
    with pytest.raises(AirflowException, match="process 7") as raised:
        operator.execute(context())
    assert not isinstance(raised.value, AirflowFailException)
    assert operator.execute(context()) == {"files": 3, "bytes": 10}
