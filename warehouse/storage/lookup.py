"""Lookups: the rows of a table's files that have one of some keys, found by DuckDB in the driver.

Few keys in a large table are a lookup, not a join. A Spark job reads every wanted column of all rows with code that it generates
for this plan, and takes seconds before the first row. DuckDB reads the key columns, and the other columns only for matching rows
(*measured*, 10 000 keys in 4.4 million rows of five columns, 400 MB on two cores: 0.2 s, by Spark 1.9 s). The result is a local
relation, so Spark knows its small number of rows for further plans.

Spark reads tables that are too large for one process, are not on a disk of this machine, or cannot be read by DuckDB.
"""

from __future__ import annotations

import logging
import re
from functools import cache, reduce
from threading import Lock
from typing import TYPE_CHECKING, Literal, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from warehouse.layout.columns import TIMES
from warehouse.storage.arrow_keys import have_key
from warehouse.storage.arrow_types import compared_alike
from warehouse.storage.duckdb_sql import in_memory, listed, literal, quoted
from warehouse.storage.recent_rows import LOWER, SMALL, recent_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql.types import StructType

    from warehouse.storage.snapshot import DataFile

__all__ = [
    "FAILURES",
    "FILE",
    "LARGE",
    "MATCHES",
    "WIDE",
    "Bound",
    "driver_connection",
    "held_by",
    "leave_to_spark",
    "live_at",
    "looked_up",
    "query_in_driver",
]

LARGE = 4 * 1024**3
"""Bytes of files that the driver reads at most; there are more executors than drivers."""
MATCHES = 200_000
"""Rows that are taken at most."""
WIDE = 48 * 1024**2
"""Upper bound of the bytes of collected rows, which Spark holds as a part of a plan."""
FILE = "_stream_wh_file"
"""The column of the path of the file that has a row."""
_AT_ONCE = 2_048
"""Rows after which their bytes are counted."""
FAILURES = (duckdb.Error, pa.ArrowException, OSError, KeyError, ValueError, RuntimeError)
"""The errors of DuckDB and Arrow; DuckDB raises ``OSError`` if it fails after its first rows."""
_SMALL = 1024**2
"""Bytes of files up to which one thread reads them."""
_GLOB = re.compile(r"[*?\[]")

_connecting = Lock()


class Bound(NamedTuple):
    """A condition on a column of whole numbers or times; those are compared in microseconds."""

    column: str
    sign: Literal[">", "<="]
    value: int


def live_at(slot: int, instant: int) -> list[Bound]:
    """Return the conditions of the rows that are live at an instant, which is in a slot."""
    return [Bound("_exp_slot", ">", slot), Bound("_exp", ">", instant)]


def driver_connection() -> duckdb.DuckDBPyConnection:
    """Return a connection to the driver's database in memory, whose temporary tables and views nobody else sees.

    Whoever uses it closes it. To open another database takes 13 ms (*measured*), more than to merge the states of many groups.
    """
    try:
        cursor = _connection(None).cursor()
        cursor.execute("SELECT 1").fetchall()
    except duckdb.Error:  # after a fatal error it answers nothing any more
        _connected.cache_clear()
        cursor = _connection(None).cursor()
    return cursor


def query_in_driver(query: str, tables: Mapping[str, pa.Table]) -> pa.Table | None:
    """Return the answer of a query over small tables; None if DuckDB cannot run it."""
    try:
        with _connection(1).cursor() as cursor:
            for name, rows in tables.items():
                cursor.register(name, rows)
            return cursor.sql(query).to_arrow_table()
    except FAILURES as error:
        leave_to_spark(error)
        return None


def leave_to_spark(error: Exception) -> None:
    """Log why Spark does the work instead."""
    logging.getLogger("warehouse").info("left to Spark: %s", error)
    if isinstance(error, (duckdb.FatalException, duckdb.InternalException)):
        _connected.cache_clear()  # it answers nothing any more


def looked_up(
    files: Sequence[DataFile],
    schema: StructType,
    keys: pa.Table | None,
    where: Sequence[Bound] = (),
    most: int | None = None,
    *,
    with_file: bool = False,
) -> pa.Table | None:
    """Return the rows whose values of some columns are a row of ``keys``; None: Spark must read them.

    Parameters
    ----------
    files
        The files that may have such rows.
    schema
        The wanted columns, in order.
    keys
        Values of columns, with the table's names; null equals null. Columns that the engines might compare in different ways are
        ignored; then the result has more rows. None: all rows.
    where
        Further conditions on columns of the table, all of which hold.
    most
        Upper bound of the collected rows, if fewer than ``MATCHES``.
    with_file
        Whether the rows also have the column ``FILE``.

    """
    wanted = to_arrow_schema(schema, timezone="UTC")
    kinds = {field.name.lower(): field.type for field in wanted}
    if keys is not None:
        keys = keys.select(
            [field.name for field in keys.schema if compared_alike(field.type) and kinds.get(field.name.lower()) == field.type]
        )
        if not keys.num_columns or len(set(keys.column_names)) < keys.num_columns:
            return None
    if with_file:
        wanted = wanted.append(pa.field(FILE, pa.string()))
    if any("://" in file.path or _GLOB.search(file.path) for file in files) or sum(file.size for file in files) > LARGE:
        return None
    if not files or (keys is not None and not keys.num_rows):
        return wanted.empty_table()
    most = MATCHES if most is None else min(most, MATCHES)
    try:
        cached = _kept(files, with_file=with_file)
        if cached is not None:
            rows = _matching_in_memory(cached, wanted, keys, where)
            return rows.cast(wanted) if rows.num_rows <= most and rows.nbytes <= WIDE else None
        with _connection(1 if sum(file.size for file in files) <= _SMALL else None).cursor() as cursor:
            matches = _rows_up_to(_matching(cursor, files, wanted, keys, where), most)
            return None if matches is None else matches.rename_columns(wanted.names).cast(wanted)
    except FAILURES as error:
        leave_to_spark(error)
        return None


