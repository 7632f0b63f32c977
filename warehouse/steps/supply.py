"""What the steps of a plan read: each stream's batch, read when a step first needs it.

Files that cannot be read are left out from there on, and the epoch says so; a stream's later steps use the same batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.declaration import stream_of
from warehouse.catalog.identifiers import quoted
from warehouse.errors import FileProblem, UnreadableFilesError
from warehouse.ingest.batch import Batch, prepare, unreadable
from warehouse.ingest.classify import WindowMove
from warehouse.ingest.files import LandingFile, LeftOut
from warehouse.ingest.landing import unchanged
from warehouse.ingest.local import local_frame
from warehouse.ingest.rejected import with_records
from warehouse.planning.steps import MigrateTable, MoveDeferred, MoveRelation, StoreRejected
from warehouse.steps import evaluation
from warehouse.steps.archived import archived
from warehouse.steps.migrating import reshaped
from warehouse.steps.node_supply import NodeSupply
from warehouse.steps.outcome import first_batch_commit, left_out_of
from warehouse.steps.plan_tables import PlanTables, move_of
from warehouse.storage.scan import TableFiles
from warehouse.storage.session import table_session
from warehouse.storage.writer import key_settings
from warehouse.time import at_slot
from warehouse.views.algebra import scanned
from warehouse.views.maintenance.feeds import Move
from warehouse.views.maintenance.join_inputs import PUSHED_KEYS
from warehouse.views.maintenance.kept import kept
from warehouse.views.maintenance.keyed import Replacement
from warehouse.views.maintenance.maintain import Maintenance
from warehouse.views.maintenance.placement import bucket_sql
from warehouse.views.maintenance.versions import changes_of, reused, rewritten, versions_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Column, Stream
    from warehouse.epochs.records import Epoch
    from warehouse.ingest.batch_counts import BatchCounts
    from warehouse.planning.steps import NodePlan, Plan, StreamPlan
    from warehouse.steps.progress import TableProgress

__all__ = ["NodeSupply", "StreamSupply", "Supply"]


@dataclass
class StreamSupply:
    """One stream while its steps run: its declaration and session, its batch once it is read, files left out by path."""

    stream: Stream
    planned: StreamPlan
    session: SparkSession
    batch: Batch | None = None
    left_out: dict[str, LeftOut] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns."""
        return self.stream.columns

    @property
    def key(self) -> list[tuple[str, str]]:
        """The search key with its types."""
        types = {column.name: column.type for column in self.stream.columns}
        return [(name, types[name]) for name in self.stream.search_key]

    def groups(self) -> list[tuple[tuple[str, ...], list[LandingFile]]]:
        """Return the planned files by header, without those left out."""
        return [
            (group.header, [file for file in group.files if file.path not in self.left_out])
            for group in self.planned.inputs
        ]

    def leave_out(self, problems: Sequence[FileProblem]) -> None:
        """Read on without these files."""
        planned = {file.path: file for group in self.planned.inputs for file in group.files}
        for problem in problems:
            self.left_out[problem.path] = LeftOut(planned[problem.path], problem.reason, problem.message)


