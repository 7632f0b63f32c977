"""The connections that run SQL of the user's: views over exactly the live files of some tables, and nothing else.

A sandbox opens the files of its tables at one epoch and one instant, and no others: allowed paths are set, then access
to the file system is switched off and the configuration is locked.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from warehouse.serving.engine import sandbox_settings
from warehouse.serving.guard import CATALOG, SYSTEM_SCHEMA
from warehouse.serving.statement import SYSTEM_COLUMNS, Source, select
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.time import to_datetime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

__all__ = ["RecordTable", "Rejected", "TableView", "create_table", "open_sandbox", "rejected_query"]

REJECTED_COLUMNS = (
    ("file", "VARCHAR"),
    ("record", "BIGINT"),
    ("reason", "VARCHAR"),
    ("message", "VARCHAR"),
    ("raw", "VARCHAR"),
    ("epoch", "BIGINT"),
)
_TYPES = {
    "int": "BIGINT",
    "int | None": "BIGINT",
    "float": "DOUBLE",
    "float | None": "DOUBLE",
    "str": "VARCHAR",
    "str | None": "VARCHAR",
    "bool": "BOOLEAN",
    "Instant": "TIMESTAMP WITH TIME ZONE",
}


@dataclass(frozen=True)
class TableView:
    """A table as SQL sees it: its files and the user's columns."""

    name: str
    source: Source
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Rejected:
    """A table's rejected rows."""

    table: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class RecordTable:
    """A table of frozen records; their fields are its columns."""

    name: str
    kind: type
    records: tuple[Any, ...]


def open_sandbox(
    connection: duckdb.DuckDBPyConnection,
    views: Sequence[TableView],
    records: Sequence[RecordTable] = (),
    rejected: Sequence[Rejected] | None = None,
    *,
    in_system: bool,
    allowed: Sequence[str] = (),
    below: Sequence[str] = (),
) -> None:
    """Restrict a new connection to these tables.

    ``in_system`` says whether the schema with the system columns is wanted. ``allowed`` files, and files ``below`` directories,
    may also be read although no view has them.
    """
    try:
        connection.execute(f"CREATE SCHEMA {CATALOG}.{SYSTEM_SCHEMA}")
        for table in records:
            create_table(connection, table)
        sources = [view.source for view in views]
        paths = [path for source in sources for path in (source.schema_file, *(() if source.memory else source.files))]
        paths += [*allowed, *(path for rejected_of_table in rejected or () for path in rejected_of_table.files)]
        connection.execute(sandbox_settings(paths, below))
        for view in views:
            for relation, rows in view.source.tables.items():
                connection.from_arrow(rows).create_view(relation)
            connection.execute(f"CREATE VIEW {quoted(view.name)} AS {select(view.source, view.columns)}")
            if in_system:
                all_columns = (*view.columns, *(name for name, _ in SYSTEM_COLUMNS))
                system = f"{CATALOG}.{SYSTEM_SCHEMA}.{quoted(view.name)}"
                connection.execute(f"CREATE VIEW {system} AS {select(view.source, all_columns)}")
        if rejected is not None:
            connection.execute(f"CREATE VIEW _rejected AS {rejected_query(rejected)}")
    except BaseException:
        connection.close()
        raise


def create_table(connection: duckdb.DuckDBPyConnection, table: RecordTable) -> None:
    """Create a table of records in the connection's current database, in place of one of its name."""
    types: Mapping[str, str] = {field.name: _TYPES[str(field.type)] for field in fields(table.kind)}
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in types.items())
    connection.execute(f"CREATE OR REPLACE TABLE {quoted(table.name)} ({columns})")
    insert_records(connection, table)


def insert_records(connection: duckdb.DuckDBPyConnection, table: RecordTable) -> None:
    """Insert records into their table in the connection's current database."""
    if not table.records:
        return
    types: Mapping[str, str] = {field.name: _TYPES[str(field.type)] for field in fields(table.kind)}
    values: list[list[Any]] = [[getattr(record, name) for record in table.records] for name in types]
    for index, kind in enumerate(types.values()):
        if kind.startswith("TIMESTAMP"):
            values[index] = [to_datetime(instant) for instant in values[index]]
    lists = ", ".join(f"unnest(?::{kind}[])" for kind in types.values())
    connection.execute(f"INSERT INTO {quoted(table.name)} SELECT {lists}", values)


def rejected_query(rejected: Sequence[Rejected], *, with_table: bool = True) -> str:
    """Return the query of rejected rows; without files it has no rows."""
    names = ", ".join(quoted(name) for name, _ in REJECTED_COLUMNS)
    nulls = ", ".join(f"NULL::{kind} AS {quoted(name)}" for name, kind in REJECTED_COLUMNS)
    table = "table_name, " if with_table else ""
    parts = [f"SELECT NULL::VARCHAR AS table_name, {nulls} WHERE false"]
    for rejected_of_table in rejected:
        if rejected_of_table.files:
            paths = ", ".join(map(literal, rejected_of_table.files))
            parts.append(
                f"SELECT {literal(rejected_of_table.table)} AS table_name, * "
                f"FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false)"
            )
    return f"SELECT {table}{names} FROM ({' UNION ALL BY NAME '.join(parts)})"
