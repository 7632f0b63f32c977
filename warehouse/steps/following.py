"""What an executed plan made of the tables that follow a stream: its synopses, and the answers of aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.epochs.records import SynopsisRecord
from warehouse.steps.synopsis_source import full_from, lacks_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.files import LeftOut
    from warehouse.planning.steps import Plan, StreamPlan
    from warehouse.storage.deltalog import Commit

__all__ = ["standing_beside", "synopsis_record"]


def synopsis_record(
    *,
    plan: Plan,
    planned: StreamPlan,
    last: Epoch | None,
    commit: Commit | None,
    first: Commit | None,
    left_out: Mapping[str, Sequence[LeftOut]],
) -> SynopsisRecord | None:
    """Return what a synopsis holds after a plan; None of another table.

    Parameters
    ----------
    plan, planned
        The plan, and what it has for the table.
    last
        What the plan started from.
    commit, first
        The commit of its rows, and the first one of its stream's rows; None where no row changed.
    left_out
        The files that the batches of streams were read without, by stream.

    """
    own = planned.synopsis
    if own is None:
        return None
    metadata: Mapping[str, Any] = commit.metadata if commit else {}
    read_without = [entry.file.path for entry in left_out.get(own.synopsis.source, ())]
    partial = lacks_files(first, metadata, read_without)
    return SynopsisRecord(own.synopsis, own.slots, full_from(plan, planned, last, metadata, partial=partial))


def standing_beside(plan: Plan, last: Epoch | None) -> dict[str, TableState]:
    """Return the synopses and answers that follow a stream that stands still, or that stand still themselves: as they were."""
    still = dict(plan.stopped)
    following = [state for state in (last.tables if last else ()) if state.synopsis is not None or state.answers is not None]
    return {
        state.name: state
        for state in following
        if state.owner in still or (state.answers is not None and state.answers.definition.source in still)
    }
