"""Predicts whether each step of a plan runs in the driver or by Spark jobs, from the numbers of rows and bytes.

``plan`` shows it. The record of an epoch has the actual number of jobs of each step. Spark may execute a step against the
prediction because of an expression that only Spark computes, a column of a type that only Spark reads, or rows that match many
others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.catalog.declaration import stream_of
from warehouse.ingest.collected_rows import writes_in_driver
from warehouse.ingest.size_estimates import small_enough_for_driver
from warehouse.limits import limits
from warehouse.planning.steps import MoveWindow, RewriteBuckets, RewriteCells
from warehouse.views.algebra import scanned, tables_read

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan
    from warehouse.planning.steps import Step
    from warehouse.steps.kind import Kind, Way

__all__ = ["expected_ways"]


def expected_ways(plan: Plan, last: Epoch | None, root: Path, kinds: Sequence[Kind[Any]]) -> tuple[Way | None, ...]:
    """Return for each step whether the driver or Spark is expected to make its rows; None for a step that writes no rows.

    Parameters
    ----------
    plan, last, root
        The plan, the epoch that it starts from, and the directory of the warehouse.
    kinds
        The kind of each step.

    """
    few = {planned.name: _few_arrive(planned, plan, last) for planned in plan.streams if planned.lands}
    for planned in plan.streams:
        if not planned.lands:
            few[planned.name] = _few_follow(planned, last, few)
    for node in plan.nodes:  # each table comes after the tables that it reads
        few[node.name] = _few_change(node, last, few)
    written = {planned.name for planned in plan.streams if planned.lands and _is_written(planned, last, root)}
    return tuple(
        "driver" if step.stream in written and _writes(step, kind, last) else _way(step, kind, last, few)
        for step, kind in zip(plan.steps, kinds, strict=True)
    )


def _writes(step: Step, kind: Kind[Any], last: Epoch | None) -> bool:
    """Whether the driver writes the rows of a step, of a stream whose rows it is expected to write."""
    if not isinstance(step, MoveWindow | RewriteCells) or step.former.aged or step.former.moved:
        return False
    state = last.table(step.stream) if last else None
    return state is None or kind.rewritten_rows(step, state) <= limits().written_rows


def _is_written(planned: StreamPlan, last: Epoch | None, root: Path) -> bool:
    """Whether the driver is expected to write the rows of a stream that Spark classifies, however few they are."""
    state = last.table(planned.name) if last else None
    waiting = sum(slot.rows for slot in state.deferred.waiting) if state is not None and state.deferred is not None else 0
    files = [file for group in planned.inputs for file in group.files]
    return bool(files) and writes_in_driver(stream_of(planned.declaration, planned.name, root), files, waiting)


def _way(step: Step, kind: Kind[Any], last: Epoch | None, few: dict[str, bool]) -> Way | None:
    if not (kind.writes_rows or kind.reports_batch):
        return "spark" if kind.reads_stored else None
    state = last.table(step.stream) if last else None
    if kind.by_spark:
        return "spark"
    if isinstance(step, RewriteBuckets):
        parts = state.partitions if state is not None else ()
        small = limits().rewrites_in_driver(sum(part.rows for part in parts))
        return "driver" if few[step.stream] and small else "spark"
    rewritten = kind.rewritten_rows(step, state) if state is not None else 0
    return "driver" if few[step.stream] and rewritten <= limits().driver_rows else "spark"


def _few_arrive(planned: StreamPlan, plan: Plan, last: Epoch | None) -> bool:
    """Whether a stream's files, and the waiting rows whose slot has come, surely hold few rows."""
    state = last.table(planned.name) if last else None
    waiting = state.deferred.waiting if state is not None and state.deferred is not None else ()
    due_rows = sum(slot.rows for slot in waiting if slot.slot <= plan.slot)
    files = [file for group in planned.inputs for file in group.files]
    return (not files and not due_rows) or (
        due_rows <= limits().driver_rows and small_enough_for_driver(planned.declaration.format, files)
    )


def _few_follow(planned: StreamPlan, last: Epoch | None, few: dict[str, bool]) -> bool:
    """Whether few rows come to a table that follows a stream."""
    if planned.archive_of is not None:
        return False
    own = planned.synopsis or planned.coalesced
    if own is None:
        return True
    state = last.table(planned.name) if last else None
    small = planned.coalesced is None or _is_small(state)
    return not own.history and small and few.get(planned.followed or "", True)


def _few_change(node: NodePlan, last: Epoch | None, few: dict[str, bool]) -> bool:
    """Whether few rows change a node; a first build reads all live rows."""
    if node.budget is not None:  # pairs of a budget are counted by Spark
        return False
    inputs = set(scanned(node.node.operator))
    if node.first:
        return all(few.get(name, True) and _is_small(last.table(name) if last else None) for name in inputs)
    looked_up = {name for name in tables_read(node.node.operator) if name not in inputs}
    states = [last.table(name) if last else None for name in looked_up]
    return all(few.get(name, True) for name in inputs) and all(map(_is_small, states))


def _is_small(state: TableState | None) -> bool:
    """Whether the driver reads all rows of a table sooner than a job of Spark's would."""
    parts = state.partitions if state is not None else ()
    return limits().in_driver(sum(part.rows for part in parts), sum(part.bytes for part in parts))
