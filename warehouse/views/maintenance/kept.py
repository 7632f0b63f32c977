"""Keeping intermediate rows, so that what is built on them is planned over the kept rows and not over how they came to be.

Spark analyses and optimises the whole plan of a frame each time one is derived from it or run, kept rows or not. A step
of a view derives many: on few rows planning is nearly all of its time. Few rows are gathered: they become a part of the
plan, of which Spark knows how many they are without a job, and which it sends to where others are without another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

__all__ = ["FEW", "can_be_gathered", "gathered", "gathered_keys", "kept"]

FEW = 50_000
"""Rows that are gathered at most."""


def kept(rows: DataFrame) -> tuple[DataFrame, Callable[[], object]]:
    """Return the rows, to be computed once and then kept (in memory, or else on disk), and how they are let go."""
    rows.persist(StorageLevel.MEMORY_AND_DISK)
    session = rows.sparkSession
    jvm: Any = session._jvm  # noqa: SLF001 - the plan over kept rows has no other handle
    plan = rows._jdf.queryExecution().withCachedData()  # noqa: SLF001 - same
    leaf = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)  # noqa: SLF001 - same
    return DataFrame(leaf, session), rows.unpersist


_GATHERED = (BinaryType, BooleanType, DateType, NumericType, StringType, TimestampType)


def can_be_gathered(rows: DataFrame) -> bool:
    """Whether rows go by way of Arrow, which holds no null beside a field that is never null, nor every type of expressions."""
    return all(_goes(field.dataType) for field in rows.schema.fields)


def _goes(kind: DataType) -> bool:
    match kind:
        case ArrayType():
            return _goes(kind.elementType)
        case StructType():
            return all(field.nullable and _goes(field.dataType) for field in kind.fields)
        case _:
            return isinstance(kind, _GATHERED)


def gathered(rows: DataFrame) -> tuple[DataFrame, pa.Table]:
    """Return few rows as a local relation, and what they are; the caller knows that they are few and can be gathered."""
    table = rows.toArrow()
    return rows.sparkSession.createDataFrame(table, rows.schema), table


def gathered_keys(keys: DataFrame) -> DataFrame | None:
    """Return distinct keys as a local relation that knows which columns have nulls; none when they are many or cannot be."""
    if not can_be_gathered(keys):
        return None
    table = keys.limit(FEW + 1).toArrow()
    if table.num_rows > FEW:
        return None
    fields = keys.schema.fields
    known = [
        StructField(field.name, field.dataType, table.column(place).null_count > 0) for place, field in enumerate(fields)
    ]
    return keys.sparkSession.createDataFrame(table, StructType(known))
