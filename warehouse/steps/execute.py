"""The interpreter that executes a plan: each step one commit, then the epoch.

A plan is executed by this function the first time and after a crash: steps that the tables' logs show as done are skipped, the
others are executed with the plan's own declarations and clock instant, every table read at the version of the last epoch. Only
then is the epoch written.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from warehouse.epochs.journal import record_epoch
from warehouse.epochs.points import Moment, Observer, Point
from warehouse.epochs.records import Epoch, ForeignCommits, StepSeconds
from warehouse.errors import ForeignChangeError, MissingPartError, UnreadableFilesError
from warehouse.ingest.unreadable_files import SPARK_FAILURES
from warehouse.planning.restoring import with_restored_versions
from warehouse.planning.steps import CreateTable, RestoreTable
from warehouse.steps.epoch import epoch_of
from warehouse.steps.erased_epoch import erased_epoch
from warehouse.steps.kind import Task
from warehouse.steps.outcome import Outcome
from warehouse.steps.progress import after_restoring, expected_commits, progress
from warehouse.steps.registry import kind_of
from warehouse.steps.relanding import restore_archived
from warehouse.steps.sources import Sources
from warehouse.steps.view_proof import prove_first_builds
from warehouse.storage.checkpoints import checkpoint, checkpoint_due
from warehouse.storage.deltalog import make_durable
from warehouse.storage.failures import passing_failure
from warehouse.storage.leftover import drop_above
from warehouse.storage.own_commits import own_commits
from warehouse.storage.session import jobs_run
from warehouse.storage.snapshot import missing_files
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.ingest.load_preview import ClassifiedRows
    from warehouse.planning.plan_record import Plan
    from warehouse.planning.steps import Step
    from warehouse.storage.entries import LogEntry
    from warehouse.storage.own_commits import Expected, TableProgress

__all__ = ["execute"]

_TRIES = 5
"""How often a step begins again, at most, because an outsider committed to its table."""


def execute(
    plan: Plan,
    root: Path,
    last: Epoch | None,
    *,
    spark: Callable[[], SparkSession],
    clock: Callable[[], int],
    observer: Observer,
    classified: Mapping[str, ClassifiedRows] | None = None,
) -> Epoch:
    """Execute a plan, or its remaining steps, and return the epoch that it makes.

    Parameters
    ----------
    plan
        The write-ahead record, already durable.
    root
        The warehouse's directory.
    last
        The newest epoch; None for the first.
    spark
        Opens the Spark session; called only when a step needs it.
    clock
        Returns the instant of commit in microseconds.
    observer
        Called at every :class:`Point`.
    classified
        Rows by stream that were read and classified before; they are used if the plan loads the same rows.

    Raises
    ------
    ForeignChangeError
        When a table was changed from outside; nothing is written then.

    """
    newest, last = last, plan.base or last
    expected = expected_commits(plan, newest)
    done = progress(root, expected)
    restore_archived(plan, root)
    sources = Sources(plan, root, spark, done, last, classified or {})
    heads = {path: table.head for path, table in done.items()}
    costs = _Costs()
    executed: list[int] = []
    restoring = max((number for number, step in enumerate(plan.steps) if isinstance(step, RestoreTable)), default=-1)
    restored: dict[str, int] = {}
    try:
        for number in range(len(plan.steps)):
            step = plan.steps[number]
            commit = done[step.path].commits.get(number)
            if commit is None:
                kind = kind_of(step)
                observer(Moment(Point.STEP_STARTED, plan.epoch, number, kind.describe(step)))
                entry = _run(sources, number, heads[step.path], expected, executed, observer)
                if entry is not None:
                    heads[step.path] = entry
                    executed.append(number)
                    observer(Moment(Point.STEP_COMMITTED, plan.epoch, number, kind.describe(step)))
            costs.record(f"{step.path}: {type(step).__struct_config__.tag}")
            if isinstance(step, RestoreTable):
                restored[step.path] = heads[step.path].version if commit is None else commit.version
            if number == restoring and (moved := with_restored_versions(plan, restored)) is not plan:
                sources.release()
                plan, last = moved, moved.base
                sources = Sources(plan, root, spark, done, last)
        if any(planned.first for planned in plan.nodes):
            prove_first_builds(sources, clock())
    finally:
        sources.release()
    observer(Moment(Point.STEPS_DONE, plan.epoch))
    done = progress(root, [replace(expected_table, hashed=executed) for expected_table in expected])
    _require_commits(root, plan, done, executed)
    for path, table in done.items():  # this process's commits are durable, or they would have failed
        made_before = [commit for number, commit in table.commits.items() if number not in executed]
        make_durable(root / path, [*made_before, *table.reversals])
    observer(Moment(Point.DURABLE, plan.epoch))
    counting = after_restoring(plan, done)
    outcome = Outcome(
        plan, last, counting, sources.counted, sources.left_out(), sources.failed.reasons, done, lacking=not sources.unstored
    )
    make_epoch = epoch_of if plan.erasure is None else erased_epoch
    heads = {path: table.head for path, table in done.items()}
    epoch = record_epoch(root, _with_foreign(make_epoch(outcome, tuple(costs.steps), clock()), done), newest, heads)
    observer(Moment(Point.EPOCH_WRITTEN, plan.epoch))
    _checkpoint_due(root, done)
    observer(Moment(Point.SUMMED_UP, plan.epoch))
    return epoch


class _Costs:
    """The seconds and Spark jobs of steps that follow one another."""

    def __init__(self) -> None:
        self.steps: list[StepSeconds] = []
        self._at, self._jobs = time.monotonic(), jobs_run()

    def record(self, step: str) -> None:
        """Record the seconds and jobs since the previous step as the cost of this step."""
        at, jobs = self._at, self._jobs
        self._at, self._jobs = time.monotonic(), jobs_run()
        self.steps.append(StepSeconds(step, self._at - at, self._jobs - jobs))


def _with_foreign(epoch: Epoch, done: Mapping[str, TableProgress]) -> Epoch:
    """Return an epoch that also records the outcome of outsiders' commits between its plan's commits."""
    records, messages = [], []
    for path, change in ((path, change) for path, table in done.items() for change in table.foreign):
        became: Literal["passed", "reversed"] = "passed" if change.harmless else "reversed"
        records.append(ForeignCommits(path, change.first, change.last, change.operations, became))
        outcome = "passed over" if change.harmless else "taken back by a commit that follows"
        messages.append(f'table "{path}": {change.message} from outside, while an update was at work: {outcome}')
    return replace(epoch, foreign=tuple(records), warnings=(*epoch.warnings, *messages))


def _run(
    sources: Sources, number: int, head: LogEntry, expected: Sequence[Expected], executed: Sequence[int], observer: Observer
) -> LogEntry | None:
    """Run a step on its table's newest entry and return the new entry; None if the step changed no row.

    It runs again if an outsider committed to its table in between and changed no row.

    Raises
    ------
    ForeignChangeError
        When the outsider changed rows, or outsiders do not stop; the next update finishes the plan.

    """
    root, step = sources.root, sources.plan.steps[number]
    if store_of(root).late_commits:
        return _run_once(sources, number, head, observer)
    for _ in range(_TRIES):
        try:
            entry = _run_once(sources, number, head, observer)
        except ForeignChangeError:
            own_expected = next(table for table in expected if table.path == step.path)
            new_head = own_commits(root / step.path, replace(own_expected, hashed=executed)).head
            if new_head == head:
                raise
            head = new_head
        else:
            if entry is not None:  # later steps read it: no outsider's checkpoint may replace it
                drop_above(root / step.path, sources.done[step.path].base_version)
            return entry
    return _run_once(sources, number, head, observer)


def _run_once(sources: Sources, number: int, head: LogEntry, observer: Observer) -> LogEntry | None:
    """Run a step once, without the files that turn out to be unreadable.

    Damage of a landing file may show only when all of its columns are read, or the file may be replaced before that. The file is
    then left out. A view whose step fails stands still.
    """
    plan, root, last, step = sources.plan, sources.root, sources.last, sources.plan.steps[number]
    kind, name = kind_of(step), step.stream
    if sources.failed.includes(name) and (sources.failed.follows_view(name) or not kind.runs_for_failed_views(plan)):
        return None
    while True:
        try:
            task = Task(
                plan, number, root, root / step.path, last.table(name) if last else None, head, sources.files, observer,
                source=sources.of(name) if kind.reads(step) else None,
                session=sources.spark() if kind.reads_stored else None,
            )  # fmt: skip
            done = kind.run(step, task)
        except UnreadableFilesError as error:
            sources.read_without(error.stream, error.files)
        except (*SPARK_FAILURES, pa.ArrowException) as error:  # the latter of rows that the driver joins
            if not kind.reads_stored and sources.leave_out_unreadable(name):
                continue
            _require_files(sources, step, error)
            if kind.reads_stored or plan.node(name) is None or passing_failure(error) is not None:
                raise
            sources.failed.add(name, error)
            return None
        else:
            if done.counts is not None:
                sources.counted.setdefault(name, done.counts)
            return done.entry


def _require_files(sources: Sources, step: Step, error: Exception) -> None:
    """Raise the error that names the warehouse's own files if a step failed because they are missing or damaged."""
    damaged = sources.files.damaged(error)
    if damaged is not None:
        raise damaged from error
    if isinstance(step, CreateTable):
        return
    table = sources.root / step.path
    missing = missing_files(table, step.base_version)
    if missing:
        raise MissingPartError(
            f"{table}: {len(missing)} file(s) that the last epoch names are not there ({', '.join(missing[:3])}); restore them "
            f"from a copy, then update again"
        )


def _checkpoint_due(root: Path, done: Mapping[str, TableProgress]) -> None:
    """Make the checkpoints that were due, at the versions that the epoch names."""
    for table in done.values():
        if checkpoint_due(root / table.path, table.base_version, table.version):
            checkpoint(root / table.path, table.version)


def _require_commits(root: Path, plan: Plan, done: Mapping[str, TableProgress], ran: Sequence[int]) -> None:
    """Raise an error if an epoch would lack a commit of this update."""
    for number in ran:
        path = plan.steps[number].path
        if number not in done[path].commits:
            raise MissingPartError(
                f"{root / path}: the commit of step {number} of epoch {plan.epoch} is not in the table's log, though it was "
                f"just made; the epoch was not written. Look for what else changes this directory, then update again"
            )
