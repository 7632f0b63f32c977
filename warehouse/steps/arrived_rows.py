"""The rows that arrived in a stream or a view, dead or alive, for the tables that follow it: its batch, and earlier rows.

Rows from before a table existed are read from loaded landing files that still exist, or from the stream and its archive: from the
source with more rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.aggregates.synopses import ARRIVED
from warehouse.catalog.archives import archive_name
from warehouse.catalog.identifiers import quoted
from warehouse.errors import UnreadableFilesError
from warehouse.ingest.batch import prepare_batch
from warehouse.ingest.batch_source import BatchSource
from warehouse.ingest.classify import WindowMove
from warehouse.layout import slot_sql
from warehouse.views.maintenance.placement import slots_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.batch import Batch
    from warehouse.ingest.files import LeftOut
    from warehouse.layout import Layout
    from warehouse.planning.following import CoalescedPlan, SynopsisPlan
    from warehouse.planning.plan_record import Plan, StreamPlan
    from warehouse.steps.stream_source import StreamSource
    from warehouse.storage.scan import TableFiles
    from warehouse.views.maintenance.inputs import NodeTable

__all__ = ["ARRIVED_FATES", "ARRIVED_ROWS", "LOADED", "ArrivedResults", "ArrivedRows", "FollowingSource"]

ARRIVED_FATES = ("live", "dead")
ARRIVED_ROWS = f"_fate IN {ARRIVED_FATES}"
"""Which rows of a batch arrived: deferred ones do when their slot comes, rejected ones never."""
LOADED = "_loaded"
"""The slot that loaded a row."""
_BEFORE = -(2**62)
"""Replaces the slot in rows of an archive, which have none."""


@dataclass(frozen=True, eq=False)
class ArrivedRows:
    """The rows that a plan adds to a table that follows a stream.

    Parameters
    ----------
    plan, table_plan, stream
        The plan, its entry for the table, and the stream's name.
    last
        The state from which the plan starts.
    files
        Reads stored tables.
    stream_source
        Returns the current source of the stream.
    open_session
        Opens a session, for a step without rows of the stream.
    live
        Whether only live rows of the stored rows count.
    ordered
        Whether rows have their load slot in the column ``LOADED``, if it is known.
    """

    plan: Plan
    table_plan: SynopsisPlan | CoalescedPlan
    stream: str
    last: Epoch | None
    files: TableFiles
    stream_source: Callable[[], StreamSource]
    open_session: Callable[[], SparkSession]
    live: bool = False
    ordered: bool = False

    @cached_property
    def session(self) -> SparkSession:
        """The session of the stream."""
        return self.stream_source().session if self.table_plan.arrives or self.table_plan.landed else self.open_session()

    def parts(self) -> Iterator[DataFrame]:
        """Yield the rows: the columns of the stream, ``_ts``, ``_exp``, and the slot of arrival."""
        stream = self.last.table(self.stream) if self.last else None
        declared = stream.declaration.columns if stream else ()
        if self.table_plan.arrives:
            source = self.stream_source()
            declared = source.planned.declaration.columns
            batch = source.batch
            if batch.counts.live or batch.counts.dead:
                yield _of_batch(batch, declared, *self._loaded(f"{self.plan.slot + 1}L"))
        if not self.table_plan.history or stream is None or self.last is None:
            return
        stored = [*self._stored(stream, declared)]
        landed = self._landed
        if landed is not None and landed.counts.live + landed.counts.dead >= sum(part.count() for part in stored):
            yield _of_batch(landed, declared, *self._loaded(f"{self.plan.slot}L"))
        else:
            yield from stored

    def _loaded(self, slot: str) -> list[str]:
        """The column with the slot that loaded a row, where that is asked for."""
        return [f"{slot} AS {LOADED}"] if self.ordered else []

    @cached_property
    def _landed(self) -> Batch | None:
        """The rows of loaded files that still exist; None if they cannot be read."""
        if not self.table_plan.landed or self.last is None:
            return None
        source, plan = self.stream_source(), self.plan
        move = WindowMove(
            k0=self.last.slot - source.layout.periods, k=self.last.slot, first=True, anchor=plan.anchor,
            interval=plan.update_interval, clock=plan.clock,
        )  # fmt: skip
        groups = [(group.header, group.files) for group in self.table_plan.landed]
        try:
            return prepare_batch(BatchSource(source.session, source.stream, source.layout, move, groups))
        except UnreadableFilesError:
            return None

    def _stored(self, stream: TableState, declared: tuple[ColumnRecord, ...]) -> Iterator[DataFrame]:
        """The rows that the stream and its archive hold at the last epoch."""
        if self.last is None:
            return
        archive = None if self.live else self.last.table(archive_name(stream.name))
        for table in (stream, archive):
            if table is None:
                continue
            stored = {column.name for column in table.declaration.columns}
            columns = [column for column in declared if column.name in stored]
            rows = self.files.read(self.session, table.path, table.version, columns, lambda _: True, rewritten=True)
            if table is stream and (archive is not None or self.live):  # the others are in the archive, or expired
                rows = rows.where(f"_exp_slot > {self.last.slot}L")
            missing = {column.name: F.lit(None).cast(column.type) for column in declared if column.name not in stored}
            slot = slot_sql("_ts", self.plan.anchor, self.plan.update_interval)
            loaded = self._loaded("_load_slot" if table is stream else f"{_BEFORE}L")
            yield rows.withColumns(missing).selectExpr(*_own(declared), "_ts", "_exp", f"{slot} AS {ARRIVED}", *loaded)

    def release(self) -> None:
        """Drop the cached rows of landing files."""
        landed: Batch | None = vars(self).get("_landed")
        if landed is not None:
            landed.release()


@dataclass(frozen=True, eq=False)
class ArrivedResults:
    """The rows that a plan adds to a synopsis of a view: the plan's entry for it, and the view's table as the plan left it.

    A view's row arrives at its ``_ts``, the latest of its parts. No table has results that began and ended between two updates;
    the source of the view's node has them. If the plan builds the view, results that ended before are no longer known.
    """

    table_plan: SynopsisPlan
    table: NodeTable

    def known(self) -> pa.Table | None:
        """Return few rows in the driver, in the form of a batch; None: Spark must read them."""
        if self.table_plan.history or self.table_plan.built:
            return None
        arrived = self.table.arrived_in_driver()
        if arrived is None:
            return None
        slots = slots_of(arrived["_ts"].cast(pa.int64()).to_numpy(), self.table.move)
        fates = pa.array(["live"] * arrived.num_rows, pa.string())
        return arrived.append_column("_fate", fates).append_column("_arrival_slot", pa.array(slots, pa.int64()))

    def parts(self) -> Iterator[DataFrame]:
        """Yield the rows: the view's columns, ``_ts``, ``_exp``, and the slot of arrival."""
        yield self._slotted(self.table.arrived(), self.table_plan.since if self.table_plan.built else None)
        if self.table_plan.history:
            yield self._slotted(self.table.live_before(), self.table_plan.since)

    def _slotted(self, rows: DataFrame, since: int | None) -> DataFrame:
        move = self.table.move
        names = [quoted(column.name) for column in self.table.columns]
        slotted = rows.selectExpr(*names, "_ts", "_exp", f"{slot_sql('_ts', move.anchor, move.interval)} AS {ARRIVED}")
        return slotted if since is None else slotted.where(f"{ARRIVED} > {since}L")

    def release(self) -> None:
        """Do nothing: no rows are cached."""


