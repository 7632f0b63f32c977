"""What a kind of step is, and the inputs with which one step of it is executed, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from warehouse.epochs.points import Moment, Point
from warehouse.planning.wording import step_text
from warehouse.steps.answers_source import AnswersSource
from warehouse.steps.coalesced_source import CoalescedSource
from warehouse.steps.node_source import NodeSource
from warehouse.steps.stream_source import StreamSource
from warehouse.steps.synopsis_source import SynopsisSource
from warehouse.storage.commit import CommitFacts
from warehouse.storage.tables import SYSTEM_COLUMNS
from warehouse.storage.writer import RunTable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Observer
    from warehouse.epochs.records import LandingFile, Partition, TableState
    from warehouse.ingest.batch import Batch
    from warehouse.ingest.batch_counts import BatchCounts
    from warehouse.planning.plan_record import Plan
    from warehouse.storage.entries import LogEntry
    from warehouse.storage.scan import TableFiles

__all__ = [
    "Appending",
    "Incoming",
    "Kind",
    "Source",
    "StepExplanation",
    "StepResult",
    "Task",
    "Way",
    "always",
    "gained",
    "stored_columns",
]

S = TypeVar("S")
Way = Literal["driver", "spark"]
"""Where the rows of a step are computed and written: few of them in the driver, where Spark only reads what arrived."""
Appending = StreamSource | NodeSource | SynopsisSource | AnswersSource
"""The rows of a step that takes a batch in."""
Source = Appending | CoalescedSource
"""The rows of a step: of a stream, a view's node, a synopsis, an aggregate's answers or a coalesced table."""


@dataclass(frozen=True)
class StepExplanation:
    """A step in numbers: files it reads, partitions it touches, and where its rows are expected to be computed and written.

    ``way`` is None for a step that writes no rows.
    """

    step: int
    table: str
    action: str
    detail: str
    files: int = 0
    bytes: int = 0
    partitions_removed: int = 0
    partitions_rewritten: int = 0
    way: Way | None = None


@dataclass(frozen=True)
class Incoming:
    """What a step reads, for its explanation: landing files, and in words what its table gains."""

    files: Sequence[LandingFile]
    words: str

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class StepResult:
    """What a step did: the log entry that it made, None if it changed no row; what its batch counted, if it read one."""

    entry: LogEntry | None = None
    counts: BatchCounts | None = None


@dataclass(frozen=True, eq=False)
class Task:
    """A step to execute, with all that it reads.

    Parameters
    ----------
    plan, number
        The plan, and which step of it this is.
    root, table
        The warehouse's directory and the table's.
    state
        The stream or view of the step at the epoch that the plan starts from; None before there is one.
    head
        The table's newest entry: the commit is made on it and no other.
    files
        By which stored tables are read.
    observer
        Called when the step is ready to commit and when its rows are staged.
    source
        What the table gains; None for a step that reads no rows.
    session
        For a step that reads stored rows only: any session.

    """

    plan: Plan
    number: int
    root: Path
    table: Path
    state: TableState | None
    head: LogEntry
    files: TableFiles
    observer: Observer
    source: Source | None = None
    session: SparkSession | None = None

    def rows(self) -> Source:
        """Return the source, for a step of any table."""
        if self.source is None:
            raise TypeError(f"step {self.number} reads rows")
        return self.source

    def stream(self) -> StreamSource:
        """Return the source, for a step of streams only."""
        if not isinstance(self.source, StreamSource):
            raise TypeError(f"step {self.number} reads a stream")
        return self.source

    def node(self) -> NodeSource:
        """Return the source, for a step of views only."""
        if not isinstance(self.source, NodeSource):
            raise TypeError(f"step {self.number} reads what a view gains")
        return self.source

    def appending(self) -> Appending:
        """Return the source, for a step that takes a batch in."""
        if self.source is None or isinstance(self.source, CoalescedSource):
            raise TypeError(f"step {self.number} takes a batch in")
        return self.source

    def keyed(self) -> NodeSource | CoalescedSource:
        """Return the source, for a step of tables whose changed rows are replaced."""
        if not isinstance(self.source, NodeSource | CoalescedSource):
            raise TypeError(f"step {self.number} replaces rows")
        return self.source

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions of the stream or view at the epoch that the plan starts from."""
        return self.state.partitions if self.state else ()

    @property
    def target_rows(self) -> int:
        """Rows of a file of the table, by what is stored of it."""
        return self.plan.target_rows(self.partitions)

    def metadata(self, **more: object) -> dict[str, Any]:
        """Return the metadata of the commit: the step of the plan, by which it is recognised as done, and more."""
        return {"epoch": self.plan.epoch, "step": self.number, "window_time": self.plan.window_time, **more}

    def facts(self, table_id: str, **more: object) -> CommitFacts:
        """Return the facts of a commit of rows, with this metadata."""
        return CommitFacts(self.metadata(**more), f"{table_id}/batch", self.plan.epoch)

    def batch_facts(self, table_id: str, batch: Batch, **more: object) -> CommitFacts:
        """Return the facts of a commit of a batch: also its counts, and the files that it was read without."""
        source = self.rows()
        left_out = [[entry.file.path, entry.reason, entry.message] for entry in source.left_out]
        own = source.commit_metadata if isinstance(source, SynopsisSource | AnswersSource | NodeSource) else {}
        return self.facts(table_id, counts=batch.counts.reported(), left_out=left_out, **own, **more)

    def replaced_facts(self, table_id: str, **more: object) -> CommitFacts:
        """Return the facts of a commit that replaces rows: also the files that its source was read without."""
        source = self.keyed()
        left_out = [[entry.file.path, entry.reason, entry.message] for entry in source.left_out]
        own = source.commit_metadata if isinstance(source, CoalescedSource) else {}
        return self.facts(table_id, left_out=left_out, **own, **more)

    @property
    def runs(self) -> RunTable:
        """The table of rows as the commit of the step changes it."""
        return RunTable(self.table, self.rows().key, self.head, self.target_rows, self.staged)

    def ready(self) -> None:
        """Tell the observer that the step is ready to commit. While Spark writes a stream's rows, the driver works ahead."""
        self.observer(Moment(Point.STEP_READY, self.plan.epoch, self.number))
        if isinstance(self.source, StreamSource):
            self.source.ahead.make(self.source.stream.name)

    def staged(self) -> None:
        """Tell the observer that the rows are written and not yet committed, and check files again that were read more than once.

        Raises
        ------
        UnreadableFilesError
            With each file that changed since it was planned, so that the written rows may differ from the counted rows.

        """
        self.observer(Moment(Point.STAGED, self.plan.epoch, self.number))
        if isinstance(self.source, StreamSource | SynopsisSource | CoalescedSource):
            self.source.require_unchanged()


