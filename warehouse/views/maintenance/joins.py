"""Joins of windows, maintained by what arrived (window-joins sheet, sections 4 and 5).

With N the rows that arrived, O those from before and A = O + N, the new results are formula F1:
``sum over i of A_1 x .. x A_(i-1) x N_i x O_(i+1) x .. x O_n`` where parts overlap in time. Each result has exactly one
largest new part, so it comes exactly once; every term starts at its small N.

Spark joins frames. Of few rows the driver makes the same terms without a job (an index nested loop): it looks up the rows from
before by the values that the rows so far ask for, and DuckDB finds the pairs by the same conditions. It compares keys and times
alone; pairs are numbers of rows, by which Arrow takes the other columns of both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.storage.arrow_keys import equal_rows
from warehouse.storage.arrow_types import compared_alike
from warehouse.storage.lookup import FAILURES, MATCHES, WIDE, leave_to_spark
from warehouse.views.algebra import Filter, Project
from warehouse.views.language.dialect import names_in
from warehouse.views.language.driver_sql import LeftToSparkError
from warehouse.views.maintenance.feeds import CARRIED
from warehouse.views.maintenance.join_inputs import connecting, without_end
from warehouse.views.maintenance.keys import distinct_keys, paired

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from warehouse.storage.arrow_keys import EqualRows
    from warehouse.views.algebra import Join, Operator, OuterJoin
    from warehouse.views.maintenance.driver_rows import Frame
    from warehouse.views.maintenance.join_inputs import ArrivedSide, JoinInputs

__all__ = ["joined", "local_results", "named_above", "new_results", "outer_joined"]

_Rows = TypeVar("_Rows")
"""Rows of Spark's, or in the driver."""

BROADCAST_ROWS = 500_000
"""A larger delta is shuffled like any other join; a smaller one is sent to where the windows are."""
_CANDIDATES = 20_000_000
"""Pairs with equal keys that the driver looks at, at most."""
_PUSHED_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "date")


def new_results(join: Join, inputs: JoinInputs) -> DataFrame | None:
    """Return the results with at least one new part, short-lived ones included; None if no row arrived.

    Parameters
    ----------
    join
        The operator.
    inputs
        Its inputs, and the join order: each term probes the other inputs in this order, if an equality connects them.

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
    """Return the join of whole inputs, for a recomputation."""
    first = inputs[0].selectExpr("*", "_ts AS _since")
    sides: dict[int, Frame] = {number: without_end(rows) for number, rows in enumerate(inputs[1:], start=1)}
    met = _in_order(join, 0, first, range(len(inputs)), lambda rows, number, on: _probe(rows, sides[number], on, join))
    return _results(met, join)


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
    join: Join, start: int, sides: dict[int, DataFrame], order: Sequence[int], delta: ArrivedSide
) -> DataFrame:
    """Join what arrived at one input with the others in order; few rows go to where the others are."""
    large = delta.statistics.arrived > BROADCAST_ROWS
    first = next((each for each in order if each != start and connecting(join, {start}, each)), None)
    if first is not None and not large:
        sides = {**sides, first: _narrowed(sides[first], delta, connecting(join, {start}, first), null_safe=join.null_safe)}

    def probed(rows: DataFrame, number: int, on: Sequence[tuple[str, str]]) -> DataFrame:
        return _probe(rows if large else F.broadcast(rows), sides[number], on, join)

    return _results(_in_order(join, start, delta.rows, order, probed), join)


def _in_order(
    join: Join,
    start: int,
    rows: _Rows,
    order: Sequence[int],
    probed: Callable[[_Rows, int, Sequence[tuple[str, str]]], _Rows],
) -> _Rows:
    """Join one input with the others in order, each as soon as an equality connects it.

    ``probed`` returns the rows so far joined with the input of that number on (column so far, column there).
    """
    todo = [number for number in order if number != start]
    there = {start}
    while todo:
        number = next((each for each in todo if connecting(join, there, each)), None)
        if number is None:
            raise ValueError(f"no equality connects input {todo[0]} of the join with the others")
        todo.remove(number)
        rows = probed(rows, number, connecting(join, there, number))
        there.add(number)
    return rows


def _results(rows: Frame, join: Join) -> Frame:
    """The rows for which the join's further condition holds, without the columns that only compare pairs."""
    rows = rows.selectExpr(*[quoted(name) for name in rows.columns if name != "_since"])
    return rows if join.where is None else rows.where(join.where)


