"""The new content of a keyed node (STR) at one step: the rows of changed keys are computed again and replace the former ones."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.storage.scan import no_rows
from warehouse.views.algebra import (
    AntiJoin,
    Group,
    Join,
    OuterJoin,
    OutputWindow,
    Top,
    inputs_of,
    scanned,
)
from warehouse.views.maintenance.answers import answer, for_ever, newest_rows
from warehouse.views.maintenance.appended import EVALUATED, arriving
from warehouse.views.maintenance.driver_keyed import replaced_in_driver
from warehouse.views.maintenance.groups import adjusted, is_adjustable, state_columns
from warehouse.views.maintenance.inputs import NodeTable, few_interpreted
from warehouse.views.maintenance.keyed import changed_keys, no_stored_rows_like, replacement
from warehouse.views.maintenance.keys import lookup_keys, renamed, semi_joined
from warehouse.views.maintenance.pipelines import changes, live, over, relation

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from warehouse.views.algebra import Operator
    from warehouse.views.maintenance.cache import DistinctKeys
    from warehouse.views.maintenance.inputs import NodeInputs
    from warehouse.views.maintenance.keyed import Replacement

__all__ = ["current", "replaced"]


def replaced(inputs: NodeInputs) -> tuple[Replacement, DataFrame | pa.Table | None]:
    """Return the new content of the changed buckets, and short-lived rows if they are known."""
    in_driver = replaced_in_driver(inputs)
    if in_driver is not None:
        return in_driver
    with few_interpreted(inputs):
        return _replaced_by_spark(inputs)


def _replaced_by_spark(inputs: NodeInputs) -> tuple[Replacement, DataFrame | None]:
    node, move, core = inputs.node, inputs.move, inputs.core
    old = inputs.own.rows_to_rewrite()
    touched = None if old is None else _changed(inputs)
    keys = None if touched is None else changed_keys(touched, inputs.cache)
    of_keys = old if keys is None or keys.values is None else inputs.own.rows_to_rewrite(keys.values)
    rows = current(inputs, keys, of_keys)
    state: Sequence[str] = ()
    if isinstance(core, Group):
        state = state_columns(core) if is_adjustable(core, _types(core.input, inputs)) else ()
        if old is not None and not state:  # a table of a build that adjusted such sums
            kinds = {name: kind for name, kind in old.dtypes if name.startswith("_state_")}
            rows = rows.withColumns({name: F.lit(None).cast(kind) for name, kind in kinds.items()}) if kinds else rows
            state = list(kinds)
    lost = None
    if isinstance(core, AntiJoin):
        if not move.first:  # short-lived rows are read and counted again
            rows = inputs.cache.add(rows)
        lost = rows.where(f"unix_micros(_exp) <= {move.now}L")
        rows = rows.where(f"unix_micros(_exp) > {move.now}L")
    elif core is None and not move.first and any(inputs.tables[table].dead for table in scanned(node.operator)):
        lost = relation(node.operator, inputs.tables, NodeTable.short_lived)
    result = replacement(
        no_stored_rows_like(rows) if old is None else old, rows, keys, node.changed_key or node.search_key, of_keys=of_keys,
        columns=node.columns, search_key=node.search_key, state=state, layout=inputs.layout, move=move, cache=inputs.cache,
        # Rows of a row window whose arrivals a join above needs are also distinguished by their times, and so are the results of
        # the last rows of an answer, which are ranked by times.
        timed=isinstance(core, OutputWindow) or (node.hidden and isinstance(core, Top) and not core.order),
        stored=inputs.own.buckets_to_rewrite_in_driver if _surely_few(inputs, keys) else None,
    )  # fmt: skip
    return result, lost


def _surely_few(inputs: NodeInputs, keys: DistinctKeys | None) -> bool:
    """Whether the driver may collect the rows of the changed keys, and the rows in the same buckets."""
    if not inputs.own.is_small() or (keys is not None and (keys.values is None or keys.values.num_rows > EVALUATED)):
        return False
    match inputs.core:
        case Group():
            return keys is not None
        case Join() | OuterJoin():
            return False
        case _:
            return all(inputs.tables[table].is_small() for table in scanned(inputs.node.operator))


def _changed(inputs: NodeInputs) -> DataFrame | None:
    """Return the keys of rows that were inserted or removed; None: the whole answer is recomputed."""
    core, node, tables, move = inputs.core, inputs.node, inputs.tables, inputs.move
    if core is None:
        return renamed(changes(node.operator, tables, move), node.search_key, node.search_key).distinct()
    if not node.changed_key:
        return None
    sides = zip(inputs_of(core), node.changed_by, strict=True)
    parts = [renamed(changes(side, tables, move), by, node.changed_key) for side, by in sides]
    return reduce(DataFrame.unionByName, parts).distinct()


def current(inputs: NodeInputs, keys: DistinctKeys | None, old: DataFrame | None) -> DataFrame:
    """Return the rows of the changed keys that are in the answer now, with the carried columns.

    Parameters
    ----------
    inputs
        The inputs of the node.
    keys
        The changed keys; None: the whole answer.
    old
        The node's rows of the last epoch, at least those of the keys; None on a first build.

    """
    core, node, move = inputs.core, inputs.node, inputs.move
    match core:
        case None:
            return _of_keys(node.operator, inputs, keys, node.search_key)
        case Group() if is_adjustable(core, types := _types(core.input, inputs)):
            if old is None:
                delta, before = _live(inputs, core.input, None, 0).selectExpr("*", "1 AS _weight"), None
            else:
                delta = changes(core.input, inputs.tables, move)
                before = semi_joined(old, None if keys is None else keys.rows, core.keys)
            return for_ever(adjusted(core, delta, before, types), move)
        case OutputWindow(rows=int() as limit):
            results, columns = arriving(inputs, core.input), (*map(quoted, node.columns), "_ts")
            # A result that ended before an update could find it takes no place (docs/views.md); a result that was found stays.
            parts = [] if results is None else [results.where(f"unix_micros(_exp) > {move.now}L")]
            parts.append(no_rows(inputs.session, inputs.own.columns) if old is None else old)
            rows = newest_rows(reduce(DataFrame.unionByName, [for_ever(part.select(*columns), None) for part in parts]), limit)
        case AntiJoin():
            sides = [_recent(inputs, side, keys, number) for number, side in enumerate(inputs_of(core))]
            rows = answer(core, sides, move)
        case _:
            rows = answer(core, [_live(inputs, side, keys, number) for number, side in enumerate(inputs_of(core))], move)
    return rows if isinstance(core, Group) else over(node.operator, core, rows)


def _of_keys(
    operator: Operator,
    inputs: NodeInputs,
    keys: DistinctKeys | None,
    columns: Sequence[str],
    by: Sequence[str] = (),
    *,
    earlier: bool = False,
) -> DataFrame:
    """Return a pipeline's live rows whose columns have one of the keys (``by``: the names in ``keys``); no keys: all rows."""
    if keys is None:
        return live(operator, inputs.tables, earlier=earlier)
    keys_of_table = {}
    if keys.values is not None and columns:
        keys_of_table = lookup_keys(operator, columns, keys.values.select(list(by or columns)))
    return semi_joined(live(operator, inputs.tables, keys_of_table, earlier=earlier), keys.rows, columns, by or None)


def _live(inputs: NodeInputs, operator: Operator, keys: DistinctKeys | None, number: int) -> DataFrame:
    """Return an input's rows of the changed keys that are live now."""
    node = inputs.node
    by = node.changed_by[number] if node.changed_by else ()
    return _of_keys(operator, inputs, keys, by, node.changed_key).where(f"unix_micros(_exp) > {inputs.move.now}L")


def _recent(inputs: NodeInputs, operator: Operator, keys: DistinctKeys | None, number: int) -> DataFrame:
    """Return an input's rows of the changed keys that lived at any time since the last epoch."""
    if inputs.move.first or any(inputs.tables[table].keyed for table in scanned(operator)):
        return _live(inputs, operator, keys, number)
    by, changed = inputs.node.changed_by[number], inputs.node.changed_key
    before = _of_keys(operator, inputs, keys, by, changed, earlier=True)
    arrived = semi_joined(relation(operator, inputs.tables, NodeTable.arrived), None if keys is None else keys.rows, by, changed)
    return before.unionByName(arrived).where(f"unix_micros(_exp) > {inputs.move.before}L AND _exp > _ts")


def _types(operator: Operator, inputs: NodeInputs) -> dict[str, str]:
    return dict(live(operator, inputs.tables).dtypes)
