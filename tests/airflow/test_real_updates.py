"""DAGs over a real warehouse: Spark moves it, Airflow says when, and a model says what must be in it.

::

    hour         0    1    2    3
    car0           [-------)
    van0           [------------)
    car1                [-------)
    ...          a car lives an hour and a half from the middle of an hour on, a van an hour more
    backfill          x    x (twice: the first try is killed)
    spark-submit                x
"""

from __future__ import annotations

import json
import os
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.models.asset import AssetEvent
from airflow.models.xcom import XComModel
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.utils.session import create_session
from sqlalchemy import select

from airflow_stream_wh import UPDATE_TIME, stream_warehouse_dags, table_asset
from airflow_stream_wh.process import default_executable
from warehouse import Warehouse
from warehouse.time import format_instant

from .conftest import known

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("metadata_database")

ROOT = Path(__file__).parent.parent.parent
ANCHOR = datetime(2024, 1, 1, tzinfo=UTC)
HOURS = 4
LIFETIMES = {"car": timedelta(hours=1, minutes=30), "van": timedelta(hours=2, minutes=30)}
CONFIGURATION = """
[warehouse]
root = "data"
anchor = "2024-01-01T00:00:00Z"
update_interval = "1h"
vacuum = "manual"

[spark]
"spark.master" = "local[2]"
"spark.sql.shuffle.partitions" = "2"
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

[streams.cars]
landing = "landing/cars"
format = "csv"
search_key = "k"
arrival = "ts"
expires = "e"
max_lifetime = "4h"

[streams.cars.columns]
k = "string"
ts = "timestamp"
e = "timestamp"
"""

KILLED_ONCE = """#!/bin/bash
# the command, killed with -9 as soon as the plan of epoch {epoch} is written; the next time it is left alone
if [ "$3" = update ] && [ ! -e {marker} ]; then
    touch {marker}
    ( until [ -e {plan} ]; do sleep 0.02; done; kill -9 $$ ) > /dev/null 2>&1 &
fi
exec {command} "$@"
"""


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


class Garage:
    """A project with one stream and a file for each hour, all there from the beginning, as in a backfill."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "depot"
        landing = self.directory / "landing" / "cars"
        landing.mkdir(parents=True)
        (self.directory / "warehouse.toml").write_text(CONFIGURATION)
        self.rows: list[tuple[str, datetime, datetime]] = []
        for hour in range(HOURS):
            arrival = ANCHOR + timedelta(hours=hour, minutes=30)
            rows = [(f"{kind}{hour}", arrival, arrival + lifetime) for kind, lifetime in LIFETIMES.items()]
            lines = [f"{name},{_text(begin)},{_text(end)}\n" for name, begin, end in rows]
            (landing / f"{arrival:%Y-%m-%dT%H}.csv").write_text("k,ts,e\n" + "".join(lines))
            self.rows += rows

    def model(self, hour: int) -> list[str]:
        """Return the live keys at an hour."""
        now = ANCHOR + timedelta(hours=hour)
        return sorted(name for name, begin, end in self.rows if begin <= now < end)

    def keys(self) -> list[str]:
        """Return the live keys, each as often as it is stored."""
        with Warehouse.open(self.directory) as warehouse:
            return sorted(row["k"] for row in warehouse.scan("cars").arrow().to_pylist())

    def epochs(self) -> list[str]:
        """Return the window times of all epochs, the oldest first."""
        with Warehouse.open(self.directory) as warehouse:
            return [format_instant(row.window_time) for row in reversed(warehouse.history())]

    def dag(self, **options: Any) -> DAG:
        """Return the DAG that a user would have, without pauses between tries."""
        chosen: dict[str, Any] = {
            "schedule": "0 * * * *",
            "start_date": ANCHOR,
            "catchup": True,
            "expect": {"cars": "{{ data_interval_start.strftime('%Y-%m-%dT%H') }}.csv"},
            "check": False,
            "vacuum_schedule": None,
            "default_args": {"retry_delay": timedelta(0)},
        }
        return stream_warehouse_dags("cars", str(self.directory), **{**chosen, **options})[0]


@pytest.fixture(scope="module")
def garage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garage]:
    """Return the project that the tests of this module move on, one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STREAM_WH_CLASS_ARCHIVE", "read")  # three JVMs gain less from an archive than it costs
        yield Garage(tmp_path_factory.mktemp("real"))


