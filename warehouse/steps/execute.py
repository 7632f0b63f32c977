"""The interpreter that executes a plan: each step one commit, then the epoch.

Whoever runs a plan, for the first time or after a crash, runs it here: steps that the tables' logs show as done are
passed over, the others are executed with the plan's own declarations and clock instant, every table read at the version
of the last epoch. Only then is the epoch written.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_path, write_record
from warehouse.epochs.points import Moment, Observer, Point
from warehouse.epochs.records import Epoch, StepSeconds
from warehouse.errors import MissingPartError
from warehouse.planning.explain import describe
from warehouse.planning.restoring import settled
from warehouse.planning.steps import RestoreTable
from warehouse.steps.erased_epoch import erased_epoch
from warehouse.steps.outcome import Outcome, epoch_of
from warehouse.steps.pinned import with_entries
from warehouse.steps.progress import TableProgress, after_restoring, progress
from warehouse.steps.relanding import put_back_planned
from warehouse.steps.supply import Supply
from warehouse.steps.view_proof import prove_first_builds
from warehouse.steps.work import Work
from warehouse.storage.checkpoints import checkpoint, checkpoint_due
from warehouse.storage.deltalog import make_durable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.planning.steps import Plan

__all__ = ["execute"]


def execute(
    plan: Plan,
    root: Path,
    last: Epoch | None,
    *,
    spark: Callable[[], SparkSession],
    clock: Callable[[], int],
    observer: Observer,
) -> Epoch:
    """Execute a plan, or what is left of it, and return the epoch it makes.

    Parameters
    ----------
    plan
        The write-ahead record, already durable.
    root
        The warehouse's directory.
    last
        The newest epoch; none for the first.
    spark
        Gives the Spark session; called only when a step needs it.
    clock
        Gives the instant of commit in microseconds.
    observer
        Called at every :class:`Point`.

    Raises
    ------
    ForeignChangeError
        When a table was changed from outside; nothing is written then.

    """
    newest, last = last, plan.base or last
    done = progress(root, plan, newest)
    put_back_planned(plan, root)
    supply = Supply(plan, root, spark, done, last)
    work = Work(plan, root, last, done, supply)
    seconds: list[StepSeconds] = []
    ran: list[int] = []
    restoring = max((number for number, step in enumerate(plan.steps) if isinstance(step, RestoreTable)), default=-1)
    restored: dict[str, int] = {}
    try:
        for number in range(len(plan.steps)):
            step = plan.steps[number]
            started = time.monotonic()
            if number not in work.done[step.path].commits:
                observer(Moment(Point.STEP_STARTED, plan.epoch, number, describe(step)))
                committed = work.run(number, step, observer)
                if committed:
                    ran.append(number)
                    observer(Moment(Point.STEP_COMMITTED, plan.epoch, number, describe(step)))
            seconds.append(StepSeconds(f"{step.path}: {type(step).__struct_config__.tag}", time.monotonic() - started))
            if isinstance(step, RestoreTable):
                earlier = work.done[step.path].commits.get(number)
                restored[step.path] = work.heads[step.path].version if earlier is None else earlier.version
            if number == restoring and (moved := settled(plan, restored)) is not plan:
                supply.release()
                plan, last = moved, moved.base
                supply = Supply(plan, root, spark, done, last)
                work = Work(plan, root, last, done, supply, work.heads)
        if any(planned.first for planned in plan.nodes):
            prove_first_builds(plan, root, last, supply, clock())
    finally:
        supply.release()
    observer(Moment(Point.STEPS_DONE, plan.epoch))
    done = progress(root, plan, newest)
    _require_commits(root, plan, done, ran)
    for table in done.values():  # what this process committed is durable, or the commit would have failed
        make_durable(root / table.path, [commit for number, commit in table.commits.items() if number not in ran])
    observer(Moment(Point.DURABLE, plan.epoch))
    counting = after_restoring(plan, done)
    outcome = Outcome(plan, last, counting, supply.counted, supply.failed(), supply.given_up, logged=done)
    made = epoch_of if plan.erasure is None else erased_epoch
    heads = {path: table.head for path, table in done.items()}
    epoch = with_entries(root, made(outcome, tuple(seconds), clock()), newest, heads)
    write_record(epoch_path(root, plan.epoch), epoch)
    observer(Moment(Point.EPOCH_WRITTEN, plan.epoch))
    _checkpoint_due(root, done)
    observer(Moment(Point.SUMMED_UP, plan.epoch))
    return epoch


def _checkpoint_due(root: Path, done: Mapping[str, TableProgress]) -> None:
    """Make the checkpoints that were due, at the versions that the epoch names."""
    for table in done.values():
        if checkpoint_due(table.base_version, table.version):
            checkpoint(root / table.path, table.version)


def _require_commits(root: Path, plan: Plan, done: Mapping[str, TableProgress], ran: Sequence[int]) -> None:
    """Never write an epoch that lacks what this update has committed."""
    for number in ran:
        path = plan.steps[number].path
        if number not in done[path].commits:
            raise MissingPartError(
                f"{root / path}: the commit of step {number} of epoch {plan.epoch} is not in the table's log, though it was "
                f"just made; the epoch was not written. Look for what else changes this directory, then update again"
            )
