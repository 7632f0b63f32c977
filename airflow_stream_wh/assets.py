"""One asset for each table: ``x-stream-wh://WAREHOUSE/TABLE``; its events have the state of the table."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset

from airflow_stream_wh.project_file import read_project
from warehouse.errors import UsageError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow_stream_wh.state import NewestEpoch, TableSummary

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
        When the project's path does not have the name.

    """
    name = warehouse or PurePath(project).name
    if not warehouse and (not name or name == ".." or any(mark in project for mark in _TEMPLATE)):
        raise UsageError(f'the name of the warehouse cannot be derived from the project "{project}"; give `warehouse`')
    return name


def table_assets(project: str, tables: Sequence[str] | None, warehouse: str | None) -> tuple[Asset, ...]:
    """Return an asset for each table: of ``tables``, else of all that the project's ``warehouse.toml`` declares."""
    names = read_project(project).tables if tables is None else tuple(tables)
    return tuple(table_asset(warehouse_name(project, warehouse), name) for name in names)


def event_extra(table: TableSummary, state: NewestEpoch, epochs: Iterable[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return the extra of a table's event: window time, epoch, live rows, and rows that the update inserted and that expired."""
    counts = [count for epoch in epochs for count in epoch["counts"] if count["stream"] == name]
    return {
        "window_time": format_instant(state.window_time),
        "epoch": state.epoch,
        "rows": table.rows,
        "inserted": sum(count["inserted"] for count in counts),
        "expired": sum(count["expired"] for count in counts),
    }
