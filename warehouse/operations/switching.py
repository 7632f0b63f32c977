"""Switching a coalesced table between eager and lazy: an epoch builds a lazy one, or forgets the files of a stored one.

Nothing is lost either way: where a table can be lazy its stream has stored every point for the whole window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.advice.coalescing import choices_now
from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.records import Removed
from warehouse.errors import MigrationError, UsageError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import finish, write_epoch
from warehouse.operations.migration import MigrationReport, MigrationRequest
from warehouse.operations.next_epoch import next_epoch
from warehouse.operations.standing import stopped_of
from warehouse.planning.declared_nodes import sound_nodes
from warehouse.planning.lazy_tables import lazy_tables
from warehouse.serving import Reader
from warehouse.views.algebra import tables_read

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Coalesced
    from warehouse.epochs.records import Epoch

__all__ = ["switch", "switched_table"]


def switched_table(context: WriteContext, table: str | None, last: Epoch | None) -> Coalesced | None:
    """Return the declared coalesced table of that name, where it is there and a migration can only switch it."""
    if table is None or last is None:
        return None
    declared = context.catalog.coalesced_table(table)
    known = last.table(table) is not None or last.lazy_table(table) is not None
    return declared if known else None


def switch(context: WriteContext, table: Coalesced, request: MigrationRequest, *, dry_run: bool = False) -> MigrationReport:
    """Make a coalesced table as it is declared: eager or lazy.

    Raises
    ------
    UsageError
        When something else is asked for than that.
    MigrationError
        When its stream stands still, or the last update left files of it.

    """
    name, catalog = table.name, context.catalog
    if request != MigrationRequest():
        raise UsageError(f'"{name}" is a coalesced table: `stream-wh migrate {name}`, without options, switches `how`')
    how = _wanted(context, table)
    if dry_run:
        fits = _fits(newest_epoch(context.root), name, how)
        return MigrationReport(None, switched=() if fits else ((name, how),))
    with locked(context):
        current = finish(context)
        last = current.last
        if last is None or _fits(last, name, how):
            return MigrationReport(None, finished=current.finished)
        stopped = stopped_of(last)
        for each in (name, table.definition.source):
            if each in stopped:
                raise MigrationError(each, f"it stands still: {stopped[each]}")
        if any(entry.more for entry in last.files):
            raise MigrationError(name, "the last update left files for another epoch; run `stream-wh update` first")
        if how == "eager":
            others = context.declared.with_lazy({each.name for each in catalog.lazy} - {name})
            made = next_epoch(context, current, sound_nodes(others), last.slot, {}, switched=others).last
        else:
            made = _forgotten(context, catalog.with_lazy({name}), last, name)
        return MigrationReport(made, switched=((name, how),), finished=current.finished)


def _wanted(context: WriteContext, table: Coalesced) -> str:
    """How a table is to be kept: as it is declared, or where that is left open on the side that costs less by a tenth."""
    catalog = context.catalog
    now = "lazy" if table in catalog.lazy else "eager"
    if table.how != "auto":
        return now
    with Reader.open(context.root) as reader:
        found = next((each for each in choices_now(reader, catalog) if each.table == table.name), None)
    return found.better or found.how if found is not None else now


def _fits(last: Epoch | None, name: str, how: str) -> bool:
    return last is None or (last.lazy_table(name) is not None) == (how == "lazy")


def _forgotten(context: WriteContext, catalog: Catalog, last: Epoch, name: str) -> Epoch:
    """Write the epoch from which on a table has no files."""
    state = last.table(name)
    if state is None:
        raise TypeError(f"{name} is not stored")
    views = [each.owner for each in last.tables if each.view is not None and name in tables_read(each.view.node.operator)]
    if views:
        raise MigrationError(name, f'the view "{views[0]}" reads it, and a view follows what changes in files')
    return write_epoch(
        context,
        last,
        (),
        cause="migrate",
        tables=tuple(each for each in last.tables if each is not state),
        lazy=lazy_tables(catalog, last, last.window_time, forgotten=name),
        removed=tuple(Removed(path, (), whole=True) for path in state.paths),
        previous_slot=last.slot,
        catalog_digest=catalog.digest,
        declared=catalog.keys,
    )
