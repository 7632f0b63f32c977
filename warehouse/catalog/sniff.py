"""What a csv, json or parquet file holds, as DuckDB sees it: columns in Spark SQL types, and what values are like."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.catalog.duck_types import spark_type
from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import unusable_name
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.model import Format

__all__ = ["Found", "SniffedColumn", "sniff"]

_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
}
_SAMPLE = 100_000
_PATTERN_PARTS = {
    "%Y": "yyyy",
    "%y": "yy",
    "%m": "MM",
    "%d": "dd",
    "%H": "HH",
    "%I": "hh",
    "%M": "mm",
    "%S": "ss",
    "%p": "a",
    "%b": "MMM",
    "%B": "MMMM",
    "%f": "SSSSSS",
    "%g": "SSS",
}
_PART = re.compile(r"%.|[^%A-Za-z]|[A-Za-z]+")
_ISO_PATTERNS = frozenset({"%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f"})


@dataclass(frozen=True)
class SniffedColumn:
    """A column: its Spark SQL type, or why it cannot be declared, and what its sampled values are like.

    ``low`` and ``high`` are the bounds of integers, of timestamps in microseconds, and ``mean`` is theirs; ``distinct`` is
    about how many values there are.
    """

    name: str
    type: str | None
    refused: str | None = None
    low: int | None = None
    high: int | None = None
    distinct: int = 0
    mean: float | None = None


@dataclass(frozen=True)
class Found:
    """A file: its format, the reader options it needs, its columns and, for pairs of times, how they lie.

    ``gaps`` gives for (earlier column, later column) of timestamps the largest difference in microseconds, for pairs
    that are in this order in every sampled row, and ``mean_gaps`` the mean one. ``rows`` were sampled.
    """

    format: Format
    endings: str
    options: tuple[tuple[str, str], ...]
    columns: tuple[SniffedColumn, ...]
    gaps: dict[tuple[str, str], int]
    mean_gaps: dict[tuple[str, str], float]
    rows: int


def sniff(source: Path) -> Found:
    """Look at a file.

    Raises
    ------
    UsageError
        When it is not there, of another format, cannot be read, or is a CSV file without a header.

    """
    import duckdb  # noqa: PLC0415 - only this command looks at a file

    suffixes = source.suffixes[-2:] if source.suffix == ".gz" else source.suffixes[-1:]
    kind = _ENDINGS.get(suffixes[0].lower()) if suffixes else None
    if kind is None or (kind == "parquet" and len(suffixes) > 1):
        raise UsageError(f"{source} has none of the endings {', '.join(_ENDINGS)} (.gz for text); rename or convert it")
    if not source.is_file():
        raise UsageError(f"{source} is not a file; name one of the files to load")
    try:
        with duckdb.connect() as connection:
            # Each record is one line to the warehouse, so it is to the sniffer.
            reader = {
                "csv": "read_csv($file, ignore_errors = true)",
                "json": "read_json($file, format = 'newline_delimited')",
                "parquet": "read_parquet($file)",
            }[kind]
            given = {"file": _literal_path(source)}
            options, unreadable = _csv_options(connection, source) if kind == "csv" else ((), frozenset())
            connection.execute(f"CREATE TEMP TABLE sample AS SELECT * FROM {reader} LIMIT {_SAMPLE}", given)
            columns = _columns(connection, kind, unreadable)
            gaps, means = _gaps(connection, columns)
            (rows,) = _row(connection, "SELECT count(*) FROM sample")
            return Found(kind, "".join(suffixes), options, columns, gaps, means, rows)
    except duckdb.Error as error:
        raise UsageError(
            f"{source} cannot be read as {kind} ({str(error).splitlines()[0]}); correct the file"
        ) from error


def _literal_path(source: Path) -> str:
    # DuckDB reads these as patterns.
    return re.sub(r"([\[\]*?])", r"[\1]", str(source))


def _csv_options(connection: DuckDBPyConnection, source: Path) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Return reader options and the types whose format Spark has no words for."""
    sniffed = "SELECT Delimiter, Quote, HasHeader, DateFormat, TimestampFormat FROM sniff_csv($file)"
    row = connection.execute(sniffed, {"file": _literal_path(source)}).fetchone()
    delimiter, quote, header, *formats = row or (",", '"', True, None, None)
    if not header:
        raise UsageError(f"{source} has no header, by which columns are matched; add a first line with their names")
    options, unreadable = [], set()
    if delimiter != ",":
        options.append(("delimiter", delimiter))
    if quote not in {'"', "", "(empty)"}:
        options.append(("quote", quote))
    for option, kind, found in zip(("dateFormat", "timestampFormat"), ("date", "timestamp"), formats, strict=True):
        if found and found not in _ISO_PATTERNS:
            pattern = _java_pattern(found)
            if pattern:
                options.append((option, pattern))
            else:
                unreadable.add(kind)
    return tuple(options), frozenset(unreadable)


def _java_pattern(strptime: str) -> str | None:
    """Return Spark's pattern for a strptime one.

    >>> _java_pattern("%d/%m/%Y %H:%M")
    'dd/MM/yyyy HH:mm'
    """
    parts = _PART.findall(strptime)
    if any(part.startswith("%") and part not in _PATTERN_PARTS for part in parts):
        return None
    return "".join(_PATTERN_PARTS.get(part, f"'{part}'" if part.isalpha() else part) for part in parts)


def _columns(connection: DuckDBPyConnection, kind: Format, unreadable: frozenset[str]) -> tuple[SniffedColumn, ...]:
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    found = []
    for name, duck in described:
        try:
            sql = spark_type(duck, text=kind != "parquet")
        except FaultError as fault:
            found.append(SniffedColumn(name, None, str(fault)))
            continue
        if sql in unreadable:
            sql = "string"
        why = _unusable(name, sql)
        found.append(SniffedColumn(name, None, why) if why else _summary(connection, name, sql))
    return tuple(found)


def _unusable(name: str, sql: str) -> str | None:
    if fault := unusable_name(name):
        return f"{fault} in its name"
    if name.startswith("_") or name.lower() in {"sub_index", "exp_block"}:
        return "a reserved name"
    if name.lower() == "ts" and (name, sql) != ("ts", "timestamp"):
        return "ts is the arrival time, a timestamp"
    return None


def _summary(connection: DuckDBPyConnection, name: str, sql: str) -> SniffedColumn:
    column = _identifier(name)
    bounds = {
        "timestamp": f"epoch_us({column})",
        "date": f"epoch_us({column})",
        "bigint": column,
        "int": column,
    }.get(sql, "NULL::BIGINT")
    query = f"SELECT min({bounds}), max({bounds}), approx_count_distinct({column}), avg({bounds}) FROM sample"
    low, high, distinct, mean = _row(connection, query)
    return SniffedColumn(name, sql, None, low, high, distinct, mean)


def _gaps(
    connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], float]]:
    times = [column.name for column in columns if column.type == "timestamp"]
    gaps, means = {}, {}
    for first in times:
        for second in times:
            gap = f"epoch_us({_identifier(second)}) - epoch_us({_identifier(first)})"
            low, high, mean = _row(connection, f"SELECT min({gap}), max({gap}), avg({gap}) FROM sample")
            if first != second and low is not None and low >= 0 and high > 0:
                gaps[first, second], means[first, second] = high, mean
    return gaps, means


def _row(connection: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    return connection.execute(query).fetchone() or ()


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
