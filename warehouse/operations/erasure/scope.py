"""What an erasure touches: the tables above a table, by what the epoch records of views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.serving.visible_tables import read_by

if TYPE_CHECKING:
    from warehouse.epochs.records import Epoch, TableState

__all__ = ["archives_of", "tables_above"]


def archives_of(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return the tables that keep the expired rows of a stream: its archive, or none."""
    return tuple(state for state in epoch.tables if state.archive_of == table)


def tables_above(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return the tables of views and of their operators' state that hold what was derived from a table, in the epoch's order.

    Relations that a view looks versions up in count as read.
    """
    above: set[str] = set()
    while True:
        found = {
            state.name
            for state in epoch.tables
            if state.view is not None and any(name == table or name in above for name in read_by(state.view.node.operator))
        }
        if found == above:
            return tuple(state for state in epoch.tables if state.name in above)
        above = found

