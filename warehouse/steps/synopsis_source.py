"""Makes the rows that a synopsis gains: the states of its source's new rows, by arrival slot and group.

All rows that arrived count, dead or alive; deferred rows count when their slot comes, rejected rows never. A late row adds to its
slot. A row is left out if no window can reach its slot any more. The rows of the synopsis expire with the last window that
reaches them, but not before the next slot, so that an update over many slots finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warehouse.aggregates.synopses import ARRIVED, BATCH, LEVEL, PARTS, UNTIL
from warehouse.catalog.duck_sql import quoted as duck_quoted
from warehouse.catalog.identifiers import quoted
from warehouse.ingest.batch import Batch, empty_batch, placed_batch
from warehouse.layout import slot_sql
from warehouse.steps.arrived_rows import ArrivedResults, ArrivedRows, FollowingSource
from warehouse.steps.duck_rows import rows_in_duckdb
from warehouse.steps.interval_rows import interval_rows
from warehouse.steps.local_states import local_states, same_in_both_engines, slot_of
from warehouse.steps.node_source import move_of
from warehouse.steps.spark_states import states_of
from warehouse.storage.lookup import query_in_driver
from warehouse.storage.tables import rows_schema
from warehouse.time import NEVER
from warehouse.views.maintenance.placement import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import duckdb
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.epochs.records import Epoch
    from warehouse.planning.following import SynopsisPlan
    from warehouse.planning.plan_record import Plan, StreamPlan
    from warehouse.storage.deltalog import Commit
    from warehouse.views.maintenance.inputs import NodeTable

__all__ = ["EARLIEST", "LACKING", "SynopsisSource", "full_from", "lacks_files"]

EARLIEST = "earliest"
"""The key of a commit's metadata with the first slot of its rows."""
LACKING = "lacking"
"""The key of a commit's metadata that says that results of its view may be missing, since their files can no longer be read."""


