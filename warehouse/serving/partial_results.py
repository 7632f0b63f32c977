"""Caches partial results of data files in memory: a repeated query of a dashboard reads only the files that an epoch added.

Files do not change under their names, but their rows expire slot by slot: a file's results are cached by group and expiration
slot, and results of slots that have ended are ignored. The cache is bounded in bytes, and is never written to a disk, where it
would outlive an erasure. The youngest files are read first, so files that an update will soon remove are read last, if they still
exist then.

Source: window-concurrency sheet, 8.1 (partial results for each sub-window, time-to-update order).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from warehouse.limits import limits
from warehouse.serving.aggregation import EXP_SLOT, FILE, Aggregation, aggregation_of
from warehouse.serving.engine import Resources, connect, sandbox_settings
from warehouse.serving.pin import require
from warehouse.serving.pinned_sandboxes import empty_sandbox_of
from warehouse.serving.watch import Watch
from warehouse.storage.duckdb_sql import listed, literal, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from warehouse.epochs.records import TableState
    from warehouse.serving.guard import CheckedQuery
    from warehouse.serving.pin import Pin
    from warehouse.storage.snapshot import DataFile

__all__ = ["CombinedRows", "Partials"]

_Known = TypeVar("_Known")

_FEWER = 4
"""Partial results that are more than the rows divided by this number are not cached."""
_FEW = 1_000
_LIVE = "live"
"""The view of the partial results that count at an instant."""
_QUERIES = 64
"""Queries that are remembered as they were taken apart."""
_AT_ONCE = 16
"""Files that are read by one query; then the newest epoch is checked again."""
_STABLE = """SELECT function_name FROM duckdb_functions() WHERE function_type = 'scalar'
GROUP BY function_name HAVING bool_and(stability = 'CONSISTENT')"""
_AVERAGED = frozenset(
    ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE")
)
"""Types whose average is the sum, as a double, divided by the count; DuckDB averages decimals in another way."""


@dataclass(frozen=True)
class CombinedRows:
    """Rows combined from partial results, their columns, the number of their files, and how many of these were read for it."""

    rows: pa.Table
    columns: tuple[tuple[str, str], ...]
    files: int
    files_read: int


@dataclass
class _CachedQuery:
    """The partial results of one query: the relation that holds them, the number and the bytes of each file in it."""

    relation: str
    numbers: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


class Partials:
    """The partial results that an open reader caches.

    Parameters
    ----------
    resources
        The bounds of the engine.

    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._kept: dict[object, _CachedQuery | None] = {}
        self._held: duckdb.DuckDBPyConnection | None = None
        self._stable: frozenset[str] = frozenset()
        self._numbers = count()
        self._halves: dict[object, Aggregation | None] = {}
        self._columns: dict[object, tuple[tuple[str, str], ...]] = {}
        self._texts: dict[object, str] = {}

    def close(self) -> None:
        """Free everything."""
        for cache in (self._kept, self._halves, self._columns, self._texts):
            cache.clear()
        if self._held is not None:
            self._held.close()
            self._held = None

    def combined(
        self, pin: Pin, connection: duckdb.DuckDBPyConnection, query: CheckedQuery, tau: int, between: Callable[[], None]
    ) -> CombinedRows | None:
        """Return the answer of a query at an instant that ends a slot; None: the query must run over the rows.

        Files with cached partial results are not opened: the user's expressions are evaluated in a sandbox with empty tables,
        which can read only the new files.

        Parameters
        ----------
        pin
            The epoch.
        connection
            Reads the columns of tables.
        query
            The checked query.
        tau
            The instant, not before the window time.
        between
            Called before files are read; if it raises an error, reading ends, and the results so far stay cached.

        """
        if len(query.tables) != 1 or query.meta or query.lists or query.in_system:
            return None
        if (tau - pin.epoch.anchor) % pin.epoch.update_interval:  # results of a slot are cached together
            return None
        state = pin.state(next(iter(query.tables)))
        if pin.is_hot(state) or pin.lazy(state) is not None:
            return None
        user_columns = pin.table_columns(connection, state)
        column_names = tuple(name for name, _ in user_columns)
        halves = _remembered(
            self._halves,
            (query.sql, column_names),
            lambda: aggregation_of(self._engine, query.sql, column_names, self._stable),
        )
        if halves is None:
            return None
        identity = (state.table_id, user_columns, halves.partial(""), pin.epoch.anchor, pin.epoch.update_interval)
        if self._kept.get(identity, identity) is None:
            return None
        try:
            sandbox = empty_sandbox_of(pin, connection, self._resources, state)
            with Watch(self._resources).over(sandbox):
                columns = _remembered(self._columns, (query.sql, user_columns), lambda: _columns(sandbox, query.sql))
                names = [name for name, _ in columns]
                text = _remembered(self._texts, (query.sql, user_columns), lambda: halves.whole(self._engine, _LIVE, names))
                return self._of_files(pin, sandbox, state, halves, columns, text, identity, tau, between)
        except duckdb.Error:
            self._drop(identity)
            return None  # the query reports its own error when it runs over the rows

    @property
    def _engine(self) -> duckdb.DuckDBPyConnection:
        """The connection that holds the partial results; it opens no files."""
        if self._held is None:
            self._held = connect(self._resources)
            self._stable = frozenset(name for (name,) in self._held.execute(_STABLE).fetchall())
            self._held.execute(sandbox_settings(()))
        return self._held

    def _of_files(
        self,
        pin: Pin,
        sandbox: duckdb.DuckDBPyConnection,
        state: TableState,
        halves: Aggregation,
        columns: tuple[tuple[str, str], ...],
        text: str,
        identity: object,
        tau: int,
        between: Callable[[], None],
    ) -> CombinedRows | None:
        last, schema = pin.last_slot(pin.epoch.window_time), pin.schema_file(state)
        cached = self._kept.pop(identity) if identity in self._kept else self._begun(sandbox, halves, schema)
        self._kept[identity] = cached  # the query used last is at the end
        if cached is None:
            return None
        files = pin.live_files(state, pin.epoch.window_time)
        self._forget(cached, cached.numbers.keys() - {file.path for file in files})
        uncached = [file for file in files if file.path not in cached.numbers]
        require(() if pin.copies is not None else [file.path for file in files])
        for batch in _youngest_first(uncached):
            between()
            paths = pin.local([file.path for file in batch])
            rows = _arrow(sandbox, halves.partial(_rows((schema, *paths), last)))
            if rows.num_rows > max(_FEW, sum(file.rows or 0 for file in batch) // _FEWER):
                self._drop(identity)
                self._kept[identity] = None
                return None
            self._keep(cached, rows, {path: file.path for path, file in zip(paths, batch, strict=True)})
        result = self._whole(cached, text, columns, pin.last_slot(tau))
        self._bound(identity)
        return None if result is None else CombinedRows(result, columns, len(files), len(uncached))

    def _begun(self, sandbox: duckdb.DuckDBPyConnection, halves: Aggregation, schema: str) -> _CachedQuery | None:
        """Make the relation of a query's partial results; None: it has averages that partial results do not give exactly."""
        no_rows = _rows((schema,), 0)
        cursor = sandbox.cursor()
        try:
            if halves.averaged:
                averaged = cursor.sql(f"SELECT {', '.join(halves.averaged)} FROM ({no_rows}) AS {quoted(halves.alias)}")
                if not {str(kind) for kind in averaged.types} <= _AVERAGED:
                    return None
            partial = cursor.sql(halves.partial(no_rows))
            types = dict(zip(partial.columns, map(str, partial.types), strict=True))
        finally:
            cursor.close()
        relation = f"_p{next(self._numbers)}"
        columns = ", ".join(f"{name} {kind}" for name, kind in {**types, FILE: "BIGINT"}.items())
        self._engine.execute(f"CREATE TABLE {relation} ({columns})")
        return _CachedQuery(relation)

    def _keep(self, cached: _CachedQuery, rows: pa.Table, paths: dict[str, str]) -> None:
        """Add the partial results of some files; ``paths`` has the recorded path of each local path in the rows."""
        import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here
        import pyarrow.compute as pc  # noqa: PLC0415 - same

        numbers = {path: next(self._numbers) for path in paths.values()}
        order = pc.index_in(rows[FILE], value_set=pa.array(list(paths), pa.string()))
        numbered = rows.set_column(
            rows.schema.get_field_index(FILE), FILE, pa.array(list(numbers.values()), pa.int64()).take(order)
        )
        cursor = self._engine.cursor()
        try:
            cursor.register("given", numbered)
            cursor.execute(f"INSERT INTO {cached.relation} SELECT * FROM given")
        finally:
            cursor.close()
        cached.numbers |= numbers
        cached.sizes |= dict.fromkeys(numbers, rows.nbytes // len(numbers))

    def _forget(self, cached: _CachedQuery, paths: set[str]) -> None:
        """Remove the partial results of deleted files."""
        if paths:
            numbers = [cached.numbers.pop(path) for path in paths]
            self._engine.execute(f"DELETE FROM {cached.relation} WHERE {FILE} IN (SELECT unnest(?::BIGINT[]))", [numbers])
            for path in paths:
                del cached.sizes[path]

    def _whole(self, cached: _CachedQuery, text: str, columns: Sequence[tuple[str, str]], last: int) -> pa.Table | None:
        """Combine the partial results by a query; None if the types differ from the types of the user's query."""
        cursor = self._engine.cursor()
        try:
            cursor.execute(
                f"CREATE OR REPLACE TEMP VIEW {_LIVE} AS SELECT * FROM {cached.relation} WHERE {EXP_SLOT} > {int(last)}"
            )
            relation = cursor.sql(text)
            same_types = [str(kind) for kind in relation.types] == [kind for _, kind in columns]
            return relation.to_arrow_table() if same_types else None
        finally:
            cursor.close()

    def _bound(self, newest: object) -> None:
        """Drop the least recently used results, and the newest last, until the remaining results are within the limit."""
        while self._kept and sum(sum(cached.sizes.values()) for cached in self._kept.values() if cached) > limits().partial_bytes:
            self._drop(next((identity for identity, cached in self._kept.items() if cached and identity != newest), newest))

    def _drop(self, identity: object) -> None:
        cached = self._kept.pop(identity, None)
        if cached is not None:
            self._engine.execute(f"DROP TABLE {cached.relation}")


def _remembered(cache: dict[object, _Known], key: object, compute: Callable[[], _Known]) -> _Known:
    """Return the cached value of a key, computed if it is missing; the value used last is at the end of the cache."""
    value = cache.pop(key) if key in cache else compute()
    cache[key] = value
    while len(cache) > _QUERIES:
        cache.pop(next(iter(cache)))
    return value


def _columns(sandbox: duckdb.DuckDBPyConnection, text: str) -> tuple[tuple[str, str], ...]:
    """Return the names and types of a query's columns."""
    cursor = sandbox.cursor()
    try:
        relation = cursor.sql(text)
        return tuple(zip(relation.columns, map(str, relation.types), strict=True))
    finally:
        cursor.close()


def _youngest_first(files: Sequence[DataFile]) -> Iterator[Sequence[DataFile]]:
    """Yield files in groups, first the files whose rows live longest (time-to-update order)."""
    ordered = sorted(files, key=lambda file: (-(file.max_exp_slot or 0), file.path))
    for first in range(0, len(ordered), _AT_ONCE):
        yield ordered[first : first + _AT_ONCE]


def _rows(paths: Sequence[str], last: int) -> str:
    """Return the query of the rows of files that live beyond a slot, with their files."""
    scan = f"read_parquet({listed(paths)}, union_by_name = true, hive_partitioning = false, filename = {literal(FILE)})"
    return f"SELECT * FROM {scan} WHERE {EXP_SLOT} > {int(last)}"


def _arrow(connection: duckdb.DuckDBPyConnection, text: str) -> Any:  # noqa: ANN401 - an Arrow table
    cursor = connection.cursor()
    try:
        return cursor.sql(text).to_arrow_table()
    finally:
        cursor.close()
