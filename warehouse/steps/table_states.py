"""The tables after an executed plan: the state of each, from the last epoch and the plan's commits, and those that are gone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.declaration import table_declaration
from warehouse.epochs.records import AgeMark, Stopped, TableState, ViewRecord
from warehouse.planning.former_layouts import remaining_layouts
from warehouse.planning.keeping import marks_after, with_mark
from warehouse.planning.steps import (
    CreateTable,
    DropOverdue,
    MoveDeferred,
    ReplaceTable,
    SetProperties,
    StoreRejected,
    StoreRestored,
)
from warehouse.steps.definitions import zero_row_file
from warehouse.steps.following import answers_record, coalesced_record, owed_record, synopsis_record
from warehouse.steps.progress import moved_partitions, moved_side
from warehouse.storage.tables import PROPERTIES
from warehouse.views.algebra import scanned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.epochs.records import SideTable
    from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan
    from warehouse.steps.outcome import Outcome
    from warehouse.storage.own_commits import TableProgress

__all__ = ["forgotten_state", "node_state", "side_tables_of_stopped", "stopped_tables", "stream_state"]


def stream_state(outcome: Outcome, planned: StreamPlan) -> TableState:
    """Return the table of a stream, or of what follows it, after the plan."""
    path = f"tables/{planned.name}"
    before, table = outcome.before(planned.name), outcome.done.get(path)
    created = next((s for s in outcome.plan.steps if isinstance(s, CreateTable) and s.path == path), None)
    if before is not None:
        version, table_id, partitions = before.version, before.table_id, before.partitions
    else:
        version, table_id, partitions = -1, created.table_id if created else "", ()
    if table is not None:
        version = table.version
        partitions = moved_partitions(partitions, [table.commits[number] for number in sorted(table.commits)])
    return TableState(
        name=planned.name,
        kind=_kind(planned),
        path=path,
        table_id=table_id,
        version=version,
        layout=planned.layout,
        declaration=planned.declaration,
        schema_file=zero_row_file(outcome.plan, planned.name, before),
        partitions=partitions,
        deferred=_side(outcome, MoveDeferred, planned.name, before.deferred if before else None),
        rejected=_side(outcome, StoreRejected, planned.name, before.rejected if before else None),
        newest=_newest(before, table),
        archive_of=planned.archive_of,
        synopsis=synopsis_record(
            plan=outcome.plan,
            planned=planned,
            last=outcome.last,
            commit=outcome.main_commit(planned.name),
            first=None if planned.synopsis is None else outcome.first_commit(planned.synopsis.synopsis.source),
            left_out=outcome.left_out,
            lacking=outcome.lacking,
        ),
        coalesced=coalesced_record(
            plan=outcome.plan,
            planned=planned,
            last=outcome.last,
            commit=outcome.main_commit(planned.name),
            first=None if planned.coalesced is None else outcome.first_commit(planned.coalesced.definition.source),
            left_out=outcome.left_out,
        ),
        answers=answers_record(planned, outcome.main_commit(planned.name)),
        former=remaining_layouts(before.former, partitions) if before else (),
        properties=_properties(outcome, planned.name, before),
        adopted=_adopted(before, table),
    )


def _kind(planned: StreamPlan) -> Literal["stream", "relation", "state", "archive", "aggregate", "coalesced"]:
    if planned.coalesced is not None:
        return "coalesced"
    if planned.lands:
        return "stream" if planned.declaration.op is None else "relation"
    return "archive" if planned.archive_of else "aggregate" if planned.answers else "state"


def node_state(outcome: Outcome, planned: NodePlan) -> TableState:
    """Return the table of a view's node after the plan."""
    path = f"tables/{planned.name}"
    before, table = outcome.before(planned.name), outcome.done.get(path)
    created = next((s for s in outcome.plan.steps if isinstance(s, CreateTable) and s.path == path), None)
    partitions = before.partitions if before else ()
    version = before.version if before else -1
    if table is not None:
        version = table.version
        partitions = moved_partitions(partitions, [table.commits[number] for number in sorted(table.commits)])
    restored = _side(outcome, StoreRestored, planned.name, before.restored if before else None)
    failed = outcome.failed_views.get(planned.name)
    if failed is not None and before is not None and before.view is not None and not _emptied(outcome, path):
        return replace(  # the table is as it was declared before
            before,
            version=version,
            partitions=partitions,
            view=replace(before.view, failed=failed),
            restored=restored,
            newest=_newest(before, table),
            properties=_properties(outcome, planned.name, before),
            adopted=_adopted(before, table),
        )
    return TableState(
        name=planned.name,
        kind="state" if planned.node.hidden else "view",
        path=path,
        table_id=before.table_id if before else (created.table_id if created else ""),
        version=version,
        layout=planned.layout,
        declaration=table_declaration(
            planned.columns, planned.node.search_key, label=planned.node.label, max_lifetime=planned.max_lifetime
        ),
        schema_file=planned.schema_file,
        partitions=partitions,
        view=ViewRecord(
            view=planned.view,
            sql=planned.sql,
            node=planned.node,
            short_lived=planned.short_lived,
            state=planned.state,
            spare_of=planned.spare_of,
            failed=failed,
            budget=None if planned.budget is None else planned.budget.budget,
            ledger=owed_record(planned, outcome.main_commit(planned.name)),
        ),
        restored=restored,
        newest=_newest(before, table),
        properties=_properties(outcome, planned.name, before),
        adopted=_adopted(before, table),
    )


