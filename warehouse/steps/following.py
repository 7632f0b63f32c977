"""The records of an executed plan for tables that follow a stream (synopses, answers, coalesced), and ledgers of views."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from warehouse.epochs.following import AnswersRecord, CoalescedRecord, ShedRecord, SynopsisRecord
from warehouse.promise.units import Ledger
from warehouse.steps.answers_source import ANSWERED
from warehouse.steps.node_source import OWED
from warehouse.steps.shedding import SHED
from warehouse.steps.synopsis_source import full_from, lacks_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.files import LeftOut
    from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan
    from warehouse.storage.deltalog import Commit

__all__ = ["answers_record", "coalesced_record", "owed_record", "stopped_followers", "synopsis_record"]


def synopsis_record(
    *,
    plan: Plan,
    planned: StreamPlan,
    last: Epoch | None,
    commit: Commit | None,
    first: Commit | None,
    left_out: Mapping[str, Sequence[LeftOut]],
    lacking: bool = False,
) -> SynopsisRecord | None:
    """Return the record of a synopsis after a plan; None for another table.

    Parameters
    ----------
    plan, planned
        The plan, and its entry for the table.
    last
        The epoch from which the plan started.
    commit, first
        The commit of its rows, and the first commit of its stream's rows; None if no row changed.
    left_out
        Files that could not be read for the batch of each stream.
    lacking
        Whether results of views lack files that can no longer be read.

    """
    own_plan = planned.synopsis
    if own_plan is None:
        return None
    metadata: Mapping[str, Any] = commit.metadata if commit else {}
    read_without = [entry.file.path for entry in left_out.get(own_plan.synopsis.source, ())]
    partial = lacks_files(first, metadata, read_without)
    full_slot = full_from(plan, planned, last, metadata, partial=partial or (own_plan.view and lacking))
    through = plan.slot if own_plan.view else None
    merged = plan.slot if own_plan.synopsis.levels and own_plan.former_grid is None else None
    if own_plan.former_grid is not None:  # a migration adds no row
        state = last.table(planned.name) if last else None
        through = state.synopsis.through if state is not None and state.synopsis is not None else through
    sure = max(plan.slot - own_plan.spare, own_plan.sure)
    return SynopsisRecord(own_plan.synopsis, own_plan.slots, full_slot, sure=sure, through=through, merged=merged)


def answers_record(planned: StreamPlan, commit: Commit | None) -> AnswersRecord | None:
    """Return the record of an aggregate's answers after a plan; None for another table.

    Where the time for answers is limited, the commit lists the answers that were given; without a commit no answer was given.
    """
    own_plan = planned.answers
    if own_plan is None:
        return None
    answered_due = own_plan.due if own_plan.within is None else ()
    if own_plan.within is not None and commit is not None:
        answered = {(text, end) for text, end in commit.metadata.get(ANSWERED, ())}
        answered_due = tuple(due for due in own_plan.due if (due.text, due.end) in answered)
    return AnswersRecord(own_plan.definition, own_plan.through, tuple(due for due in own_plan.due if due not in answered_due))


def coalesced_record(
    *,
    plan: Plan,
    planned: StreamPlan,
    last: Epoch | None,
    commit: Commit | None,
    first: Commit | None,
    left_out: Mapping[str, Sequence[LeftOut]],
) -> CoalescedRecord | None:
    """Return the record of a coalesced table after a plan; None for another table. Parameters as for a synopsis."""
    own = planned.coalesced
    if own is None:
        return None
    state = last.table(planned.name) if last else None
    before = None if planned.first or state is None else state.coalesced
    metadata: Mapping[str, Any] = commit.metadata if commit else {}
    read_without = [entry.file.path for entry in left_out.get(own.definition.source, ())]
    full_from = before.full_from if before else None if own.opening else plan.window_time
    if lacks_files(first, metadata, read_without):
        full_from = plan.window_time
    shed = ShedRecord(**metadata[SHED]) if SHED in metadata else None
    return CoalescedRecord(
        own.definition,
        full_from,
        repeated=(before.repeated if before else 0) + int(metadata.get("repeated", 0)),
        late=(before.late if before else 0) + int(metadata.get("late", 0)),
        shed=shed,
        over=shed.over if shed is not None else before.over if before is not None and own.definition.budget is not None else 0,
    )


def owed_record(planned: NodePlan, commit: Commit | None) -> Ledger | None:
    """Return the ledger of a view under a budget after a plan, from its commit; None for another view.

    Without a commit no row arrived and no result was owed, so nothing was counted.
    """
    budget = planned.budget
    if budget is None:
        return None
    recorded = None if commit is None else commit.metadata.get(OWED)
    if recorded is not None:
        return msgspec.convert(recorded, Ledger)
    through = budget.ledger.through if budget.upto is None else budget.upto
    return replace(budget.ledger, made=0, through=through, exact=None, least=0)


def stopped_followers(plan: Plan, last: Epoch | None) -> dict[str, TableState]:
    """Return the unchanged states of tables that are stopped, or that follow a stopped stream or view."""
    still = {**dict(plan.stopped), **dict(plan.refused)}
    following = [state for state in (last.tables if last else ()) if state.followed is not None]
    return {state.name: state for state in following if state.owner in still or state.followed in still}
