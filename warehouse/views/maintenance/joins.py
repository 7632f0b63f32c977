"""Joins of windows, maintained by what arrived (window-joins sheet, sections 4 and 5).

With N the rows that arrived, O those from before and A = O + N, the new results are formula F1:
``sum over i of A_1 x .. x A_(i-1) x N_i x O_(i+1) x .. x O_n`` where parts overlap in time. Each result has exactly one
largest new part, so it comes exactly once; every term starts at its small N.

Few rows that arrived are gathered: then their number, the values of their join columns and the tables by which they are
probed are had without a job of Spark's, and what is left of a step is reading the windows once. Java compiles the code of
that reading anew whenever a constant in it is another, for millions of rows with more effort than reading them takes
(*measured*: half of the time of a step). So no instant of a step is in it: whether a row of a window was still live at the
last epoch is asked of those that meet a new one, which carries that instant (``_since``) as a column.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.time import NEVER
from warehouse.views.algebra import Project, Scan, TimeWindow, UnionAll, inputs_of, scanned
from warehouse.views.costs.chosen_order import InputStatistics, chosen_order, equality_classes
from warehouse.views.maintenance.feeds import feed, most_arrived, over_row_windows
from warehouse.views.maintenance.kept import FEW, gathered, kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from warehouse.views.algebra import Join, Operator
    from warehouse.views.maintenance.feeds import Move, Tables

__all__ = ["PUSHED_KEYS", "JoinInputs", "join_inputs", "joined", "new_results", "picks_only"]

BROADCAST_ROWS = 500_000
"""A larger delta is shuffled like any other join; a smaller one is sent to where the windows are."""
PUSHED_KEYS = 200
"""Keys of a delta up to which the files of a window are read by key."""
_SURELY_MORE = 2
"""Approximate numbers of keys are off by some per cent; with so many times the limit there is no need to look."""
_PUSHED_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "date")
_TIMES = ("_ts", "_exp", "_out")
_COLUMN = re.compile(r"`?\w+`?")
"""An expression that is a column's name."""
_HELD = "timestamp_micros({}L) AS _held"


@dataclass(frozen=True)
class JoinInputs:
    """The inputs of a join: rows that arrived, figures of them, and rows from before (none on a first build)."""

    arrived: tuple[Arrived, ...]
    before: tuple[DataFrame, ...] | None
    order: tuple[int, ...]

    def release(self) -> None:
        """Let the kept rows go."""
        for each in self.arrived:
            if each.held is not None:
                each.held()


@dataclass(frozen=True)
class Arrived:
    """Rows that arrived, kept, since each term reads them again, and figures of them; ``known`` where they are gathered."""

    rows: DataFrame
    statistics: InputStatistics
    known: pa.Table | None = None
    held: Callable[[], object] | None = None

    def keys(self, column: str) -> list[object] | None:
        """Return the values of a column; none when they are more than are pushed."""
        if self.statistics.distinct.get(column, 0) > (_SURELY_MORE if self.known is None else 1) * PUSHED_KEYS:
            return None
        if self.known is not None:
            return list(self.known.column(column).unique().to_pylist())
        values = [row[0] for row in self.rows.select(F.col(quoted(column))).distinct().limit(PUSHED_KEYS + 1).collect()]
        return values if len(values) <= PUSHED_KEYS else None


def join_inputs(join: Join, tables: Tables, move: Move) -> JoinInputs:
    """Read what a join needs."""
    arrived = tuple(
        _arrived(each, classes, tables, move) for each, classes in zip(join.inputs, equality_classes(join), strict=True)
    )
    order = chosen_order(join, [each.statistics for each in arrived])
    if move.first:
        return JoinInputs(arrived, None, order)
    return JoinInputs(arrived, tuple(_earlier(each, join, tables, move) for each in join.inputs), order)


