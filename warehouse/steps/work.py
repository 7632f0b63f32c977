"""What each step of a plan commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.declaration import stream_of
from warehouse.catalog.identifiers import quoted
from warehouse.epochs.points import Moment, Observer, Point
from warehouse.errors import MissingPartError, UnreadableFilesError
from warehouse.ingest.batch import SPARK_FAILURES, Batch
from warehouse.ingest.batch_counts import BatchCounts
from warehouse.ingest.local import local_frame
from warehouse.ingest.rejected import with_records
from warehouse.layout.tasks import file_rows
from warehouse.planning.steps import (
    AddColumns,
    CreateTable,
    CutLog,
    EraseRows,
    MigrateTable,
    MoveDeferred,
    MoveRelation,
    MoveWindow,
    ReplaceTable,
    RestoreTable,
    RewriteBuckets,
    RewriteCells,
    SetProperties,
    Step,
    StoreRejected,
    StoreRestored,
)
from warehouse.steps.erased_rows import erase_rows
from warehouse.steps.migrating import Slots, cell_sizes, replaced, reshaped, reslotted
from warehouse.storage.cluster import on_cluster
from warehouse.storage.commit import CommitFacts
from warehouse.storage.deltalog import (
    create_table,
    metadata_action,
    missing_files,
    replace_table,
    set_columns,
    set_properties,
)
from warehouse.storage.failures import passing_failure
from warehouse.storage.logcut import commit_mark
from warehouse.storage.properties import table_properties
from warehouse.storage.restore import restore_table
from warehouse.storage.tables import (
    REJECTED_COLUMNS,
    SYSTEM_COLUMNS,
    deferred_schema,
    key_types,
    rejected_schema,
    restored_schema,
    rows_schema,
    schema_file,
    statistics_columns,
    write_schema_file,
)
from warehouse.storage.writer import write_rows, write_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column
    from warehouse.epochs.records import Epoch, Partition
    from warehouse.planning.steps import Plan, Role
    from warehouse.steps.progress import TableProgress
    from warehouse.steps.supply import NodeSupply, StreamSupply, Supply
    from warehouse.storage.entries import LogEntry

__all__ = ["Work"]


@dataclass
class Work:
    """The steps of one plan at work.

    ``done`` is what the tables' logs showed at the start, ``supply`` what the steps read. ``heads`` are the tables' newest
    entries: those of the log at the start, then those that the steps have made. A step commits on its table's and no other.
    """

    plan: Plan
    root: Path
    last: Epoch | None
    done: dict[str, TableProgress]
    supply: Supply
    heads: dict[str, LogEntry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.heads = {path: self.heads.get(path, table.head) for path, table in self.done.items()}

    def run(self, number: int, step: Step, observer: Observer) -> bool:
        """Execute one step and return whether it committed; a step that changes no row does not.

        A file may turn out to be damaged only when all of its columns are read, or be replaced before that: then it is left
        out from here on.
        """
        if self.supply.is_given_up(step.stream) and not isinstance(step, CreateTable | SetProperties | EraseRows | CutLog):
            if self.plan.erasure is None or not isinstance(step, ReplaceTable):
                return False
            return self._replace(number, step)  # a view that fails keeps no row that is to be erased
        while True:
            try:
                return self._run(number, step, observer)
            except UnreadableFilesError as error:
                self.supply.read_without(step.stream, error.files)
            except (*SPARK_FAILURES, pa.ArrowException) as error:  # the latter of rows that the driver joins
                erases = isinstance(step, EraseRows)
                if not erases and self.supply.leave_out_unreadable(step.stream):
                    continue
                self._require_files(step, error)
                if erases or self.plan.node(step.stream) is None or passing_failure(error) is not None:
                    raise
                self.supply.give_up(step.stream, error)
                return False

    def _require_files(self, step: Step, error: Exception) -> None:
        """After a step failed: say so when it was for want of the warehouse's own files, or for their damage."""
        damaged = self.supply.files.damaged(error)
        if damaged is not None:
            raise damaged from error
        if isinstance(step, CreateTable):
            return
        missing = missing_files(self.root / step.path, step.base_version)
        if missing:
            raise MissingPartError(
                f"{self.root / step.path}: {len(missing)} file(s) that the last epoch names are not there "
                f"({', '.join(missing[:3])}); restore them from a copy, then update again"
            )

    def _run(self, number: int, step: Step, observer: Observer) -> bool:  # noqa: C901, PLR0912 - a branch for each kind of step
        match step:
            case CreateTable(role="rows"):
                return self._create(number, step)
            case CreateTable():
                return bool(self._wanted(step)) and self._create(number, step)
            case MoveRelation():
                return self._move_relation(number, step, observer)
            case RestoreTable():
                facts = self._facts(number, {})
                self.heads[step.path] = restore_table(
                    self.root / step.path, self.heads[step.path], step.to_version,
                    epoch=self.plan.epoch, metadata=facts.metadata, at=self.plan.clock,
                )  # fmt: skip
                return True
            case ReplaceTable():
                return self._replace(number, step)
            case AddColumns():
                return self._add_columns(number, step)
            case MigrateTable():
                return self._migrate(number, step, observer)
            case RewriteBuckets():
                return self._rewrite_buckets(number, step, observer)
            case StoreRestored():
                return self._store_restored(number, step, observer)
            case MoveWindow():
                return self._move_window(number, step, observer)
            case RewriteCells():
                return self._rewrite(number, step, observer)
            case MoveDeferred():
                return self._move_deferred(number, step, observer)
            case StoreRejected():
                return self._store_rejected(number, step, observer)
            case SetProperties():
                return self._set_properties(number, step)
            case EraseRows():
                return self._erase_rows(number, step, observer)
            case CutLog():
                return self._cut_log(number, step)
            case _:
                assert_never(step)

    def _facts(self, number: int, more: Mapping[str, Any], *, batch_of: str | None = None) -> CommitFacts:
        metadata = {"epoch": self.plan.epoch, "step": number, "window_time": self.plan.window_time, **more}
        return CommitFacts(metadata, f"{batch_of}/batch" if batch_of else None, self.plan.epoch)

    def _wanted(self, step: CreateTable) -> int:
        """How many rows a table beside a stream's or view's would get."""
        if step.role == "restored":
            return self.supply.node(step.stream).lost_rows()
        counts = self.supply.batch(step.stream).counts
        return counts.deferred if step.role == "deferred" else counts.rejected

    def _shape(self, name: str) -> tuple[Sequence[Column | ColumnRecord], Sequence[str], str]:
        """Return the columns of a table to create, its search key and its zero-row file."""
        node = self.plan.node(name)
        if node is not None:
            return (*node.columns, *node.state), node.node.search_key, node.schema_file
        stream = stream_of(self.plan.stream(name).declaration, name, self.root)
        state = self.last.table(name) if self.last else None
        return stream.columns, stream.search_key, state.schema_file if state else schema_file(f"tables/{name}")

    def _create(self, number: int, step: CreateTable) -> bool:
        columns, key, file = self._shape(step.stream)
        schema, partitions = _stored_as(step.role, columns)
        statistics = statistics_columns(key_types(key, columns)) if step.role == "rows" else []
        if step.role == "rows":
            write_schema_file(self.root / file, columns)
        self.heads[step.path] = create_table(
            self.root / step.path,
            table_id=step.table_id,
            schema=schema,
            partition_columns=partitions,
            properties=table_properties(statistics, self.plan.retain),
            metadata=self._facts(number, {}).metadata,
            created_at=self.plan.clock,
            base=self.heads[step.path],
        )
        return True

    def _replace(self, number: int, step: ReplaceTable) -> bool:
        """Empty a table for its new declaration."""
        columns, key, file = self._shape(step.stream)
        schema, partitions = _stored_as(step.role, columns)
        statistics = statistics_columns(key_types(key, columns)) if step.role == "rows" else []
        if step.role == "rows":
            write_schema_file(self.root / file, columns)
        self.heads[step.path] = replace_table(
            self.root / step.path,
            self.heads[step.path],
            table_id=step.table_id,
            schema=schema,
            partition_columns=partitions,
            properties=table_properties(statistics, self.plan.retain),
            metadata=self._facts(number, {}).metadata,
            at=self.plan.clock,
        )
        return True

    def _set_properties(self, number: int, step: SetProperties) -> bool:
        columns, key, _ = self._shape(step.stream)
        of_rows = step.path == f"tables/{step.stream}"
        properties = table_properties(statistics_columns(key_types(key, columns)) if of_rows else [], self.plan.retain)
        metadata = self._facts(number, {}).metadata
        base = self.heads[step.path]
        self.heads[step.path] = set_properties(self.root / step.path, base, properties, metadata, self.plan.clock)
        return True

    def _table_metadata(self, step: AddColumns | MigrateTable, role: Role) -> dict[str, Any]:
        """The action that gives a table the columns and the key of its declaration."""
        columns, key, _ = self._shape(step.stream)
        schema, partitions = _stored_as(role, columns)
        properties = table_properties(statistics_columns(key_types(key, columns)) if role == "rows" else [], self.plan.retain)
        return metadata_action(step.table_id, schema, partitions, properties, self.plan.clock)

    def _add_columns(self, number: int, step: AddColumns) -> bool:
        table = self.root / step.path
        if step.role == "rows":
            write_schema_file(self.root / schema_file(step.path, self.plan.epoch), self._shape(step.stream)[0])
        metadata = self._facts(number, {}).metadata
        action = self._table_metadata(step, step.role)
        self.heads[step.path] = set_columns(table, self.heads[step.path], action, metadata, self.plan.clock)
        return True

    def _migrate(self, number: int, step: MigrateTable, observer: Observer) -> bool:
        inputs, plan = self.supply.of(step.stream), self.plan
        layout, keyed = inputs.planned.layout, inputs.stream.changes is not None
        stored = self.supply.files.read(
            inputs.session, step.path, step.base_version, step.columns, lambda _: True, placed=True
        )
        if not keyed:  # a relation keeps versions that have ended
            stored = stored.where(F.unix_micros("_exp") > plan.window_time)
        rows = reshaped(stored, inputs.columns, step.renamed)
        if step.reslotted:
            rows = reslotted(rows, layout, Slots(plan.anchor, plan.update_interval, plan.slot))
        if not keyed:
            rows = replaced(rows, layout)
        columns = self._columns(inputs)
        sizes = cell_sizes(rows)
        written = sum(sizes.values())
        batch = self.supply.batch(step.stream) if step.takes else None
        rows = rows.select(*columns)
        if batch is not None:
            rows = rows.unionByName(batch.live().select(*columns))
            for cell, count in batch.counts.cells.items():
                sizes[cell] = sizes.get(cell, 0) + count
        write_schema_file(self.root / schema_file(step.path, plan.epoch), inputs.columns)
        facts = {"rewritten": written, "planned": layout.cells}
        observer(Moment(Point.STEP_READY, plan.epoch, number))
        self.heads[step.path] = write_runs(
            rows,
            self.root / step.path,
            key=inputs.key,
            sizes=sizes,
            target_rows=self._target_rows(step.stream),
            base=self.heads[step.path],
            leaving=lambda *_: True,
            facts=self._facts(number, facts, batch_of=step.table_id)
            if batch is None else self._main_facts(number, step.stream, step.table_id, batch, **facts),
            table_metadata=self._table_metadata(step, "rows"),
            staged=self._staged(number, observer),
        )  # fmt: skip
        return True

    def _move_relation(self, number: int, step: MoveRelation, observer: Observer) -> bool:
        batch = self.supply.batch(step.stream)
        if not batch.counts.live:
            return False
        inputs = self.supply.of(step.stream)
        content = self.supply.relation(step, batch)
        if content.rows is None:
            return False
        try:
            observer(Moment(Point.STEP_READY, self.plan.epoch, number))
            self.heads[step.path] = write_runs(
                content.rows.select(*self._columns(inputs)),
                self.root / step.path,
                key=inputs.key,
                sizes={(bucket, 0): count for bucket, count in content.sizes.items()},
                target_rows=self._target_rows(step.stream),
                base=self.heads[step.path],
                leaving=lambda bucket, _: bucket in content.sizes,
                facts=self._batch_facts(
                    number, step.stream, step.table_id, batch,
                    gained=list(content.fresh.items()), planned=len(content.sizes),
                ),
                staged=self._staged(number, observer, self._as_counted(step.stream, batch)),
            )  # fmt: skip
        finally:
            content.release()
        return True

    def _rewrite_buckets(self, number: int, step: RewriteBuckets, observer: Observer) -> bool:
        node = self.supply.node(step.stream)
        result = node.replacement()
        if result.rows is None:
            self.supply.counted[step.stream] = BatchCounts(dead=node.lost_rows())  # no commit says so
            return False
        sizes = {(bucket, 0): count for bucket, count in result.sizes.items()}
        for part in self._partitions(step.stream):
            if part.sub_index in result.sizes:
                sizes[part.sub_index, 0] = max(sizes[part.sub_index, 0], part.rows)
        observer(Moment(Point.STEP_READY, self.plan.epoch, number))
        columns = [*(quoted(column.name) for column in node.columns), *(name for name, _ in SYSTEM_COLUMNS)]
        counts = {"inserted": sum(result.fresh.values()), "rows": sum(result.fresh.values()), "dead": node.lost_rows()}
        self.heads[step.path] = write_runs(
            result.rows.select(*columns),
            self.root / step.path,
            key=node.key,
            sizes=sizes,
            target_rows=self._target_rows(step.stream),
            base=self.heads[step.path],
            leaving=lambda bucket, _: bucket in result.sizes,
            facts=self._facts(
                number,
                {"counts": counts, "gained": list(result.fresh.items()), "left_out": [], "planned": len(result.sizes)},
                batch_of=step.table_id,
            ),
            staged=self._staged(number, observer),
        )
        return True

    def _store_restored(self, number: int, step: StoreRestored, observer: Observer) -> bool:
        node = self.supply.node(step.stream)
        lost = node.lost()
        if lost is None or not node.lost_rows():
            return False
        own = [quoted(column.name) for column in node.planned.columns]
        rows = lost.selectExpr(*own, "_ts", "_exp", f"CAST({self.plan.epoch} AS bigint) AS _epoch")
        observer(Moment(Point.STEP_READY, self.plan.epoch, number))
        self.heads[step.path] = write_rows(
            rows.coalesce(1),
            self.root / step.path,
            base=self.heads[step.path],
            facts=self._facts(number, {"rows": node.lost_rows()}, batch_of=step.table_id),
            staged=self._staged(number, observer),
        )
        return True

    def _main_facts(self, number: int, name: str, table_id: str, batch: Batch, **more: object) -> CommitFacts:
        gained: dict[int, int] = {}
        for (cell, _), rows in batch.counts.cells.items():
            gained[cell] = gained.get(cell, 0) + rows
        return self._batch_facts(number, name, table_id, batch, gained=list(gained.items()), **more)

    def _batch_facts(self, number: int, name: str, table_id: str, batch: Batch, **more: object) -> CommitFacts:
        left_out = [[entry.file.path, entry.reason, entry.message] for entry in self.supply.left_out(name)]
        return self._facts(number, {"counts": batch.counts.reported(), "left_out": left_out, **more}, batch_of=table_id)

    def _as_counted(self, name: str, batch: Batch) -> Callable[[], None] | None:
        """What looks once more at files that were read again to be written: none when their rows were kept, or are a view's.

        Rows that executors keep are read again when one is lost.
        """
        if self.plan.node(name) is not None or (batch.persisted and not on_cluster(batch.rows.sparkSession)):
            return None
        return lambda: self.supply.require_unchanged(name)

    def _staged(
        self, number: int, observer: Observer, unchanged: Callable[[], None] | None = None
    ) -> Callable[[], None]:
        """What is done when the rows are written and not yet committed."""

        def staged() -> None:
            observer(Moment(Point.STAGED, self.plan.epoch, number))
            if unchanged is not None:
                unchanged()

        return staged

    def _columns(self, inputs: StreamSupply | NodeSupply) -> list[str]:
        return [*(quoted(column.name) for column in inputs.columns), *(name for name, _ in SYSTEM_COLUMNS)]

    def _live_at_base(
        self, step: MoveWindow | RewriteCells, chosen: Callable[[int, int], bool], inputs: StreamSupply | NodeSupply
    ) -> DataFrame:
        """Return the live rows of chosen (sub-index, expiry block) pairs, at the last epoch's version."""
        rows = self.supply.files.read(
            inputs.session, step.path, step.base_version, inputs.columns,
            lambda file: chosen(file.sub_index, file.exp_block), placed=True,
        )  # fmt: skip
        return rows.where((F.col("_exp_slot") > self.plan.slot) & (F.unix_micros("_exp") > self.plan.window_time))

    def _of_former(
        self, step: MoveWindow | RewriteCells, inputs: StreamSupply | NodeSupply, sizes: dict[tuple[int, int], int]
    ) -> list[DataFrame]:
        """Return what is rewritten of a former layout, and count it: where it is, or in the layout in force."""
        parts = []
        aged, moved = set(step.former.aged), set(step.former.moved)
        if aged:
            parts.append(self._live_at_base(step, lambda cell, block: (cell, block) in aged, inputs))
            held = self._partitions(step.stream)
            sizes.update({cell: part.rows for part in held if (cell := (part.sub_index, part.exp_block)) in aged})
        if moved:
            left = replaced(self._live_at_base(step, lambda cell, block: (cell, block) in moved, inputs), inputs.planned.layout)
            for cell, count in cell_sizes(left).items():
                sizes[cell] = sizes.get(cell, 0) + count
            parts.append(left)
        return [part.select(*self._columns(inputs)) for part in parts]

    def _move_window(self, number: int, step: MoveWindow, observer: Observer) -> bool:
        inputs = self.supply.table(step.stream)
        batch = self.supply.batch(step.stream)
        layout = inputs.planned.layout
        sizes = dict(batch.counts.cells)
        merged = {
            seal.sub_index: [block for block, runs in seal.blocks if runs + ((seal.sub_index, block) in sizes) > 1]
            for seal in step.seals
        }
        merged = {cell: blocks for cell, blocks in merged.items() if blocks}
        former = step.former.leaving
        if not (sizes or step.expired or step.dead or merged or former):
            return False
        columns = self._columns(inputs)
        rows = batch.live().select(*columns)
        rewritten = 0
        if merged:
            sealed = self._live_at_base(step, lambda cell, block: block in merged.get(cell, ()), inputs)
            rows = rows.unionByName(sealed.select(*columns))
            for part in self._partitions(step.stream):
                if part.exp_block in merged.get(part.sub_index, ()):
                    cell = (part.sub_index, part.exp_block)
                    sizes[cell] = sizes.get(cell, 0) + part.rows
                    rewritten += part.rows
        for left in self._of_former(step, inputs, sizes):
            rows = rows.unionByName(left)
        rewritten += self._rows_in(step.stream, (*step.former.aged, *step.former.moved))
        dead = former.union(step.dead)

        def leaving(cell: int, block: int) -> bool:
            passed = step.expired and block < step.expired_below and layout.first_cell <= cell <= layout.last_cell
            return passed or block in merged.get(cell, ()) or (cell, block) in dead

        observer(Moment(Point.STEP_READY, self.plan.epoch, number))
        self.heads[step.path] = write_runs(
            rows,
            self.root / step.path,
            key=inputs.key,
            sizes=sizes,
            target_rows=self._target_rows(step.stream),
            base=self.heads[step.path],
            leaving=leaving if merged or dead or step.expired else None,
            facts=self._main_facts(
                number, step.stream, step.table_id, batch,
                sealed=sum(len(blocks) for blocks in merged.values()), rewritten=rewritten,
            ),
            staged=self._staged(number, observer, self._as_counted(step.stream, batch)),
        )  # fmt: skip
        return True

    def _rewrite(self, number: int, step: RewriteCells, observer: Observer) -> bool:
        inputs = self.supply.table(step.stream)
        batch = self.supply.batch(step.stream)
        former = step.former.leaving
        if not batch.counts.cells and not step.rows and not former:
            return False
        columns = self._columns(inputs)
        rows = batch.live().select(*columns)
        sizes = dict(batch.counts.cells)
        if step.rows:
            rows = rows.unionByName(self._live_at_base(step, lambda cell, _: cell in step.cells, inputs).select(*columns))
            for part in self._partitions(step.stream):
                if part.sub_index in step.cells:
                    cell = (part.sub_index, part.exp_block)
                    sizes[cell] = sizes.get(cell, 0) + part.rows
        for left in self._of_former(step, inputs, sizes):
            rows = rows.unionByName(left)
        again = step.rows + self._rows_in(step.stream, (*step.former.aged, *step.former.moved))
        observer(Moment(Point.STEP_READY, self.plan.epoch, number))
        self.heads[step.path] = write_runs(
            rows,
            self.root / step.path,
            key=inputs.key,
            sizes=sizes,
            target_rows=self._target_rows(step.stream),
            base=self.heads[step.path],
            leaving=lambda cell, block: cell in step.cells or (cell, block) in former,
            facts=self._main_facts(
                number, step.stream, step.table_id, batch,
                planned=len(step.cells), rewritten=again,
            ),
            staged=self._staged(number, observer, self._as_counted(step.stream, batch)),
        )  # fmt: skip
        return True

    def _rows_in(self, name: str, cells: Sequence[tuple[int, int]]) -> int:
        held = set(cells)
        return sum(part.rows for part in self._partitions(name) if (part.sub_index, part.exp_block) in held)

    def _partitions(self, name: str) -> Sequence[Partition]:
        state = self.last.table(name) if self.last else None
        return state.partitions if state else ()

    def _target_rows(self, name: str) -> int:
        """Rows of a file of a table, by what the last epoch stores of it."""
        held = self._partitions(name)
        return file_rows(self.plan.target_file_size, rows=sum(part.rows for part in held), size=sum(part.bytes for part in held))

    def _cut_log(self, number: int, step: CutLog) -> bool:
        table = self.root / step.path
        metadata = self._facts(number, {}).metadata
        self.heads[step.path] = commit_mark(table, self.heads[step.path], metadata, self.plan.clock)
        return True

    def _erase_rows(self, number: int, step: EraseRows, observer: Observer) -> bool:
        state = self.last.table(step.stream) if self.last else None
        if state is None:
            raise KeyError(step.stream)
        observer(Moment(Point.STEP_READY, self.plan.epoch, number))
        metadata = self._facts(number, {"erased": step.rows}).metadata
        session, erasure = self.supply.spark(), self.plan.erasure
        rows = self._target_rows(step.stream)
        base = self.heads[step.path]
        self.heads[step.path] = erase_rows(session, self.root, step, base, erasure, state, metadata, self.plan.epoch, rows)
        return True

    def _move_deferred(self, number: int, step: MoveDeferred, observer: Observer) -> bool:
        batch = self.supply.batch(step.stream)
        if not batch.counts.deferred and not step.taken:
            return False
        inputs = self.supply.of(step.stream)
        waiting = with_records(batch.rows, batch.deferred(), inputs.stream.landing).select(
            *[quoted(column.name) for column in inputs.stream.columns],
            F.col("file").alias("_file"),
            F.col("record").alias("_record"),
            F.col("_arrival_slot").alias("_slot"),
        )
        observer(Moment(Point.STEP_READY, self.plan.epoch, number))
        self.heads[step.path] = write_rows(
            waiting.repartition("_slot") if len(batch.counts.slots) > 1 else waiting.coalesce(1),
            self.root / step.path,
            base=self.heads[step.path],
            slotted=True,
            leaving=(lambda slot: slot <= max(step.taken)) if step.taken else None,
            facts=self._batch_facts(number, step.stream, step.table_id, batch, rows=batch.counts.deferred),
            staged=self._staged(number, observer, self._as_counted(step.stream, batch)),
        )
        return True

    def _store_rejected(self, number: int, step: StoreRejected, observer: Observer) -> bool:
        batch = self.supply.batch(step.stream)
        if not batch.counts.rejected and step.kept_version is None:
            return False
        inputs = self.supply.of(step.stream)
        kept = (
            with_records(batch.rows, batch.rejected(), inputs.stream.landing)
            .withColumns(
                {
                    "reason": F.col("_fate"),
                    "message": F.col("_message"),
                    "raw": F.col("_raw"),
                    "epoch": F.lit(self.plan.epoch).cast("bigint"),
                },
            )
            .select(*[name for name, _ in REJECTED_COLUMNS])
        )
        if step.kept_version is not None:
            unread = {entry.file.path for entry in self.supply.left_out(step.stream)}
            tried = [(path,) for path in step.retried if path not in unread]
            again = local_frame(inputs.session, tried, "file string")
            others = self.supply.files.rejected(inputs.session, step.path, step.kept_version)
            kept = kept.unionByName(others.join(F.broadcast(again), "file", "left_anti").select(*kept.columns))
        observer(Moment(Point.STEP_READY, self.plan.epoch, number))
        self.heads[step.path] = write_rows(
            kept.coalesce(1).sortWithinPartitions("file", "record"),
            self.root / step.path,
            base=self.heads[step.path],
            facts=self._batch_facts(number, step.stream, step.table_id, batch, rows=batch.counts.rejected),
            staged=self._staged(number, observer, self._as_counted(step.stream, batch)),
        )
        return True


def _stored_as(role: Role, columns: Sequence[Column | ColumnRecord]) -> tuple[Mapping[str, Any], list[str]]:
    """Return the schema and the partition columns of a table."""
    stored: dict[Role, tuple[Mapping[str, Any], list[str]]] = {
        "rows": (rows_schema(columns), ["sub_index", "exp_block"]),
        "deferred": (deferred_schema(columns), ["_slot"]),
        "rejected": (rejected_schema(), []),
        "restored": (restored_schema(columns), []),
    }
    return stored[role]
