"""Assigns the rows of a view to cells: load slot, expiration slot, sub-index and expiry block (DESIGN 2, 4, 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.catalog.identifiers import quoted
from warehouse.layout import exp_block, exp_block_sql, slot_sql, sub_index, sub_index_sql
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["bucket_sql", "load_slot_sql", "placed", "slots_of"]

_Rows = TypeVar("_Rows", "DataFrame", pa.Table)
"""Rows of Spark, or few rows in the driver."""


def placed(rows: _Rows, columns: Sequence[str], layout: Layout, move: Move) -> _Rows:
    """Return new rows with all system columns and ``_fate``: ``live``, or ``dead`` for short-lived rows.

    Rows in the driver get their cells in the driver, since Spark would plan longer than it runs.

    Parameters
    ----------
    rows
        The rows, with ``_ts``, ``_exp`` (the end of the row in the state) and ``_out`` (its end in the answer).
    columns
        The user columns to return.
    layout, move
        The layout of the table, and the slots between which the step moves it.

    """
    return _in_driver(rows, columns, layout, move) if isinstance(rows, pa.Table) else _by_spark(rows, columns, layout, move)


def _by_spark(rows: DataFrame, columns: Sequence[str], layout: Layout, move: Move) -> DataFrame:
    quoted_columns = [quoted(name) for name in columns]
    judged = rows.where("_exp > _ts").selectExpr(
        *quoted_columns, "_ts", "_out AS _exp", f"CASE WHEN unix_micros(_exp) > {move.now}L THEN 'live' ELSE 'dead' END AS _fate"
    )
    slotted = judged.selectExpr(
        "*",
        f"{load_slot_sql('_ts', move)} AS _load_slot",
        f"{slot_sql('_exp', move.anchor, move.interval)} AS _exp_slot",
        f"_exp = timestamp_micros({NEVER}L) AS _never",
    )
    return slotted.selectExpr(
        *quoted_columns, "_ts", "_exp", "_fate", "_load_slot", "_exp_slot",
        f"{sub_index_sql(layout, '_load_slot', '_exp_slot', '_never')} AS sub_index",
        f"{exp_block_sql(layout, '_load_slot', '_exp_slot', '_never')} AS exp_block",
    )  # fmt: skip


def _in_driver(rows: pa.Table, columns: Sequence[str], layout: Layout, move: Move) -> pa.Table:
    rows = rows.filter(pc.greater(rows["_exp"], rows["_ts"]))
    ends = rows["_out"].cast(pa.int64()).to_numpy()
    loads = np.clip(slots_of(rows["_ts"].cast(pa.int64()).to_numpy(), move), min(move.k0 + 1, move.k), move.k)
    exp_slots = slots_of(ends, move)
    sub_indexes, exp_blocks = _cells(layout, loads, exp_slots, ends == NEVER)
    by_name = {name.lower(): rows[name] for name in rows.column_names}
    state_ends = rows["_exp"].cast(pa.int64())
    return pa.table(
        {
            **{name: by_name[name.lower()] for name in columns},
            "_ts": rows["_ts"],
            "_exp": rows["_out"],
            "_fate": pc.if_else(pc.greater(state_ends, move.now), "live", "dead"),
            "_load_slot": pa.array(loads, pa.int64()),
            "_exp_slot": pa.array(exp_slots, pa.int64()),
            "sub_index": pa.array(sub_indexes, pa.int32()),
            "exp_block": pa.array(exp_blocks, pa.int64()),
        }
    )


def slots_of(instants: NDArray[np.int64], move: Move) -> NDArray[np.int64]:
    """Return :func:`warehouse.time.slot` of each instant."""
    return -((move.anchor - instants) // move.interval)


def _cells(
    layout: Layout, loads: NDArray[np.int64], exp_slots: NDArray[np.int64], never: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sub-index and the expiry block of each row; each pair of slots is computed once."""
    (distinct_loads, of_load), (_, of_end) = (np.unique(slots, return_inverse=True) for slots in (loads, exp_slots))
    _, first, pair = np.unique((of_end * 2 + never) * len(distinct_loads) + of_load, return_index=True, return_inverse=True)
    pairs = list(zip(*(values[first].tolist() for values in (loads, exp_slots, never)), strict=True))
    sub_indexes = np.array([sub_index(layout, load, ends, never=endless) for load, ends, endless in pairs], np.int64)
    exp_blocks = np.array([exp_block(layout, load, ends, never=endless) for load, ends, endless in pairs], np.int64)
    return sub_indexes[pair], exp_blocks[pair]


def load_slot_sql(gen: str, move: Move) -> str:
    """Return ``clamp(slot(gen), k0 + 1, k)`` as SQL."""
    return f"greatest(least({slot_sql(gen, move.anchor, move.interval)}, {move.k}L), {min(move.k0 + 1, move.k)}L)"


def bucket_sql(columns: Sequence[str], layout: Layout) -> str:
    """Return the sub-index of a keyed table: ``base + pmod(xxhash64(key), n) + 1``."""
    key = ", ".join(map(quoted, columns))
    return f"CAST({layout.base} + pmod(xxhash64({key}), {layout.cells}L) + 1 AS INT)"
