"""The inputs of a join at one step: for each input the rows that arrived, with their figures, and the rows from before.

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
from warehouse.storage.arrow_types import can_be_collected, frame_of
from warehouse.storage.lookup import FAILURES, leave_to_spark
from warehouse.time import NEVER
from warehouse.views.algebra import scanned
from warehouse.views.costs.chosen_order import InputStatistics, chosen_order, equality_classes
from warehouse.views.maintenance.cache import FEW, collected
from warehouse.views.maintenance.counted_keys import counted_keys
from warehouse.views.maintenance.feeds import (
    evaluated,
    lasting,
    most_arrived,
    narrowed,
    over_row_windows,
    picks_only,
    relation,
)
from warehouse.views.maintenance.inputs import NodeTable
from warehouse.views.maintenance.keys import lookup_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.views.algebra import Join, Operator
    from warehouse.views.maintenance.driver_rows import Frame
    from warehouse.views.maintenance.inputs import NodeInputs

__all__ = ["PUSHED_KEYS", "ArrivedSide", "Earlier", "JoinInputs", "connecting", "join_inputs", "without_end"]

PUSHED_KEYS = 200
"""Keys of a delta up to which the files of a window are read by key."""
_SURELY_MORE = 2
"""Approximate numbers of keys are off by some per cent; beyond this multiple of the limit an exact count is not needed."""


@dataclass(frozen=True)
class JoinInputs:
    """The inputs of a join: rows that arrived, figures of them, and rows from before (None on a first build)."""

    arrived: tuple[ArrivedSide, ...]
    before: tuple[Earlier, ...] | None
    order: tuple[int, ...]


@dataclass(frozen=True)
class ArrivedSide:
    """Rows that arrived, which each term reads again, and figures of them.

    ``frame`` has cached or collected rows, ``known`` the collected ones; ``picked`` has the same rows if they were read without
    Spark: then a frame is made only when it is needed.
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
        """Return the rows as the other side of a join, late ones included, also if they have ended."""
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
    arrived = tuple(_arrived(each, own, inputs) for each, own in zip(join.inputs, classes, strict=True))
    came = [(each.statistics.arrived, each.known) for each in arrived]
    counts = None if inputs.move.first else counted_keys(join.inputs, classes, inputs.tables, came)
    order = chosen_order(join, [each.statistics for each in arrived], counts)
    if inputs.move.first:
        return JoinInputs(arrived, None, order)
    earlier = (Earlier(each, join.where is None, inputs.tables, inputs.move.before) for each in join.inputs)
    return JoinInputs(arrived, tuple(earlier), order)


def connecting(join: Join, there: set[int], number: int) -> list[tuple[str, str]]:
    """Return (column there, column of the next input) of the equalities that connect an input with those joined."""
    pairs = []
    for each in join.equal:
        if each.right == number and each.left in there:
            pairs.append((each.left_column, each.right_column))
        elif each.left == number and each.right in there:
            pairs.append((each.right_column, each.left_column))
    return pairs


@dataclass(frozen=True)
class Earlier:
    """An input's rows from before the instant ``before``; ``bare``: the join has no condition but its equalities."""

    operator: Operator
    bare: bool
    tables: Mapping[str, NodeTable]
    before: int

    def rows(self) -> DataFrame:
        """Return them, with ``_held``: the instant until which each was."""
        if self.bare and picks_only(self.operator):
            rows = relation(self.operator, self.tables, NodeTable.stored)
        else:  # a user's expression need not be defined for rows that have expired
            part = NodeTable.stayed if over_row_windows(self.operator) else NodeTable.before
            rows = relation(self.operator, self.tables, part).where(f"unix_micros(_exp) > {self.before}L")
        return rows.selectExpr("*", "_exp AS _held")

    def looked_up(self, columns: Sequence[str], keys: pa.Table, wanted: AbstractSet[str] | None) -> pa.Table | None:
        """Return at least the rows with one of the keys (values of these columns, in order); None: Spark must read them.

        ``wanted`` are names of columns, in lower case; other columns may be missing.
        """
        asked = lookup_keys(self.operator, columns, keys)
        if over_row_windows(self.operator) or not asked.keys() >= set(scanned(self.operator)):
            return None
        names: dict[str, set[str]] = {}
        operator = self.operator if wanted is None else narrowed(self.operator, map(str.lower, (*wanted, *columns)), names)
        any_row = picks_only(operator)

        def found(table: NodeTable) -> pa.Table | None:
            rows = table.found(asked[table.name], None if wanted is None else names[table.name])
            return rows if rows is None or any_row else lasting(rows, "_exp", self.before)

        rows = evaluated(operator, self.tables, found)
        return None if rows is None else lasting(rows, "_exp", self.before)


def _arrived(operator: Operator, columns: Iterable[str], inputs: NodeInputs) -> ArrivedSide:
    tables, opened, since = inputs.tables, inputs.opened, inputs.move.before
    window = sum(tables[table].size for table in scanned(operator))
    known = _evaluated(operator, tables)
    if known is not None and known.num_rows <= FEW:  # files that were sealed have others too: they say nothing of how few
        statistics = InputStatistics(known.num_rows, {name: _distinct(known[name]) for name in columns}, window)
        return ArrivedSide(opened, since, statistics, known=known, picked=known)
    rows = relation(operator, tables, NodeTable.arrived).where("_exp > _ts").selectExpr("*", _since(since))
    most = most_arrived(operator, tables)
    if most is None or most > FEW or not can_be_collected(rows.schema):
        rows = inputs.cache.add(rows)
        return ArrivedSide(opened, since, _statistics(rows, columns, window), rows)
    rows, known = collected(rows)
    distinct = {name: _distinct(known[name]) for name in columns}
    return ArrivedSide(opened, since, InputStatistics(known.num_rows, distinct, window), rows, known)


def _since(instant: int) -> str:
    return f"timestamp_micros({instant}L) AS _since"


def _evaluated(operator: Operator, tables: Mapping[str, NodeTable]) -> pa.Table | None:
    """What arrived, where it is read without Spark."""
    try:
        rows = evaluated(operator, tables, NodeTable.came)
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
    """Return rows that any row may meet."""
    return rows.selectExpr("*", f"timestamp_micros({NEVER}L) AS _held")
