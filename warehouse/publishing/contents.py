"""The contents of ``warehouse.duckdb`` at an epoch: views over exactly the live rows, and facts about the warehouse.

Invariant: the view of a stream, relation or view gives `{ r : r in the files of its version at the epoch, r._exp > window time
}`, by the query that ``stream-wh scan`` runs, too. The view of a coalesced table without files computes its rows from the rows of
its stream. Schema ``main`` has the user's columns, schema ``system`` has system columns, too; ``_epochs``, ``_files`` and
``_tables`` are tables.

Paths come from the macro ``_root()``: the root for which the file was made, or the variable ``stream_wh_root`` of the
session that reads a copy of the warehouse elsewhere. The window time comes from the macro ``_window_time()``, so that the text of
a view says nothing about the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb

from warehouse.errors import ViewFailedError, WarehouseError
from warehouse.serving.guard import SYSTEM_SCHEMA
from warehouse.serving.history import EpochRow, FileRow, Instant
from warehouse.serving.sandbox import RecordTable, create_table, insert_records
from warehouse.serving.statement import SYSTEM_COLUMNS, Source, instant, select
from warehouse.serving.visible_tables import readable
from warehouse.storage.duckdb_sql import listed, literal, quoted
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.epochs.records import TableState
    from warehouse.serving.pin import Pin

__all__ = [
    "FORM",
    "ROOT_VARIABLE",
    "Contents",
    "Definitions",
    "TableDefinition",
    "TableRow",
    "contents_of",
    "fill_database",
    "window_filter",
]

ROOT_VARIABLE = "stream_wh_root"
"""The variable that names the warehouse's directory when it has been moved or copied."""

FORM = 2
"""The form of the definitions, which the file records in the macro ``_form()``: a file of another form was made by another build.

A change of the definitions' text needs another number.
"""
_SCHEMAS = ("main", SYSTEM_SCHEMA)
_WINDOW_TIME = "main._window_time()"
_COMMENTS = {
    "_ts": "when the row begins",
    "_exp": "when the row ends; null: never",
    "_load_slot": "slot of the update that loaded it",
    "_exp_slot": "slot in which it ends",
    "sub_index": "cell of the grid",
    "exp_block": "expiry block",
}


@dataclass(frozen=True)
class TableRow:
    """What an engine that reads Delta needs of a table: its directory relative to the root, its version, and the filter.

    ``failed`` says why its rows cannot be read.
    """

    name: str
    kind: str
    path: str
    version: int
    window_time: Instant
    filter: str
    failed: str | None


@dataclass(frozen=True)
class _TableContents:
    """One table: its state, the user's columns with their DuckDB types, and its live files, or why there are none."""

    state: TableState
    columns: tuple[tuple[str, str], ...]
    source: Source | None
    failed: str | None = None


@dataclass(frozen=True)
class Contents:
    """The contents of the file without the rows of ``_epochs``; a query of an ``unreadable`` (damaged) table raises an error."""

    root: str
    number: int
    window_time: int
    tables: tuple[_TableContents, ...]
    table_rows: tuple[TableRow, ...]
    file_rows: tuple[FileRow, ...]
    unreadable: tuple[str, ...]


def window_filter(window_time: int) -> str:
    """Return the condition that live rows meet at a window time (microseconds), as SQL for any engine."""
    return f"_exp > TIMESTAMP '{format_instant(window_time)}'"


def contents_of(pin: Pin, connection: duckdb.DuckDBPyConnection) -> Contents:
    """Return the contents of the file at a pinned epoch; no data file is opened.

    A view that failed, and a table whose log or zero-row file cannot be read, are in the file, but reading them is an error.
    """
    epoch = pin.epoch
    tables, unreadable = [], []
    for state in readable(epoch):
        columns: tuple[tuple[str, str], ...] = ()
        try:
            columns = pin.table_columns(connection, state)
            pin.state(state.name)
            tables.append(_TableContents(state, columns, pin.live_source(state, epoch.window_time)))
        except ViewFailedError as error:
            tables.append(_TableContents(state, columns, None, str(error)))
        except (WarehouseError, duckdb.Error) as error:
            unreadable.append(state.name)
            tables.append(_TableContents(state, columns, None, str(error).partition("\n")[0]))
    rows = tuple(
        TableRow(
            table.state.name,
            table.state.kind,
            table.state.path,
            table.state.version,
            Instant(epoch.window_time),
            window_filter(epoch.window_time),
            table.failed,
        )
        for table in tables
        if pin.lazy(table.state) is None
    )
    live = (table.state for table in tables if table.source is not None and pin.lazy(table.state) is None)
    files = tuple(row for state in live for row in pin.file_rows_of(state, epoch.window_time))
    return Contents(str(pin.root), epoch.number, epoch.window_time, tuple(tables), rows, files, tuple(unreadable))


@dataclass(frozen=True)
class TableDefinition:
    """The two views of a table. If two epochs have equal definitions, only the comments of the views differ.

    ``columns`` have their DuckDB types; ``texts`` are the queries of the views in ``main`` and in ``system`` and the comments of
    their columns; ``path_macros`` are the quoted names of the macros that list the files, and ``lists`` are the statements that
    make these macros, which differ from epoch to epoch.
    """

    columns: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    path_macros: tuple[str, ...]
    lists: tuple[str, ...] = field(compare=False)


Definitions = Mapping[str, TableDefinition]
"""The definitions in a file, by table."""


