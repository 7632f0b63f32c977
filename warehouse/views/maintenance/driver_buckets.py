"""The new content of a keyed table's buckets from the rows of its changed keys, if the driver has all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type

from warehouse.catalog.duck_sql import quoted
from warehouse.catalog.types import parse_type
from warehouse.storage.arrow_keys import group_numbers, is_exact
from warehouse.storage.hashing import buckets
from warehouse.storage.lookup import query_in_driver
from warehouse.views.language.driver_types import LeftToSparkError
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.keyed import Replacement, replacing
from warehouse.views.maintenance.keys import semi_joined
from warehouse.views.maintenance.matched_buckets import entered, touched_buckets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from warehouse.layout import Layout
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["buckets_of", "exact_terms", "matched_rows", "rewritten"]

_ROW = "_row"
"""The column of a row's number."""


def rewritten(
    own: pa.Table,
    changed: tuple[pa.Table, Sequence[str]] | None,
    answer: pa.Table,
    *,
    columns: Sequence[str],
    search_key: Sequence[str],
    state: Sequence[str],
    layout: Layout,
    move: Move,
) -> Replacement:
    """Return the new content of the changed buckets; on a first build of all.

    Parameters
    ----------
    own
        The table's rows that were live at the last epoch, with all columns.
    changed
        The changed keys and their columns; None: every row may have changed.
    answer
        The rows of the changed keys that are in the answer now: ``columns``, ``state``, ``_ts`` and ``_exp``.
    columns, search_key, state, layout, move
        As for :func:`warehouse.views.maintenance.keyed.replacement`.

    Raises
    ------
    LeftToSparkError
        When Spark must compute it.

    """
    for name in (*columns, *state):
        if answer.schema.field(name).type != own.schema.field(name).type:
            raise LeftToSparkError(f"the driver makes another type of {name} than is stored")
    of_keys = np.ones(own.num_rows, dtype=bool) if changed is None else _of_keys(own, *changed)
    matched = matched_rows(own.take(pa.array(np.flatnonzero(of_keys))), answer, columns, state, search_key, layout)
    touched = touched_buckets(matched, stateful=bool(state))
    if not touched:
        return Replacement(None, {}, {}, 0)
    kept = ~of_keys & np.isin(own["sub_index"].to_numpy(), list(touched)) & (own["_exp"].cast(pa.int64()).to_numpy() > move.now)
    rest = own.filter(pa.array(kept))  # once: a table may have many rows
    fresh = entered(_in_buckets(matched, list(touched)), columns, state, move, dated=not move.first)
    return replacing(pa.concat_tables([fresh, rest.select(fresh.column_names).cast(fresh.schema)]), touched)


def _of_keys(own: pa.Table, keys: pa.Table, key: Sequence[str]) -> NDArray[np.bool_]:
    """Return for each row whether it has one of the keys."""
    names = list(dict.fromkeys(key))
    numbered = own.select(names).append_column(_ROW, pa.array(np.arange(own.num_rows)))
    rows = semi_joined(DriverRows.of(numbered), DriverRows.of(keys), key).selectExpr(_ROW).toArrow()
    of_keys = np.zeros(own.num_rows, dtype=bool)
    of_keys[rows[_ROW].to_numpy()] = True
    return of_keys


def _in_buckets(rows: pa.Table, buckets: Sequence[int]) -> pa.Table:
    return rows.filter(pc.is_in(rows["sub_index"], pa.array(buckets, rows.schema.field("sub_index").type)))