def _emptied(outcome: Outcome, path: str) -> bool:
    """Whether the plan has emptied a table for its new declaration."""
    steps = outcome.plan.steps
    return any(isinstance(steps[number], ReplaceTable) for number in (outcome.done[path].commits if path in outcome.done else ()))


def _properties(outcome: Outcome, name: str, before: TableState | None) -> int:
    """The number of the set of properties that a table and its side tables have after the plan."""
    steps = (step for step in outcome.plan.steps if isinstance(step, SetProperties) and step.stream == name)
    return PROPERTIES if before is None or any(True for _ in steps) else before.properties


def _newest(before: TableState | None, table: TableProgress | None) -> int | None:
    """The largest ``_ts`` that the table ever held. Expired rows count: a stream of short lifetimes is not silent."""
    instants = [] if before is None or before.newest is None else [before.newest]
    commits = table.commits.values() if table else ()
    instants += [file.max_ts for commit in commits for file in commit.added if file.max_ts is not None]
    return max(instants, default=None)


def _side(
    outcome: Outcome, kind: type[MoveDeferred | StoreRejected | StoreRestored], name: str, before: SideTable | None
) -> SideTable | None:
    step = next((s for s in outcome.plan.steps if isinstance(s, kind) and s.stream == name), None)
    if step is not None:
        moved = moved_side(before, outcome.done[step.path], step.table_id)
    else:  # its columns or properties may have changed, and old rows may have left
        table = outcome.done.get(before.path) if before else None
        moved = before if before is None or table is None else moved_side(before, table, before.table_id)
    return moved if moved is None or kind is MoveDeferred else replace(moved, found=_found(outcome, name, before, moved))


def _found(outcome: Outcome, name: str, before: SideTable | None, moved: SideTable) -> tuple[AgeMark, ...]:
    """The ages of rejected rows, or of short-lived results, after the plan."""
    plan, keep = outcome.plan, dict(outcome.plan.keep).get(name)
    if keep is None or not moved.rows:
        return ()
    marks = moved.found
    if before is not None and before.rows and not marks:  # of an earlier build, or kept forever until now
        marks = with_mark((), plan.epoch - 1, plan.clock, keep)
    dropped = next((step for step in plan.steps if isinstance(step, DropOverdue) and step.path == moved.path), None)
    if dropped is not None:
        marks = marks_after(marks, dropped.through)
    table = outcome.done.get(moved.path)
    commits = table.commits.items() if table else ()
    arrived = any(commit.added and isinstance(plan.steps[number], StoreRejected | StoreRestored) for number, commit in commits)
    return with_mark(marks, plan.epoch, plan.clock, keep) if arrived else marks


def _adopted(before: TableState | None, table: TableProgress | None) -> tuple[str, ...]:
    """The files of outsiders that are still there."""
    removed = {name for commit in table.commits.values() for name in commit.removed} if table else set()
    return tuple(name for name in before.adopted if name not in removed) if before else ()


def stopped_tables(outcome: Outcome) -> dict[str, TableState]:
    """Return the unchanged states of stopped tables, with the slot from which they will continue."""
    last, states = outcome.last, {}
    for name, reason in outcome.plan.stopped:
        before = outcome.before(name)
        if before is None or last is None:
            continue
        remaining = next((entry for entry in last.files if entry.stream == name and entry.more), None)
        since = before.stopped or (Stopped("", remaining.k0, remaining.first) if remaining else Stopped("", last.slot))
        states[name] = replace(before, stopped=replace(since, reason=reason))
    return states


def side_tables_of_stopped(outcome: Outcome, states: Mapping[str, TableState]) -> dict[str, TableState]:
    """Return the tables that stand still while the windows move: rows of their side tables leave, and grow older."""
    plan, last = outcome.plan, outcome.last
    if last is None or plan.slot <= last.slot:
        return {}
    planned = {stream.name for stream in plan.streams} | {node.name for node in plan.nodes}
    return {
        name: replace(
            state,
            rejected=_side(outcome, StoreRejected, name, state.rejected),
            restored=_side(outcome, StoreRestored, name, state.restored),
        )
        for name, state in states.items()
        if name in dict(plan.keep).keys() - planned
    }


def forgotten_state(plan: Plan, states: Mapping[str, TableState]) -> list[TableState]:
    """Return the state of operators that a changed view does not have any more, and synopses without a reader.

    A plan may build only some of a view's nodes again; the state that these read, directly or not, is the view's still.
    A plan that moves a stream or view has all synopses of it that an aggregate reads.
    """
    planned = {node.name for node in plan.nodes}
    moved = {stream.name for stream in plan.streams} | planned if plan.slot > plan.previous_slot else set()
    forgotten = [
        state for state in states.values() if state.synopsis is not None and state.owner in moved and state.name not in moved
    ]
    for view in {node.view for node in plan.nodes if node.first}:
        needed = planned | _read_by(view, states)
        for state in states.values():
            if state.kind != "state" or state.view is None or state.view.view != view or state.name in needed:
                continue
            spare_of = state.view.spare_of
            if spare_of is None or spare_of in planned or spare_of not in needed:
                forgotten.append(state)
    return forgotten


def _read_by(view: str, states: Mapping[str, TableState]) -> set[str]:
    """Return a view's own table and the tables of views that its nodes read."""
    names: set[str] = set()
    todo = [view]
    while todo:
        state = states.get(todo.pop())
        if state is not None and state.view is not None and state.name not in names:
            names.add(state.name)
            todo += scanned(state.view.node.operator)
    return names
