"""One asset per table: ``x-stream-wh://WAREHOUSE/TABLE``; its events say where the table stands."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset

from airflow_stream_wh.declared import declared
from warehouse.errors import UsageError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_stream_wh.state import NewestEpoch, StandingTable

__all__ = ["event_extra", "table_asset", "table_assets", "warehouse_name"]

SCHEME = "x-stream-wh"
_TEMPLATE = ("{{", "{%")


def table_asset(warehouse: str, table: str) -> Asset:
    """Return the asset of a table; ``warehouse`` is the name of the project's directory unless the DAG gives another."""
    where = quote(warehouse, safe="")
    return Asset(name=f"{where}/{table}", uri=f"{SCHEME}://{where}/{table}", group="stream-wh")


def warehouse_name(project: str, warehouse: str | None) -> str:
    """Return the name that a warehouse has in its assets.

    Raises
    ------
    UsageError
        When it cannot be told from the project's path.

    """
    name = warehouse or PurePath(project).name
    if not warehouse and (not name or name == ".." or any(mark in project for mark in _TEMPLATE)):
        raise UsageError(f'the name of the warehouse cannot be derived from the project "{project}"; give `warehouse`')
    return name


def table_assets(project: str, tables: Sequence[str] | None, warehouse: str | None) -> tuple[Asset, ...]:
    """Return an asset for each table: of ``tables``, else of all that the project's ``warehouse.toml`` declares."""
    names = declared(project).tables if tables is None else tuple(tables)
    return tuple(table_asset(warehouse_name(project, warehouse), name) for name in names)


def event_extra(table: StandingTable, state: NewestEpoch, epochs: Iterable[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return what an event tells: window time, epoch and live rows now, and what the update's epochs did to the table."""
    counts = [each for epoch in epochs for each in epoch["counts"] if each["stream"] == name]
    return {
        "window_time": format_instant(state.window_time),
        "epoch": state.epoch,
        "rows": table.rows,
        "inserted": sum(each["inserted"] for each in counts),
        "expired": sum(each["expired"] for each in counts),
    }
