"""Finds the rows that entered or left a table between two epochs, from the files of the readable epochs alone.

Invariant: for every i < j, the live rows of epoch i, without the rows reported as ``expire``, ``delete`` and
``update_preimage``, with those reported as ``insert`` and ``update_postimage``, are the live rows of epoch j, as bags.
A consumer's cursor is the number of the epoch up to which it has read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, read_epoch
from warehouse.errors import CursorLostError, UsageError
from warehouse.serving.change_plan import TableAtEpoch, changes_between
from warehouse.serving.change_query import CHANGE_COLUMNS, LIFE_COLUMNS, change_query
from warehouse.serving.lazy_rows import lazy_error
from warehouse.serving.pin import Pin, require
from warehouse.serving.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.serving.request import Request

__all__ = ["ChangeRead", "changes_of", "newest_asked"]


@dataclass(frozen=True)
class ChangeRead:
    """How to read the changes of a table: a statement, its columns, and the last epoch that it covers."""

    pin: Pin
    statement: Statement
    columns: tuple[tuple[str, str], ...]


def newest_asked(since: int, to: int | None) -> int:
    """Return the highest epoch that a request names.

    Raises
    ------
    UsageError
        When a number is not the number of an epoch.

    """
    return max(_numbers(since, to))


def changes_of(
    connection: duckdb.DuckDBPyConnection, pin: Pin, table: str, since: int, to: int | None, request: Request
) -> ChangeRead:
    """Return how to read the changes of a table after epoch ``since`` up to epoch ``to``, at most the pinned one.

    See :meth:`warehouse.serving.Reader.changes`.
    """
    _require_range(*_numbers(since, to), pin.epoch.number)
    last = pin
    if to is not None and to != pin.epoch.number:
        last = Pin(pin.root, _epochs(pin, table, to, to)[0], pin.snapshots, copies=pin.copies)
    state = last.state(table)
    if state.kind == "state":
        raise UsageError(f'"{table}" is what an operator of view "{state.owner}" keeps; ask for the changes of the view')
    if last.lazy(state) is not None:
        raise lazy_error(state.name, "its changes are not recorded")
    user_columns = last.table_columns(connection, state)
    epochs = (*_epochs(pin, table, since, last.epoch.number - 1), last.epoch)
    tables = _table_at_epochs(pin, epochs, state)
    plan = changes_between(tables)
    files = sorted(plan.files)
    local_paths = dict(zip(files, pin.local(files), strict=True))
    require((last.schema_file(state), *local_paths.values()))
    shown = request.shown(user_columns, LIFE_COLUMNS)
    text = change_query(
        plan.at(local_paths),
        [(table_at_epoch.epoch, table_at_epoch.window_time) for table_at_epoch in tables[1:]],
        [name for name, _ in user_columns],
        schema_file=last.schema_file(state),
        key=state.declaration.search_key if state.keyed else None,
        shown=[name for name, _ in shown],
        limit=request.limit,
    )
    return ChangeRead(last, Statement(text), (*shown, *CHANGE_COLUMNS))


def _numbers(since: int, to: int | None) -> tuple[int, int]:
    """Return both ends; without ``to``, the end is ``since``."""
    for name, number in (("since", since), ("to", since if to is None else to)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise UsageError(f"{name} is {number!r}; allowed: the number of an epoch (`stream-wh history` lists them)")
    return since, since if to is None else to


def _require_range(since: int, to: int, newest: int) -> None:
    if to < since:
        raise UsageError(f"to ({to}) is before since ({since}); give the earlier epoch as since")
    if to > newest:
        raise UsageError(f"there is no epoch {to}; the newest is {newest}, and `stream-wh history` lists the epochs")


def _epochs(pin: Pin, table: str, first: int, last: int) -> tuple[Epoch, ...]:
    """Return the epochs of a range, ends included; an empty list if the range is empty."""
    readable = epoch_numbers(pin.root)
    if any(number not in readable for number in range(first, last + 1)):
        reason = f"epochs before {readable[0]} fell out of `retain`, or an erasure retired them"
        raise CursorLostError(table, first, readable[-1], reason)
    return tuple(read_epoch(pin.root, number) for number in range(first, last + 1))


def _table_at_epochs(pin: Pin, epochs: Sequence[Epoch], state: TableState) -> list[TableAtEpoch]:
    """Return the table at each epoch; before it existed it has no file."""
    columns = {column.name: column.type for column in state.declaration.columns}
    tables: list[TableAtEpoch] = []
    old_state: TableState | None = None
    for epoch in epochs:
        new_state = epoch.table(state.name)
        if new_state is not None and any(columns.get(column.name) != column.type for column in new_state.declaration.columns):
            reason = f"the columns of epoch {epoch.number} are not those of today"
            raise CursorLostError(state.name, epochs[0].number, pin.epoch.number, reason)
        if (epoch.anchor, epoch.update_interval) != (pin.epoch.anchor, pin.epoch.update_interval):
            reason = f"anchor or update_interval of epoch {epoch.number} are not those of today"
            raise CursorLostError(state.name, epochs[0].number, pin.epoch.number, reason)
        files = () if new_state is None else Pin(pin.root, epoch, pin.snapshots).snapshot(new_state).files
        tables.append(TableAtEpoch(epoch.number, epoch.window_time, epoch.slot, files, _settled(epoch, old_state, new_state)))
        old_state = new_state
    return tables


def _settled(epoch: Epoch, old_state: TableState | None, new_state: TableState | None) -> bool:
    """Whether rows are in the partitions of the epoch before: an update that rebuilds tables, or closes rows, moves them."""
    if old_state is None or new_state is None:
        return True  # all rows are new, or all have left
    if new_state.coalesced is not None:
        return False
    rebuilt = old_state.view != new_state.view or old_state.schema_file != new_state.schema_file
    is_moved = old_state.layout != new_state.layout or old_state.former != new_state.former
    return epoch.cause == "update" and epoch.erased is None and not is_moved and not rebuilt
