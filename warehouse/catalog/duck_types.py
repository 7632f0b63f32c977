"""Translates DuckDB's types to Spark's, for columns that DuckDB's sniffers find in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import Array, AtomicType, Decimal, Field, Struct, canonical, parse_type, unusable_name

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

    from warehouse.catalog.types import SqlType

__all__ = ["spark_type"]

_SPARK_NAMES = {
    "boolean": "boolean",
    "tinyint": "tinyint",
    "smallint": "smallint",
    "integer": "int",
    "bigint": "bigint",
    "utinyint": "smallint",
    "usmallint": "int",
    "uinteger": "bigint",
    "ubigint": "decimal(20,0)",
    "hugeint": "decimal(38,0)",
    "float": "float",
    "double": "double",
    "varchar": "string",
    "blob": "binary",
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamp_ns": "timestamp",
    "timestamp with time zone": "timestamp",
}


def spark_type(duck_type: str, *, text: bool) -> str:
    """Return the canonical Spark SQL type of a DuckDB type.

    Parameters
    ----------
    duck_type
        The type as ``DESCRIBE`` shows it.
    text
        Whether the values are text (csv, json), which can always be read as a string; a column of Parquet keeps its type.

    Raises
    ------
    FaultError
        When Spark has no such type.

    Examples
    --------
    >>> spark_type('STRUCT(a BIGINT, "b" VARCHAR[])', text=False)
    'struct<a:bigint,b:array<string>>'

    """
    import duckdb  # noqa: PLC0415 - only `init --from` looks at a file

    return canonical(_translated(duckdb.sqltype(duck_type), text=text))


def _translated(duck_type: DuckDBPyType, *, text: bool) -> SqlType:
    if duck_type.id in {"list", "array", "struct", "decimal"}:
        parts: dict[str, Any] = dict(duck_type.children)
        match duck_type.id:
            case "struct":
                return Struct(tuple(Field(_valid_field_name(name), _translated(part, text=text)) for name, part in parts.items()))
            case "decimal":
                return Decimal(parts["precision"], parts["scale"])
        return Array(_translated(parts["child"], text=text))
    if name := _SPARK_NAMES.get(duck_type.id):
        return parse_type(name)
    if text:
        return AtomicType("string")
    raise FaultError(f"the type {duck_type}", "a column of another type, e.g. a string or a timestamp in microseconds")


def _valid_field_name(name: str) -> str:
    if reason := unusable_name(name):
        raise FaultError(f'{reason} in the field name "{name}"', "letters, digits and underscores")
    return name
