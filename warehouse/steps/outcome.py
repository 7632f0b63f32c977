"""The epoch that an executed plan makes, read from the commits in the tables' logs.

All facts come from the plan, the last epoch and the commits, so an update that another process finished records the same epoch as
one that ran through; only counts that no commit carries come from memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from warehouse.catalog.declaration import reading_digest, table_declaration
from warehouse.epochs.records import (
    AgeMark,
    Counts,
    Epoch,
    Loaded,
    Removed,
    StepSeconds,
    Stopped,
    TableState,
    ViewRecord,
)
from warehouse.ingest.batch_counts import BatchCounts
from warehouse.ingest.files import LeftOut
from warehouse.planning.former_layouts import still_there
from warehouse.planning.keeping import noted, younger
from warehouse.planning.steps import (
    CreateTable,
    DropOverdue,
    MoveDeferred,
    NodePlan,
    ReplaceTable,
    SetProperties,
    StoreRejected,
    StoreRestored,
)
from warehouse.steps.definitions import zero_row_file
from warehouse.steps.following import answers_record, coalesced_record, owed_record, stopped_followers, synopsis_record
from warehouse.steps.forgotten import forgotten_state
from warehouse.steps.progress import moved_partitions, moved_side, removed_files
from warehouse.steps.registry import kind_of
from warehouse.storage.tables import PROPERTIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.coalescing.choosing import Choice
    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Partition, SideTable
    from warehouse.planning.steps import Plan, StreamPlan
    from warehouse.storage.deltalog import Commit
    from warehouse.storage.own_commits import TableProgress

__all__ = ["Outcome", "epoch_of", "first_batch_commit", "left_out_of", "node_state"]


@dataclass(frozen=True)
class Outcome:
    """A plan, the epoch from which it started, the commits in its tables' logs, and the counts and unread files of its batches.

    ``last`` is the plan's base, if it has one. ``logged`` are all commits, ``done`` the commits after the base. ``lacking`` says
    whether results of views lack files that can no longer be read.
    """

    plan: Plan
    last: Epoch | None
    done: Mapping[str, TableProgress]
    counted: Mapping[str, BatchCounts]
    left_out: Mapping[str, tuple[LeftOut, ...]]
    given_up: Mapping[str, str] = field(default_factory=dict)
    logged: Mapping[str, TableProgress] = field(default_factory=dict)
    lacking: bool = False

    def main_commit(self, name: str) -> Commit | None:
        """Return the commit of a stream's main step; None when it changed no row."""
        for number, step in enumerate(self.plan.steps):
            if kind_of(step).writes_rows and step.stream == name:
                return self.done[step.path].commits.get(number)
        return None

    def first_commit(self, name: str) -> Commit | None:
        """Return the first commit with rows of a stream's batch; its metadata has the counts of the batch."""
        return first_batch_commit(self.plan, self.done, name)

    def before(self, name: str) -> TableState | None:
        """Return a table's state at the last epoch."""
        return self.last.table(name) if self.last else None


