"""Completes a view under a budget: makes its owed results in chunks, each an epoch at the newest window time.

The writer lock is released between chunks, so that an update can run. Views that read the view move in the same epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.epochs.journal import newest_epoch, nothing_loaded
from warehouse.errors import ConfigurationError, Problem, UnknownNameError, UsageError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import begin, finish, require_unchanged_declarations
from warehouse.operations.standing_still import behind
from warehouse.planning.declared_nodes import nodes_above, sound_nodes, with_columns
from warehouse.planning.node_plans import unbuilt
from warehouse.planning.plan import make_plan
from warehouse.views.algebra import scanned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan_record import NodePlan, Plan
    from warehouse.promise.units import Ledger

__all__ = ["CHUNK", "CompletionReport", "complete", "owed_results"]

CHUNK = 1_000_000
"""Results of a chunk, where the view's own budget is not larger: between two chunks an update can begin."""


@dataclass(frozen=True)
class CompletionReport:
    """The epochs in which owed results of a view were made (empty: no result was owed), and the results still owed.

    ``finished`` epochs were completed before. ``failed`` views stand still now, for the given reason.
    """

    view: str
    epochs: tuple[Epoch, ...]
    ledger: Ledger
    finished: tuple[Epoch, ...] = ()

    @property
    def made(self) -> int:
        """How many results were made."""
        states = (epoch.table(self.view) for epoch in self.epochs)
        return sum(state.view.ledger.made for state in states if state and state.view and state.view.ledger)

    @property
    def failed_views(self) -> tuple[tuple[str, str], ...]:
        """The views that could not be maintained."""
        tables = self.epochs[-1].tables if self.epochs else ()
        return tuple({state.view.view: state.view.failed for state in tables if state.view and state.view.failed}.items())


def owed_results(context: WriteContext, view: str) -> CompletionReport:
    """Return the results that a view owes, without making any and without the writer lock.

    Raises
    ------
    UnknownNameError, UsageError, ConfigurationError
        As :func:`complete`.

    """
    state = _state(context, newest_epoch(context.root), view)
    ledger = None if state.view is None else state.view.ledger
    return CompletionReport(view, (), ledger) if ledger else _nothing_known(view)


def complete(context: WriteContext, view: str, *, out_of_time: Callable[[], bool] = lambda: False) -> CompletionReport:
    """Make the results that a view owes in chunks, preferred results first: all of them, or until ``out_of_time`` returns True.

    Raises
    ------
    UnknownNameError, UsageError, ConfigurationError
        When there is no such view, it has no budget, or it cannot be maintained; nothing was written then.

    """
    epochs: list[Epoch] = []
    finished: tuple[Epoch, ...] = ()
    while True:
        with locked(context):
            current = finish(context)
            finished = (*finished, *current.finished)
            state = _state(context, current.last, view)
            ledger = None if state.view is None else state.view.ledger
            if current.last is None or ledger is None or not ledger.ranges or (epochs and out_of_time()):
                return CompletionReport(view, tuple(epochs), ledger, finished) if ledger else _nothing_known(view)
            epoch = begin(context, current, _plan(context, current.last, view))
        epochs.append(epoch)
        new_state = epoch.table(view)
        if new_state is None or new_state.view is None or new_state.view.failed is not None:
            return CompletionReport(view, tuple(epochs), ledger, finished)


def _nothing_known(view: str) -> CompletionReport:
    raise UsageError(f'view "{view}" got its budget after its last update; run `stream-wh update` first')


def _state(context: WriteContext, last: Epoch | None, view: str) -> TableState:
    """Return the table of a view that may be completed."""
    catalog = context.catalog
    if last is None:
        raise nothing_loaded(context.root, "nothing is owed")
    require_unchanged_declarations(catalog, last)
    declared = catalog.view(view)
    if declared is None:
        raise UnknownNameError("view", view, [declared_view.name for declared_view in catalog.views])
    if declared.budget is None:
        raise UsageError(f'view "{view}" has no budget, so it owes nothing; declare one with the key views.{view}.budget')
    if declared.budget.complete == "never":
        raise UsageError(f'view "{view}" owes nothing: views.{view}.budget.complete is "never"; set it to "later"')
    state = last.table(view)
    if state is None or state.view is None or state.view.failed is not None:
        reason = "" if state is None or state.view is None else f": {state.view.failed}"
        raise UsageError(f'view "{view}" is not built{reason}; run `stream-wh update` first')
    return state


def _plan(context: WriteContext, last: Epoch, view: str) -> Plan:
    """Return the plan of a chunk: the view and the views above it, at the window time of the last epoch."""
    catalog = context.catalog
    if any(entry.more for entry in last.files):
        raise UsageError("files were left for another epoch of the same window time; run `stream-wh update` first")
    nodes, refused = sound_nodes(catalog)
    still = behind(last, nodes)
    if view in still.views:
        raise UsageError(f'view "{view}" stands still: {still.views[view]}')
    if view in refused:
        problem = Problem(str(catalog.file), f"views.{view}.sql", refused[view], "a query that can be maintained")
        raise ConfigurationError([problem])
    moving = nodes_above(view, still.moving(nodes), {view})
    _require_all_above(moving, last, view)
    built_nodes = with_columns(moving, catalog, last, last.slot, context.writing_spark, refused)
    plan = make_plan(catalog, last, [], slot=last.slot, clock=context.clock(), nodes=built_nodes, again=True)
    planned = tuple(_with_chunk(node) if node.name == view else node for node in plan.nodes)
    return msgspec.structs.replace(plan, cause="complete", nodes=planned, refused=last.refused)


def _with_chunk(node: NodePlan) -> NodePlan:
    if node.budget is None:
        raise TypeError(f"{node.name} has no budget")
    larger = replace(node.budget, chunk=max(CHUNK, node.budget.budget.pairs or 0))
    return msgspec.structs.replace(node, budget=larger)


def _require_all_above(moving: Sequence[NodeInput], last: Epoch, view: str) -> None:
    """Refuse to add rows to a view if a view that reads it cannot take them now: a later update would not see these rows."""
    names = {node_input.node.table for node_input in moving}
    if changed := unbuilt(moving, last):
        raise UsageError(f"the declaration of {', '.join(sorted(changed))} changed; run `stream-wh update` first")
    for state in last.tables:
        if state.view is None or state.name in names or state.view.failed is not None or not state.declared:
            continue
        if any(table in names for table in scanned(state.view.node.operator)):
            raise UsageError(f'view "{state.owner}" reads {view} and cannot move now; run `stream-wh update` first')