def linked() -> set[str]:
    """Return the links of the buttons of the tasks that ran."""
    with create_session() as session:
        query = select(XComModel.value).where(XComModel.key == "_link_ReportLink")
        return {str(XComModel.deserialize_value(value)) for value in session.execute(query).all()}


def run(dag: DAG, hour: int) -> dict[str, str]:
    """Run the interval that ends at an hour and return the states of the tasks."""
    dag_run = known(dag).test(logical_date=ANCHOR + timedelta(hours=hour))
    return {
        task_instance.task_id: f"{task_instance.state} at try {task_instance.try_number}"
        for task_instance in dag_run.get_task_instances()
    }


def events(warehouse: str = "depot") -> list[dict[str, Any]]:
    """Return the contents of the events of the table's asset, the oldest first."""
    with create_session() as session:
        asset_events = session.scalars(select(AssetEvent).order_by(AssetEvent.id)).all()
        uri = table_asset(warehouse, "cars").uri
        return [{key: event.extra[key] for key in ("window_time", "epoch", "rows")} for event in asset_events if event.uri == uri]


WELL = {"wait_for_files": "success at try 1", "update": "success at try 1"}


def event(hour: int, rows: int) -> dict[str, Any]:
    """Return the event of the epoch of an hour, with the number of its live rows."""
    return {"window_time": f"2024-01-01T0{hour}:00:00Z", "epoch": hour - 1, "rows": rows}


def test_a_backfill_makes_an_epoch_for_each_interval(garage: Garage) -> None:
    """Each is of the end of its interval, with exactly the rows that lived then; event, report and its button say so.

    The second update is killed with -9 after its plan was written, and completed by the retry: nothing is lost or doubled, one
    epoch is made, and `check` agrees.
    """
    wrapper, marker = garage.directory / "stream-wh", garage.directory / "killed"
    plan = garage.directory / "data" / "epochs" / f"{1:020d}.plan.json"
    wrapper.write_text(KILLED_ONCE.format(epoch=1, marker=marker, plan=plan, command=default_executable()))
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
    reported = {"report": "report.html"}
    completed = {**WELL, "update": "success at try 2", "check": "success at try 1"}
    runs = (
        (1, garage.dag(update=reported), WELL),
        (2, garage.dag(update=reported, executable=str(wrapper), check=True), completed),
    )
    for hour, dag, states in runs:
        assert run(dag, hour) == states
        assert garage.keys() == garage.model(hour)
        assert f"as of 2024-01-01T0{hour}:00:00Z" in (garage.directory / "report.html").read_text()
    assert linked() == {(garage.directory / "report.html").as_uri()}
    assert garage.epochs() == [f"2024-01-01T0{hour}:00:00Z" for hour in (1, 2)]
    assert events() == [event(hour, len(garage.model(hour))) for hour in (1, 2)]


def test_a_task_that_runs_twice_changes_nothing(garage: Garage) -> None:
    """Nor does one of the past: rows, epochs and files stay, the event says where the table stands."""
    before = garage.epochs()
    for hour in (2, 1):
        assert run(garage.dag(), hour)["update"] == "success at try 1"
    assert garage.keys() == garage.model(2)
    assert garage.epochs() == before
    assert events()[-2:] == [event(2, len(garage.model(2)))] * 2


def test_the_spark_provider_runs_the_same_verb(garage: Garage, monkeypatch: pytest.MonkeyPatch) -> None:
    """``spark-submit jobs/update.py``, with the update time as a template."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")  # pip's spark-submit
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # as the update of a process chooses
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    with DAG("cars_by_spark_submit", schedule=garage.dag().timetable, start_date=ANCHOR, max_active_runs=1) as dag:
        SparkSubmitOperator(
            task_id="update",
            application=str(ROOT / "jobs" / "update.py"),
            application_args=["-C", str(garage.directory), "--at", UPDATE_TIME],
            outlets=[table_asset("depot", "cars")],
        )
    assert run(dag, 3) == {"update": "success at try 1"}
    assert garage.keys() == garage.model(3)
    assert garage.epochs()[-1] == "2024-01-01T03:00:00Z"