@dataclass(frozen=True, eq=False)
class SynopsisSource(FollowingSource):
    """The rows of a synopsis's step.

    Parameters
    ----------
    view
        Returns the table of its view as the plan has left it; None: it follows a stream, or gets no rows.
    lacking
        Whether results of the view may be missing.
    together
        Collects the results of Spark, by the name of the table, together with those of other synopses of the same source.
    """

    view: Callable[[], NodeTable] | None = None
    lacking: Callable[[], bool] = lambda: False
    together: Callable[[str], pa.Table] | None = None

    @property
    def table_plan(self) -> SynopsisPlan:
        """The plan for the synopsis."""
        if self.planned.synopsis is None:
            raise TypeError(f"{self.planned.name} is no synopsis")
        return self.planned.synopsis

    @cached_property
    def session(self) -> SparkSession:
        """The session of its stream or view."""
        return self.opened()

    @property
    def opened(self) -> Callable[[], SparkSession]:
        """A function that returns this session."""
        if self.table_plan.view:
            return self.open_session if self.view is None else self.view().opened
        return self.stream_source().opened if self.table_plan.arrives else self.open_session

    @property
    def columns(self) -> tuple[ColumnRecord, ...]:
        """The stored columns before the system's."""
        return self.planned.declaration.columns

    @property
    def key(self) -> list[tuple[str, str]]:
        """The search key with its types."""
        return [(ARRIVED, "bigint")]

    @cached_property
    def batch(self) -> Batch:
        """The rows that the synopsis gains: a row for each group, so the driver has them, except for a large synopsis."""
        if self.table_plan.large:
            return self._written_by_spark
        rows = self._few
        if rows is None and self.query is not None:
            rows = self.query.toArrow() if self.together is None else self.together(self.planned.name)
        if self.table_plan.synopsis.levels:
            rows = self._with_intervals(rows)
        return empty_batch(self.opened, self.columns) if rows is None else placed_batch(rows, self.opened)

    @property
    def _written_by_spark(self) -> Batch:
        """All rows of a synopsis that is written again."""
        if self.query is None:
            raise TypeError(f"{self.planned.name} is not carried")
        return placed_batch(self.query.where("_fate = 'live'"), self.opened)

    def _with_intervals(self, gained: pa.Table | None) -> pa.Table | None:
        """Add the rows of longer intervals, which the driver merges from the rows of slots and from stored rows."""
        own, plan = self.table_plan, self.plan
        state = self.last.table(self.planned.name) if self.last else None
        columns = self.columns
        names = [column.name for column in columns]
        slots = self._schema.empty_table() if gained is None else gained.select(names).cast(self._schema)

        def stored(connection: duckdb.DuckDBPyConnection) -> str:
            sides = [] if state is None else [(state.version, "true")]
            path = f"tables/{self.planned.name}"
            return rows_in_duckdb(connection, self.files, lambda: self.session, path=path, sides=sides, columns=columns)

        longer = interval_rows(
            own.synopsis, slots, stored, slots=own.slots, before=own.merged, through=plan.slot, session=lambda: self.session
        )
        if longer is None:
            return gained
        rows = self._placed_in_driver(longer.select(names).cast(self._schema))
        return rows if gained is None else pa.concat_tables([gained, rows.cast(gained.schema)])

    @property
    def _schema(self) -> pa.Schema:
        """The types of its columns."""
        kinds = to_arrow_schema(StructType.fromJson(rows_schema(self.columns)), timezone="UTC")
        return pa.schema([kinds.field(column.name) for column in self.columns])

    @cached_property
    def query(self) -> DataFrame | None:
        """The query that Spark must run; None if there is none, or the driver computes it."""
        parts = [] if self._few is not None else [*self._gained()]
        if not parts:
            return None
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionByName(part)
        names = [column.name for column in self.columns]
        placed_rows: DataFrame = placed(rows, names, self.layout, move_of(self.plan, self.planned))
        return placed_rows

    @property
    def alone(self) -> bool:
        """Whether its rows need a job of their own: a history is large, and is read once."""
        return not self.table_plan.arrives or self.table_plan.history or self.table_plan.carried or self.table_plan.built

    @property
    def commit_metadata(self) -> Mapping[str, object]:
        """The commit's metadata in addition to the counts: the first slot of its rows, if the synopsis had no rows before."""
        driver_rows = self.batch.driver_rows
        first = pc.min(driver_rows[ARRIVED]).as_py() if self.table_plan.opening and driver_rows is not None else None
        lacking = {LACKING: True} if self.table_plan.view and self.lacking() else {}
        return lacking if first is None else {EARLIEST: first}

    @cached_property
    def _few(self) -> pa.Table | None:
        """The rows that the synopsis gains from few rows in the driver, by DuckDB; None if Spark must compute them."""
        own_plan, plan = self.table_plan, self.plan
        if not own_plan.arrives or own_plan.history or own_plan.carried:
            return None
        if not same_in_both_engines(own_plan.synopsis):
            return None
        arrived = self._arrived
        arrived_rows = arrived.known() if isinstance(arrived, ArrivedResults) else self.stream_source().batch.driver_rows
        if arrived_rows is None:
            return None
        until = slot_of("epoch_us(_exp)", plan.anchor, plan.update_interval)
        instants = [f"epoch_us({duck_quoted(name)})" for name in own_plan.synopsis.parts or ()]
        parts = [slot_of(instant, plan.anchor, plan.update_interval) for instant in instants]
        query = local_states(own_plan.synopsis, self._within, until=until, parts=parts, batch=plan.epoch)
        states = query_in_driver(query, {"arrived": arrived_rows})
        if states is None:
            return None
        if own_plan.synopsis.levels:
            states = states.append_column(LEVEL, pa.array(np.zeros(states.num_rows, np.int64)))
        return self._placed_in_driver(states.select(self._schema.names).cast(self._schema))

    def _placed_in_driver(self, rows: pa.Table) -> pa.Table:
        """Rows of the synopsis with the system's columns: they begin and end as :meth:`_ending` has them."""
        own, plan = self.table_plan, self.plan
        slots = rows[ARRIVED].to_numpy()
        instant = pa.timestamp("us", tz="UTC")
        begins = pa.array(np.minimum(plan.anchor + slots * plan.update_interval, plan.window_time), pa.int64()).cast(instant)
        last = slots + own.slots
        if own.synopsis.levels:
            last = last + 1 - (1 << rows[LEVEL].to_numpy())
        if own.synopsis.live:
            last = np.minimum(last, rows[UNTIL].to_numpy() + own.spare)
        last = np.maximum(last, plan.slot + 1)
        ends = pa.array(np.minimum(plan.anchor + last * plan.update_interval, NEVER), pa.int64()).cast(instant)
        timed = rows.append_column("_ts", begins).append_column("_exp", ends).append_column("_out", ends)
        return placed(timed, self._schema.names, self.layout, move_of(plan, self.planned))

    @property
    def _within(self) -> str:
        """The condition on rows of the synopsis that a window can still read; other rows are left out."""
        own = self.table_plan
        first = self.planned.k0 + 1 if own.first_end is None else own.first_end
        live = f" AND {UNTIL} + {own.spare} > {first}" if own.synopsis.live else ""
        return f"{ARRIVED} + {own.slots} > {first}{live}"

    def _gained(self) -> Iterator[DataFrame]:
        synopsis = self.table_plan.synopsis
        arrived = [*self._parts()]
        if arrived:
            rows = arrived[0]
            for part in arrived[1:]:
                rows = rows.unionByName(part)
            yield self._ending(states_of(rows.where(self._within), synopsis, self.plan.epoch))
        state = self.last.table(self.planned.name) if self.last else None
        if self.table_plan.carried and state is not None:
            stored = state.declaration.columns
            stored_rows = self.files.read(self.session, state.path, state.version, stored, lambda _: True, rewritten=True)
            yield self._ending(_of_slots(stored_rows, [column.name for column in stored]))

    def _ending(self, rows: DataFrame) -> DataFrame:
        """Rows of slots with the instants at which they begin and end.

        A row that never lives is not deferred, even if its slot is a later one: it is loaded now.
        """
        plan = self.plan
        begins = f"timestamp_micros(least({plan.anchor}L + {ARRIVED} * {plan.update_interval}L, {plan.window_time}L))"
        last = f"{ARRIVED} + {self.table_plan.slots}L"
        if self.table_plan.synopsis.live:
            last = f"least({last}, {UNTIL} + {self.table_plan.spare}L)"
        slot = f"greatest({last}, {plan.slot}L + 1L)"
        ends = f"timestamp_micros(least({plan.anchor}L + {slot} * {plan.update_interval}L, {NEVER}L))"
        names = [f"0L AS {LEVEL}" if column.name == LEVEL else quoted(column.name) for column in self.columns]
        return rows.selectExpr(*names, f"{begins} AS _ts", f"{ends} AS _exp", f"{ends} AS _out")

    def regridded(self, rows: DataFrame) -> DataFrame:
        """Return the rows of the synopsis in slots of the plan's grid of times: each slot becomes the slot that contains it.

        Lists of slots that become one slot stay separate: each keeps a batch of its own. Longer intervals are left out.
        """
        plan, (anchor, interval) = self.plan, self.table_plan.former_grid or (self.plan.anchor, self.plan.update_interval)
        containing = {
            name: slot_sql(f"timestamp_micros({anchor}L + {name} * {interval}L)", plan.anchor, plan.update_interval)
            for name in (ARRIVED, UNTIL, *PARTS)
        }
        changed = {**containing, BATCH: f"xxhash64({ARRIVED}, {BATCH})"}
        names = [column.name for column in self.columns]
        rows = _of_slots(rows, names)
        rows = rows.selectExpr(*(f"{changed[name]} AS {name}" if name in changed else quoted(name) for name in names))
        placed_rows: DataFrame = placed(self._ending(rows), names, self.layout, move_of(plan, self.planned))
        return placed_rows

    @cached_property
    def _arrived(self) -> ArrivedRows | ArrivedResults:
        """The rows from which states are computed."""
        own = self.table_plan
        if self.view is not None:
            return ArrivedResults(own, self.view())
        stream, live = own.synopsis.source, own.synopsis.live
        return ArrivedRows(self.plan, own, stream, self.last, self.files, self.stream_source, lambda: self.session, live=live)

    def _parts(self) -> Iterator[DataFrame]:
        """Yield arrived rows: the columns of the stream, the slots of arrival and expiration, and the slots of parts."""
        named = {UNTIL: "_exp"} | dict(zip(PARTS, map(quoted, self.table_plan.synopsis.parts or ()), strict=False))
        slots = [f"{slot_sql(sql, self.plan.anchor, self.plan.update_interval)} AS {name}" for name, sql in named.items()]
        for part in self._arrived.parts():
            yield part.selectExpr("*", *slots)


