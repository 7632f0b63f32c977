"""DuckDB's types in Spark's words, for what DuckDB's sniffers find in files."""

from __future__ import annotations

import re

from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import canonical, parse_type

__all__ = ["spark_type"]

_WORDS = {
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
_LIST = re.compile(r"(.*)\[\d*\]", re.DOTALL)
_NAMED = re.compile(r'("(?:[^"]|"")+"|\S+) (.+)', re.DOTALL)


def spark_type(duck: str, *, text: bool) -> str:
    """Return the canonical Spark SQL type of a DuckDB type.

    Parameters
    ----------
    duck
        The type as ``DESCRIBE`` shows it.
    text
        Whether the values are text (csv, json), of which anything can be read as a string; in Parquet a column has the
        type that it has.

    Raises
    ------
    FaultError
        When there is none.

    Examples
    --------
    >>> spark_type('STRUCT(a BIGINT, "b" VARCHAR[])', text=False)
    'struct<a:bigint,b:array<string>>'

    """
    return canonical(parse_type(_translated(duck.strip(), text=text)))


def _translated(duck: str, *, text: bool) -> str:
    if items := _LIST.fullmatch(duck):
        return f"array<{_translated(items[1], text=text)}>"
    if duck.startswith("STRUCT("):
        parts = [_NAMED.fullmatch(part.strip()) for part in _split(duck[len("STRUCT(") : -1])]
        fields = [f"`{_bare(part[1])}`:{_translated(part[2], text=text)}" for part in parts if part]
        return f"struct<{','.join(fields)}>"
    if duck.startswith("DECIMAL("):
        return duck.lower()
    if duck in _WORDS:
        return _WORDS[duck]
    if text:
        return "string"
    raise FaultError(f"the type {duck}", "a column of another type, e.g. a string or a timestamp in microseconds")


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
