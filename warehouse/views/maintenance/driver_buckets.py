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
    """Return the new content of the changed buckets; on a first build, of all buckets.

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
    unchanged = (
        ~of_keys & np.isin(own["sub_index"].to_numpy(), list(touched)) & (own["_exp"].cast(pa.int64()).to_numpy() > move.now)
    )
    rest = own.filter(pa.array(unchanged))  # once: a table may have many rows
    fresh = entered(_in_buckets(matched, list(touched)), columns, state, move, dated=not move.first)
    return replacing(pa.concat_tables([fresh, rest.select(fresh.column_names).cast(fresh.schema)]), touched)


def _of_keys(stored: pa.Table, keys: pa.Table, key: Sequence[str]) -> NDArray[np.bool_]:
    """Return a mask of the rows that have one of the keys."""
    names = list(dict.fromkeys(key))
    numbered = stored.select(names).append_column(_ROW, pa.array(np.arange(stored.num_rows)))
    rows = semi_joined(DriverRows.of(numbered), DriverRows.of(keys), key).selectExpr(_ROW).toArrow()
    of_keys = np.zeros(stored.num_rows, dtype=bool)
    of_keys[rows[_ROW].to_numpy()] = True
    return of_keys


def _in_buckets(rows: pa.Table, sub_indexes: Sequence[int]) -> pa.Table:
    return rows.filter(pc.is_in(rows["sub_index"], pa.array(sub_indexes, rows.schema.field("sub_index").type)))


def exact_terms(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Return the terms of a GROUP BY of these columns in which 0.0 and -0.0 are different values.

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

    ``sub_index`` is the bucket in which the row is stored, or to which it belongs.
    """
    compared = [*columns, "_exp"]
    matched = _matched_by_arrow(held, answer, compared, state)
    matched = _matched_by_duckdb(held, answer, compared, state) if matched is None else matched
    sub_indexes, position = matched["sub_index"].cast(pa.int32()), matched.column_names.index("sub_index")
    missing = pc.is_null(sub_indexes).combine_chunks()
    assigned = buckets_of(matched.filter(missing), search_key, layout)
    return matched.set_column(position, "sub_index", pc.replace_with_mask(sub_indexes, missing, assigned))


def _matched_by_arrow(stored: pa.Table, answer: pa.Table, compared: Sequence[str], state: Sequence[str]) -> pa.Table | None:
    """Return the matched rows; None if the engines might disagree on equality, or equal rows are in order of their state."""
    if any(name not in rows.column_names for name in (*compared, *state) for rows in (stored, answer)):
        return None
    old, new = (rows.select([*compared, "_ts", *state]) for rows in (stored, answer))
    if old.schema.types != new.schema.types or not all(map(is_exact, old.select(compared).schema.types)):
        return None
    both = pa.Table.from_arrays(
        [
            pa.chunked_array([*above.chunks, *below.chunks], above.type)
            for above, below in zip(old.columns, new.columns, strict=True)
        ],
        old.column_names,
    )
    side = np.repeat([0, 1], [stored.num_rows, answer.num_rows])
    _, first, groups = np.unique(group_numbers(both.select(compared).columns), return_index=True, return_inverse=True)
    counts = np.bincount(groups * 2 + side, minlength=2 * len(first)).reshape(-1, 2)
    if state and (counts > 1).any():
        return None
    slots = np.concatenate([stored["_load_slot"].to_numpy(), np.zeros(answer.num_rows, np.int64)])
    order = np.lexsort((slots, both["_ts"].cast(pa.int64()).to_numpy(), side, groups))
    structs = _positions(both, slots, state)
    lists = [_lists(structs.take(pa.array(order[side[order] == number])), counts[:, number]) for number in (0, 1)]
    smallest = np.full(len(first), np.iinfo(np.int32).max, np.int32)
    np.minimum.at(smallest, groups[: stored.num_rows], stored["sub_index"].to_numpy())
    values = both.select(compared).take(pa.array(first))
    sub_indexes = pa.array(smallest, pa.int32(), mask=counts[:, 0] == 0)
    return values.append_column("_was", lists[0]).append_column("_came", lists[1]).append_column("sub_index", sub_indexes)


def _positions(rows: pa.Table, slots: NDArray[np.int64], state: Sequence[str]) -> pa.StructArray:
    """Return the elements of the lists ``_was`` and ``_came``."""
    carried = [rows[name].combine_chunks() for name in state]
    states = pa.StructArray.from_arrays(carried, list(state)) if state else pa.array(np.zeros(rows.num_rows, np.int32))
    return pa.StructArray.from_arrays(
        [rows["_ts"].combine_chunks(), pa.array(slots, pa.int64()), states], ["ts", "slot", "state"]
    )


def _lists(values: pa.Array, counts: NDArray[np.int64]) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32()), values)


def _matched_by_duckdb(stored: pa.Table, answer: pa.Table, compared: Sequence[str], state: Sequence[str]) -> pa.Table:
    shown = ", ".join(map(quoted, compared))
    state_fields = ", ".join(f"{quoted(name)} := {quoted(name)}" for name in state)
    position = f"struct_pack(ts := _ts, slot := _load_slot, state := {f'struct_pack({state_fields})' if state else '0'})"
    other_columns = ", ".join(map(quoted, ("_ts", *state)))
    both = (
        f"SELECT {shown}, {other_columns}, _load_slot, sub_index, 0 AS side FROM held "
        f"UNION ALL SELECT {shown}, {other_columns}, 0 AS _load_slot, NULL AS sub_index, 1 AS side FROM answer"
    )
    listed = f"list({position} ORDER BY {position})"
    lists = f"coalesce({listed} FILTER (side = 0), []) AS _was, coalesce({listed} FILTER (side = 1), []) AS _came"
    by = ", ".join(exact_terms(answer.schema, compared))
    query = f"SELECT {shown}, {lists}, min(sub_index) AS sub_index FROM ({both}) GROUP BY {by}"
    matched = query_in_driver(query, {"held": stored, "answer": answer})
    if matched is None:
        raise LeftToSparkError("DuckDB did not match the rows of the changed keys")
    return matched


def buckets_of(rows: pa.Table, names: Sequence[str], layout: Layout) -> pa.Array:
    """Return the sub-index of each row of a keyed table, by the columns of its search key."""
    types = [parse_type(from_arrow_type(rows.schema.field(name).type).simpleString()) for name in names]
    keys = [*zip(*(rows[name].to_pylist() for name in names), strict=True)]
    return pa.array(buckets(keys, types, layout), pa.int32())
