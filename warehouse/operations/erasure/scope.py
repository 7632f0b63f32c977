"""What an erasure touches: the tables above a table, by what the epoch records of views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.serving.visible_tables import read_by
from warehouse.steps.erased_keys import held_in

if TYPE_CHECKING:
    from warehouse.epochs.records import Epoch, TableState

__all__ = ["answers_of", "beside", "tables_above"]


def beside(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return the tables from which the rows of a stream's keys go too: its archive, and what follows it by its key."""
    state = epoch.table(table)
    key = () if state is None else state.declaration.search_key
    following = (each for each in answers_of(epoch, table) if held_in(each, key) is not None)
    return (*(each for each in epoch.tables if each.archive_of == table), *following)


def answers_of(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return the synopses of a stream, the answers of aggregates over it, and coalesced tables of its points."""
    return tuple(state for state in epoch.tables if state.followed == table)


def tables_above(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return the tables of views and of their operators' state that hold what was derived from a table, in the epoch's order.

    Relations that a view looks versions up in count as read, and answers that have a stream's key as the stream.
    """
    above: set[str] = set()
    followed = (*beside(epoch, table), *(state for state in answers_of(epoch, table) if state.coalesced is not None))
    below = {table, *(state.name for state in followed if state.answers is not None or state.coalesced is not None)}
    while True:
        found = {
            state.name
            for state in epoch.tables
            if state.view is not None and not {*below, *above}.isdisjoint(read_by(state.view.node.operator))
        }
        if found == above:
            return tuple(state for state in epoch.tables if state.name in above)
        above = found