def _of_slots(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """The rows of slots of a synopsis that may have longer intervals."""
    return rows.where(f"{LEVEL} = 0") if LEVEL in names else rows


def lacks_files(first: Commit | None, metadata: Mapping[str, Any], read_without: Sequence[str]) -> bool:
    """Return whether a synopsis lacks files of its stream, since they had disappeared when its step read them.

    Parameters
    ----------
    first
        The plan's first commit of the stream's rows; None if there is none.
    metadata
        The metadata of the synopsis's commit; empty without a commit.
    read_without
        For a synopsis without a commit: paths that could not be read when the stream's rows were last read.

    """
    if first is None:
        return False
    lost_paths = [path for path, *_ in metadata.get("left_out", ())] if metadata else read_without
    return bool(set(lost_paths) - {path for path, *_ in first.metadata.get("left_out", ())})


def full_from(plan: Plan, planned: StreamPlan, before: Epoch | None, metadata: Mapping[str, Any], *, partial: bool) -> int:
    """Return the slot from which a synopsis has all arrived rows after a plan; a live one has all rows that are live at its end.

    Parameters
    ----------
    plan, planned
        The plan, and its entry for the synopsis.
    before
        The epoch from which the plan starts.
    metadata
        The metadata of its commit; empty without a commit.
    partial
        Whether it lacks files of the stream.

    """
    own_plan, state = planned.synopsis, before.table(planned.name) if before else None
    record = state.synopsis if state else None
    if own_plan is None or partial or LACKING in metadata:
        return plan.slot + 1
    full_slot = plan.slot + 1 if record is None or record.emptied else record.full_from
    if own_plan.since is not None or own_plan.built:  # rows that ended before are unknown; live rows are known
        return plan.slot if own_plan.synopsis.live else plan.slot + 1
    if own_plan.synopsis.live:
        if own_plan.opening or own_plan.history:
            full_slot = min(full_slot, planned.k0 + 1 if own_plan.opening or before is None else before.slot)
        return full_slot
    earliest = metadata.get(EARLIEST)
    if own_plan.opening and isinstance(earliest, int):
        full_slot = min(full_slot, earliest)
    if own_plan.carried and record is not None and before is not None:  # the update before left a late row of the oldest slot out
        full_slot = max(full_slot, before.slot - record.slots + 2)
    return full_slot
