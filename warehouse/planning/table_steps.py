"""Plans the steps of one table, in the order in which they are executed. Pure."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.retention import dead_updates
from warehouse.layout import OVERFLOW_BLOCK, expired_below, planned_cells, seals
from warehouse.planning.archive_plans import expire_within
from warehouse.planning.coalesced_plans import coalesced_steps
from warehouse.planning.former_layouts import former_cells
from warehouse.planning.keeping import keep_by_table, overdue_steps
from warehouse.planning.steps import (
    AddColumns,
    CreateTable,
    EraseRows,
    MoveDeferred,
    MoveRelation,
    MoveWindow,
    ReplaceTable,
    RewriteBuckets,
    RewriteCells,
    Role,
    SetProperties,
    Step,
    StoreRejected,
    StoreRestored,
)
from warehouse.storage.tables import PROPERTIES
from warehouse.time import at_slot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.catalog.declaration import Declaration
    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch, SideTable, TableState
    from warehouse.layout import Seal
    from warehouse.planning.plan_record import NodePlan, StreamPlan

__all__ = [
    "TableIds",
    "archive_steps",
    "column_steps",
    "expired_steps",
    "following_steps",
    "node_steps",
    "property_steps",
    "stream_steps",
    "view_steps",
    "waiting_steps",
]


@dataclass(frozen=True)
class TableIds:
    """The Delta ids of the tables that a plan creates: the same plan gives a table the same id again."""

    epoch: int
    clock: int

    def of(self, stream: str, role: Role) -> str:
        """Return the id of a stream's table."""
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{stream}/{role}/{self.epoch}/{self.clock}"))


def _table_path(stream: str, role: Role) -> str:
    """Return the directory of a stream's table relative to the root."""
    return f"{'tables' if role == 'rows' else role}/{stream}"


def stream_steps(
    planned: StreamPlan, state: TableState | None, slot: int, ids: TableIds, history: int | None
) -> Iterator[Step]:
    """Yield the steps of a stream or a relation; ``history`` is how long versions of a relation are kept after their end."""
    name = planned.name
    if state is None:
        yield CreateTable(name, "rows", _table_path(name, "rows"), ids.of(name, "rows"))
    else:
        yield from column_steps(planned, state)
    waiting = state.deferred.waiting if state and state.deferred else ()
    taken = tuple(entry.slot for entry in waiting if entry.slot <= slot)
    arrives = any(group.files for group in planned.inputs)
    if planned.declaration.op is None:
        yield from _main_step(planned, state, slot, ids, batch=arrives or bool(taken))
    elif arrives or taken:
        path, table_id = _table_path(name, "rows"), state.table_id if state else ids.of(name, "rows")
        yield MoveRelation(name, path, table_id, state.version if state else 0, history)
    if arrives or taken:
        yield from _sides(planned, state, ids, taken)


def waiting_steps(planned: StreamPlan, state: TableState, taken: tuple[int, ...], *, epoch: int, clock: int) -> Iterator[Step]:
    """Yield the steps that read waiting rows again: rows of the slots ``taken`` are loaded, others may be invalid now."""
    yield from _sides(planned, state, TableIds(epoch, clock), taken)


def _sides(planned: StreamPlan, state: TableState | None, ids: TableIds, taken: tuple[int, ...]) -> Iterator[Step]:
    yield from _side(planned, "deferred", state.deferred if state else None, ids, taken)
    yield from _side(planned, "rejected", state.rejected if state else None, ids, taken)


def _side(
    planned: StreamPlan, role: Role, side: SideTable | None, ids: TableIds, taken: tuple[int, ...]
) -> Iterator[Step]:
    name = planned.name
    path = side.path if side else _table_path(name, role)
    table_id = side.table_id if side else ids.of(name, role)
    if side is None:
        yield CreateTable(name, role, path, table_id)
    version = side.version if side else 0
    if role == "deferred":
        yield MoveDeferred(name, path, table_id, version, taken)
    else:
        yield StoreRejected(name, path, table_id, version)


