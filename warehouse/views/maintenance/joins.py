"""Joins of windows, maintained by what arrived (window-joins sheet, sections 4 and 5).

With N the rows that arrived, O those from before and A = O + N, the new results are formula F1:
``sum over i of A_1 x .. x A_(i-1) x N_i x O_(i+1) x .. x O_n`` where parts overlap in time. Each result has exactly one
largest new part, so it comes exactly once; every term starts at its small N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.views.maintenance.feeds import CARRIED
from warehouse.views.maintenance.join_inputs import connecting, without_end

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from warehouse.views.algebra import Join, OuterJoin
    from warehouse.views.maintenance.join_inputs import Arrived, JoinInputs

__all__ = ["joined", "new_results", "outer_joined"]

BROADCAST_ROWS = 500_000
"""A larger delta is shuffled like any other join; a smaller one is sent to where the windows are."""
_PUSHED_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "date")


def new_results(join: Join, inputs: JoinInputs) -> DataFrame | None:
    """Return the results with at least one new part, short-lived ones included; none when nothing arrived.

    Parameters
    ----------
    join
        The operator.
    inputs
        What it reads, and the join order: each term probes the others in it, as far as an equality connects them.

    """
    order = inputs.order
    terms = []
    for position, number in enumerate(order):
        if not inputs.arrived[number].statistics.arrived:
            continue
        if inputs.before is None:
            if position < len(order) - 1:
                continue  # what came before is empty, so only the term without it is left
            sides = {other: inputs.arrived[other].as_side() for other in order if other != number}
        else:
            sides = {
                other: (
                    inputs.before[other].rows().unionByName(inputs.arrived[other].as_side())
                    if order.index(other) < position and inputs.arrived[other].statistics.arrived
                    else inputs.before[other].rows()
                )
                for other in order
                if other != number
            }
        terms.append(_term(join, number, inputs.arrived[number].rows, sides, order, inputs.arrived[number]))
    if not terms:
        return None
    result = terms[0]
    for term in terms[1:]:
        result = result.unionByName(term)
    return result


def joined(join: Join, inputs: Sequence[DataFrame]) -> DataFrame:
    """Return the join of whole inputs: what a recomputation is."""
    first, *others = inputs
    sides = {number: without_end(rows) for number, rows in enumerate(others, start=1)}
    return _term(join, 0, first.selectExpr("*", "_ts AS _since"), sides, range(len(inputs)), None)


def outer_joined(join: OuterJoin, left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the outer join of live rows of the keys asked for.

    Matched rows live while both parts do, unmatched ones until a partner comes, at the latest their own end.
    """
    renamed = right.withColumnsRenamed({name: f"{name}_right" for name in CARRIED})
    conditions = [f"{quoted(one)} = {quoted(other)}" for one, other in join.on]
    if join.where is not None:
        conditions.append(f"({join.where})")
    matched = left.join(renamed, F.expr(" AND ".join(conditions)), "full" if join.kind == "full" else join.kind)
    return _met(matched, [name for name in (*left.columns, *right.columns) if name not in CARRIED])


def _term(
    join: Join,
    start: int,
    rows: DataFrame,
    sides: dict[int, DataFrame],
    order: Sequence[int],
    delta: Arrived | None,
) -> DataFrame:
    """Join one input with the others in order; where it is a delta it goes to where the others are."""
    todo = [number for number in order if number != start]
    there = {start}
    result = rows
    small = delta is not None and delta.statistics.arrived <= BROADCAST_ROWS
    if delta is not None and small:
        first = next((each for each in todo if connecting(join, there, each)), None)
        if first is not None:
            sides = {**sides, first: _narrowed(sides[first], delta, connecting(join, there, first), null_safe=join.null_safe)}
    while todo:
        number = next((each for each in todo if connecting(join, there, each)), None)
        if number is None:
            raise ValueError(f"no equality connects input {todo[0]} of the join with the others")
        todo.remove(number)
        result = _probe(F.broadcast(result) if small else result, sides[number], connecting(join, there, number), join)
        there.add(number)
    result = result.drop("_since")
    return result if join.where is None else result.where(join.where)


def _narrowed(side: DataFrame, delta: Arrived, on: Sequence[tuple[str, str]], *, null_safe: bool) -> DataFrame:
    """Let a window's files be read by the keys of a delta of few: bounds and Bloom filters then tell which row groups.

    With more keys every row group has some, and telling so would only cost.
    """
    one, other = on[0]
    kind = dict(delta.rows.dtypes)[one]
    if kind not in _PUSHED_TYPES or dict(side.dtypes)[other] != kind:
        return side
    keys = delta.keys(one)
    if keys is None or (null_safe and None in keys):
        return side
    return side.where(F.col(quoted(other)).isin([key for key in keys if key is not None]))


def _probe(left: DataFrame, right: DataFrame, on: Sequence[tuple[str, str]], join: Join) -> DataFrame:
    """Join two inputs on equal columns, where their lifetimes overlap; a result begins last and ends first."""
    renamed = right.withColumnsRenamed({name: f"{name}_right" for name in CARRIED})
    equal = "<=>" if join.null_safe else "="
    conditions = [F.expr(f"{quoted(one)} {equal} {quoted(other)}") for one, other in on]
    conditions.append(F.expr("greatest(_ts, _ts_right) < least(_exp, _exp_right) AND _held > _since"))
    matched = left.join(renamed, _all(conditions), "inner")
    return _met(matched, [name for name in (*left.columns, *right.columns) if name not in (*CARRIED, "_held")])


def _met(matched: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Pairs with these columns; a result begins last and ends first (`greatest` and `least` pass over nulls)."""
    begins, ends = "greatest(_ts, _ts_right) AS _ts", "least(_exp, _exp_right) AS _exp"
    return matched.selectExpr(*map(quoted, columns), begins, ends, "least(_out, _out_right) AS _out")


def _all(conditions: Sequence[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole
