"""Finds the columns of a file with DuckDB: their Spark SQL types, and properties of their values.

A column whose name is not allowed in a table gets an allowed one (``id.orig_h`` becomes ``id_orig_h``); the original name is its
source. Numbers whose range and name fit become times since 1970, in the unit that fits.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from warehouse.catalog.combined_times import combined_times
from warehouse.catalog.duck_sql import literal, quoted
from warehouse.catalog.duck_types import spark_type
from warehouse.catalog.file_format import format_of
from warehouse.catalog.log_lines import log_format_of
from warehouse.catalog.model import COLUMNAR, LINE_FORMATS
from warehouse.catalog.nested_objects import flatten_objects
from warehouse.catalog.sample_table import make_sample_table, refuse_unreadable
from warehouse.catalog.sniffed_file import SniffedColumn, SniffedFile
from warehouse.catalog.spelling import FaultError
from warehouse.catalog.syslog import TEXTS
from warehouse.catalog.time_detection import (
    duration_format,
    far_end,
    is_named_as_time,
    is_named_as_year,
    no_end_value,
    time_format,
    year_format,
)
from warehouse.catalog.types import unusable_name
from warehouse.layout.columns import is_reserved
from warehouse.time import DAY, FIRST_INSTANT, NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.csv_dialect import CsvDialect
    from warehouse.catalog.model import Format

__all__ = ["column_name", "is_amount", "sniff"]

_TEXTS = ("csv", "json", *LINE_FORMATS)
_NEARLY_ALL = 0.95
_DAY = r"\d{4}-\d\d-\d\d"
_WHOLE = r"0|-?[1-9]\d{0,17}"
_HUNDREDTHS = [number / 100 for number in range(101)]
_MOST_BIGINT = 1 << 63
_TIME_OF_DAY = (
    r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?"
    r"|-?(\d+([.]\d+)?(ns|us|\x{b5}s|\x{3bc}s|ms|s|m|h))+"
)
"""Times of a day, and durations as programs log them, such as 12ms and 1m0.5s."""


def sniff(source: Path, folder_columns: Mapping[str, Sequence[str | None]] | None = None) -> SniffedFile:
    """Return the columns of a file, and the properties of their values in a sample.

    ``folder_columns`` are the texts that folders give for columns; the first one is that of the file.

    Raises
    ------
    UsageError
        When the file does not exist, has another format, or cannot be read.

    """
    import duckdb  # noqa: PLC0415 - only this command looks at a file

    given = folder_columns or {}
    kind, endings = format_of(source)
    log = log_format_of(source) if kind == "csv" else None
    kind = log[0] if log is not None else kind
    try:
        with duckdb.connect() as connection, TemporaryDirectory(prefix="stream-wh-") as folder:
            connection.execute("SET TimeZone = 'UTC'")
            dialect, unfit = make_sample_table(connection, kind, log, source, Path(folder))
            if kind in ("json", *COLUMNAR):
                flatten_objects(connection)
            for name, texts in given.items():
                _add_folder_column(connection, name, texts)
            columns = _columns(connection, kind, dialect)
            if kind == "parquet":
                columns = _with_duration_units(columns, dialect.path)
            combined = tuple(
                replace(_summary(connection, SniffedColumn(name, "timestamp")), expression=sql, parts=parts)
                for name, sql, parts in (combined_times(connection, columns) if kind in _TEXTS else ())
            )
            gaps = _gaps(connection, (*columns, *combined))
            (rows,) = _row(connection, "SELECT count(*) FROM sample")
            sample = _sample_rows(connection, (*columns, *combined))
            columns = tuple(replace(column, distinct=len(given.get(column.name, ())) or column.distinct) for column in columns)
            return SniffedFile(
                kind, endings, dialect.options, columns, gaps, rows, dialect.guessed, sample, combined, unfit, tuple(given)
            )
    except (duckdb.Error, OSError, EOFError, zlib.error) as error:
        refuse_unreadable(kind, source, error)


def _add_folder_column(connection: DuckDBPyConnection, name: str, texts: Sequence[str | None]) -> None:
    """Add a column that has the first text in each row, as the type of all texts, to the table ``sample``; or replace it."""
    known = [text for text in texts if text is not None]
    (days, whole) = _row(
        connection,
        f"SELECT bool_and(regexp_full_match(text, '{_DAY}') AND TRY_CAST(text AS date) IS NOT NULL), "
        f"bool_and(regexp_full_match(text, '{_WHOLE}')) FROM (SELECT unnest($texts) AS text)",
        {"texts": known},
    )
    kind = "DATE" if days else "BIGINT" if whole else "VARCHAR"
    value = "NULL" if texts[0] is None else literal(texts[0])
    described = connection.execute("SELECT column_name FROM (DESCRIBE sample)").fetchall()
    same = next((column for (column,) in described if column.lower() == name.lower()), None)
    if same is not None:
        connection.execute(f"ALTER TABLE sample ALTER {quoted(same)} TYPE {kind} USING CAST({value} AS {kind})")
        if same != name:
            connection.execute(f"ALTER TABLE sample RENAME {quoted(same)} TO {quoted(name)}")
        return
    connection.execute(f"ALTER TABLE sample ADD COLUMN {quoted(name)} {kind} DEFAULT CAST({value} AS {kind})")


def _sample_rows(connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]) -> Any:  # noqa: ANN401 - a table of Arrow
    names = ", ".join(quoted(column.name) for column in columns if column.type) or "NULL AS nothing"
    return connection.sql(f"SELECT {names} FROM sample").to_arrow_table()


def _with_duration_units(columns: tuple[SniffedColumn, ...], plain: Path) -> tuple[SniffedColumn, ...]:
    """Return the columns with the units of durations, which Parquet stores as numbers: Arrow's schema in the file has them."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only Parquet files need it
    import pyarrow.types  # noqa: PLC0415 - same

    steps = {field.name: field.type.unit for field in pq.read_schema(plain) if pyarrow.types.is_duration(field.type)}
    return tuple(replace(column, duration_unit=steps.get(column.source or column.name)) for column in columns)


