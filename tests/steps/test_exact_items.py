"""Items counted in the stored rows belong to the groups of their lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.aggregates.definition import AggregateDefinition, FrequentItems
from warehouse.steps.exact_items import exact_items

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_row_whose_group_fails_counts_in_no_group(spark: SparkSession) -> None:
    """The row does not belong to the null group, whose list has not counted it either."""
    frequent = FrequentItems("k", "string", None, 3, 30, exact=True)
    group = (("part", "int"),)
    sql = (("part", "CAST(100 / v AS int)"),)
    definition = AggregateDefinition("s", None, group, (), (), 1, ("item",), frequent, "live", sql)
    stored = {
        "k": ["x", "x", "y", "y"], "v": pa.array([None, 0, 50, 50], pa.int32()),
        "_arrived": pa.array([1] * 4, pa.int64()), "_until": pa.array([9] * 4, pa.int64()),
    }  # fmt: skip
    due = pa.table({"_text": ["1h"], "_first": pa.array([1], pa.int64()), "_end": pa.array([1], pa.int64())})
    candidates = pa.table(
        {
            "part": pa.array([None, 2], pa.int32()), "window_length": ["1h", "1h"], "_end": pa.array([1, 1], pa.int64()),
            "item": ["x", "y"], "at_least": pa.array([1, 2], pa.int64()), "at_most": pa.array([1, 2], pa.int64()),
            "certain": [True, True], "complete": [True, True], "_total": pa.array([1, 2], pa.int64()),
        }
    )  # fmt: skip
    items = exact_items(definition, candidates, due, spark.createDataFrame(pa.table(stored))).to_pylist()
    assert sorted((row["item"], row["at_least"], row["at_most"]) for row in items) == [("x", 1, 1), ("y", 2, 2)]
