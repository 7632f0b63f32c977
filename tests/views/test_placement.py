"""Where rows of a view lie: the same whether Spark or the driver places them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from warehouse.layout import Layout, resolve
from warehouse.time import HOUR, NEVER, parse_instant
from warehouse.views.maintenance.input_facts import Move
from warehouse.views.maintenance.placement import placed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANCHOR = parse_instant("2024-01-01T00:00:00Z")
TIMES = pa.timestamp("us", "UTC")
LAYOUTS = {
    "blocks": resolve(periods=12, label="WK", grid=(5, 3), expiry_block=5, base=9),
    "permuted": resolve(periods=12, label="WK", grid=(3, 4), insertion="permuted", expiration="permuted"),
    "rebuilt": resolve(periods=12, label="WK", technique="rebuild", grid=(3, 4)),
    "append only": resolve(periods=12, label="MON"),
}


def _rows(count: int) -> pa.Table:
    """Rows around an update: some over before it, some never, some on the instants that close slots, some without a life."""
    rng = np.random.default_rng(7)
    begins = ANCHOR + rng.integers(-3 * HOUR, 21 * HOUR, count)
    begins[: count // 4] -= begins[: count // 4] % HOUR
    ends = begins + rng.integers(-HOUR, 15 * HOUR, count)
    leaves = np.where(rng.random(count) < 0.5, ends, ends + rng.integers(0, 20 * HOUR, count))
    leaves[rng.random(count) < 0.2] = NEVER
    times = {"_ts": begins, "_exp": ends, "_out": leaves}
    return pa.table(
        {
            "Key": pa.array([f"k{number}" if number % 9 else None for number in range(count)]),
            "other": pa.array(range(count), pa.int64()),
            **{name: pa.array(values.tolist(), pa.int64()).cast(TIMES) for name, values in times.items()},
        }
    )


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("before", [17, 20])
def test_rows_lie_alike_whoever_places_them(spark: SparkSession, layout: Layout, before: int) -> None:
    """Driver and Spark give the same columns, types and values, for a move by several slots and for none."""
    at = [ANCHOR + slot * HOUR for slot in (before, 20)]
    move = Move(before, 20, at[0], at[1], ANCHOR, HOUR, first=False)
    rows, columns = _rows(400), ["other", "KEY"]
    spark_frame = placed(spark.createDataFrame(rows), columns, layout, move)
    in_driver = placed(rows, columns, layout, move)
    by_spark = spark_frame.toArrow()
    assert in_driver.column_names == by_spark.column_names
    assert [field.type for field in in_driver.schema] == [field.type for field in by_spark.schema]
    assert in_driver.sort_by("other").to_pylist() == by_spark.sort_by("other").to_pylist()
    assert set(in_driver["_fate"].to_pylist()) == {"live", "dead"}
    assert 0 < in_driver.num_rows < rows.num_rows


def test_what_never_leaves_is_told_by_the_time(spark: SparkSession) -> None:
    """A row that never ends lies apart, and so does one of the slot before: neither is taken for the other."""
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
    rows = pa.table({name: pa.array(values, TIMES) for name, values in {
        "_ts": [datetime(2024, 1, 1, tzinfo=UTC)] * 2, "_exp": [last] * 2, "_out": [last, last - timedelta(microseconds=1)],
    }.items()})  # fmt: skip
    move = Move(0, 1, ANCHOR, ANCHOR + HOUR, ANCHOR, HOUR, first=False)
    blocks = placed(rows, [], LAYOUTS["blocks"], move)["exp_block"].to_pylist()
    assert blocks == [row.exp_block for row in placed(spark.createDataFrame(rows), [], LAYOUTS["blocks"], move).collect()]
    assert blocks[0] != blocks[1]
