"""The sources of a plan's steps: the batch of each stream and the new rows of each view's node, made when a step needs them.

All steps of a stream use the same batch. Files that turn out to be unreadable are left out, and the epoch records them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from warehouse.ingest.files import LeftOut
from warehouse.steps.answers_source import AnswersSource
from warehouse.steps.batch_commits import first_batch_commit, left_out_of, logged_batch_commit, unfinished_tables
from warehouse.steps.coalesced_source import CoalescedSource
from warehouse.steps.failed_views import FailedViews
from warehouse.steps.following import owed_record
from warehouse.steps.generated_code import node_settings, stream_settings
from warehouse.steps.joint_answers import JointAnswers
from warehouse.steps.joint_reading import read_together
from warehouse.steps.node_source import NodeSource, move_of, node_tables
from warehouse.steps.stream_source import stream_source
from warehouse.steps.synopsis_source import SynopsisSource, lacks_files
from warehouse.steps.work_ahead import WorkAhead
from warehouse.storage.collecting import Together
from warehouse.storage.recent_rows import recent_rows
from warehouse.storage.scan import TableFiles
from warehouse.storage.session import lazily
from warehouse.storage.writer import key_settings
from warehouse.views.algebra import scanned, tables_read
from warehouse.views.maintenance.cache import Cache
from warehouse.views.maintenance.input_facts import DeadRows
from warehouse.views.maintenance.inputs import NodeInputs
from warehouse.views.maintenance.joins import PUSHED_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.epochs.records import Epoch
    from warehouse.errors import FileProblem
    from warehouse.ingest.batch_counts import BatchCounts
    from warehouse.ingest.load_preview import ClassifiedRows
    from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan
    from warehouse.promise.units import Ledger
    from warehouse.steps.kind import Source
    from warehouse.steps.stream_source import StreamSource
    from warehouse.storage.deltalog import Commit
    from warehouse.storage.own_commits import TableProgress
    from warehouse.views.maintenance.input_facts import Changed, Move
    from warehouse.views.maintenance.inputs import NodeTable

__all__ = ["Sources"]


@dataclass
class Sources:
    """The data that the steps of one plan have read.

    Parameters
    ----------
    plan, root, last
        The plan, the warehouse's directory, and the epoch from which the plan starts.
    spark
        Returns the Spark session; called only when a step needs it.
    done
        The progress in the tables' logs at the start.
    classified
        Rows of streams that were read and classified before.
    counted
        The counts of each batch, by stream or node.
    unstored
        Whether views read rows that only landing files have.
    files
        By which stored tables are read.
    failed
        The views that cannot be maintained.

    """

    plan: Plan
    root: Path
    spark: Callable[[], SparkSession]
    done: Mapping[str, TableProgress]
    last: Epoch | None
    classified: Mapping[str, ClassifiedRows] = field(default_factory=dict)
    counted: dict[str, BatchCounts] = field(default_factory=dict)
    unstored: bool = True
    files: TableFiles = field(init=False)
    failed: FailedViews = field(init=False)
    _read_ahead: bool = False
    _answers: JointAnswers = field(init=False)
    _streams: dict[str, StreamSource] = field(default_factory=dict)
    _nodes: dict[str, NodeSource] = field(default_factory=dict)
    _following: dict[str, SynopsisSource | AnswersSource | CoalescedSource] = field(default_factory=dict)
    _view_tables: dict[str, NodeTable] = field(default_factory=dict)
    _joint_synopses: Together = field(init=False)
    _ahead: WorkAhead = field(init=False)

    def __post_init__(self) -> None:
        """Start with no file list read."""
        self.files, self.failed = TableFiles(self.root), FailedViews(self.plan)
        recent_rows().begin()
        self._answers = JointAnswers(self.plan, lambda: [*self._open_answers()])
        self._joint_synopses = Together(self._companions)
        self._ahead = WorkAhead(self._followers)

    def of(self, name: str) -> Source:
        """Return the source of a table."""
        if self.plan.node(name) is not None:
            return self.node(name)
        planned = self.plan.stream(name)
        if planned.followed is None:
            self._read_together()
            return self.stream(name)
        if name not in self._following:
            self._following[name] = self._follower(planned)
        return self._following[name]

    def _follower(self, planned: StreamPlan) -> SynopsisSource | AnswersSource | CoalescedSource:
        """Return the source of a table that follows a stream."""
        if planned.coalesced is not None:
            below = planned.coalesced.definition.source
            stored = partial(self._stream_table, below)
            return CoalescedSource(self.plan, planned, self.last, self.files, lambda: self.stream(below), self.spark, stored)
        if planned.synopsis is None:
            return AnswersSource(
                self.plan, planned, self.root, self.last, self.files, self.spark, self.partial, self._answers.of
            )
        below, view = planned.synopsis.synopsis.source, None
        if planned.synopsis.view and planned.synopsis.arrives:
            view = partial(self._view_table, below)
        return SynopsisSource(
            self.plan, planned, self.last, self.files, lambda: self.stream(below), self.spark, view, lambda: not self.unstored,
            self._joint_synopses.of,
        )  # fmt: skip

    def _companions(self, name: str) -> dict[str, DataFrame]:
        """Return the queries that Spark runs for a synopsis, and for uncommitted synopses of the same stream or view."""
        followed, own_source = self.plan.stream(name).followed, self.of(name)
        queries = {}
        for planned in self.plan.streams:
            if planned.name != name and (planned.synopsis is None or planned.followed != followed):
                continue
            source = self.of(planned.name)
            if not isinstance(source, SynopsisSource) or (source is not own_source and not self._goes_with(source, own_source)):
                continue
            if source.query is not None:
                queries[planned.name] = source.query
        return queries

    def _goes_with(self, source: SynopsisSource, other: Source) -> bool:
        """Whether one job computes a synopsis together with another source."""
        if source.alone or not isinstance(other, SynopsisSource) or other.alone:
            return False
        return self._batch_commit(source.planned.name) is None

    def _view_table(self, name: str) -> NodeTable:
        """The table of a view as synopses read it: the rows that it gained in this plan."""
        if name not in self._view_tables:
            planned, node = self.plan.node(name), self.node(name)
            if planned is None:
                raise KeyError(name)
            dead_rows = None if planned.first else self._dead(name)
            dead = {} if dead_rows is None else {name: dead_rows}
            move = move_of(self.plan, planned)
            tables = node_tables([name], self.plan, self.root, self.last, move, node.inputs.opened, self.files, dead)
            self._view_tables[name] = replace(tables[name], columns=planned.columns)
        return self._view_tables[name]

    def _stream_table(self, name: str) -> NodeTable:
        """The table of a stream as coalesced tables read it: at the version that the plan has committed."""
        move = move_of(self.plan, self.plan.stream(name))
        return node_tables([name], self.plan, self.root, self.last, move, self.spark, self.files, {})[name]

    def _open_answers(self) -> Iterator[AnswersSource]:
        """The sources of answers that no commit of the plan has yet."""
        for planned in self.plan.streams:
            if planned.answers is not None and self._batch_commit(planned.name) is None:
                source = self.of(planned.name)
                if isinstance(source, AnswersSource):
                    yield source

    def _batch_commit(self, name: str) -> Commit | None:
        """The first commit of the plan that took rows of a table's batch, also if this process made it."""
        return logged_batch_commit(self.plan, self.root, name)

    def partial(self, name: str, metadata: Mapping[str, Any]) -> bool:
        """Whether the gained rows of a table, by its commit's metadata, lack files of its stream.

        For a view, results are lacking if their files can no longer be read.
        """
        if self.plan.node(name) is not None:
            return not self.unstored
        first = self._batch_commit(name)
        read_without = [entry.file.path for entry in self._streams[name].left_out] if name in self._streams else []
        return lacks_files(first, metadata, read_without)

    def ledger(self, planned: NodePlan) -> Ledger | None:
        """Return the ledger of a view under a budget after its step, perhaps executed before a crash; None for another view."""
        return owed_record(planned, self._batch_commit(planned.name))

    def stream(self, name: str) -> StreamSource:
        """Return a stream's source; it leaves out the files that steps before a crash left out."""
        if name not in self._streams:
            planned = self.plan.stream(name)
            first = first_batch_commit(self.plan, self.done, name)
            left_out = () if first is None else left_out_of(first, planned)
            settings = stream_settings(self.plan, planned, self.last)
            self._streams[name] = stream_source(
                self.plan, planned, self.root, self.last, self.spark, settings, self.files, left_out, self._ahead,
                self.classified.get(name),
            )  # fmt: skip
        return self._streams[name]

    def _read_together(self) -> None:
        """Read the arrived rows of the streams with open steps, by one job if they are few."""
        if self._read_ahead:
            return
        self._read_ahead = True
        unfinished = unfinished_tables(self.plan, self.done)
        arrives = [
            stream
            for stream in self.plan.streams
            if stream.name in unfinished and any(group.files for group in stream.inputs)
        ]
        sources = [source for source in (self.stream(stream.name) for stream in arrives) if source.classified_before is None]
        if len(sources) > 1:
            read_together(sources)

    def _followers(self, stream: str) -> Iterator[CoalescedSource]:
        """The coalesced tables of a stream, if neither their steps nor the stream's are finished."""
        unfinished = unfinished_tables(self.plan, self.done)
        for planned in self.plan.streams:
            if planned.coalesced is not None and planned.followed == stream and {stream, planned.name} <= unfinished:
                source = self.of(planned.name)
                if isinstance(source, CoalescedSource):
                    yield source

    def node(self, name: str) -> NodeSource:
        """Return a node's source, with a session that has its table's key settings."""
        if name not in self._nodes:
            planned = self.plan.node(name)
            if planned is None:
                raise KeyError(name)
            spare_of = self.node(planned.spare_of) if planned.spare_of else None
            self._nodes[name] = NodeSource(planned, self._inputs(planned), spare_of)
        return self._nodes[name]

    def _inputs(self, planned: NodePlan) -> NodeInputs:
        types = {column.name.lower(): column.type for column in planned.columns}
        key = [(column, types[column.lower()]) for column in planned.node.search_key]
        pushed = {"spark.sql.parquet.pushdown.inFilterThreshold": str(PUSHED_KEYS)}
        settings = node_settings(planned, self.last, self.counted)
        opened = lazily(self.spark, {**key_settings(key), **pushed, **settings})
        move, read = move_of(self.plan, planned), sorted(set(scanned(planned.node.operator)))
        own_tables = {planned.name, f"{planned.name}.spare", f"{planned.name}.owed", planned.spare_of or planned.name}
        existing = {name for name in own_tables if self.plan.node(name) is not None or (self.last and self.last.table(name))}
        dead = {} if planned.first else {table: dead_rows for table in read if (dead_rows := self._dead(table)) is not None}
        names = {*tables_read(planned.node.operator), *existing}
        tables = node_tables(names, self.plan, self.root, self.last, move, opened, self.files, dead)
        tables |= {name: replace(tables[name], changed=self._changed(name, move)) for name in read if tables[name].keyed}
        return NodeInputs(planned.node, planned.layout, move, opened, tables, Cache())

    def _dead(self, table: str) -> DeadRows | None:
        """The rows of a table that died before they were stored; after a crash they are computed or read again."""
        if self.plan.node(table) is not None:
            if self.failed.includes(table) or self._none_died(table):
                return None
            return self.node(table).dead
        planned = next((stream for stream in self.plan.streams if stream.name == table), None)
        if not self.unstored or planned is None or planned.answers is not None:  # no answer is given that has ended
            return None
        if table not in self.counted:  # this process has not read its batch
            first = first_batch_commit(self.plan, self.done, table)
            if first is None or not first.metadata.get("counts", {}).get("dead"):
                return None
        batch = self.stream(table).batch
        self.counted.setdefault(table, batch.counts)
        if not batch.counts.dead:
            return None
        return DeadRows(lambda: batch.rows.where("_fate = 'dead' AND _exp > _ts"), batch.counts.dead, batch.dead_in_driver())

    def _changed(self, table: str, move: Move) -> Changed | None:
        """The changes of a coalesced table since the epoch that a view starts from, if this process has made the table's step."""
        source = self._following.get(table)
        if not isinstance(source, CoalescedSource) or move != move_of(self.plan, source.planned):
            return None
        return source.changed

    def _none_died(self, table: str) -> bool:
        """Whether a node's commit before a crash says that no row died, so that nothing must be computed again."""
        first = first_batch_commit(self.plan, self.done, table)
        counts = first.metadata.get("counts") if first else None
        return counts is not None and not counts.get("dead")

    # --- failures ---

    def read_without(self, name: str, problems: Sequence[FileProblem]) -> None:
        """Drop a stream's batch; when a step needs it, it is read again without these files."""
        source = self.stream(name)
        source.release()
        self._release_following()
        self.counted.pop(name, None)
        planned = {file.path: file for group in source.planned.inputs for file in group.files}
        left_out = tuple(LeftOut(planned[problem.path], problem.reason, problem.message) for problem in problems)
        self._streams[name] = replace(source, left_out=(*source.left_out, *left_out))

    def leave_out_unreadable(self, name: str) -> bool:
        """Leave out unreadable files after a failed step, and return whether there are any.

        A landing file may turn out to be damaged only when all of its columns are read. A view's step is then executed without
        rows that only landing files have.
        """
        planned = self.plan.node(name)
        if planned is not None:
            for table in (name, planned.spare_of):
                if table in self._nodes:
                    self._nodes.pop(table).release()
            unstored, self.unstored = self.unstored, False
            return unstored
        followed = self.plan.stream(name)
        if self.plan.node(followed.followed or "") is not None:
            self.release()
            self._nodes.clear()
            unstored, self.unstored = self.unstored, False
            return unstored
        gains = followed.synopsis or followed.coalesced
        if followed.answers is not None or (gains is not None and not gains.arrives):
            return False
        name = followed.followed or name
        problems = self.stream(name).unreadable_files()
        self.read_without(name, problems)
        return bool(problems)

    def left_out(self) -> dict[str, tuple[LeftOut, ...]]:
        """Return the files that each stream's batch was read without."""
        return {name: source.left_out for name, source in self._streams.items()}

    def release(self) -> None:
        """Drop all cached rows."""
        self._release_following()
        for stream in self._streams.values():
            stream.release()
        for node in self._nodes.values():
            node.release()

    def _release_following(self) -> None:
        for following in self._following.values():
            following.release()
        self._following.clear()
        self._answers.release()
        self._view_tables.clear()
        self._joint_synopses.release()
