"""What a file holds, as DuckDB sees it: columns in Spark SQL types, and what values are like.

A column whose name no table can have gets one that it can (``id.orig_h`` is ``id_orig_h``), and keeps its own as its source.
Numbers that are times since 1970 by their range and their name become times, with their unit.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from warehouse.catalog.codecs import decompressed, is_compressed, plain_beginning
from warehouse.catalog.csv_dialect import PATTERN_PARTS, SAMPLE, CsvDialect, csv_dialect, literal_path, other_times
from warehouse.catalog.duck_sql import literal, quoted
from warehouse.catalog.duck_types import spark_type
from warehouse.catalog.first_look import format_of, spread_objects
from warehouse.catalog.json_arrays import LINES_OF_IT, is_array_file
from warehouse.catalog.made_times import made_times
from warehouse.catalog.model import COLUMNAR, MAX_RECORD
from warehouse.catalog.sniffed import Found, SniffedColumn
from warehouse.catalog.source_columns import EPOCH_FORMATS
from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import unusable_name
from warehouse.catalog.zeek import zeek_query
from warehouse.errors import UsageError
from warehouse.layout.columns import is_reserved
from warehouse.time import DAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.model import Format

__all__ = ["column_name", "is_amount", "sniff"]

_SHAPES = {
    "csv": "it should have a header and a record a line",
    "json": "it should have one JSON object a line, or be one array of objects",
    "parquet": "it may be cut short",
    "orc": "it may be cut short",
    "zeek": "it may be cut short",
}
_TEXTS = ("csv", "json")
_NEARLY_ALL = 0.95
_HUNDREDTHS = [number / 100 for number in range(101)]
_TIME_NAME = re.compile(
    r"(^|[^a-z])(ts|time|timestamp|date|epoch|at|seen|until|exp|expir\w*|expires_\w+|iat|nbf|valid|start\w*|end\w*|created|updated|zeit\w*)([^a-z]|$)"
)
# Counts since 1970 that lie between 2001 and 2100, by unit.
_EPOCHS = (
    ("epoch_seconds", 1_000_000_000, 4_102_444_800),
    ("epoch_milliseconds", 1_000_000_000_000, 4_102_444_800_000),
    ("epoch_microseconds", 1_000_000_000_000_000, 4_102_444_800_000_000),
    ("epoch_nanoseconds", 1_000_000_000_000_000_000, 4_102_444_800_000_000_000),
)
_LOOSE = {**PATTERN_PARTS, "%d": "d", "%m": "M", "%H": "H", "%I": "h", "%z": "Z"}
"""Parts of patterns that take one digit as well as two."""
_DAYS = (
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),  # first: where a year has two digits, those of four would take it for one of Rome's
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y", "%b %d %Y", "%b-%d-%Y"),
)
_CLOCKS = (" %H:%M:%S", " %H:%M", ", %H:%M:%S", ", %H:%M", " %I:%M:%S %p", " %I:%M %p", ", %I:%M:%S %p", ", %I:%M %p", "")
_SPELLINGS = (*(day + clock for day in _DAYS for clock in _CLOCKS), "%d/%b/%Y:%H:%M:%S %z", "%Y-%m")
"""Times of the usual places; where days and months cannot be told apart, the day comes first."""
_LIKE_A_TIME = re.compile(r"\s*\w{1,4}[./ -]\w{1,3}[./ -]\d{2,4}(\s*$|.*\d:\d\d)|[12]\d{3}-\d\d\s*$")
_DAYS_AS_NUMBERS = (1900_01_01, 2100_12_31)
"""The bounds of days that are written as one number, such as 20240501."""


def sniff(source: Path) -> Found:
    """Look at a file.

    Raises
    ------
    UsageError
        When it is not there, of another format, or cannot be read.

    """
    import duckdb  # noqa: PLC0415 - only this command looks at a file

    kind, endings = format_of(source)
    try:
        with duckdb.connect() as connection, TemporaryDirectory(prefix="stream-wh-") as folder:
            plain = source
            if is_compressed(source.name) and source.suffix != ".gz":  # which DuckDB does not read
                plain = plain_beginning(source, Path(folder) / "plain")
            connection.execute("SET TimeZone = 'UTC'")
            # Each record is one line to the warehouse, so it is to the sniffer.
            reader = {
                "csv": "",
                "json": f"SELECT * FROM read_json($file, format = '{_json_form(kind, source)}')",
                "parquet": "SELECT * FROM read_parquet($file)",
                "orc": "",
                "zeek": "",
            }[kind] or (_zeek_query(plain, source) if kind == "zeek" else "")
            if kind == "orc":
                dialect = CsvDialect((), frozenset(), plain, "")
                connection.register("landed", _orc_rows(plain))
                connection.execute("CREATE TEMP TABLE sample AS FROM landed")
            elif kind == "csv":
                dialect = _csv_sample(connection, plain, Path(folder))
            else:
                dialect = CsvDialect((), frozenset(), plain, reader)
                connection.execute(f"CREATE TEMP TABLE sample AS {reader} LIMIT {SAMPLE}", {"file": literal_path(plain)})
            if kind in ("json", *COLUMNAR):
                spread_objects(connection)
            columns = _columns(connection, kind, dialect)
            made = tuple(
                replace(_summary(connection, SniffedColumn(name, "timestamp")), made=sql, parts=parts)
                for name, sql, parts in (made_times(connection, columns) if kind in _TEXTS else ())
            )
            gaps = _gaps(connection, (*columns, *made))
            (rows,) = _row(connection, "SELECT count(*) FROM sample")
            sample = _taken_along(connection, (*columns, *made))
            return Found(kind, endings, dialect.options, columns, gaps, rows, dialect.guessed, sample, made)
    except (duckdb.Error, OSError, EOFError, zlib.error) as error:
        raise UsageError(
            f"{source} cannot be read as {kind} ({str(error).splitlines()[0].rstrip('.')}); {_SHAPES[kind]}"
        ) from error


def _taken_along(connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]) -> Any:  # noqa: ANN401 - a table of Arrow
    names = ", ".join(quoted(column.name) for column in columns if column.type) or "NULL AS nothing"
    return connection.sql(f"SELECT {names} FROM sample").to_arrow_table()


def _orc_rows(source: Path) -> Any:  # noqa: ANN401 - a table of Arrow
    import pyarrow as pa  # noqa: PLC0415 - only ORC files need it
    import pyarrow.dataset as ds  # noqa: PLC0415 - same

    try:
        rows = ds.dataset(source, format="orc").head(SAMPLE)
        kinds = [pa.timestamp("us", field.type.tz) if pa.types.is_timestamp(field.type) else field.type for field in rows.schema]
        return rows.cast(pa.schema(list(zip(rows.column_names, kinds, strict=True))), safe=False)
    except (pa.ArrowException, OSError) as error:
        raise UsageError(f"{source} cannot be read as orc ({str(error).splitlines()[0]}); {_SHAPES['orc']}") from error


def _zeek_query(plain: Path, source: Path) -> str:
    try:
        return zeek_query(plain)
    except ValueError as error:
        raise UsageError(f"{source} cannot be read: {error}") from error


def _json_form(kind: Format, source: Path) -> str:
    """Return how objects stand in a JSON file, in DuckDB's words."""
    if kind != "json" or not is_array_file(source):
        return "newline_delimited"
    with source.open("rb") as raw:
        if len(decompressed(raw, source.name).read(MAX_RECORD + 1)) > MAX_RECORD:
            raise UsageError(f"{source} is one array of more than {MAX_RECORD} bytes, which no task reads whole; {LINES_OF_IT}")
    return f"array', maximum_object_size = '{MAX_RECORD}"


