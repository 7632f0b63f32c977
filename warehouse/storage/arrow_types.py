"""Which rows can pass through Arrow to Python and back, and which values Spark and DuckDB compare in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["bytes_taken", "can_be_collected", "compared_alike", "frame_of"]

_GATHERED = (BinaryType, BooleanType, DateType, NumericType, TimestampType)


def can_be_collected(schema: StructType) -> bool:
    """Whether rows can pass through Arrow: it has no null struct with a field that is never null, nor every type of Spark."""
    return _all_go(field.dataType for field in schema.fields)


def _all_go(kinds: Iterable[DataType]) -> bool:
    return all(map(_goes, kinds))


def _goes(kind: DataType) -> bool:
    match kind:
        case ArrayType():
            return _goes(kind.elementType)
        case StructType():
            return all(field.nullable for field in kind.fields) and _all_go(field.dataType for field in kind.fields)
        case StringType():
            return bool(kind.isUTF8BinaryCollation())  # Arrow knows no other
        case _:
            return isinstance(kind, _GATHERED)


def compared_alike(kind: pa.DataType) -> bool:
    """Whether Spark and DuckDB agree on which values of a type are equal."""
    return bool(pa.types.is_string(kind) or pa.types.is_signed_integer(kind) or pa.types.is_date32(kind))


def frame_of(session: SparkSession, rows: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return rows as a local relation; of an empty table too, although PySpark needs a chunk of every nested column."""
    if not rows.num_rows:
        rows = pa.Table.from_batches([pa.RecordBatch.from_pylist([], schema=rows.schema)])
    return session.createDataFrame(rows) if schema is None else session.createDataFrame(rows, schema)


def bytes_taken(rows: pa.Table, taken: pa.Array) -> float:
    """Return the bytes of the rows with the given numbers: exact for texts, an upper bound for nested values."""
    most = max(pc.value_counts(taken).field("counts").to_pylist(), default=0)
    total = 0.0
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            total += pc.sum(pc.binary_length(column).take(taken)).as_py() or 0
        elif pa.types.is_nested(column.type):
            total += column.nbytes * most
        else:
            total += column.nbytes / max(1, len(column)) * len(taken)
    return total
