"""Times that a file has in pieces, such as a day and a clock in two columns, each as Spark SQL that puts it together.

Spark's patterns read no weekday, and one column is one value; so ``init --from`` proposes an expression.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from warehouse.catalog.duck_sql import literal, quoted
from warehouse.catalog.proposed_key import words_of
from warehouse.catalog.proposed_times import column_sql
from warehouse.catalog.time_names import LIFETIME_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.sniffed_file import SniffedColumn

__all__ = ["Made", "made_times", "spark_name"]

Made = tuple[str, str, tuple[str, ...]]
"""A name in the table ``sample``, the Spark SQL that gives the same, and the columns of which it is made."""

_DAY = re.compile(r"(^|_)(dates?|day|datum|tag|fecha|data)(?=_|$)")
_CLOCK = re.compile(r"(^|_)(time|clock|uhrzeit|zeit|hora|ora|heure)(?=_|$)")
_CLOCKS = (
    ("%H:%M:%S", "H:mm:ss"),
    ("%H:%M:%S.%f", "H:mm:ss[.SSSSSS][.SSSSS][.SSSS][.SSS][.SS][.S]"),
    ("%H:%M", "H:mm"),
    ("%H.%M.%S", "H.mm.ss"),
    ("%I:%M:%S %p", "h:mm:ss a"),
    ("%I:%M %p", "h:mm a"),
)
_OF_TIMES = "H:mm[:ss]"
_AFTER_WEEKDAY = (
    ("%a, %d %b %Y %H:%M:%S %z", "d MMM yyyy H:mm:ss Z", 6),
    ("%a, %d %b %Y %H:%M:%S GMT", "d MMM yyyy H:mm:ss z", 6),
    ("%a %b %d %H:%M:%S %Y", "MMM d H:mm:ss yyyy", 5),
    ("%a, %d %b %Y %H:%M:%S", "d MMM yyyy H:mm:ss", 6),
)
_OF_WEB_LOGS = "dd/MMM/yyyy:HH:mm:ssZ"
_OPENED = re.compile(r"\[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d$")


def spark_name(name: str) -> str:
    """Return a column's name as Spark SQL, in backticks unless it is a plain word."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in ("time", "day")
    return name if plain and column_sql(name) == name else f"`{name}`"


def made_times(connection: DuckDBPyConnection, columns: Sequence[SniffedColumn]) -> Iterator[Made]:
    """Add to the table ``sample`` the times that are in pieces, and yield each."""
    for column in columns:
        if column.type == "string" and (found := _after_weekday(connection, column.name)):
            yield _added(connection, f"{column.name} as a time", found, (column.name,))
    for first, second in pairwise(columns):
        if (first.type, second.type) == ("string", "string") and (found := _of_web_log(connection, first.name, second.name)):
            yield _added(connection, f"{first.name} {second.name}", found, (first.name, second.name))
    days = [column for column in columns if column.type == "date" or _is_midnight(connection, column)]
    clocks = [(column, clock) for column in columns if days and (clock := _clock(connection, column))]
    for day in days:
        alike = [(column, clock) for column, clock in clocks if _rest(_DAY, day) == _rest(_CLOCK, column)][:1]
        if len(days) == 1:
            alike = clocks
        for column, (duck, pattern) in alike:
            date, text = spark_name(day.name), f"trim({spark_name(column.name)})"
            if _ends_days(connection, column.name):
                date = f"date_add({date}, CASE WHEN {text} LIKE '24:%' THEN 1 ELSE 0 END)"
                text = f"regexp_replace({text}, '^24:', '00:')"
            spark = f"to_timestamp(concat(date_format({date}, 'yyyy-MM-dd'), ' ', {text}), 'yyyy-MM-dd {pattern}')"
            read = f"{quoted(day.name)}::DATE + {duck}"
            yield _added(connection, f"{day.name} {column.name}", (read, spark), (day.name, column.name))