def _csv_sample(connection: DuckDBPyConnection, source: Path, folder: Path) -> CsvDialect:
    """Make the sample of a CSV file, and return how it is written; ``folder`` is for a copy of it."""
    dialect = csv_dialect(connection, source, folder)
    given = {"file": literal_path(dialect.path)}
    connection.execute(f"CREATE OR REPLACE TEMP TABLE sample AS {dialect.query} LIMIT {SAMPLE}", given)
    if texts := other_times(connection, dialect):
        types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in texts)
        query = dialect.query.removesuffix(")") + f", types = {{{types}}})"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE sample AS {query} LIMIT {SAMPLE}", given)
    return dialect


def _columns(connection: DuckDBPyConnection, kind: Format, dialect: CsvDialect) -> tuple[SniffedColumn, ...]:
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    has_times = any(duck.startswith("TIMESTAMP") or _is_named_as_time(source) for source, duck in described)
    found: list[SniffedColumn] = []
    taken: set[str] = set()
    for place, (source, duck) in enumerate(described):
        if place in dialect.unnamed:
            found.append(SniffedColumn(source, None, "it has no name in the header"))
            continue
        try:
            sql = spark_type(duck, text=kind not in COLUMNAR)
        except FaultError as fault:
            found.append(SniffedColumn(source, None, str(fault)))
            continue
        if sql in dialect.unreadable:
            sql = "string"
        unit = _unit(connection, source, sql, found, has_times=has_times) or _pattern(connection, source, sql)
        if unit is None and kind == "csv" and sql == "bigint" and _is_named_as_time(source):
            unit = _day_in_digits(connection, source)
        if kind == "zeek" and sql == "timestamp":
            unit = "epoch_seconds"
        sql = "timestamp" if unit else sql
        others = {each.lower() for each, _ in described if each != source}
        name = column_name(source, taken | others, time=sql == "timestamp")
        taken.add(name.lower())
        if name != source:
            connection.execute(f"ALTER TABLE sample RENAME {quoted(source)} TO {quoted(name)}")
        found.append(_summary(connection, SniffedColumn(name, sql, source=source if name != source else None, unit=unit)))
    return tuple(found)


