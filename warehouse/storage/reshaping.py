"""Changes the columns of a side table and keeps its rows: the short-lived results of a view with new columns.

New columns are added to the table's schema, and columns that the view no longer has stay in it. If a column has another type now,
the files with values of the former type are written again. Values are converted. If the new type cannot represent a value
exactly, the value is also kept, in a column ``_former_NAME_TYPE``, and is restored if the type returns.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import Schema
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warehouse.objects.path import parquet_source
from warehouse.storage.commit import commit, unstage
from warehouse.storage.definition_commits import set_columns
from warehouse.storage.driver_writer import as_stored
from warehouse.storage.duckdb_sql import in_memory, quoted
from warehouse.storage.fingerprint import damage, with_sums
from warehouse.storage.footers import bounded_leaves
from warehouse.storage.replay import replay
from warehouse.storage.store import store_of
from warehouse.storage.tables import lacks_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.storage.commit import CommitFacts
    from warehouse.storage.entries import LogEntry

__all__ = ["reshape"]

_FORMER = "_former_"
"""How the columns of values begin that the type of today cannot hold."""
_Fields = list[dict[str, Any]]


def reshape(
    table: Path,
    base: LogEntry,
    wanted: Mapping[str, Any],
    *,
    statistics: Sequence[str],
    facts: CommitFacts,
    at: int,
    staged: Callable[[], None],
) -> LogEntry | None:
    """Give a table further columns, or columns of another type, and return the new entry; None if it has them already.

    Parameters
    ----------
    table
        The table's directory.
    base
        The newest entry.
    wanted
        The wanted columns, a Spark struct type as JSON.
    statistics
        The columns whose bounds the log keeps.
    facts
        The commit's metadata.
    at
        The instant of the commit in microseconds.
    staged
        Called when the rewritten files are complete and not yet committed.

    """
    state = replay(table, base.version)
    now = json.loads(state.metadata["schemaString"])
    if not lacks_columns(now, wanted):
        return None
    changed = _changed_files(table, state.files, as_stored(to_arrow_schema(StructType.fromJson(dict(wanted)), timezone="UTC")))
    fields = _with_kept(wanted["fields"], [*now["fields"], *_former_fields(changed)])
    action = {"metaData": {**state.metadata, "schemaString": json.dumps({"type": "struct", "fields": fields})}}
    if not changed:
        return set_columns(table, base, action, facts.metadata, at)
    remaining = sum(_rows(add) for path, add in state.files.items() if path not in changed)
    written = _staged(table, changed)
    staged()
    return commit(
        table,
        base,
        statistics=statistics,
        leaving=None,
        facts=replace(facts, metadata={**facts.metadata, "remaining": remaining}),
        staged=written,
        table_metadata=action,
        gone={unquote(path) for path in changed},
    )


def _rows(add: Mapping[str, Any]) -> int:
    return int(json.loads(add.get("stats") or "{}").get("numRecords", 0))


def _with_kept(wanted: _Fields, former: _Fields) -> _Fields:
    """Return the wanted columns, then former columns without a successor; columns with the state of operators are dropped."""
    fields = list(wanted)
    names = {field["name"].lower() for field in wanted}
    for field in former:
        name = field["name"].lower()
        if name not in names and (name.startswith(_FORMER) or not name.startswith("_")):
            names.add(name)
            fields.append(field)
    return fields


# --- rewritten files ---


@dataclass(frozen=True)
class _Changed:
    """A file that is written again: the query that gives its rows, and its schema from then on."""

    statement: str
    schema: pa.Schema


def _changed_files(table: Path, files: Mapping[str, Any], wanted: pa.Schema) -> dict[str, _Changed]:
    """The files that have a column of another type or spelling; a damaged file stays, and `check` reports it."""
    changes = {}
    with in_memory(()) as connection:
        for path in sorted(files):
            file = table / unquote(path)
            try:
                changed = _change(connection, file, wanted)
            except (OSError, pa.ArrowException):
                continue
            if changed is not None:
                changes[path] = changed
    return changes


def _change(connection: duckdb.DuckDBPyConnection, file: Path, wanted: pa.Schema) -> _Changed | None:
    """How a file is written again; None: it stays as it is."""
    if damage(file) is not None:
        return None
    stored = as_stored(pq.read_schema(parquet_source(file)))
    news = {field.name.lower(): field for field in wanted}
    changed = [(field, news[field.name.lower()]) for field in stored if field.name.lower() in news]
    changed = [(old, new) for old, new in changed if (old.name, old.type) != (new.name, new.type)]
    if not changed:
        return None
    types = _types(connection, [stored, wanted])
    columns = {field.name: (quoted(field.name), field.type) for field in stored}
    for old, new in changed:
        former = f"{_FORMER}{new.name}_{_word(new.type)}"
        value = _converted(connection, quoted(old.name), types[str(old.type)], types[str(new.type)])
        if former in columns:
            value = f"coalesce({quoted(former)}, {value})"
        del columns[old.name]
        columns[new.name] = (value, new.type)
        former_name = f"{_FORMER}{new.name}_{_word(old.type)}"
        lost = _lost(connection, quoted(old.name), types[str(old.type)], types[str(new.type)])
        if _any(connection, file, lost):
            before = quoted(former_name) if former_name in stored.names else "NULL"
            columns[former_name] = (f"CASE WHEN {lost} THEN {quoted(old.name)} ELSE {before} END", old.type)
    schema = as_stored(pa.schema([pa.field(name, kind) for name, (_, kind) in columns.items()]))
    values = ", ".join(f"{value} AS {quoted(name)}" for name, (value, _) in columns.items())
    return _Changed(f"SELECT {values} FROM stored", schema)


def _word(kind: pa.DataType) -> str:
    """A type in a column's name.

    >>> _word(pa.int32()), _word(pa.list_(pa.string()))
    ('int32', 'list_item_string')
    """
    return re.sub(r"\W+", "_", str(kind)).strip("_")


def _types(connection: duckdb.DuckDBPyConnection, schemas: Sequence[pa.Schema]) -> dict[str, str]:
    """DuckDB's names of the types of columns, by Arrow's."""
    engine_types = {}
    for schema in schemas:
        names = connection.from_arrow(schema.empty_table()).types
        engine_types.update({str(field.type): str(name) for field, name in zip(schema, names, strict=True)})
    return engine_types


def _casts(connection: duckdb.DuckDBPyConnection, old: str, new: str) -> bool:
    try:
        connection.sql(f"SELECT TRY_CAST(CAST(NULL AS {old}) AS {new}), TRY_CAST(CAST(NULL AS {new}) AS {old})").fetchall()
    except duckdb.Error:
        return False
    return True


def _converted(connection: duckdb.DuckDBPyConnection, value: str, old: str, new: str) -> str:
    return f"TRY_CAST({value} AS {new})" if _casts(connection, old, new) else f"CAST(NULL AS {new})"


def _lost(connection: duckdb.DuckDBPyConnection, value: str, old: str, new: str) -> str:
    """Whether a value is another one once it was converted there and back."""
    if not _casts(connection, old, new):
        return f"({value} IS NOT NULL)"
    return f"({value} IS NOT NULL AND TRY_CAST(TRY_CAST({value} AS {new}) AS {old}) IS DISTINCT FROM {value})"


def _any(connection: duckdb.DuckDBPyConnection, file: Path, condition: str) -> bool:
    return any(rows.num_rows for rows in _queried(connection, file, f"SELECT 1 AS one FROM stored WHERE {condition}"))


def _queried(connection: duckdb.DuckDBPyConnection, file: Path, statement: str) -> Iterator[pa.Table]:
    """Yield the result of a statement over ``stored``, a file's rows, batch by batch."""
    with pq.ParquetFile(parquet_source(file), page_checksum_verification=True) as source:
        for batch in source.iter_batches():
            whole = pa.Table.from_batches([batch])
            connection.register("stored", whole.cast(as_stored(whole.schema)))
            yield connection.sql(statement).to_arrow_table()