def column_steps(planned: StreamPlan, state: TableState) -> Iterator[AddColumns]:
    """Yield the steps that give a stream's tables the columns that its declaration has and they lack."""
    stored = {column.name for column in state.declaration.columns}
    if all(column.name in stored for column in planned.declaration.columns):
        return
    yield AddColumns(planned.name, "rows", state.path, state.table_id, state.version)
    if (side := state.deferred) is not None:
        yield AddColumns(planned.name, "deferred", side.path, side.table_id, side.version)


def archive_steps(planned: StreamPlan, last: Epoch | None, slot: int, ids: TableIds, *, retain: int) -> Iterator[Step]:
    """Yield the steps of an archive, which gets the rows of its stream that end in the slots of the update."""
    name = planned.name
    state = last.table(name) if last else None
    if state is None:
        yield CreateTable(name, "rows", _table_path(name, "rows"), ids.of(name, "rows"))
    source = last.table(planned.archive_of or "") if last else None
    yield from _main_step(planned, state, slot, ids, batch=expire_within(source, planned.k0, slot))
    yield from property_steps(state, last, retain)


def following_steps(planned: StreamPlan, last: Epoch | None, slot: int, ids: TableIds, *, retain: int) -> Iterator[Step]:
    """Yield the steps of a synopsis, of answers, or of a coalesced table."""
    name, own = planned.name, planned.synopsis
    state = last.table(name) if last else None
    if planned.coalesced is not None:
        yield from coalesced_steps(planned, state, ids.of(name, "rows"))
    elif state is None:
        yield CreateTable(name, "rows", _table_path(name, "rows"), ids.of(name, "rows"))
    elif own is not None and (own.carried or own.rebuilt or _names(planned.declaration) != _names(state.declaration)):
        yield ReplaceTable(name, state.path, state.table_id, state.version)
        state = replace(state, partitions=())
    gains = own is not None and (own.arrives or own.history or own.carried or own.synopsis.levels > 0)
    batch = bool(planned.answers and planned.answers.due) or gains
    if planned.coalesced is None:
        yield from _main_step(planned, state, slot, ids, batch=batch)
    yield from property_steps(state, last, retain)


def _names(declaration: Declaration) -> list[str]:
    return [column.name for column in declaration.columns]


def view_steps(
    node: NodePlan, catalog: Catalog, last: Epoch | None, slot: int, ids: TableIds, *, moves: bool
) -> Iterator[Step]:
    """Yield the steps of a view's node in an update, with the steps for its overdue rows and its properties."""
    state = last.table(node.name) if last else None
    own = list(node_steps(node, state, slot, epoch=ids.epoch, clock=ids.clock))
    if moves:
        yield from overdue_steps(node.view, state, dict(keep_by_table(catalog)), ids.clock)
    yield from (*own, *expired_steps(catalog, node.view, state, slot, own))
    if not node.first:
        yield from property_steps(state, last, catalog.retain)


def node_steps(planned: NodePlan, state: TableState | None, slot: int, *, epoch: int, clock: int) -> Iterator[Step]:
    """Yield the steps of the plan of ``epoch`` for one node of a view."""
    name, ids = planned.name, TableIds(epoch, clock)
    path = _table_path(name, "rows")
    if state is None:
        yield CreateTable(name, "rows", path, ids.of(name, "rows"))
    elif planned.first:
        yield ReplaceTable(name, path, state.table_id, state.version)
        state = replace(state, partitions=())
    if planned.node.label == "STR":
        yield RewriteBuckets(name, path, state.table_id if state else ids.of(name, "rows"), state.version if state else 0)
    else:
        yield from _main_step(planned, state, slot, ids, batch=True)
    side = state.restored if state else None
    if side is not None and (planned.first or not side.rows):  # one that a rollback emptied may have columns of later
        yield AddColumns(name, "restored", side.path, side.table_id, side.version)
    if planned.short_lived == "report":
        side_path = side.path if side else _table_path(name, "restored")
        table_id = side.table_id if side else ids.of(name, "restored")
        if side is None:
            yield CreateTable(name, "restored", side_path, table_id)
        yield StoreRestored(name, side_path, table_id, side.version if side else 0)