def _narrowed(side: DataFrame, delta: ArrivedSide, on: Sequence[tuple[str, str]], *, null_safe: bool) -> DataFrame:
    """Restrict the read of a window to the keys of a small delta, so that bounds and Bloom filters prune row groups.

    With more keys every row group has some of them, and the filter would only cost time.
    """
    one, other = on[0]
    kind = dict(delta.rows.dtypes)[one]
    if kind not in _PUSHED_TYPES or dict(side.dtypes)[other] != kind:
        return side
    keys = delta.keys(one)
    if keys is None or (null_safe and None in keys):
        return side
    return side.where(F.col(quoted(other)).isin([key for key in keys if key is not None]))


def _equal(on: Sequence[tuple[str, str]], join: Join) -> list[str]:
    sign = "<=>" if join.null_safe else "="
    return [f"{quoted(one)} {sign} {quoted(other)}" for one, other in on]


def _probe(left: Frame, right: Frame, on: Sequence[tuple[str, str]], join: Join) -> Frame:
    """Join two inputs on equal columns, where their lifetimes overlap; a result begins last and ends first."""
    conditions = [*_equal(on, join), "greatest(_ts, _ts_right) < least(_exp, _exp_right)", "_held > _since"]
    matched = paired(left, _beside(right), " AND ".join(conditions), "inner")
    return _met(matched, [name for name in (*left.columns, *right.columns) if name not in (*CARRIED, "_held")])


def _beside(rows: Frame) -> Frame:
    """The rows as the other side of a join: with other names for the carried columns."""
    return rows.selectExpr(*[quoted(name) + (f" AS {name}_right" if name in CARRIED else "") for name in rows.columns])


def _met(matched: Frame, columns: Sequence[str]) -> Frame:
    """Pairs with these columns; a result begins last and ends first (`greatest` and `least` pass over nulls)."""
    begins, ends = "greatest(_ts, _ts_right) AS _ts", "least(_exp, _exp_right) AS _exp"
    return matched.selectExpr(*map(quoted, columns), begins, ends, "least(_out, _out_right) AS _out")


# --- few rows, in the driver ---


def local_results(join: Join, inputs: JoinInputs, operator: Operator) -> pa.Table | None:
    """Return the results with at least one new part, short-lived ones included; None: Spark must find them.

    The join's further condition is not evaluated. The columns are those of the inputs, in their order, that ``operator``, whose
    core is the join, may use; ``_ts``, ``_exp``, ``_out``.
    """
    try:
        return _local_terms(join, inputs, named_above(operator, join))
    except FAILURES as error:
        leave_to_spark(error)
        return None


def _local_terms(join: Join, inputs: JoinInputs, wanted: AbstractSet[str] | None) -> pa.Table | None:
    known = [each.picked for each in inputs.arrived if each.picked is not None]
    if inputs.before is None or len(known) < len(inputs.arrived):
        return None
    asked = None
    if wanted is not None:
        compared = [name.lower() for each in join.equal for name in (each.left_column, each.right_column)]
        asked = {*wanted, *compared, *CARRIED}
        known = [rows.select([name for name in rows.column_names if name.lower() in asked]) for rows in known]
    columns = [name for rows in known for name in rows.column_names if name not in CARRIED]
    terms = [
        _local_term(join, start, inputs, known, inputs.order[:position], asked).select([*columns, *CARRIED])
        for position, start in enumerate(inputs.order)
        if known[start].num_rows
    ]
    return pa.concat_tables(terms) if terms else None


def _local_term(
    join: Join, start: int, inputs: JoinInputs, known: Sequence[pa.Table], new: Sequence[int], asked: AbstractSet[str] | None
) -> pa.Table:
    """The join of rows that arrived at one input with earlier rows of the others, and new rows of those in ``new``."""
    before = inputs.before or ()

    def probed(rows: pa.Table, number: int, on: Sequence[tuple[str, str]]) -> pa.Table:
        if any(rows.schema.field(one).type != known[number].schema.field(other).type for one, other in on):
            raise LeftToSparkError("columns of different types are compared")
        if not all(compared_alike(rows.schema.field(one).type) for one, _ in on):
            raise LeftToSparkError("the engines may compare the columns of the join in different ways")
        keys = distinct_keys(rows, [one for one, _ in on], nulls=join.null_safe)
        side = before[number].looked_up([other for _, other in on], keys, asked)
        if side is None:
            raise LeftToSparkError("Spark is to read the rows from before")
        side = side.select(known[number].column_names)
        return _taken(rows, pa.concat_tables([side, known[number]]) if number in new else side, on, join)

    return _in_order(join, start, known[start], inputs.order, probed)


