"""Computes the answers of an aggregate's step: DuckDB merges the states of slots in the driver.

Each due window uses the slots ``end - length + 1 .. end`` of its synopses at the version that this plan has committed. Rows that
this plan removed are read at the version before, so an update over many slots can answer the ends in between.

A difference of synopses uses only slots for which all of them are complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warehouse.aggregates.synopses import ARRIVED, PARTS, UNTIL
from warehouse.catalog.identifiers import quoted as spark_quoted
from warehouse.ingest.batch import Batch, empty_batch, placed_batch
from warehouse.layout import slot_sql
from warehouse.steps.duck_rows import rows_in_duckdb
from warehouse.steps.exact_items import exact_items
from warehouse.steps.merging import FIRSTS, PLACE, merged
from warehouse.steps.merging_items import merged_items
from warehouse.steps.node_source import move_of
from warehouse.steps.sketches import estimated
from warehouse.steps.synopsis_source import full_from
from warehouse.steps.window_run import WindowBounds, WindowRun
from warehouse.storage.deltalog import commits_after
from warehouse.storage.tables import key_types, rows_schema
from warehouse.time import NEVER
from warehouse.views.maintenance.placement import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb
    from pyspark.sql import SparkSession

    from warehouse.aggregates.definition import Due
    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.epochs.records import Epoch
    from warehouse.ingest.files import LeftOut
    from warehouse.layout import Layout
    from warehouse.planning.following import AnswersPlan, SynopsisRead
    from warehouse.planning.plan_record import Plan, StreamPlan
    from warehouse.storage.scan import TableFiles

__all__ = ["ANSWERED", "AnswersSource", "Given"]

Given = tuple[tuple["Due", ...], tuple[pa.Table, ...]]
"""Which due windows are answered, and the answers."""

ANSWERED = "answered"
"""The key of a commit's metadata with the answers that were given: the length and the last slot of each window."""


