"""Joins of windows, maintained by what arrived (window-joins sheet, sections 4 and 5).

With N the rows that arrived, O those from before and A = O + N, the new results are formula F1:
``sum over i of A_1 x .. x A_(i-1) x N_i x O_(i+1) x .. x O_n`` where parts overlap in time. Each result has exactly one
largest new part, so it comes exactly once; every term starts at its small N.

Spark joins frames. The driver computes the same terms of few rows without a job (an index nested loop): it looks up the rows from
before by the keys of the rows so far, finds pairs by their keys, and compares their times. A pair is two numbers of rows, by
which Arrow takes the other columns of both sides.

Few rows that arrived are collected. Then their number, the values of their join columns and the hash tables of the join need no
Spark job, and the step only has to read the windows once. Spark generates code for this read, and Java compiles it again if a
constant in it changes (*measured*, windows of 4 million rows: 1.73 s with a new constant each time, 0.99 s with the same one). So
the code has no instant of the step: rows from before carry the end of their lives (``_held``), rows that arrived carry the
instant of the last epoch (``_since``), and pairs are filtered by ``_held > _since``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.storage.arrow_keys import distinct_keys, equal_rows, overlapping
from warehouse.storage.arrow_types import bytes_taken, can_be_collected, compared_alike, frame_of
from warehouse.storage.lookup import FAILURES, MATCHES, WIDE, leave_to_spark
from warehouse.time import NEVER
from warehouse.views.algebra import scanned
from warehouse.views.costs.chosen_order import InputStatistics, chosen_order, connecting, equality_classes, probes
from warehouse.views.language.driver_types import LeftToSparkError
from warehouse.views.maintenance.cache import FEW, collected
from warehouse.views.maintenance.counted_keys import counted_keys
from warehouse.views.maintenance.inputs import NodeTable
from warehouse.views.maintenance.keys import lookup_keys, paired
from warehouse.views.maintenance.pipelines import (
    CARRIED,
    ending_after,
    evaluated,
    most_arrived,
    named_above,
    narrowed,
    picks_only,
    reads_row_windows,
    relation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.views.algebra import Join, Operator, OuterJoin
    from warehouse.views.maintenance.driver_rows import Frame
    from warehouse.views.maintenance.inputs import NodeInputs

__all__ = [
    "PUSHED_KEYS",
    "ArrivedSide",
    "EarlierSide",
    "JoinInputs",
    "join_inputs",
    "joined",
    "local_results",
    "new_results",
    "outer_joined",
    "without_end",
]

BROADCAST_ROWS = 500_000
"""A larger delta is shuffled like any other join; a smaller one is broadcast."""
_CANDIDATES = 20_000_000
"""Pairs with equal keys that the driver looks at, at most."""
_PUSHED_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "date")
PUSHED_KEYS = 200
"""The files of a window are read by key if a delta has at most this many keys."""
_SURELY_MORE = 2
"""Approximate numbers of keys have errors of a few per cent: above this multiple of the limit no exact count is needed."""


# --- the inputs: rows that arrived, with their figures, and rows from before ---


@dataclass(frozen=True)
class JoinInputs:
    """The inputs of a join: rows that arrived, with their figures, and rows from before (None on a first build)."""

    arrived: tuple[ArrivedSide, ...]
    before: tuple[EarlierSide, ...] | None
    order: tuple[int, ...]


@dataclass(frozen=True)
class ArrivedSide:
    """Rows that arrived, which each term reads again, and their figures.

    ``frame`` has the rows, cached or collected; ``known`` has the rows if they are in the driver. ``picked`` has the same rows if
    they were read without Spark: then a frame is made only when it is needed.
    """

    opened: Callable[[], SparkSession]
    since: int
    statistics: InputStatistics
    frame: DataFrame | None = None
    known: pa.Table | None = None
    picked: pa.Table | None = None

    @cached_property
    def rows(self) -> DataFrame:
        """The rows, with ``_since``: the instant of the last epoch."""
        if self.frame is not None:
            return self.frame
        return frame_of(self.opened(), self.known).selectExpr("*", _since(self.since))

    def as_side(self) -> DataFrame:
        """Return the rows as the other side of a join, with late rows and rows that have ended."""
        return without_end(self.rows.drop("_since"))

    def keys(self, column: str) -> list[object] | None:
        """Return the values of a column; None if they are too many to push down."""
        if self.statistics.distinct.get(column, 0) > (_SURELY_MORE if self.known is None else 1) * PUSHED_KEYS:
            return None
        if self.known is not None:
            return list(self.known.column(column).unique().to_pylist())
        values = [row[0] for row in self.rows.select(F.col(quoted(column))).distinct().limit(PUSHED_KEYS + 1).collect()]
        return values if len(values) <= PUSHED_KEYS else None


def join_inputs(join: Join, inputs: NodeInputs) -> JoinInputs:
    """Read the inputs of a join."""
    classes = equality_classes(join)
    arrived = tuple(_arrived(operator, columns, inputs) for operator, columns in zip(join.inputs, classes, strict=True))
    arrivals = [
        (side.statistics.arrived, None if side.known is None else side.known.select([*columns]))
        for side, columns in zip(arrived, classes, strict=True)
    ]
    counts = None if inputs.move.first else counted_keys(join.inputs, classes, inputs.tables, arrivals)
    order = chosen_order(join, [side.statistics for side in arrived], counts)
    if inputs.move.first:
        return JoinInputs(arrived, None, order)
    earlier = (EarlierSide(operator, join.where is None, inputs.tables, inputs.move.before) for operator in join.inputs)
    return JoinInputs(arrived, tuple(earlier), order)


@dataclass(frozen=True)
class EarlierSide:
    """An input's rows from before the instant ``before``; ``bare``: the join has no condition but its equalities."""

    operator: Operator
    bare: bool
    tables: Mapping[str, NodeTable]
    before: int

    def rows(self) -> DataFrame:
        """Return the rows, with ``_held``: the instant until which each row lived."""
        if self.bare and picks_only(self.operator):
            rows = relation(self.operator, self.tables, NodeTable.stored_before)
        else:  # a user's expression need not be defined for rows that have expired
            part = NodeTable.still_stored if reads_row_windows(self.operator) else NodeTable.live_before
            rows = relation(self.operator, self.tables, part).where(f"unix_micros(_exp) > {self.before}L")
        return rows.selectExpr("*", "_exp AS _held")

    def looked_up(self, columns: Sequence[str], keys: pa.Table, wanted: AbstractSet[str] | None) -> pa.Table | None:
        """Return at least the rows with one of the keys (values of these columns, in order); None: Spark must read them.

        ``wanted`` are names of columns, in lower case; other columns may be missing.
        """
        keys_of_table = lookup_keys(self.operator, columns, keys)
        if reads_row_windows(self.operator) or not keys_of_table.keys() >= set(scanned(self.operator)):
            return None
        names: dict[str, set[str]] = {}
        operator = self.operator if wanted is None else narrowed(self.operator, map(str.lower, (*wanted, *columns)), names)
        any_row = picks_only(operator)

        def rows_of_table(table: NodeTable) -> pa.Table | None:
            rows = table.rows_of_keys_in_driver(keys_of_table[table.name], None if wanted is None else names[table.name])
            return rows if rows is None or any_row else ending_after(rows, "_exp", self.before)

        rows = evaluated(operator, self.tables, rows_of_table)
        return None if rows is None else ending_after(rows, "_exp", self.before)


