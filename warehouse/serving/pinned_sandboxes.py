"""The sandboxes of a pinned epoch: connections that see the tables of a query as views of the live rows, and are used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.serving.engine import connect
from warehouse.serving.history import EpochRow, FileRow
from warehouse.serving.lazy_rows import lazy_states
from warehouse.serving.pin import Pin, Sandbox, require, until_now
from warehouse.serving.sandbox import RecordTable, Rejected, TableView, open_sandbox
from warehouse.serving.visible_tables import visible

if TYPE_CHECKING:
    import duckdb

    from warehouse.epochs.records import TableState
    from warehouse.serving.engine import Resources
    from warehouse.serving.guard import CheckedQuery

__all__ = ["EMPTY", "empty_sandbox_of", "sandbox_of"]

EMPTY = "empty"
"""How the identities of sandboxes without rows begin: they serve later epochs, too."""
_MAX_SANDBOXES = 8


def sandbox_of(
    pin: Pin,
    connection: duckdb.DuckDBPyConnection,
    resources: Resources,
    query: CheckedQuery,
    tau: int,
    *,
    open_until_now: bool = False,
) -> duckdb.DuckDBPyConnection:
    """Return a sandboxed connection in which a checked query's tables are views of the live rows at an instant.

    A query that lists tables finds all of them; tables that it does not read have no files in the sandbox.
    """
    identity = (query.tables, query.meta, query.lists, query.in_system, tau, open_until_now)
    sandbox = pin.sandboxes.pop(identity, None)
    if sandbox is None:
        views = _views(pin, connection, query, tau, open_until_now=open_until_now)
        records, rejected = _records(pin, query), _rejected(pin, query)
        opened = connect(resources) if pin.hot is None else pin.hot.connection()
        open_sandbox(opened, views, records, rejected, in_system=query.lists or query.in_system)
        sandbox = opened, tuple(path for view in views for path in view.source.files)
    else:
        require(sandbox[1])
    return _used(pin, identity, sandbox)


def empty_sandbox_of(
    pin: Pin, connection: duckdb.DuckDBPyConnection, resources: Resources, state: TableState
) -> duckdb.DuckDBPyConnection:
    """Return a sandboxed connection in which a table is a view without rows, and which may read the table's data files.

    Under a local root it may read any file below the table's directory, so later epochs use the same connection: opening one
    takes longer (*measured*: 13 ms) than reading the files of an update. The connection caches no footers.
    """
    path = pin.schema_file(state)
    columns = pin.table_columns(connection, state)
    files = [] if pin.copies is None else pin.live_files(state, pin.epoch.window_time)
    allowed = tuple(pin.local([file.path for file in files]))
    identity = (EMPTY, state.name, state.path, path, columns, allowed)
    sandbox = pin.sandboxes.pop(identity, None)
    if sandbox is None:
        opened = connect(resources)
        opened.execute("SET GLOBAL parquet_metadata_cache = false")
        view = TableView(state.name, pin.source(state, (), pin.epoch.window_time), tuple(name for name, _ in columns))
        directories = (f"{pin.root / state.path}/",) if pin.copies is None else ()
        open_sandbox(opened, [view], in_system=False, allowed=allowed, below=directories)
        sandbox = opened, ()
    return _used(pin, identity, sandbox)


def _used(pin: Pin, identity: tuple[object, ...], sandbox: Sandbox) -> duckdb.DuckDBPyConnection:
    """Return the connection of a sandbox, and mark the sandbox as used last; the pin forgets the one used longest ago."""
    pin.sandboxes[identity] = sandbox
    while len(pin.sandboxes) > _MAX_SANDBOXES:
        pin.sandboxes.pop(next(iter(pin.sandboxes)))  # an answer may still hold it
    return sandbox[0]


def _views(
    pin: Pin, connection: duckdb.DuckDBPyConnection, query: CheckedQuery, tau: int, *, open_until_now: bool
) -> list[TableView]:
    views = []
    for state in (*pin.epoch.tables, *lazy_states(pin.epoch)):
        if state.name in query.tables:
            files = pin.live_files(pin.state(state.name), tau)
            # rows in memory have relations that lists of tables must not show
            source = pin.read_source(connection, state, files, tau, hot=not query.lists)
            source = until_now(source, state, open_until_now=open_until_now)
        elif query.lists and state.kind != "state":
            source = pin.source(state, (), tau)
        else:
            continue
        names = tuple(name for name, _ in pin.table_columns(connection, state))
        views.append(TableView(state.name, source, names))
    return views


def _records(pin: Pin, query: CheckedQuery) -> list[RecordTable]:
    """Return the tables of epochs and files that a query reads; a table that it only lists is empty."""
    tables: list[RecordTable] = []
    if query.lists or "_epochs" in query.meta:
        epochs = pin.epoch_rows() if "_epochs" in query.meta else []
        tables.append(RecordTable("_epochs", EpochRow, tuple(epochs)))
    if query.lists or "_files" in query.meta:
        files = pin.file_rows(pin.epoch.window_time) if "_files" in query.meta else []
        tables.append(RecordTable("_files", FileRow, tuple(files)))
    return tables


def _rejected(pin: Pin, query: CheckedQuery) -> list[Rejected] | None:
    if "_rejected" not in query.meta:
        return [] if query.lists else None
    return [Rejected(state.name, pin.side_files(state.rejected)) for state in visible(pin.epoch)]
