"""Computes the new content of a keyed node from few rows in the driver; :mod:`.replaced` computes it from many by Spark.

The module :mod:`.answers` defines the rows of each operator. This module reads their inputs in the driver: rows that were added
or removed, and, by key, the stored rows of the changed keys.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.catalog.duck_sql import quoted
from warehouse.limits import limits
from warehouse.storage.lookup import FAILURES, MATCHES, leave_to_spark, query_in_driver
from warehouse.views.algebra import AntiJoin, Filter, Group, OutputWindow, Project, Scan, Top, UnionAll, inputs_of, scanned
from warehouse.views.language.driver_types import LeftToSparkError
from warehouse.views.maintenance.answers import answer, for_ever
from warehouse.views.maintenance.cache import FEW
from warehouse.views.maintenance.driver_buckets import exact_terms, rewritten
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.groups import adjusted, is_adjustable, state_columns
from warehouse.views.maintenance.inputs import NodeTable, user_columns
from warehouse.views.maintenance.keys import lookup_keys, renamed, semi_joined
from warehouse.views.maintenance.pipelines import ending_after, net_changes, over, pipeline, window_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.maintenance.inputs import NodeInputs
    from warehouse.views.maintenance.keyed import Replacement

__all__ = ["replaced_in_driver"]

_CANDIDATES = 20_000_000
"""Pairs of rows that might join, at most."""


def replaced_in_driver(inputs: NodeInputs) -> tuple[Replacement, pa.Table | None] | None:
    """Return the new content of the changed buckets, and short-lived rows if they are known; None: Spark must compute both."""
    core, move, tables = inputs.core, inputs.move, [inputs.tables[name] for name in set(scanned(inputs.node.operator))]
    if not (move.first or move.k0 < move.k) or not inputs.own.fits_driver() or isinstance(core, OutputWindow):
        return None
    if isinstance(core, Top) and not core.order and inputs.node.hidden:  # its rows are also distinguished by their times
        return None
    for table in tables:
        most = None if table.keyed else table.most_arrived()
        if table.changed is not None:
            continue
        small = table.has_few_live() if move.first else table.is_small()
        if not small if table.keyed else most is None or most > min(FEW, limits().driver_rows):
            return None
    try:
        return _replaced(inputs)
    except (*FAILURES, OverflowError) as error:
        leave_to_spark(error)
        return None


def _replaced(inputs: NodeInputs) -> tuple[Replacement, pa.Table | None]:
    core, node, move = inputs.core, inputs.node, inputs.move
    stored = inputs.own.all_rows_to_rewrite_in_driver()
    if stored is None:
        raise LeftToSparkError("Spark is to read the rows that are stored")
    sides = (node.operator,) if core is None else inputs_of(core)
    by = (node.search_key,) if core is None else node.changed_by
    key = node.search_key if core is None else node.changed_key
    changes = [_changes(side, inputs) for side in sides] if key or isinstance(core, Group) else []
    keys = _keys(changes, by, key) if key and not move.first else None
    state: list[str] = []
    types = dict(changes[0].dtypes) if isinstance(core, Group) else {}
    if isinstance(core, Group) and is_adjustable(core, types):
        state = state_columns(core)
        before = DriverRows.of(stored) if keys is None else semi_joined(DriverRows.of(stored), DriverRows.of(keys), key)
        _require_state(stored, adjustable=True)
        rows = for_ever(adjusted(core, changes[0], before, types), move)
    elif core is None:
        live = _of_keys(node.operator, inputs, keys, key, key, NodeTable.live_now_in_driver)
        rows = live.where(f"unix_micros(_exp) > {move.now}L")
    else:
        _require_state(stored, adjustable=False)
        rows = answer(core, _sides(core, inputs, keys), move)
        rows = rows if isinstance(core, Group) else over(node.operator, core, rows)
    results = rows.toArrow()
    if results.num_rows > MATCHES:
        raise LeftToSparkError("the rows of the changed keys are too many for the driver")
    lost = None
    if core is None and any(inputs.tables[table].dead for table in scanned(node.operator)):
        lost = _pipeline(node.operator, inputs, NodeTable.short_lived_in_driver).toArrow()
    elif isinstance(core, AntiJoin):
        lost = results.filter(pc.less_equal(results["_exp"].cast(pa.int64()), move.now))
        results = ending_after(results, "_exp", move.now)
    changed = None if keys is None else (keys, key)
    content = rewritten(stored, changed, results, columns=node.columns, search_key=node.search_key, state=state,
                        layout=inputs.layout, move=move)  # fmt: skip
    return content, lost


def _require_state(stored: pa.Table, *, adjustable: bool) -> None:
    """Leave a table to Spark if it was written by a build that adjusted other sums."""
    if any(name.startswith("_state_") for name in stored.column_names) != adjustable:
        raise LeftToSparkError("the table has the state columns of another build")


def _changes(operator: Operator, inputs: NodeInputs) -> DriverRows:
    """Return the same as :func:`warehouse.views.maintenance.pipelines.changes`."""
    tables, move = inputs.tables, inputs.move
    if any(tables[table].keyed for table in scanned(operator)):
        changes_known = all(tables[table].changed is not None for table in scanned(operator)) and _is_linear(operator)
        new = NodeTable.inserted_in_driver if changes_known else NodeTable.live_now_in_driver
        old = NodeTable.removed_in_driver if changes_known else NodeTable.live_before_in_driver
        now = ending_after(_pipeline(operator, inputs, new).toArrow(), "_exp", move.now)
        return _net_of_bags(now, ending_after(_pipeline(operator, inputs, old).toArrow(), "_exp", move.before))
    earlier_part = NodeTable.live_before_in_driver if any(window_lengths(operator)) else NodeTable.ended_in_driver
    arrived, earlier = (_pipeline(operator, inputs, part) for part in (NodeTable.arrived_in_driver, earlier_part))
    return DriverRows.of(net_changes(arrived, earlier, move).toArrow())


def _is_linear(operator: Operator) -> bool:
    """Whether a pipeline's result for some rows does not depend on other rows, nor on the time of the call."""
    return isinstance(operator, Scan | UnionAll | Filter | Project) and all(map(_is_linear, inputs_of(operator)))


