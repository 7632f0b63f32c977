"""From a plan to its epoch: records it, executes it, publishes the epoch; finishes plans of earlier processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from warehouse.catalog.drift import compare
from warehouse.epochs.journal import newest_epoch, numbers, plan_path, read_record, record_epoch, write_record
from warehouse.epochs.points import Point
from warehouse.epochs.records import Epoch, Loaded
from warehouse.errors import ChangedDeclarationError, ForeignChangeError, RecordDamagedError, UsageError
from warehouse.objects.path import directories_in
from warehouse.operations.damaged_epoch import set_aside_damaged
from warehouse.operations.giving_up import give_up
from warehouse.operations.publication import publish, publish_if_behind
from warehouse.operations.standing_still import stopped_of
from warehouse.planning.plan_record import Plan
from warehouse.planning.steps import CreateTable, MoveDeferred, MoveRelation, ReplaceTable
from warehouse.steps.foreign import settle
from warehouse.storage.deltalog import commits_after
from warehouse.storage.tables import FOLDERS
from warehouse.time import format_instant
from warehouse.views.algebra import tables_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.operations.context import WriteContext
    from warehouse.operations.erasure.receipt import Receipt
    from warehouse.steps.foreign import StoppedTable

__all__ = [
    "CurrentState",
    "begin",
    "carry_out_erasure",
    "finish",
    "recorded_plan",
    "require_unchanged_declarations",
    "settle_foreign",
    "write_epoch",
]


@dataclass(frozen=True)
class CurrentState:
    """The state from which a verb starts, after unfinished plans were completed.

    Parameters
    ----------
    last
        The newest epoch; None before the first.
    finished
        The epochs that were completed just now.
    stopped
        The directories that outsiders changed; no verb may write to them.
    notices
        Warnings about foreign commits that stop no table.

    """

    last: Epoch | None
    finished: tuple[Epoch, ...] = ()
    stopped: Mapping[str, StoppedTable] = field(default_factory=dict)
    notices: tuple[str, ...] = ()


# --- one plan ---


def begin(context: WriteContext, current: CurrentState, plan: Plan) -> Epoch:
    """Record a plan, then execute it; the caller holds the writer lock.

    Raises
    ------
    ForeignChangeError
        When outsiders changed a table that it writes.
    UsageError
        When the plan would build on a table that stands still, or create a table whose files still exist.

    """
    _require_untouched(plan, current)
    _require_executable(context, plan)
    context.observe(Point.PLANNED, plan.epoch, f"window time {format_instant(plan.window_time)}")
    write_record(plan_path(context.root, plan.epoch), plan)
    context.observe(Point.PLAN_WRITTEN, plan.epoch)
    return _execute(context, plan, current.last)


def _require_untouched(plan: Plan, current: CurrentState) -> None:
    """Refuse to write to a table that outsiders changed; verbs other than update also refuse a table of an earlier slot."""
    for step in plan.steps:
        changed = current.stopped.get(step.path)
        if changed is not None:
            raise changed.error
    if plan.cause == "update" and plan.erasure is None:
        return
    reads = {table for node in plan.nodes for table in tables_read(node.node.operator)}
    for name, reason in (stopped_of(current.last) if current.last else {}).items():
        if name in reads or any(step.stream == name for step in plan.steps):
            raise UsageError(f'table "{name}" stands still: {reason}')


def _require_executable(context: WriteContext, plan: Plan) -> None:
    """Raise errors that would stop the plan forever before it is recorded, since a recorded plan is always finished."""
    root, catalog = context.root, context.catalog
    for step in plan.steps:
        if isinstance(step, CreateTable) and (root / step.path / "_delta_log").exists():
            raise UsageError(
                f'a table "{step.stream}" was dropped, and epochs that are still readable have its files in '
                f"{root / step.path}; lower `retain` and run `stream-wh vacuum`, or choose another name"
            )
    from warehouse.ingest.expression_checks import (  # noqa: PLC0415 - planning alone needs no Spark
        check_condition,
        check_expressions,
        needs_no_check,
    )

    kinds = CreateTable | ReplaceTable | MoveRelation | MoveDeferred
    # Steps for waiting rows are planned wherever rows may arrive; without such a step, no expression is evaluated.
    receiving = {step.stream for step in plan.steps if isinstance(step, kinds)}
    for stream in catalog.sources:
        if stream.name in receiving and not needs_no_check(stream):
            check_expressions(context.writing_spark(), stream)
    followed = {step.stream for step in plan.steps} if catalog.aggregates else set()
    for aggregate in catalog.aggregates:
        definition = aggregate.definition
        source = plan.node(definition.source) or catalog.stream(definition.source)
        if source is None or aggregate.name not in followed or not receiving:
            continue
        check = partial(check_condition, name=source.name, columns=source.columns)
        if definition.where is not None:
            check(context.writing_spark(), key=f"aggregates.{aggregate.name}.where", sql=definition.where)
        for name, sql in definition.computed:
            null_check = f"CAST(({sql}) AS {dict(definition.group_by)[name]}) IS NULL"
            check(context.writing_spark(), key=f"aggregates.{aggregate.name}.group_by", sql=null_check)


def _execute(context: WriteContext, plan: Plan, last: Epoch | None) -> Epoch:
    from warehouse.steps.execute import execute  # noqa: PLC0415 - planning alone needs no Spark

    classified, context.classified = context.classified, {}
    epoch = execute(
        plan, context.root, last, spark=context.writing_spark, clock=context.clock, observer=context.observer,
        classified=classified,
    )  # fmt: skip
    publish(context, epoch)
    return epoch


def write_epoch(context: WriteContext, last: Epoch, files: Sequence[Loaded], **changes: object) -> Epoch:
    """Write an epoch at the same window time without a plan; files that the last epoch left for a later epoch stay left."""
    left_files = [Loaded(entry.stream, more=entry.more, k0=entry.k0, first=entry.first) for entry in last.files if entry.more]
    blank = {
        "counts": (), "seconds": (), "removed": (), "warnings": (), "foreign": (),
        "starts_from": None, "planned_at": 0, "erased": None,
    }  # fmt: skip
    identity = {"number": last.number + 1, "committed_at": context.clock(), "files": (*files, *left_files)}
    changed = replace(last, **{**blank, **identity, **changes})  # type: ignore[arg-type]
    epoch = record_epoch(context.root, changed, last, {})
    publish(context, epoch)
    return epoch


# --- unfinished plans ---


def finish(context: WriteContext) -> CurrentState:
    """Finish the plan or erasure that an earlier process began, and judge outsiders' commits since."""
    root = context.root
    set_aside_damaged(root)
    last = newest_epoch(root)
    plan = _unfinished(root, last)
    finished: tuple[Epoch, ...] = ()
    if plan is not None:
        try:
            last = _execute(context, plan, last)
            finished = (last,)
        except ForeignChangeError:
            if not give_up(root, plan, last, at=context.clock()):
                raise
    carry_out_erasure(context, last)
    settled = settle_foreign(context, last)
    return replace(settled, finished=(*finished, *settled.finished))


