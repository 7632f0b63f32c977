"""The factory: a DAG that waits, updates and checks, and one that vacuums on a rhythm of its own."""

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

    One run at a time, the oldest first (``max_active_runs`` 1; at most one update across all runs, those of a backfill
    too). A run does not depend on the success of the one before it: an update also does what earlier ones left undone, so
    a run that failed holds nothing up. ``depends_on_past`` in ``default_args`` makes it so where each slot needs its own
    epoch. A run that is triggered by hand takes T from its parameter ``at``, else from its logical date.

    Parameters
    ----------
    dag_id, start_date, catchup, dag_options
        Of :class:`airflow.sdk.DAG`; ``catchup`` has no default, since Airflow 3 does not catch up unless it is told to.
    project, executable, env, tables, warehouse
        Of :class:`~airflow_stream_wh.operators.StreamWarehouseUpdateOperator`.
    schedule
        A cron expression in UTC, each of whose intervals is one run at its end (``CronDataIntervalTimetable``: a plain
        string would be a point in time in Airflow 3), or a timetable, such as ``CronPartitionTimetable``; None: by hand.
    expect, patience
        Of :class:`~airflow_stream_wh.sensors.StreamWarehouseLandingSensor`; None: no wait.
    check
        Whether each update is followed by ``stream-wh check --quick``, and each vacuum by one that reads every row.
    vacuum_schedule
        A cron expression in UTC, or a timetable.
    update, wait
        Further arguments of the update operator, and of the sensor.
    default_args
        Of every task, on top of five retries with growing pauses.

    """
    place: dict[str, Any] = {"project": project, "executable": executable, "env": env}
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
            chosen = {"patience": patience, "at": _AT, **(wait or {})}
            tasks.append(StreamWarehouseLandingSensor(task_id="wait_for_files", expect=expect, **place, **chosen))
        options = {"at": _AT, "tables": tables, "warehouse": warehouse, "max_active_tis_per_dag": 1, **(update or {})}
        tasks.append(StreamWarehouseUpdateOperator(task_id="update", **place, **options))
        if check:
            tasks.append(StreamWarehouseCheckOperator(task_id="check", quick=True, **place))
        chain(*tasks)
    if vacuum_schedule is None:
        return (main,)
    rhythm = CronTriggerTimetable(vacuum_schedule, timezone="UTC") if isinstance(vacuum_schedule, str) else vacuum_schedule
    with DAG(f"{dag_id}_vacuum", schedule=rhythm, catchup=False, **common) as vacuum:
        remove = StreamWarehouseVacuumOperator(task_id="vacuum", **place)
        if check:
            chain(remove, StreamWarehouseCheckOperator(task_id="check", **place))
    return main, vacuum


def _timetable(schedule: str | BaseTimetable | None) -> BaseTimetable | None:
    return CronDataIntervalTimetable(schedule, timezone="UTC") if isinstance(schedule, str) else schedule