def fill_database(
    connection: duckdb.DuckDBPyConnection,
    catalog: str,
    contents: Contents,
    epochs: Sequence[EpochRow],
    former: Definitions | None = None,
) -> Definitions:
    """Create the tables and views in an attached database, which becomes the current one, and return the views' definitions.

    The database is empty, or it has the contents of a former epoch. Then ``former`` are its definitions, of which only the
    changed ones are made again, and ``epochs`` are the rows that it lacks. While a view is created, its list of files has only
    the zero-row file, so that DuckDB opens no other file.
    """
    definitions: dict[str, TableDefinition] = {}
    connection.execute(f"USE {quoted(catalog)}")
    connection.execute("BEGIN TRANSACTION")
    fill = create_table if former is None else insert_records
    fill(connection, RecordTable("_epochs", EpochRow, tuple(epochs)))
    create_table(connection, RecordTable("_files", FileRow, contents.file_rows))
    create_table(connection, RecordTable("_tables", TableRow, contents.table_rows))
    connection.execute("; ".join(_statements(contents, quoted(catalog), former or {}, definitions)))
    connection.execute("COMMIT")
    return definitions


def _statements(contents: Contents, catalog: str, former: Definitions, definitions: dict[str, TableDefinition]) -> Iterator[str]:
    """Yield the statements that make the definitions that differ from ``former``; fill ``definitions``."""
    root = literal(contents.root)
    yield f"CREATE OR REPLACE MACRO main._root() AS coalesce(getvariable('{ROOT_VARIABLE}'), {root})"
    yield f"CREATE OR REPLACE MACRO {_WINDOW_TIME} AS {instant(contents.window_time)}"
    yield f"CREATE OR REPLACE MACRO main._form() AS {FORM}"
    yield f"CREATE SCHEMA IF NOT EXISTS {catalog}.{SYSTEM_SCHEMA}"
    macros_of = {}
    for table in contents.tables:
        name = table.state.name
        macros = macros_of[name] = _PathMacros(contents.root, name)
        texts = tuple(_view_statements(table, catalog, macros))
        definitions[name] = TableDefinition(table.columns, texts, macros.names, tuple(macros.macros(schema_only=False)))
    for name, definition in former.items():
        if definitions.get(name) != definition:
            yield from (f"DROP VIEW {_view_name(catalog, schema, name)}" for schema in _SCHEMAS)
            yield from (f"DROP MACRO {macro}" for macro in definition.path_macros)
    as_of = f"live at window time {format_instant(contents.window_time)} (epoch {contents.number})"
    for table in contents.tables:
        name = table.state.name
        lists = former[name].lists if name in former else ()
        if former.get(name) != definitions[name]:
            yield from macros_of[name].macros(schema_only=True)
            yield from definitions[name].texts
            lists = ()
        comment = literal(f"{table.state.kind}: rows {as_of}")
        yield from (f"COMMENT ON VIEW {_view_name(catalog, schema, name)} IS {comment}" for schema in _SCHEMAS)
        yield from (statement for statement in definitions[name].lists if statement not in lists)


def _view_statements(table: _TableContents, catalog: str, macros: _PathMacros) -> Iterator[str]:
    """Yield the statements that create the views of a table, with comments of their columns."""
    for schema, columns in zip(_SCHEMAS, (table.columns, (*table.columns, *SYSTEM_COLUMNS)), strict=True):
        name = _view_name(catalog, schema, table.state.name)
        yield f"CREATE VIEW {name} AS {_query(table, columns, macros)}"
        if table.columns:
            names = {column for column, _ in columns}
            comments = _comments(table.state) if schema == "main" else _COMMENTS  # each costs as much as a small query
            for column, comment in comments.items():
                if column in names:
                    yield f"COMMENT ON COLUMN {name}.{quoted(column)} IS {literal(comment)}"


def _view_name(catalog: str, schema: str, table: str) -> str:
    return f"{catalog}.{schema}.{quoted(table)}"


def _query(table: _TableContents, columns: Sequence[tuple[str, str]], macros: _PathMacros) -> str:
    """Return the query of a view; where rows stay until they end, it is the same whether or not some files may have dead rows."""
    if table.source is not None:
        names = [name for name, _ in columns]
        return select(table.source, names, paths=macros, window_time=_WINDOW_TIME, both_lists=not table.state.keyed)
    empty = ", ".join(f"NULL::{kind} AS {quoted(name)}" for name, kind in columns) if table.columns else "NULL AS unreadable"
    return f"SELECT {empty} WHERE error({literal(table.failed or '')}) IS NULL"


def _comments(state: TableState) -> dict[str, str]:
    key = state.declaration.search_key
    comments = {column.name: column.type for column in state.declaration.columns}
    for position, name in enumerate(key, 1):
        comments[name] += "; search key" + (f", part {position} of {len(key)}" if len(key) > 1 else "")
    return comments


class _PathMacros:
    """Lists of files as macros, so that a query names a list once, and relative to the root."""

    def __init__(self, root: str, table: str) -> None:
        self._prefix = f"{root}/"
        self._table = table
        self._lists: dict[tuple[str, ...], str] = {}

    def __call__(self, paths: Sequence[str]) -> str:
        """Return the SQL expression of a list of absolute paths."""
        path_list = tuple(paths)
        name = self._lists.setdefault(path_list, f"main.{quoted(f'_paths_{self._table}_{len(self._lists) + 1}')}")
        return f"{name}()"

    @property
    def names(self) -> tuple[str, ...]:
        """The quoted names of the macros."""
        return tuple(self._lists.values())

    def macros(self, *, schema_only: bool) -> Iterator[str]:
        """Yield the statements that make the lists; ``schema_only``: lists of their first file alone, which has no rows."""
        for paths, name in self._lists.items():
            used_paths = paths[:1] if schema_only else paths
            names = listed(["/" + path.removeprefix(self._prefix) for path in used_paths])
            yield f"CREATE OR REPLACE MACRO {name}() AS list_transform({names}, lambda path: main._root() || path)"
