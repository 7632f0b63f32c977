"""What the operators of a node read: stateless pipelines over stored tables, as Spark data frames.

A feed's rows have the pipeline's columns and three carried ones: ``_ts`` (gen), ``_exp`` (when the row leaves the
state) and ``_out`` (when what is derived from it leaves the answer; later than ``_exp`` only under internal windows).
Changes carry ``_weight`` too: +1 for a row that came, -1 for one that went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from warehouse.catalog.identifiers import quoted
from warehouse.time import NEVER
from warehouse.views.algebra import AsOf, Filter, InternalRows, Operator, Project, Scan, TimeWindow, UnionAll, inputs_of, scanned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark.sql import DataFrame

__all__ = [
    "CARRIED",
    "Move",
    "Tables",
    "carried_by",
    "changes",
    "feed",
    "most_arrived",
    "over",
    "over_row_windows",
    "user_columns",
    "window_lengths",
]

CARRIED = ("_ts", "_exp", "_out")
_WEIGHT = "_weight"
_PARTITIONS = ("sub_index", "exp_block")


@dataclass(frozen=True)
class Move:
    """Where a node's step moves it: from slot ``k0``, which ended at ``before``, to ``k``, which ends at ``now``.

    ``before`` and ``now`` are microseconds; ``first`` builds the node over the rows that are live at ``now``.
    """

    k0: int
    k: int
    before: int
    now: int
    anchor: int
    interval: int
    first: bool


class Tables(Protocol):
    """The stored tables that a node reads; every frame has the user columns, ``_ts`` and ``_exp``.

    Where ``keys`` are given, rows that have other values in these columns may be missing.
    """

    def arrived(self, table: str) -> DataFrame:
        """Return the rows that this plan loaded, dead ones included; on a first build the live rows."""

    def before(self, table: str, keys: pa.Table | None = None) -> DataFrame:
        """Return the rows that were live at the last epoch; none on a first build."""

    def now(self, table: str, keys: pa.Table | None = None) -> DataFrame:
        """Return the rows that are live at the plan's window time."""

    def stayed(self, table: str) -> DataFrame:
        """Return the rows that were live at the last epoch and are in the table still; none on a first build."""

    def unseen(self, table: str) -> DataFrame | None:
        """Return rows that began and ended since the last epoch, of a table whose rows may leave early too; none if not known."""

    def stored(self, table: str) -> DataFrame:
        """Return the rows that were live at the last epoch, and others that had ended by then; none on a first build."""

    def came(self, table: str) -> pa.Table | None:
        """Return the rows that this plan loaded, dead ones included, read by this process; none when Spark is to read them."""

    def found(self, table: str, keys: pa.Table, columns: AbstractSet[str] | None = None) -> pa.Table | None:
        """Return the rows of some keys that were live at the last epoch, and others that had ended; none when Spark is to.

        ``columns`` are the names, in lower case, of those that are wanted; none: all.
        """

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return rows as a local relation."""

    def interpreted(self) -> AbstractContextManager[None]:
        """Do without generated code meanwhile."""

    def ended(self, table: str) -> DataFrame:
        """Return the rows that were live at the last epoch and have reached their own end; none on a first build."""

    def rows(self, table: str) -> int:
        """Return about how many rows a table has."""

    def most_arrived(self, table: str) -> int | None:
        """Return a number of rows than which no more arrived; none if there is no telling, or if rows are wide."""

    def keyed(self, table: str) -> bool:
        """Whether rows of a table may leave it before their own end (label STR)."""

    def versions(self, relation: str) -> DataFrame:
        """Return all versions of a relation that are kept, closed ones included."""


def user_columns(rows: DataFrame) -> list[str]:
    """Return the names of the columns that are not the system's."""
    return [name for name in rows.columns if not name.startswith("_") and name not in _PARTITIONS]


def carried_by(rows: DataFrame) -> list[str]:
    """Return the carried columns that a frame has."""
    return [name for name in (*CARRIED, _WEIGHT) if name in rows.columns]


def feed(operator: Operator, scan: Callable[[str], DataFrame], versions: Callable[[str], DataFrame]) -> DataFrame:
    """Return a stateless pipeline's rows; ``scan`` gives a table's rows, ``versions`` a relation's."""
    match operator:
        case Scan():
            rows = scan(operator.table)
            return rows.selectExpr(*map(quoted, user_columns(rows)), *carried_by(rows), "_exp AS _out")
        case UnionAll():
            first, *others = (feed(each, scan, versions) for each in operator.inputs)
            for other in others:
                first = first.unionByName(other)
            return first
        case TimeWindow():
            return _ended(feed(operator.input, scan, versions), operator)
        case InternalRows():
            rows = feed(operator.input, scan, versions)
            kept = [quoted(name) for name in rows.columns if name != "_out"]
            return rows.selectExpr(*kept, f"timestamp_micros({NEVER}L) AS _out")
        case AsOf():
            return _looked_up(feed(operator.input, scan, versions), operator, versions(operator.relation))
        case Filter() | Project():
            return over(operator, operator.input, feed(operator.input, scan, versions))
        case _:
            raise TypeError(f"{type(operator).__name__} keeps state and is no part of a feed")