def _arrived(operator: Operator, columns: Iterable[str], inputs: NodeInputs) -> ArrivedSide:
    tables, opened, since = inputs.tables, inputs.opened, inputs.move.before
    window = sum(tables[table].size for table in scanned(operator))
    local_rows = _evaluated(operator, tables)
    if local_rows is not None and local_rows.num_rows <= FEW:  # counted, since sealed files also have other rows
        statistics = InputStatistics(local_rows.num_rows, {name: _distinct(local_rows[name]) for name in columns}, window)
        return ArrivedSide(opened, since, statistics, known=local_rows, picked=local_rows)
    rows = relation(operator, tables, NodeTable.arrived).where("_exp > _ts").selectExpr("*", _since(since))
    most = most_arrived(operator, tables)
    if most is None or most > FEW or not can_be_collected(rows.schema):
        rows = inputs.cache.add(rows)
        return ArrivedSide(opened, since, _statistics(rows, columns, window), rows)
    rows, local_rows = collected(rows)
    distinct = {name: _distinct(local_rows[name]) for name in columns}
    return ArrivedSide(opened, since, InputStatistics(local_rows.num_rows, distinct, window), rows, local_rows)


def _since(instant: int) -> str:
    return f"timestamp_micros({instant}L) AS _since"


def _evaluated(operator: Operator, tables: Mapping[str, NodeTable]) -> pa.Table | None:
    """Return the arrived rows, read without Spark; None: Spark must read them."""
    try:
        rows = evaluated(operator, tables, NodeTable.arrived_in_driver)
        return None if rows is None else rows.filter(pc.greater(rows["_exp"], rows["_ts"]))
    except FAILURES as error:
        leave_to_spark(error)
        return None


