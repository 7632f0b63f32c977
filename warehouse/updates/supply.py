"""What the steps of a plan read: each stream's batch, read when a step first needs it.

Files that cannot be read are left out from there on, and the epoch says so; a stream's later steps use the same batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import stream_of
from warehouse.errors import FileProblem, UnreadableFilesError
from warehouse.ingest.batch import Batch, prepare, unreadable
from warehouse.ingest.classify import WindowMove
from warehouse.ingest.files import LandingFile, LeftOut
from warehouse.storage.session import table_session
from warehouse.storage.writer import key_settings, read_version
from warehouse.updates.outcome import first_batch_commit, left_out_of
from warehouse.updates.steps import MoveDeferred

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.batch_counts import BatchCounts
    from warehouse.updates.progress import TableProgress
    from warehouse.updates.steps import Plan, StreamPlan

__all__ = ["StreamSupply", "Supply"]


@dataclass
class StreamSupply:
    """One stream while its steps run: its declaration and session, its batch once it is read, files left out by path."""

    stream: Stream
    planned: StreamPlan
    session: SparkSession
    batch: Batch | None = None
    left_out: dict[str, LeftOut] = field(default_factory=dict)

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
    streams: dict[str, StreamSupply] = field(default_factory=dict)
    counted: dict[str, BatchCounts] = field(default_factory=dict)

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
                },
            )
            self.streams[name] = StreamSupply(stream, planned, session, left_out=self._left_out_before(planned))
        return self.streams[name]

    def _left_out_before(self, planned: StreamPlan) -> dict[str, LeftOut]:
        """Return the files that the steps done before a crash were executed without: they stay out of all."""
        first = first_batch_commit(self.plan, self.done, planned.name)
        return {entry.file.path: entry for entry in left_out_of(first, planned)} if first else {}

    def batch(self, name: str) -> Batch:
        """Return a stream's batch; files that cannot be read are left out."""
        supply = self.of(name)
        while supply.batch is None:
            try:
                supply.batch = prepare(
                    supply.session,
                    supply.stream,
                    supply.planned.layout,
                    self._move(supply.planned),
                    supply.groups(),
                    self._taken(name, supply.session),
                )
            except UnreadableFilesError as error:
                supply.leave_out(error.files)
        self.counted.setdefault(name, supply.batch.counts)
        return supply.batch

    def leave_out_unreadable(self, name: str) -> bool:
        """After a step failed: drop the batch, leave out the files that cannot be read, and return whether there are any.

        A file may turn out to be damaged only when all of its columns are read.
        """
        supply = self.of(name)
        problems = unreadable(supply.session, supply.stream, supply.groups())
        self._release(supply)
        self.counted.pop(name, None)
        supply.leave_out(problems)
        return bool(problems)

    def failed(self) -> dict[str, tuple[LeftOut, ...]]:
        """Return the files that each stream's batch was read without."""
        return {name: tuple(supply.left_out.values()) for name, supply in self.streams.items()}

    def release(self) -> None:
        """Let the batches go."""
        for supply in self.streams.values():
            self._release(supply)

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
        rows = read_version(session, self.root / step.path, step.base_version)
        return rows.where(f"_slot <= {max(step.taken)}")