def _former_fields(changed: Mapping[str, _Changed]) -> _Fields:
    """The columns of former values that files get, as Delta has them."""
    fields = {field.name: field for change in changed.values() for field in change.schema if field.name.startswith(_FORMER)}
    former: _Fields = json.loads(Schema.from_arrow(pa.schema(list(fields.values()))).to_json())["fields"] if fields else []
    return former


def _staged(table: Path, changed: Mapping[str, _Changed]) -> Path:
    """Write the files again into the staging directory, and return that directory."""
    unstage(table)  # files of an attempt that did not finish are not of this commit
    store = store_of(table)
    staged = store.staging_directory(table)
    with store.writing_into(staged) as directory, in_memory(()) as connection:
        written = [_rewritten(connection, table / unquote(path), directory, change) for path, change in changed.items()]
    if store.local_paths:
        with_sums(staged, [file.relative_to(staged) for file in written], whole=True)
    return staged


def _rewritten(connection: duckdb.DuckDBPyConnection, file: Path, directory: Path, changed: _Changed) -> Path:
    target = directory / f"part-{uuid.uuid4().hex}.parquet"
    bounded = bounded_leaves(changed.schema)
    with pq.ParquetWriter(
        target, changed.schema, compression="zstd", write_page_checksum=True, write_statistics=bounded
    ) as writer:
        for rows in _queried(connection, file, changed.statement):
            writer.write_table(rows.cast(changed.schema))
    return target