def _columns(connection: DuckDBPyConnection, kind: Format, dialect: CsvDialect) -> tuple[SniffedColumn, ...]:
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    has_times = any(duck.startswith("TIMESTAMP") or is_named_as_time(source) for source, duck in described)
    columns: list[SniffedColumn] = []
    used_names: set[str] = set()
    for index, (source, duck) in enumerate(described):
        if index in dialect.refused:
            columns.append(SniffedColumn(source, None, dialect.refused[index]))
            continue
        try:
            sql = _type(connection, source, duck, kind, dialect)
        except FaultError as fault:
            columns.append(SniffedColumn(source, None, str(fault)))
            continue
        times_known = has_times or any(column.type == "timestamp" for column in columns)
        no_end = no_end_value(connection, source, sql)
        format_ = time_format(connection, source, sql, digits=kind in ("csv", *LINE_FORMATS), has_times=times_known)
        if kind == "zeek" and sql == "timestamp":
            format_ = "epoch_seconds"
        duration = duration_format(connection, source, sql) if format_ is None and kind in _TEXTS else None
        sql, format_ = duration or ("timestamp" if format_ else sql, format_)
        name, end = dialect.file_names.get(index, source), no_end if sql == "timestamp" else None
        end = end or far_end(connection, source, sql)
        column = SniffedColumn(name, sql, format=format_, no_end=end)
        columns.append(_renamed(connection, column, source, described, used_names))
    if not any(column.type in ("timestamp", "date") for column in columns):
        columns = [_years_as_times(connection, column) for column in columns]
    return tuple(_summary(connection, column) if column.type else column for column in columns)


def _type(connection: DuckDBPyConnection, source: str, duck: str, kind: Format, dialect: CsvDialect) -> str:
    """Return the Spark SQL type of a column; DuckDB's type is corrected where it is too wide or too narrow for the text."""
    column = quoted(source)
    if kind == "syslog" and source in TEXTS:
        connection.execute(f"ALTER TABLE sample ALTER {column} TYPE VARCHAR")
        return "string"
    if duck == "JSON":  # values of several types; Spark reads texts without their quotes
        connection.execute(f"ALTER TABLE sample ALTER {column} TYPE VARCHAR USING json_extract_string({column}, '$')")
    if duck == "TIMESTAMPTZ_NS":
        duck = "TIMESTAMPTZ"
        connection.execute(f"ALTER TABLE sample ALTER {column} TYPE {duck}")
    sql = spark_type(duck, text=kind not in COLUMNAR)
    if sql in dialect.unreadable:
        return "string"
    if sql == "boolean" and kind == "csv":  # F alone is more likely female, or a mark
        (distinct,) = _row(connection, f"SELECT count(DISTINCT {column}) FROM sample")
        letters = f"count(*) FILTER (length(trim(text)) = 1) FROM ({dialect.texts_query(source)})"
        if distinct == 1 and _row(connection, f"SELECT {letters}", dialect.parameters)[0]:
            letter = f"CASE {column} WHEN true THEN 'T' ELSE 'F' END"
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE VARCHAR USING {letter}")
            return "string"
    if sql == "decimal(38,0)" and kind not in COLUMNAR:  # DuckDB takes negative numbers in JSON for such
        low, high = _row(connection, f"SELECT min({column}), max({column}) FROM sample")
        if low is not None and -_MOST_BIGINT <= low <= high < _MOST_BIGINT:
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE BIGINT")
            return "bigint"
    if duck.startswith("TIMESTAMP_"):  # in other units than microseconds
        connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMP")
    return sql


