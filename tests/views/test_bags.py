"""Differences and intersections of rows as often as they occur, with values that Spark's own set operations change or refuse."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.views.maintenance.keys import bag_difference, bag_intersection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KINDS = pa.schema(
    {
        "k": pa.string(), "f": pa.float64(), "s": pa.struct({"x": pa.float64()}), "a": pa.list_(pa.float32()),
        "m": pa.map_(pa.string(), pa.int32()),
    }
)  # fmt: skip


def _bag(rows: DataFrame) -> Counter[str]:
    return Counter(map(str, rows.toArrow().to_pylist()))


def test_rows_are_taken_as_often_as_both_have_them(spark: SparkSession) -> None:
    """Zeros keep their sign, also in structures; NaN equals NaN and null equals null; maps can be compared."""

    def row(f: float | None, copies: int = 1, x: float = 1.0) -> list[dict[str, object]]:
        return [{"k": "k", "f": f, "s": {"x": x}, "a": [1.5, None], "m": [("a", 1)]}] * copies

    left = [*row(0.0, 2), *row(-0.0), *row(None, 2), *row(float("nan")), *row(1.0, 3), *row(2.0, x=-0.0), *row(3.0)]
    right = [*row(0.0), *row(None), *row(float("nan")), *row(1.0, 5), *row(2.0, x=0.0), *row(4.0)]
    left_frame, right_frame = (spark.createDataFrame(pa.Table.from_pylist(rows, _KINDS)) for rows in (left, right))
    own, subtracted = _bag(left_frame), _bag(right_frame)
    assert _bag(bag_difference(left_frame, right_frame)) == own - subtracted
    assert _bag(bag_intersection(left_frame, right_frame)) == own & subtracted
    assert len(own) == 7
