"""Plans an update: a pure function from declarations, the last epoch and landing files to a plan.

It uses no clock, no file and no Spark: the same values always give the same plan.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import declaration_of, with_added
from warehouse.catalog.retention import dead_updates
from warehouse.layout import OVERFLOW_BLOCK, expired_below, planned_cells, seals
from warehouse.planning.aggregate_plans import Followed, aggregate_plans, over_views
from warehouse.planning.archive_plans import archive_plan, expire_within
from warehouse.planning.coalesced_plans import coalesced_plans, coalesced_steps, rebuilt_tables, without_points
from warehouse.planning.former_layouts import former_cells
from warehouse.planning.keeping import keep_by_table, overdue_steps
from warehouse.planning.node_plans import NodeInput, overtaken, plan_nodes, rebuilt
from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan
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
from warehouse.views.algebra import tables_read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from warehouse.catalog.declaration import Declaration
    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Epoch, SideTable, TableState
    from warehouse.ingest.files import InputFiles, LeftOut
    from warehouse.layout import Layout, Seal

__all__ = [
    "StreamInput",
    "columns_declared",
    "history_of",
    "make_plan",
    "node_steps",
    "waiting_steps",
]


@dataclass(frozen=True)
class StreamInput:
    """The waiting input of one stream: files by header, files that cannot be read, and loaded files that are gone.

    ``layout`` is the present layout; ``continues`` is (k0, first) if an earlier epoch at this window time left files.
    """

    stream: Stream
    layout: Layout
    groups: tuple[InputFiles, ...]
    left_out: tuple[LeftOut, ...] = ()
    gone: tuple[str, ...] = ()
    more: int = 0
    continues: tuple[int, bool] | None = None


def make_plan(
    catalog: Catalog,
    last: Epoch | None,
    inputs: Sequence[StreamInput],
    *,
    slot: int,
    clock: int,
    nodes: Sequence[NodeInput] = (),
    refused: Mapping[str, str] | None = None,
    stopped: Mapping[str, str] | None = None,
    changed: Collection[str] | None = None,
    landed: Mapping[str, tuple[InputFiles, ...]] | None = None,
    again: bool = False,
    lazy: tuple[LazyTable, ...] = (),
) -> Plan:
    """Return the plan that moves every stream of ``inputs``, then every node of a view, to ``slot``.

    ``clock`` is in microseconds; ``nodes`` come after the nodes that they read; ``refused`` views are reported with the reason.
    ``stopped`` tables do not move, for the given reason, and are not in ``inputs``. Rows of side tables of a stopped table or
    view are removed nevertheless once ``keep`` is over, unless outsiders ``changed`` that directory (None: they stay, as for
    verbs other than an update). ``landed`` are files of streams that were loaded before, for new synopses. ``again``: all
    ``nodes`` have a step, even if the window does not move. ``lazy`` are the coalesced tables without files.

    If the window does not move (``slot`` is the last epoch's), only tables that do not exist yet, and streams with files left
    from the epoch before, have steps.
    """
    epoch = 0 if last is None else last.number + 1
    moves = last is None or slot > last.slot
    keep, ids = keep_by_table(catalog), _Ids(epoch, clock)
    unbuilt_over = set(without_points(catalog, last))
    streams: list[StreamPlan] = []
    steps: list[Step] = []
    for given in inputs:
        state = last.table(given.stream.name) if last else None
        if state is not None and not moves and given.continues is None:
            if columns_declared(given, last) or given.stream.name in unbuilt_over:
                planned = _stream_plan(replace(given, groups=(), left_out=(), gone=(), more=0), state, last, slot, catalog)
                streams.append(planned)
                steps.extend(_column_steps(planned, state))
            continue
        planned = _stream_plan(given, state, last, slot, catalog)
        streams.append(planned)
        own = list(_steps(planned, state, slot, ids, history_of(catalog)))
        if moves:
            steps.extend(overdue_steps(planned.name, state, dict(keep), clock))
        steps.extend((*own, *_overdue(catalog, planned.name, state, slot, own)))
        if state is not None and last is not None and _other_properties(state, last, catalog.retain):
            steps.extend(SetProperties(state.name, path, version) for path, version in _tables_of(state))
        if given.stream.on_expiry == "archive" and (moves or (state is not None and state.stopped is not None)):
            streams.append(archive_plan(planned, last, slot))
            steps.extend(_archive_steps(streams[-1], last, slot, ids, longer=catalog.retain))
    arriving = {step.stream for step in steps if isinstance(step, MoveDeferred)}
    follow = partial(aggregate_plans, catalog, last, slot=slot, epoch=epoch, stopped=stopped or (), landed=landed or {})
    for followed in follow([Followed.of_stream(stream, arriving) for stream in streams]):
        streams.append(followed)
        steps.extend(_following_steps(followed, last, slot, ids, longer=catalog.retain))
    plan_coalesced = partial(coalesced_plans, slot=slot, stopped=stopped or (), landed=landed or {})
    for coalesced in plan_coalesced(catalog, last, tuple(streams), arriving):
        streams.append(coalesced)
        own = list(_following_steps(coalesced, last, slot, ids, longer=catalog.retain))
        state = last.table(coalesced.name) if last else None
        steps.extend((*own, *_overdue(catalog, coalesced.followed or "", state, slot, own)))
    created = [stream.name for stream in streams if stream.first]
    answers = over_views(catalog)
    created += (name for name in answers if moves and (last is None or last.table(name) is None))
    passed = overtaken(nodes, last, created, {each.name: each.k0 + 1 for each in streams if each.name in arriving}, slot)
    planned_nodes = plan_nodes(
        [given for given in nodes if given.view not in passed], last, created,
        slot=slot, moves=moves or again or any(given.continues for given in inputs), epoch=epoch,
        whole=not _files_left(inputs, last),
    )  # fmt: skip
    first, after = _before_answers(planned_nodes, answers)
    views = follow(Followed.of_views(first, streams))
    streams += views
    steps += (step for node in first for step in _view_steps(node, catalog, last, slot, ids, moves=moves))
    steps += (step for each in views for step in _following_steps(each, last, slot, ids, longer=catalog.retain))
    steps += (step for node in after for step in _view_steps(node, catalog, last, slot, ids, moves=moves))
    if last is not None and moves and changed is not None:
        planned_names = {each.name for each in streams} | {each.name for each in planned_nodes}
        still = [state for state in last.tables if state.name not in planned_names]
        overdue = (step for state in still for step in overdue_steps(state.owner, state, dict(keep), clock))
        steps.extend(step for step in overdue if step.path not in changed)
    return Plan(
        epoch=epoch,
        window_time=at_slot(slot, catalog.anchor, catalog.update_interval),
        slot=slot,
        previous_slot=last.slot if last else slot - 1,
        anchor=catalog.anchor,
        update_interval=catalog.update_interval,
        retain=max(catalog.retain, last.log_retain if last else 0),
        clock=clock,
        catalog_digest=catalog.digest,
        declared=catalog.keys,
        streams=tuple(streams),
        steps=tuple(steps),
        nodes=(*first, *after),
        warnings=(*rebuilt(nodes, last), *rebuilt_tables(catalog, last)),
        refused=tuple(sorted({**(refused or {}), **passed}.items())),
        target_file_size=catalog.target_file_size,
        stopped=tuple(sorted((stopped or {}).items())),
        keep=keep,
        lazy=lazy,
    )


def _files_left(inputs: Sequence[StreamInput], last: Epoch | None) -> bool:
    """Whether files are left for another epoch at the same window time."""
    return any(given.more for given in inputs) if inputs else last is not None and any(entry.more for entry in last.files)


def _before_answers(nodes: Sequence[NodePlan], answers: Sequence[str]) -> tuple[list[NodePlan], list[NodePlan]]:
    """Return the nodes that read no answers over views, directly or not, and the other nodes, which are planned later."""
    late, first, after = set(answers), list[NodePlan](), list[NodePlan]()
    for node in nodes:
        if any(table in late for table in tables_read(node.node.operator)):
            late.add(node.name)
        (after if node.name in late else first).append(node)
    return first, after


def _view_steps(
    node: NodePlan, catalog: Catalog, last: Epoch | None, slot: int, ids: _Ids, *, moves: bool
) -> Iterator[Step]:
    """Yield the steps of a view's node in an update."""
    state = last.table(node.name) if last else None
    own = list(node_steps(node, state, slot, epoch=ids.epoch, clock=ids.clock))
    if moves:
        yield from overdue_steps(node.view, state, dict(keep_by_table(catalog)), ids.clock)
    yield from (*own, *_overdue(catalog, node.view, state, slot, own))
    if state is not None and not node.first and last is not None and _other_properties(state, last, catalog.retain):
        yield from (SetProperties(state.name, path, version) for path, version in _tables_of(state))


def _other_properties(state: TableState, last: Epoch, retain: int) -> bool:
    """Whether the Delta properties of a table must change; a table that stood still may have missed a change."""
    return retain > last.log_retain or state.properties < PROPERTIES or state.stopped is not None


def _tables_of(state: TableState) -> Iterator[tuple[str, int]]:
    yield state.path, state.version
    for side in state.sides:
        yield side.path, side.version


def _stream_plan(
    given: StreamInput, state: TableState | None, last: Epoch | None, slot: int, catalog: Catalog
) -> StreamPlan:
    if given.continues is not None:
        k0, first = given.continues
    elif state is None or last is None:
        k0, first = slot - given.layout.periods, True
    else:
        k0, first = last.slot, False
    stream = with_added(given.stream, state.declaration if state else None)
    return StreamPlan(
        name=stream.name,
        declaration=declaration_of(stream, catalog.root),
        layout=given.layout,
        k0=k0,
        first=first,
        inputs=given.groups,
        left_out=given.left_out,
        gone=given.gone,
        more=given.more,
    )


@dataclass(frozen=True)
class _Ids:
    epoch: int
    clock: int

    def of(self, stream: str, role: Role) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{stream}/{role}/{self.epoch}/{self.clock}"))


def table_path(stream: str, role: Role) -> str:
    """Return the directory of a stream's table relative to the root."""
    return f"{'tables' if role == 'rows' else role}/{stream}"


def history_of(catalog: Catalog) -> int | None:
    """Return how long a version of a relation may be looked up after its end: as long as rows that came before its end live."""
    lifetimes = [None if stream.over_lifetime == "accept" else stream.max_lifetime for stream in catalog.streams]
    return None if None in lifetimes else max((each for each in lifetimes if each is not None), default=0)


def _steps(
    planned: StreamPlan, state: TableState | None, slot: int, ids: _Ids, history: int | None
) -> Iterator[Step]:
    name = planned.name
    if state is None:
        yield CreateTable(name, "rows", table_path(name, "rows"), ids.of(name, "rows"))
    else:
        yield from _column_steps(planned, state)
    waiting = state.deferred.waiting if state and state.deferred else ()
    taken = tuple(entry.slot for entry in waiting if entry.slot <= slot)
    arrives = any(group.files for group in planned.inputs)
    if planned.declaration.op is None:
        yield from _main_step(planned, state, slot, ids, batch=arrives or bool(taken))
    elif arrives or taken:
        path, table_id = table_path(name, "rows"), state.table_id if state else ids.of(name, "rows")
        yield MoveRelation(name, path, table_id, state.version if state else 0, history)
    if arrives or taken:
        yield from _sides(planned, state, ids, taken)


def waiting_steps(planned: StreamPlan, state: TableState, taken: tuple[int, ...], *, epoch: int, clock: int) -> Iterator[Step]:
    """Yield the steps that read waiting rows again: rows of the slots ``taken`` are loaded, others may be invalid now."""
    yield from _sides(planned, state, _Ids(epoch, clock), taken)


def _sides(planned: StreamPlan, state: TableState | None, ids: _Ids, taken: tuple[int, ...]) -> Iterator[Step]:
    yield from _side(planned, "deferred", state.deferred if state else None, ids, taken)
    yield from _side(planned, "rejected", state.rejected if state else None, ids, taken)


def columns_declared(given: StreamInput, last: Epoch | None) -> bool:
    """Whether a stream's table must get columns that were declared since; columns that files bring come with the files."""
    state = last.table(given.stream.name) if last else None
    known = {column.name for column in state.declaration.columns} if state else set()
    own = [column.name for column in given.stream.columns if column.name not in given.stream.added]
    return state is not None and any(name not in known for name in own)


def _column_steps(planned: StreamPlan, state: TableState) -> Iterator[AddColumns]:
    known = {column.name for column in state.declaration.columns}
    if all(column.name in known for column in planned.declaration.columns):
        return
    yield AddColumns(planned.name, "rows", state.path, state.table_id, state.version)
    if (side := state.deferred) is not None:
        yield AddColumns(planned.name, "deferred", side.path, side.table_id, side.version)


def _archive_steps(planned: StreamPlan, last: Epoch | None, slot: int, ids: _Ids, *, longer: int) -> Iterator[Step]:
    """Yield the steps of an archive, which gets the rows of its stream that end in the slots of the update."""
    name = planned.name
    state = last.table(name) if last else None
    if state is None:
        yield CreateTable(name, "rows", table_path(name, "rows"), ids.of(name, "rows"))
    source = last.table(planned.archive_of or "") if last else None
    yield from _main_step(planned, state, slot, ids, batch=expire_within(source, planned.k0, slot))
    if state is not None and last is not None and _other_properties(state, last, longer):
        yield SetProperties(name, state.path, state.version)


def _following_steps(planned: StreamPlan, last: Epoch | None, slot: int, ids: _Ids, *, longer: int) -> Iterator[Step]:
    """Yield the steps of a synopsis, of answers, or of a coalesced table."""
    name, own = planned.name, planned.synopsis
    state = last.table(name) if last else None
    if planned.coalesced is not None:
        yield from coalesced_steps(planned, state, ids.of(name, "rows"))
    elif state is None:
        yield CreateTable(name, "rows", table_path(name, "rows"), ids.of(name, "rows"))
    elif own is not None and (own.carried or own.rebuilt or _named(planned.declaration) != _named(state.declaration)):
        yield ReplaceTable(name, state.path, state.table_id, state.version)
        state = replace(state, partitions=())
    gains = own is not None and (own.arrives or own.history or own.carried or own.synopsis.levels > 0)
    batch = bool(planned.answers and planned.answers.due) or gains
    if planned.coalesced is None:
        yield from _main_step(planned, state, slot, ids, batch=batch)
    if state is not None and last is not None and _other_properties(state, last, longer):
        yield SetProperties(name, state.path, state.version)


def _named(declaration_of: Declaration) -> list[str]:
    return [column.name for column in declaration_of.columns]


def node_steps(planned: NodePlan, state: TableState | None, slot: int, *, epoch: int, clock: int) -> Iterator[Step]:
    """Yield the steps of the plan of ``epoch`` for one node of a view."""
    name, ids = planned.name, _Ids(epoch, clock)
    path = table_path(name, "rows")
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
        side_path = side.path if side else table_path(name, "restored")
        table_id = side.table_id if side else ids.of(name, "restored")
        if side is None:
            yield CreateTable(name, "restored", side_path, table_id)
        yield StoreRestored(name, side_path, table_id, side.version if side else 0)


def _main_step(
    planned: StreamPlan | NodePlan, state: TableState | None, slot: int, ids: _Ids, *, batch: bool
) -> Iterator[Step]:
    layout, name = planned.layout, planned.name
    path = table_path(name, "rows")
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


def _overdue(catalog: Catalog, owner: str, state: TableState | None, slot: int, own: Sequence[Step]) -> Iterator[EraseRows]:
    """For ``erase_within``: rewrite the partitions that would keep expired rows for too long, after the table's own steps.

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


def _mergeable(found: Sequence[Seal], *, batch: bool) -> tuple[Seal, ...]:
    if batch:
        return tuple(found)
    kept = (
        type(seal)(seal.sub_index, tuple((block, runs) for block, runs in seal.blocks if runs > 1)) for seal in found
    )
    return tuple(seal for seal in kept if seal.blocks)


def _side(
    planned: StreamPlan, role: Role, side: SideTable | None, ids: _Ids, taken: tuple[int, ...]
) -> Iterator[Step]:
    name = planned.name
    path = side.path if side else table_path(name, role)
    table_id = side.table_id if side else ids.of(name, role)
    if side is None:
        yield CreateTable(name, role, path, table_id)
    version = side.version if side else 0
    if role == "deferred":
        yield MoveDeferred(name, path, table_id, version, taken)
    else:
        yield StoreRejected(name, path, table_id, version)
