"""stream-wh under Airflow 3: operators, a sensor, and a factory of DAGs.

Everything a DAG needs is here; importing this package imports neither Airflow nor Spark. The warehouse is moved by the
``stream-wh`` command in a process of its own, which may belong to another Python environment than Airflow's.

>>> from airflow_stream_wh import StreamWarehouseUpdateOperator       # doctest: +SKIP
>>> StreamWarehouseUpdateOperator(task_id="update", project="/srv/flights")  # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_stream_wh.assets import table_asset
    from airflow_stream_wh.dags import stream_warehouse_dags
    from airflow_stream_wh.operators import (
        StreamWarehouseCheckOperator,
        StreamWarehouseUpdateOperator,
        StreamWarehouseVacuumOperator,
    )
    from airflow_stream_wh.retries import StreamWarehouseRetryPolicy
    from airflow_stream_wh.sensors import StreamWarehouseLandingSensor
    from airflow_stream_wh.update_time import UPDATE_TIME

__all__ = [
    "UPDATE_TIME",
    "StreamWarehouseCheckOperator",
    "StreamWarehouseLandingSensor",
    "StreamWarehouseRetryPolicy",
    "StreamWarehouseUpdateOperator",
    "StreamWarehouseVacuumOperator",
    "stream_warehouse_dags",
    "table_asset",
]

_MODULES = {
    "UPDATE_TIME": "airflow_stream_wh.update_time",
    "StreamWarehouseCheckOperator": "airflow_stream_wh.operators",
    "StreamWarehouseLandingSensor": "airflow_stream_wh.sensors",
    "StreamWarehouseRetryPolicy": "airflow_stream_wh.retries",
    "StreamWarehouseUpdateOperator": "airflow_stream_wh.operators",
    "StreamWarehouseVacuumOperator": "airflow_stream_wh.operators",
    "stream_warehouse_dags": "airflow_stream_wh.dags",
    "table_asset": "airflow_stream_wh.assets",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attributes
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)
