"""Rows as Arrow tables in the driver or as Spark's frames: which can pass from one to the other, and rows of both together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
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

from warehouse.catalog.identifiers import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["bytes_taken", "can_be_collected", "compared_alike", "frame_of", "framed", "local_frame", "united", "with_names"]


class _InSession(Protocol):
    @property
    def session(self) -> SparkSession: ...


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


def local_frame(session: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """Return a data frame of ``rows``; ``schema`` is DDL such as ``"file string, record bigint"``.

    PySpark makes a frame of a list through Python workers, which executors start as the ``python3`` of their path; it may be
    missing, or have another version than the driver's. Through Arrow the rows become a local relation of the plan.

    Raises
    ------
        pyarrow.ArrowInvalid: when a column's type cannot hold a value.

    """
    fields = cast("StructType", StructType.fromDDL(schema))
    arrow = to_arrow_schema(fields, timezone="UTC")
    columns = [pa.array([row[number] for row in rows], field.type) for number, field in enumerate(arrow)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=arrow), fields)


def framed(rows: DataFrame | pa.Table, source: _InSession) -> DataFrame:
    """Return rows as a frame of Spark's; the session of ``source`` is opened only for rows in the driver."""
    return frame_of(source.session, rows) if isinstance(rows, pa.Table) else rows


def united(parts: Sequence[DataFrame | pa.Table], columns: Sequence[str], source: _InSession) -> DataFrame | pa.Table:
    """Return some columns of the rows of several parts: a table in the driver if all parts are in the driver, else a frame."""
    tables = [part for part in parts if isinstance(part, pa.Table)]
    if len(tables) == len(parts):
        first, *others = (part.select(columns) for part in tables)
        return pa.concat_tables([first, *(part.cast(first.schema) for part in others)])
    rows, *more = (framed(part, source).select(*map(quoted, columns)) for part in parts)
    for frame in more:
        rows = rows.unionByName(frame)
    return rows


def with_names(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return some columns of rows under the given names, which may differ from the rows' names in case."""
    names = {name.lower(): name for name in rows.column_names}
    return rows.select([names[name.lower()] for name in columns]).rename_columns(list(columns))


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
