"""Plans an update: a pure function from declarations, the last epoch and landing files to a plan.

It uses no clock, no file and no Spark: the same values always give the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import declaration_of, with_added
from warehouse.planning.aggregate_plans import Followed, aggregate_plans, over_views
from warehouse.planning.archive_plans import archive_plan
from warehouse.planning.coalesced_plans import coalesced_plans, rebuilt_tables, without_points
from warehouse.planning.keeping import keep_by_table, overdue_steps
from warehouse.planning.node_plans import NodeInput, overtaken, plan_nodes, rebuilt
from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan
from warehouse.planning.steps import MoveDeferred, Step
from warehouse.planning.table_steps import (
    TableIds,
    archive_steps,
    column_steps,
    expired_steps,
    following_steps,
    property_steps,
    stream_steps,
    view_steps,
)
from warehouse.time import at_slot
from warehouse.views.algebra import tables_read

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.files import InputFiles, LeftOut
    from warehouse.layout import Layout

__all__ = ["StreamInput", "columns_declared", "history_of", "make_plan"]


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
    keep, ids = keep_by_table(catalog), TableIds(epoch, clock)
    unbuilt_over = set(without_points(catalog, last))
    streams: list[StreamPlan] = []
    steps: list[Step] = []
    for stream_input in inputs:
        state = last.table(stream_input.stream.name) if last else None
        if state is not None and not moves and stream_input.continues is None:
            if columns_declared(stream_input, last) or stream_input.stream.name in unbuilt_over:
                planned = _stream_plan(replace(stream_input, groups=(), left_out=(), gone=(), more=0), state, last, slot, catalog)
                streams.append(planned)
                steps.extend(column_steps(planned, state))
            continue
        planned = _stream_plan(stream_input, state, last, slot, catalog)
        streams.append(planned)
        own_steps = list(stream_steps(planned, state, slot, ids, history_of(catalog)))
        if moves:
            steps.extend(overdue_steps(planned.name, state, dict(keep), clock))
        steps.extend((*own_steps, *expired_steps(catalog, planned.name, state, slot, own_steps)))
        steps.extend(property_steps(state, last, catalog.retain))
        if stream_input.stream.on_expiry == "archive" and (moves or (state is not None and state.stopped is not None)):
            streams.append(archive_plan(planned, last, slot))
            steps.extend(archive_steps(streams[-1], last, slot, ids, retain=catalog.retain))
    arriving = {step.stream for step in steps if isinstance(step, MoveDeferred)}
    follow = partial(aggregate_plans, catalog, last, slot=slot, epoch=epoch, stopped=stopped or (), landed=landed or {})
    for followed in follow([Followed.of_stream(stream, arriving) for stream in streams]):
        streams.append(followed)
        steps.extend(following_steps(followed, last, slot, ids, retain=catalog.retain))
    plan_coalesced = partial(coalesced_plans, slot=slot, stopped=stopped or (), landed=landed or {})
    for coalesced in plan_coalesced(catalog, last, tuple(streams), arriving):
        streams.append(coalesced)
        own_steps = list(following_steps(coalesced, last, slot, ids, retain=catalog.retain))
        state = last.table(coalesced.name) if last else None
        steps.extend((*own_steps, *expired_steps(catalog, coalesced.followed or "", state, slot, own_steps)))
    created = [stream.name for stream in streams if stream.first]
    answers = over_views(catalog)
    created += (name for name in answers if moves and (last is None or last.table(name) is None))
    passed = overtaken(nodes, last, created, {stream.name: stream.k0 + 1 for stream in streams if stream.name in arriving}, slot)
    planned_nodes = plan_nodes(
        [node_input for node_input in nodes if node_input.view not in passed], last, created,
        slot=slot, moves=moves or again or any(stream_input.continues for stream_input in inputs), epoch=epoch,
        whole=not _files_left(inputs, last),
    )  # fmt: skip
    first, after = _before_answers(planned_nodes, answers)
    views = follow(Followed.of_views(first, streams))
    streams += views
    steps += (step for node in first for step in view_steps(node, catalog, last, slot, ids, moves=moves))
    steps += (step for view_plan in views for step in following_steps(view_plan, last, slot, ids, retain=catalog.retain))
    steps += (step for node in after for step in view_steps(node, catalog, last, slot, ids, moves=moves))
    if last is not None and moves and changed is not None:
        planned_names = {table_plan.name for table_plan in streams} | {table_plan.name for table_plan in planned_nodes}
        unplanned = [state for state in last.tables if state.name not in planned_names]
        overdue = (step for state in unplanned for step in overdue_steps(state.owner, state, dict(keep), clock))
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
    return any(stream.more for stream in inputs) if inputs else last is not None and any(entry.more for entry in last.files)


def _before_answers(nodes: Sequence[NodePlan], answers: Sequence[str]) -> tuple[list[NodePlan], list[NodePlan]]:
    """Return the nodes that read no answers over views, directly or not, and the other nodes, which are planned later."""
    late, first, after = set(answers), list[NodePlan](), list[NodePlan]()
    for node in nodes:
        if any(table in late for table in tables_read(node.node.operator)):
            late.add(node.name)
        (after if node.name in late else first).append(node)
    return first, after


def _stream_plan(
    stream_input: StreamInput, state: TableState | None, last: Epoch | None, slot: int, catalog: Catalog
) -> StreamPlan:
    if stream_input.continues is not None:
        k0, first = stream_input.continues
    elif state is None or last is None:
        k0, first = slot - stream_input.layout.periods, True
    else:
        k0, first = last.slot, False
    stream = with_added(stream_input.stream, state.declaration if state else None)
    return StreamPlan(
        name=stream.name,
        declaration=declaration_of(stream, catalog.root),
        layout=stream_input.layout,
        k0=k0,
        first=first,
        inputs=stream_input.groups,
        left_out=stream_input.left_out,
        gone=stream_input.gone,
        more=stream_input.more,
    )


def history_of(catalog: Catalog) -> int | None:
    """Return how long a version of a relation may be looked up after its end: as long as rows that came before its end live."""
    lifetimes = [None if stream.over_lifetime == "accept" else stream.max_lifetime for stream in catalog.streams]
    return None if None in lifetimes else max((lifetime for lifetime in lifetimes if lifetime is not None), default=0)


def columns_declared(given: StreamInput, last: Epoch | None) -> bool:
    """Whether a stream's table must get newly declared columns; columns that files bring are added with the files."""
    state = last.table(given.stream.name) if last else None
    stored = {column.name for column in state.declaration.columns} if state else set()
    declared = [column.name for column in given.stream.columns if column.name not in given.stream.added]
    return state is not None and any(name not in stored for name in declared)
