"""Relations as versions: each change of a key begins a version and ends the one before (update-patterns sheet, 4.3).

A relation's table holds ``{ (key, columns, _ts, _exp) : columns were valid from _ts to _exp }``; current versions never
expire. A change of a non-retroactive relation that arrives late takes effect at the last window time, since rows that
arrived before it have been joined already; a deleted key of such a relation never comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout import slot_sql
from warehouse.time import NEVER
from warehouse.views.maintenance.keys import anti_joined, semi_joined
from warehouse.views.maintenance.placement import bucket_sql, load_slot_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["changes_of", "reused", "rewritten", "versions_of"]

_ORDER = (
    "named_struct('file', coalesce(_file, _taken_file), 'start', coalesce(_start, 0L), "
    "'at', coalesce(_position, _taken_record))"
)
_NEVER = f"timestamp_micros({NEVER}L)"


def reused(rows: DataFrame, stored: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return a batch's classified rows, with the fate ``key_reused`` for rows that bring a deleted key back.

    ``stored`` are the relation's versions. A delete counts if the key existed: in the table, or earlier in the batch.
    """
    key_columns = [quoted(name) for name in key]
    names = [f"_key_{number}" for number in range(len(key))]
    stored_keys = stored.groupBy(*[F.col(name) for name in key_columns]).agg(F.expr(f"max(_exp) < {_NEVER} AS _deleted"))
    renamed_keys = stored_keys.selectExpr(
        *[f"{name} AS {alias}" for name, alias in zip(key_columns, names, strict=True)], "_deleted"
    )
    equal = " AND ".join(f"{name} <=> {alias}" for name, alias in zip(key_columns, names, strict=True))
    with_deleted = rows.join(renamed_keys, F.expr(f"_fate = 'live' AND {equal}"), "left")
    earlier = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    window = f"OVER (PARTITION BY {', '.join(key_columns)}, _fate ORDER BY _ts, {_ORDER} {earlier})"
    existing = with_deleted.selectExpr(
        "*", f"_deleted IS NOT NULL OR coalesce(max(CASE WHEN _op = 'upsert' THEN 1 END) {window}, 0) = 1 AS _there"
    )
    ended = existing.selectExpr("*", f"coalesce(max(CASE WHEN _op = 'delete' AND _there THEN 1 END) {window}, 0) = 1 AS _ended")
    banned = "_fate = 'live' AND _op = 'upsert' AND (coalesce(_deleted, false) OR _ended)"
    message = "'the key was deleted from the relation, which is not retroactive; use another key, or retroactive = true'"
    raw = f"to_json(struct({', '.join(key_columns)}))"
    columns = [quoted(name) for name in rows.columns if name not in ("_fate", "_message", "_raw")]
    return ended.selectExpr(
        *columns,
        f"CASE WHEN {banned} THEN 'key_reused' ELSE _fate END AS _fate",
        f"CASE WHEN {banned} THEN {message} ELSE _message END AS _message",
        f"CASE WHEN {banned} THEN {raw} ELSE _raw END AS _raw",
    )


def changes_of(live: DataFrame, columns: Sequence[str], move: Move, *, retroactive: bool) -> DataFrame:
    """Return the changes of a batch: columns, ``_ts``, ``_op`` and their order at one instant."""
    ts = "_ts" if retroactive or move.first else f"greatest(_ts, timestamp_micros({move.before}L))"
    return live.selectExpr(*map(quoted, columns), f"{ts} AS _ts", "_op", f"{_ORDER} AS _order")


def versions_of(changes: DataFrame, stored: DataFrame, columns: Sequence[str], key: Sequence[str]) -> DataFrame:
    """Return all versions of the changed keys: columns, ``_ts``, ``_exp``."""
    quoted_columns, keys = [quoted(name) for name in columns], [quoted(name) for name in key]
    order = "CAST(NULL AS struct<file: string, start: bigint, at: bigint>) AS _order"
    old = semi_joined(stored, changes.select(*keys).distinct(), key)
    begun = old.selectExpr(*quoted_columns, "_ts", "'upsert' AS _op", "1 AS _rank", order)
    # A version that ended by a delete has no successor; a version that ended by the next version is ended by it again.
    ended = old.where(f"_exp < {_NEVER}").selectExpr(*quoted_columns, "_exp AS _ts", "'delete' AS _op", "0 AS _rank", order)
    arrived = changes.selectExpr(*quoted_columns, "_ts", "_op", "2 AS _rank", "_order")
    events = begun.unionByName(ended).unionByName(arrived)
    following = f"lead(_ts) OVER (PARTITION BY {', '.join(keys)} ORDER BY _ts, _rank, _order)"
    spans = events.selectExpr(*quoted_columns, "_ts", "_op", f"coalesce({following}, {_NEVER}) AS _exp")
    return spans.where("_op = 'upsert' AND _exp > _ts").selectExpr(*quoted_columns, "_ts", "_exp")


def rewritten(
    versions: DataFrame,
    stored: DataFrame,
    columns: Sequence[str],
    key: Sequence[str],
    changed: DataFrame,
    layout: Layout,
    move: Move,
    history: int | None,
) -> DataFrame:
    """Return the new content of the buckets of the changed keys, with all columns.

    Versions that had ended ``history`` microseconds before the last window time are removed; a deleted key keeps its
    last version, which shows that the key existed.
    """
    quoted_columns, keys = [quoted(name) for name in columns], [quoted(name) for name in key]
    fresh = versions.selectExpr(*quoted_columns, "_ts", "_exp", f"{load_slot_sql('_ts', move)} AS _load_slot")
    unchanged = anti_joined(stored, changed, key).selectExpr(*quoted_columns, "_ts", "_exp", "_load_slot")
    content = fresh.unionByName(unchanged)
    if history is not None:
        last = f"_exp = max(_exp) OVER (PARTITION BY {', '.join(keys)})"
        is_kept = f"unix_micros(_exp) > {move.before - history}L OR {last} AS _kept"
        content = content.selectExpr("*", is_kept).where("_kept").drop("_kept")
    return content.selectExpr(
        *quoted_columns, "_ts", "_exp", "_load_slot", f"{slot_sql('_exp', move.anchor, move.interval)} AS _exp_slot",
        f"{bucket_sql(key, layout)} AS sub_index", "0L AS exp_block",
    )  # fmt: skip
