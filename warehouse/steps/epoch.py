"""The epoch that an executed plan makes, read from the commits in the tables' logs.

All facts come from the plan, the last epoch and the commits, so an update that another process finished records the same epoch as
an update that ran through; only counts that no commit carries come from memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warehouse.catalog.declaration import reading_digest
from warehouse.epochs.records import Counts, Epoch, Loaded, Removed
from warehouse.ingest.batch_counts import BatchCounts
from warehouse.planning.plan_record import NodePlan
from warehouse.steps.batch_commits import left_out_of
from warehouse.steps.following import stopped_followers
from warehouse.steps.progress import moved_partitions, removed_files
from warehouse.steps.table_states import forgotten_state, node_state, side_tables_of_stopped, stopped_tables, stream_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.coalescing.choosing import Choice
    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Partition, StepSeconds, TableState
    from warehouse.ingest.files import LeftOut
    from warehouse.planning.plan_record import StreamPlan
    from warehouse.steps.outcome import Outcome

__all__ = ["epoch_of"]


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
    states.update({planned.name: stream_state(outcome, planned) for planned in plan.streams})
    states.update(stopped_tables(outcome))
    states.update(stopped_followers(plan, last))
    for name, state in _waiting_for_views(outcome):
        states.pop(name, None)
        states.update({} if state is None else {name: state})
    states.update({planned.name: node_state(outcome, planned) for planned in plan.nodes})
    states.update(side_tables_of_stopped(outcome, states))
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
    choices = {choice.table: choice for choice in (*(outcome.last.choices if outcome.last else ()), *outcome.plan.choices)}
    return tuple(choices.values())


def _lazy(outcome: Outcome) -> tuple[LazyTable, ...]:
    """The coalesced tables without files; only an update reads the declarations for them."""
    plan, last = outcome.plan, outcome.last
    return plan.lazy if (plan.cause == "update" and plan.erasure is None) or last is None else last.lazy


def _waiting_for_views(outcome: Outcome) -> Iterator[tuple[str, TableState | None]]:
    """The tables that follow a view which could not be maintained, as they were; None for a table that did not exist."""
    for planned in outcome.plan.streams:
        table = outcome.done.get(f"tables/{planned.name}")
        if planned.followed in outcome.failed_views and (table is None or not table.commits):
            yield planned.name, outcome.before(planned.name)


def _refused(outcome: Outcome) -> tuple[tuple[str, str], ...]:
    """Views that cannot be maintained, with the reason; only an update looks at all declared views."""
    if outcome.plan.refused or outcome.plan.cause == "update" or outcome.last is None:
        return outcome.plan.refused
    return outcome.last.refused


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
