"""Detects columns of a sample that are times or durations although DuckDB took them for something else.

Each function examines one column of the table ``sample``. If it recognises the column, it converts the column in the table to
times (durations to a number of seconds), and returns the ``format`` with which Spark reads it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from warehouse.catalog.csv_dialect import PATTERN_PARTS
from warehouse.catalog.duck_sql import quoted
from warehouse.catalog.durations import DURATION, FORMS, WRITTEN_WITH_UNITS, seconds_in_duckdb
from warehouse.catalog.proposed_key import snake_case
from warehouse.catalog.source_columns import EPOCH_FORMATS
from warehouse.catalog.time_names import EXPIRY_NAME, LIFETIME_NAME

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["duration_format", "far_end", "is_named_as_time", "is_named_as_year", "no_end_value", "time_format", "year_format"]

_TIME_NAME = re.compile(
    r"(^|[^a-z])(ts|time|timestamp|date|epoch|at|seen|until|exp|expir\w*|expires_\w+|iat|nbf|valid|start\w*|end\w*|created|updated|zeit\w*)([^a-z]|$)"
)
_YEAR_NAME = re.compile(r"(^|_)(year|jahr|annee|ano|anno)(_|$)")
# Counts since 1970 that lie between 2001 and 2100, by unit.
_EPOCHS = (
    ("epoch_seconds", 1_000_000_000, 4_102_444_800),
    ("epoch_milliseconds", 1_000_000_000_000, 4_102_444_800_000),
    ("epoch_microseconds", 1_000_000_000_000_000, 4_102_444_800_000_000),
    ("epoch_nanoseconds", 1_000_000_000_000_000_000, 4_102_444_800_000_000_000),
)
_NUMBERS = ("int", "bigint", "double")
_DIGITS = r"^[0-9]{9,19}([.][0-9]+)?$"
_ONE_DIGIT_PARTS = {**PATTERN_PARTS, "%d": "d", "%m": "M", "%H": "H", "%I": "h"}
"""Parts of patterns that match one digit or two."""
_DATE_SPELLINGS = (
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),  # first: patterns with four digits would read a year of antiquity
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y:%m:%d"),
    *("%d-%b-%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%b %d %Y", "%b-%d-%Y", "%b %d, %Y", "%B %d, %Y"),
)
_TIME_SPELLINGS = (
    *(" %H:%M:%S", " %H:%M", ", %H:%M:%S", ", %H:%M", " %I:%M:%S %p", " %I:%M %p", ", %I:%M:%S %p", ", %I:%M %p"),
    *(" %I.%M.%S %p", " %H.%M.%S", " %Hh%M", ""),
)
_SPELLINGS = (
    *(day + clock for day in _DATE_SPELLINGS for clock in _TIME_SPELLINGS),
    *("%d/%b/%Y:%H:%M:%S %z", "%Y-%m-%d %H:%M:%S,%g", "%Y-%m-%dT%H:%M:%S,%g", "%Y-%m-%d %H:%M:%S %z"),
    *("%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M%z", "%Y%m%dT%H%M%SZ", "%Y%m%dT%H%M%S", "%Y-%m"),
)
"""Common patterns of times; if day and month cannot be distinguished, the day comes first."""
_LIKE_A_TIME = re.compile(
    r"\s*(\w{1,4}[./ -]\w{1,9}[./ -]\d{2,4}(\s*$|.*\d[:.h]\d\d)|[12]\d{3}-\d\d\s*$|\w{3,9} \d{1,2}, \d{4}|\d{8}T\d{4}"
    r"|[12]\d{3}:\d\d:\d\d )"
)
_DIGIT_FORMATS = (
    ("%Y%m%d", "yyyyMMdd", 1900_01_01, 2100_12_31),
    ("%Y%m%d%H%M%S", "yyyyMMddHHmmss", 19000101_000000, 21001231_235959),
)
"""Days and moments that are written as one number, such as 20240501, with their bounds."""
_YEAR_BOUNDS = (1000, 2200)
_ZONE_NAMES = {
    "CET": (1, "Europe/Paris"), "CEST": (2, "Europe/Paris"), "EET": (2, "Europe/Athens"), "EEST": (3, "Europe/Athens"),
    "WET": (0, "Europe/Lisbon"), "WEST": (1, "Europe/Lisbon"), "UTC": (0, "UTC"), "GMT": (0, "UTC"),
}
"""Zone names that mean one zone everywhere: the hours ahead of UTC, and a region whose rules Spark uses for them."""
_SPELLINGS_BEFORE_ZONES = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d %b %Y %H:%M:%S")


def time_format(
    connection: DuckDBPyConnection, source: str, sql: str, *, digits: bool, has_times: bool
) -> str | None:
    """Return the format of a column's times, a pattern or a unit since 1970; None if it has no times.

    Parameters
    ----------
    source, sql
        The column's name in the file, and its Spark SQL type.
    digits
        Whether a number may be a day, such as 20240501; True for text columns.
    has_times
        Whether the file has other times; then a number is a time only if the column's name says so.
    """
    detected = _epoch_unit(connection, source, sql, has_times=has_times) or _pattern(connection, source, sql)
    if detected is None and digits and sql == "bigint" and is_named_as_time(source):
        detected = _digit_pattern(connection, source)
    return detected


def is_named_as_time(source: str) -> bool:
    """Whether a name has a word for a time in it.

    >>> [is_named_as_time(name) for name in ("createdAt", "last_seen", "order_id")]
    [True, True, False]
    """
    return _TIME_NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", source).lower()) is not None


def no_end_value(connection: DuckDBPyConnection, source: str, sql: str) -> str | None:
    """Return the value for "no end" in a column of ends, the number 0, as Spark SQL of the converted time; else None."""
    if not _is_named_as_end(source) or (sql not in _NUMBERS and not sql.startswith("decimal")):
        return None
    (zeros,) = _row(connection, f"SELECT count(*) FROM sample WHERE {quoted(source)} = 0")
    return "timestamp_seconds(0)" if zeros else None


def far_end(connection: DuckDBPyConnection, source: str, sql: str) -> str | None:
    """Return the time in the year 9999 that stands for "no end" beside other times, as Spark SQL; such values become null.

    None if the column has no such time, or no other one.
    """
    if sql not in ("timestamp", "date"):
        return None
    column, form = quoted(source), "%Y-%m-%d" if sql == "date" else "%Y-%m-%d %H:%M:%S"
    last = f"year({column}) = 9999"
    query = f"SELECT strftime(mode({column}) FILTER ({last}), '{form}'), count(*) FILTER (NOT {last}) FROM sample"
    text, others = _row(connection, query)
    if text is None or not others:
        return None
    connection.execute(f"UPDATE sample SET {column} = NULL WHERE {last} AND strftime({column}, '{form}') = '{text}'")
    return f"DATE'{text}'" if sql == "date" else f"TIMESTAMP'{text}Z'"


def _is_named_as_end(source: str) -> bool:
    return EXPIRY_NAME.search(snake_case(source).strip("_")) is not None


def is_named_as_year(source: str) -> bool:
    """Whether a name has a word for a year in it."""
    return _YEAR_NAME.search(snake_case(source)) is not None


def duration_format(connection: DuckDBPyConnection, source: str, sql: str) -> tuple[str, str] | None:
    """Return the type and the format of a text column of durations, such as ``5m``; None if it has no durations.

    Clock times and bare numbers are durations only if the column's name says so.
    """
    if sql != "string":
        return None
    column = quoted(source)
    forms = FORMS if LIFETIME_NAME.search(snake_case(source).strip("_")) else WRITTEN_WITH_UNITS[1:]
    seconds = seconds_in_duckdb(f"CAST({column} AS VARCHAR)", forms)
    counts = f"count({seconds}), count({column}) FILTER (trim(CAST({column} AS VARCHAR)) != ''), sum({seconds} % 1)"
    parsed, filled, parts = _row(connection, f"SELECT {counts} FROM sample")
    if not filled or parsed != filled:
        return None
    kind, duck = ("double", "DOUBLE") if parts else ("bigint", "BIGINT")
    connection.execute(f"ALTER TABLE sample ALTER {column} TYPE {duck} USING CAST({seconds} AS {duck})")
    return kind, DURATION


def year_format(connection: DuckDBPyConnection, source: str) -> str | None:
    """Return the pattern of a column of whole numbers that are all years; None if one is not."""
    column = quoted(source)
    low, high = _row(connection, f"SELECT min({column}), max({column}) FROM sample")
    if low is None or not _YEAR_BOUNDS[0] <= low <= high <= _YEAR_BOUNDS[1]:
        return None
    year = f"make_timestamptz({column}::BIGINT, 1, 1, 0, 0, 0)"
    connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING {year}")
    return "yyyy"


def _epoch_unit(connection: DuckDBPyConnection, source: str, sql: str, *, has_times: bool) -> str | None:
    """Return the unit of a column of times since 1970, from its range, and from its name if the file has other times."""
    named_as_time = is_named_as_time(source)
    is_named = named_as_time or EXPIRY_NAME.fullmatch(snake_case(source)) is not None  # `to`, but not `to_account`
    column = quoted(source)
    if sql == "string" and named_as_time:
        digits = f"count(*) FILTER (regexp_matches(CAST({column} AS VARCHAR), '{_DIGITS}')), count({column})"
        matching, filled = _row(connection, f"SELECT {digits} FROM sample")
        if not filled or matching != filled:
            return None
    elif (sql not in _NUMBERS and not sql.startswith("decimal")) or (has_times and not is_named):
        return None
    number = f"nullif({column}::DOUBLE, 0)" if _is_named_as_end(source) else f"{column}::DOUBLE"  # 0: it has no end
    low, high = _row(connection, f"SELECT min({number}), max({number}) FROM sample")
    for unit, first, last in _EPOCHS:
        if low is not None and first <= low and high <= last:
            micros = f"make_timestamptz(CAST({number} * {EPOCH_FORMATS[unit]} AS BIGINT))"
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING {micros}")
            return unit
    return None


def _pattern(connection: DuckDBPyConnection, source: str, sql: str) -> str | None:
    """Return the pattern of a text column with times in one spelling that DuckDB does not detect; None for other columns."""
    if sql != "string":
        return None
    column = quoted(source)
    (example,) = _row(connection, f"SELECT any_value({column}) FROM sample WHERE {column} IS NOT NULL")
    if not isinstance(example, str) or not _LIKE_A_TIME.match(example):
        return None
    # The end of a day may be written 24:00, which is the beginning of the next.
    text = f"regexp_replace(trim({column}), '([T ])24:00', '\\100:00')"
    later = f"to_days(CAST(regexp_matches({column}, '[T ]24:00') AS INTEGER))"
    for spelling in _SPELLINGS:
        count = f"count(*) FILTER (try_strptime({text}, $spelling) IS NULL)"
        (mismatches,) = connection.execute(
            f"SELECT {count} FROM sample WHERE {column} != ''", {"spelling": spelling}
        ).fetchone() or (1,)
        if not mismatches:
            stamp = f"CAST(try_strptime({text}, '{spelling}') AS TIMESTAMPTZ) + {later}"
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING {stamp}")
            return _spark_pattern(spelling)
    return _with_zone_name(connection, column)


def _with_zone_name(connection: DuckDBPyConnection, column: str) -> str | None:
    """Return the pattern of times that all end with a zone name such as CEST, if Spark reads each time correctly.

    Spark takes a name for a region with its rules, and ignores the season of the name. So columns with an hour that occurs twice,
    or with CET in summer, get no pattern. Ambiguous names (BST, IST, CST) get none, either.
    """
    text = f"trim({column})"
    name, local = f"regexp_extract({text}, ' ([A-Z]{{3,4}})$', 1)", f"regexp_replace({text}, ' [A-Z]{{3,4}}$', '')"
    hours = " ".join(f"WHEN '{zone}' THEN {hours}" for zone, (hours, _) in _ZONE_NAMES.items())
    regions = " ".join(f"WHEN '{zone}' THEN '{region}'" for zone, (_, region) in _ZONE_NAMES.items())
    for spelling in _SPELLINGS_BEFORE_ZONES:
        moment = f"try_strptime({local}, '{spelling}')"
        instant = f"timezone('UTC', {moment} - to_hours(CASE {name} {hours} END))"
        spark_instant = f"timezone(CASE {name} {regions} END, {moment})"
        count = f"count(*) FILTER (({instant} = {spark_instant}) IS NOT TRUE)"
        (mismatches,) = _row(connection, f"SELECT {count} FROM sample WHERE {column} != ''") or (1,)
        if not mismatches:
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING {instant}")
            return f"{_spark_pattern(spelling)} z"
    return None


def _spark_pattern(spelling: str) -> str:
    """Return Spark's pattern for one of the spellings; a Z after a time means UTC in every stream's zone.

    >>> _spark_pattern("%Y-%m-%dT%H:%MZ"), _spark_pattern("%d.%m.%Y %H:%M")
    ("yyyy-M-d'T'H:mmX", 'd.M.yyyy H:mm')
    """
    parts = PATTERN_PARTS if "%Y%m" in spelling else _ONE_DIGIT_PARTS  # without signs between them, both digits are needed
    pieces = re.split(r"(%.)", spelling)
    parts = {**parts, "%z": "Z" if "%b" in spelling else "[XXX][XX][X]"}  # web logs write offsets in one way
    return "".join(parts[piece] if piece.startswith("%") else _quoted_letters(piece) for piece in pieces)


def _quoted_letters(text: str) -> str:
    return re.sub("[A-Za-z]", lambda letter: "X" if letter[0] == "Z" else f"'{letter[0]}'", text)


def _digit_pattern(connection: DuckDBPyConnection, source: str) -> str | None:
    """Return the pattern of a column whose numbers are all dates, such as 20240501, or instants; None for other columns."""
    column = quoted(source)
    for spelling, pattern, low, high in _DIGIT_FORMATS:
        moment = f"try_strptime(CAST({column} AS VARCHAR), '{spelling}')"
        mismatches = f"count(*) FILTER ({column} NOT BETWEEN {low} AND {high} OR {moment} IS NULL)"
        filled, mismatched = _row(connection, f"SELECT count({column}), {mismatches} FROM sample WHERE {column} IS NOT NULL")
        if filled and not mismatched:
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING CAST({moment} AS TIMESTAMPTZ)")
            return pattern
    return None


def _row(connection: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    return next(iter(connection.execute(query).fetchall()), ())
