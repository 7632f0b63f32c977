"""Keeping intermediate rows, so that what is built on them is planned over the kept rows and not over how they came to be.

Spark analyses and optimises the whole plan of a frame each time one is derived from it or run, kept rows or not. A step
of a view derives many: on few rows planning is nearly all of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["kept"]


def kept(rows: DataFrame) -> tuple[DataFrame, Callable[[], object]]:
    """Return the rows, to be computed once and then kept (in memory, or else on disk), and how they are let go."""
    rows.persist(StorageLevel.MEMORY_AND_DISK)
    session = rows.sparkSession
    jvm: Any = session._jvm  # noqa: SLF001 - the plan over kept rows has no other handle
    plan = rows._jdf.queryExecution().withCachedData()  # noqa: SLF001 - same
    leaf = jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)  # noqa: SLF001 - same
    return DataFrame(leaf, session), rows.unpersist
