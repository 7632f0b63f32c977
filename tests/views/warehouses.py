"""Small warehouses with views: what a view holds, in forms that can be compared with another engine or with a sheet.

Where a vector of a sheet counts in ticks, a tick is an hour, so that ``at(7)`` is tick 7 and Delta = 5 is ``5h``.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tests.operations.projects import ANCHOR, stream
from warehouse.project import Warehouse
from warehouse.time import HOUR, NEVER, to_micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.operations.projects import Project

Rows = Counter[tuple[object, ...]]
Lifetimes = list[tuple[str, float, float]]
FOREVER = float("inf")


def view(sql: str, key: str = "k", **keys: object) -> dict[str, object]:
    """Return the keys of a declared view."""
    return {"sql": sql, "search_key": key, **keys}


def windowed(name: str, length: int, **changes: object) -> dict[str, object]:
    """Return the keys of a stream whose rows have a key, a name of their own and an end, at most ``length`` ticks away."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "id": "string"}
    return stream(landing=f"landing/{name}", columns=columns, max_lifetime=f"{length}h", **changes)


def unbounded(name: str, **changes: object) -> dict[str, object]:
    """Return the keys of such a stream whose rows never end."""
    columns = {"k": "string", "b": "timestamp", "id": "string"}
    return stream(landing=f"landing/{name}", columns=columns, max_lifetime=None, expires=None, **changes)


def land(project: Project, run: int, lines: Mapping[str, Sequence[str]], header: str = "k,b,e") -> None:
    """Put a run's lines into the landing directories of the streams they are named by."""
    for name, own in lines.items():
        if own:
            project.land(f"{run:03d}.csv", "".join(f"{line}\n" for line in (header, *own)), landing=f"landing/{name}")


def counted(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """Return how often each row occurs: user columns by name, numbers by value, whatever type an engine gives them."""
    return Counter(
        tuple((name, _plain(row[name])) for name in sorted(row) if not name.startswith("_") and name not in _PARTITIONS)
        for row in rows
    )


_PARTITIONS = ("sub_index", "exp_block")


def _plain(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    return Decimal(str(value)).normalize() + 0


def asked(project: Project, sql: str) -> Rows:
    """Return DuckDB's answer to a query over the live rows of the newest epoch."""
    return all_asked(project, {"": sql})[""]


def all_asked(project: Project, queries: Mapping[str, str]) -> dict[str, Rows]:
    """Return DuckDB's answers to queries by name; the warehouse is opened once."""
    with Warehouse.open(project.directory) as warehouse:
        return {name: counted(warehouse.sql(sql).arrow().to_pylist()) for name, sql in queries.items()}


def served(project: Project, table: str) -> Rows:
    """Return the rows of a table as readers see them."""
    return all_served(project, [table])[table]


def all_served(project: Project, tables: Iterable[str]) -> dict[str, Rows]:
    """Return the rows of tables by name; the warehouse is opened once."""
    with Warehouse.open(project.directory) as warehouse:
        return {table: counted(warehouse.scan(table).arrow().to_pylist()) for table in tables}


def stored(project: Project, table: str) -> Rows:
    """Return a table's rows as any engine can read them: its Delta table at the epoch's version, live rows only."""
    return counted(project.live(table))


def ticks(instant: Any) -> float:  # noqa: ANN401 - a datetime
    """Return the ticks since the anchor."""
    micros = to_micros(instant)
    return FOREVER if micros == NEVER else (micros - ANCHOR) / HOUR


def lives(rows: Iterable[Mapping[str, Any]], *columns: str) -> Lifetimes:
    """Return each row's columns as one text, ``_ts`` and ``_exp`` in ticks, in order."""
    return sorted(("".join(str(row[name]) for name in columns), ticks(row["_ts"]), ticks(row["_exp"])) for row in rows)


def shown(project: Project, table: str, *columns: str) -> Lifetimes:
    """Return what a view holds now."""
    return lives(project.live(table), *columns)


def restored(project: Project, table: str, *columns: str) -> Lifetimes:
    """Return the short-lived results that the newest epoch told of."""
    with Warehouse.open(project.directory) as warehouse:
        return restored_in(warehouse, project.epoch.number, table, *columns)


def restored_in(warehouse: Warehouse, epoch: int, table: str, *columns: str) -> Lifetimes:
    """Return the short-lived results that an epoch told of."""
    rows = warehouse.restored(table).arrow().to_pylist()
    return lives([row for row in rows if row["_epoch"] == epoch], *columns)


__all__ = [
    "FOREVER",
    "Lifetimes",
    "Rows",
    "all_asked",
    "all_served",
    "asked",
    "counted",
    "land",
    "lives",
    "restored",
    "restored_in",
    "served",
    "shown",
    "stored",
    "ticks",
    "unbounded",
    "view",
    "windowed",
]
