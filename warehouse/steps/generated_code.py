"""Decides whether Spark generates Java code for the rows of a step, from the number of rows.

Spark compiles the code of a plan that is new to it; then each row is fast. For few rows it takes longer to make the code than to
evaluate them: an update of 300 rows takes 1.2 times the processor time with code that was compiled before, and more with new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.ingest.size_estimates import CODE_GENERATION_ROWS, estimated_rows
from warehouse.steps.registry import kind_of
from warehouse.storage.session import INTERPRETED
from warehouse.views.algebra import scanned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.epochs.records import Epoch
    from warehouse.ingest.batch_counts import BatchCounts
    from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan

__all__ = ["node_settings", "stream_settings"]

_MAINTAINED = 1_000_000
"""The number of rows from which code pays for a step of a view, which looks at each row a few times."""


def stream_settings(plan: Plan, planned: StreamPlan, last: Epoch | None) -> Mapping[str, str]:
    """Return session settings for the batch of a stream, relation or archive, and for stored rows that are rewritten with it."""
    files = [file for group in planned.inputs for file in group.files]
    rows = estimated_rows(planned.declaration.format, files) + _stored_rows(last, planned.archive_of)
    state = last.table(planned.name) if last else None
    if state is not None:
        rows += sum(slot.rows for slot in state.deferred.waiting) if state.deferred else 0
        rows += sum(kind_of(step).rewritten_rows(step, state) for step in plan.steps if step.stream == planned.name)
    return INTERPRETED if rows < CODE_GENERATION_ROWS else {}


def node_settings(planned: NodePlan, last: Epoch | None, counted: Mapping[str, BatchCounts]) -> Mapping[str, str]:
    """Return session settings for a node of a view; ``counted`` has what the batches of its inputs hold, where it is known."""
    inputs = list(scanned(planned.node.operator))
    rows = sum(_stored_rows(last, table) + (counted[table].live if table in counted else 0) for table in inputs)
    return INTERPRETED if rows < _MAINTAINED else {}


def _stored_rows(last: Epoch | None, table: str | None) -> int:
    state = last.table(table) if last and table else None
    return sum(part.rows for part in state.partitions) if state else 0