@dataclass(frozen=True, eq=False)
class FollowingSource:
    """The rows of the step of a table that follows a stream: a synopsis or a coalesced table.

    Parameters
    ----------
    plan, planned
        The plan, and its entry for the table.
    last
        The state from which the plan starts.
    files
        Reads stored tables.
    stream_source
        Returns the current source of its stream.
    open_session
        Opens a session, for a step without rows of the stream.
    """

    plan: Plan
    planned: StreamPlan
    last: Epoch | None
    files: TableFiles
    stream_source: Callable[[], StreamSource]
    open_session: Callable[[], SparkSession]

    @property
    def table_plan(self) -> SynopsisPlan | CoalescedPlan:
        """The plan for the table."""
        own = self.planned.synopsis or self.planned.coalesced
        if own is None:
            raise TypeError(f"{self.planned.name} follows no stream row by row")
        return own

    @property
    def layout(self) -> Layout:
        """The layout of its table."""
        return self.planned.layout

    @property
    def of_stream(self) -> bool:
        """Whether it takes in rows of a stream's batch; others are of a view, or were there before."""
        return self.table_plan.arrives and not (self.planned.synopsis is not None and self.planned.synopsis.view)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Files that the rows of its stream were read without."""
        return self.stream_source().left_out if self.of_stream else ()

    def require_unchanged(self) -> None:
        """Look at the files of its stream again, as a step of the stream does."""
        if self.of_stream:
            self.stream_source().require_unchanged()

    def release(self) -> None:
        """Drop the cached rows of landing files."""
        arrived: ArrivedRows | None = vars(self).get("_arrived")
        if arrived is not None:
            arrived.release()


def _of_batch(batch: Batch, declared: tuple[ColumnRecord, ...], *more: str) -> DataFrame:
    return batch.rows.where(ARRIVED_ROWS).selectExpr(*_own(declared), "_ts", "_exp", f"_arrival_slot AS {ARRIVED}", *more)


def _own(columns: tuple[ColumnRecord, ...]) -> list[str]:
    return [quoted(column.name) for column in columns]
