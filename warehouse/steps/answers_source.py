"""The answers that an aggregate's step gives: DuckDB merges the states of slots in the driver.

Each due window takes the slots ``end - length + 1 .. end`` of its synopses as this plan has left them. Rows that this plan has
removed are read at the version before: an update that moves over many slots answers the ends in between from what was there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warehouse.aggregates.backlog import rounds
from warehouse.aggregates.synopses import ARRIVED, PARTS, UNTIL
from warehouse.catalog.identifiers import quoted as spark_quoted
from warehouse.ingest.batch import Batch, empty_batch
from warehouse.layout import slot_sql
from warehouse.steps.exact_items import exact_items
from warehouse.steps.merging import FIRSTS, merged
from warehouse.steps.merging_items import merged_items
from warehouse.steps.node_source import move_of
from warehouse.steps.sketches import estimated
from warehouse.steps.synopsis_source import full_from, known_batch
from warehouse.storage.deltalog import commits_after
from warehouse.storage.duckdb_sql import in_memory, listed
from warehouse.storage.store import store_of
from warehouse.storage.tables import key_types, rows_schema
from warehouse.time import NEVER, SECOND
from warehouse.views.maintenance.placement import placed_in_driver

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
    from warehouse.planning.steps import Plan, StreamPlan
    from warehouse.storage.scan import TableFiles

__all__ = ["ANSWERED", "AnswersInTime", "AnswersSource"]

ANSWERED = "answered"
"""What a commit says of the answers that there was time for: the length and the last slot of each window."""


@dataclass(frozen=True, eq=False)
class AnswersSource:
    """The rows of an aggregate's step.

    Parameters
    ----------
    plan, planned, root
        The plan, what it has for the aggregate, and the warehouse's directory.
    last
        What the plan starts from.
    files
        Reads stored tables.
    anything
        Returns a session.
    partial
        Tells whether a synopsis lacks rows, from its stream and its commit's metadata.
    in_time
        Where an update has limited time for answers: returns those of the aggregate of that name for which there was time.

    """

    plan: Plan
    planned: StreamPlan
    root: Path
    last: Epoch | None
    files: TableFiles
    anything: Callable[[], SparkSession]
    partial: Callable[[str, Mapping[str, Any]], bool]
    in_time: Callable[[str], tuple[tuple[Due, ...], tuple[pa.Table, ...]]]

    @property
    def own(self) -> AnswersPlan:
        """What the plan says of the answers."""
        if self.planned.answers is None:
            raise TypeError(f"{self.planned.name} is no aggregate")
        return self.planned.answers

    @cached_property
    def session(self) -> SparkSession:
        """Any session, since the driver writes answers."""
        return self.anything()

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
        """Answers read no landing file."""
        return ()

    @cached_property
    def batch(self) -> Batch:
        """The answers that are due, one row for each group."""
        found = self._given[1]
        return self._placed(pa.concat_tables(found)) if found else empty_batch(self.anything, self.columns)

    @cached_property
    def _given(self) -> tuple[tuple[Due, ...], tuple[pa.Table, ...]]:
        """What is answered, and the answers."""
        if self.own.within is not None:
            return self.in_time(self.planned.name)
        return self.own.due, (self.answered(self.own.due),) if self.own.due else ()

    @property
    def commit_metadata(self) -> Mapping[str, object]:
        """What its commit says in addition to the counts: which answers there was time for, where that is bounded."""
        if self.own.within is None:
            return {}
        return {ANSWERED: [[due.text, due.end] for due in self._given[0]]}

    def answered(self, asked: Sequence[Due]) -> pa.Table:
        """Return the answers of due windows."""
        own, plan = self.own, self.plan
        known = max((self._full_from(read.table) for read in own.reads), default=plan.slot + 1)
        due = pa.table(
            {
                "_text": pa.array([each.text for each in asked], pa.string()),
                "_first": pa.array([each.end - each.slots + 1 for each in asked], pa.int64()),
                "_end": pa.array([each.end for each in asked], pa.int64()),
                "_full": pa.array([self._is_full(each, known) for each in asked], pa.bool_()),
                "_late": pa.array([each.late for each in asked], pa.int64()),
                **self._firsts(asked),
            }
        )
        ends = f"make_timestamptz({plan.anchor} + _end * {plan.update_interval})"
        with in_memory(["temp_directory = ''", "memory_limit = '1GB'"]) as connection:
            connection.register("due", due)
            for number, read in enumerate(own.reads):
                connection.execute(f"CREATE TEMP VIEW synopsis_{number} AS {self._rows(connection, number, read)}")
            if own.definition.frequent is None:
                query = merged(own.definition, own.reads, ends=ends, epoch=plan.epoch)
            else:
                query = merged_items(own.definition, synopses=len(own.reads), ends=ends, epoch=plan.epoch)
            found = connection.sql(query).to_arrow_table()
        return self._counted(self._estimated(found), due)

    def _firsts(self, asked: Sequence[Due]) -> dict[str, pa.Array]:
        """The first slot of each input of a join in the due windows; the least of all where a window has one length."""
        definition = self.own.definition
        if definition.parts is None:
            return {}
        lengths = {window.text: window.parts for window in definition.windows}
        firsts = [[due.end - length + 1 for length in lengths.get(due.text) or (NEVER, NEVER)] for due in asked]
        return {name: pa.array(each, pa.int64()) for name, each in zip(FIRSTS, zip(*firsts, strict=True), strict=True)}

    def _estimated(self, found: pa.Table) -> pa.Table:
        """Answers with estimates in place of their sketches."""
        values = self.own.definition.values
        return estimated(self.session, found, values) if any(value.size is not None for value in values) else found

    def _counted(self, found: pa.Table, due: pa.Table) -> pa.Table:
        """Answers about frequent items, counted in the stored rows if that is declared and the rows are still there."""
        definition, plan = self.own.definition, self.plan
        asked = definition.frequent
        if asked is None or not asked.exact:
            return found
        stored = pc.greater_equal(found["_end"], plan.slot if definition.over == "live" else 0)
        node = plan.node(definition.source)
        declared = plan.stream(definition.source).declaration.columns if node is None else node.columns
        state = self.last.table(definition.source) if self.last else None
        versions = [version for version, _ in self._commits(definition.source)]
        now = max(versions, default=state.version if state else -1)
        if now < 0:
            return found
        rows = self.files.read(self.session, f"tables/{definition.source}", now, declared, lambda _: True, rewritten=True)
        slots = [
            f"{slot_sql(column, plan.anchor, plan.update_interval)} AS {name}"
            for column, name in (("_ts", ARRIVED), ("_exp", UNTIL), *zip(definition.parts or (), PARTS, strict=False))
        ]
        rows = rows.selectExpr(*(spark_quoted(column.name) for column in declared), *slots)
        return pa.concat_tables(
            [exact_items(definition, found.filter(stored), due, rows), found.filter(pc.invert(stored))], promote_options="default"
        )

    def _is_full(self, due: Due, known: int) -> bool:
        first = due.end if self.own.definition.over == "live" else due.end - due.slots + 1
        return first >= known and due.end >= self.own.sure

    def _placed(self, found: pa.Table) -> Batch:
        names = [column.name for column in self.columns]
        every = StructType.fromJson(rows_schema(self.columns))
        kinds = to_arrow_schema(every, timezone="UTC")
        rows = found.select(names).cast(pa.schema([kinds.field(name) for name in names]))
        ends = rows["window_end"].cast(pa.int64())
        instant = pa.timestamp("us", tz="UTC")
        expires = pc.add(ends, self.own.definition.keep).cast(instant)
        timed = rows.append_column("_ts", ends.cast(instant)).append_column("_exp", expires).append_column("_out", expires)
        return known_batch(placed_in_driver(timed, names, self.layout, move_of(self.plan, self.planned)), self.anything)

    def _full_from(self, name: str) -> int:
        """The slot from which a synopsis is complete, as this plan has left it."""
        planned = self.plan.stream(name)
        metadata = {key: value for _, said in self._commits(name) for key, value in said.items()}
        source = "" if planned.synopsis is None else planned.synopsis.synopsis.source
        return full_from(self.plan, planned, self.last, metadata, partial=self.partial(source, metadata))

    def _commits(self, name: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The commits that this plan has made to a synopsis: their versions and what they say."""
        state = self.last.table(name) if self.last else None
        for commit in commits_after(self.root / "tables" / name, state.version if state else -1):
            if commit.metadata.get("epoch") == self.plan.epoch:
                yield commit.version, commit.metadata

    def _rows(self, connection: duckdb.DuckDBPyConnection, number: int, read: SynopsisRead) -> str:
        """Return the query for a synopsis's rows: those that stay at this plan's version, the others at the one before."""
        state = self.last.table(read.table) if self.last else None
        path = f"tables/{read.table}"
        now = max((version for version, _ in self._commits(read.table)), default=state.version if state else 0)
        carried = self.plan.stream(read.table).synopsis
        sides = [(now, f"_exp_slot > {self.plan.slot}")]
        if state is not None and not (carried and (carried.carried or carried.rebuilt)):
            sides.append((state.version, f"_exp_slot <= {self.plan.slot}"))
        names = ", ".join(f'"{name}"' for name, _ in read.synopsis.columns)
        parts = []
        for place, (version, where) in enumerate(sides):
            files = self.files.files(path, version)
            if not store_of(self.root).local_paths:
                columns = self.plan.stream(read.table).declaration.columns
                rows = self.files.read(self.session, path, version, columns, lambda _: True)
                connection.register(f"stored_{number}_{place}", rows.toArrow())
                parts.append(f"SELECT {names} FROM stored_{number}_{place} WHERE {where}")
            elif files:
                self.files.require_whole(files)
                source = f"read_parquet({listed(file.path for file in files)}, union_by_name = true, hive_partitioning = false)"
                parts.append(f"SELECT {names} FROM {source} WHERE {where}")
        return " UNION ALL ".join(parts) if parts else self._none(connection, number, read)

    @staticmethod
    def _none(connection: duckdb.DuckDBPyConnection, number: int, read: SynopsisRead) -> str:
        from warehouse.catalog.declaration import ColumnRecord  # noqa: PLC0415 - types are needed here only

        every = StructType.fromJson(rows_schema([ColumnRecord(name, kind) for name, kind in read.synopsis.columns]))
        connection.register(f"nothing_{number}", to_arrow_schema(every, timezone="UTC").empty_table())
        return f"SELECT * FROM nothing_{number}"

    def release(self) -> None:
        """Nothing is cached: the rows are in the driver."""


