"""DISTINCT as delta*: one shown row for each live value and at most one spare (update-patterns sheet, 5.2).

The state of a value: the shown row ``[gen, exp)`` in the view's table, and perhaps a spare row in a side table. The spare row has
the latest ``exp`` of all rows that arrived since, and outlives the shown row. When the shown row has ended, the row that lives
longest replaces it; its ``gen`` is the predecessor's ``exp``, or its own arrival if that was later. So the input is never
scanned. With one update for each instant this is exactly delta*; a batch leaves out rows that no reader could see between two
updates.

Few rows need no Spark job: the driver reads the arrived rows, the shown rows that ended, and by key the shown and spare rows of
these values from the files. DuckDB groups them, and the same rules decide about each value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.duck_sql import quoted as duck_quoted
from warehouse.catalog.identifiers import quoted
from warehouse.limits import limits
from warehouse.storage.arrow_types import can_be_collected, frame_of
from warehouse.storage.lookup import FAILURES, leave_to_spark, query_in_driver
from warehouse.views.algebra import Distinct
from warehouse.views.language.driver_types import LeftToSparkError, exactly_grouped
from warehouse.views.maintenance.cache import FEW, collected
from warehouse.views.maintenance.driver_buckets import rewritten
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.inputs import NodeTable, few_interpreted
from warehouse.views.maintenance.keyed import changed_keys, no_stored_rows_like, replacement
from warehouse.views.maintenance.keys import renamed, semi_joined
from warehouse.views.maintenance.pipelines import evaluated, most_arrived, over, relation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.maintenance.input_facts import Move
    from warehouse.views.maintenance.inputs import NodeInputs
    from warehouse.views.maintenance.keyed import Replacement

__all__ = ["appearances", "moved_values", "spared"]

_SPANS = "CAST(array() AS array<struct<gen: bigint, exp: bigint>>)"
_LONG = pa.int64()
_ARROW_SPANS = pa.list_(pa.struct([("gen", _LONG), ("exp", _LONG)]))
_NO_TIME = -(2**63)


def moved_values(inputs: NodeInputs) -> DataFrame | pa.Table:
    """Return the change of each touched value, cached or in the driver; both tables of a DISTINCT are written from it."""
    core, node, tables = inputs.core, inputs.node, inputs.tables
    if not isinstance(core, Distinct):
        raise TypeError(f"{node.table} is no DISTINCT")
    in_driver = _moved_in_driver(core, inputs)
    if in_driver is not None:
        return in_driver
    value = [quoted(name) for name in node.columns]
    rows = over(node.operator, core, relation(core.input, tables, NodeTable.arrived))
    arrived = rows.where("_exp > _ts").select(*value, "_ts", "_exp")
    most = most_arrived(core.input, tables)
    if most is not None and most <= FEW and can_be_collected(arrived.schema):
        arrived, _ = collected(arrived)
    before: list[DataFrame] = []
    if not inputs.move.first:
        ended = inputs.own.ended().select(*value)
        touched = changed_keys(arrived.select(*value).unionByName(ended).distinct(), inputs.cache)
        stored = [table.live_before(touched.values) for table in (inputs.own, inputs.spares) if table is not None]
        before = [semi_joined(rows, touched.rows, node.columns) for rows in stored if rows is not None]
    return inputs.cache.add(_moved(arrived, before, node.columns, inputs.move))


def appearances(values: DataFrame | pa.Table, columns: Sequence[str]) -> DataFrame | pa.Table:
    """Return the rows shown from now on, and appearances that ended before a reader could see them."""
    if isinstance(values, pa.Table):
        return _appearances_in_driver(values, columns)
    value = [quoted(name) for name in columns]
    shown = values.where("_until IS NOT NULL").selectExpr(
        *value, "timestamp_micros(_gen) AS _ts", "timestamp_micros(_until) AS _exp"
    )
    lost = values.selectExpr(*value, "explode(_lost) AS _span").selectExpr(
        *value, "timestamp_micros(_span.gen) AS _ts", "timestamp_micros(_span.exp) AS _exp"
    )
    return shown.unionByName(lost).selectExpr(*value, "_ts", "_exp", "_exp AS _out")


def spared(inputs: NodeInputs, values: DataFrame | pa.Table, layout: Layout) -> Replacement:
    """Return the new content of the table of spare rows, with its layout; ``inputs`` are the inputs of the DISTINCT."""
    if isinstance(values, pa.Table):
        in_driver = _spared_in_driver(inputs, values, layout)
        if in_driver is not None:
            return in_driver
        values = frame_of(inputs.session, values)
    with few_interpreted(inputs):
        return _spared_by_spark(inputs, values, layout)


def _spared_by_spark(inputs: NodeInputs, values: DataFrame, layout: Layout) -> Replacement:
    columns, move = inputs.node.columns, inputs.move
    value = [quoted(name) for name in columns]
    touched = values.where("_spare IS NOT NULL OR _had_spare")
    new = touched.where("_spare IS NOT NULL").selectExpr(
        *value, f"timestamp_micros({move.now}L) AS _ts", "timestamp_micros(_spare) AS _exp"
    )
    old = inputs.spares.rows_to_rewrite() if inputs.spares is not None else None
    of_keys, keys = None, None
    if old is not None and inputs.spares is not None:
        keys = changed_keys(touched.select(*value), inputs.cache)
        of_keys = inputs.spares.rows_to_rewrite(keys.values)
    small = keys is not None and inputs.spares is not None and inputs.spares.is_small()
    return replacement(
        no_stored_rows_like(new) if old is None else old, new, keys, columns, of_keys=of_keys, columns=columns,
        search_key=columns, layout=layout, move=move, cache=inputs.cache,
        stored=inputs.spares.buckets_to_rewrite_in_driver if small and inputs.spares is not None else None,
    )  # fmt: skip


def _moved(arrived: DataFrame, before: Sequence[DataFrame], columns: Sequence[str], move: Move) -> DataFrame:
    """Return the change of each touched value.

    Parameters
    ----------
    arrived
        Rows of the input that arrived, with ``_ts`` and ``_exp``.
    before
        The view's rows and the spare rows that were live at the last epoch, with ``_exp``, of values for which a row arrived or
        whose shown row has expired; empty on a first build.
    columns
        The value: all columns of the view.
    move
        The times between which the step moves.

    Returns
    -------
    DataFrame
        The value; the time from which (``_gen``) and until which (``_until``, both microseconds) a row is newly shown, or nulls;
        ``_spare``: the end of its spare row, or null; ``_had_spare``: whether it had one before; ``_lost``: appearances of the
        value that began and ended since the last epoch (array of ``gen``, ``exp``).

    """
    value = [quoted(name) for name in columns]
    ends = "unix_micros(_exp) AS _end"
    tagged_rows = arrived.selectExpr(*value, "1 AS _kind", "unix_micros(_ts) AS _at", ends)
    for kind, rows in enumerate(before, start=2):
        tagged_rows = tagged_rows.unionByName(rows.selectExpr(*value, f"{kind} AS _kind", "0L AS _at", ends))
    longest = "max(CASE WHEN _kind <> 2 THEN named_struct('exp', _end, 'at', CASE WHEN _kind = 1 THEN _at END) END)"
    grouped = tagged_rows.groupBy(*[F.col(name) for name in value]).agg(
        F.expr("array_sort(collect_list(CASE WHEN _kind = 1 THEN named_struct('at', _at, 'exp', _end) END)) AS _arrivals"),
        F.expr("max(CASE WHEN _kind = 2 THEN _end END) AS _shown"),
        F.expr("max(CASE WHEN _kind = 3 THEN _end END) AS _spare"),
        F.expr(f"{longest} AS _longest"),
    )
    lives = f"_shown > {move.now}L"
    enters = f"NOT coalesce({lives}, false) AND _longest.exp > {move.now}L"
    return grouped.selectExpr(
        *value,
        f"CASE WHEN {enters} THEN coalesce(greatest(_shown, _longest.at), _shown, {move.now}L) END AS _gen",
        f"CASE WHEN {enters} THEN _longest.exp END AS _until",
        f"CASE WHEN {lives} AND _longest.exp > _shown THEN _longest.exp END AS _spare",
        "_spare IS NOT NULL AS _had_spare",
        f"{_lost(move)} AS _lost",
    )


def _lost(move: Move) -> str:
    """Return the ended stretches of time that arrivals cover, without the time of rows that were shown before."""
    if move.first:
        return _SPANS
    # A late row enters the answer now, not in the past.
    at = f"greatest(r.at, {move.before}L)"
    span = "array(named_struct('gen', a.begun, 'exp', a.reached))"
    state = "named_struct('reached', {reached}, 'begun', {begun}, 'lost', {lost})"
    start = state.format(reached="greatest(_shown, _spare)", begun="CAST(NULL AS bigint)", lost=_SPANS)
    longer = state.format(reached="greatest(a.reached, r.exp)", begun="a.begun", lost="a.lost")
    closed = f"CASE WHEN a.begun IS NULL THEN a.lost ELSE concat(a.lost, {span}) END"
    again = state.format(reached="r.exp", begun=at, lost=closed)
    step = f"CASE WHEN {at} <= a.reached THEN {longer} ELSE {again} END"
    finish = f"CASE WHEN a.begun IS NOT NULL AND a.reached <= {move.now}L THEN concat(a.lost, {span}) ELSE a.lost END"
    return f"aggregate(_arrivals, {start}, (a, r) -> {step}, a -> {finish})"


# --- few rows, in the driver ---


def _moved_in_driver(core: Distinct, inputs: NodeInputs) -> pa.Table | None:
    """Return the change of each touched value, like :func:`moved_values`; None: Spark must compute it."""
    most = most_arrived(core.input, inputs.tables)
    if most is None or most > min(FEW, limits().driver_rows):
        return None
    try:
        return _moved_few(core, inputs)
    except (*FAILURES, OverflowError) as error:
        leave_to_spark(error)
        return None


def _moved_few(core: Distinct, inputs: NodeInputs) -> pa.Table:
    node, move = inputs.node, inputs.move
    arrived_rows = evaluated(core.input, inputs.tables, NodeTable.arrived_in_driver)
    ended_rows = inputs.own.ended_in_driver()
    if arrived_rows is None or ended_rows is None:
        raise LeftToSparkError("Spark is to read what came or has gone")
    arrived = over(node.operator, core, DriverRows.of(arrived_rows)).where("_exp > _ts")
    value = list(node.columns)
    arrived = DriverRows.of(renamed(arrived, [*value, "_ts", "_exp"], [*value, "_ts", "_exp"]).toArrow())
    ended = renamed(DriverRows.of(ended_rows), value, value)
    touched = renamed(arrived, value, value).unionByName(ended).grouped(value, []).toArrow()
    parts = {"arrived": arrived}
    for kind, table in (("shown", inputs.own), ("spare", inputs.spares)):
        if table is None:
            continue
        stored = _no_rows(touched) if table.base is None or move.first else table.live_before_in_driver(touched)
        stored = table.live_before_in_driver() if stored is None else stored
        if stored is None:
            raise LeftToSparkError("Spark is to read the shown and spare rows")
        parts[kind] = semi_joined(DriverRows.of(stored), DriverRows.of(touched), value)
    return _judged(_by_value(parts, value), value, move)


def _no_rows(values: pa.Table) -> pa.Table:
    """Return an empty table of values with their times."""
    times = pa.array([], pa.timestamp("us", "UTC"))
    return values.slice(0, 0).append_column("_ts", times).append_column("_exp", times)


def _by_value(parts: Mapping[str, DriverRows], columns: Sequence[str]) -> pa.Table:
    """Return the facts of each value: its arrivals in order, the ends of the shown and spare rows, the row that lives longest."""
    kinds = dict(parts["arrived"].dtypes)
    if not all(exactly_grouped(kinds[name]) for name in columns):
        raise LeftToSparkError("the driver does not group by floats or nested values")
    value = ", ".join(map(duck_quoted, columns))
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
    facts = query_in_driver(query, {name: table for part in parts.values() for name, table in part.tables.items()})
    if facts is None:
        raise LeftToSparkError("DuckDB did not group the values")
    schema = pa.schema([(name, parts["arrived"].types[name]) for name in columns])
    result = facts.select(list(columns)).cast(schema)
    for name in ("_arrivals", "_shown", "_spare", "_longest"):
        result = result.append_column(name, facts[name])
    return result


def _judged(facts: pa.Table, columns: Sequence[str], move: Move) -> pa.Table:
    """Return the change of each value: ``gen``, ``exp``, ``spare``, ``had_spare`` and ``lost`` as in :func:`_moved`."""
    shown, longest = facts["_shown"], facts["_longest"].combine_chunks()
    latest_end, arrival = longest.field("exp"), longest.field("gen")
    latest_end = pc.if_else(longest.is_valid(), latest_end, None)
    arrival = pc.if_else(pc.and_(longest.is_valid(), pc.greater(arrival, _NO_TIME)), arrival, None)
    lives = pc.fill_null(pc.greater(shown, move.now), fill_value=False)
    lasts = pc.fill_null(pc.greater(latest_end, move.now), fill_value=False)
    enters = pc.and_(pc.invert(lives), lasts)
    gen = pc.coalesce(pc.max_element_wise(shown, arrival), pa.scalar(move.now, _LONG))
    outlives = pc.and_(lives, pc.fill_null(pc.greater(latest_end, shown), fill_value=False))
    null = pa.scalar(None, _LONG)
    return (
        facts.select(list(columns))
        .append_column("_gen", pc.if_else(enters, gen, null))
        .append_column("_until", pc.if_else(enters, latest_end, null))
        .append_column("_spare", pc.if_else(outlives, latest_end, null))
        .append_column("_had_spare", facts["_spare"].is_valid())
        .append_column("_lost", pa.array(_lost_few(facts, move), _ARROW_SPANS))
    )


def _lost_few(facts: pa.Table, move: Move) -> list[list[dict[str, int]]]:
    """Return the ended stretches of time that arrivals cover, without the time of rows that were shown before."""
    if move.first:
        return [[] for _ in range(facts.num_rows)]
    lost_spans: list[list[dict[str, int]]] = []
    columns = (facts[name].to_pylist() for name in ("_arrivals", "_shown", "_spare"))
    for arrivals, shown, spare in zip(*columns, strict=True):
        before = max((end for end in (shown, spare) if end is not None), default=None)
        lost_spans.append([*_covered(arrivals or [], before, move)])
    return lost_spans


def _covered(arrivals: Sequence[Mapping[str, int]], reached: int | None, move: Move) -> list[dict[str, int]]:
    begun: int | None = None
    lost: list[dict[str, int]] = []
    for arrival in arrivals:
        entry = max(arrival["gen"], move.before)  # a late row enters the answer now, not in the past
        if reached is not None and entry <= reached:
            reached = max(reached, arrival["exp"])
            continue
        if begun is not None and reached is not None:
            lost.append({"gen": begun, "exp": reached})
        begun, reached = entry, arrival["exp"]
    if begun is not None and reached is not None and reached <= move.now:
        lost.append({"gen": begun, "exp": reached})
    return lost


def _appearances_in_driver(values: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the rows shown from now on, and appearances that ended before a reader could see them."""
    shown = values.filter(values["_until"].is_valid())
    lost = values["_lost"].combine_chunks()
    spans, rows = lost.flatten(), values.take(pc.list_parent_indices(lost))
    times: list[tuple[pa.Table, Any, Any]] = [
        (shown, shown["_gen"], shown["_until"]),
        (rows, spans.field("gen"), spans.field("exp")),
    ]
    time_type = pa.timestamp("us", "UTC")
    parts = [
        pa.table(
            {
                **{name: part[name] for name in columns},
                "_ts": begins.cast(time_type),
                "_exp": ends.cast(time_type),
                "_out": ends.cast(time_type),
            }
        )
        for part, begins, ends in times
    ]
    return pa.concat_tables(parts)


def _spared_in_driver(inputs: NodeInputs, values: pa.Table, layout: Layout) -> Replacement | None:
    """Return the new content of the table of spare rows, like :func:`spared`; None: Spark must compute it."""
    stored = None if inputs.spares is None or not inputs.spares.fits_driver() else inputs.spares.all_rows_to_rewrite_in_driver()
    if stored is None:
        return None
    columns, move, time_type = list(inputs.node.columns), inputs.move, pa.timestamp("us", "UTC")
    touched = values.filter(pc.or_(values["_spare"].is_valid(), values["_had_spare"]))
    new = touched.filter(touched["_spare"].is_valid())
    begins = pa.array(np.full(new.num_rows, move.now), _LONG).cast(time_type)
    answer = new.select(columns).append_column("_ts", begins).append_column("_exp", new["_spare"].cast(time_type))
    changed = (touched.select(columns), columns)
    try:
        return rewritten(stored, changed, answer, columns=columns, search_key=columns, state=(), layout=layout, move=move)
    except (*FAILURES, OverflowError) as error:
        leave_to_spark(error)
        return None
