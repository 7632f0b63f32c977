"""Times that a file has in pieces, such as a date and a time of day in two columns: the Spark SQL that combines them.

A ``format`` reads one column, and Spark's patterns read no weekday. So ``init --from`` proposes an expression for such times.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from warehouse.catalog.duck_sql import literal, quoted
from warehouse.catalog.proposed_key import snake_case
from warehouse.catalog.proposed_times import column_sql
from warehouse.catalog.time_names import LIFETIME_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.sniffed_file import SniffedColumn

__all__ = ["CombinedTime", "combined_times", "spark_name"]

CombinedTime = tuple[str, str, tuple[str, ...]]
"""A column of the table ``sample``, the Spark SQL that computes it, and the columns of the file that this SQL reads."""

_DAY = re.compile(r"(^|_)(dates?|day|datum|tag|fecha|data)(?=_|$)")
_CLOCK = re.compile(r"(^|_)(time|clock|uhrzeit|zeit|hora|ora|heure)(?=_|$)")
_TIME_SPELLINGS = (
    ("%H:%M:%S", "H:mm:ss"),
    ("%H:%M:%S.%f", "H:mm:ss[.SSSSSS][.SSSSS][.SSSS][.SSS][.SS][.S]"),
    ("%H:%M", "H:mm"),
    ("%H.%M.%S", "H.mm.ss"),
    ("%I:%M:%S %p", "h:mm:ss a"),
    ("%I:%M %p", "h:mm a"),
)
_SPARK_TIME_PATTERN = "H:mm[:ss]"
_WEEKDAY_SPELLINGS = (
    ("%a, %d %b %Y %H:%M:%S %z", "d MMM yyyy H:mm:ss Z", 6),
    ("%a, %d %b %Y %H:%M:%S GMT", "d MMM yyyy H:mm:ss z", 6),
    ("%a %b %d %H:%M:%S %Y", "MMM d H:mm:ss yyyy", 5),
    ("%a, %d %b %Y %H:%M:%S", "d MMM yyyy H:mm:ss", 6),
)
_WEB_LOG_PATTERN = "dd/MMM/yyyy:HH:mm:ssZ"
_WEB_LOG_TIME = re.compile(r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d$")


def spark_name(name: str) -> str:
    """Return a column's name as Spark SQL, in backticks unless it is a plain word."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in ("time", "day")
    return name if plain and column_sql(name) == name else f"`{name}`"


def combined_times(connection: DuckDBPyConnection, columns: Sequence[SniffedColumn]) -> Iterator[CombinedTime]:
    """Add a column to the table ``sample`` for each time that is in pieces, and yield it."""
    for column in columns:
        if column.type == "string" and (sql := _time_after_weekday(connection, column.name)):
            yield _add_column(connection, f"{column.name} as a time", sql, (column.name,))
    for first, second in pairwise(columns):
        if (first.type, second.type) == ("string", "string") and (sql := _web_log_time(connection, first.name, second.name)):
            yield _add_column(connection, f"{first.name} {second.name}", sql, (first.name, second.name))
    days = [column for column in columns if column.type == "date" or _has_only_midnights(connection, column)]
    clocks = [(column, clock) for column in columns if days and (clock := _time_of_day(connection, column))]
    for day in days:
        matching = [(column, clock) for column, clock in clocks if _name_without(_DAY, day) == _name_without(_CLOCK, column)][:1]
        if len(days) == 1:
            matching = clocks
        for column, (duck, pattern) in matching:
            date, text = spark_name(day.name), f"trim({spark_name(column.name)})"
            if _has_24_hours(connection, column.name):
                date = f"date_add({date}, CASE WHEN {text} LIKE '24:%' THEN 1 ELSE 0 END)"
                text = f"regexp_replace({text}, '^24:', '00:')"
            spark = f"to_timestamp(concat(date_format({date}, 'yyyy-MM-dd'), ' ', {text}), 'yyyy-MM-dd {pattern}')"
            duck_sql = f"{quoted(day.name)}::DATE + {duck}"
            yield _add_column(connection, f"{day.name} {column.name}", (duck_sql, spark), (day.name, column.name))


