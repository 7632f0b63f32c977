"""Tables of keyed rows (label STR): changed rows are replaced in their buckets.

A bucket holds ``{ r : sub_index = base + pmod(xxhash64(search key), n) + 1 }``. A step rewrites the buckets in which a row
changed, and no other. A row that is in the answer before and after keeps its ``_ts`` and ``_load_slot``, so the rows with
``_load_slot > k0`` are the new ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import StructType

from warehouse.catalog.identifiers import quoted
from warehouse.layout import slot_sql
from warehouse.layout.columns import SLOTS
from warehouse.storage.arrow_types import can_be_collected
from warehouse.views.maintenance.cache import DistinctKeys, collected_keys
from warehouse.views.maintenance.keys import anti_joined, grouped_exactly, semi_joined
from warehouse.views.maintenance.matched_buckets import entered, others, touched_buckets
from warehouse.views.maintenance.placement import bucket_sql, load_slot_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.maintenance.cache import Cache
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["MovedCells", "Replacement", "changed_keys", "no_stored_rows_like", "replacement", "replacing"]


@dataclass(frozen=True)
class MovedCells:
    """The number of rows of each cell's (bucket, block) new run, and the cells whose files leave."""

    sizes: Mapping[tuple[int, int], int]
    leaving: Collection[tuple[int, int]]


@dataclass(frozen=True)
class Replacement:
    """The new content of the changed buckets: rows with all columns, and per bucket the rows written, inserted and removed.

    ``rows`` is None if no row changed; few rows are in the driver. Buckets are replaced whole, in block 0, unless ``cells`` lists
    the cells that are replaced.
    """

    rows: DataFrame | pa.Table | None
    sizes: Mapping[int, int]
    fresh: Mapping[int, int]
    gone: int
    cells: MovedCells | None = None


def changed_keys(keys: DataFrame, cache: Cache) -> DistinctKeys:
    """Return changed keys, cached so that they are computed once."""
    return collected_keys(keys) or DistinctKeys(cache.add(keys))


def no_stored_rows_like(rows: DataFrame) -> DataFrame:
    """Return an empty frame with the columns that a keyed table of these rows has."""
    return rows.where("false").withColumns({name: F.lit(0).cast("bigint") for name in SLOTS})


