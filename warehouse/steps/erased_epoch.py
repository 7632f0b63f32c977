"""The epoch that an erasure makes: the window time of the one before, other versions of the tables that were rewritten."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.epochs.records import Epoch, Erased, ErasedRows, Loaded, Removed, SideTable, StepSeconds, TableState
from warehouse.errors import NoEpochError
from warehouse.planning.steps import EraseRows
from warehouse.steps.progress import moved_partitions, moved_side, removed_files
from warehouse.steps.table_states import forgotten_state, node_state

if TYPE_CHECKING:
    from warehouse.steps.outcome import Outcome
    from warehouse.storage.own_commits import TableProgress

__all__ = ["erased_epoch"]


def erased_epoch(outcome: Outcome, seconds: tuple[StepSeconds, ...], now: int) -> Epoch:
    """Return the epoch that a plan with an erasure makes; ``now`` is the instant of commit in microseconds.

    Files that the last epoch left for another one stay left.
    """
    plan, last = outcome.plan, outcome.last
    if last is None or plan.erasure is None:
        raise NoEpochError("an erasure needs an epoch to start from; run `stream-wh update` first")
    states = {state.name: _state(outcome, state) for state in last.tables}
    forgotten = forgotten_state(plan, states)
    removed = {
        path: removed_files(table)
        for path, table in outcome.done.items()
    }
    return replace(
        last,
        number=plan.epoch,
        committed_at=now,
        tables=tuple(state for state in states.values() if state not in forgotten),
        files=tuple(
            Loaded(entry.stream, more=entry.more, k0=entry.k0, first=entry.first) for entry in last.files if entry.more
        ),
        counts=(),
        seconds=seconds,
        removed=(
            *(Removed(path, files) for path, files in removed.items() if files),
            *(Removed(path, (), whole=True) for state in forgotten for path in state.paths),
        ),
        warnings=plan.warnings,
        erased=Erased(
            table=plan.erasure.table,
            keys=len(plan.erasure.keys),
            rows=tuple(
                ErasedRows(step.path, step.rows, _rows_kept(outcome, number, step))
                for number, step in enumerate(plan.steps)
                if isinstance(step, EraseRows)
            ),
            views=plan.erasure.views,
        ),
    )


def _rows_kept(outcome: Outcome, number: int, step: EraseRows) -> int:
    commit = outcome.done[step.path].commits.get(number)
    return sum(file.rows for file in commit.added) if commit else 0


def _state(outcome: Outcome, state: TableState) -> TableState:
    node = outcome.plan.node(state.name)
    moved = _rows(outcome, state) if node is None else node_state(outcome, node)
    return replace(
        moved,
        deferred=_side(outcome, state.deferred),
        rejected=_side(outcome, state.rejected),
        restored=_side(outcome, state.restored),
    )


def _rows(outcome: Outcome, state: TableState) -> TableState:
    table = outcome.done.get(state.path)
    if table is None:
        return state
    commits = [table.commits[number] for number in sorted(table.commits)]
    # The ledger of the erased groups was erased with them; the rest gives the accuracy of the remaining rows.
    coalesced = None if state.coalesced is None else replace(state.coalesced, shed=None)
    return replace(
        state, version=table.version, partitions=moved_partitions(state.partitions, commits), coalesced=coalesced
    )


def _side(outcome: Outcome, side: SideTable | None) -> SideTable | None:
    table = outcome.done.get(side.path) if side else None
    if side is None or table is None:
        return side
    moved = moved_side(side, table, side.table_id)
    if side.waiting or moved is None:
        return moved
    return replace(moved, rows=_rows_left(outcome, table, side.rows))


def _rows_left(outcome: Outcome, table: TableProgress, before: int) -> int:
    """The number of rows that remain in a table without partitions, which is always rewritten whole."""
    rewritten = [number for number in table.commits if isinstance(outcome.plan.steps[number], EraseRows)]
    return sum(file.rows for number in rewritten for file in table.commits[number].added) if rewritten else before