@dataclass
class Supply:
    """The batches of a plan; ``done`` is what its tables showed at the start, ``counted`` what each batch held."""

    plan: Plan
    root: Path
    spark: Callable[[], SparkSession]
    done: Mapping[str, TableProgress] = field(default_factory=dict)
    last: Epoch | None = None
    streams: dict[str, StreamSupply] = field(default_factory=dict)
    nodes: dict[str, NodeSupply] = field(default_factory=dict)
    given_up: dict[str, str] = field(default_factory=dict)
    unstored: bool = True
    files: TableFiles = field(init=False)
    counted: dict[str, BatchCounts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start with no file list read."""
        self.files = TableFiles(self.root)

    def table(self, name: str) -> StreamSupply | NodeSupply:
        """Return the supply of a stream's or a view's table."""
        return self.of(name) if self.plan.node(name) is None else self.node(name)

    def left_out(self, name: str) -> tuple[LeftOut, ...]:
        """Return the files that a stream's batch is read without; a view reads none."""
        return () if self.plan.node(name) is not None else tuple(self.of(name).left_out.values())

    def node(self, name: str) -> NodeSupply:
        """Return a node's supply, with a session that has its table's key settings."""
        if name not in self.nodes:
            planned = self.plan.node(name)
            if planned is None:
                raise KeyError(name)
            self.nodes[name] = self._node(planned)
        return self.nodes[name]

    def _node(self, planned: NodePlan) -> NodeSupply:
        types = {column.name.lower(): column.type for column in planned.columns}
        key = [(column, types[column.lower()]) for column in planned.node.search_key]
        pushed = {"spark.sql.parquet.pushdown.inFilterThreshold": str(PUSHED_KEYS)}
        arrived = {table: counts.live for table, counts in self.counted.items()}
        evaluated = evaluation.of_node(planned, self.last, arrived)
        session = table_session(self.spark(), {**key_settings(key), **pushed, **evaluated})
        move = move_of(self.plan, planned)
        tables = PlanTables(self.root, self.plan, self.last, move, session, self.files, self._dead, self._dead_rows)
        maintenance = Maintenance(
            node=planned.node,
            layout=planned.layout,
            move=move,
            tables=tables,
            own=lambda keys: self._own(tables, planned.name, planned, keys),
            spares=lambda keys: self._own(tables, f"{planned.name}.spare", planned, keys),
        )
        return NodeSupply(planned, session, maintenance, tables, self.node(planned.spare_of) if planned.spare_of else None)

    def _own(self, tables: PlanTables, table: str, planned: NodePlan, keys: pa.Table | None) -> DataFrame | None:
        """A node's own rows that were live at the last epoch, with all columns; those of some keys at least."""
        state = self.last.table(table) if self.last else None
        if planned.first or state is None:
            return None
        return tables.own(table, keys)

    def _dead(self, table: str) -> DataFrame | None:
        """Rows that died before they were stored; after a crash they are derived, or read from their files, once more."""
        if self.plan.node(table) is not None:
            return None if self.is_given_up(table) or not self.node(table).lost_rows() else self.node(table).lost()
        if not self.unstored or all(planned.name != table for planned in self.plan.streams):
            return None
        supply = self.of(table)
        if supply.batch is None and self._had_dead(table):
            self.batch(table)
        if supply.batch is None or not supply.batch.counts.dead:
            return None
        return supply.batch.rows.where("_fate = 'dead' AND _exp > _ts")

    def _dead_rows(self, table: str) -> int:
        """How many those are."""
        if self._dead(table) is None:
            return 0
        if self.plan.node(table) is not None:
            return self.node(table).lost_rows()
        batch = self.of(table).batch
        return 0 if batch is None else batch.counts.dead

    def _had_dead(self, name: str) -> bool:
        """Whether a stream's batch, of which this process has seen nothing, had such rows when it was committed."""
        first = first_batch_commit(self.plan, self.done, name)
        return first is not None and bool(first.metadata.get("counts", {}).get("dead"))

    def of(self, name: str) -> StreamSupply:
        """Return a stream's supply, with a session that has the stream's time zone and its table's key settings."""
        if name not in self.streams:
            planned = self.plan.stream(name)
            stream = stream_of(planned.declaration, name, self.root)
            types = {column.name: column.type for column in stream.columns}
            session = table_session(
                self.spark(),
                {
                    "spark.sql.session.timeZone": stream.timezone,
                    **key_settings([(column, types[column]) for column in stream.search_key]),
                    **evaluation.of_stream(self.plan, planned, self.last),
                },
            )
            self.streams[name] = StreamSupply(stream, planned, session, left_out=self._left_out_before(planned))
        return self.streams[name]

    def _left_out_before(self, planned: StreamPlan) -> dict[str, LeftOut]:
        """Return the files that the steps done before a crash were executed without: they stay out of all."""
        first = first_batch_commit(self.plan, self.done, planned.name)
        return {entry.file.path: entry for entry in left_out_of(first, planned)} if first else {}

    def batch(self, name: str) -> Batch:
        """Return a stream's batch, or what a view's node gains; files that cannot be read are left out."""
        if self.plan.node(name) is not None:
            batch = self.node(name).batch()
            self.counted.setdefault(name, batch.counts)
            return batch
        supply = self.of(name)
        source = supply.planned.archive_of
        if source is not None and supply.batch is None:
            before = self.last.table(source) if self.last else None
            supply.batch = archived(supply.session, self.plan, supply.planned, before, self.files)
        while supply.batch is None:
            try:
                supply.batch = prepare(
                    supply.session,
                    supply.stream,
                    supply.planned.layout,
                    self._move(supply.planned),
                    supply.groups(),
                    self._taken(name, supply.session),
                    self._judge(supply),
                )
            except UnreadableFilesError as error:
                supply.leave_out(error.files)
        self.counted.setdefault(name, supply.batch.counts)
        return supply.batch

    def _stored(self, supply: StreamSupply) -> DataFrame:
        """Return the versions of a relation at the last epoch, all columns but those of partitions."""
        name = supply.planned.name
        state = self.last.table(name) if self.last else None
        if state is None:
            return self.files.empty(supply.session, supply.columns)
        return self.files.read(supply.session, state.path, state.version, supply.columns, lambda _: True, rewritten=True)

    def _judge(self, supply: StreamSupply) -> Callable[[DataFrame], DataFrame] | None:
        if supply.planned.retried:
            return lambda rows: self._judged(supply, self._rejected_before(supply, rows))
        return lambda rows: self._judged(supply, rows)

    def _judged(self, supply: StreamSupply, rows: DataFrame) -> DataFrame:
        """Return the rows of a relation with their fates by what is stored; those of others as they are."""
        changes = supply.stream.changes
        if changes is None or changes.retroactive:
            return rows
        return reused(rows, self._stored(supply), supply.stream.search_key)

    def _rejected_before(self, supply: StreamSupply, rows: DataFrame) -> DataFrame:
        """Return, of the files that are tried again, only the records that were rejected; other files whole."""
        step = next(s for s in self.plan.steps if isinstance(s, StoreRejected) and s.stream == supply.planned.name)
        if step.kept_version is None:
            return rows
        known = self.files.rejected(supply.session, step.path, step.kept_version)
        before = known.select("file", "record").distinct().withColumn("_before", F.expr("true"))
        again = local_frame(supply.session, [(path,) for path in step.retried], "file string")
        places = [F.col(name) for name in ("_file", "_start", "_position", "_taken_file", "_taken_record")]
        # The row is one column meanwhile: a column of the user may be called as those of rejected rows are.
        packed = rows.select(*places, F.struct(*[quoted(name) for name in rows.columns]).alias("_row"))
        numbered = with_records(rows, packed, supply.stream.landing).join(before, ["file", "record"], "left")
        marked = numbered.join(F.broadcast(again.withColumn("_retried", F.expr("true"))), "file", "left")
        # Numbers are told by the rows of a whole file, of which some are missing from here on.
        places_known = {"_taken_file": F.col("file"), "_taken_record": F.col("record")}
        kept = [places_known.get(name, F.col(f"_row.{quoted(name)}")).alias(name) for name in rows.columns]
        return marked.where("_before OR _retried IS NULL").select(*kept)

    def relation(self, step: MoveRelation, batch: Batch) -> Replacement:
        """Return the new content of the buckets that a batch of changes touches."""
        supply = self.of(step.stream)
        stream, planned = supply.stream, supply.planned
        names = [column.name for column in stream.columns]
        move = Move(
            k0=planned.k0,
            k=self.plan.slot,
            before=at_slot(planned.k0, self.plan.anchor, self.plan.update_interval),
            now=self.plan.window_time,
            anchor=self.plan.anchor,
            interval=self.plan.update_interval,
            first=planned.first,
        )
        stored = self._stored(supply)
        retroactive = stream.changes is not None and stream.changes.retroactive
        changes = changes_of(batch.live(), names, move, retroactive=retroactive)
        keys = changes.select(*[quoted(name) for name in stream.search_key]).distinct()
        versions = versions_of(changes, stored, names, stream.search_key)
        every = rewritten(versions, stored, names, stream.search_key, keys, planned.layout, move, step.history)
        bucket = bucket_sql(stream.search_key, planned.layout)
        touched = [row[0] for row in keys.selectExpr(f"{bucket} AS bucket").distinct().collect()]
        content, release = kept(every.where(f"sub_index IN ({', '.join(map(str, touched))})"))
        sizes = dict.fromkeys(touched, 0) | {row[0]: row[1] for row in content.groupBy("sub_index").count().collect()}
        before = {row[0]: row[1] for row in stored.groupBy(F.expr(bucket)).count().collect()}
        fresh = {number: max(0, count - before.get(number, 0)) for number, count in sizes.items()}
        return Replacement(content, sizes, fresh, 0, release)

    def leave_out_unreadable(self, name: str) -> bool:
        """After a step failed: drop the batch, leave out the files that cannot be read, and return whether there are any.

        A file may turn out to be damaged only when all of its columns are read.
        """
        if self.plan.node(name) is not None:
            return self._forget_unstored(name)
        supply = self.of(name)
        problems = unreadable(supply.session, supply.stream, supply.groups())
        self.read_without(name, problems)
        return bool(problems)

    def read_without(self, name: str, problems: Sequence[FileProblem]) -> None:
        """Drop a stream's batch: it is read again when it is needed, without these files."""
        supply = self.of(name)
        self._release(supply)
        self.counted.pop(name, None)
        supply.leave_out(problems)

    def require_unchanged(self, name: str) -> None:
        """Look at the files of a stream's batch again, which were read more than once.

        Raises
        ------
        UnreadableFilesError
            With each that is not the one that was planned any more: what was written of it is not what was counted.

        """
        supply = self.of(name)
        problems = unchanged(supply.stream.landing, [file for _, files in supply.groups() for file in files])
        if problems:
            raise UnreadableFilesError(name, problems)

    def _forget_unstored(self, name: str) -> bool:
        """After a view's step failed: do without rows that only landing files hold, and return whether that is new."""
        if name in self.nodes:
            self.nodes.pop(name).release()
        new, self.unstored = self.unstored, False
        return new

    def give_up(self, name: str, error: Exception) -> None:
        """Let a view stand still that cannot be maintained, so that the other tables keep moving."""
        lines = [line for line in str(error).splitlines() if line.strip() and "An error occurred" not in line]
        self.given_up[name] = lines[0].strip(": ") if lines else type(error).__name__

    def is_given_up(self, name: str) -> bool:
        """Whether a table is a view's that failed, or that reads one that did."""
        node = self.plan.node(name)
        if node is None or name in self.given_up:
            return name in self.given_up
        beside = [name + ".spare"] if node.spare_of is None else [node.spare_of]
        for table in (*beside, *scanned(node.node.operator)):
            if table in self.given_up:
                reason = self.given_up[table]
                self.given_up[name] = reason if reason.startswith("it reads") else f"it reads {table}, which failed: {reason}"
                return True
        return False

    def failed(self) -> dict[str, tuple[LeftOut, ...]]:
        """Return the files that each stream's batch was read without."""
        return {name: tuple(supply.left_out.values()) for name, supply in self.streams.items()}

    def release(self) -> None:
        """Let the batches go."""
        for supply in self.streams.values():
            self._release(supply)
        for node in self.nodes.values():
            node.release()

    def _release(self, supply: StreamSupply) -> None:
        if supply.batch is not None:
            supply.batch.release()
        supply.batch = None

    def _move(self, planned: StreamPlan) -> WindowMove:
        return WindowMove(
            k0=planned.k0,
            k=self.plan.slot,
            first=planned.first,
            anchor=self.plan.anchor,
            interval=self.plan.update_interval,
            clock=self.plan.clock,
        )

    def _taken(self, name: str, session: SparkSession) -> DataFrame | None:
        step = next((s for s in self.plan.steps if isinstance(s, MoveDeferred) and s.stream == name), None)
        if step is None or not step.taken:
            return None
        columns = self.of(name).columns
        migration = next((s for s in self.plan.steps if isinstance(s, MigrateTable) and s.stream == name), None)
        if migration is not None:
            waiting = self.files.deferred(session, step.path, step.base_version, migration.columns)
            return reshaped(waiting, columns, migration.renamed)
        rows = self.files.deferred(session, step.path, step.base_version, columns)
        return rows.where(f"_slot <= {max(step.taken)}")
