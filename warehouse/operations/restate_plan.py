"""The plans of restatements: from the files to load again to the steps that replace their rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.catalog.declaration import with_added
from warehouse.catalog.drift import effective_layout
from warehouse.epochs.records import Loaded
from warehouse.errors import RestateError
from warehouse.limits import limits
from warehouse.planning.coalesced_plans import without_points
from warehouse.planning.inputs import landed_before
from warehouse.planning.plan import StreamInput, make_plan
from warehouse.planning.restoring import Restoring
from warehouse.planning.steps import ReplaceTable, RestoreTable, Step, StoreRejected
from warehouse.steps.relanding import grouped_with, restored_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.catalog.declaration import Declaration
    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.records import Epoch, SideTable, TableState, ViewRecord
    from warehouse.layout import Layout
    from warehouse.operations.restated_files import Reread
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan_record import Plan

__all__ = ["Base", "ChangedDeclaration", "restate_base", "restate_plan"]


@dataclass(frozen=True)
class ChangedDeclaration:
    """A declaration that the table on disk cannot follow, and the layout that comes with it."""

    declaration: Declaration
    layout: Layout


@dataclass(frozen=True)
class Base:
    """The base of a restatement, and the steps that lead to it; ``rejected`` is the former table of rejected rows."""

    epoch: Epoch
    steps: tuple[RestoreTable | ReplaceTable, ...]
    rejected: SideTable | None = None


def restate_base(
    newest: Epoch, table: str, found: Reread, nodes: Sequence[NodeInput], changed: ChangedDeclaration | None = None
) -> Base:
    """Return the newest epoch with one table as it was, and the views that read it marked for a rebuild.

    To retry rejected rows, only the table of rejected rows is emptied, and only views under a budget are rebuilt. With a
    ``changed`` declaration, for example of columns, the table is replaced. ``nodes`` are the nodes of the views that read the
    table.
    """
    restoring = Restoring()
    above = {node_input.node.table for node_input in nodes}
    states, rejected = [], None
    for state in newest.tables:
        if state.name == table and found.retried is not None:
            rejected = state.rejected
            emptied = None if rejected is None else restoring.emptied_side(table, rejected)
            states.append(replace(state, rejected=emptied))
        elif state.name == table and changed is not None:
            states.append(restoring.replaced(state, changed.declaration, changed.layout, newest.number + 1))
        elif state.name == table:
            states.append(replace(_restored(restoring, state, found.since), stopped=None))
        elif (state.synopsis or state.coalesced) is not None and state.followed in {table, *above} and found.retried is None:
            states.append(_restored(restoring, state, found.since))
        elif state.view is not None and (state.view.spare_of or state.name) in above and _is_rebuilt(state.view, found):
            states.append(restoring.rebuilt(state))
        else:
            states.append(state)
    epoch = replace(newest, tables=tuple(states), files=(), counts=(), seconds=(), removed=(), warnings=())
    return Base(epoch, tuple(restoring.steps), rejected)


def _is_rebuilt(view: ViewRecord, reread: Reread) -> bool:
    """Whether a view above is rebuilt. Retried rows have a load slot whose units a view under a budget has made already."""
    return reread.retried is None or view.ledger is not None


def _restored(restoring: Restoring, state: TableState, since: Epoch | None) -> TableState:
    old = since.table(state.name) if since else None
    return restoring.emptied(state) if old is None else restoring.restored(state, old)


def restate_plan(
    catalog: Catalog, stream: Stream, found: Reread, base: Base, nodes: Sequence[NodeInput], *, clock: int
) -> Plan:
    """Return the plan that loads files again, at the window time of the base.

    ``nodes`` are the nodes of the views that read the table, with their columns; ``clock`` is in microseconds. The plan forgets
    files beyond its limit, so that the following epochs at the same window time load them.
    """
    epoch = base.epoch
    state = epoch.table(stream.name)
    layout = effective_layout(stream, state.layout if state else None, catalog.update_interval)
    if found.retried is not None:
        continues = (epoch.slot - 1, False)
    elif found.since is not None:
        old_state = found.since.table(stream.name)
        continues = (old_state.stopped.slot if old_state and old_state.stopped else found.since.slot, False)
    else:
        continues = (epoch.slot - layout.periods, True)
    limit = limits().files_per_plan
    chosen, later = found.files[:limit], found.files[limit:]
    stream = with_added(stream, state.declaration if state else None)
    stream, groups, problems = grouped_with(stream, chosen, found.back)
    unread = {entry.file.path for entry in problems}
    if found.retried is not None:
        found = replace(found, retried=tuple(path for path in found.retried if path not in unread))
        if not groups:
            reasons = "; ".join(f"{entry.file.path}: {entry.message}" for entry in problems[:3])
            raise RestateError(stream.name, f"none of its files can be read as it is declared ({reasons})")
    stream_input = StreamInput(stream, layout, groups, tuple(problems), more=len(later), continues=continues)
    landed = landed_before(catalog, found.since, without_points(catalog, epoch) if found.since else [])
    plan = make_plan(catalog, epoch, [stream_input], slot=epoch.slot, clock=clock, nodes=nodes, landed=landed)
    restored = restored_files(stream, found.back)
    steps: list[Step] = [*base.steps, *(_keeping_rejected(step, found, base) for step in plan.steps)]
    return msgspec.structs.replace(
        plan,
        steps=tuple(steps),
        streams=tuple(
            msgspec.structs.replace(stream_plan, retried=found.retried or (), restored_files=restored)
            if stream_plan.lands
            else stream_plan
            for stream_plan in plan.streams
        ),
        base=epoch,
        cause="restate",
        starts_from=found.since.number if found.since else None,
        known=(Loaded(stream.name, gone=tuple(file.path for file in later)),) if later else (),
    )


def _keeping_rejected(step: Step, reread: Reread, base: Base) -> Step:
    """Let the step that writes rejected rows keep the rows of files that are not loaded again."""
    if isinstance(step, StoreRejected) and reread.retried is not None and base.rejected is not None:
        return msgspec.structs.replace(step, kept_version=base.rejected.version, retried=reread.retried)
    return step
