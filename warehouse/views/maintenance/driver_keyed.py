"""GROUP BY of few rows without a job of Spark's: the definitions of :mod:`.groups` and :mod:`.feeds`, run by the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type

from warehouse.catalog.duck_sql import quoted
from warehouse.catalog.types import parse_type
from warehouse.limits import limits
from warehouse.storage.hashing import bucket
from warehouse.storage.lookup import FAILURES, here, leave_to_spark
from warehouse.time import NEVER
from warehouse.views.algebra import Group, scanned
from warehouse.views.language.driver_sql import LeftToSparkError
from warehouse.views.maintenance.cache import FEW
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.feeds import looked_up, most_arrived, weighed, window_lengths
from warehouse.views.maintenance.groups import adjusted, is_adjustable, recomputed, state_columns
from warehouse.views.maintenance.inputs import NodeTable
from warehouse.views.maintenance.keyed import Replacement, replacing
from warehouse.views.maintenance.keys import lookup_keys
from warehouse.views.maintenance.local_buckets import entered, touched_buckets
from warehouse.views.maintenance.picking import evaluated, lasting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.layout import Layout
    from warehouse.views.maintenance.inputs import NodeInputs

__all__ = ["buckets_of", "matched_rows", "replaced_in_driver"]


def replaced_in_driver(inputs: NodeInputs) -> Replacement | None:
    """Return the new content of the buckets that changed; None when Spark is to make it."""
    core, tables = inputs.core, inputs.tables
    if not isinstance(core, Group) or not core.keys or inputs.move.first or not inputs.own.few():
        return None
    if any(tables[name].keyed for name in scanned(core.input)) or any(window_lengths(core.input)) or any(looked_up(core.input)):
        return None
    most = most_arrived(core.input, tables)
    if most is None or most > min(FEW, limits().driver_rows):
        return None
    try:
        return _groups(core, inputs)
    except (*FAILURES, OverflowError) as error:
        leave_to_spark(error)
        return None


def _groups(core: Group, inputs: NodeInputs) -> Replacement | None:
    node, move = inputs.node, inputs.move
    came = evaluated(core.input, inputs.tables, NodeTable.came)
    gone = None if came is None else evaluated(core.input, inputs.tables, NodeTable.gone)
    if came is None or gone is None:
        return None
    types = dict(DriverRows.of(came).dtypes)
    adjustable = is_adjustable(core, types)
    state = state_columns(core) if adjustable else []
    own = inputs.own.all_own()
    if own is None or any(name.startswith("_state_") for name in own.column_names) != adjustable:
        return None
    changed = DriverRows.of(weighed(DriverRows.of(came), DriverRows.of(gone), move).toArrow())
    held, others = _split(own, changed, core.keys)
    rows = adjusted(core, changed, DriverRows.of(held), types) if adjustable else recomputed(core, _live(core, changed, inputs))
    never = f"timestamp_micros({NEVER}L)"
    answer = rows.selectExpr("*", f"timestamp_micros({move.now}L) AS _ts", f"{never} AS _exp")
    matched = matched_rows(held, answer.toArrow(), node.columns, state)
    matched = matched.append_column("sub_index", buckets_of(matched, node.search_key, inputs.layout))
    touched = touched_buckets(matched, stateful=adjustable)
    if not touched:
        return Replacement(None, {}, {}, 0)
    written, rest = (_of(rows, list(touched)) for rows in (matched, others))
    fresh = entered(written, node.columns, state, move, dated=True)
    return replacing(pa.concat_tables([fresh, rest.select(fresh.column_names).cast(fresh.schema)]), touched)


def _live(core: Group, changed: DriverRows, inputs: NodeInputs) -> DriverRows:
    """The input's live rows of the changed keys."""
    keys = changed.grouped(core.keys, []).toArrow()
    sought = lookup_keys(core.input, core.keys, keys)
    rows = evaluated(core.input, inputs.tables, lambda table: table.live(sought.get(table.name)))
    if rows is None:
        raise LeftToSparkError("Spark is to read the rows of the changed keys")
    of_keys, _ = _split(lasting(rows, "_exp", inputs.move.now), DriverRows.of(keys), core.keys)
    return DriverRows.of(of_keys)


def _of(rows: pa.Table, buckets: Sequence[int]) -> pa.Table:
    return rows.filter(pc.is_in(rows["sub_index"], pa.array(buckets, rows.schema.field("sub_index").type)))


def _split(own: pa.Table, changed: DriverRows, keys: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The node's rows that have one of the changed keys, and the others."""
    equal = " AND ".join(f"o.{quoted(name)} IS NOT DISTINCT FROM c.{quoted(name)}" for name in keys)
    sides = {"o": own, **changed.tables}
    parts = [here(f"SELECT o.* FROM o {how} JOIN ({changed.query}) AS c ON {equal}", sides) for how in ("SEMI", "ANTI")]
    if parts[0] is None or parts[1] is None:
        raise LeftToSparkError("DuckDB did not find the rows of the changed keys")
    return parts[0].cast(own.schema), parts[1].cast(own.schema)


def matched_rows(held: pa.Table, answer: pa.Table, columns: Sequence[str], state: Sequence[str]) -> pa.Table:
    """Return a row for each row of the answer before or now: ``_was`` and ``_came`` list where it stood and where it stands."""
    same = [*columns, "_exp"]
    floating = {field.name.lower() for field in answer.schema if pa.types.is_floating(field.type)}
    signs = [
        f"CASE WHEN {quoted(name)} = 0 THEN CAST({quoted(name)} AS VARCHAR) = '-0.0' END"
        for name in columns
        if name.lower() in floating
    ]
    shown = ", ".join(map(quoted, same))
    carried = ", ".join(f"{quoted(name)} := {quoted(name)}" for name in state)
    one = f"struct_pack(ts := _ts, slot := _load_slot, state := {f'struct_pack({carried})' if state else '0'})"
    own = ", ".join(map(quoted, ("_ts", *state)))
    every = (
        f"SELECT {shown}, {own}, _load_slot, 0 AS side FROM held "
        f"UNION ALL SELECT {shown}, {own}, 0 AS _load_slot, 1 AS side FROM answer"
    )
    listed = f"list({one} ORDER BY {one})"
    lists = f"coalesce({listed} FILTER (side = 0), []) AS _was, coalesce({listed} FILTER (side = 1), []) AS _came"
    by = ", ".join([*map(quoted, same), *signs])
    found = here(f"SELECT {shown}, {lists} FROM ({every}) GROUP BY {by}", {"held": held, "answer": answer})
    if found is None:
        raise LeftToSparkError("DuckDB did not match the rows of the changed keys")
    return found


def buckets_of(rows: pa.Table, names: Sequence[str], layout: Layout) -> pa.Array:
    """Return the sub-index of each row of a keyed table, by the columns of its search key."""
    types = [parse_type(from_arrow_type(rows.schema.field(name).type).simpleString()) for name in names]
    keys = zip(*(rows[name].to_pylist() for name in names), strict=True)
    return pa.array((bucket(key, types, layout) for key in keys), pa.int32())