def _distinct(column: pa.ChunkedArray) -> int:
    # Arrow cannot compare structures; most differ.
    count: int = column.length() - column.null_count if pa.types.is_nested(column.type) else pc.count_distinct(column).as_py()
    return count


def _statistics(rows: DataFrame, columns: Iterable[str], window: int) -> InputStatistics:
    names = list(columns)
    row = rows.agg(F.expr("count(*)"), *[F.approx_count_distinct(quoted(name)) for name in names]).collect()[0]
    return InputStatistics(row[0], dict(zip(names, row[1:], strict=True)), window)


def without_end(rows: Frame) -> Frame:
    """Return rows with an endless ``_held``, so that they may join with any row."""
    return rows.selectExpr("*", f"timestamp_micros({NEVER}L) AS _held")


# --- the results ---


def new_results(join: Join, inputs: JoinInputs) -> DataFrame | None:
    """Return the results with at least one new part, short-lived results included; None if no row arrived.

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
                continue  # there are no earlier rows, so only the term without them is left
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
    rows = inputs[0].selectExpr("*", "_ts AS _since")
    for number, on in probes(join, 0, range(len(inputs))):
        rows = _probe(rows, without_end(inputs[number]), on, join)
    return _results(rows, join)


def outer_joined(join: OuterJoin, left: Frame, right: Frame) -> Frame:
    """Return the outer join of live rows of the changed keys.

    Matched rows live while both parts live. Unmatched rows live until a partner comes, or until their own end.
    """
    conditions = [f"{quoted(left_column)} = {quoted(right_column)}" for left_column, right_column in join.on]
    if join.where is not None:
        conditions.append(f"({join.where})")
    matched = paired(left, _as_other_side(right), " AND ".join(conditions), join.kind)
    return _met(matched, [name for name in (*left.columns, *right.columns) if name not in CARRIED])


def _term(
    join: Join, start: int, sides: dict[int, DataFrame], order: Sequence[int], delta: ArrivedSide
) -> DataFrame:
    """Join the rows that arrived at one input with the other inputs in order; few rows are broadcast."""
    large = delta.statistics.arrived > BROADCAST_ROWS
    first = next((number for number in order if number != start and connecting(join, {start}, number)), None)
    if first is not None and not large:
        sides = {**sides, first: _narrowed(sides[first], delta, connecting(join, {start}, first), null_safe=join.null_safe)}
    rows = delta.rows
    for number, on in probes(join, start, order):
        rows = _probe(rows if large else F.broadcast(rows), sides[number], on, join)
    return _results(rows, join)


def _results(rows: Frame, join: Join) -> Frame:
    """Return the rows for which the join's further condition holds, without the columns that only compare pairs."""
    rows = rows.selectExpr(*[quoted(name) for name in rows.columns if name != "_since"])
    return rows if join.where is None else rows.where(join.where)


def _narrowed(side: DataFrame, delta: ArrivedSide, on: Sequence[tuple[str, str]], *, null_safe: bool) -> DataFrame:
    """Restrict the read of a window to the keys of a small delta, so that bounds and Bloom filters prune row groups.

    With more keys every row group has some of them, and the filter would only cost time.
    """
    delta_column, side_column = on[0]
    kind = dict(delta.rows.dtypes)[delta_column]
    if kind not in _PUSHED_TYPES or dict(side.dtypes)[side_column] != kind:
        return side
    keys = delta.keys(delta_column)
    if keys is None or (null_safe and None in keys):
        return side
    return side.where(F.col(quoted(side_column)).isin([key for key in keys if key is not None]))


def _equal(on: Sequence[tuple[str, str]], join: Join) -> list[str]:
    sign = "<=>" if join.null_safe else "="
    return [f"{quoted(left)} {sign} {quoted(right)}" for left, right in on]


def _probe(left: Frame, right: Frame, on: Sequence[tuple[str, str]], join: Join) -> Frame:
    """Join two inputs on equal columns, where their lifetimes overlap; a result begins last and ends first."""
    conditions = [*_equal(on, join), "greatest(_ts, _ts_right) < least(_exp, _exp_right)", "_held > _since"]
    matched = paired(left, _as_other_side(right), " AND ".join(conditions), "inner")
    return _met(matched, [name for name in (*left.columns, *right.columns) if name not in (*CARRIED, "_held")])


def _as_other_side(rows: Frame) -> Frame:
    """Return the rows as the other side of a join: with other names for the carried columns."""
    return rows.selectExpr(*[quoted(name) + (f" AS {name}_right" if name in CARRIED else "") for name in rows.columns])


