"""DISTINCT over few rows without a job of Spark's: what :mod:`.distinct` makes of many, by the same rules.

What came, the shown rows that ended, and by key the shown and spare rows of these values are read from the files; DuckDB groups
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warehouse.catalog.duck_sql import quoted
from warehouse.limits import limits
from warehouse.storage.lookup import FAILURES, leave_to_spark, query_in_driver
from warehouse.views.language.driver_sql import LeftToSparkError, exactly_grouped
from warehouse.views.maintenance.cache import FEW
from warehouse.views.maintenance.driver_buckets import rewritten
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.feeds import most_arrived, over
from warehouse.views.maintenance.inputs import NodeTable
from warehouse.views.maintenance.keys import renamed, semi_joined
from warehouse.views.maintenance.picking import evaluated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.layout import Layout
    from warehouse.views.algebra import Distinct
    from warehouse.views.maintenance.inputs import Move, NodeInputs
    from warehouse.views.maintenance.keyed import Replacement

__all__ = ["appearances_in_driver", "moved_in_driver", "spared_in_driver"]

_LONG = pa.int64()
_SPANS = pa.list_(pa.struct([("gen", _LONG), ("exp", _LONG)]))
_NO_TIME = -(2**63)


def moved_in_driver(core: Distinct, inputs: NodeInputs) -> pa.Table | None:
    """Return what becomes of each touched value, as ``distinct.moved_values`` does; None when Spark is to make it."""
    most = None if inputs.move.first else most_arrived(core.input, inputs.tables)
    if most is None or most > min(FEW, limits().driver_rows):
        return None
    try:
        return _moved(core, inputs)
    except (*FAILURES, OverflowError) as error:
        leave_to_spark(error)
        return None


def _moved(core: Distinct, inputs: NodeInputs) -> pa.Table:
    node, move = inputs.node, inputs.move
    came = evaluated(core.input, inputs.tables, NodeTable.came)
    gone = inputs.own.gone()
    if came is None or gone is None:
        raise LeftToSparkError("Spark is to read what came or has gone")
    arrived = over(node.operator, core, DriverRows.of(came)).where("_exp > _ts")
    value = list(node.columns)
    arrived = DriverRows.of(renamed(arrived, [*value, "_ts", "_exp"], [*value, "_ts", "_exp"]).toArrow())
    ended = renamed(DriverRows.of(gone), value, value)
    touched = renamed(arrived, value, value).unionByName(ended).grouped(value, []).toArrow()
    parts = {"arrived": arrived}
    for kind, table in (("shown", inputs.own), ("spare", inputs.spares)):
        if table is None:
            continue
        stored = _none(touched) if table.base is None else table.lived(touched)
        stored = table.lived() if stored is None else stored
        if stored is None:
            raise LeftToSparkError("Spark is to read the shown and spare rows")
        parts[kind] = semi_joined(DriverRows.of(stored), DriverRows.of(touched), value)
    return _judged(_by_value(parts, value), value, move)


def _none(values: pa.Table) -> pa.Table:
    """No rows of values, with their times."""
    times = pa.array([], pa.timestamp("us", "UTC"))
    return values.slice(0, 0).append_column("_ts", times).append_column("_exp", times)


def _by_value(parts: Mapping[str, DriverRows], columns: Sequence[str]) -> pa.Table:
    """What is known of each value: its arrivals in order, when the shown and the spare row end, and which row lives longest."""
    kinds = dict(parts["arrived"].dtypes)
    if not all(exactly_grouped(kinds[name]) for name in columns):
        raise LeftToSparkError("the driver does not group by floats or nested values")
    value = ", ".join(map(quoted, columns))
    rows = " UNION ALL ".join(
        f"SELECT {value}, '{kind}' AS _kind, epoch_us(_ts) AS _gen, epoch_us(_exp) AS _end FROM ({part.query})"
        for kind, part in parts.items()
    )
    gen = f"CASE WHEN _kind = 'arrived' THEN _gen ELSE {_NO_TIME} END"
    query = f"""
        SELECT {value},
            list(struct_pack(gen := _gen, exp := _end) ORDER BY _gen, _end) FILTER (_kind = 'arrived') AS _arrivals,
            max(_end) FILTER (_kind = 'shown') AS _shown,
            max(_end) FILTER (_kind = 'spare') AS _spare,
            max(struct_pack(exp := _end, gen := {gen})) FILTER (_kind <> 'shown') AS _longest
        FROM ({rows}) GROUP BY {value}
    """
    found = query_in_driver(query, {name: table for part in parts.values() for name, table in part.tables.items()})
    if found is None:
        raise LeftToSparkError("DuckDB did not group the values")
    kept = pa.schema([(name, parts["arrived"].types[name]) for name in columns])
    own = found.select(list(columns)).cast(kept)
    for name in ("_arrivals", "_shown", "_spare", "_longest"):
        own = own.append_column(name, found[name])
    return own


def _judged(known: pa.Table, columns: Sequence[str], move: Move) -> pa.Table:
    """What becomes of each value: ``gen``, ``exp``, ``spare``, ``had_spare`` and ``lost`` as in ``distinct``."""
    shown, longest = known["_shown"], known["_longest"].combine_chunks()
    most, at = longest.field("exp"), longest.field("gen")
    most = pc.if_else(longest.is_valid(), most, None)
    at = pc.if_else(pc.and_(longest.is_valid(), pc.greater(at, _NO_TIME)), at, None)
    lives = pc.fill_null(pc.greater(shown, move.now), fill_value=False)
    lasts = pc.fill_null(pc.greater(most, move.now), fill_value=False)
    enters = pc.and_(pc.invert(lives), lasts)
    gen = pc.coalesce(pc.max_element_wise(shown, at), pa.scalar(move.now, _LONG))
    outlives = pc.and_(lives, pc.fill_null(pc.greater(most, shown), fill_value=False))
    none = pa.scalar(None, _LONG)
    return (
        known.select(list(columns))
        .append_column("_gen", pc.if_else(enters, gen, none))
        .append_column("_until", pc.if_else(enters, most, none))
        .append_column("_spare", pc.if_else(outlives, most, none))
        .append_column("_had_spare", known["_spare"].is_valid())
        .append_column("_lost", pa.array(_lost(known, move), _SPANS))
    )


def _lost(known: pa.Table, move: Move) -> list[list[dict[str, int]]]:
    """Stretches of time that arrivals cover, apart from what was shown before, as far as they are over now."""
    found: list[list[dict[str, int]]] = []
    columns = (known[name].to_pylist() for name in ("_arrivals", "_shown", "_spare"))
    for arrivals, shown, spare in zip(*columns, strict=True):
        before = max((end for end in (shown, spare) if end is not None), default=None)
        found.append([*_covered(arrivals or [], before, move)])
    return found


def _covered(arrivals: Sequence[Mapping[str, int]], reached: int | None, move: Move) -> list[dict[str, int]]:
    begun: int | None = None
    lost: list[dict[str, int]] = []
    for each in arrivals:
        at = max(each["gen"], move.before)  # a late row enters the answer now, not in the past
        if reached is not None and at <= reached:
            reached = max(reached, each["exp"])
            continue
        if begun is not None and reached is not None:
            lost.append({"gen": begun, "exp": reached})
        begun, reached = at, each["exp"]
    if begun is not None and reached is not None and reached <= move.now:
        lost.append({"gen": begun, "exp": reached})
    return lost


def appearances_in_driver(values: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the rows shown from now on, and appearances that were over before anybody could see them."""
    shown = values.filter(values["_until"].is_valid())
    lost = values["_lost"].combine_chunks()
    spans, rows = lost.flatten(), values.take(pc.list_parent_indices(lost))
    times: list[tuple[pa.Table, Any, Any]] = [
        (shown, shown["_gen"], shown["_until"]),
        (rows, spans.field("gen"), spans.field("exp")),
    ]
    instant = pa.timestamp("us", "UTC")
    parts = [
        pa.table(
            {
                **{name: part[name] for name in columns},
                "_ts": begins.cast(instant),
                "_exp": ends.cast(instant),
                "_out": ends.cast(instant),
            }
        )
        for part, begins, ends in times
    ]
    return pa.concat_tables(parts)


def spared_in_driver(inputs: NodeInputs, values: pa.Table, layout: Layout) -> Replacement | None:
    """Return the new content of the table of spare rows, as ``distinct.spared`` does; None when Spark is to make it."""
    own = None if inputs.spares is None else inputs.spares.all_own()
    if own is None:
        return None
    columns, move, instant = list(inputs.node.columns), inputs.move, pa.timestamp("us", "UTC")
    touched = values.filter(pc.or_(values["_spare"].is_valid(), values["_had_spare"]))
    new = touched.filter(touched["_spare"].is_valid())
    begins = pa.array(np.full(new.num_rows, move.now), _LONG).cast(instant)
    answer = new.select(columns).append_column("_ts", begins).append_column("_exp", new["_spare"].cast(instant))
    changed = (touched.select(columns), columns)
    try:
        return rewritten(own, changed, answer, columns=columns, search_key=columns, state=(), layout=layout, move=move)
    except (*FAILURES, OverflowError) as error:
        leave_to_spark(error)
        return None