def most_arrived(operator: Operator, tables: Tables) -> int | None:
    """Return a number of rows than which no more arrived in a pipeline; none if there is no telling, or if rows are wide."""
    total = 0
    for table in scanned(operator):
        most = tables.most_arrived(table)
        if most is None:
            return None
        total += most
    return total


def changes(operator: Operator, tables: Tables, move: Move) -> DataFrame:
    """Return a pipeline's rows that came and are live now, and those that were live at the last epoch and are not.

    A row's life is the pipeline's, which a time window may end before the table does. Of tables whose rows may leave
    before their own end both contents are compared, row by row.
    """
    lives, lived = f"unix_micros(_exp) > {move.now}L", f"unix_micros(_exp) > {move.before}L"
    if any(tables.keyed(table) for table in scanned(operator)):
        before = feed(operator, tables.before, tables.versions).where(lived)
        return _netted(feed(operator, tables.now, tables.versions).where(lives), before)
    came = feed(operator, tables.arrived, tables.versions).where(lives)
    earlier = tables.before if any(window_lengths(operator)) else tables.ended
    went = feed(operator, earlier, tables.versions).where(f"{lived} AND NOT {lives}")
    return came.selectExpr("*", f"1 AS {_WEIGHT}").unionByName(went.selectExpr("*", f"-1 AS {_WEIGHT}"))


def _netted(now: DataFrame, before: DataFrame) -> DataFrame:
    """The difference of two bags of rows that live alike; ``_ts`` is that of one of them."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everywhere; compiling needs no Spark

    from warehouse.views.maintenance.exact import grouped_exactly  # noqa: PLC0415 - same

    names = [*user_columns(now), "_exp", "_out"]
    own = list(map(quoted, names))
    every = now.selectExpr(*own, "_ts", "1 AS _one").unionByName(before.selectExpr(*own, "_ts", "-1 AS _one"))
    summed = grouped_exactly(every, names, [F.expr("max(_ts) AS _ts"), F.expr("CAST(sum(_one) AS int) AS _sum")])
    each = f"explode(array_repeat(CAST(signum(_sum) AS int), abs(_sum))) AS {_WEIGHT}"
    return summed.selectExpr(*own, "_ts", each)


def over_row_windows(operator: Operator) -> bool:
    """Whether a pipeline reads internal row windows, whose rows leave early and end nothing."""
    return isinstance(operator, InternalRows) or any(over_row_windows(each) for each in inputs_of(operator))


def window_lengths(operator: Operator) -> Iterator[tuple[str, int]]:
    """Yield each table that is read through a time window, with the window's length in microseconds."""
    for below in inputs_of(operator):
        if isinstance(operator, TimeWindow):
            yield from ((table, operator.length) for table in scanned(below))
        yield from window_lengths(below)


def over(operator: Operator, below: Operator, rows: DataFrame) -> DataFrame:
    """Apply the filters and projections of ``operator`` down to ``below``, whose rows are given."""
    if operator is below:
        return rows
    match operator:
        case Filter():
            return over(operator.input, below, rows).where(operator.condition)
        case Project():
            inner = over(operator.input, below, rows)
            named = [f"{column.sql} AS {quoted(column.name)}" for column in operator.columns]
            return inner.selectExpr(*named, *carried_by(inner))
        case _:
            raise TypeError(f"{type(operator).__name__} is neither a filter nor a projection")


def _ended(rows: DataFrame, window: TimeWindow) -> DataFrame:
    """End rows at ``ts + length``; an internal window ends them in the state only."""
    others = [quoted(name) for name in rows.columns if name not in ("_exp", "_out")]
    end = f"unix_micros(_ts) + {window.length}L"
    out = f"timestamp_micros({NEVER}L)" if window.internal else f"timestamp_micros(least(unix_micros(_out), {end}))"
    return rows.selectExpr(*others, f"timestamp_micros(least(unix_micros(_exp), {end})) AS _exp", f"{out} AS _out")


def _looked_up(rows: DataFrame, lookup: AsOf, versions: DataFrame) -> DataFrame:
    """Join with the version that each row sees: ``valid_from < ts <= valid_to`` (update-patterns sheet, 4.3)."""
    keys = [f"{quoted(column)} AS _key_{number}" for number, (_, column) in enumerate(lookup.on)]
    added = [f"{column.sql} AS {quoted(column.name)}" for column in lookup.columns]
    held = versions.selectExpr(*keys, *added, "_ts AS _valid_from", "_exp AS _valid_to")
    names = list(rows.columns)
    conditions = [f"{quoted(column)} = _key_{number}" for number, (column, _) in enumerate(lookup.on)]
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as everywhere; compiling needs no Spark

    seen = F.expr(" AND ".join([*conditions, "_valid_from < _ts", "_ts <= _valid_to"]))
    joined = rows.join(held, seen, "left" if lookup.outer else "inner")
    return joined.selectExpr(*map(quoted, names), *(quoted(column.name) for column in lookup.columns))
