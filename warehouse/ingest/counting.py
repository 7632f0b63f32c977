"""Counts the rows of a batch by fate and cell, by Spark or in the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.ingest.batch_counts import BatchCounts
from warehouse.ingest.classify import ACCEPTED_FATES
from warehouse.layout.columns import CELL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import DataFrame

__all__ = ["counted_by_spark", "counted_in_driver", "placed_counts"]


def counted_by_spark(rows: DataFrame) -> BatchCounts:
    """Return the counts of classified rows, by one Spark job."""
    summary = (
        rows.selectExpr(
            "_fate", "_taken", "sub_index", "exp_block", "_late", "_over",
            "CASE WHEN _fate = 'deferred' THEN _arrival_slot END AS slot",
        )
        .groupBy("_fate", "_taken", "sub_index", "exp_block", "slot")
        .agg(F.expr("count(*)"), F.expr("count_if(_late)"), F.expr("count_if(_over)"))
        .collect()
    )  # fmt: skip
    return _summed(summary)


def counted_in_driver(rows: pa.Table) -> BatchCounts:
    """Return the counts of classified rows in the driver."""
    deferred = pc.equal(rows["_fate"], "deferred")
    by = rows.select(["_fate", "_taken", "sub_index", "exp_block"]).append_column(
        "slot", pc.if_else(deferred, rows["_arrival_slot"], None)
    )
    flags = {name: pc.fill_null(rows[name], False).cast(pa.int64()) for name in ("_late", "_over")}  # noqa: FBT003 - a value
    counted = (
        pa.table({**dict(zip(by.column_names, by.columns, strict=True)), **flags})
        .group_by(by.column_names)
        .aggregate([([], "count_all"), ("_late", "sum"), ("_over", "sum")])
        .select([*by.column_names, "count_all", "_late_sum", "_over_sum"])
    )
    return _summed(zip(*(column.to_pylist() for column in counted.columns), strict=True))


def placed_counts(rows: DataFrame | pa.Table) -> BatchCounts:
    """Return the counts of rows that have ``_fate`` and their cells."""
    by = ["_fate", *CELL]
    summary: Iterable[Sequence[Any]]
    if isinstance(rows, pa.Table):
        table = rows.select(by).group_by(by).aggregate([([], "count_all")]).select([*by, "count_all"])
        summary = zip(*(column.to_pylist() for column in table.columns), strict=True)
    else:
        summary = rows.groupBy(*by).count().collect()
    return _summed((fate, False, cell, block, None, count, 0, 0) for fate, cell, block, count in summary)


def _summed(summary: Iterable[Sequence[Any]]) -> BatchCounts:
    """Return the sums of (fate, taken, sub-index, expiry block, slot, rows, late rows, rows over their lifetime)."""
    cells: dict[tuple[int, int], int] = {}
    slots: dict[int, int] = {}
    fates = {"live": 0, "deferred": 0, "dead": 0, "rejected": 0}
    late = over = taken = 0
    for fate, was_taken, cell, block, slot, count, late_rows, over_rows in summary:
        fates[fate if fate in ACCEPTED_FATES else "rejected"] += count
        taken += count if was_taken else 0
        if fate == "live":
            cells[cell, block] = cells.get((cell, block), 0) + count
            late += late_rows
            over += over_rows
        elif fate == "deferred":
            slots[slot] = slots.get(slot, 0) + count
    return BatchCounts(
        rows=sum(fates.values()) - taken,
        taken=taken,
        late=late,
        over_lifetime=over,
        cells=cells,
        slots=slots,
        **fates,
    )