def _earlier(operator: Operator, join: Join, tables: Tables, move: Move) -> DataFrame:
    """The rows from before, with ``_held``: the instant until which each was."""
    if join.where is None and picks_only(operator):
        rows = feed(operator, tables.stored, tables.versions)
    else:  # an expression of the user's need not be defined for rows that have gone
        before = feed(operator, tables.stayed if over_row_windows(operator) else tables.before, tables.versions)
        rows = before.where(f"unix_micros(_exp) > {move.before}L")
    return rows.selectExpr("*", "_exp AS _held")


def picks_only(operator: Operator) -> bool:
    """Whether a pipeline only picks and renames columns and ends rows, which can be done with any row."""
    match operator:
        case Scan():
            return True
        case UnionAll() | TimeWindow():
            return all(map(picks_only, inputs_of(operator)))
        case Project():
            return all(_COLUMN.fullmatch(column.sql) for column in operator.columns) and picks_only(operator.input)
        case _:
            return False


def _arrived(operator: Operator, columns: Iterable[str], tables: Tables, move: Move) -> Arrived:
    since = f"timestamp_micros({move.before}L) AS _since"
    rows = feed(operator, tables.arrived, tables.versions).where("_exp > _ts").selectExpr("*", since)
    window = sum(tables.rows(table) for table in scanned(operator))
    most = most_arrived(operator, tables)
    if most is None or most > FEW:
        rows, release = kept(rows)
        return Arrived(rows, _statistics(rows, columns, window), None, release)
    rows, known = gathered(rows)
    distinct = {name: _distinct(known.column(name)) for name in columns}
    return Arrived(rows, InputStatistics(known.num_rows, distinct, window), known)


def _distinct(column: pa.ChunkedArray) -> int:
    import pyarrow as pa  # noqa: PLC0415 - only in a step
    import pyarrow.compute as pc  # noqa: PLC0415 - same

    if pa.types.is_nested(column.type):
        return len(column) - column.null_count  # Arrow counts no structures; most differ
    return int(pc.count_distinct(column).as_py())


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
        if not inputs.arrived[number].statistics.arrived:
            continue
        if inputs.before is None:
            if position < len(order) - 1:
                continue  # what came before is empty, so only the term without it is left
            sides = {other: _as_side(inputs.arrived[other]) for other in order if other != number}
        else:
            sides = {
                other: (
                    inputs.before[other].unionByName(_as_side(inputs.arrived[other]))
                    if order.index(other) < position and inputs.arrived[other].statistics.arrived
                    else inputs.before[other]
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
    sides = {number: rows.selectExpr("*", _HELD.format(NEVER)) for number, rows in enumerate(others, start=1)}
    return _term(join, 0, first.selectExpr("*", "_ts AS _since"), sides, range(len(inputs)), None)


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
        first = next((each for each in todo if _conditions(join, there, each)), None)
        if first is not None:
            sides = {**sides, first: _narrowed(sides[first], delta, _conditions(join, there, first), null_safe=join.null_safe)}
    while todo:
        number = next((each for each in todo if _conditions(join, there, each)), None)
        if number is None:
            raise ValueError(f"no equality connects input {todo[0]} of the join with the others")
        todo.remove(number)
        result = _probe(F.broadcast(result) if small else result, sides[number], _conditions(join, there, number), join)
        there.add(number)
    result = result.drop("_since")
    return result if join.where is None else result.where(join.where)


def _as_side(arrived: Arrived) -> DataFrame:
    """Rows that arrived as those that others meet, late ones included, whenever they ended."""
    return arrived.rows.drop("_since").selectExpr("*", _HELD.format(NEVER))


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
    conditions.append(F.expr("greatest(_ts, _ts_right) < least(_exp, _exp_right) AND _held > _since"))
    matched = left.join(renamed, _all(conditions), "inner")
    columns = [quoted(name) for name in (*left.columns, *right.columns) if name not in (*_TIMES, "_held")]
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
