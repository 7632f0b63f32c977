"""How ``warehouse.duckdb`` differs from the file that an epoch makes: all definitions and rows are compared."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import duckdb

from warehouse.epochs.journal import epoch_numbers
from warehouse.publishing.contents import FORM
from warehouse.publishing.database import DATABASE, attach_read_only, make_database
from warehouse.serving.engine import Resources, kept_connection
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from warehouse.epochs.records import Epoch

__all__ = ["DatabaseDifference", "database_difference"]

_FOUND, _EXPECTED = "found", "expected"
_PARTS = {
    "views": "schema_name, view_name, sql, comment, view_name FROM duckdb_views()",
    "columns": "schema_name, table_name, column_name, data_type, comment, table_name FROM duckdb_columns()",
    "macros": "schema_name, function_name, macro_definition, function_name FROM duckdb_functions()",
    "tables": "schema_name, table_name, table_name FROM duckdb_tables()",
}
"""Queries for the definitions in a database, each with the name of its table last; the root is left out, since it may differ."""

_ROOT_MACRO = "_root"


@dataclass(frozen=True)
class DatabaseDifference:
    """A fault of the file.

    ``moved``: it was made for another directory. ``other_build``: another build made it in this directory, and its contents were
    not compared; neither were they if another build made a moved file.
    """

    kind: Literal["missing", "damaged", "stale", "changed", "moved", "other_build"]
    message: str


def database_difference(root: Path, epoch: Epoch) -> DatabaseDifference | None:
    """Return how the file differs from the contents of the newest epoch; None if it does not, or if the root is in a store.

    Tables whose log or zero-row file cannot be read are ignored.
    """
    if not store_of(root).local_paths:
        return None
    root = root.resolve()
    if not (root / DATABASE).exists():
        return DatabaseDifference("missing", "the file is not there")
    try:
        with _opened({root / DATABASE: _FOUND}) as connection:
            stale = _stale(connection, epoch)
            if stale is not None:
                return stale
            form, moved = _form(connection), _moved(connection, root)
        if form != FORM:
            message = "another version of stream-wh made it, with other views"
            return moved or DatabaseDifference("other_build", message)
        return _contents_difference(root, epoch) or moved
    except duckdb.Error as error:
        return DatabaseDifference("damaged", f"it cannot be read: {str(error).partition(chr(10))[0]}")


@contextmanager
def _opened(databases: Mapping[Path, str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to database files, read-only, each under its name."""
    with kept_connection(Resources(threads=1)) as connection:
        for path, name in databases.items():
            attach_read_only(connection, path, name)
        yield connection
        for name in databases.values():
            connection.execute(f"DETACH {name}")


def _form(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Return the form of the definitions; None if the file records none, because a former build made it."""
    try:
        row = connection.execute(f"SELECT {_FOUND}.main._form()").fetchone()
    except duckdb.CatalogException:
        return None
    return None if row is None else row[0]


def _contents_difference(root: Path, epoch: Epoch) -> DatabaseDifference | None:
    readable = [number for number in epoch_numbers(root) if number <= epoch.number]
    with tempfile.TemporaryDirectory(prefix="stream-wh-") as scratch:
        expected = Path(scratch) / DATABASE  # DuckDB words definitions in another way once they are stored
        contents, _ = make_database(expected, root, epoch, rebuild=True)
        with _opened({root / DATABASE: _FOUND, expected: _EXPECTED}) as connection:
            stale = _stale(connection, epoch)  # an update may have replaced it meanwhile
            changed = None if stale else _changed_part(connection, contents.unreadable, readable[0])
    if changed is not None:
        return DatabaseDifference("changed", f"its {changed} not as epoch {epoch.number} makes them")
    return stale


def _stale(connection: duckdb.DuckDBPyConnection, epoch: Epoch) -> DatabaseDifference | None:
    (newest,) = connection.execute(f"SELECT max(number) FROM {_FOUND}._epochs").fetchall()[0]
    if newest == epoch.number:
        return None
    return DatabaseDifference("stale", f"it is of epoch {newest}, the newest is {epoch.number}")


def _moved(connection: duckdb.DuckDBPyConnection, root: Path) -> DatabaseDifference | None:
    made_for = connection.execute(f"SELECT {_FOUND}.main._root()").fetchone()
    if made_for != (str(root),):
        return DatabaseDifference("moved", f"it was made for {made_for[0] if made_for else None}, where its views look for files")
    return None


def _changed_part(connection: duckdb.DuckDBPyConnection, unreadable: Collection[str], oldest: int) -> str | None:
    """Return the first part that differs, as the beginning of a message; None if all parts are equal."""
    for part, query in _PARTS.items():
        found, expected = _definitions(connection, query, unreadable)
        if found != expected:
            return f"{part} are"
    for table, column in (("_epochs", "number"), ("_files", "table_name"), ("_tables", "name")):
        if _rows_differ(connection, table, column, oldest, unreadable):
            return f"rows of {table} are"
    return None


def _definitions(
    connection: duckdb.DuckDBPyConnection, query: str, unreadable: Collection[str]
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Return definitions in the file and in the expected one; one query lists the definitions of all databases."""
    names = f"database_name IN ('{_FOUND}', '{_EXPECTED}') AND NOT internal"
    rows = connection.execute(f"SELECT database_name, {query} WHERE {names}").fetchall()
    compared = sorted((row for row in rows if row[-1] != _ROOT_MACRO and not _belongs_to(str(row[-1]), unreadable)), key=repr)
    found, expected = ([row[1:] for row in compared if row[0] == name] for name in (_FOUND, _EXPECTED))
    return found, expected


def _belongs_to(name: str, tables: Collection[str]) -> bool:
    return any(name == table or name.startswith(f"_paths_{table}_") for table in tables)


def _rows_differ(
    connection: duckdb.DuckDBPyConnection, table: str, column: str, oldest: int, unreadable: Collection[str]
) -> bool:
    """Whether a table has different rows in the two databases; unreadable epochs and tables are ignored."""
    condition = f"number >= {oldest}" if column == "number" else f"{column} NOT IN (SELECT unnest(?::VARCHAR[]))"
    parameters = [] if column == "number" else [list(unreadable)]
    queries = [f"(SELECT * FROM {catalog}.{table} WHERE {condition})" for catalog in (_FOUND, _EXPECTED)]
    for query, other_query in (queries, queries[::-1]):
        if connection.execute(f"{query} EXCEPT ALL {other_query} LIMIT 1", [*parameters, *parameters]).fetchone():
            return True
    return False
