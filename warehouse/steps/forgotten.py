"""The state of operators that a view no longer has once a plan is executed, and synopses without a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.views.algebra import scanned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.epochs.records import TableState
    from warehouse.planning.steps import Plan

__all__ = ["forgotten_state"]


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
        kept = planned | _read_by(view, states)
        for state in states.values():
            if state.kind != "state" or state.view is None or state.view.view != view or state.name in kept:
                continue
            shown = state.view.spare_of
            if shown is None or shown in planned or shown not in kept:
                forgotten.append(state)
    return forgotten


def _read_by(view: str, states: Mapping[str, TableState]) -> set[str]:
    """Return a view's own table and the tables of views that its nodes read."""
    found: set[str] = set()
    todo = [view]
    while todo:
        state = states.get(todo.pop())
        if state is not None and state.view is not None and state.name not in found:
            found.add(state.name)
            todo += scanned(state.view.node.operator)
    return found
