"""Drops a table that is no longer declared; its files are deleted once no readable epoch names them."""

from __future__ import annotations

from warehouse.epochs.known import known_files, known_of
from warehouse.epochs.records import Epoch, Loaded, Removed
from warehouse.errors import UnknownNameError, UsageError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import finish, write_epoch
from warehouse.operations.next_epoch import declared_tables

__all__ = ["drop"]


def drop(context: WriteContext, table: str) -> Epoch:
    """Remove a table that is no longer declared from the epochs, with its list of loaded files.

    Raises
    ------
    UnknownNameError
        When there is no such table.
    UsageError
        When it is still declared.

    """
    with locked(context):
        last = finish(context).last
        names = [state.name for state in last.tables] if last else []
        state = last.table(table) if last else None
        if last is None or state is None:
            raise UnknownNameError("table", table, names)
        if context.catalog.view(state.owner) is not None or table in declared_tables(context.catalog):
            raise UsageError(f'"{table}" is still declared; remove its section from warehouse.toml first')
        dropped = [entry for entry in last.tables if entry.owner == state.owner]
        paths = [path for entry in dropped for path in entry.paths]
        table_files = known_of(known_files(context.root, last), table)
        files = tuple(sorted({*table_files.loaded, *table_files.left_out, *table_files.reload}))
        return write_epoch(
            context,
            last,
            (Loaded(table, gone=files),) if files else (),
            cause="drop",
            tables=tuple(entry for entry in last.tables if entry not in dropped),
            removed=tuple(Removed(path, (), whole=True) for path in paths),
        )
