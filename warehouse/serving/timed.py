"""Reads with a time limit: aggregates with bounds (:mod:`warehouse.serving.timed_aggregates`), and rows of keys found so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.errors import QueryError
from warehouse.serving.clock import Coverage
from warehouse.serving.key_conditions import probe_order, where_key
from warehouse.serving.keys import keys_of
from warehouse.serving.lazy_rows import lazy_error
from warehouse.serving.request import instant_of
from warehouse.serving.statement import Statement, select
from warehouse.serving.timed_aggregates import TimedAggregates
from warehouse.serving.timed_query import parts_of_query
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from warehouse.serving.clock import Clock
    from warehouse.serving.file_choice import Chooser
    from warehouse.serving.footers import Footers
    from warehouse.serving.guard import CheckedQuery
    from warehouse.serving.key_summaries import Summaries
    from warehouse.serving.pin import Pin
    from warehouse.serving.request import Request
    from warehouse.serving.timed_aggregates import TimedAnswer

__all__ = ["RowsFound", "aggregates_within", "rows_within"]

_STABLE = """SELECT function_name FROM duckdb_functions() WHERE function_type = 'scalar'
GROUP BY function_name HAVING bool_and(stability = 'CONSISTENT')"""
_HELD = "found"


def aggregates_within(
    connection: duckdb.DuckDBPyConnection,
    pin: Pin,
    query: CheckedQuery,
    sandbox: duckdb.DuckDBPyConnection,
    columns: tuple[tuple[str, str], ...],
    now: int | None,
    clock: Clock,
    known: tuple[Summaries, Footers],
) -> TimedAnswer:
    """Return the answer of a checked query of aggregates, as far as it is known when the time is over.

    Raises
    ------
    QueryError
        When the query needs more than such aggregates.

    """
    if len(query.tables) != 1 or query.meta or query.lists or query.in_system:
        raise QueryError("a query within a time reads one table by its name; leave the time out for any other")
    state = pin.state(next(iter(query.tables)))
    if pin.lazy(state) is not None:
        raise lazy_error(state.name, _AT_ONCE)
    user_columns = pin.table_columns(connection, state)
    stable = frozenset(name for (name,) in connection.execute(_STABLE).fetchall())
    parts = parts_of_query(connection, query.sql, [name for name, _ in user_columns], stable)
    tau = instant_of(pin, now)
    return TimedAggregates(pin, state, connection, sandbox, parts, columns, tau, *known).answer(clock)


_AT_ONCE = "an answer within a time is put together file by file"


@dataclass(frozen=True)
class RowsFound:
    """The rows of keys that were found, as a statement; the names and types of its columns; how much is known."""

    statement: Statement
    columns: tuple[tuple[str, str], ...]
    coverage: Coverage


def rows_within(
    connection: duckdb.DuckDBPyConnection,
    chooser: Chooser,
    pin: Pin,
    table: str,
    keys: Sequence[object],
    request: Request,
    clock: Clock,
) -> RowsFound:
    """Return the rows of keys that are found in time, at most the limit, in the order of a probe."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

    state, tau = pin.state(table), instant_of(pin, request.now)
    if pin.lazy(state) is not None:
        raise lazy_error(state.name, _AT_ONCE)
    shown = request.shown(pin.table_columns(connection, state))
    key = pin.key_columns(connection, state)
    selection = keys_of(keys, key)
    choice = chooser.choose(connection, pin, state, selection, tau)
    condition, order = where_key(selection, key), probe_order(key)
    hidden = [name for name in (*(column.name for column in key), "_exp", "_ts") if name not in {name for name, _ in shown}]
    names = [name for name, _ in shown]
    unread, read, results = list(choice.files), [], list[pa.Table]()
    count = 0
    while (request.limit is None or count < request.limit) and (batch := clock.next_files(unread, 0.0)):
        begun = clock.now()
        source = pin.read_source(connection, state, batch, tau, selection)
        text = select(source, [*names, *hidden], condition.sql, order, request.limit)
        cursor = connection.cursor()
        for name, rows in source.tables.items():
            cursor.register(name, rows)
        results.append(cursor.sql(text, params=condition.bound).to_arrow_table())
        cursor.close()
        count += results[-1].num_rows
        clock.measured(sum(file.size for file in batch), clock.now() - begun)
        read += batch
    all_files = (*read, *unread)
    stored, read_rows = (sum(file.rows or 0 for file in group) for group in (all_files, read))
    coverage = Coverage(not unread, len(all_files), len(read), stored, read_rows, not unread)
    schema = pin.source(state, (), tau)
    no_rows = connection.sql(select(schema, [*names, *hidden])).to_arrow_table()
    tables = {_HELD: pa.concat_tables([no_rows, *results])}
    columns = ", ".join(quoted(name) for name in names)
    end = "" if request.limit is None else f" LIMIT {request.limit}"
    statement = Statement(f"SELECT {columns} FROM {_HELD} ORDER BY {order}{end}", tables=tables)
    return RowsFound(statement, shown, coverage)
