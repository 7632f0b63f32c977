"""Makes the changed rows of a coalesced table in the driver, for few points and few rows.

The query is the same (:mod:`warehouse.coalescing.islands`); DuckDB runs it. Spark evaluates conditions (``same``, ``of``).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warehouse.catalog.duck_sql import quoted
from warehouse.coalescing.definition import STAMPS
from warehouse.coalescing.islands import AT, DUCKDB, Edge, coalesced, within
from warehouse.steps.arrived_rows import ARRIVED_FATES, ARRIVED_ROWS
from warehouse.storage.lookup import query_in_driver
from warehouse.storage.tables import rows_schema
from warehouse.views.language.driver_types import LeftToSparkError
from warehouse.views.maintenance.driver_buckets import matched_rows
from warehouse.views.maintenance.keyed import Replacement, replacing
from warehouse.views.maintenance.matched_buckets import entered, touched_buckets

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.layout import Layout
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["DriverReplacement", "GroupReplacement", "no_stored_rows", "points_of", "query_result"]


def no_stored_rows(columns: Sequence[ColumnRecord]) -> pa.Table:
    """Return no rows, with these columns and all of the system's."""
    return to_arrow_schema(StructType.fromJson(rows_schema(columns)), timezone="UTC").empty_table()


@dataclass(frozen=True, eq=False)
class GroupReplacement:
    """The new content of the buckets in which rows of some groups changed.

    Parameters
    ----------
    definition, layout, move
        The definition of the table, its layout, and the times between which it is moved.
    own
        Its rows that were live at the last epoch, with all columns.

    Raises
    ------
    LeftToSparkError
        Raised by each property when DuckDB cannot answer.
    """

    definition: CoalescedDefinition
    layout: Layout
    move: Move
    own: pa.Table

    @property
    def groups(self) -> list[str]:
        """The columns of the group, quoted."""
        return [quoted(name) for name in self.definition.groups]

    def replaced(self, keys: pa.Table, answer: Callable[[pa.Table], pa.Table]) -> Replacement:
        """Return the new content if the groups ``keys`` changed; ``answer`` computes their rows from the stored rows."""
        if not keys.num_rows:
            return Replacement(None, {}, {}, 0)
        definition, stored, move = self.definition, self.own, self.move
        changed, rest = split_by_groups(definition, stored, keys)
        columns, state = ([name for name, _ in typed_columns] for typed_columns in (definition.columns, definition.state))
        names = [*columns, *state, "_ts", "_exp"]
        now = answer(changed).select(names).cast(pa.schema([stored.schema.field(name) for name in names]))
        matched = matched_rows(changed, now, columns, state, definition.search_key, self.layout)
        touched = touched_buckets(matched, stateful=True)
        if not touched:
            return Replacement(None, {}, {}, 0)
        written, unchanged = (_of(rows, list(touched)) for rows in (matched, rest))
        fresh = entered(written, columns, state, move, dated=False)
        live = unchanged.filter(pc.greater(unchanged["_exp"].cast(pa.int64()), move.now))
        return replacing(pa.concat_tables([fresh, live.select(fresh.column_names).cast(fresh.schema)]), touched)