def epoch_of(outcome: Outcome, seconds: tuple[StepSeconds, ...], now: int) -> Epoch:
    """Return the epoch that an executed plan makes; ``now`` is the instant of commit in microseconds."""
    plan, last = outcome.plan, outcome.last
    states = {state.name: state for state in (last.tables if last else ())}
    if last is not None and (plan.slot > last.slot or plan.stopped or (plan.cause == "update" and plan.refused)):
        # A plan that moves the window has every declared stream, and every view that can be maintained.
        refused, moves = dict(plan.refused), plan.slot > last.slot
        states = {
            name: replace(state, view=replace(state.view, failed=refused[state.owner]))
            if state.view is not None and state.owner in refused
            else replace(state, declared=state.declared and not moves, stopped=None if moves else state.stopped)
            for name, state in states.items()
        }
    states.update({planned.name: _table_state(outcome, planned) for planned in plan.streams})
    states.update(_stopped_tables(outcome))
    states.update(stopped_followers(plan, last))
    for name, state in _waiting_for_views(outcome):
        states.pop(name, None)
        states.update({} if state is None else {name: state})
    states.update({planned.name: node_state(outcome, planned) for planned in plan.nodes})
    states.update(_side_tables_of_stopped(outcome, states))
    forgotten = forgotten_state(plan, states)
    removed = {path: removed_files(table) for path, table in (outcome.logged or outcome.done).items()}
    return Epoch(
        number=plan.epoch,
        window_time=plan.window_time,
        slot=plan.slot,
        previous_slot=plan.previous_slot,
        anchor=plan.anchor,
        update_interval=plan.update_interval,
        committed_at=now,
        catalog_digest=plan.catalog_digest,
        tables=tuple(state for state in states.values() if state not in forgotten),
        files=(*plan.known, *(_loaded(outcome, planned) for planned in plan.streams if planned.lands)),
        counts=(
            *(_counts(outcome, planned) for planned in plan.streams),
            *(_counts(outcome, planned) for planned in plan.nodes),
        ),
        seconds=seconds,
        removed=(
            *(Removed(path, files) for path, files in removed.items() if files),
            *(Removed(path, (), whole=True) for state in forgotten for path in state.paths),
        ),
        warnings=plan.warnings,
        log_retain=plan.retain,
        cause=plan.cause,
        starts_from=plan.starts_from,
        planned_at=plan.clock,
        declared=plan.declared,
        refused=tuple((view, why) for view, why in _refused(outcome) if view not in states),
        lazy=_lazy(outcome),
        choices=_choices(outcome),
    )


def _choices(outcome: Outcome) -> tuple[Choice, ...]:
    """The decisions about coalesced tables, of this plan or before."""
    found = {each.table: each for each in (*(outcome.last.choices if outcome.last else ()), *outcome.plan.choices)}
    return tuple(found.values())


def _lazy(outcome: Outcome) -> tuple[LazyTable, ...]:
    """The coalesced tables without files; only an update reads the declarations for them."""
    plan, last = outcome.plan, outcome.last
    return plan.lazy if (plan.cause == "update" and plan.erasure is None) or last is None else last.lazy


def _waiting_for_views(outcome: Outcome) -> Iterator[tuple[str, TableState | None]]:
    """The tables that follow a view which could not be maintained, as they were; None for one that did not exist."""
    for planned in outcome.plan.streams:
        table = outcome.done.get(f"tables/{planned.name}")
        if planned.followed in outcome.given_up and (table is None or not table.commits):
            yield planned.name, outcome.before(planned.name)


def _refused(outcome: Outcome) -> tuple[tuple[str, str], ...]:
    """Views that cannot be maintained, with the reason; only an update looks at all declared ones."""
    if outcome.plan.refused or outcome.plan.cause == "update" or outcome.last is None:
        return outcome.plan.refused
    return outcome.last.refused


def _stopped_tables(outcome: Outcome) -> dict[str, TableState]:
    """The unchanged states of stopped tables, with the slot from which they will continue."""
    last, found = outcome.last, {}
    for name, reason in outcome.plan.stopped:
        before = outcome.before(name)
        if before is None or last is None:
            continue
        left = next((entry for entry in last.files if entry.stream == name and entry.more), None)
        since = before.stopped or (Stopped("", left.k0, left.first) if left else Stopped("", last.slot))
        found[name] = replace(before, stopped=replace(since, reason=reason))
    return found


def _side_tables_of_stopped(outcome: Outcome, states: Mapping[str, TableState]) -> dict[str, TableState]:
    """The tables that stand still while the windows move: rows of their side tables leave, and grow older."""
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


def _adopted(before: TableState | None, table: TableProgress | None) -> tuple[str, ...]:
    """The files of outsiders that are still there."""
    gone = {name for commit in table.commits.values() for name in commit.removed} if table else set()
    return tuple(name for name in before.adopted if name not in gone) if before else ()


def _table_state(outcome: Outcome, planned: StreamPlan) -> TableState:
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
        former=still_there(before.former, partitions) if before else (),
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
    failed = outcome.given_up.get(planned.name)
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
        marks = noted((), plan.epoch - 1, plan.clock, keep)
    dropped = next((step for step in plan.steps if isinstance(step, DropOverdue) and step.path == moved.path), None)
    if dropped is not None:
        marks = younger(marks, dropped.through)
    table = outcome.done.get(moved.path)
    commits = table.commits.items() if table else ()
    arrived = any(commit.added and isinstance(plan.steps[number], StoreRejected | StoreRestored) for number, commit in commits)
    return noted(marks, plan.epoch, plan.clock, keep) if arrived else marks


