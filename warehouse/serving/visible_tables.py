"""The tables and columns of an epoch that users declared and can see: operators' state tables and columns are hidden.

A ``state`` table (``view.1``, ``view.1.spare``) belongs to a view and has the state of one of its operators. It is found by its
exact name, but not listed. In all tables, columns whose names begin with ``_`` belong to the warehouse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.layout.columns import is_system
from warehouse.serving.lazy_rows import lazy_states
from warehouse.views.algebra import AsOf, Operator, Scan, inputs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warehouse.epochs.records import Counts, Epoch, TableState

__all__ = ["counts_of", "inputs_of_view", "is_user_column", "read_by", "readable", "state_of", "visible", "with_tables_below"]


def visible(epoch: Epoch) -> tuple[TableState, ...]:
    """Return the tables of streams, relations and views."""
    return tuple(state for state in epoch.tables if state.kind != "state")


def readable(epoch: Epoch) -> tuple[TableState, ...]:
    """Return the visible tables, and coalesced tables without files."""
    return (*visible(epoch), *lazy_states(epoch))


def state_of(epoch: Epoch, view: str) -> tuple[TableState, ...]:
    """Return the tables with the state of a view's operators."""
    return tuple(state for state in epoch.tables if state.kind == "state" and state.owner == view)


def is_user_column(name: str) -> bool:
    """Whether a stored column is a user's: the warehouse's own columns begin with ``_``, or place a row in the grid."""
    return not is_system(name)


def counts_of(epoch: Epoch) -> tuple[Counts, ...]:
    """Return the counts of the epoch's update, without the tables of operators' state."""
    hidden = {state.name for state in epoch.tables if state.kind == "state"}
    return tuple(counts for counts in epoch.counts if counts.stream not in hidden)


def inputs_of_view(epoch: Epoch, view: str) -> tuple[str, ...]:
    """Return the streams, relations and views that a view reads, each once, in order of their first use."""
    nodes = [state for state in epoch.tables if state.view is not None and state.owner == view]
    node_names = {state.name for state in nodes}
    input_names = [name for state in nodes if state.view for name in read_by(state.view.node.operator)]
    return tuple(dict.fromkeys(name for name in input_names if name not in node_names))


def with_tables_below(epoch: Epoch, tables: Iterable[str]) -> set[str]:
    """Return these tables, and all tables that views of them read, directly or not."""
    seen, pending = set(), list(tables)
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        state = epoch.table(name)
        if state is not None and state.view is not None:
            nodes = [table.view.node for table in epoch.tables if table.view is not None and table.owner == state.owner]
            pending += [table_read for node in nodes for table_read in read_by(node.operator)]
    return seen


def read_by(operator: Operator) -> Iterator[str]:
    """Yield the tables that an operator reads, and the relations in which it looks up versions."""
    if isinstance(operator, Scan):
        yield operator.table
    for child in inputs_of(operator):
        yield from read_by(child)
    if isinstance(operator, AsOf):
        yield operator.relation
