"""The factory: a DAG that waits, updates and checks, and a DAG that vacuums on a schedule of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, BaseOperator, CronDataIntervalTimetable, CronTriggerTimetable, Param, chain

from airflow_stream_wh.operators import (
    StreamWarehouseCheckOperator,
    StreamWarehouseUpdateOperator,
    StreamWarehouseVacuumOperator,
)
from airflow_stream_wh.sensors import StreamWarehouseLandingSensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from os import PathLike

    from airflow.sdk.bases.timetable import BaseTimetable

__all__ = ["stream_warehouse_dags"]

_AT = "{{ params.at or '' }}"
_RETRIES: dict[str, Any] = {
    "retries": 5,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": 2,
    "max_retry_delay": timedelta(minutes=15),
}


def stream_warehouse_dags(
    dag_id: str,
    project: str | PathLike[str],
    *,
    schedule: str | BaseTimetable | None,
    start_date: datetime,
    catchup: bool,
    expect: Mapping[str, str | None] | Sequence[str] | None = None,
    patience: timedelta = timedelta(minutes=15),
    check: bool = True,
    vacuum_schedule: str | BaseTimetable | None = "30 3 * * *",
    executable: str | None = None,
    env: Mapping[str, str] | None = None,
    tables: Sequence[str] | None = None,
    warehouse: str | None = None,
    update: Mapping[str, Any] | None = None,
    wait: Mapping[str, Any] | None = None,
    default_args: Mapping[str, Any] | None = None,
    **dag_options: Any,  # noqa: ANN401 - passed on
) -> tuple[DAG, ...]:
    """Return the DAG ``dag_id``: wait (if ``expect``), update, check; and ``dag_id + "_vacuum"`` unless it has no schedule.

    There is one run at a time, the oldest first (``max_active_runs`` 1), and at most one update across all runs, those of a
    backfill included. A run does not depend on the success of the one before it: an update also does what earlier ones left
    undone, so a failed run delays nothing. If each slot needs an epoch of its own, set ``depends_on_past`` in ``default_args``. A
    run that is triggered by hand takes T from its parameter ``at``, else from its logical date.

    Parameters
    ----------
    dag_id, start_date, catchup, dag_options
        As of :class:`airflow.sdk.DAG`; ``catchup`` has no default, since Airflow 3 catches up only if it is set.
    project, executable, env, tables, warehouse
        As of :class:`~airflow_stream_wh.operators.StreamWarehouseUpdateOperator`.
    schedule
        A cron expression in UTC or a timetable, such as ``CronPartitionTimetable``; None: runs are triggered by hand. An
        expression is made a ``CronDataIntervalTimetable``, so that each interval has one run at its end; in Airflow 3 a plain
        string would be points in time.
    expect, patience
        As of :class:`~airflow_stream_wh.sensors.StreamWarehouseLandingSensor`; None: no wait.
    check
        Whether each update is followed by ``stream-wh check --quick``, and each vacuum by one that reads every row.
    vacuum_schedule
        A cron expression in UTC, or a timetable.
    update, wait
        Further arguments of the update operator, and of the sensor.
    default_args
        Defaults of every task, in addition to five retries with growing pauses.

    """
    project_options: dict[str, Any] = {"project": project, "executable": executable, "env": env}
    common: dict[str, Any] = {
        "start_date": start_date,
        "default_args": {**_RETRIES, **(default_args or {})},
        "max_active_runs": 1,
        "tags": ["stream-wh"],
        **dag_options,
    }
    at = Param(None, type=["null", "string"], description="T, if it is not the run's own date: 2013-01-01T12:00:00Z")
    with DAG(dag_id, schedule=_timetable(schedule), catchup=catchup, params={"at": at}, **common) as main:
        tasks: list[BaseOperator] = []
        if expect is not None:
            wait_options = {"patience": patience, "at": _AT, **(wait or {})}
            tasks.append(StreamWarehouseLandingSensor(task_id="wait_for_files", expect=expect, **project_options, **wait_options))
        options = {"at": _AT, "tables": tables, "warehouse": warehouse, "max_active_tis_per_dag": 1, **(update or {})}
        tasks.append(StreamWarehouseUpdateOperator(task_id="update", **project_options, **options))
        if check:
            tasks.append(StreamWarehouseCheckOperator(task_id="check", quick=True, **project_options))
        chain(*tasks)
    if vacuum_schedule is None:
        return (main,)
    timetable = CronTriggerTimetable(vacuum_schedule, timezone="UTC") if isinstance(vacuum_schedule, str) else vacuum_schedule
    with DAG(f"{dag_id}_vacuum", schedule=timetable, catchup=False, **common) as vacuum:
        remove = StreamWarehouseVacuumOperator(task_id="vacuum", **project_options)
        if check:
            chain(remove, StreamWarehouseCheckOperator(task_id="check", **project_options))
    return main, vacuum


def _timetable(schedule: str | BaseTimetable | None) -> BaseTimetable | None:
    return CronDataIntervalTimetable(schedule, timezone="UTC") if isinstance(schedule, str) else schedule
