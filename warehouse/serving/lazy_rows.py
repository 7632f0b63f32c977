"""Coalesced tables without files: each read makes the rows from the points that their stream stores.

The rows equal those of an eager table at the epoch: section 3 of the temporal-coalescing sheet, over the points with ``window
time - window <= ts``, or over the given number of newest points. If points have the same group and time, the point that was
loaded first counts; among points loaded together, the point with the smallest values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.declaration import ColumnRecord, table_declaration
from warehouse.catalog.model import DEFAULT_PERIODS
from warehouse.coalescing.definition import HOLDS, STAMPS, neighbour_column, values_column
from warehouse.coalescing.islands import AT, DUCKDB, Query
from warehouse.epochs.following import CoalescedRecord
from warehouse.epochs.records import TableState
from warehouse.errors import UsageError
from warehouse.layout import keyed_layout
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Epoch

__all__ = ["lazy_error", "lazy_rows", "lazy_states", "points_read"]

_NTH = "_nth"


def lazy_error(table: str, why: str) -> UsageError:
    """Return the error of an operation that a table without files does not support."""
    return UsageError(
        f'"{table}" is a lazy coalesced table without files of its own: {why}; '
        f'how = "eager" in [coalesced.{table}] and `stream-wh migrate {table}` store it'
    )


def lazy_states(epoch: Epoch) -> tuple[TableState, ...]:
    """Return the coalesced tables without files as readers see tables: with the zero-row file of their streams."""
    return tuple(state for table in epoch.lazy if (state := _state(epoch, table)) is not None)


def _state(epoch: Epoch, table: LazyTable) -> TableState | None:
    definition, stream = table.definition, epoch.table(table.definition.source)
    if stream is None or stream.kind != "stream":
        return None
    columns = tuple(ColumnRecord(name, kind) for name, kind in definition.columns)
    return TableState(
        name=table.name,
        kind="coalesced",
        path="",
        table_id="",
        version=-1,
        layout=keyed_layout(DEFAULT_PERIODS),
        declaration=table_declaration(columns, definition.search_key, label="STR", max_lifetime=None),
        schema_file=stream.schema_file,
        partitions=(),
        coalesced=CoalescedRecord(definition, table.full_from),
        newest=stream.newest,
    )


def points_read(table: LazyTable) -> list[str]:
    """Return the columns of the stream from which rows are made."""
    definition = table.definition
    if definition.of is not None:
        return list(dict.fromkeys((*definition.groups, *table.reads)))
    return list(dict.fromkeys((*definition.groups, *definition.compared)))


def lazy_rows(table: LazyTable, points: str, window_time: int) -> str:
    """Return the query for the rows of a table: the user's columns, ``_ts`` and ``_exp``.

    Parameters
    ----------
    table
        The table.
    points
        The query that gives the columns that the table reads from its stream, ``_ts`` and ``_load_slot``.
    window_time
        The epoch's window time, in microseconds.

    """
    definition = table.definition
    groups, values = ([quoted(name) for name in names] for names in (definition.groups, definition.compared))
    shown = _listed(*groups, *([] if definition.of is not None else values))
    holds = [] if definition.of is None else [f"{table.condition} AS {quoted(HOLDS)}"]
    in_window = "" if definition.window is None else f" WHERE epoch_us(_ts) >= {window_time - definition.window}"
    order = _listed("_load_slot", *(f"{name} NULLS FIRST" for name in values))
    newest = "" if definition.rows is None else f" QUALIFY row_number() OVER (ORDER BY {_newest(groups)}) <= {definition.rows}"
    partition = f"PARTITION BY {_listed(*groups)} " if groups else ""
    members = f"""
SELECT {_listed(*groups, *values, AT)} FROM (
  SELECT *, row_number() OVER (PARTITION BY {_listed(*groups, AT)} ORDER BY {order}) AS {_NTH} FROM (
    SELECT {_listed(shown, *holds)}, epoch_us(_ts) AS {AT}, _load_slot FROM ({points}){in_window}))
WHERE {_NTH} = 1{newest}"""
    listed_columns = () if definition.same is None else definition.compared
    lists = [f"[{quoted(name)}] AS {quoted(values_column(name))}" for name in listed_columns]
    own_values = [] if definition.same is not None else values
    no_rows = f"SELECT {_listed(*groups, *own_values, f'[{AT}] AS {STAMPS}', *lists)} FROM ({members}) WHERE false"
    with_neighbours = members
    if definition.same is not None:
        pairs = zip(values, definition.compared, strict=True)
        neighbours = _listed(*(f"lag({name}) OVER w AS {quoted(neighbour_column(plain))}" for name, plain in pairs))
        with_neighbours = (
            f"SELECT *, {table.condition} AS _same FROM "
            f"(SELECT *, {neighbours} FROM ({members}) WINDOW w AS ({partition}ORDER BY {AT}))"
        )
    return Query(definition, DUCKDB, with_neighbours, no_rows).rows(f"({with_neighbours})", f"({no_rows})")


def _newest(groups: Sequence[str]) -> str:
    """Return the order of members, the newest first: a null group is the least."""
    return _listed(f"{AT} DESC", *(f"{name} DESC NULLS LAST" for name in groups))


def _listed(*parts: str) -> str:
    return ", ".join(part for part in parts if part)