def exact_terms(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Return terms that group rows with the same values in these columns; 0.0 and -0.0 are different values.

    Raises
    ------
    LeftToSparkError
        When the engines might disagree on which rows are equal.

    """
    kinds = {field.name.lower(): field.type for field in schema}
    signs = []
    for name in names:
        if pa.types.is_nested(kinds[name.lower()]):
            raise LeftToSparkError("the driver does not compare nested values")
        if pa.types.is_floating(kinds[name.lower()]):
            signs.append(f"CASE WHEN {quoted(name)} = 0 THEN CAST({quoted(name)} AS VARCHAR) = '-0.0' END")
    return [*map(quoted, names), *signs]


def matched_rows(
    held: pa.Table, answer: pa.Table, columns: Sequence[str], state: Sequence[str], search_key: Sequence[str], layout: Layout
) -> pa.Table:
    """Return a row for each row of the answer before or now; ``_was`` and ``_came`` list its positions before and now.

    ``sub_index`` is the bucket in which it is stored, or to which it belongs.
    """
    same = [*columns, "_exp"]
    found = _matched_by_arrow(held, answer, same, state)
    found = _matched_by_duckdb(held, answer, same, state) if found is None else found
    known, place = found["sub_index"].cast(pa.int32()), found.column_names.index("sub_index")
    new = pc.is_null(known).combine_chunks()
    made = buckets_of(found.filter(new), search_key, layout)
    return found.set_column(place, "sub_index", pc.replace_with_mask(known, new, made))


def _matched_by_arrow(held: pa.Table, answer: pa.Table, same: Sequence[str], state: Sequence[str]) -> pa.Table | None:
    """Return the matched rows; None if the engines might disagree on equality, or equal rows are in order of their state."""
    if any(name not in rows.column_names for name in (*same, *state) for rows in (held, answer)):
        return None
    own, new = (rows.select([*same, "_ts", *state]) for rows in (held, answer))
    if own.schema.types != new.schema.types or not all(map(is_exact, own.select(same).schema.types)):
        return None
    every = pa.Table.from_arrays(
        [pa.chunked_array([*one.chunks, *other.chunks], one.type) for one, other in zip(own.columns, new.columns, strict=True)],
        own.column_names,
    )
    side = np.repeat([0, 1], [held.num_rows, answer.num_rows])
    _, first, groups = np.unique(group_numbers(every.select(same).columns), return_index=True, return_inverse=True)
    counts = np.bincount(groups * 2 + side, minlength=2 * len(first)).reshape(-1, 2)
    if state and (counts > 1).any():
        return None
    slots = np.concatenate([held["_load_slot"].to_numpy(), np.zeros(answer.num_rows, np.int64)])
    order = np.lexsort((slots, every["_ts"].cast(pa.int64()).to_numpy(), side, groups))
    structs = _positions(every, slots, state)
    lists = [_lists(structs.take(pa.array(order[side[order] == which])), counts[:, which]) for which in (0, 1)]
    buckets = np.full(len(first), np.iinfo(np.int32).max, np.int32)
    np.minimum.at(buckets, groups[: held.num_rows], held["sub_index"].to_numpy())
    values = every.select(same).take(pa.array(first))
    known = pa.array(buckets, pa.int32(), mask=counts[:, 0] == 0)
    return values.append_column("_was", lists[0]).append_column("_came", lists[1]).append_column("sub_index", known)


def _positions(rows: pa.Table, slots: NDArray[np.int64], state: Sequence[str]) -> pa.StructArray:
    """Return the elements of the lists of matched rows."""
    carried = [rows[name].combine_chunks() for name in state]
    held = pa.StructArray.from_arrays(carried, list(state)) if state else pa.array(np.zeros(rows.num_rows, np.int32))
    return pa.StructArray.from_arrays([rows["_ts"].combine_chunks(), pa.array(slots, pa.int64()), held], ["ts", "slot", "state"])


def _lists(values: pa.Array, counts: NDArray[np.int64]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32()), values)


def _matched_by_duckdb(held: pa.Table, answer: pa.Table, same: Sequence[str], state: Sequence[str]) -> pa.Table:
    shown = ", ".join(map(quoted, same))
    carried = ", ".join(f"{quoted(name)} := {quoted(name)}" for name in state)
    one = f"struct_pack(ts := _ts, slot := _load_slot, state := {f'struct_pack({carried})' if state else '0'})"
    own = ", ".join(map(quoted, ("_ts", *state)))
    every = (
        f"SELECT {shown}, {own}, _load_slot, sub_index, 0 AS side FROM held "
        f"UNION ALL SELECT {shown}, {own}, 0 AS _load_slot, NULL AS sub_index, 1 AS side FROM answer"
    )
    listed = f"list({one} ORDER BY {one})"
    lists = f"coalesce({listed} FILTER (side = 0), []) AS _was, coalesce({listed} FILTER (side = 1), []) AS _came"
    by = ", ".join(exact_terms(answer.schema, same))
    query = f"SELECT {shown}, {lists}, min(sub_index) AS sub_index FROM ({every}) GROUP BY {by}"
    found = query_in_driver(query, {"held": held, "answer": answer})
    if found is None:
        raise LeftToSparkError("DuckDB did not match the rows of the changed keys")
    return found


def buckets_of(rows: pa.Table, names: Sequence[str], layout: Layout) -> pa.Array:
    """Return the sub-index of each row of a keyed table, by the columns of its search key."""
    types = [parse_type(from_arrow_type(rows.schema.field(name).type).simpleString()) for name in names]
    keys = [*zip(*(rows[name].to_pylist() for name in names), strict=True)]
    return pa.array(buckets(keys, types, layout), pa.int32())
