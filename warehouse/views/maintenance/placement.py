"""Where the rows of a view lie: load slot, expiration slot, sub-index and expiry block (DESIGN 2, 4, 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.layout import exp_block_sql, slot_sql, sub_index_sql
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.maintenance.feeds import Move

__all__ = ["PLACED", "bucket_sql", "load_slot_sql", "placed"]

PLACED = ("_ts", "_exp", "_load_slot", "_exp_slot", "sub_index", "exp_block")


def placed(rows: DataFrame, columns: Sequence[str], layout: Layout, move: Move) -> DataFrame:
    """Return new rows with ``_fate``: ``live`` ones with all system columns, ``dead`` ones that are short-lived.

    ``rows`` have ``_ts``, ``_exp`` (when the state ends them) and ``_out`` (when the answer does).
    """
    own = [quoted(name) for name in columns]
    judged = rows.where("_exp > _ts").selectExpr(
        *own, "_ts", "_out AS _exp", f"CASE WHEN unix_micros(_exp) > {move.now}L THEN 'live' ELSE 'dead' END AS _fate"
    )
    slotted = judged.selectExpr(
        "*",
        f"{load_slot_sql('_ts', move)} AS _load_slot",
        f"{slot_sql('_exp', move.anchor, move.interval)} AS _exp_slot",
        f"_exp = timestamp_micros({NEVER}L) AS _never",
    )
    return slotted.selectExpr(
        *own, "_ts", "_exp", "_fate", "_load_slot", "_exp_slot",
        f"{sub_index_sql(layout, '_load_slot', '_exp_slot', '_never')} AS sub_index",
        f"{exp_block_sql(layout, '_load_slot', '_exp_slot', '_never')} AS exp_block",
    )  # fmt: skip


def load_slot_sql(gen: str, move: Move) -> str:
    """``clamp(slot(gen), k0 + 1, k)``."""
    return f"greatest(least({slot_sql(gen, move.anchor, move.interval)}, {move.k}L), {min(move.k0 + 1, move.k)}L)"


def bucket_sql(columns: Sequence[str], layout: Layout) -> str:
    """The sub-index of a keyed table: ``base + pmod(xxhash64(key), n) + 1``."""
    key = ", ".join(map(quoted, columns))
    return f"CAST({layout.base} + pmod(xxhash64({key}), {layout.cells}L) + 1 AS INT)"