def _added(connection: DuckDBPyConnection, name: str, found: tuple[str, str], parts: tuple[str, ...]) -> Made:
    duck, spark = found
    connection.execute(f"ALTER TABLE sample ADD COLUMN {quoted(name)} TIMESTAMPTZ")
    connection.execute(f"UPDATE sample SET {quoted(name)} = {duck}")
    return name, spark, parts


def _rest(kind: re.Pattern[str], column: SniffedColumn) -> str | None:
    """Return a name without its word for a day or a clock; None if it has no such word."""
    words = re.sub(r"[^0-9a-z\u00df-\uffff]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.source or column.name).lower())
    words = words.strip("_")
    return kind.sub("", words).strip("_") if kind.search(words) else None


def _is_midnight(connection: DuckDBPyConnection, column: SniffedColumn) -> bool:
    if column.type != "timestamp":
        return False
    name = quoted(column.name)
    others = f"count(*) FILTER ({name} != date_trunc('day', {name}))"
    row = connection.execute(f"SELECT {others}, count({name}) FROM sample").fetchone()
    return row is not None and row[0] == 0 and row[1] > 0


def _clock(connection: DuckDBPyConnection, column: SniffedColumn) -> tuple[str, str] | None:
    """Return the SQL of DuckDB and of Spark that reads a column of clock times; None for other columns."""
    words = words_of(column.source or column.name).strip("_")
    if column.type != "string" or not column.clock or LIFETIME_NAME.search(words):
        return None
    name = quoted(column.name)
    (kind,) = connection.execute(f"SELECT any_value(typeof({name})) FROM sample").fetchone() or ("",)
    if kind == "TIME":
        return name, _OF_TIMES
    for spelling, pattern in _CLOCKS:
        text = f"try_strptime(trim({name}::VARCHAR), {literal(spelling)})"
        if _reads_all(connection, name, text):
            return f"{text}::TIME", pattern
    return None


def _ends_days(connection: DuckDBPyConnection, column: str) -> bool:
    """Whether a clock says 24:00, which is the beginning of the next day."""
    row = connection.execute(f"SELECT bool_or({quoted(column)}::VARCHAR LIKE '24:%') FROM sample").fetchone()
    return row is not None and bool(row[0])


def _after_weekday(connection: DuckDBPyConnection, column: str) -> tuple[str, str] | None:
    name = quoted(column)
    for spelling, pattern, begin in _AFTER_WEEKDAY:
        read = f"try_strptime(trim({name}::VARCHAR), {literal(spelling)})"
        if _reads_all(connection, name, read):
            return f"CAST({read} AS TIMESTAMPTZ)", f"to_timestamp(substring({spark_name(column)}, {begin}), '{pattern}')"
    return None


def _of_web_log(connection: DuckDBPyConnection, day: str, zone: str) -> tuple[str, str] | None:
    """Return the time of a web server's log, ``[01/Jul/2024:08:00:00 +0000]``, which spans two fields."""
    (one,) = connection.execute(f"SELECT any_value({quoted(day)}::VARCHAR) FROM sample").fetchone() or (None,)
    if not isinstance(one, str) or not _OPENED.match(one):
        return None
    text = f"substr({quoted(day)} || {quoted(zone)}, 2, 25)"
    read = f"try_strptime({text}, '%d/%b/%Y:%H:%M:%S%z')"
    if not _reads_all(connection, quoted(day), read):
        return None
    spark = f"to_timestamp(substring(concat({spark_name(day)}, {spark_name(zone)}), 2, 25), '{_OF_WEB_LOGS}')"
    return f"CAST({read} AS TIMESTAMPTZ)", spark


def _reads_all(connection: DuckDBPyConnection, name: str, read: str) -> bool:
    counts = f"SELECT count({name}), count(*) FILTER ({read} IS NULL AND {name} IS NOT NULL) FROM sample"
    some, others = connection.execute(counts).fetchone() or (0, 0)
    return bool(some) and not others
