"""Rows of a table under another layout, other columns or another grid of times: what a migration writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout import exp_block_sql, slot_sql, sub_index_sql
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column
    from warehouse.layout import Layout

__all__ = ["Slots", "cell_sizes", "replaced", "reshaped", "reslotted"]

_PLACE = ("sub_index", "exp_block")


@dataclass(frozen=True)
class Slots:
    """A grid of times, in microseconds, and the last processed slot of it."""

    anchor: int
    interval: int
    last: int


def reshaped(
    rows: DataFrame, columns: Sequence[Column | ColumnRecord], renamed: Sequence[tuple[str, str]] = ()
) -> DataFrame:
    """Return rows with a table's columns of today: renamed, of a wider type, null where they were not there.

    What is no column of a user stays, after these; ``renamed`` are pairs of former and new names.
    """
    former = {new: old for old, new in renamed}
    left = {old for old, _ in renamed}
    stored = set(rows.columns)
    values = []
    for column in columns:
        source = former.get(column.name, "" if column.name in left else column.name)
        value = quoted(source) if source in stored else "NULL"
        values.append(f"CAST({value} AS {column.type}) AS {quoted(column.name)}")
    return rows.selectExpr(*values, *[quoted(name) for name in rows.columns if name.startswith("_") or name in _PLACE])


def reslotted(rows: DataFrame, layout: Layout, slots: Slots) -> DataFrame:
    """Return rows with their slots counted on another grid of times: load slots as on a first build, within the last p."""
    arrival = slot_sql("_ts", slots.anchor, slots.interval)
    load = f"greatest(least({arrival}, {slots.last}L), {slots.last - layout.periods + 1}L)"
    expiry = slot_sql("_exp", slots.anchor, slots.interval)
    kept = [name for name in rows.columns if name not in ("_load_slot", "_exp_slot")]
    return rows.selectExpr(*[quoted(name) for name in kept], f"{load} AS _load_slot", f"{expiry} AS _exp_slot")


def replaced(rows: DataFrame, layout: Layout) -> DataFrame:
    """Return rows with the sub-index and expiry block that a layout gives for their slots."""
    own = [quoted(name) for name in rows.columns if name not in _PLACE]
    never = f"(_exp = timestamp_micros({NEVER}))"
    return rows.selectExpr(
        *own,
        f"{sub_index_sql(layout, '_load_slot', '_exp_slot', never)} AS sub_index",
        f"{exp_block_sql(layout, '_load_slot', '_exp_slot', never)} AS exp_block",
    )


def cell_sizes(rows: DataFrame) -> dict[tuple[int, int], int]:
    """Return how many rows there are of each (sub-index, expiry block)."""
    counted = rows.groupBy(*_PLACE).agg(F.expr("count(*)")).collect()
    return {(cell, block): count for cell, block, count in counted}