def _net_of_bags(now: pa.Table, before: pa.Table) -> DriverRows:
    """Return the difference of two bags of rows with the same lifetimes; ``_ts`` is the latest of equal rows."""
    names = [*user_columns(DriverRows.of(now)), "_exp", "_out"]
    shown, by = ", ".join(map(quoted, names)), ", ".join(exact_terms(now.schema, names))
    both = f"SELECT {shown}, _ts, 1 AS _one FROM now UNION ALL SELECT {shown}, _ts, -1 AS _one FROM earlier"
    summed = f"SELECT {shown}, max(_ts) AS _ts, sum(_one) AS _sum FROM ({both}) GROUP BY {by} HAVING sum(_one) <> 0"
    repeated = f"SELECT {shown}, _ts, CAST(sign(_sum) AS INTEGER) AS _weight FROM ({summed}), range(CAST(abs(_sum) AS BIGINT))"
    rows = query_in_driver(repeated, {"now": now, "earlier": before})
    if rows is None:
        raise LeftToSparkError("DuckDB did not compare what was there with what is")
    fields = [now.schema.field(name) for name in (*names, "_ts")]
    return DriverRows.of(rows.cast(pa.schema([*fields, ("_weight", pa.int32())])))


def _keys(changes: Sequence[DriverRows], by: Sequence[Sequence[str]], key: Sequence[str]) -> pa.Table:
    """Return the distinct changed keys."""
    parts = [renamed(rows, columns, key) for rows, columns in zip(changes, by, strict=True)]
    keys = reduce(DriverRows.unionByName, parts).grouped(key, []).toArrow()
    if keys.num_rows > FEW:
        raise LeftToSparkError("more keys changed than the driver looks up")
    return keys


