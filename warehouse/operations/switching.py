"""Switches a coalesced table between eager and lazy: an epoch builds a lazy table, or forgets the files of a stored one.

Nothing is lost either way: a table becomes lazy once its stream stores every point that the table has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.advice.coalescing import current_choices
from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.records import Removed
from warehouse.errors import MigrationError, UsageError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import finish, write_epoch
from warehouse.operations.migration import MigrationReport, MigrationRequest
from warehouse.operations.next_epoch import next_epoch
from warehouse.operations.standing_still import stopped_of
from warehouse.planning.declared_nodes import sound_nodes
from warehouse.planning.lazy_tables import lazy_table, lazy_tables
from warehouse.serving import Reader
from warehouse.serving.pin import require
from warehouse.serving.statement import select
from warehouse.views.algebra import tables_read

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Coalesced
    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Epoch
    from warehouse.serving.pin import Pin

__all__ = ["switch", "switched_table"]


def switched_table(context: WriteContext, table: str | None, last: Epoch | None) -> Coalesced | None:
    """Return the declared coalesced table of that name, if the epoch has it: a migration can only switch it."""
    if table is None or last is None:
        return None
    declared = context.catalog.coalesced_table(table)
    exists = last.table(table) is not None or last.lazy_table(table) is not None
    return declared if exists else None


def switch(context: WriteContext, table: Coalesced, request: MigrationRequest, *, dry_run: bool = False) -> MigrationReport:
    """Make a coalesced table eager or lazy, as it is declared.

    Raises
    ------
    UsageError
        When the request has other options.
    MigrationError
        When its stream is stopped, or does not store every point of the table; when the last update left files of it; or when
        readable epochs have files of the table from an earlier time.

    """
    name, catalog = table.name, context.catalog
    if request != MigrationRequest():
        raise UsageError(f'"{name}" is a coalesced table: `stream-wh migrate {name}`, without options, switches `how`')
    how = _wanted(context, table)
    if dry_run:
        newest = newest_epoch(context.root)
        if newest is None or _fits(newest, name, how):
            return MigrationReport(None)
        _require_possible(context, newest, table, how)
        return MigrationReport(None, switched=((name, how),))
    with locked(context):
        current = finish(context)
        last = current.last
        if last is None or _fits(last, name, how):
            return MigrationReport(None, finished=current.finished)
        stopped = stopped_of(last)
        for table_name in (name, table.definition.source):
            if table_name in stopped:
                raise MigrationError(table_name, f"it stands still: {stopped[table_name]}")
        if any(entry.more for entry in last.files):
            raise MigrationError(name, "the last update left files for another epoch; run `stream-wh update` first")
        _require_possible(context, last, table, how)
        if how == "eager":
            without_table = context.declared.with_lazy({lazy_entry.name for lazy_entry in catalog.lazy} - {name})
            epoch = next_epoch(context, current, sound_nodes(without_table), last.slot, {}, switched=without_table).last
        else:
            epoch = _forgotten(context, catalog.with_lazy({name}), last, table)
        return MigrationReport(epoch, switched=((name, how),), finished=current.finished)


def _wanted(context: WriteContext, table: Coalesced) -> str:
    """Return ``eager`` or ``lazy``: as declared or, if the declaration leaves it open, the way that costs less by a tenth."""
    catalog = context.catalog
    declared = "lazy" if table in catalog.lazy else "eager"
    if table.how != "auto":
        return declared
    with Reader.open(context.root) as reader:
        choice = next((choice for choice in current_choices(reader, catalog) if choice.table == table.name), None)
    return choice.better or choice.how if choice is not None else declared


def _fits(last: Epoch | None, name: str, how: str) -> bool:
    return last is None or (last.lazy_table(name) is not None) == (how == "lazy")


def _require_possible(context: WriteContext, last: Epoch, table: Coalesced, how: str) -> None:
    """Refuse to store a table where its former files are still there, and to forget points that its stream does not store."""
    if how == "eager" and (context.root / "tables" / table.name / "_delta_log").exists():
        raise MigrationError(
            table.name,
            'epochs that are still readable have its files from when it was stored; leave it how = "lazy" until they are gone, '
            "or lower `retain` in warehouse.toml and run `stream-wh vacuum` first",
        )
    if how == "lazy" and _is_alike(last, table):
        with Reader(context.root, last) as reader:
            stored, available = reader.retrying(lambda pin: _members(pin, reader, lazy_table(context.catalog, table)))
        if available < stored:
            raise MigrationError(
                table.name,
                f"its stream stores only {available} of the {stored} points in its window, since `expires` was shorter before; "
                "migrate it once the window has moved past the others",
            )


def _is_alike(last: Epoch, table: Coalesced) -> bool:
    """Whether a table is stored with the points that its declaration asks for."""

    def points(definition: CoalescedDefinition) -> object:
        return definition.source, definition.group_by, definition.window, definition.rows

    state = last.table(table.name)
    return state is not None and state.coalesced is not None and points(state.coalesced.definition) == points(table.definition)


def _members(pin: Pin, reader: Reader, table: LazyTable) -> list[int]:
    """Return the number of members of the stored rows, and of the rows that the stored points give."""
    tau, counts = pin.epoch.window_time, []
    stored, points = (pin.live_source(pin.state(name), tau) for name in (table.name, table.definition.source))
    for source in (stored, replace(points, lazy=table, points_at=tau)):
        require((source.schema_file, *source.files))
        query = f"SELECT coalesce(sum(members), 0)::BIGINT FROM ({select(source, ['members'])})"
        counts += [int(count) for (count,) in reader.connection.execute(query).fetchall()]
    return counts


def _forgotten(context: WriteContext, catalog: Catalog, last: Epoch, table: Coalesced) -> Epoch:
    """Write the epoch from which on a table has no files; other tables that wait for their migration do not change."""
    name, state = table.name, last.table(table.name)
    if state is None:
        raise TypeError(f"{name} is not stored")
    views = [
        view_state.owner
        for view_state in last.tables
        if view_state.view is not None and name in tables_read(view_state.view.node.operator)
    ]
    if views:
        raise MigrationError(name, f'the view "{views[0]}" reads it, and a view follows what changes in files')
    lazy = lazy_tables(catalog, last, last.window_time, forgotten=name)
    if not _is_alike(last, table):  # it is unknown whether all points are stored
        lazy = tuple(replace(entry, full_from=last.window_time) if entry.name == name else entry for entry in lazy)
    waiting = (entry for entry in last.lazy if entry.name not in {lazy_entry.name for lazy_entry in lazy})
    return write_epoch(
        context,
        last,
        (),
        cause="migrate",
        tables=tuple(stored for stored in last.tables if stored is not state),
        lazy=(*lazy, *waiting),
        removed=tuple(Removed(path, (), whole=True) for path in state.paths),
        previous_slot=last.slot,
        catalog_digest=catalog.digest,
        declared=catalog.keys,
    )
