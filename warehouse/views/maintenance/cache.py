"""Cached intermediate rows: later frames are planned over the cached rows, and not over the plan that made them.

Spark analyses and optimises the whole plan of a frame each time the frame runs or another frame is derived from it, even if its
rows are cached. A step of a view derives many frames, and with few rows planning takes nearly all of the step's time. Few rows
are collected: they become a local relation of the plan. Spark knows their number and broadcasts them without a job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from warehouse.storage.arrow_types import can_be_collected, frame_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FEW", "Cache", "DistinctKeys", "collected", "collected_keys"]

FEW = 50_000
"""Rows that are collected at most."""


@dataclass
class Cache:
    """The rows that one step caches."""

    _cached: list[tuple[DataFrame, DataFrame]] = field(default_factory=list)

    def add(self, rows: DataFrame) -> DataFrame:
        """Return the rows, computed once and then cached (in memory, or else on disk) until :meth:`release`."""
        rows.persist(StorageLevel.MEMORY_AND_DISK)
        session = rows.sparkSession
        jvm: Any = session._jvm  # noqa: SLF001 - the plan over cached rows has no other handle
        plan = rows._jdf.queryExecution().withCachedData()  # noqa: SLF001 - same
        dataset = getattr(jvm, "org.apache.spark.sql.classic.Dataset")
        leaf = dataset.ofRows(session._jsparkSession, plan)  # noqa: SLF001 - same
        self._cached.append((rows, DataFrame(leaf, session)))
        return self._cached[-1][1]

    def drop(self, cached: DataFrame) -> None:
        """Drop rows that :meth:`add` returned and from which no frame will be derived."""
        for rows, leaf in self._cached:
            if leaf is cached:
                rows.unpersist()
        self._cached[:] = [entry for entry in self._cached if entry[1] is not cached]

    def release(self) -> None:
        """Drop all rows."""
        for rows, _ in self._cached:
            rows.unpersist()
        self._cached.clear()


def collected(rows: DataFrame) -> tuple[DataFrame, pa.Table]:
    """Return few rows as a local relation and as a table; the caller must know that they are few and fit in Arrow."""
    table = rows.toArrow()
    return frame_of(rows.sparkSession, table, rows.schema), table


@dataclass(frozen=True)
class DistinctKeys:
    """Distinct keys; ``values`` if they are collected."""

    rows: DataFrame
    values: pa.Table | None = None


def collected_keys(keys: DataFrame) -> DistinctKeys | None:
    """Return distinct keys as a local relation that knows which columns have nulls; None if they are many or do not fit."""
    if not can_be_collected(keys.schema) or len(set(keys.columns)) < len(keys.columns):
        return None
    table = keys.limit(FEW + 1).toArrow()
    if table.num_rows > FEW:
        return None
    fields = keys.schema.fields
    exact_fields = [
        StructField(field.name, field.dataType, table.column(index).null_count > 0) for index, field in enumerate(fields)
    ]
    return DistinctKeys(frame_of(keys.sparkSession, table, StructType(exact_fields)), table)
