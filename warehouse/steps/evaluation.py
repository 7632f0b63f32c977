"""Compiled or interpreted: how Spark evaluates the expressions of a table's step.

Java code is generated for each plan, compiled when it is new, and then fast for every row. Few rows are evaluated sooner than
their code is made: an update of 300 rows takes 1.2 times the processor time with code that was compiled before, more without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.planning.steps import FormerCells, MigrateTable, MoveRelation, MoveWindow, RewriteCells, Step
from warehouse.views.algebra import scanned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.steps import NodePlan, Plan, StreamPlan

__all__ = ["INTERPRETED", "of_node", "of_stream"]

INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_CLASSIFIED = 10_000
"""Rows of a stream from which on code is worth its making: each is classified by some hundred expressions."""
_MAINTAINED = 1_000_000
"""Rows that a view's step looks through, by a few."""
_BYTES_OF_A_LINE = 64
_COMPRESSED_TO = 8
"""Bytes that are left of a line by gzip, or of a row in Parquet, about."""


def of_stream(plan: Plan, planned: StreamPlan, last: Epoch | None) -> Mapping[str, str]:
    """Return the session settings for a stream's, relation's or archive's batch and what is rewritten with it."""
    rows = _arriving(planned) + _stored(last, planned.archive_of) + _waiting(last, planned.name)
    state = last.table(planned.name) if last else None
    for step in plan.steps if state else ():
        if step.stream == planned.name and state is not None:
            rows += _rewritten(step, state)
    return INTERPRETED if rows < _CLASSIFIED else {}


def of_node(planned: NodePlan, last: Epoch | None, arrived: Mapping[str, int]) -> Mapping[str, str]:
    """Return the session settings for a node of a view; ``arrived`` are live rows of the batches of its inputs."""
    inputs = scanned(planned.node.operator)
    rows = sum(_stored(last, table) + arrived.get(table, 0) for table in inputs)
    return INTERPRETED if rows < _MAINTAINED else {}


def _arriving(planned: StreamPlan) -> int:
    files = [file for group in planned.inputs for file in group.files]
    parquet = planned.declaration.format == "parquet"
    return sum(
        file.size // (_COMPRESSED_TO if parquet or file.path.endswith(".gz") else _BYTES_OF_A_LINE) for file in files
    )


def _stored(last: Epoch | None, table: str | None) -> int:
    state = last.table(table) if last and table else None
    return sum(part.rows for part in state.partitions) if state else 0


def _waiting(last: Epoch | None, table: str) -> int:
    state = last.table(table) if last else None
    return sum(slot.rows for slot in state.deferred.waiting) if state and state.deferred else 0


def _rewritten(step: Step, state: TableState) -> int:
    match step:
        case MigrateTable() | MoveRelation():
            return sum(part.rows for part in state.partitions)
        case RewriteCells():
            return step.rows + _in(state, _of_former(step.former))
        case MoveWindow():
            sealed = {(seal.sub_index, block) for seal in step.seals for block, _ in seal.blocks}
            return _in(state, sealed | _of_former(step.former))
        case _:
            return 0


def _of_former(former: FormerCells) -> set[tuple[int, int]]:
    return {*former.aged, *former.moved}


def _in(state: TableState, cells: set[tuple[int, int]]) -> int:
    return sum(part.rows for part in state.partitions if (part.sub_index, part.exp_block) in cells)