@cache
def _connected(threads: int | None) -> duckdb.DuckDBPyConnection:
    return in_memory(["temp_directory = ''", "memory_limit = '1GB'", *([] if threads is None else [f"threads = {threads}"])])


def _connection(threads: int | None) -> duckdb.DuckDBPyConnection:
    """A database with a number of threads; None: one for each core. Threads with little work cost more than they save."""
    with _connecting:
        return _connected(threads)


def _matching(
    cursor: duckdb.DuckDBPyConnection, files: Sequence[DataFile], wanted: pa.Schema, keys: pa.Table | None, where: Sequence[Bound]
) -> pa.RecordBatchReader:
    """The rows of files, which DuckDB reads."""
    joined = ""
    if keys is not None:
        names = [f"key_{number}" for number in range(keys.num_columns)]
        cursor.register("keys", keys.rename_columns(names))
        signs = ["IS NOT DISTINCT FROM" if column.null_count else "=" for column in keys.columns]
        compared = zip(keys.column_names, signs, names, strict=True)
        joined = " SEMI JOIN keys ON " + " AND ".join(
            f"held.{quoted(column)} {sign} keys.{name}" for column, sign, name in compared
        )
    columns = ", ".join(f"held.{quoted(name)}" for name in wanted.names)
    kinds = {field.name.lower(): field.type for field in wanted}
    holds = [f"{_whole(bound, kinds)} {bound.sign} {bound.value}" for bound in where]
    condition = f" WHERE {' AND '.join(holds)}" if holds else ""
    paths = listed(file.path for file in files)
    named = f", filename = {literal(FILE)}" if FILE in wanted.names else ""
    source = f"read_parquet({paths}, union_by_name = true, hive_partitioning = false{named})"
    return cursor.sql(f"SELECT {columns} FROM {source} AS held{joined}{condition}").to_arrow_reader(_AT_ONCE)


def _whole(bound: Bound, kinds: Mapping[str, pa.DataType]) -> str:
    kind = kinds.get(bound.column.lower())
    is_time = bound.column in TIMES or (kind is not None and pa.types.is_timestamp(kind))
    return f"epoch_us(held.{quoted(bound.column)})" if is_time else f"held.{quoted(bound.column)}"


def _matching_in_memory(cached: pa.Table, wanted: pa.Schema, keys: pa.Table | None, where: Sequence[Bound]) -> pa.Table:
    """Return the matching rows of small files in memory, as DuckDB would find them, with column names in lower case."""
    conditions = [_holds(cached[bound.column.translate(LOWER)], bound) for bound in where]
    if keys is not None:
        columns = [cached[name.translate(LOWER)] for name in keys.column_names]
        pairs = zip(columns, keys.columns, strict=True)
        conditions.append(have_key([column.cast(key.type) for column, key in pairs], keys.columns))
    rows = cached.select([name.translate(LOWER) for name in wanted.names]).rename_columns(wanted.names)
    return rows.filter(reduce(pc.and_, conditions)) if conditions else rows


def held_by(rows: pa.Table, where: Sequence[Bound]) -> pa.Table:
    """Return the rows in memory for which all conditions hold."""
    return rows.filter(reduce(pc.and_, [_holds(rows[bound.column], bound) for bound in where]))


def _holds(column: pa.ChunkedArray, bound: Bound) -> pa.ChunkedArray:
    """Whether a condition holds of each value; null of a null, which a filter drops."""
    whole = column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    return pc.greater(whole, bound.value) if bound.sign == ">" else pc.less_equal(whole, bound.value)


def _kept(files: Sequence[DataFile], *, with_file: bool) -> pa.Table | None:
    """The rows of small files, which this process may have in memory; None if DuckDB must read the files."""
    if any(file.size > SMALL for file in files) or sum(file.size for file in files) > _SMALL:
        return None
    parts = []
    for file in files:
        rows = recent_rows().of(file.path, file.size)
        if rows is None:
            return None
        parts.append(rows.append_column(FILE, pa.repeat(file.path, rows.num_rows)) if with_file else rows)
    alike = all(rows.schema.equals(parts[0].schema) for rows in parts)
    try:
        return pa.concat_tables(parts, promote_options="none" if alike else "default")
    except pa.ArrowException:  # a column has several types, which DuckDB makes alike
        return None


def _rows_up_to(reader: pa.RecordBatchReader, most: int) -> pa.Table | None:
    """Return all rows; None if they are too many or too wide."""
    batches, rows, size = [], 0, 0
    for batch in reader:
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows > most or size > WIDE:
            return None
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)
