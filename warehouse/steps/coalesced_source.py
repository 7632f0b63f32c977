"""Makes the changed rows of a coalesced table: rows of groups with new points, and rows that the window's edge cuts.

All points that arrived are members, dead or alive. Deferred points become members when their slot comes. A row expires when its
last stamp has left the window. If the window's edge crosses a row, the update that moves the edge cuts it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.coalescing.cells import Cells
from warehouse.coalescing.definition import HOLDS
from warehouse.coalescing.islands import AT
from warehouse.ingest.try_eval import try_eval
from warehouse.layout.columns import CELL
from warehouse.limits import limits
from warehouse.steps.arrived_rows import LOADED, ArrivedRows, FollowingSource
from warehouse.steps.coalesced_as_arrays import ArrayReplacement, ArrayResult, can_be_arrays
from warehouse.steps.coalesced_by_spark import SparkReplacement
from warehouse.steps.coalesced_in_driver import DriverReplacement, no_stored_rows, points_of, points_of_collected
from warehouse.steps.node_source import move_of
from warehouse.steps.shedding import ShedReplacement, exact_rows
from warehouse.storage.arrow_types import can_be_collected
from warehouse.storage.lookup import FAILURES, leave_to_spark
from warehouse.storage.side_by_side import begun, ended
from warehouse.storage.tables import SYSTEM_COLUMNS, key_types
from warehouse.storage.writer import encoded_runs
from warehouse.views.language.driver_types import LeftToSparkError
from warehouse.views.maintenance.cache import Cache
from warehouse.views.maintenance.driver_buckets import buckets_of
from warehouse.views.maintenance.inputs import NodeTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from pyspark.sql import SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.epochs.records import TableState
    from warehouse.ingest.batch import Batch
    from warehouse.planning.following import CoalescedPlan
    from warehouse.storage.driver_writer import EncodedRuns
    from warehouse.views.maintenance.input_facts import Changed
    from warehouse.views.maintenance.keyed import Replacement

__all__ = ["CoalescedSource"]


@dataclass(frozen=True, eq=False)
class CoalescedSource(FollowingSource):
    """The rows of a coalesced table's step.

    ``stored`` returns the table of its stream at the version that the plan has committed; ``cache`` has intermediate rows until
    the step is done.
    """

    stored: Callable[[], NodeTable]
    cache: Cache = field(default_factory=Cache)

    @property
    def table_plan(self) -> CoalescedPlan:
        """The plan for the table."""
        if self.planned.coalesced is None:
            raise TypeError(f"{self.planned.name} is no coalesced table")
        return self.planned.coalesced

    @property
    def definition(self) -> CoalescedDefinition:
        """The definition of the table."""
        return self.table_plan.definition

    @cached_property
    def session(self) -> SparkSession:
        """The session in which its rows are made."""
        return self._arrived.session

    @property
    def columns(self) -> tuple[ColumnRecord, ...]:
        """The stored columns before the system's."""
        return self.planned.stored_columns

    @property
    def key(self) -> list[tuple[str, str]]:
        """The search key with its types."""
        return key_types(self.planned.declaration.search_key, self.planned.declaration.columns)

    @property
    def dead_rows(self) -> int:
        """Points that had left the window before they were loaded."""
        return self._losses["late"]

    @property
    def commit_metadata(self) -> Mapping[str, object]:
        """The commit's metadata in addition to the counts: ignored points, and shed members."""
        shedding = self._shedding
        return self._losses if shedding is None else {**self._losses, **shedding.commit_metadata}

    @property
    def changed(self) -> Changed | None:
        """How the table differs from the last epoch, where its rows were made as arrays and few of them changed."""
        result: ArrayResult | None = vars(self).get("_many_in_driver")
        return None if result is None or self._shedding is not None else result.changed

    def release(self) -> None:
        """Drop the cached rows, and stop the work that was begun ahead."""
        for name in ("_read_ahead", "_work_ahead"):
            work = vars(self).get(name)
            if work is not None:
                ended(work)
        self.cache.release()
        super().release()

    # --- arrived points and stored rows ---

    @cached_property
    def _arrived(self) -> ArrivedRows:
        own = self.table_plan
        source = own.definition.source
        return ArrivedRows(
            self.plan, own, source, self.last, self.files, self.stream_source, self.open_session, ordered=own.history
        )

    @cached_property
    def _points(self) -> DataFrame | None:
        """The points that arrived, computed once; None if none arrived."""
        points = self._all_points
        return None if points is None else self.cache.add(points)

    @property
    def _all_points(self) -> DataFrame | None:
        """The points that arrived: the columns of the group, the compared columns, and their stamps; None if none arrived."""
        definition = self.definition
        parts = [*self._arrived.parts()]
        if not parts:
            return None
        rows = reduce(DataFrame.unionByName, parts)
        if self.table_plan.history:
            first = F.min(LOADED).over(Window.partitionBy(*map(quoted, definition.groups), "_ts"))
            rows = rows.withColumn("_first", first).where(f"{LOADED} = _first")
        if definition.of is not None:
            rows = rows.withColumn("_tried", try_eval(self.session, definition.of)).withColumn(HOLDS, F.expr("_tried.v"))
        names = [quoted(name) for name in (*definition.groups, *definition.compared)]
        return rows.selectExpr(*names, f"unix_micros(_ts) AS {AT}")

    @property
    def _table_state(self) -> TableState | None:
        """The record of the table in the epoch that the plan starts from."""
        return self.last.table(self.planned.name) if self.last else None

    @cached_property
    def _table(self) -> NodeTable:
        """The coalesced table at the last epoch."""
        state = self._table_state
        base = None if self.planned.first or state is None else state.version
        size = sum(part.rows for part in state.partitions) if state else 0
        move = move_of(self.plan, self.planned)
        return NodeTable(
            self.planned.name, self.columns, lambda: self.session, self.files, move, base, base, move.k0, keyed=True, size=size
        )  # fmt: skip

    @cached_property
    def _stored_rows(self) -> DataFrame | None:
        """The rows of the last epoch, each with all members, shed members included."""
        if not self.definition.ledger:
            return self._table.rows_to_rewrite()
        if self._table.move.first:
            return None
        return self.session.createDataFrame(exact_rows(self.definition, self._stored_rows_in_driver))

    @cached_property
    def _stored_rows_in_driver(self) -> pa.Table:
        """The rows of the last epoch with all columns, in the driver."""
        table = self._table
        if table.move.first or table.base is None:
            return no_stored_rows(self.columns)
        in_driver = table.rows_to_rewrite_in_driver()
        if in_driver is not None:
            return in_driver
        schema = no_stored_rows(self.columns).schema
        rows = table.rows_to_rewrite()
        if rows is None:
            return schema.empty_table()
        stored = rows.drop(*CELL).toArrow()  # not every way to read has them
        buckets = buckets_of(stored, self.definition.search_key, self.layout)
        for name, values in zip(CELL, (buckets, pa.repeat(0, stored.num_rows)), strict=True):
            stored = stored.append_column(name, values)
        return stored.select(schema.names).cast(schema)

    @cached_property
    def _shedding(self) -> ShedReplacement | None:
        """The replacement of the rows of a table that sheds members or did so before; None for another table."""
        definition, table = self.definition, self._table
        if not definition.ledger:
            return None
        stored = self._stored_rows_in_driver
        if definition.same is None:
            in_driver = self._shedding_in_driver
            return ShedReplacement(definition, self.layout, table.move, stored, in_driver.coalesced(in_driver.own))
        return ShedReplacement(definition, self.layout, table.move, stored, self._by_spark.rows().toArrow())

    @cached_property
    def _shedding_in_driver(self) -> DriverReplacement:
        """The driver's replacement of all rows of a table that sheds members."""
        definition, own = self.definition, self._stored_rows_in_driver
        plain = self.table_plan.arrives and not self.table_plan.history and definition.of is None
        arrived = self.stream_source().batch.driver_rows if plain else None
        points = self._points if arrived is None else None
        return DriverReplacement(
            definition, self.layout, self._table.move, exact_rows(definition, own),
            arrived if points is None else points.toArrow(),
        )  # fmt: skip

    # --- written rows ---

    @cached_property
    def _few_in_driver(self) -> DriverReplacement | None:
        """The driver's replacement for few points and few rows; None if Spark must make it."""
        own_plan, definition, table = self.table_plan, self.definition, self._table
        if own_plan.history or self._has_other_window or definition.same is not None or definition.of is not None:
            return None
        arrived = self.stream_source().batch.driver_rows if own_plan.arrives else None
        if (own_plan.arrives and arrived is None) or (arrived is not None and arrived.num_rows > limits().driver_rows):
            return None
        stored = no_stored_rows(self.columns) if table.move.first or table.base is None else table.rows_to_rewrite_in_driver()
        if stored is None:
            return None
        replacement = DriverReplacement(definition, self.layout, table.move, stored, arrived)
        try:
            return replacement if replacement.losses and replacement.replacement else None
        except (*FAILURES, OverflowError, LeftToSparkError) as error:
            leave_to_spark(error)
            return None

    def read_ahead(self) -> tuple[str, ...]:
        """Begin to read the stored rows for arrays, and return the needed columns of points; empty if no reading was begun."""
        definition = self.definition
        if not self.table_plan.arrives or definition.of is not None or not self._in_arrays:
            return ()
        if not self.files.local or self._table.is_small():
            return ()
        _ = self._read_ahead
        return (*definition.groups, *definition.compared)

    def make_ahead(self) -> None:
        """Begin to make the rows as arrays, and files of them, if their points are in the driver."""
        if "_read_ahead" in vars(self) and self.stream_source().batch.driver_columns is not None:
            _ = self._work_ahead

    @cached_property
    def _work_ahead(self) -> Future[ArrayResult | None]:
        return begun(self._as_encoded_arrays)

    def _as_encoded_arrays(self) -> ArrayResult | None:
        result = self._as_arrays()
        rows = None if result is None else result.replacement.rows
        if result is None or not isinstance(rows, pa.Table) or not rows.num_rows:
            return result
        names = [*(column.name for column in self.columns), *(name for name, _ in SYSTEM_COLUMNS)]
        partitions = self._table_state.partitions if self._table_state else ()
        return result._replace(encoded=encoded_runs(rows.select(names), self.key, self.plan.target_rows(partitions)))

    @property
    def encoded(self) -> EncodedRuns | None:
        """The rows of the replacement as encoded files, if they were made ahead; None otherwise."""
        result = None if self._shedding is not None else self._made_in_driver
        return result.encoded if isinstance(result, ArrayResult) else None

    @property
    def _in_arrays(self) -> bool:
        """Whether the driver may make the rows as arrays, provided that they fit."""
        return not self.table_plan.history and not self._table.move.first and can_be_arrays(self.definition)

    @cached_property
    def _read_ahead(self) -> Future[pa.Table | None]:
        """The reader of the stored rows that any update may change; None if they are not for the driver."""
        table, cells = self._table, self._cells
        return begun(lambda: table.cells_to_rewrite_in_driver(lambda cell: not cell[1] or cell in cells.due))

    @cached_property
    def _many_in_driver(self) -> ArrayResult | None:
        """The driver's replacement for many rows, as arrays; None if Spark must make it."""
        return self._work_ahead.result() if "_work_ahead" in vars(self) else self._as_arrays()

    def _as_arrays(self) -> ArrayResult | None:
        own_plan, definition, table = self.table_plan, self.definition, self._table
        if not self._in_arrays:
            return None
        batch = self.stream_source().batch if own_plan.arrives else None
        if batch is not None and batch.counts.live + batch.counts.dead > limits().array_points:
            return None
        cells, stored = self._cells, self._read_ahead.result()
        vars(self).pop("_read_ahead")  # the rows are many
        if stored is None:
            return None
        try:
            points = self._points_in_driver(stored, batch)
            return self._with_hit_cells(ArrayReplacement(definition, self.layout, table.move, stored, points, cells)).result
        except (*FAILURES, OverflowError, LeftToSparkError) as error:
            leave_to_spark(error)
            return None

    def _with_hit_cells(self, replacement: ArrayReplacement) -> ArrayReplacement:
        """Return a replacement that also has the rows of the cells that late points change."""
        if not replacement.cells_to_read:
            return replacement
        table, cells, stored = self._table, self._cells, replacement.own
        names = [*self.definition.groups, "valid_from"]
        begins = table.columns_of_cells_in_driver(
            replacement.cells_to_read, pa.schema([stored.schema.field(name) for name in names])
        )
        hit = None if begins is None else replacement.hit_cells(begins)
        if hit == frozenset():
            return replacement
        more = None if hit is None else table.cells_to_rewrite_in_driver(
            lambda cell: cell in hit, present=lambda cell: not cell[1] or cell in cells.due
        )  # fmt: skip
        if more is None:
            raise LeftToSparkError("the driver does not take the rows that late points hit")
        return replace(replacement, own=pa.concat_tables([stored, more]))

    @cached_property
    def _cells(self) -> Cells:
        """The cells of closed rows; only a large table that the driver computes as arrays has any."""
        definition, state = self.definition, self._table_state
        if definition.window is None:
            raise TypeError("a window of rows has no cells")
        parts = () if state is None or self.planned.first else state.partitions
        runs = [((part.sub_index, part.exp_block), part.runs) for part in parts]
        least = limits().apart_rows // (2 if any(block for (_, block), _ in runs) else 1)  # it does not go to and fro
        return Cells.of(
            runs, definition.window, self.plan.window_time - definition.window,
            apart=sum(part.rows for part in parts) >= least, again=self._has_other_window,
        )  # fmt: skip

    @cached_property
    def _has_other_window(self) -> bool:
        """Whether its window was another one: a longer one rebuilds it, a shorter one ends all rows earlier."""
        state = self._table_state
        former = None if state is None or state.coalesced is None else state.coalesced.definition.window
        return not self.planned.first and former != self.definition.window

    def _points_in_driver(self, own: pa.Table, batch: Batch | None) -> pa.Table:
        """The points that arrived, with the types of the stored rows."""
        if batch is None or (batch.driver_rows is not None and self.definition.of is None):
            return points_of(self.definition, own, None if batch is None else batch.driver_rows)
        if batch.driver_columns is not None and {*self.definition.groups, *self.definition.compared} <= {
            *batch.driver_columns.column_names
        }:
            return points_of_collected(self.definition, own, batch.driver_columns)
        stored = self._stored_points(own, batch)
        if stored is not None:
            return stored
        points = self._all_points  # it is collected once
        if points is None:
            return points_of(self.definition, own, None)
        if not can_be_collected(points.schema):
            raise LeftToSparkError("Arrow does not have all types of the points")
        return points.toArrow()

    def _stored_points(self, own: pa.Table, batch: Batch) -> pa.Table | None:
        """Return the points as the stream's step has just stored them; this saves a job that reads their files again.

        None if a point was dead on arrival, or a condition must be evaluated.
        """
        definition = self.definition
        if definition.of is not None or batch.counts.dead:
            return None
        names = [*definition.groups, *definition.compared]
        columns = pa.schema([own.schema.field(name) for name in [*names, "_ts"]])
        rows = self.stored().stored_arrivals_in_driver(columns, limits().array_points)
        if rows is None or rows.num_rows != batch.counts.live:
            return None
        return rows.select(names).append_column(AT, rows["_ts"].cast(pa.int64()))

    @property
    def _made_in_driver(self) -> DriverReplacement | ArrayResult | None:
        """The driver's replacement for a table without shedding; None if Spark must make it."""
        return self._few_in_driver or self._many_in_driver

    @property
    def replacement(self) -> Replacement:
        """The new content of the buckets in which rows changed."""
        if self._shedding is not None:
            return self._shedding.replacement
        return self._by_spark.replacement if self._made_in_driver is None else self._made_in_driver.replacement

    @cached_property
    def _by_spark(self) -> SparkReplacement:
        """Spark's replacement for all points."""
        definition = self.definition
        cells = self._cells if can_be_arrays(definition) else None
        return SparkReplacement(
            definition, self.layout, self._table.move, self.columns, self._stored_rows, self._points, lambda: self.session,
            self.cache, self._has_other_window, cells,
        )  # fmt: skip

    @property
    def _losses(self) -> dict[str, int]:
        """How many points had left the window before they were loaded, and how many had the group and stamp of another."""
        if self.definition.ledger and self.definition.same is None:
            return self._shedding_in_driver.losses
        if not self.definition.ledger and self._made_in_driver is not None:
            return self._made_in_driver.losses
        return self._by_spark.losses