def _add_column(connection: DuckDBPyConnection, name: str, sql: tuple[str, str], parts: tuple[str, ...]) -> CombinedTime:
    duck, spark = sql
    connection.execute(f"ALTER TABLE sample ADD COLUMN {quoted(name)} TIMESTAMPTZ")
    connection.execute(f"UPDATE sample SET {quoted(name)} = {duck}")
    return name, spark, parts


def _name_without(kind: re.Pattern[str], column: SniffedColumn) -> str | None:
    """Return a column's name without its word for a day or a time of day; None if it has no such word."""
    words = re.sub(r"[^0-9a-z\u00df-\uffff]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.source or column.name).lower())
    words = words.strip("_")
    return kind.sub("", words).strip("_") if kind.search(words) else None


def _has_only_midnights(connection: DuckDBPyConnection, column: SniffedColumn) -> bool:
    if column.type != "timestamp":
        return False
    name = quoted(column.name)
    other_times = f"count(*) FILTER ({name} != date_trunc('day', {name}))"
    row = connection.execute(f"SELECT {other_times}, count({name}) FROM sample").fetchone()
    return row is not None and row[0] == 0 and row[1] > 0


def _time_of_day(connection: DuckDBPyConnection, column: SniffedColumn) -> tuple[str, str] | None:
    """Return DuckDB's SQL and Spark's pattern for a column of times of day; None for other columns."""
    words = snake_case(column.source or column.name).strip("_")
    if column.type != "string" or not column.is_time_of_day or LIFETIME_NAME.search(words):
        return None
    name = quoted(column.name)
    (kind,) = connection.execute(f"SELECT any_value(typeof({name})) FROM sample").fetchone() or ("",)
    if kind == "TIME":
        return name, _SPARK_TIME_PATTERN
    for spelling, pattern in _TIME_SPELLINGS:
        text = f"try_strptime(trim({name}::VARCHAR), {literal(spelling)})"
        if _parses_all(connection, name, text):
            return f"{text}::TIME", pattern
    return None


def _has_24_hours(connection: DuckDBPyConnection, column: str) -> bool:
    """Whether a column of times of day has 24:00, which is the beginning of the next day."""
    row = connection.execute(f"SELECT bool_or({quoted(column)}::VARCHAR LIKE '24:%') FROM sample").fetchone()
    return row is not None and bool(row[0])


def _time_after_weekday(connection: DuckDBPyConnection, column: str) -> tuple[str, str] | None:
    name = quoted(column)
    for spelling, pattern, begin in _WEEKDAY_SPELLINGS:
        duck_sql = f"try_strptime(trim({name}::VARCHAR), {literal(spelling)})"
        if _parses_all(connection, name, duck_sql):
            return f"CAST({duck_sql} AS TIMESTAMPTZ)", f"to_timestamp(substring({spark_name(column)}, {begin}), '{pattern}')"
    return None


def _web_log_time(connection: DuckDBPyConnection, day: str, zone: str) -> tuple[str, str] | None:
    """Return the SQL of DuckDB and Spark for a time in two fields, as web servers log it: ``[01/Jul/2024:08:00:00 +0000]``."""
    (sample,) = connection.execute(f"SELECT any_value({quoted(day)}::VARCHAR) FROM sample").fetchone() or (None,)
    if not isinstance(sample, str) or not _WEB_LOG_TIME.match(sample):
        return None
    text = f"substr({quoted(day)} || {quoted(zone)}, 2, 25)"
    duck_sql = f"try_strptime({text}, '%d/%b/%Y:%H:%M:%S%z')"
    if not _parses_all(connection, quoted(day), duck_sql):
        return None
    spark = f"to_timestamp(substring(concat({spark_name(day)}, {spark_name(zone)}), 2, 25), '{_WEB_LOG_PATTERN}')"
    return f"CAST({duck_sql} AS TIMESTAMPTZ)", spark


def _parses_all(connection: DuckDBPyConnection, name: str, time_sql: str) -> bool:
    counts = f"SELECT count({name}), count(*) FILTER ({time_sql} IS NULL AND {name} IS NOT NULL) FROM sample"
    filled, unparsed = connection.execute(counts).fetchone() or (0, 0)
    return bool(filled) and not unparsed
