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
from warehouse.views.maintenance.keys import paired

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from warehouse.views.algebra import Join, OuterJoin
    from warehouse.views.maintenance.driver_rows import Frame
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
        terms.append(_term(join, number, sides, order, inputs.arrived[number]))
    if not terms:
        return None
    result = terms[0]
    for term in terms[1:]:
        result = result.unionByName(term)
    return result


def joined(join: Join, inputs: Sequence[Frame]) -> Frame:
    """Return the join of whole inputs: what a recomputation is."""
    first = inputs[0].selectExpr("*", "_ts AS _since")
    sides: dict[int, Frame] = {number: without_end(rows) for number, rows in enumerate(inputs[1:], start=1)}
    return _in_order(join, 0, first, sides, range(len(inputs)))


def outer_joined(join: OuterJoin, left: Frame, right: Frame) -> Frame:
    """Return the outer join of live rows of the keys asked for.

    Matched rows live while both parts do, unmatched ones until a partner comes, at the latest their own end.
    """
    conditions = [f"{quoted(one)} = {quoted(other)}" for one, other in join.on]
    if join.where is not None:
        conditions.append(f"({join.where})")
    matched = paired(left, _beside(right), " AND ".join(conditions), join.kind)
    return _met(matched, [name for name in (*left.columns, *right.columns) if name not in CARRIED])


def _term(
    join: Join, start: int, sides: dict[int, DataFrame], order: Sequence[int], delta: Arrived
) -> DataFrame:
    """Join what arrived at one input with the others in order; few rows go to where the others are."""
    if delta.statistics.arrived > BROADCAST_ROWS:
        return _in_order(join, start, delta.rows, sides, order)
    first = next((each for each in order if each != start and connecting(join, {start}, each)), None)
    if first is not None:
        sides = {**sides, first: _narrowed(sides[first], delta, connecting(join, {start}, first), null_safe=join.null_safe)}
    return _in_order(join, start, delta.rows, sides, order, F.broadcast)


def _in_order(
    join: Join,
    start: int,
    rows: Frame,
    sides: Mapping[int, Frame],
    order: Sequence[int],
    sent: Callable[[Frame], Frame] | None = None,
) -> Frame:
    """Join one input with the others in order; ``sent`` says how what is joined goes to the next, if not as Spark likes."""
    todo = [number for number in order if number != start]
    there = {start}
    result = rows
    while todo:
        number = next((each for each in todo if connecting(join, there, each)), None)
        if number is None:
            raise ValueError(f"no equality connects input {todo[0]} of the join with the others")
        todo.remove(number)
        result = _probe(result if sent is None else sent(result), sides[number], connecting(join, there, number), join)
        there.add(number)
    result = result.selectExpr(*[quoted(name) for name in result.columns if name != "_since"])
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


def _probe(left: Frame, right: Frame, on: Sequence[tuple[str, str]], join: Join) -> Frame:
    """Join two inputs on equal columns, where their lifetimes overlap; a result begins last and ends first."""
    equal = "<=>" if join.null_safe else "="
    conditions = [f"{quoted(one)} {equal} {quoted(other)}" for one, other in on]
    conditions += ["greatest(_ts, _ts_right) < least(_exp, _exp_right)", "_held > _since"]
    matched = paired(left, _beside(right), " AND ".join(conditions), "inner")
    return _met(matched, [name for name in (*left.columns, *right.columns) if name not in (*CARRIED, "_held")])


def _beside(rows: Frame) -> Frame:
    """The rows as those that others are joined with: their carried columns are called otherwise."""
    return rows.selectExpr(*[quoted(name) + (f" AS {name}_right" if name in CARRIED else "") for name in rows.columns])


def _met(matched: Frame, columns: Sequence[str]) -> Frame:
    """Pairs with these columns; a result begins last and ends first (`greatest` and `least` pass over nulls)."""
    begins, ends = "greatest(_ts, _ts_right) AS _ts", "least(_exp, _exp_right) AS _exp"
    return matched.selectExpr(*map(quoted, columns), begins, ends, "least(_out, _out_right) AS _out")