def stored_columns(source: Source) -> list[str]:
    """Return the names of the columns of a table of rows: the source's and the system's."""
    return [*(column.name for column in source.columns), *(name for name, _ in SYSTEM_COLUMNS)]


def gained(batch: Batch) -> list[tuple[int, int]]:
    """Return the live rows of a batch by sub-index."""
    rows: dict[int, int] = {}
    for (cell, _), count in batch.counts.cells.items():
        rows[cell] = rows.get(cell, 0) + count
    return list(rows.items())


def _words_of(step: Any) -> str:  # noqa: ANN401 - a step of any kind
    """Return the words for a step and its table.

    >>> from warehouse.planning.steps import CutLog
    >>> _words_of(CutLog("flights", "tables/flights", "", 0))
    'shorten the log of flights'
    """
    return step_text(f"{step.path}: {type(step).__struct_config__.tag}")


def always(_: object) -> bool:
    """Return true."""
    return True


@dataclass(frozen=True)
class Kind(Generic[S]):
    """One kind of step.

    Parameters
    ----------
    step
        The value that plans hold.
    explain
        The step in numbers; the parameters are its number in the plan, the step, and what it reads.
    run
        Executes it: one commit, or none.
    describe
        The step in a few words, for progress; by default the words for its tag and its table.
    reads
        Whether a step reads the rows of its stream or view; with ``reads_stored`` it reads stored rows only.
    writes_rows
        Whether it is the step that writes a table's rows: a plan has one of them for a table.
    by_spark
        Whether Spark computes its rows, however few they are.
    reports_batch
        Whether its commit has the counts of the stream's batch, as the commits of steps that write rows have.
    runs_for_failed_views
        Whether a plan executes it for a view that has failed.
    rewritten_rows
        About how many stored rows it rewrites.

    """

    step: type[S]
    explain: Callable[[int, S, Incoming], StepExplanation]
    run: Callable[[S, Task], StepResult]
    describe: Callable[[S], str] = _words_of
    reads: Callable[[S], bool] = lambda _: False
    reads_stored: bool = False
    writes_rows: bool = False
    by_spark: bool = False
    reports_batch: bool = False
    runs_for_failed_views: Callable[[Plan], bool] = lambda _: False
    rewritten_rows: Callable[[S, TableState], int] = lambda *_: 0