def column_name(source: str, taken: set[str], *, time: bool) -> str:
    """Return the name of a column for a name of a file, other than those that are taken (in small letters).

    >>> [column_name(each, set(), time=False) for each in ("id.orig_h", "TTL [s]", "ts")]
    ['id_orig_h', 'ttl_s', 'ts_value']
    """
    name = source
    if unusable_name(name) or is_reserved(name):
        name = re.sub(r"[^0-9a-z\u00df-\uffff]+", "_", source.lower()).strip("_")[:200] or "column"
        name = "column" if unusable_name(name) else name
    if name.lower() == "ts" and (not time or name != "ts"):  # ts is the arrival time
        name = "ts_value"
    if name.lower() in taken or is_reserved(name):
        name = next(each for number in range(2, len(taken) + 3) if (each := f"{name}_{number}").lower() not in taken)
    return name


def _is_named_as_time(source: str) -> bool:
    """Whether a name has a word for a time in it.

    >>> [_is_named_as_time(each) for each in ("createdAt", "last_seen", "order_id")]
    [True, True, False]
    """
    return _TIME_NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", source).lower()) is not None


def _unit(
    connection: DuckDBPyConnection, source: str, sql: str, before: Sequence[SniffedColumn], *, has_times: bool
) -> str | None:
    """Return the unit of a column of times since 1970, by its range, and by its name where the file has other times."""
    if sql not in ("int", "bigint", "double") and not sql.startswith("decimal"):
        return None
    known = has_times or any(column.type == "timestamp" for column in before)
    if known and not _is_named_as_time(source):
        return None
    column = quoted(source)
    low, high = _row(connection, f"SELECT min({column})::DOUBLE, max({column})::DOUBLE FROM sample")
    for unit, first, last in _EPOCHS:
        if low is not None and first <= low and high <= last:
            micros = f"make_timestamptz(CAST({column}::DOUBLE * {EPOCH_FORMATS[unit]} AS BIGINT))"
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING {micros}")
            return unit
    return None


