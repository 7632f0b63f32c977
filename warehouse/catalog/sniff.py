"""What a csv, json or parquet file holds, as DuckDB sees it: columns in Spark SQL types and a summary of their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import canonical, parse_type, unusable_name
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
_SQL_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "UTINYINT": "smallint",
    "USMALLINT": "int",
    "UINTEGER": "bigint",
    "UBIGINT": "decimal(20,0)",
    "HUGEINT": "decimal(38,0)",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "BLOB": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}
_TEXT_IN_ROWS = {"TIME": "string", "UUID": "string", "JSON": "string"}
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

    ``low`` and ``high`` are the bounds of integers, of timestamps in microseconds; ``distinct`` is about how many
    values there are.
    """

    name: str
    type: str | None
    refused: str | None = None
    low: int | None = None
    high: int | None = None
    distinct: int = 0


@dataclass(frozen=True)
class Found:
    """A file: its format, the reader options it needs, its columns and, for pairs of times, how they lie.

    ``gaps`` gives for (earlier column, later column) of timestamps the largest difference in microseconds, for pairs
    that are in this order in every sampled row.
    """

    format: Format
    endings: str
    options: tuple[tuple[str, str], ...]
    columns: tuple[SniffedColumn, ...]
    gaps: dict[tuple[str, str], int]


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
            options, refused = _csv_options(connection, source) if kind == "csv" else ((), frozenset())
            connection.execute(f"CREATE TEMP TABLE sample AS SELECT * FROM {reader} LIMIT {_SAMPLE}", given)
            columns = _columns(connection, kind, refused)
            return Found(kind, "".join(suffixes), options, columns, _gaps(connection, columns))
    except duckdb.Error as error:
        raise UsageError(f"{source} cannot be read as {kind} ({str(error).splitlines()[0]}); correct the file") from error


def _literal_path(source: Path) -> str:
    # DuckDB reads these as patterns.
    return re.sub(r"([\[\]*?])", r"[\1]", str(source))


def _csv_options(
    connection: DuckDBPyConnection, source: Path
) -> tuple[tuple[tuple[str, str], ...], frozenset[str]]:
    """Return reader options and the types whose format Spark has no words for."""
    sniffed = "SELECT Delimiter, Quote, HasHeader, DateFormat, TimestampFormat FROM sniff_csv($file)"
    row = connection.execute(sniffed, {"file": _literal_path(source)}).fetchone()
    delimiter, quote, header, *formats = row or (",", '"', True, None, None)
    if not header:
        raise UsageError(f"{source} has no header, by which columns are matched; add a first line with their names")
    options, refused = [], set()
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
                refused.add(kind)
    return tuple(options), frozenset(refused)


def _java_pattern(strptime: str) -> str | None:
    """Return Spark's pattern for a strptime one.

    >>> _java_pattern("%d/%m/%Y %H:%M")
    'dd/MM/yyyy HH:mm'
    """
    parts = _PART.findall(strptime)
    if any(part.startswith("%") and part not in _PATTERN_PARTS for part in parts):
        return None
    return "".join(_PATTERN_PARTS.get(part, f"'{part}'" if part.isalpha() else part) for part in parts)


def _columns(connection: DuckDBPyConnection, kind: Format, refused: frozenset[str]) -> tuple[SniffedColumn, ...]:
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    found = []
    for name, duck in described:
        sql, why = _sql_type(duck, kind)
        if sql in refused:
            sql = "string"
        if why is None and (fault := unusable_name(name)):
            sql, why = None, f"{fault} in its name"
        if why is None and (name.startswith("_") or name.lower() in {"sub_index", "exp_block"}):
            sql, why = None, "a reserved name"
        if why is None and name.lower() == "ts" and (name, sql) != ("ts", "timestamp"):
            sql, why = None, "ts is the arrival time, a timestamp"
        found.append(_summary(connection, name, sql, why))
    return tuple(found)


def _sql_type(duck: str, kind: Format) -> tuple[str | None, str | None]:
    """Return (Spark SQL type, nothing) or (nothing, why there is none)."""
    text = duck
    if kind != "parquet":
        # In text any value is a string; in Parquet a column has the type it has.
        text = "VARCHAR" if re.search(r"\bMAP\(|\bUNION\(", duck) else duck
        for each, plain in _TEXT_IN_ROWS.items():
            text = re.sub(rf"\b{each}\b", plain.upper() and "VARCHAR", text)
    sql = _translated(text)
    try:
        return canonical(parse_type(sql)), None
    except FaultError as fault:
        return None, str(fault)


def _translated(duck: str) -> str:
    """Return a DuckDB type in Spark's words, part by part.

    >>> _translated("STRUCT(a BIGINT, b VARCHAR[])")
    'struct<a:bigint,b:array<string>>'
    """
    text = duck.strip()
    if text.endswith("[]"):
        return f"array<{_translated(text[:-2])}>"
    if text.startswith("STRUCT("):
        parts = (_NAMED.fullmatch(part.strip()) for part in _split(text[len("STRUCT(") : -1]))
        return "struct<" + ",".join(f"`{_bare(part[1])}`:{_translated(part[2])}" for part in parts if part) + ">"
    if text.startswith("DECIMAL("):
        return text.lower()
    if text.startswith("ENUM("):
        return "string"
    return _SQL_TYPES.get(text, text.lower().split("(")[0].replace(" ", "_"))


_NAMED = re.compile(r'("(?:[^"]|"")+"|\S+) (.+)', re.DOTALL)


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _split(text: str) -> list[str]:
    parts, depth, quoted = [""], 0, False
    for character in text:
        quoted ^= character == '"'
        if not quoted:
            depth += (character == "(") - (character == ")")
        if character == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _summary(connection: DuckDBPyConnection, name: str, sql: str | None, why: str | None) -> SniffedColumn:
    if sql is None:
        return SniffedColumn(name, None, why)
    column = _identifier(name)
    bounds = {
        "timestamp": f"epoch_us({column})",
        "date": f"epoch_us({column})",
        "bigint": column,
        "int": column,
    }.get(sql, "NULL::BIGINT")
    query = f"SELECT min({bounds}), max({bounds}), approx_count_distinct({column}) FROM sample"
    low, high, distinct = _row(connection, query)
    return SniffedColumn(name, sql, None, low, high, distinct)


def _gaps(connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]) -> dict[tuple[str, str], int]:
    times = [column.name for column in columns if column.type == "timestamp"]
    gaps = {}
    for first in times:
        for second in times:
            gap = f"epoch_us({_identifier(second)}) - epoch_us({_identifier(first)})"
            low, high = _row(connection, f"SELECT min({gap}), max({gap}) FROM sample")
            if first != second and low is not None and low >= 0 and high > 0:
                gaps[first, second] = high
    return gaps


def _row(connection: DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    return connection.execute(query).fetchone() or ()


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