def _renamed(
    connection: DuckDBPyConnection, column: SniffedColumn, read: str, described: Sequence[tuple[str, str]], used_names: set[str]
) -> SniffedColumn:
    """Rename a column of the table ``sample`` to a name that a table can have; ``read`` is DuckDB's name for it."""
    source = column.name
    other_names = {other.lower() for other, _ in described if other != read}
    name = column_name(source, used_names | other_names, time=column.type == "timestamp")
    used_names.add(name.lower())
    if name != read:
        connection.execute(f"ALTER TABLE sample RENAME {quoted(read)} TO {quoted(name)}")
    return replace(column, name=name, source=source if name != source else None)


def _years_as_times(connection: DuckDBPyConnection, column: SniffedColumn) -> SniffedColumn:
    """Convert a column of years to times, for a file without other times."""
    if column.type != "bigint" or not is_named_as_year(column.source or column.name):
        return column
    format_ = year_format(connection, column.name)
    return replace(column, type="timestamp", format=format_) if format_ else column


def column_name(source: str, taken: set[str], *, time: bool) -> str:
    """Return the column name for a name in a file; it differs from the ``taken`` names (in lower case).

    >>> [column_name(source, set(), time=False) for source in ("id.orig_h", "TTL [s]", "ts")]
    ['id_orig_h', 'ttl_s', 'ts_value']
    """
    name = source
    if unusable_name(name) or is_reserved(name):
        name = re.sub(r"[^0-9a-z\u00df-\uffff]+", "_", source.lower()).strip("_")[:200] or "column"
        name = "column" if unusable_name(name) else name
    if name.lower() == "ts" and (not time or name != "ts"):  # ts is the arrival time
        name = "ts_value"
    if name.lower() in taken or is_reserved(name):
        name = next(candidate for number in range(2, len(taken) + 3) if (candidate := f"{name}_{number}").lower() not in taken)
    return name


def _summary(connection: DuckDBPyConnection, sniffed: SniffedColumn) -> SniffedColumn:
    column = quoted(sniffed.name)
    kind = sniffed.type or ""
    bounds = {
        "timestamp": _in_calendar(f"epoch_us({column})"),
        "date": _in_calendar(f"epoch_us({column})"),
        "bigint": column,
        "int": column,
    }.get(kind, "NULL::BIGINT")
    distinct_values = f"least(approx_count_distinct({column}), count({column}))"  # the estimate may be too high
    query = f"SELECT min({bounds}), max({bounds}), {distinct_values}, avg({bounds}) FROM sample"
    low, high, distinct, mean = _row(connection, query)
    amount = f"list_min({column})" if kind.startswith("array<") else column
    percentiles: tuple[float, ...] = ()
    unset = 0.0
    if is_amount(kind.removeprefix("array<").removesuffix(">")):
        share = f"avg(CAST({amount} IS NULL AS INTEGER))"
        listed, unset = _row(connection, f"SELECT quantile_cont({amount}::DOUBLE, {_HUNDREDTHS}), {share} FROM sample")
        percentiles = tuple(listed or ())
    elif kind in ("timestamp", "date"):
        (unset,) = _row(connection, f"SELECT avg(CAST({column} IS NULL AS INTEGER)) FROM sample")
    elif kind == "string":
        clocks = f"count(*) FILTER (regexp_full_match(CAST({column} AS VARCHAR), {literal(_TIME_OF_DAY)}))"
        clock_count, filled = _row(connection, f"SELECT {clocks}, count({column}) FROM sample")
        sniffed = replace(sniffed, is_time_of_day=bool(clock_count) and clock_count == filled)
    return replace(sniffed, low=low, high=high, distinct=distinct, mean=mean, percentiles=percentiles, unset=unset or 0.0)


def _in_calendar(micros: str) -> str:
    return f"CASE WHEN {micros} BETWEEN {FIRST_INSTANT} AND {NEVER} THEN {micros} END"


def is_amount(kind: str) -> bool:
    """Whether a Spark SQL type is that of numbers that can be amounts of time."""
    return kind in ("int", "bigint", "float", "double", "smallint") or kind.startswith("decimal")


def _gaps(connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]) -> dict[tuple[str, str], tuple[float, ...]]:
    times = {column.name: DAY if column.type == "date" else 0 for column in columns if column.type in ("timestamp", "date")}
    gaps = {}
    for first in times:
        for second, day in times.items():  # a date as an end is the end of its day
            gap = f"epoch_us({quoted(second)}) + {day} - epoch_us({quoted(first)})"
            ordered = f"count(*) FILTER ({gap} >= 0), count({gap}), max({gap})"
            follow, pairs, high = _row(connection, f"SELECT {ordered} FROM sample")
            if first != second and pairs and follow >= _NEARLY_ALL * pairs and high > 0:
                lives = f"quantile_cont(greatest({gap}, 0)::DOUBLE, {_HUNDREDTHS}) FILTER ({gap} IS NOT NULL)"
                (percentiles,) = _row(connection, f"SELECT {lives} FROM sample")
                gaps[first, second] = tuple(percentiles)
    return gaps


def _row(connection: DuckDBPyConnection, query: str, parameters: Mapping[str, Any] | None = None) -> tuple[Any, ...]:
    return next(iter(connection.execute(query, parameters or {}).fetchall()), ())