def _pattern(connection: DuckDBPyConnection, source: str, sql: str) -> str | None:
    """Return the pattern of a column of text that is all times of one spelling, which DuckDB does not look for; else nothing."""
    if sql != "string":
        return None
    column = quoted(source)
    (one,) = _row(connection, f"SELECT any_value({column}) FROM sample WHERE {column} IS NOT NULL")
    if not isinstance(one, str) or not _LIKE_A_TIME.match(one):
        return None
    for spelling in _SPELLINGS:
        count = f"count(*) FILTER (try_strptime(trim({column}), $spelling) IS NULL)"
        (bad,) = connection.execute(f"SELECT {count} FROM sample WHERE {column} != ''", {"spelling": spelling}).fetchone() or (1,)
        if not bad:
            text = spelling.replace("'", "''")
            stamp = f"CAST(try_strptime(trim({column}), '{text}') AS TIMESTAMPTZ)"
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING {stamp}")
            return re.sub(r"%.", lambda part: _LOOSE[part[0]], spelling)
    return None


def _day_in_digits(connection: DuckDBPyConnection, source: str) -> str | None:
    """Return the pattern of a column of numbers that are all days, such as 20240501; else nothing."""
    column = quoted(source)
    day = f"try_strptime(CAST({column} AS VARCHAR), '%Y%m%d')"
    low, high = _DAYS_AS_NUMBERS
    bad = f"count(*) FILTER ({column} NOT BETWEEN {low} AND {high} OR {day} IS NULL)"
    some, others = _row(connection, f"SELECT count({column}), {bad} FROM sample WHERE {column} IS NOT NULL")
    if not some or others:
        return None
    connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMPTZ USING CAST({day} AS TIMESTAMPTZ)")
    return "yyyyMMdd"


def _summary(connection: DuckDBPyConnection, found: SniffedColumn) -> SniffedColumn:
    column = quoted(found.name)
    kind = found.type or ""
    bounds = {
        "timestamp": f"epoch_us({column})",
        "date": f"epoch_us({column})",
        "bigint": column,
        "int": column,
    }.get(kind, "NULL::BIGINT")
    query = f"SELECT min({bounds}), max({bounds}), approx_count_distinct({column}), avg({bounds}) FROM sample"
    low, high, distinct, mean = _row(connection, query)
    amount = f"list_min({column})" if kind.startswith("array<") else column
    lives: tuple[float, ...] = ()
    unset = 0.0
    if is_amount(kind.removeprefix("array<").removesuffix(">")):
        share = f"avg(CAST({amount} IS NULL AS INTEGER))"
        listed, unset = _row(connection, f"SELECT quantile_cont({amount}::DOUBLE, {_HUNDREDTHS}), {share} FROM sample")
        lives = tuple(listed or ())
    return replace(found, low=low, high=high, distinct=distinct, mean=mean, lives=lives, unset=unset or 0.0)


def is_amount(kind: str) -> bool:
    """Whether a Spark SQL type is that of numbers that can be amounts of time."""
    return kind in ("int", "bigint", "float", "double", "smallint") or kind.startswith("decimal")


def _gaps(connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]) -> dict[tuple[str, str], tuple[float, ...]]:
    times = {column.name: DAY if column.type == "date" else 0 for column in columns if column.type in ("timestamp", "date")}
    gaps = {}
    for first in times:
        for second, day in times.items():  # a date as an end is that of its day
            gap = f"epoch_us({quoted(second)}) + {day} - epoch_us({quoted(first)})"
            ordered = f"count(*) FILTER ({gap} >= 0), count({gap}), max({gap})"
            follow, both, high = _row(connection, f"SELECT {ordered} FROM sample")
            if first != second and both and follow >= _NEARLY_ALL * both and high > 0:
                (found,) = _row(connection, f"SELECT quantile_cont(greatest({gap}, 0)::DOUBLE, {_HUNDREDTHS}) FROM sample")
                gaps[first, second] = tuple(found)
    return gaps


def _row(connection: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    return next(iter(connection.execute(query).fetchall()), ())
