"""Plans coalesced tables: each follows its stream in the same epoch, and its window moves with every update.

A table that is new, or whose declaration changed, is filled from the landing files that still exist, or else from the stream and
its archive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import ColumnRecord, table_declaration
from warehouse.catalog.model import DEFAULT_PERIODS
from warehouse.layout import keyed_layout
from warehouse.planning.following import CoalescedPlan
from warehouse.planning.plan_record import StreamPlan
from warehouse.planning.steps import AddColumns, CreateTable, ReplaceTable, RewriteBuckets

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from warehouse.catalog.model import Catalog, Coalesced
    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.files import InputFiles
    from warehouse.planning.steps import Step

__all__ = [
    "coalesced_of",
    "coalesced_plans",
    "coalesced_steps",
    "must_be_built",
    "rebuilt_tables",
    "without_points",
]


def must_be_built(definition: CoalescedDefinition, state: TableState | None) -> bool:
    """Whether a table must be built for its declaration: it does not exist, is emptied, or had another declaration.

    A shorter window needs no rebuild: rows outside it are removed.
    """
    record = state.coalesced if state else None
    if state is None or record is None or record.emptied or not state.declared:
        return True
    return _shape(record.definition) != _shape(definition) or _wider(record.definition, definition)


def _shape(definition: CoalescedDefinition) -> tuple[object, ...]:
    return (
        definition.source, definition.group_by, definition.values, definition.same, definition.of, definition.search_key,
        definition.window is None,
    )  # fmt: skip


def _wider(old: CoalescedDefinition, new: CoalescedDefinition) -> bool:
    return (new.window or 0) > (old.window or 0) or (new.rows or 0) > (old.rows or 0)


def without_points(catalog: Catalog, last: Epoch | None) -> list[str]:
    """Return the streams that have a table, and a coalesced table that must be built from their earlier points."""
    if last is None:
        return []
    sources = dict.fromkeys(
        table.definition.source for table in catalog.coalesced if must_be_built(table.definition, last.table(table.name))
    )
    return [name for name in sources if last.table(name) is not None]


def coalesced_of(epoch: Epoch, table: str) -> set[str]:
    """Return the coalesced tables of a stream's points."""
    return {state.name for state in epoch.tables if state.coalesced is not None and state.followed == table}


def rebuilt_tables(catalog: Catalog, last: Epoch | None) -> tuple[str, ...]:
    """Return the notices about existing coalesced tables that are rebuilt, with the points that they may lose."""
    messages = []
    for table in catalog.coalesced:
        state = last.table(table.name) if last else None
        if state is None or state.coalesced is None or state.coalesced.emptied or not must_be_built(table.definition, state):
            continue
        why = "it was not declared for a while" if not state.declared else "its declaration changed"
        messages.append(
            f'coalesced table "{table.name}" is rebuilt, since {why}: of what landing files that are still there give, else of '
            f"the rows that {table.definition.source} and its archive hold; points that neither has are lost to it"
        )
    return tuple(messages)


def coalesced_plans(
    catalog: Catalog,
    last: Epoch | None,
    streams: Sequence[StreamPlan],
    arriving: Collection[str],
    *,
    slot: int,
    stopped: Collection[str],
    landed: Mapping[str, tuple[InputFiles, ...]],
) -> list[StreamPlan]:
    """Return the plans of the coalesced tables of the planned streams; parameters as of aggregates."""
    plans = []
    for stream in streams:
        for table in catalog.coalesced:
            if table.definition.source == stream.name and table.name not in stopped:
                before = landed.get(stream.name, ())
                plans.append(_plan(table, last, stream, slot, before, arrives=stream.name in arriving))
    return plans


def _plan(
    table: Coalesced, last: Epoch | None, stream: StreamPlan, slot: int, landed: tuple[InputFiles, ...], *, arrives: bool
) -> StreamPlan:
    definition, state = table.definition, last.table(table.name) if last else None
    first = must_be_built(definition, state)
    history = first and last is not None and last.table(stream.name) is not None
    was_lazy = last is not None and last.lazy_table(table.name) is not None  # from stored points, as reads did
    sheds = definition.ledger or (not first and _has_ledger(state))
    definition = replace(definition, ledger=sheds)
    columns = tuple(ColumnRecord(name, kind) for name, kind in definition.columns)
    layout = state.layout if state is not None else keyed_layout(DEFAULT_PERIODS)
    return StreamPlan(
        name=table.name,
        declaration=table_declaration(columns, definition.search_key, label="STR", max_lifetime=None),
        layout=layout,
        k0=slot - layout.periods if first or last is None else last.slot,
        first=first,
        inputs=(),
        left_out=(),
        coalesced=CoalescedPlan(
            definition,
            arrives=arrives,
            opening=stream.first and (state is None or first),
            history=history,
            landed=landed if history and not was_lazy else (),
        ),
    )


def coalesced_steps(planned: StreamPlan, state: TableState | None, table_id: str) -> Iterator[Step]:
    """Yield the steps of a coalesced table; ``table_id`` is for a table that does not exist."""
    name, path = planned.name, f"tables/{planned.name}"
    if state is None:
        yield CreateTable(name, "rows", path, table_id)
    elif planned.first and state.coalesced is not None and not state.coalesced.emptied:
        yield ReplaceTable(name, path, state.table_id, state.version)
    elif planned.coalesced is not None and planned.coalesced.definition.ledger and not _has_ledger(state):
        yield AddColumns(name, "rows", path, state.table_id, state.version)
    yield RewriteBuckets(name, path, state.table_id if state else table_id, state.version if state else 0)


def _has_ledger(state: TableState | None) -> bool:
    """Whether the table has a column for shed members; it has one from its first budget on."""
    return state is not None and state.coalesced is not None and state.coalesced.definition.ledger