def _taken(left: pa.Table, right: pa.Table, on: Sequence[tuple[str, str]], join: Join) -> pa.Table:
    """Join two tables like :func:`_probe`, but read only the compared columns, and take the others for the pairs alone."""
    own, theirs = ([rows[name] for name in names] for rows, names in zip((left, right), zip(*on, strict=True), strict=True))
    equal = equal_rows(own, theirs, nulls=join.null_safe)
    if equal.pairs > _CANDIDATES:
        raise LeftToSparkError("too many rows have the same keys")
    rows, others, times = _overlapping(equal, left, right)
    if _bytes(left, rows) + _bytes(right, others) > WIDE:
        raise LeftToSparkError("too many rows meet")
    left, right = (each.drop_columns(CARRIED) for each in (left, right))
    found = [*left.take(rows).columns, *right.take(others).columns, *times]
    return pa.Table.from_arrays(found, [*left.column_names, *right.column_names, *CARRIED])


def _overlapping(equal: EqualRows, left: pa.Table, right: pa.Table) -> tuple[pa.Array, pa.Array, list[pa.Array]]:
    """The row numbers of pairs whose lives overlap, and their carried times: they begin last and end first."""
    if any(rows[name].null_count for rows in (left, right) for name in CARRIED):
        raise LeftToSparkError("rows have no times")
    one, other = ([rows[name].cast(pa.int64()).to_numpy() for name in CARRIED] for rows in (left, right))
    found: list[tuple[NDArray[np.int64], ...]] = []
    count = 0
    for rows, others in equal.parts():
        begins = np.maximum(one[0][rows], other[0][others])
        ends, outs = (np.minimum(one[place][rows], other[place][others]) for place in (1, 2))
        meet = begins < ends
        found.append(tuple(each[meet] for each in (rows, others, begins, ends, outs)))
        count += int(meet.sum())
        if count > MATCHES:
            raise LeftToSparkError("too many rows meet")
    joined = [np.concatenate(parts) for parts in zip(*found, strict=True)] or [np.array([], np.int64)] * 5
    numbers, times = joined[:2], (pa.array(each, pa.int64()).cast(left[CARRIED[0]].type) for each in joined[2:])
    return pa.array(numbers[0], pa.int64()), pa.array(numbers[1], pa.int64()), list(times)


def _bytes(rows: pa.Table, taken: pa.Array) -> float:
    """The bytes of some rows: exact for texts, an upper bound for nested values."""
    most = max(pc.value_counts(taken).field("counts").to_pylist(), default=0)
    total = 0.0
    for column in rows.columns:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            total += pc.sum(pc.binary_length(column).take(taken)).as_py() or 0
        elif pa.types.is_nested(column.type):
            total += column.nbytes * most
        else:
            total += column.nbytes / max(1, len(column)) * len(taken)
    return total


def named_above(operator: Operator, core: Join) -> set[str] | None:
    """Return the names, in lower case, that the filters and projections above a join may use; None: they use all.

    Examples
    --------
    >>> from warehouse.views.algebra import Filter, Join, Named, Project, Scan
    >>> join = Join((Scan("l"), Scan("r")), ())
    >>> above = Project(Filter(join, "`a` > `B`.`c`"), (Named("x", "`D` + 1"),))
    >>> sorted(named_above(above, join)), named_above(Filter(join, "`a` > 1"), join)
    (['a', 'b', 'c', 'd'], None)
    >>> sorted(named_above(Project(join, (Named("x", "concat('`', `a`, '`', `b`)"),)), join))
    ['a', 'b']
    """
    texts, picks = [core.where or ""], False
    while operator is not core:
        match operator:
            case Project():
                texts += [column.sql for column in operator.columns]
                picks = True
            case Filter():
                texts.append(operator.condition)
            case _:
                return None
        operator = operator.input
    return {name.lower() for text in texts for name in names_in(text)} if picks else None