def first_batch_commit(plan: Plan, done: Mapping[str, TableProgress], name: str) -> Commit | None:
    """Return the first commit of a plan that took rows of a stream's batch; None before there is one."""
    for number, step in enumerate(plan.steps):
        if step.stream == name and (kind_of(step).writes_rows or kind_of(step).of_batch):
            commit = done[step.path].commits.get(number)
            if commit is not None:
                return commit
    return None


def left_out_of(commit: Commit, planned: StreamPlan) -> tuple[LeftOut, ...]:
    """Return the files that a commit's batch was read without."""
    files = {file.path: file for group in planned.inputs for file in group.files}
    return tuple(LeftOut(files[path], reason, message) for path, reason, message in commit.metadata.get("left_out", ()))


def _left_out(outcome: Outcome, planned: StreamPlan) -> tuple[LeftOut, ...]:
    first = outcome.first_commit(planned.name)
    return outcome.left_out.get(planned.name, ()) if first is None else left_out_of(first, planned)


def _loaded(outcome: Outcome, planned: StreamPlan) -> Loaded:
    left_out = _left_out(outcome, planned)
    reading = reading_digest(planned.declaration)
    skipped = {entry.file.path for entry in left_out}
    return Loaded(
        stream=planned.name,
        loaded=tuple(file for group in planned.inputs for file in group.files if file.path not in skipped),
        left_out=tuple(replace(entry, reading=reading) for entry in (*planned.left_out, *left_out)),
        gone=planned.gone,
        more=planned.more,
        k0=planned.k0,
        first=planned.first,
    )


def _counts(outcome: Outcome, planned: StreamPlan | NodePlan) -> Counts:
    name = planned.name
    main, first = outcome.main_commit(name), outcome.first_commit(name)
    metadata: Mapping[str, Any] = main.metadata if main else {}
    counted = first.metadata.get("counts") if first else None
    rows: dict[str, int] = dict(counted or outcome.counted.get(name, BatchCounts()).reported())
    before, table = outcome.before(name), outcome.done.get(f"tables/{name}")
    old = before.partitions if before else ()
    new = moved_partitions(old, table.commits.values()) if table else old
    gained: dict[int, int] = dict(metadata.get("gained", ()))
    # A table that follows a stream names the stream's files only.
    loaded = () if isinstance(planned, NodePlan) or not planned.lands else _loaded(outcome, planned).loaded
    lost = _by_cell(old)
    for cell, count in gained.items():
        lost[cell] = lost.get(cell, 0) + count
    for cell, count in _by_cell(new).items():
        lost[cell] = lost.get(cell, 0) - count
    return Counts(
        stream=name,
        files=len(loaded),
        bytes_read=sum(file.size for file in loaded),
        lost=0 if isinstance(planned, NodePlan) else _never_stored(outcome, name, rows),
        expired=sum(lost.values()),
        rewritten=int(metadata.get("rewritten", 0)),
        planned=int(metadata.get("planned", 0)),
        changed=len({cell for cell, count in lost.items() if count} | set(gained)),
        sealed=int(metadata.get("sealed", 0)),
        files_added=len(main.added) if main else 0,
        files_removed=len(main.removed) if main else 0,
        bytes_written=sum(file.size for file in main.added) if main else 0,
        **rows,
    )


def _by_cell(partitions: Sequence[Partition]) -> dict[int, int]:
    rows: dict[int, int] = {}
    for part in partitions:
        rows[part.sub_index] = rows.get(part.sub_index, 0) + part.rows
    return rows


def _never_stored(outcome: Outcome, name: str, rows: Mapping[str, int]) -> int:
    """Rows that were only in a file which vanished between two steps of an interrupted update."""
    lost = 0
    for role in ("deferred", "rejected"):
        table = outcome.done.get(f"{role}/{name}")
        stored = sum(int(commit.metadata.get("rows", 0)) for commit in table.commits.values()) if table else 0
        lost += max(0, rows.get(role, 0) - stored)
    return lost


