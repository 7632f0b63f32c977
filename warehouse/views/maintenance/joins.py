"""Joins of windows, maintained by what arrived (window-joins sheet, sections 4 and 5).

With N the rows that arrived, O those from before and A = O + N, the new results are formula F1:
``sum over i of A_1 x .. x A_(i-1) x N_i x O_(i+1) x .. x O_n`` where parts overlap in time. Each result has exactly one
largest new part, so it comes exactly once; every term starts at its small N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import scanned
from warehouse.views.costs.chosen_order import InputStatistics, chosen_order, equality_classes
from warehouse.views.maintenance.feeds import feed, over_row_windows
from warehouse.views.maintenance.kept import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import Column, DataFrame

    from warehouse.views.algebra import Join
    from warehouse.views.maintenance.feeds import Move, Tables

__all__ = ["PUSHED_KEYS", "JoinInputs", "join_inputs", "joined", "new_results"]

BROADCAST_ROWS = 500_000
"""A larger delta is shuffled like any other join; a smaller one is sent to where the windows are."""
PUSHED_KEYS = 200
"""Keys of a delta up to which the files of a window are read by key."""
_SURELY_MORE = 2
"""Approximate numbers of keys are off by some per cent; with so many times the limit there is no need to look."""
_PUSHED_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "date")
_TIMES = ("_ts", "_exp", "_out")


@dataclass(frozen=True)
class JoinInputs:
    """The inputs of a join: rows that arrived, figures of them, and rows from before (none on a first build)."""

    arrived: tuple[DataFrame, ...]
    statistics: tuple[InputStatistics, ...]
    before: tuple[DataFrame, ...] | None
    order: tuple[int, ...]
    held: tuple[Callable[[], object], ...]

    def release(self) -> None:
        """Let the kept rows go."""
        for release in self.held:
            release()


def join_inputs(join: Join, tables: Tables, move: Move) -> JoinInputs:
    """Read what a join needs; what arrived is kept, since each term reads it again."""
    feeds = [kept(feed(each, tables.arrived, tables.versions).where("_exp > _ts")) for each in join.inputs]
    arrived, held = tuple(rows for rows, _ in feeds), tuple(release for _, release in feeds)
    statistics = tuple(
        _statistics(rows, classes, sum(tables.rows(table) for table in scanned(operator)))
        for rows, classes, operator in zip(arrived, equality_classes(join), join.inputs, strict=True)
    )
    order = chosen_order(join, statistics)
    if move.first:
        return JoinInputs(arrived, statistics, None, order, held)
    earlier = tuple(
        feed(each, tables.stayed if over_row_windows(each) else tables.before, tables.versions).where(
            f"unix_micros(_exp) > {move.before}L"
        )
        for each in join.inputs
    )
    return JoinInputs(arrived, statistics, earlier, order, held)


def _statistics(rows: DataFrame, columns: Iterable[str], window: int) -> InputStatistics:
    names = list(columns)
    row = rows.agg(F.expr("count(*)"), *[F.approx_count_distinct(quoted(name)) for name in names]).collect()[0]
    return InputStatistics(row[0], dict(zip(names, row[1:], strict=True)), window)


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
        if not inputs.statistics[number].arrived:
            continue
        if inputs.before is None:
            if position < len(order) - 1:
                continue  # what came before is empty, so only the term without it is left
            sides = {other: inputs.arrived[other] for other in order if other != number}
        else:
            sides = {
                other: (
                    inputs.before[other].unionByName(inputs.arrived[other])
                    if order.index(other) < position and inputs.statistics[other].arrived
                    else inputs.before[other]
                )
                for other in order
                if other != number
            }
        terms.append(_term(join, number, inputs.arrived[number], sides, order, inputs.statistics[number]))
    if not terms:
        return None
    result = terms[0]
    for term in terms[1:]:
        result = result.unionByName(term)
    return result


def joined(join: Join, inputs: Sequence[DataFrame]) -> DataFrame:
    """Return the join of whole inputs: what a recomputation is."""
    sides = dict(enumerate(inputs))
    return _term(join, 0, sides.pop(0), sides, range(len(inputs)), None)


def _term(
    join: Join,
    start: int,
    rows: DataFrame,
    sides: dict[int, DataFrame],
    order: Sequence[int],
    statistics: InputStatistics | None,
) -> DataFrame:
    """Join one input with the others in order; with figures of it, which a delta has, it goes to where the others are."""
    todo = [number for number in order if number != start]
    there = {start}
    result = rows
    small = statistics is not None and statistics.arrived <= BROADCAST_ROWS
    if statistics is not None and small:
        first = next((each for each in todo if _conditions(join, there, each)), None)
        if first is not None:
            sides = {**sides, first: _narrowed(sides[first], rows, _conditions(join, there, first), statistics)}
    while todo:
        number = next((each for each in todo if _conditions(join, there, each)), None)
        if number is None:
            raise ValueError(f"no equality connects input {todo[0]} of the join with the others")
        todo.remove(number)
        result = _probe(F.broadcast(result) if small else result, sides[number], _conditions(join, there, number), join)
        there.add(number)
    return result if join.where is None else result.where(join.where)


def _narrowed(side: DataFrame, delta: DataFrame, on: Sequence[tuple[str, str]], statistics: InputStatistics) -> DataFrame:
    """Let a window's files be read by the keys of a delta of few: bounds and Bloom filters then tell which row groups.

    With more keys every row group has some, and telling so would only cost.
    """
    one, other = on[0]
    if statistics.distinct.get(one, 0) > _SURELY_MORE * PUSHED_KEYS:
        return side
    kind = dict(delta.dtypes)[one]
    if kind not in _PUSHED_TYPES or dict(side.dtypes)[other] != kind:
        return side
    keys = [row[0] for row in delta.select(F.col(quoted(one))).distinct().limit(PUSHED_KEYS + 1).collect()]
    if len(keys) > PUSHED_KEYS or None in keys:
        return side
    return side.where(F.col(quoted(other)).isin(keys))


def _conditions(join: Join, there: set[int], number: int) -> list[tuple[str, str]]:
    """Return (column there, column of the next input) of the equalities that connect an input with those joined."""
    pairs = []
    for each in join.equal:
        if each.right == number and each.left in there:
            pairs.append((each.left_column, each.right_column))
        elif each.left == number and each.right in there:
            pairs.append((each.right_column, each.left_column))
    return pairs


def _probe(left: DataFrame, right: DataFrame, on: Sequence[tuple[str, str]], join: Join) -> DataFrame:
    """Join two inputs on equal columns, where their lifetimes overlap; a result begins last and ends first."""
    renamed = right.withColumnsRenamed({name: f"{name}_right" for name in _TIMES})
    equal = "<=>" if join.null_safe else "="
    conditions = [F.expr(f"{quoted(one)} {equal} {quoted(other)}") for one, other in on]
    conditions.append(F.expr("greatest(_ts, _ts_right) < least(_exp, _exp_right)"))
    matched = left.join(renamed, _all(conditions), "inner")
    columns = [quoted(name) for name in (*left.columns, *right.columns) if name not in _TIMES]
    return matched.selectExpr(
        *columns,
        "greatest(_ts, _ts_right) AS _ts",
        "least(_exp, _exp_right) AS _exp",
        "least(_out, _out_right) AS _out",
    )


def _all(conditions: Sequence[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole
