"""Rows of the driver as a data frame, without Python on the executors.

PySpark makes a frame of a list by way of Python workers, started on the executors as the ``python3`` of their path, which
need be neither there nor of the driver's version. By way of Arrow the rows become a local relation of the plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["local_frame"]


def local_frame(session: SparkSession, rows: Sequence[tuple[Any, ...]], schema: str) -> DataFrame:
    """Return a data frame of ``rows``; ``schema`` is DDL such as ``"file string, record bigint"``.

    Raises
    ------
        pyarrow.ArrowInvalid: a value that its column's type cannot hold.

    """
    fields = cast("StructType", StructType.fromDDL(schema))
    arrow = to_arrow_schema(fields, timezone="UTC")
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(arrow)]
    return session.createDataFrame(pa.Table.from_arrays(columns, schema=arrow), fields)