@dataclass(frozen=True, eq=False)
class DriverReplacement(GroupReplacement):
    """The new content, and the number of ignored points.

    ``arrived`` are the classified rows of the stream's batch, or their points; None: no point arrived.
    """

    arrived: pa.Table | None

    @cached_property
    def _points(self) -> pa.Table:
        """The points that arrived: the columns of the group, the compared columns, and their stamps."""
        return points_of(self.definition, self.own, self.arrived)

    @cached_property
    def _stamps(self) -> pa.Table:
        """The distinct stamps of each group, of rows and of points."""
        point_columns = ", ".join([*self.groups, AT])
        own_columns = ", ".join([*self.groups, f"unnest({STAMPS}) AS {AT}"])
        query = f"SELECT {own_columns} FROM own UNION SELECT {point_columns} FROM points"
        return query_result(query, own=self.own, points=self._points)

    @cached_property
    def _edge(self) -> Edge:
        definition = self.definition
        if definition.window is not None:
            return Edge(self.move.now - definition.window)
        surplus = self._stamps.num_rows - (definition.rows or 0)
        if surplus <= 0:
            return Edge()
        order = ", ".join([AT, *(f"{name} NULLS FIRST" for name in self.groups)])
        columns = ", ".join([AT, *self.groups])
        edge = query_result(f"SELECT {columns} FROM stamps ORDER BY {order} LIMIT 1 OFFSET {surplus}", stamps=self._stamps)
        stamp, *group = (column[0].as_py() for column in edge.columns)
        return Edge(stamp, tuple(map(_literal, group)))

    @cached_property
    def losses(self) -> dict[str, int]:
        """The number of points, of points that had left the window before they were loaded, and of repeated points."""
        points, groups = self._points, self.groups
        inside = f"SELECT * FROM points WHERE {within(self._edge, AT, groups)}"
        in_window = query_result(inside, points=points)
        point_columns = ", ".join([*groups, AT])
        own_columns = ", ".join([*groups, f"unnest({STAMPS}) AS {AT}"])
        new = query_result(
            f"SELECT {point_columns} FROM taken EXCEPT SELECT {own_columns} FROM own", taken=in_window, own=self.own
        )
        late = points.num_rows - in_window.num_rows
        return {"points": points.num_rows, "late": late, "repeated": in_window.num_rows - new.num_rows}

    @cached_property
    def replacement(self) -> Replacement:
        """The new content of the buckets in which rows changed."""
        move, edge = self.move, self._edge
        # Null for a null group at the edge, which has left.
        inside = f"coalesce({within(edge, f'{STAMPS}[1]', self.groups)}, false)"
        cut = f"NOT {inside} AND epoch_us(_exp) > {move.now}"
        shown = ", ".join(self.groups) or "1 AS one"
        keys = query_result(
            f"SELECT DISTINCT {shown} FROM (SELECT {shown} FROM points UNION ALL SELECT {shown} FROM own WHERE {cut})",
            points=self._points, own=self.own,
        )  # fmt: skip
        return self.replaced(keys, self.coalesced)

    def coalesced(self, held: pa.Table) -> pa.Table:
        """Return the rows made from stored rows and the points, with all columns except the columns of the grid."""
        query = coalesced(self.definition, DUCKDB, self._edge, stored="held", arrived="points").whole()
        return query_result(query, held=held, points=self._points)


def points_of(definition: CoalescedDefinition, own: pa.Table, arrived: pa.Table | None) -> pa.Table:
    """Return the points of classified rows: the group's and the compared columns, with the types of ``own``, and stamps."""
    names = [*definition.groups, *definition.compared]
    if arrived is None:
        return own.select([*names]).slice(0, 0).append_column(AT, pa.array([], pa.int64()))
    if AT in arrived.column_names:
        return arrived
    columns = ", ".join([*map(quoted, names), f"epoch_us(_ts) AS {AT}"])
    points = query_result(f"SELECT {columns} FROM arrived WHERE {ARRIVED_ROWS}", arrived=arrived)
    return points.cast(pa.schema([*(own.schema.field(name) for name in names), pa.field(AT, pa.int64())]))


def points_of_collected(definition: CoalescedDefinition, own: pa.Table, kept: pa.Table) -> pa.Table:
    """Return the points of a batch from the columns that the driver kept of it."""
    names = [*definition.groups, *definition.compared]
    arrived = kept.filter(pc.is_in(kept["_fate"], pa.array(ARRIVED_FATES)))
    points = arrived.select(names).cast(pa.schema([own.schema.field(name) for name in names]))
    return points.append_column(AT, arrived["_ts"].cast(pa.int64()))


def query_result(query: str, **tables: pa.Table) -> pa.Table:
    """Return the result of a query.

    Raises
    ------
    LeftToSparkError
        When DuckDB cannot answer.
    """
    result = query_in_driver(query, tables)
    if result is None:
        raise LeftToSparkError("DuckDB did not coalesce the points")
    return result


def split_by_groups(definition: CoalescedDefinition, own: pa.Table, keys: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return the rows of the groups ``keys``, and the other rows; without ``group_by`` all rows are one group."""
    equal = " AND ".join(f"o.{name} IS NOT DISTINCT FROM k.{name}" for name in map(quoted, definition.groups)) or "true"
    of_keys, rest = (
        query_result(f"SELECT o.* FROM o {join} JOIN k ON {equal}", o=own, k=keys).cast(own.schema) for join in ("SEMI", "ANTI")
    )
    return of_keys, rest


def _of(rows: pa.Table, buckets: Sequence[int]) -> pa.Table:
    return rows.filter(pc.is_in(rows["sub_index"], pa.array(buckets, rows.schema.field("sub_index").type)))


def _literal(value: Any) -> str:  # noqa: ANN401 - a value of a key column
    match value:
        case None:
            return "NULL"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"TIMESTAMPTZ '{value.isoformat()}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return str(value)