def _sides(core: Operator, inputs: NodeInputs, keys: pa.Table | None) -> list[DriverRows]:
    """Return the inputs' live rows of the changed keys; for an anti-join also rows that lived since the last epoch."""
    node, sides = inputs.node, []
    for number, side in enumerate(inputs_of(core)):
        by = node.changed_by[number] if node.changed_by else ()
        keyed = any(inputs.tables[table].keyed for table in scanned(side))
        if isinstance(core, AntiJoin) and not keyed and not inputs.move.first:
            before = _of_keys(side, inputs, keys, by, node.changed_key, NodeTable.live_before_in_driver)
            arrived = _pipeline(side, inputs, NodeTable.arrived_in_driver)
            arrived = arrived if keys is None else semi_joined(arrived, DriverRows.of(keys), by, node.changed_key)
            rows = before.unionByName(arrived).where(f"unix_micros(_exp) > {inputs.move.before}L AND _exp > _ts")
        else:
            rows = _of_keys(side, inputs, keys, by, node.changed_key, NodeTable.live_now_in_driver)
            rows = rows.where(f"unix_micros(_exp) > {inputs.move.now}L")
        sides.append(rows.toArrow())
    if len(sides) > 1 and _pairs(sides, node.changed_by) > _CANDIDATES:
        raise LeftToSparkError("more rows of the changed keys might meet than the driver looks at")
    return [DriverRows.of(rows) for rows in sides]


def _pairs(sides: Sequence[pa.Table], by: Sequence[Sequence[str]]) -> int:
    """Return how many combinations of rows might join; keys are compared if there are keys and the product is large."""
    product: int = math.prod(rows.num_rows for rows in sides)
    if product <= _CANDIDATES or len(by) != len(sides) or not all(by):
        return product
    subqueries = [
        f"(SELECT {', '.join(f'{quoted(name)} AS k{index}' for index, name in enumerate(names))}, count(*)::DOUBLE AS n{number} "
        f"FROM side{number} GROUP BY ALL)"
        for number, names in enumerate(by)
    ]
    keys = ", ".join(f"k{index}" for index in range(len(by[0])))
    product_sql = " * ".join(f"n{number}" for number in range(len(sides)))
    joined = subqueries[0] + "".join(f" JOIN {subquery} USING ({keys})" for subquery in subqueries[1:])
    result = query_in_driver(
        f"SELECT coalesce(sum({product_sql}), 0) AS pairs FROM {joined}", {f"side{n}": rows for n, rows in enumerate(sides)}
    )
    if result is None:
        return product
    pairs: float = result["pairs"][0].as_py()
    return int(pairs)


def _of_keys(
    operator: Operator,
    inputs: NodeInputs,
    keys: pa.Table | None,
    columns: Sequence[str],
    by: Sequence[str],
    part: Callable[[NodeTable, pa.Table | None], pa.Table | None],
) -> DriverRows:
    """Return a pipeline's rows whose columns have one of the keys (``by`` are the names in ``keys``); no keys: all rows.

    ``part`` returns the rows of a table, with its lookup keys.
    """
    keys_of_table = lookup_keys(operator, columns, keys.select(list(by))) if keys is not None and columns else {}
    rows = _pipeline(operator, inputs, lambda table: part(table, keys_of_table.get(table.name)))
    return rows if keys is None else semi_joined(rows, DriverRows.of(keys), columns, by)


def _pipeline(operator: Operator, inputs: NodeInputs, part: Callable[[NodeTable], pa.Table | None]) -> DriverRows:
    rows = pipeline(operator, inputs.tables, part)
    if rows is None:
        raise LeftToSparkError("Spark is to read what came, went or is stored")
    return rows