def _met(matched: Frame, columns: Sequence[str]) -> Frame:
    """Return pairs with these columns; a result begins last and ends first (`greatest` and `least` ignore nulls)."""
    begins, ends = "greatest(_ts, _ts_right) AS _ts", "least(_exp, _exp_right) AS _exp"
    return matched.selectExpr(*map(quoted, columns), begins, ends, "least(_out, _out_right) AS _out")


# --- few rows, in the driver ---


def local_results(join: Join, inputs: JoinInputs, operator: Operator) -> pa.Table | None:
    """Return the results with at least one new part, short-lived results included; None: Spark must find them.

    The join's further condition is not evaluated. The join is the core of ``operator``. The results have the inputs' columns that
    ``operator`` may use, in their order, then ``_ts``, ``_exp``, ``_out``.
    """
    try:
        return _local_terms(join, inputs, named_above(operator, join))
    except FAILURES as error:
        leave_to_spark(error)
        return None


def _local_terms(join: Join, inputs: JoinInputs, wanted: AbstractSet[str] | None) -> pa.Table | None:
    arrived = [side.picked for side in inputs.arrived if side.picked is not None]
    if len(arrived) < len(inputs.arrived):
        return None
    needed = None
    if wanted is not None:
        compared = [name.lower() for equality in join.equal for name in (equality.left_column, equality.right_column)]
        needed = {*wanted, *compared, *CARRIED}
        arrived = [rows.select([name for name in rows.column_names if name.lower() in needed]) for rows in arrived]
    columns = [name for rows in arrived for name in rows.column_names if name not in CARRIED]
    terms = [
        _local_term(join, start, inputs, arrived, inputs.order[:position], needed).select([*columns, *CARRIED])
        for position, start in enumerate(inputs.order)
        if arrived[start].num_rows and (inputs.before is not None or position == len(inputs.order) - 1)
    ]
    return pa.concat_tables(terms) if terms else None


def _local_term(
    join: Join, start: int, inputs: JoinInputs, arrived: Sequence[pa.Table], new: Sequence[int], needed: AbstractSet[str] | None
) -> pa.Table:
    """Return the join of the rows that arrived at input ``start`` with the earlier rows of the other inputs.

    Inputs in ``new`` also take part with their arrived rows. On a first build all other inputs are in ``new``, and there are no
    earlier rows.
    """
    rows = arrived[start]
    for number, on in probes(join, start, inputs.order):
        if any(rows.schema.field(left).type != arrived[number].schema.field(right).type for left, right in on):
            raise LeftToSparkError("columns of different types are compared")
        if not all(compared_alike(rows.schema.field(left).type) for left, _ in on):
            raise LeftToSparkError("the engines may compare the columns of the join in different ways")
        if inputs.before is None:
            rows = _taken(rows, arrived[number], on, join)
            continue
        keys = distinct_keys([rows[left] for left, _ in on], nulls=join.null_safe)
        side = inputs.before[number].looked_up([right for _, right in on], keys, needed)
        if side is None:
            raise LeftToSparkError("Spark is to read the rows from before")
        side = side.select(arrived[number].column_names)
        rows = _taken(rows, pa.concat_tables([side, arrived[number]]) if number in new else side, on, join)
    return rows


def _taken(left: pa.Table, right: pa.Table, on: Sequence[tuple[str, str]], join: Join) -> pa.Table:
    """Join two tables like :func:`_probe`: find the pairs by the compared columns, and take other columns for these alone."""
    left_keys, right_keys = (
        [rows[name] for name in names] for rows, names in zip((left, right), zip(*on, strict=True), strict=True)
    )
    equal = equal_rows(left_keys, right_keys, nulls=join.null_safe)
    if equal.pairs > _CANDIDATES:
        raise LeftToSparkError("too many rows have the same keys")
    if any(rows[name].null_count for rows in (left, right) for name in CARRIED):
        raise LeftToSparkError("rows have no times")
    lives = ([rows[name].cast(pa.int64()).to_numpy() for name in CARRIED] for rows in (left, right))
    pairs = overlapping(equal, *lives, most=MATCHES)
    if pairs is None:
        raise LeftToSparkError("too many rows meet")
    left_rows, right_rows, *instants = (pa.array(values, pa.int64()) for values in pairs)
    times = [values.cast(left[CARRIED[0]].type) for values in instants]
    if bytes_taken(left, left_rows) + bytes_taken(right, right_rows) > WIDE:
        raise LeftToSparkError("too many rows meet")
    left, right = (table.drop_columns(CARRIED) for table in (left, right))
    columns = [*left.take(left_rows).columns, *right.take(right_rows).columns, *times]
    return pa.Table.from_arrays(columns, [*left.column_names, *right.column_names, *CARRIED])
