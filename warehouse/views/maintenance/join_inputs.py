"""What a join reads at one step: of each input the rows that arrived, with figures of them, and the rows from before.

Few rows that arrived are gathered: then their number, the values of their join columns and the tables by which they are
probed are had without a job of Spark's, and what is left of a step is reading the windows once. Spark generates code for that
reading, and Java compiles it anew whenever a constant in it is another (*measured*, windows of 4 million rows: 1.73 s with
another constant each time, 0.99 s with the same). So no instant of a step is in it: rows from before
carry until when they lived (``_held``), those that arrived the instant of the last epoch (``_since``), and whether
``_held > _since`` is asked of pairs that meet.
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
from warehouse.views.maintenance.kept import FEW, can_be_gathered, gathered, kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from warehouse.views.algebra import Join, Operator
    from warehouse.views.maintenance.feeds import Move, Tables

__all__ = ["PUSHED_KEYS", "Arrived", "JoinInputs", "join_inputs", "picks_only", "without_end"]

PUSHED_KEYS = 200
"""Keys of a delta up to which the files of a window are read by key."""
_SURELY_MORE = 2
"""Approximate numbers of keys are off by some per cent; with so many times the limit there is no need to look."""
_COLUMN = re.compile(r"`?\w+`?")
"""An expression that is a column's name."""


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
    if most is None or most > FEW or not can_be_gathered(rows):
        rows, release = kept(rows)
        return Arrived(rows, _statistics(rows, columns, window), None, release)
    rows, known = gathered(rows)
    distinct = {name: _distinct(known.column(name)) for name in columns}
    return Arrived(rows, InputStatistics(known.num_rows, distinct, window), known)


def _distinct(column: pa.ChunkedArray) -> int:
    import pyarrow as pa  # noqa: PLC0415 - only in a step
    import pyarrow.compute as pc  # noqa: PLC0415 - same

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
