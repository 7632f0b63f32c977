"""The new content of a keyed table's buckets, computed in the driver from few rows, as :mod:`.keyed` does by Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.storage.arrow_types import compared_alike
from warehouse.storage.lookup import query_in_driver
from warehouse.views.maintenance.placement import slots_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.views.maintenance.input_facts import Move


__all__ = ["entered", "others", "touched_buckets"]


def touched_buckets(matched: pa.Table, *, stateful: bool) -> dict[int, tuple[int, int, int]]:
    """Return for each changed bucket how many rows the changed keys have in it, and how many rows are inserted and removed.

    Parameters
    ----------
    matched
        A row for each row of the answer before or now: ``_was`` and ``_came`` list its positions before and now.
    stateful
        Whether the rows also have columns of state, which may change in a row that stays.

    """
    was, came = (pc.list_value_length(matched[name]).to_numpy() for name in ("_was", "_came"))
    changed = was != came
    if stateful:
        changed |= np.array(
            [[row["state"] for row in before] != [row["state"] for row in now] for before, now in _pairs(matched)], dtype=bool
        )
    buckets = matched["sub_index"].to_numpy()
    touched = {}
    for bucket in np.unique(buckets[changed]).tolist():
        in_bucket = buckets == bucket
        touched[bucket] = (
            int(came[in_bucket].sum()),
            int(np.maximum(came - was, 0)[in_bucket].sum()),
            int(np.maximum(was - came, 0)[in_bucket].sum()),
        )
    return touched


def _pairs(matched: pa.Table) -> zip[tuple[list[dict[str, object]], list[dict[str, object]]]]:
    return zip(matched["_was"].to_pylist(), matched["_came"].to_pylist(), strict=True)


def entered(matched: pa.Table, columns: Sequence[str], state: Sequence[str], move: Move, *, dated: bool) -> pa.Table:
    """Return the rows of the changed keys that are in the answer now, with all columns.

    Parameters
    ----------
    matched
        As for :func:`touched_buckets`, of the buckets that are written.
    columns, state
        The user's columns, and the columns of ``state``.
    move
        The times between which the step moves.
    dated
        Whether a row that began earlier and enters now gets the present time: the exact instant at which other rows let it enter
        is unknown.

    """
    was, came = (matched[name].combine_chunks() for name in ("_was", "_came"))
    parents = pc.list_parent_indices(came)
    rows, now, before = parents.to_numpy(), came.flatten(), was.flatten()
    starts, former_starts = (lists.offsets.to_numpy() - lists.offsets.to_numpy()[0] for lists in (came, was))
    positions = np.arange(len(rows)) - starts[rows]
    stays = positions < np.diff(former_starts)[rows]
    former = pa.array(former_starts[rows] + positions, pa.int64(), mask=~stays)
    kind = now.field("ts").type
    gen = now.field("ts").cast(pa.int64()).to_numpy()
    if dated:
        gen = np.where(gen > move.before, gen, move.now)
    loads = np.clip(slots_of(gen, move), min(move.k0 + 1, move.k), move.k)
    content = matched.select([*columns, "_exp", "sub_index"]).take(parents)
    ends = content["_exp"].cast(pa.int64()).to_numpy()
    states = {name: now.field("state").field(name) for name in state}
    begins = pc.coalesce(before.field("ts").take(former).cast(pa.int64()), pa.array(gen, pa.int64()))
    return pa.table(
        {
            **{name: content[name] for name in columns},
            **states,
            "_ts": begins.cast(kind),
            "_exp": content["_exp"],
            "_load_slot": pc.coalesce(before.field("slot").take(former), pa.array(loads, pa.int64())),
            "_exp_slot": pa.array(slots_of(ends, move), pa.int64()),
            "sub_index": content["sub_index"],
            "exp_block": pa.repeat(pa.scalar(0, pa.int64()), len(rows)),
        }
    )


def others(rows: pa.Table, keys: pa.Table, columns: Sequence[str]) -> pa.Table | None:
    """Return the rows whose columns have none of the keys; None if the engines might disagree on this."""
    if not columns:
        return rows.slice(0, 0)
    values = [rows[name] for name in columns]
    if any(value.type != key.type or not _exact(key.type) for value, key in zip(values, keys.columns, strict=True)):
        return None
    names = [f"key_{number}" for number in range(len(columns))]
    numbered = pa.table({"row": pa.array(np.arange(rows.num_rows)), **dict(zip(names, values, strict=True))})
    equal = " AND ".join(f"h.{name} IS NOT DISTINCT FROM k.{name}" for name in names)
    remaining = query_in_driver(f"SELECT h.row FROM h ANTI JOIN k ON {equal}", _tables(numbered, keys.rename_columns(names)))
    return None if remaining is None else rows.take(remaining["row"])


def _tables(rows: pa.Table, keys: pa.Table) -> Mapping[str, pa.Table]:
    return {"h": rows, "k": keys}


def _exact(kind: pa.DataType) -> bool:
    return compared_alike(kind) or pa.types.is_boolean(kind) or pa.types.is_timestamp(kind) or pa.types.is_decimal(kind)
