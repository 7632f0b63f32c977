"""The factory's DAGs, and the examples."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow._shared.timezones.timezone import coerce_datetime
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, CronDataIntervalTimetable, CronPartitionTimetable
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from jinja2 import UndefinedError

import airflow_stream_wh.example_dags
from airflow_stream_wh import UPDATE_TIME, StreamWarehouseRetryPolicy, StreamWarehouseUpdateOperator, stream_warehouse_dags

from .conftest import known
from .fake import NOTHING, moved
from .recipes import recipe

if TYPE_CHECKING:
    from .fake import Fake

pytestmark = pytest.mark.usefixtures("metadata_database")
START = datetime(2024, 1, 1, tzinfo=UTC)


def made(fake: Fake, **options: Any) -> tuple[DAG, ...]:
    """Return the DAGs of the project."""
    chosen: dict[str, Any] = {"schedule": "0 * * * *", "start_date": START, "catchup": True, "executable": fake.executable}
    chosen["default_args"] = {"retry_delay": timedelta(0)}
    return stream_warehouse_dags("garage", str(fake.project), **{**chosen, **options})


def test_the_dag_waits_updates_and_checks_one_run_at_a_time(fake: Fake) -> None:
    """And vacuum has a rhythm of its own."""
    main, vacuum = made(fake, expect=["cars"])
    assert [task.task_id for task in main.topological_sort()] == ["wait_for_files", "update", "check"]
    assert (main.max_active_runs, main.catchup, vacuum.catchup) == (1, True, False)
    assert isinstance(main.timetable, CronDataIntervalTimetable)
    assert main.get_task("update").max_active_tis_per_dag == 1
    assert (main.get_task("update").retries, main.get_task("update").retry_exponential_backoff) == (5, 2)
    assert [task.task_id for task in vacuum.topological_sort()] == ["vacuum", "check"]
    assert (main.get_task("check").quick, vacuum.get_task("check").quick) == (True, False)
    assert [task.task_id for task in made(fake, check=False, vacuum_schedule=None)[0].tasks] == ["update"]


def test_catching_up_is_said_and_not_guessed(fake: Fake) -> None:
    """Airflow 3 does not, Airflow 2 did."""
    with pytest.raises(TypeError, match="catchup"):
        stream_warehouse_dags("garage", str(fake.project), schedule="0 * * * *", start_date=START)  # type: ignore[call-arg]


def test_a_schedule_has_intervals(fake: Fake) -> None:
    """An hour's run ends with the hour, which is its update time; a plain cron string has none in Airflow 3."""
    timetable = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(made(fake)[0])).timetable
    first = timetable.next_dagrun_info(
        last_automated_data_interval=None, restriction=TimeRestriction(earliest=coerce_datetime(START), latest=None, catchup=True)
    )
    assert first.data_interval.end - first.data_interval.start == timedelta(hours=1)
    partitions = CronPartitionTimetable("0 * * * *", timezone="UTC")
    assert made(fake, schedule=partitions)[0].timetable is partitions


def run(dag: DAG, logical_date: datetime, **conf: str) -> dict[str, str]:
    """Run a DAG as of a logical date and return the states of its tasks."""
    dag_run = known(dag).test(logical_date=logical_date, run_conf=conf or None)
    return {task_instance.task_id: str(task_instance.state) for task_instance in dag_run.get_task_instances()}


def test_a_run_goes_through(fake: Fake) -> None:
    """Wait, update, check, each with the time of the run: the end of the interval before its logical date."""
    (main,) = made(fake, expect=["cars"], vacuum_schedule=None)
    fake.answers("update", moved(7, "2024-01-01T05:00:00Z", cars=4))
    fake.answers("check", [])
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40, owners=3, parked=20)
    states = run(main, datetime(2024, 1, 1, 5, tzinfo=UTC))
    assert states == {"wait_for_files": "success", "update": "success", "check": "success"}
    assert ["update", "--at", "2024-01-01T05:00:00Z", "-o", "json"] in fake.calls


def test_a_run_by_hand_takes_the_time_it_is_given(fake: Fake) -> None:
    """From its parameter."""
    (main,) = made(fake, vacuum_schedule=None, check=False)
    fake.answers("update", NOTHING)
    fake.stands("2024-01-01T05:00:00Z", 7, cars=40, owners=3, parked=20)
    assert run(main, datetime(2024, 1, 1, 6, tzinfo=UTC), at="2024-01-01T02:30:00Z") == {"update": "success"}
    assert fake.calls[0] == ["update", "--at", "2024-01-01T02:30:00Z", "-o", "json"]


def test_a_held_lock_is_tried_again_and_a_fault_is_not(fake: Fake) -> None:
    """By Airflow's own count of tries."""
    (main,) = made(fake, vacuum_schedule=None, check=False)
    fake.fails("update", 3, "lock_held", "being updated by process 7", retry=True)
    fake.answers("update", code=-9)
    fake.answers("update", moved(7, "2024-01-01T07:00:00Z", cars=4))
    fake.stands("2024-01-01T07:00:00Z", 7, cars=40, owners=3, parked=20)
    assert run(main, datetime(2024, 1, 1, 7, tzinfo=UTC)) == {"update": "success"}
    assert [call[0] for call in fake.calls].count("update") == 3


def test_a_fault_is_not_tried_again(fake: Fake) -> None:
    """Though five tries are left."""
    (main,) = made(fake, vacuum_schedule=None, check=False)
    fake.fails("update", 2, "configuration", "1 configuration error")
    assert run(main, datetime(2024, 1, 1, 8, tzinfo=UTC)) == {"update": "failed"}
    assert [call[0] for call in fake.calls] == ["update"]


def test_the_examples_are_found_and_sound() -> None:
    """By Airflow's own reader of DAG files."""
    bag = DagBag(dag_folder=str(Path(airflow_stream_wh.example_dags.__file__).parent))
    assert bag.import_errors == {}
    assert {"flights", "flights_vacuum"} <= set(bag.dags)
    update = bag.dags["flights"].get_task("update")
    assert isinstance(update, StreamWarehouseUpdateOperator)
    assert [asset.name for asset in update.outlets][:2] == ["flights/flights", "flights/weather"]


def test_the_documented_dag_file_is_sound(fake: Fake, tmp_path: Path) -> None:
    """As docs/schedulers.md has it, for another project."""
    text = recipe("airflow").replace('"/srv/flights"', repr(str(fake.project))).replace('["flights"]', '["cars"]')
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "flights.py").write_text(text)
    bag = DagBag(dag_folder=str(tmp_path / "dags"))
    assert bag.import_errors == {}
    assert [task.task_id for task in bag.dags["flights"].topological_sort()] == ["wait_for_files", "update", "check"]
    assert list(bag.dags["flights_vacuum"].task_dict) == ["vacuum", "check"]


def test_the_documented_task_of_the_spark_provider_is_sound() -> None:
    """Its template renders to the same time as the operator's rules give, and to none without a date."""
    with DAG("by_spark_submit", schedule=None) as dag:
        exec(recipe("airflow spark-submit"), {})  # noqa: S102 - the documentation is ours
    task = dag.get_task("update")
    dates: dict[str, Any] = {"partition_date": None, "data_interval_end": coerce_datetime(START), "logical_date": None}
    task.render_template_fields(dates)  # type: ignore[arg-type]
    assert task.application_args[-2:] == ["--at", "2024-01-01T00:00:00+00:00"]
    assert isinstance(task.retry_policy, StreamWarehouseRetryPolicy)
    with pytest.raises(UndefinedError):
        task.render_template(UPDATE_TIME, {})  # type: ignore[typeddict-item]