@dataclass(eq=False)
class AnswersInTime:
    """What an update answers in the time that it has; the first round is always made, so that each update makes progress.

    Parameters
    ----------
    sources
        Returns the sources of all answers that are not committed yet; called when the first of them is needed.
    clock
        Seconds.
    """

    sources: Callable[[], Sequence[AnswersSource]]
    clock: Callable[[], float] = time.monotonic
    _given: dict[str, tuple[tuple[Due, ...], tuple[pa.Table, ...]]] | None = field(default=None)

    def of(self, name: str) -> tuple[tuple[Due, ...], tuple[pa.Table, ...]]:
        """Return what is answered of an aggregate, and the answers."""
        if self._given is None:
            self._given = self._all()
        return self._given.get(name, ((), ()))

    def _all(self) -> dict[str, tuple[tuple[Due, ...], tuple[pa.Table, ...]]]:
        sources = {source.planned.name: source for source in self.sources()}
        waiting = {name: source.own.due for name, source in sources.items()}
        groups = {name: min((read.table for read in source.own.reads), default="") for name, source in sources.items()}
        most = min((source.own.within or 0 for source in sources.values()), default=0)
        given: dict[str, tuple[tuple[Due, ...], tuple[pa.Table, ...]]] = {}
        begun = self.clock()
        for each in rounds(waiting, groups):
            for name, dues in each:
                before = given.get(name, ((), ()))
                given[name] = (*before[0], *dues), (*before[1], sources[name].answered(dues))
            if (self.clock() - begun) * SECOND >= most:
                break
        return given
