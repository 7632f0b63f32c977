"""DISTINCT as delta*: one shown row for each live value and at most one spare (update-patterns sheet, 5.2).

State of a value: the shown row ``[gen, exp)`` in the view's table, and in a side table the row with the latest ``exp`` of all
that arrived since, if that outlives the shown one. When the shown row has died, what lives longest takes its place, with
``gen`` = the predecessor's ``exp`` or its own arrival, if that was later. So the input is never scanned. With one update
for each instant this is delta* to the letter; a batch does not show what nobody could see between two updates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.storage.arrow_types import can_be_collected, frame_of
from warehouse.views.algebra import Distinct
from warehouse.views.maintenance.cache import FEW, collected
from warehouse.views.maintenance.driver_distinct import appearances_in_driver, moved_in_driver, spared_in_driver
from warehouse.views.maintenance.feeds import most_arrived, over, relation
from warehouse.views.maintenance.inputs import NodeTable, few_interpreted
from warehouse.views.maintenance.keyed import changed_keys, placeless, replacement
from warehouse.views.maintenance.keys import semi_joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.layout import Layout
    from warehouse.views.maintenance.inputs import Move, NodeInputs
    from warehouse.views.maintenance.keyed import Replacement

__all__ = ["appearances", "moved_values", "spared"]

_SPANS = "CAST(array() AS array<struct<gen: bigint, exp: bigint>>)"


def moved_values(inputs: NodeInputs) -> DataFrame | pa.Table:
    """Return what becomes of each touched value, cached or in the driver: both of a DISTINCT's tables are written from it."""
    core, node, tables = inputs.core, inputs.node, inputs.tables
    if not isinstance(core, Distinct):
        raise TypeError(f"{node.table} is no DISTINCT")
    in_driver = moved_in_driver(core, inputs)
    if in_driver is not None:
        return in_driver
    value = [quoted(name) for name in node.columns]
    rows = over(node.operator, core, relation(core.input, tables, NodeTable.arrived))
    arrived = rows.where("_exp > _ts").select(*value, "_ts", "_exp")
    most = most_arrived(core.input, tables)
    if most is not None and most <= FEW and can_be_collected(arrived.schema):
        arrived, _ = collected(arrived)
    held: list[DataFrame] = []
    if not inputs.move.first:
        gone = inputs.own.ended().select(*value)
        touched = changed_keys(arrived.select(*value).unionByName(gone).distinct(), inputs.cache)
        stored = [table.before(touched.values) for table in (inputs.own, inputs.spares) if table is not None]
        held = [semi_joined(rows, touched.rows, node.columns) for rows in stored if rows is not None]
    return inputs.cache.add(_moved(arrived, held, node.columns, inputs.move))


def appearances(values: DataFrame | pa.Table, columns: Sequence[str]) -> DataFrame | pa.Table:
    """Return the rows shown from now on, and appearances that were over before anybody could see them."""
    if isinstance(values, pa.Table):
        return appearances_in_driver(values, columns)
    value = [quoted(name) for name in columns]
    shown = values.where("_until IS NOT NULL").selectExpr(
        *value, "timestamp_micros(_gen) AS _ts", "timestamp_micros(_until) AS _exp"
    )
    lost = values.selectExpr(*value, "explode(_lost) AS _span").selectExpr(
        *value, "timestamp_micros(_span.gen) AS _ts", "timestamp_micros(_span.exp) AS _exp"
    )
    return shown.unionByName(lost).selectExpr(*value, "_ts", "_exp", "_exp AS _out")


def spared(inputs: NodeInputs, values: DataFrame | pa.Table, layout: Layout) -> Replacement:
    """Return the new content of the table of spare rows, which has that layout; ``inputs`` are those of the DISTINCT."""
    if isinstance(values, pa.Table):
        in_driver = spared_in_driver(inputs, values, layout)
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
    old = inputs.spares.own() if inputs.spares is not None else None
    of_keys, keys = None, None
    if old is not None and inputs.spares is not None:
        keys = changed_keys(touched.select(*value), inputs.cache)
        of_keys = inputs.spares.own(keys.values)
    return replacement(
        placeless(new) if old is None else old, new, keys, columns, of_keys=of_keys, columns=columns, search_key=columns,
        layout=layout, move=move, cache=inputs.cache,
        stored=inputs.spares.to_rewrite if keys is not None and inputs.spares is not None and inputs.spares.few() else None,
    )  # fmt: skip


def _moved(arrived: DataFrame, before: Sequence[DataFrame], columns: Sequence[str], move: Move) -> DataFrame:
    """Return what becomes of each touched value.

    Parameters
    ----------
    arrived
        Rows of the input that came, with ``_ts`` and ``_exp``.
    before
        The view's rows and the spare rows that were live at the last epoch, with ``_exp``, of the values of which a row came
        or the shown one has gone; nothing on a first build.
    columns
        The value: all columns of the view.
    move
        From when to when.

    Returns
    -------
    DataFrame
        The value; from when (``_gen``) until when (``_until``, both microseconds) a row is newly shown, or nulls; ``_spare``: the
        end of its spare row, or null; ``_had_spare``: whether there was one before; ``_lost``: appearances of the value that
        began and ended since the last epoch (array of ``gen``, ``exp``).

    """
    value = [quoted(name) for name in columns]
    ends = "unix_micros(_exp) AS _end"
    every = arrived.selectExpr(*value, "1 AS _kind", "unix_micros(_ts) AS _at", ends)
    for kind, rows in enumerate(before, start=2):
        every = every.unionByName(rows.selectExpr(*value, f"{kind} AS _kind", "0L AS _at", ends))
    longest = "max(CASE WHEN _kind <> 2 THEN named_struct('exp', _end, 'at', CASE WHEN _kind = 1 THEN _at END) END)"
    grouped = every.groupBy(*[F.col(name) for name in value]).agg(
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
    """Stretches of time that arrivals cover, apart from what was shown before, as far as they are over now."""
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