@dataclass(frozen=True, eq=False)
class AnswersSource:
    """The rows of an aggregate's step.

    Parameters
    ----------
    plan, planned, root
        The plan, its entry for the aggregate, and the warehouse's directory.
    last
        The state from which the plan starts.
    files
        Reads stored tables.
    open_session
        Returns a session.
    partial
        Returns whether a synopsis lacks rows, from its stream and its commit's metadata.
    together
        Returns the answers, computed together with those of other aggregates; if the time for answers is limited, those that were
        given in this time.

    """

    plan: Plan
    planned: StreamPlan
    root: Path
    last: Epoch | None
    files: TableFiles
    open_session: Callable[[], SparkSession]
    partial: Callable[[str, Mapping[str, Any]], bool]
    together: Callable[[AnswersSource], Given]

    @property
    def table_plan(self) -> AnswersPlan:
        """The plan for the answers."""
        if self.planned.answers is None:
            raise TypeError(f"{self.planned.name} is no aggregate")
        return self.planned.answers

    @cached_property
    def session(self) -> SparkSession:
        """Any session, since the driver writes answers."""
        return self.open_session()

    @property
    def layout(self) -> Layout:
        """The layout of its table."""
        return self.planned.layout

    @property
    def columns(self) -> tuple[ColumnRecord, ...]:
        """The columns of answers."""
        return self.planned.declaration.columns

    @property
    def key(self) -> list[tuple[str, str]]:
        """The search key with its types."""
        return key_types(self.planned.declaration.search_key, self.columns)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """No file, since answers read no landing file."""
        return ()

    @cached_property
    def batch(self) -> Batch:
        """The answers that are due, one row for each group."""
        answers = self._given[1]
        return self._placed(pa.concat_tables(answers)) if answers else empty_batch(self.open_session, self.columns)

    @cached_property
    def _given(self) -> Given:
        """The answered windows, and the answers."""
        return self.together(self)

    @property
    def commit_metadata(self) -> Mapping[str, object]:
        """The commit's metadata in addition to the counts: the computed answers, if the time is limited."""
        if self.table_plan.within is None:
            return {}
        return {ANSWERED: [[due.text, due.end] for due in self._given[0]]}

    def answered(self, asked: Sequence[Due], run: WindowRun) -> pa.Table:
        """Return the answers of due windows."""
        own_plan, plan = self.table_plan, self.plan
        full_slot = max((self._full_from(table) for read in own_plan.reads for table in read.tables), default=plan.slot + 1)
        due = pa.table(
            {
                PLACE: pa.array(range(len(asked)), pa.int64()),
                "_text": pa.array([window.text for window in asked], pa.string()),
                "_first": pa.array([window.end - window.slots + 1 for window in asked], pa.int64()),
                "_end": pa.array([window.end for window in asked], pa.int64()),
                "_full": pa.array([self._is_full(window, full_slot) for window in asked], pa.bool_()),
                "_late": pa.array([window.late for window in asked], pa.int64()),
                **self._firsts(asked),
            }
        )
        ends = f"make_timestamptz({plan.anchor} + _end * {plan.update_interval})"
        connection = run.connection
        connection.register("due", due)
        run.prepare(own_plan.reads, [self.window_bounds(read, asked) for read in own_plan.reads])
        if own_plan.definition.frequent is None:
            query = merged(own_plan.definition, own_plan.reads, ends=ends, epoch=plan.epoch)
        else:
            query = merged_items(own_plan.definition, synopses=len(own_plan.reads), ends=ends, epoch=plan.epoch)
        return self._counted(self._estimated(connection.sql(query).to_arrow_table()), due)

    def window_bounds(self, read: SynopsisRead, asked: Sequence[Due]) -> list[WindowBounds]:
        """Return the rows of due windows, by their positions; for a difference of synopses, the rows that all synopses have."""
        firsts = [slots.to_pylist() for slots in self._firsts(asked).values()] or [[-NEVER] * len(asked)] * len(FIRSTS)
        known_from, after = self._known(read) if read.less else (-NEVER, -NEVER)
        return [
            WindowBounds(max(due.end - due.slots + 1, known_from), due.end, max(due.end, after), *parts)
            for due, *parts in zip(asked, *firsts, strict=True)
        ]

    def _known(self, read: SynopsisRead) -> tuple[int, int]:
        """The first slot for which all synopses of a difference are complete, and the last whose expired rows they may lack."""
        planned = [own for table in read.tables if (own := self.plan.stream(table).synopsis) is not None]
        full, sure = max(map(self._full_from, read.tables)), max(own.sure for own in planned)
        stored = sure - min(own.slots for own in planned) + 1
        return (stored, max(full, sure)) if read.synopsis.live else (max(full, stored), -NEVER)

    def _firsts(self, asked: Sequence[Due]) -> dict[str, pa.Array]:
        """The first slot of each input of a join in the due windows; a slot before all others where a window has one length."""
        definition = self.table_plan.definition
        if definition.parts is None:
            return {}
        lengths = {window.text: window.parts for window in definition.windows}
        firsts = [[due.end - length + 1 for length in lengths.get(due.text) or (NEVER, NEVER)] for due in asked]
        return {name: pa.array(slots, pa.int64()) for name, slots in zip(FIRSTS, zip(*firsts, strict=True), strict=True)}

    def _estimated(self, answers: pa.Table) -> pa.Table:
        """Answers with estimates in place of their sketches."""
        values = self.table_plan.definition.values
        return estimated(self.session, answers, values) if any(value.size is not None for value in values) else answers

    def _counted(self, answers: pa.Table, due: pa.Table) -> pa.Table:
        """Answers about frequent items, counted in the stored rows if that is declared and the rows are still there."""
        definition, plan = self.table_plan.definition, self.plan
        frequent = definition.frequent
        if frequent is None or not frequent.exact:
            return answers
        stored = pc.greater_equal(answers["_end"], plan.slot if definition.over == "live" else 0)
        node = plan.node(definition.source)
        declared = plan.stream(definition.source).declaration.columns if node is None else node.columns
        state = self.last.table(definition.source) if self.last else None
        versions = [version for version, _ in self._commits(definition.source)]
        now = max(versions, default=state.version if state else -1)
        if now < 0:
            return answers
        rows = self.files.read(self.session, f"tables/{definition.source}", now, declared, lambda _: True, rewritten=True)
        slots = [
            f"{slot_sql(column, plan.anchor, plan.update_interval)} AS {name}"
            for column, name in (("_ts", ARRIVED), ("_exp", UNTIL), *zip(definition.parts or (), PARTS, strict=False))
        ]
        rows = rows.selectExpr(*(spark_quoted(column.name) for column in declared), *slots)
        return pa.concat_tables(
            [exact_items(definition, answers.filter(stored), due, rows), answers.filter(pc.invert(stored))],
            promote_options="default",
        )

    def _is_full(self, due: Due, known: int) -> bool:
        first = due.end if self.table_plan.definition.over == "live" else due.end - due.slots + 1
        return first >= known and due.end >= self.table_plan.sure

    def _placed(self, answers: pa.Table) -> Batch:
        names = [column.name for column in self.columns]
        schema = StructType.fromJson(rows_schema(self.columns))
        kinds = to_arrow_schema(schema, timezone="UTC")
        rows = answers.select(names).cast(pa.schema([kinds.field(name) for name in names]))
        ends = rows["window_end"].cast(pa.int64())
        instant = pa.timestamp("us", tz="UTC")
        expires = pc.add(ends, self.table_plan.definition.keep).cast(instant)
        timed = rows.append_column("_ts", ends.cast(instant)).append_column("_exp", expires).append_column("_out", expires)
        return placed_batch(placed(timed, names, self.layout, move_of(self.plan, self.planned)), self.open_session)

    def _full_from(self, name: str) -> int:
        """The slot from which a synopsis is complete after this plan."""
        planned = self.plan.stream(name)
        metadata = {key: value for _, commit_metadata in self._commits(name) for key, value in commit_metadata.items()}
        source = "" if planned.synopsis is None else planned.synopsis.synopsis.source
        return full_from(self.plan, planned, self.last, metadata, partial=self.partial(source, metadata))

    def _commits(self, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The commits that this plan has made to a synopsis: their versions and metadata."""
        state = self.last.table(name) if self.last else None
        for commit in commits_after(self.root / "tables" / name, state.version if state else -1):
            if commit.metadata.get("epoch") == self.plan.epoch:
                yield commit.version, commit.metadata

    def rows(self, connection: duckdb.DuckDBPyConnection, table: str) -> str:
        """Return the query for a synopsis's rows: at this plan's version, and removed rows at the version before."""
        state = self.last.table(table) if self.last else None
        now = max((version for version, _ in self._commits(table)), default=state.version if state else 0)
        planned = self.plan.stream(table)
        carried = planned.synopsis
        sides = [(now, f"_exp_slot > {self.plan.slot}")]
        if state is not None and not (carried and (carried.carried or carried.rebuilt)):
            sides.append((state.version, f"_exp_slot <= {self.plan.slot}"))
        columns, path = planned.declaration.columns, f"tables/{table}"
        return rows_in_duckdb(connection, self.files, lambda: self.session, path=path, sides=sides, columns=columns)

    def release(self) -> None:
        """Do nothing: the rows are in the driver."""
