"""Makes the changed rows of a coalesced table, of any number of points: Spark runs the query and evaluates conditions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.coalescing.cells import block_sql
from warehouse.coalescing.definition import STAMPS
from warehouse.coalescing.islands import AT, SPARK, Edge, coalesced, within
from warehouse.ingest.try_eval import try_eval
from warehouse.views.maintenance.keyed import MovedCells, Replacement, changed_keys, no_stored_rows_like, replacement
from warehouse.views.maintenance.keys import semi_joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.coalescing.cells import Cells
    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.layout import Layout
    from warehouse.views.maintenance.cache import Cache
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["SparkReplacement"]


@dataclass(frozen=True, eq=False)
class SparkReplacement:
    """The new content of the buckets in which rows changed, and the number of ignored points.

    Parameters
    ----------
    definition, layout, move
        What the table holds, how it is laid out, and from when to when it is moved.
    columns
        Its stored columns before the system's.
    own
        The rows of the last epoch, each with all members, shed members included; None if there are no rows.
    points
        The points that arrived: the columns of the group, the compared columns, and their stamps; None if none arrived.
    opened
        Opens the session.
    cache
        Holds intermediate rows until the step is done.
    has_other_window
        Whether the window changed.
    cells
        The cells of closed rows; None if closed rows have no cells of their own.

    """

    definition: CoalescedDefinition
    layout: Layout
    move: Move
    columns: Sequence[ColumnRecord]
    own: DataFrame | None
    points: DataFrame | None
    opened: Callable[[], SparkSession]
    cache: Cache
    has_other_window: bool = False
    cells: Cells | None = None

    @cached_property
    def replacement(self) -> Replacement:
        """The new content."""
        definition, old = self.definition, self.own
        if self.points is None and old is None:
            return Replacement(None, {}, {}, 0)
        keys = None if old is None or not definition.groups else changed_keys(self._changed(old), self.cache)
        if keys is not None and keys.values is not None and not keys.values.num_rows:
            return Replacement(None, {}, {}, 0)
        rows = self.cache.add(self.rows(None if keys is None else keys.rows))
        changed = replacement(
            no_stored_rows_like(rows) if old is None else old, rows, keys, definition.groups, of_keys=old,
            columns=[name for name, _ in definition.columns], search_key=definition.search_key,
            state=[name for name, _ in definition.state], layout=self.layout, move=self.move, cache=self.cache, timed=True,
        )  # fmt: skip
        return changed if old is None or self.cells is None or not self.cells.apart else self._apart(changed, self.cells)

    @cached_property
    def losses(self) -> dict[str, int]:
        """The number of points, of points that had left the window before they were loaded, and of repeated points."""
        points = self.points
        if points is None:
            return {"points": 0, "late": 0, "repeated": 0}
        inside = within(self._edge, AT, self._groups)
        new = points.where(inside).select(*self._groups, AT).distinct()
        if self.own is not None:
            stored = self.own.selectExpr(*self._groups, f"explode({STAMPS}) AS {AT}")
            new = new.join(stored, [new[name].eqNullSafe(stored[name]) for name in (*self._groups, AT)], "left_anti")
        counted = points.selectExpr("count(*)", f"count_if({inside})").collect()[0]
        return {"points": counted[0], "late": counted[0] - counted[1], "repeated": counted[1] - new.count()}

    def rows(self, keys: DataFrame | None = None) -> DataFrame:
        """Return the current rows of the groups ``keys``; None: of all groups."""
        definition, session = self.definition, self.opened()
        stored = self._no_rows() if self.own is None else semi_joined(self.own, keys, definition.groups)
        arrived = session.range(0).selectExpr(*self._no_points()) if self.points is None else self.points
        query = coalesced(definition, SPARK, self._edge, stored="{stored}", arrived="{arrived}")
        if definition.same is None:
            return session.sql(query.whole(), stored=stored, arrived=arrived)
        near = session.sql(query.near, stored=stored, arrived=arrived)
        near = near.withColumn("_tried", try_eval(session, definition.same)).withColumn("_same", F.expr("_tried.v"))
        rest = session.sql(query.rest, stored=stored, arrived=arrived)
        return session.sql(query.rows("{near}", "{rest}"), near=near, rest=rest)

    @property
    def _groups(self) -> list[str]:
        return [quoted(name) for name in self.definition.groups]

    @cached_property
    def _edge(self) -> Edge:
        """Where the window begins; a window of rows begins after the surplus, the oldest points beyond its number of rows."""
        definition, groups = self.definition, self._groups
        if definition.window is not None:
            return Edge(self.move.now - definition.window)
        stamps = [] if self.own is None else [self.own.selectExpr(*groups, f"explode({STAMPS}) AS {AT}")]
        stamps += [] if self.points is None else [self.points.select(*groups, AT)]
        if not stamps:
            return Edge()
        all_stamps = self.cache.add(reduce(DataFrame.unionByName, stamps).distinct())
        surplus = all_stamps.count() - (definition.rows or 0)
        if surplus <= 0:
            return Edge()
        order = [F.col(AT).asc(), *(F.col(name).asc_nulls_first() for name in groups)]
        kinds = [kind for _, kind in definition.group_by]
        literals = [f"if({name} IS NULL, 'NULL', {_literal(name, kind)})" for name, kind in zip(groups, kinds, strict=True)]
        first = all_stamps.orderBy(*order).offset(surplus).limit(1).selectExpr(AT, *literals).collect()[0]
        return Edge(first[0], tuple(first[1:]))

    def _changed(self, old: DataFrame) -> DataFrame:
        """The groups with points, and groups with a row that the edge cuts; all groups if the window changed."""
        groups = self._groups
        inside = f"coalesce({within(self._edge, f'{STAMPS}[0]', groups)}, false)"  # null for a null group at the edge
        cut = "true" if self.has_other_window else f"NOT {inside} AND unix_micros(_exp) > {self.move.now}L"
        parts = [old.where(cut).select(*groups)]
        parts += [] if self.points is None else [self.points.select(*groups)]
        return reduce(DataFrame.unionByName, parts).distinct()

    def _apart(self, changed: Replacement, cells: Cells) -> Replacement:
        """The same rows, with the closed rows in cells."""
        rows = changed.rows
        if not isinstance(rows, DataFrame):
            return changed
        block = f"CASE WHEN open THEN 0L ELSE {block_sql('unix_micros(valid_from)', cells.edge, cells.window)} END"
        blocks = [0, *cells.span(self.move.now)]
        sizes = {
            (bucket, cell_block): -(-count // len(blocks))
            for bucket, count in changed.sizes.items()
            for cell_block in blocks
        }
        leaving = {(bucket, 0) for bucket in changed.sizes} | cells.within(changed.sizes)
        return replace(changed, rows=rows.withColumn("exp_block", F.expr(block)), cells=MovedCells(sizes, leaving))

    def _no_rows(self) -> DataFrame:
        nulls = [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in self.columns]
        return self.opened().range(0).selectExpr(*nulls, "CAST(NULL AS timestamp) AS _ts", "CAST(NULL AS timestamp) AS _exp")

    def _no_points(self) -> list[str]:
        """The columns of points."""
        kinds = (*self.definition.group_by, *self.definition.values)
        return [*(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in kinds), f"0L AS {AT}"]


def _literal(name: str, kind: str) -> str:
    """Return the SQL that formats a value of a group as an SQL literal."""
    if kind == "string":
        return f"concat('''', replace(replace({name}, '\\\\', '\\\\\\\\'), '''', '\\\\'''), '''')"
    if kind in ("date", "timestamp"):
        return f"concat('{kind} ''', CAST({name} AS string), '''')"
    return f"CAST({name} AS string)"
