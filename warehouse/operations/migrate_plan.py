"""The plan of a migration that writes tables again, in one epoch at the same window time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import declaration_of
from warehouse.planning.following import CoalescedPlan
from warehouse.planning.keeping import keep_by_table
from warehouse.planning.node_plans import MIGRATED, plan_nodes, rebuilt
from warehouse.planning.plan_record import Plan, StreamPlan
from warehouse.planning.steps import AddColumns, MigrateTable
from warehouse.planning.table_steps import node_steps, waiting_steps
from warehouse.time import grid_slot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.layout import Layout
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.regridding import Regridding
    from warehouse.planning.steps import Step

__all__ = ["Target", "migration_base", "migration_plan"]


@dataclass(frozen=True)
class Target:
    """A table that is written again: its present state, its new declaration and layout.

    ``renamed`` are pairs of former and new names of columns; ``reshaped``: columns have other names or types afterwards, also for
    views.
    """

    state: TableState
    stream: Stream
    layout: Layout
    renamed: tuple[tuple[str, str], ...] = ()
    reshaped: bool = False


def migration_base(catalog: Catalog, last: Epoch, above: Sequence[str], grids: Regridding | None = None) -> Epoch:
    """Return the base of a migration: the last epoch on the declared grid of times, to which ``grids`` converts aggregates.

    The tables of nodes ``above`` are marked for a rebuild.
    """
    marked = {
        state.name: replace(state, view=replace(state.view, failed=MIGRATED))
        for state in last.tables
        if state.view is not None and (state.view.spare_of or state.name) in above
    }
    tables = tuple(marked.get(state.name, state) for state in last.tables)
    return replace(
        last,
        tables=tables if grids is None else tuple(grids.base(state) for state in tables),
        anchor=catalog.anchor,
        update_interval=catalog.update_interval,
        slot=grid_slot(last.window_time, catalog.anchor, catalog.update_interval),
        files=(),
        counts=(),
        seconds=(),
        removed=(),
        warnings=(),
    )


def migration_plan(
    catalog: Catalog,
    base: Epoch,
    targets: Sequence[Target],
    nodes: Sequence[NodeInput],
    *,
    grids: Regridding | None,
    clock: int,
) -> Plan:
    """Return the plan that writes tables again at the window time of the base.

    Parameters
    ----------
    catalog
        The present declarations.
    base
        The result of :func:`migration_base`.
    targets
        The tables.
    nodes
        The nodes of views that are rebuilt, with their columns, each after the nodes that it reads.
    grids
        Converts aggregates to another grid of times; None if anchor and update interval are unchanged.
    clock
        The wall-clock instant in microseconds.

    """
    epoch, slot, reslotted = base.number + 1, base.slot, grids is not None
    streams: list[StreamPlan] = []
    steps: list[Step] = []
    for target in targets:
        planned = StreamPlan(
            name=target.stream.name,
            declaration=declaration_of(target.stream, catalog.root),
            layout=target.layout,
            k0=slot - 1,
            first=False,
            inputs=(),
            left_out=(),
        )
        streams.append(planned)
        steps.extend(_steps(planned, target, reslotted=reslotted, epoch=epoch, clock=clock))
    for state in base.tables if grids is not None else ():
        plan_of_aggregate = grids.plan(state, slot) if grids is not None else None
        if grids is not None and plan_of_aggregate is not None:
            streams.append(plan_of_aggregate)
            steps.extend(grids.steps(state))
        if state.coalesced is not None:
            streams.append(_coalesced(state, slot))
            columns, rows = state.stored_columns, sum(part.rows for part in state.partitions)
            steps.append(MigrateTable(state.name, state.path, state.table_id, state.version, columns, (), rows, reslotted=True))
    planned_nodes = plan_nodes(nodes, base, (), slot=slot, moves=False, epoch=epoch)
    for node in planned_nodes:
        steps.extend(node_steps(node, base.table(node.name), slot, epoch=epoch, clock=clock))
    return Plan(
        epoch=epoch,
        window_time=base.window_time,
        slot=slot,
        previous_slot=slot,
        anchor=base.anchor,
        update_interval=base.update_interval,
        retain=base.log_retain,
        clock=clock,
        catalog_digest=catalog.digest,
        declared=catalog.keys,
        streams=tuple(streams),
        steps=tuple(steps),
        nodes=tuple(planned_nodes),
        warnings=rebuilt(nodes, base),
        base=base,
        cause="migrate",
        target_file_size=catalog.target_file_size,
        keep=keep_by_table(catalog),
    )


def _coalesced(state: TableState, slot: int) -> StreamPlan:
    """Return the plan of a coalesced table under another grid of times: rows and stamps stay, slots are counted again."""
    if state.coalesced is None:
        raise TypeError(f"{state.name} is no coalesced table")
    plan = CoalescedPlan(state.coalesced.definition, arrives=False, opening=False, history=False)
    return StreamPlan(state.name, state.declaration, state.layout, slot - 1, first=False, inputs=(), left_out=(), coalesced=plan)


def _steps(planned: StreamPlan, target: Target, *, reslotted: bool, epoch: int, clock: int) -> Iterator[Step]:
    """Yield the steps of the table and of its deferred rows, which are classified again under other columns or slots."""
    state, name, side = target.state, planned.name, target.state.deferred
    reclassified = target.reshaped or reslotted
    takes_deferred = reclassified and side is not None and bool(side.rows)
    yield MigrateTable(
        name,
        state.path,
        state.table_id,
        state.version,
        state.declaration.columns,
        target.renamed,
        sum(part.rows for part in state.partitions),
        reslotted=reslotted,
        takes=takes_deferred,
    )
    if side is not None and state.declaration.columns != planned.declaration.columns:
        yield AddColumns(name, "deferred", side.path, side.table_id, side.version)
    if takes_deferred and side is not None:
        slots = tuple(entry.slot for entry in side.waiting)
        yield from waiting_steps(planned, state, slots, epoch=epoch, clock=clock)
