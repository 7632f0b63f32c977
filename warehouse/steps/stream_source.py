"""The rows of a stream's steps: its batch, read when a step first needs it, and once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.archives import EXPIRED_AT
from warehouse.catalog.declaration import stream_of
from warehouse.catalog.identifiers import quoted
from warehouse.errors import MissingPartError, UnreadableFilesError
from warehouse.ingest.batch import Batch, collected_batch, empty_batch, placed_batch, prepare_batch
from warehouse.ingest.batch_source import BatchSource, classified_rows
from warehouse.ingest.classify import WindowMove
from warehouse.ingest.collected_rows import CollectRequest
from warehouse.ingest.dialect import session_settings
from warehouse.ingest.landing import changed_file_problems
from warehouse.ingest.record_numbers import with_record_numbers
from warehouse.ingest.size_estimates import small_enough_for_driver
from warehouse.ingest.unreadable_files import SPARK_FAILURES, unreadable_files
from warehouse.layout import exp_block_sql, sub_index_sql
from warehouse.layout.columns import SLOTS, is_system
from warehouse.objects.path import path_of
from warehouse.planning.steps import MigrateTable, MoveDeferred, MoveWindow, RewriteCells, StoreRejected
from warehouse.storage.arrow_types import can_be_collected, local_frame
from warehouse.storage.cluster import on_cluster
from warehouse.storage.scan import few, no_rows
from warehouse.storage.session import lazily
from warehouse.storage.tables import SYSTEM_COLUMNS, key_types
from warehouse.storage.writer import key_settings
from warehouse.time import NEVER, slot
from warehouse.views.maintenance.cache import Cache
from warehouse.views.maintenance.versions import reused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column, Stream
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.errors import FileProblem
    from warehouse.ingest.files import LandingFile, LeftOut
    from warehouse.ingest.load_preview import ClassifiedRows
    from warehouse.layout import Layout
    from warehouse.planning.plan_record import Plan, StreamPlan
    from warehouse.steps.work_ahead import WorkAhead
    from warehouse.storage.scan import TableFiles
    from warehouse.storage.snapshot import DataFile

__all__ = ["StreamSource", "reshaped", "stream_source"]



def stream_source(
    plan: Plan,
    planned: StreamPlan,
    root: Path,
    last: Epoch | None,
    spark: Callable[[], SparkSession],
    settings: Mapping[str, str],
    files: TableFiles,
    left_out: tuple[LeftOut, ...],
    ahead: WorkAhead,
    classified: ClassifiedRows | None = None,
) -> StreamSource:
    """Return a stream's source, whose session has the stream's time zone and its table's key settings.

    Parameters
    ----------
    plan, planned
        The plan, and its entry for the stream.
    root, last
        The warehouse's directory, and the epoch from which the plan starts.
    spark, settings
        Returns any session; further settings of the stream.
    files
        By which stored tables are read.
    left_out
        Landing files that must not be read.
    ahead
        Work of the driver while Spark loads rows.
    classified
        Rows that were read and classified before.

    """
    stream = stream_of(planned.declaration, planned.name, root)
    keys = key_settings(key_types(stream.search_key, stream.columns))
    reads = {**session_settings(stream), **settings}
    opened = lazily(spark, {**keys, **reads})
    state, archive_of = (last.table(name) if last and name else None for name in (planned.name, planned.archive_of))
    return StreamSource(
        stream, plan, planned, opened, files, state, archive_of, left_out, Cache(), ahead, tuple(reads.items()), classified
    )


@dataclass(frozen=True, eq=False)
class StreamSource:
    """One stream, relation or archive while its steps run.

    Parameters
    ----------
    stream, opened
        Its declaration, and a function that returns its session.
    plan, planned
        The plan, and its entry for the stream.
    files
        By which stored tables are read.
    state
        Its table at the epoch from which the plan starts; None before the first epoch.
    archive_of
        For an archive: the table of its stream at that epoch.
    left_out
        Files that the batch is read without.
    cache
        Caches intermediate rows until the plan is done.
    ahead
        Work of the driver while Spark loads rows.
    reading_settings
        The settings of its session, without those of writers.
    classified
        Rows that were read and classified before; the plan may load other rows.

    """

    stream: Stream
    plan: Plan
    planned: StreamPlan
    opened: Callable[[], SparkSession]
    files: TableFiles
    state: TableState | None
    archive_of: TableState | None
    left_out: tuple[LeftOut, ...]
    cache: Cache
    ahead: WorkAhead
    reading_settings: tuple[tuple[str, str], ...] = ()
    classified: ClassifiedRows | None = None

    @property
    def session(self) -> SparkSession:
        """Its session."""
        return self.opened()

    @property
    def layout(self) -> Layout:
        """The layout of the stream's table."""
        return self.planned.layout

    @property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns."""
        return self.stream.columns

    @property
    def key(self) -> list[tuple[str, str]]:
        """The search key with its types."""
        return key_types(self.stream.search_key, self.stream.columns)

    @cached_property
    def batch(self) -> Batch:
        """All that the update takes in, classified and counted.

        Raises
        ------
        UnreadableFilesError
            With the files that cannot be read; a source that leaves them out is read instead.

        """
        if self.planned.archive_of is not None:
            return _archived(self)
        if not any(group.files for group in self.planned.inputs) and _deferred_step(self) is None:
            return empty_batch(self.opened, self.columns)
        if self.classified_before is not None:
            return collected_batch(self.session, self.stream, self.classified_before, self._batch_source.files)
        return prepare_batch(self._batch_source, few=self.is_few, request=self._collect_request)

    @property
    def classified_before(self) -> pa.Table | None:
        """The rows that were classified before the plan, if the plan loads the same rows."""
        classified = self.classified
        return classified.rows if classified is not None and self.is_few and classified.are_of(self._batch_source) else None

    @property
    def _collect_request(self) -> CollectRequest:
        """What the driver collects of a large batch: rows of the table if it may write them, columns for a coalesced table."""
        own_steps = [step for step in self.plan.steps if step.stream == self.stream.name]
        writes = any(
            isinstance(step, MoveWindow | RewriteCells) and not (step.former.aged or step.former.moved) for step in own_steps
        )
        stored = [*(column.name for column in self.columns), *(name for name, _ in SYSTEM_COLUMNS)]
        is_followed = any(stream.followed == self.stream.name for stream in self.plan.streams)
        return CollectRequest(self.ahead.read(self.stream.name), stored if writes else (), is_followed)

    @property
    def is_few(self) -> bool:
        """Whether the update surely loads few enough rows for the driver."""
        return _few_deferred(self) and small_enough_for_driver(
            self.stream.format, [file for _, files in self.groups() for file in files]
        )

    @property
    def _batch_source(self) -> BatchSource:
        plan, planned = self.plan, self.planned
        move = WindowMove(
            k0=planned.k0, k=plan.slot, first=planned.first, anchor=plan.anchor, interval=plan.update_interval, clock=plan.clock
        )  # fmt: skip
        change_fates = partial(_with_stored_fates, source=self) if self._needs_stored_fates else None
        waiting = sum(slot.rows for slot in self.state.deferred.waiting) if self.state and self.state.deferred else 0
        return BatchSource(
            self.session, self.stream, planned.layout, move, self.groups(), _deferred_rows(self), change_fates, waiting
        )

    def few_rows(self) -> DataFrame | None:
        """Return the classified rows of the update as a frame, before any row is read; None if they are not for the driver.

        Raises
        ------
        UnreadableFilesError
            As of :attr:`batch`.

        """
        rows = classified_rows(self._batch_source, few=True) if self.is_few else None
        return rows if rows is not None and can_be_collected(rows.schema) else None

    def take_collected(self, known: pa.Table) -> None:
        """Take the rows of :meth:`few_rows`, which are read now.

        Raises
        ------
        UnreadableFilesError
            As of :attr:`batch`.

        """
        files = [file for _, members in self.groups() for file in members]
        vars(self)["batch"] = collected_batch(self.session, self.stream, known, files)

    @property
    def _needs_stored_fates(self) -> bool:
        """Whether stored rows may change the fate of a row."""
        changes = self.stream.changes
        return bool(self.planned.retried) or (changes is not None and not changes.retroactive)

    def groups(self) -> list[tuple[tuple[str, ...], list[LandingFile]]]:
        """Return the planned files by header, without those left out."""
        skipped = {entry.file.path for entry in self.left_out}
        return [
            (group.header, [file for file in group.files if file.path not in skipped]) for group in self.planned.inputs
        ]

    def unreadable_files(self) -> list[FileProblem]:
        """Return the files that make a read fail."""
        return unreadable_files(self.session, self.stream, self.groups())

    def require_unchanged(self) -> None:
        """Check the files again if the batch may have been read more than once: not cached, or cached by executors.

        Raises
        ------
        UnreadableFilesError
            With each file that is no longer the planned one.

        """
        batch = self._read
        if batch is None or batch.driver_rows is not None or (batch.persisted and not on_cluster(self.session)):
            return
        problems = changed_file_problems(self.stream.landing, [file for _, files in self.groups() for file in files])
        if problems:
            raise UnreadableFilesError(self.stream.name, problems)

    def versions(self) -> DataFrame:
        """Return the versions of a relation at the last epoch, without the partition columns."""
        if self.state is None:
            return no_rows(self.session, self.columns)
        state = self.state
        return self.files.read(self.session, state.path, state.version, self.columns, lambda _: True, rewritten=True)

    def release(self) -> None:
        """Drop the cached rows."""
        self.cache.release()
        if self._read is not None:
            self._read.release()

    @property
    def _read(self) -> Batch | None:
        """The batch, if a step has read it."""
        batch: Batch | None = vars(self).get("batch")
        return batch


def _archived(source: StreamSource) -> Batch:
    """Return the rows that an archive gains: rows of the stream's files that end in the slots of the update.

    Files are pruned by the exact bounds of their expiration slots; all rows of the other files are read. A table of the default
    layout has blocks of w expiration slots, so a file is read by each of the up to w updates in which its rows end. Without an
    archive it would not be read.

    Raises
    ------
    MissingPartError
        When a file with such rows is missing.

    """
    plan, planned, stream, files = source.plan, source.planned, source.archive_of, source.files
    k0, k = planned.k0, plan.slot

    def ends_within(file: DataFile) -> bool:
        first, last = file.min_exp_slot, file.max_exp_slot
        return (last is None or last > k0) and (first is None or first <= k)

    if stream is None:
        return empty_batch(source.opened, planned.declaration.columns)
    paths = [file.path for file in files.files(stream.path, stream.version) if ends_within(file)]
    missing = [path for path in paths if not path_of(path).exists()]
    if missing:
        raise MissingPartError(
            f"{len(missing)} file(s) of rows to archive, which the last epoch names, are not there ({', '.join(missing[:3])}); "
            f"restore them from a copy, then update again"
        )
    columns = [column for column in planned.declaration.columns if column.name != EXPIRED_AT]
    names = [quoted(column.name) for column in columns]
    layout = planned.layout
    slots = (*SLOTS, "true")
    rows = (
        files.read(source.session, stream.path, stream.version, columns, ends_within, rewritten=True)
        .where(f"_exp_slot > {k0}L AND _exp_slot <= {k}L")
        .selectExpr(
            *names, f"_exp AS {EXPIRED_AT}", "_ts", f"timestamp_micros({NEVER}L) AS _exp", "_exp_slot AS _load_slot",
            f"{slot(NEVER, plan.anchor, plan.update_interval)}L AS _exp_slot", "'live' AS _fate",
        )
        .selectExpr("*", f"{sub_index_sql(layout, *slots)} AS sub_index", f"{exp_block_sql(layout, *slots)} AS exp_block")
        .persist(StorageLevel.MEMORY_AND_DISK)
    )  # fmt: skip
    try:
        return placed_batch(rows, source.opened, persisted=True)
    except SPARK_FAILURES:
        rows.unpersist()
        raise


def _with_stored_fates(rows: DataFrame, source: StreamSource) -> DataFrame:
    """Return classified rows; stored rows change the fate of some."""
    if source.planned.retried:
        rows = _rejected_before(rows, source)
    changes = source.stream.changes
    if changes is None or changes.retroactive:
        return rows
    return reused(rows, source.versions(), source.stream.search_key)


def _rejected_before(rows: DataFrame, source: StreamSource) -> DataFrame:
    """Return the records of retried files that were rejected before, and all records of other files."""
    step = next(s for s in source.plan.steps if isinstance(s, StoreRejected) and s.stream == source.planned.name)
    if step.kept_version is None:
        return rows
    rejected = source.files.rejected(source.session, step.path, step.kept_version)
    before = rejected.select("file", "record").distinct().withColumn("_before", F.expr("true"))
    retried = local_frame(source.session, [(path,) for path in step.retried], "file string")
    position_columns = [F.col(name) for name in ("_file", "_start", "_position", "_taken_file", "_taken_record")]
    # The row is one column meanwhile, since a column of the user may have the name of a column of rejected rows.
    packed = rows.select(*position_columns, F.struct(*[quoted(name) for name in rows.columns]).alias("_row"))
    numbered = with_record_numbers(rows, packed, source.stream.landing).join(before, ["file", "record"], "left")
    marked = numbered.join(F.broadcast(retried.withColumn("_retried", F.expr("true"))), "file", "left")
    # Record numbers need all rows of a file, and some rows are missing from here on.
    record_columns = {"_taken_file": F.col("file"), "_taken_record": F.col("record")}
    columns = [record_columns.get(name, F.col(f"_row.{quoted(name)}")).alias(name) for name in rows.columns]
    return marked.where("_before OR _retried IS NULL").select(*columns)


def _deferred_step(source: StreamSource) -> MoveDeferred | None:
    """The step that takes rows out of the deferred table, if their slot has come."""
    own = (step for step in source.plan.steps if step.stream == source.planned.name)
    return next((step for step in own if isinstance(step, MoveDeferred) and step.taken), None)


def _few_deferred(source: StreamSource) -> bool:
    """Whether the deferred rows whose slot has come, if there are any, are few enough for the driver."""
    step = _deferred_step(source)
    return step is None or few(source.files.files(step.path, step.base_version))


def _deferred_rows(source: StreamSource) -> DataFrame | None:
    """Rows of the deferred table whose slot has come."""
    step = _deferred_step(source)
    if step is None:
        return None
    own = [step for step in source.plan.steps if step.stream == source.planned.name]
    migration = next((s for s in own if isinstance(s, MigrateTable)), None)
    if migration is not None:
        waiting = source.files.deferred(source.session, step.path, step.base_version, migration.columns)
        return reshaped(waiting, source.columns, migration.renamed)
    rows = source.files.deferred(source.session, step.path, step.base_version, source.columns)
    return rows.where(f"_slot <= {max(step.taken)}")


def reshaped(
    rows: DataFrame, columns: Sequence[Column | ColumnRecord], renamed: Sequence[tuple[str, str]] = ()
) -> DataFrame:
    """Return rows with the current columns of a table: renamed, of a wider type, or null if they are new.

    System columns follow; ``renamed`` are pairs of former and new names.
    """
    former = {new: old for old, new in renamed}
    former_names = {old for old, _ in renamed}
    stored = set(rows.columns)
    values = []
    for column in columns:
        source = former.get(column.name, "" if column.name in former_names else column.name)
        value = quoted(source) if source in stored else "NULL"
        values.append(f"CAST({value} AS {column.type}) AS {quoted(column.name)}")
    names = {column.name for column in columns}  # a coalesced table keeps stamps
    return rows.selectExpr(*values, *[quoted(name) for name in rows.columns if is_system(name) and name not in names])
