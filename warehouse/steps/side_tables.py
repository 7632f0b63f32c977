"""Steps of the side tables of streams and views: rows that wait, invalid rows, short-lived results; rows past ``keep``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import OWED_RESULT, WAITING_SLOT
from warehouse.planning.steps import DropOverdue, MoveDeferred, StoreRejected, StoreRestored
from warehouse.planning.wording import table_text
from warehouse.steps.kind import Incoming, Kind, StepExplanation, StepResult, Task, always
from warehouse.storage.arrow_types import framed, local_frame
from warehouse.storage.commit import CommitFacts
from warehouse.storage.overdue import drop_overdue
from warehouse.storage.tables import FOUND_BY
from warehouse.storage.writer import write_rows
from warehouse.units import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from warehouse.steps.node_source import NodeSource

__all__ = ["DROP_OVERDUE", "MOVE_DEFERRED", "STORE_REJECTED", "STORE_RESTORED"]


def _move_deferred(step: MoveDeferred, task: Task) -> StepResult:
    source = task.stream()
    batch = source.batch
    if not batch.counts.deferred and not step.taken:
        return StepResult(counts=batch.counts)
    waiting = batch.deferred([column.name for column in source.columns], source.stream.landing)
    if not isinstance(waiting, pa.Table):
        waiting = waiting.repartition(WAITING_SLOT) if len(batch.counts.slots) > 1 else waiting.coalesce(1)
    task.ready()
    entry = write_rows(
        waiting,
        task.table,
        base=task.head,
        slotted=True,
        leaving=(lambda slot: slot <= max(step.taken)) if step.taken else None,
        facts=task.batch_facts(step.table_id, batch, rows=batch.counts.deferred),
        staged=task.staged,
    )
    return StepResult(entry, batch.counts)


def _explained_move(number: int, step: MoveDeferred, _: Incoming) -> StepExplanation:
    take_text = f"take the rows of {counted(len(step.taken), 'update interval')} that have come; " if step.taken else ""
    return StepExplanation(number, step.path, "move", f"{take_text}keep the rows whose slot has not come")


MOVE_DEFERRED = Kind(
    MoveDeferred,
    describe=lambda step: f"move waiting rows of {step.stream}",
    explain=_explained_move,
    run=_move_deferred,
    reads=always,
    reports_batch=True,
)


def _store_rejected(step: StoreRejected, task: Task) -> StepResult:
    source = task.stream()
    batch = source.batch
    if not batch.counts.rejected and step.kept_version is None:
        return StepResult(counts=batch.counts)
    rejected = batch.rejected(source.stream.landing, task.plan.epoch)
    if step.kept_version is not None:
        unread = {entry.file.path for entry in source.left_out}
        retried_paths = [(path,) for path in step.retried if path not in unread]
        retried = local_frame(source.session, retried_paths, "file string")
        earlier = task.files.rejected(source.session, step.path, step.kept_version)
        rows = framed(rejected, source)
        rejected = rows.unionByName(earlier.join(F.broadcast(retried), "file", "left_anti").select(*rows.columns))
    if not isinstance(rejected, pa.Table):
        rejected = rejected.coalesce(1).sortWithinPartitions("file", "record")
    task.ready()
    entry = write_rows(
        rejected,
        task.table,
        base=task.head,
        statistics=(FOUND_BY["rejected"],),
        facts=task.batch_facts(step.table_id, batch, rows=batch.counts.rejected),
        staged=task.staged,
    )
    return StepResult(entry, batch.counts)


STORE_REJECTED = Kind(
    StoreRejected,
    describe=lambda step: f"keep rejected rows of {step.stream}",
    explain=lambda number, step, _: StepExplanation(number, step.path, "append", "invalid rows with their reasons, if any"),
    run=_store_rejected,
    reads=always,
    reports_batch=True,
)


def _store_restored(step: StoreRestored, task: Task) -> StepResult:
    source = task.node()
    if not source.dead_rows:
        return StepResult()
    task.ready()
    entry = write_rows(
        _short_lived_rows(source, task.plan.epoch),
        task.table,
        base=task.head,
        statistics=(FOUND_BY["restored"],),
        facts=task.facts(step.table_id, rows=source.dead_rows),
        staged=task.staged,
    )
    return StepResult(entry)


def _short_lived_rows(source: NodeSource, epoch: int) -> DataFrame | pa.Table:
    """The short-lived results as an epoch's update keeps them."""
    names, in_driver = [*(column.name for column in source.planned.columns), "_ts", "_exp"], source.short_lived_in_driver
    if source.planned.budget is not None:
        names.append(OWED_RESULT)
    if in_driver is not None:
        columns = {name.lower(): in_driver[name] for name in in_driver.column_names}
        rows = pa.table({name: columns[name.lower()] for name in names})
        return rows.append_column("_epoch", pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows))
    if source.short_lived is None:
        raise TypeError(f"{source.planned.name} has no short-lived results")
    return source.short_lived.selectExpr(*map(quoted, names), f"CAST({epoch} AS bigint) AS _epoch").coalesce(1)


STORE_RESTORED = Kind(
    StoreRestored,
    describe=lambda step: f"keep short-lived results of {step.stream}",
    explain=lambda number, step, _: StepExplanation(
        number, step.path, "append", "results that began and ended since the last update, if any"
    ),
    run=_store_restored,
    reads=always,
)


def _drop_overdue(step: DropOverdue, task: Task) -> StepResult:
    task.ready()
    facts = CommitFacts(task.metadata())
    return StepResult(drop_overdue(task.table, task.head, FOUND_BY[step.role], step.through, facts=facts, staged=task.staged))


def _explained_drop(number: int, step: DropOverdue, _: Incoming) -> StepExplanation:
    detail = f"remove the rows that were found by epoch {step.through} or before, in whole files: `keep` is over"
    return StepExplanation(number, step.path, "drop", detail)


DROP_OVERDUE = Kind(
    DropOverdue,
    describe=lambda step: f"drop old rows of {table_text(step.path)}",
    explain=_explained_drop,
    run=_drop_overdue,
    runs_for_failed_views=always,  # rows of a failed view whose `keep` is over are dropped, too
)
