"""Plans an erasure: a pure function from the epoch and the found rows to the plan of the next epoch.

The window does not move. First the rows are removed from the table and its side tables. Then the views above it are rebuilt over
the remaining rows. Then every log that may have traces of the rows gets a version at which it is cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.errors import UsageError
from warehouse.planning.node_plans import layout_of, plan_nodes
from warehouse.planning.plan_record import Plan
from warehouse.planning.steps import CreateTable, CutLog, EraseRows, StoreRestored
from warehouse.planning.table_steps import node_steps
from warehouse.views.algebra import scanned
from warehouse.views.language.recorded_nodes import same_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.operations.erasure.finding import RowsToErase
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan_record import Erasure, NodePlan
    from warehouse.planning.steps import Step

__all__ = ["FoundRows", "erasure_plan", "nodes_to_build"]


@dataclass(frozen=True)
class FoundRows:
    """The rows found in one table; rows that ended by ``dead_by`` (microseconds; None: none) are removed, too."""

    state: TableState
    found: tuple[RowsToErase, ...]
    dead_by: int | None


def nodes_to_build(nodes: Sequence[NodeInput], above: Sequence[TableState]) -> list[NodeInput]:
    """Return the declared nodes of tables above the erased one, with the columns that are recorded.

    Raises
    ------
    UsageError
        When a view above is not declared any more, or not as it was built.

    """
    states = {state.name: state for state in above}
    chosen = [node_input for node_input in nodes if node_input.node.table in states]
    declared = {node_input.view for node_input in chosen}
    for state in above:
        view = state.owner
        if view not in declared:
            raise UsageError(
                f'view "{view}" holds results of the rows and is no longer declared, so it cannot be built without them; '
                f"`stream-wh drop {view}` first"
            )
    result = []
    for node_input in chosen:
        state = states[node_input.node.table]
        record = state.view
        if record is None or not same_plan(record.node, node_input.node) or layout_of(node_input, state) != state.layout:
            raise UsageError(
                f'view "{node_input.view}" was changed in warehouse.toml; run `stream-wh update` first, which builds it'
            )
        result.append(replace(node_input, columns=state.declaration.columns, state=record.state))
    return result


def erasure_plan(
    last: Epoch,
    erasure: Erasure,
    tables: Sequence[FoundRows],
    above: Sequence[TableState],
    nodes: Sequence[NodeInput],
    *,
    clock: int,
    target_file_size: int | None = None,
) -> Plan:
    """Return the plan of the epoch after ``last`` that erases the found rows.

    Parameters
    ----------
    last
        The newest epoch.
    erasure
        The requested erasure.
    tables
        The found rows by table.
    above
        The tables of views to rebuild.
    nodes
        Their declarations.
    clock
        The wall-clock instant in microseconds.
    target_file_size
        Bytes of a file; None: the default.

    """
    epoch = last.number + 1
    steps: list[Step] = []
    for found_rows in tables:
        steps.extend(_erased(found_rows, keyed=bool(erasure.keys)))
    built = {node_input.node.table for node_input in nodes}
    inputs = [name for node_input in nodes for name in scanned(node_input.node.operator) if name not in built]
    is_complete = not any(entry.more for entry in last.files)
    planned = plan_nodes(nodes, last, inputs, slot=last.slot, moves=False, epoch=epoch, whole=is_complete)
    for node in planned:
        steps.extend(_rebuilt(node, last, epoch=epoch, clock=clock))
    steps.extend(
        EraseRows(state.name, "restored", state.restored.path, state.restored.table_id, state.restored.version, (),
                  state.restored.rows, keyed=True)
        for state in above
        if state.restored is not None and state.restored.rows
    )  # fmt: skip
    touched = {state.name: state for state in (*(found_rows.state for found_rows in tables), *above)}
    steps.extend(cut for state in touched.values() for cut in _cuts(state))
    return Plan(
        epoch=epoch,
        window_time=last.window_time,
        slot=last.slot,
        previous_slot=last.previous_slot,
        anchor=last.anchor,
        update_interval=last.update_interval,
        retain=last.log_retain,
        clock=clock,
        catalog_digest=last.catalog_digest,
        streams=(),
        steps=tuple(steps),
        nodes=tuple(planned),
        erasure=erasure,
        target_file_size=target_file_size,
    )


def _erased(table: FoundRows, *, keyed: bool) -> Iterator[EraseRows]:
    state = table.state
    side_tables = {"deferred": state.deferred, "rejected": state.rejected}
    for entry in table.found:
        if not entry.rows:
            continue
        if entry.role == "rows":
            yield EraseRows(
                state.name, "rows", state.path, state.table_id, state.version, entry.cells, entry.rows, keyed, table.dead_by
            )
        elif (side := side_tables[entry.role]) is not None:
            yield EraseRows(state.name, entry.role, side.path, side.table_id, side.version, entry.cells, entry.rows, keyed)


def _rebuilt(node: NodePlan, last: Epoch, *, epoch: int, clock: int) -> Iterator[Step]:
    """The steps that build a node; there is nothing to report as short-lived."""
    for step in node_steps(node, last.table(node.name), last.slot, epoch=epoch, clock=clock):
        if not isinstance(step, StoreRestored) and not (isinstance(step, CreateTable) and step.role == "restored"):
            yield step


def _cuts(state: TableState) -> Iterator[CutLog]:
    yield CutLog(state.name, state.path, state.table_id, state.version)
    for side in state.sides:
        yield CutLog(state.name, side.path, side.table_id, side.version)