def replacement(
    old: DataFrame,
    new: DataFrame,
    keys: DistinctKeys | None,
    changed_key: Sequence[str],
    *,
    of_keys: DataFrame | None,
    columns: Sequence[str],
    search_key: Sequence[str],
    state: Sequence[str] = (),
    layout: Layout,
    move: Move,
    cache: Cache,
    timed: bool = False,
    stored: Callable[[Collection[int]], pa.Table | None] | None = None,
) -> Replacement:
    """Return the new content of the changed buckets.

    Parameters
    ----------
    old
        The table's rows that were live at the last epoch, without the partition columns.
    new
        The rows of the changed keys that are in the answer now: ``columns``, ``_ts`` and ``_exp``.
    keys, changed_key
        The changed values of these columns; None: every row may have changed.
    of_keys
        ``old``, but rows with other keys may be missing; None: ``old`` itself.
    columns, state
        The columns by which rows are compared, and others that may change in a row that stays the same.
    search_key
        The columns whose hash is the bucket.
    layout, move
        The table's layout; the times between which the step moves.
    cache
        Caches rows until the step is done.
    timed
        Whether rows that differ only in ``_ts`` are different rows, which keep their ``_ts``.
    stored
        Reads the live rows of some of the table's buckets, if they are certainly few; None: Spark computes the content.

    """
    quoted_columns, state_names = [quoted(name) for name in columns], [quoted(name) for name in state]
    carried = f"struct({', '.join(state_names)})" if state else "0"
    row = f"named_struct('ts', _ts, 'slot', {{slot}}, 'state', {carried})"
    was, came = row.format(slot="_load_slot"), row.format(slot="0L")
    names = [*columns, "_exp", *(["_ts"] if timed else [])]
    compared = list(map(quoted, names))
    changed = None if keys is None else keys.rows
    stored_rows = semi_joined(old if of_keys is None else of_keys, changed, changed_key)
    former = stored_rows.selectExpr(*compared, f"{was} AS _was", f"if(false, {was}, NULL) AS _came")
    arrived = new.selectExpr(*compared, f"if(false, {came}, NULL) AS _was", f"{came} AS _came")
    both = former.unionByName(arrived)
    matched = grouped_exactly(
        both,
        names,
        [F.expr("array_sort(collect_list(_was)) AS _was"), F.expr("array_sort(collect_list(_came)) AS _came")],
    ).selectExpr("*", f"{bucket_sql(search_key, layout)} AS sub_index")
    if stored is not None and can_be_collected(StructType([field for field in matched.schema.fields if field.name in names])):
        dated = not move.first and not timed
        content = _in_driver(matched.toArrow(), keys, changed_key, columns, state, move, stored, dated=dated)
        if content is not None:
            return content
    matched = cache.add(matched)
    summary = (
        matched.groupBy("sub_index")
        .agg(
            F.expr("sum(size(_came))"),
            F.expr("sum(greatest(size(_came) - size(_was), 0))"),
            F.expr("sum(greatest(size(_was) - size(_came), 0))"),
            F.expr("bool_or(_was.state <> _came.state)"),
        )
        .collect()
    )
    touched = {row[0]: (row[1], row[2], row[3]) for row in summary if any(row[2:])}
    if not touched:
        cache.drop(matched)
        return Replacement(None, {}, {}, 0)
    buckets = f"sub_index IN ({', '.join(map(str, touched))})"
    gen = "_came[_at].ts"
    if not move.first and not timed:  # other rows let an earlier row enter now; the exact instant is unknown
        gen = f"CASE WHEN unix_micros({gen}) > {move.before}L THEN {gen} ELSE timestamp_micros({move.now}L) END"
    stays = "named_struct('ts', _was[_at].ts, 'slot', _was[_at].slot, 'state', _came[_at].state)"
    enters = f"named_struct('ts', {gen}, 'slot', {load_slot_sql(gen, move)}, 'state', _came[_at].state)"
    exploded = f"explode(transform(_came, (_one, _at) -> CASE WHEN _at < size(_was) THEN {stays} ELSE {enters} END))"
    state_values = [f"_row.state.{name} AS {name}" for name in state_names]
    came_in = (
        matched.where(buckets)
        .where("size(_came) > 0")
        .selectExpr(*quoted_columns, "_exp", "sub_index", f"{exploded} AS _row")
        .selectExpr(
            *quoted_columns, *state_values, "_row.ts AS _ts", "_exp", "_row.slot AS _load_slot", *_derived(move), "sub_index",
            "0L AS exp_block",
        )
    )  # fmt: skip
    unchanged = anti_joined(old, changed, changed_key).where(f"unix_micros(_exp) > {move.now}L")
    rest = unchanged.selectExpr(
        *quoted_columns, *state_names, "_ts", "_exp", "_load_slot", "_exp_slot", f"{bucket_sql(search_key, layout)} AS sub_index",
        "0L AS exp_block",
    ).where(buckets)  # fmt: skip
    return replacing(came_in.unionByName(rest), touched)


def replacing(rows: DataFrame | pa.Table, touched: Mapping[int, tuple[int, int, int]]) -> Replacement:
    """Return the new content of buckets: their rows, and for each the number of rows, of inserted and of removed rows."""
    return Replacement(
        rows,
        {bucket: count for bucket, (count, _, _) in touched.items()},
        {bucket: count for bucket, (_, count, _) in touched.items()},
        sum(count for _, _, count in touched.values()),
    )


def _in_driver(
    matched: pa.Table,
    keys: DistinctKeys | None,
    changed_key: Sequence[str],
    columns: Sequence[str],
    state: Sequence[str],
    move: Move,
    stored: Callable[[Collection[int]], pa.Table | None],
    *,
    dated: bool,
) -> Replacement | None:
    """Return the new content of the changed buckets, made from few rows; None: Spark must compute it."""
    touched = touched_buckets(matched, stateful=bool(state))
    if not touched:
        return Replacement(None, {}, {}, 0)
    written = matched.filter(pc.is_in(matched["sub_index"], pa.array(touched, matched.schema.field("sub_index").type)))
    rows = entered(written, columns, state, move, dated=dated)
    if keys is not None and keys.values is not None:
        stored_rows = stored(touched)
        rest = None if stored_rows is None else others(stored_rows, keys.values.select(list(changed_key)), changed_key)
        if rest is None:
            return None
        rows = pa.concat_tables([rows, rest.select(rows.column_names).cast(rows.schema)])
    return replacing(rows, touched)


def _derived(move: Move) -> list[str]:
    return [f"{slot_sql('_exp', move.anchor, move.interval)} AS _exp_slot"]
