"""What a join reads at one step: of each input the rows that arrived, with figures of them, and the rows from before.

Few rows that arrived are gathered: then their number, the values of their join columns and the tables by which they are
probed are had without a job of Spark's, and what is left of a step is reading the windows once. Spark generates code for that
reading, and Java compiles it anew whenever a constant in it is another (*measured*, windows of 4 million rows: 1.73 s with
another constant each time, 0.99 s with the same). So no instant of a step is in it: rows from before
carry until when they lived (``_held``), those that arrived the instant of the last epoch (``_since``), and whether
``_held > _since`` is asked of pairs that meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.storage.arrow_types import can_be_gathered
from warehouse.storage.lookup import FAILURES, leave_to_spark
from warehouse.time import NEVER
from warehouse.views.algebra import scanned
from warehouse.views.costs.chosen_order import InputStatistics, chosen_order, equality_classes
from warehouse.views.maintenance.feeds import feed, most_arrived, over_row_windows
from warehouse.views.maintenance.kept import FEW, gathered, kept
from warehouse.views.maintenance.narrowing import sought
from warehouse.views.maintenance.picking import lasting, picked, picks_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark.sql import DataFrame

    from warehouse.views.algebra import Join, Operator
    from warehouse.views.maintenance.feeds import Move, Tables

__all__ = ["PUSHED_KEYS", "Arrived", "Earlier", "JoinInputs", "connecting", "join_inputs", "without_end"]

PUSHED_KEYS = 200
"""Keys of a delta up to which the files of a window are read by key."""
_SURELY_MORE = 2
"""Approximate numbers of keys are off by some per cent; with so many times the limit there is no need to look."""


@dataclass(frozen=True)
class JoinInputs:
    """The inputs of a join: rows that arrived, figures of them, and rows from before (none on a first build)."""

    arrived: tuple[Arrived, ...]
    before: tuple[Earlier, ...] | None
    order: tuple[int, ...]

    def release(self) -> None:
        """Let the kept rows go."""
        for each in self.arrived:
            if each.held is not None:
                each.held()


@dataclass(frozen=True)
class Arrived:
    """Rows that arrived, kept, since each term reads them again, and figures of them; ``known`` where they are gathered.

    ``picked`` are the same, where they were had without Spark.
    """

    made: Callable[[], DataFrame]
    statistics: InputStatistics
    known: pa.Table | None = None
    held: Callable[[], object] | None = None
    picked: pa.Table | None = None

    @cached_property
    def rows(self) -> DataFrame:
        """The rows, with ``_since``: the instant of the last epoch."""
        return self.made()

    def as_side(self) -> DataFrame:
        """Return the rows as those that others meet, late ones included, whenever they ended."""
        return without_end(self.rows.drop("_since"))

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
    return JoinInputs(arrived, tuple(Earlier(each, join.where is None, tables, move) for each in join.inputs), order)


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
    """An input's rows from before; ``bare`` tells that the join has no condition beside its equalities."""

    operator: Operator
    bare: bool
    tables: Tables
    move: Move

    def rows(self) -> DataFrame:
        """Return them, with ``_held``: the instant until which each was."""
        if self.bare and picks_only(self.operator):
            rows = feed(self.operator, self.tables.stored, self.tables.versions)
        else:  # an expression of the user's need not be defined for rows that have gone
            scan = self.tables.stayed if over_row_windows(self.operator) else self.tables.before
            rows = feed(self.operator, scan, self.tables.versions).where(f"unix_micros(_exp) > {self.move.before}L")
        return rows.selectExpr("*", "_exp AS _held")

    def looked_up(self, columns: Sequence[str], keys: pa.Table, wanted: AbstractSet[str] | None) -> pa.Table | None:
        """Return those with one of the keys (values of these columns, in this order) at least; none when Spark is to.

        ``wanted`` are names of columns, in lower case; others, if any, may be missing.
        """
        rows = picked(self.operator, sought(self.operator, self.tables.found, columns, keys, wanted))
        return None if rows is None else lasting(rows, "_exp", self.move.before)


def _arrived(operator: Operator, columns: Iterable[str], tables: Tables, move: Move) -> Arrived:
    since = f"timestamp_micros({move.before}L) AS _since"
    window = sum(tables.rows(table) for table in scanned(operator))
    at_hand = _picked(operator, tables) if picks_only(operator) else None
    if at_hand is not None and at_hand.num_rows <= FEW:  # files that were sealed have others too: they say nothing of how few
        statistics = InputStatistics(at_hand.num_rows, {name: _distinct(at_hand[name]) for name in columns}, window)
        return Arrived(lambda: tables.frame(at_hand).selectExpr("*", since), statistics, at_hand, picked=at_hand)
    rows = feed(operator, tables.arrived, tables.versions).where("_exp > _ts").selectExpr("*", since)
    most = most_arrived(operator, tables)
    if most is None or most > FEW or not can_be_gathered(rows.schema):
        rows, release = kept(rows)
        return Arrived(lambda: rows, _statistics(rows, columns, window), None, release)
    rows, known = gathered(rows)
    distinct = {name: _distinct(known[name]) for name in columns}
    return Arrived(lambda: rows, InputStatistics(known.num_rows, distinct, window), known)


def _picked(operator: Operator, tables: Tables) -> pa.Table | None:
    """What arrived, where it is had without Spark."""
    try:
        rows = picked(operator, tables.came)
        return None if rows is None else rows.filter(pc.greater(rows["_exp"], rows["_ts"]))
    except FAILURES as error:
        leave_to_spark(error)
        return None


def _distinct(column: pa.ChunkedArray) -> int:
    # Arrow does not tell structures apart; most differ.
    count: int = column.length() - column.null_count if pa.types.is_nested(column.type) else pc.count_distinct(column).as_py()
    return count


def _statistics(rows: DataFrame, columns: Iterable[str], window: int) -> InputStatistics:
    names = list(columns)
    row = rows.agg(F.expr("count(*)"), *[F.approx_count_distinct(quoted(name)) for name in names]).collect()[0]
    return InputStatistics(row[0], dict(zip(names, row[1:], strict=True)), window)


def without_end(rows: DataFrame) -> DataFrame:
    """Return rows that any row may meet."""
    return rows.selectExpr("*", f"timestamp_micros({NEVER}L) AS _held")
