"""Spark calculates the same states as a query over the rows, also at the ends of a type's range."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.aggregates.definition import AggregateDefinition, Value, Window
from warehouse.aggregates.synopses import needs
from warehouse.steps.spark_states import states_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST, MOST = -(2**63), 2**63 - 1
VALUES = (Value("total", "sum", "bigint", "v", "bigint"), Value("paid", "sum", "decimal(38,0)", "d", "decimal(38,0)"))


def test_sums_of_bigint_never_overflow_and_other_sums_are_null_where_they_do(spark: SparkSession) -> None:
    """In their slot and group; a value of a row whose condition fails is in no sum."""
    (need,) = needs(AggregateDefinition("s", "100 / n > 0", (("k", "string"),), VALUES, (Window("1h", 1, 1),), 0, ()))
    large = Decimal(6 * 10**37)
    rows = [
        ("a", LEAST, 1, large), ("a", LEAST, 1, large), ("b", MOST, 1, large), ("b", MOST, 1, -large), ("b", -1, 0, large),
        ("c", LEAST, 1, None), ("c", MOST, 1, None), ("d", None, 1, None),
    ]  # fmt: skip
    names, kinds = ("k", "v", "n", "d"), (pa.string(), pa.int64(), pa.int32(), pa.decimal128(38, 0))
    columns = {name: pa.array(column, kind) for name, column, kind in zip(names, zip(*rows, strict=True), kinds, strict=True)}
    arrived = pa.table({"_arrived": pa.array([1] * len(rows), pa.int64()), **columns})
    states = states_of(spark.createDataFrame(arrived), need.synopsis, 1).toArrow().to_pylist()
    assert {row["k"]: (row["_sum_v"], row["_sum_d"], row["_failed"]) for row in states} == {
        "a": (2 * LEAST, None, 0), "b": (2 * MOST, 0, 1), "c": (-1, None, 0), "d": (None, None, 0),
    }  # fmt: skip