def settle_foreign(context: WriteContext, last: Epoch | None) -> CurrentState:
    """Judge outsiders' commits since an epoch.

    Commits that changed no row are adopted by a new epoch (in ``finished``); all others stop their table.
    """
    if last is None:
        return CurrentState(None)
    settled = settle(context.root, last, at=context.clock())
    stopped = {stopped_table.path: stopped_table for stopped_table in settled.stopped}
    if settled.tables is None:
        return CurrentState(last, (), stopped, tuple(settled.warnings))
    changes = {"tables": settled.tables, "foreign": settled.foreign, "removed": settled.removed, "warnings": settled.warnings}
    adopted = write_epoch(context, last, (), cause="adopt", **changes)
    return CurrentState(adopted, (adopted,), stopped)


def carry_out_erasure(context: WriteContext, newest: Epoch | None) -> Receipt | None:
    """Finish an erasure that made the newest epoch, and return its receipt; None: there is no such erasure."""
    if newest is None or newest.erased is None:
        return None
    from warehouse.operations.erasure.completion import complete, is_open  # noqa: PLC0415 - now and then

    if not is_open(context.root, newest):
        return None
    publish_if_behind(context, newest)
    return complete(
        context.catalog, newest, now=context.clock(), observer=context.observer, spark=context.writing_spark
    )


def recorded_plan(root: Path, last: Epoch | None) -> Plan | None:
    """Return the plan that was recorded above an epoch; None if there is no plan."""
    number = 0 if last is None else last.number + 1
    return read_record(plan_path(root, number), Plan) if number in numbers(root, "plan") else None


def _unfinished(root: Path, last: Epoch | None) -> Plan | None:
    try:
        return recorded_plan(root, last)
    except RecordDamagedError:
        if any(_tables_above(root, last)):
            raise
        plan_path(root, 0 if last is None else last.number + 1).unlink()
        return None


def _tables_above(root: Path, last: Epoch | None) -> Iterator[bool]:
    """Whether some table has commits above the last epoch: then a damaged plan cannot be rebuilt."""
    versions = {}
    for state in last.tables if last else ():
        versions[state.path] = state.version
        versions.update({side.path: side.version for side in state.sides})
    for kind in FOLDERS:
        for table in directories_in(root / kind):
            yield any(True for _ in commits_after(table, versions.get(f"{kind}/{table.name}", -1)))


def require_unchanged_declarations(catalog: Catalog, last: Epoch | None) -> tuple[str, ...]:
    """Return the warnings about the declarations, compared with the tables of an epoch.

    Raises
    ------
    ChangedDeclarationError
        When a declaration differs in a way that the rows on disk do not allow.

    """
    if last is None:
        return catalog.warnings
    drift = compare(catalog, last)
    if drift.problems:
        raise ChangedDeclarationError(drift.problems)
    return (*catalog.warnings, *drift.notices, *drift.warnings)