def _main_step(
    planned: StreamPlan | NodePlan, state: TableState | None, slot: int, ids: TableIds, *, batch: bool
) -> Iterator[Step]:
    layout, name = planned.layout, planned.name
    path = _table_path(name, "rows")
    table_id = state.table_id if state else ids.of(name, "rows")
    version = state.version if state else 0
    partitions = state.partitions if state else ()
    former = former_cells(state, planned.k0, slot)
    if layout.technique == "rebuild":
        cells = planned_cells(layout, planned.k0, slot)
        rows = sum(part.rows for part in partitions if part.sub_index in set(cells))
        if rows or batch or former.leaving:
            yield RewriteCells(name, path, table_id, version, cells, rows, former)
        return
    below = expired_below(layout, slot)
    own = [part for part in partitions if layout.first_cell <= part.sub_index <= layout.last_cell]
    expired = tuple((part.sub_index, part.exp_block) for part in own if part.exp_block < below)
    # The overflow block is never below any block: a partition of it is removed once its last row has expired.
    dead = tuple(
        (part.sub_index, part.exp_block)
        for part in own
        if part.exp_block == OVERFLOW_BLOCK and part.max_exp_slot <= slot
    )
    runs = {cell: part.runs for part in own if (cell := (part.sub_index, part.exp_block)) not in dead}
    merged = _mergeable(seals(layout, planned.k0, slot, runs), batch=batch)
    if batch or expired or dead or merged or former.leaving:
        yield MoveWindow(name, path, table_id, version, below, expired, dead, merged, former)


def _mergeable(sealed: Sequence[Seal], *, batch: bool) -> tuple[Seal, ...]:
    if batch:
        return tuple(sealed)
    merged = (
        type(seal)(seal.sub_index, tuple((block, runs) for block, runs in seal.blocks if runs > 1)) for seal in sealed
    )
    return tuple(seal for seal in merged if seal.blocks)


def expired_steps(catalog: Catalog, owner: str, state: TableState | None, slot: int, own: Sequence[Step]) -> Iterator[EraseRows]:
    """Yield the step that rewrites partitions which would keep expired rows for longer than ``erase_within``.

    It comes after the table's ``own`` steps.

    The default layout needs no such step, since blocks pass in time. Rows that outlive the window, keyed tables, and layouts
    older than the bound need them.
    """
    bound = catalog.erase_within.get(owner)
    if bound is None or state is None or any(isinstance(step, ReplaceTable) for step in own):
        return
    interval = catalog.update_interval
    last = slot - dead_updates(bound, catalog.retain, interval) + 1
    going = {cell for step in own for cell in _leaving(step, state)}
    cells = tuple(
        cell
        for part in state.partitions
        if (part.min_exp_slot is None or part.min_exp_slot <= last) and (cell := (part.sub_index, part.exp_block)) not in going
    )
    if cells:
        dead_by = at_slot(slot, catalog.anchor, interval)
        yield EraseRows(state.name, "rows", state.path, state.table_id, state.version, cells, 0, keyed=False, dead_by=dead_by)


def _leaving(step: Step, state: TableState) -> Iterator[tuple[int, int]]:
    """Yield the partitions that a step surely removes, or rewrites without their dead rows."""
    match step:
        case MoveWindow():
            yield from (*step.expired, *step.dead, *step.former.leaving)
            yield from ((seal.sub_index, block) for seal in step.seals for block, runs in seal.blocks if runs > 1)
        case RewriteCells():
            cells = set(step.cells)
            yield from ((part.sub_index, part.exp_block) for part in state.partitions if part.sub_index in cells)
            yield from step.former.leaving
        case _:
            return


def property_steps(state: TableState | None, last: Epoch | None, retain: int) -> Iterator[SetProperties]:
    """Yield the changes of the Delta properties of a table and its side tables; a table that stood still may have missed one."""
    if state is None or last is None:
        return
    if retain > last.log_retain or state.properties < PROPERTIES or state.stopped is not None:
        yield SetProperties(state.name, state.path, state.version)
        for side in state.sides:
            yield SetProperties(state.name, side.path, side.version)
