"""All kinds of steps, one line each, and the explanation of a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warehouse.steps.appending import MOVE_WINDOW, REWRITE_CELLS
from warehouse.steps.buckets import MOVE_RELATION, REWRITE_BUCKETS
from warehouse.steps.definitions import ADD_COLUMNS, CREATE_TABLE, CUT_LOG, REPLACE_TABLE, RESTORE_TABLE, SET_PROPERTIES
from warehouse.steps.erased_rows import ERASE_ROWS
from warehouse.steps.expected_way import expected_ways
from warehouse.steps.kind import Incoming
from warehouse.steps.migrating import MIGRATE_TABLE
from warehouse.steps.side_tables import DROP_OVERDUE, MOVE_DEFERRED, STORE_REJECTED, STORE_RESTORED
from warehouse.units import counted

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.plan_record import Plan
    from warehouse.planning.steps import Step
    from warehouse.steps.kind import Kind, StepExplanation

__all__ = ["KINDS", "explain", "kind_of"]

KINDS: tuple[Kind[Any], ...] = (
    CREATE_TABLE,
    REPLACE_TABLE,
    ADD_COLUMNS,
    SET_PROPERTIES,
    RESTORE_TABLE,
    MIGRATE_TABLE,
    MOVE_WINDOW,
    REWRITE_CELLS,
    MOVE_RELATION,
    REWRITE_BUCKETS,
    MOVE_DEFERRED,
    STORE_REJECTED,
    STORE_RESTORED,
    DROP_OVERDUE,
    ERASE_ROWS,
    CUT_LOG,
)
_BY_STEP = {kind.step: kind for kind in KINDS}


def kind_of(step: Step) -> Kind[Any]:
    """Return the kind of a step."""
    return _BY_STEP[type(step)]


def explain(plan: Plan, last: Epoch | None, root: Path) -> tuple[StepExplanation, ...]:
    """Return what each step of a plan would do, and which way.

    ``last`` is the epoch that it starts from, ``root`` the directory of the warehouse.
    """
    come = {}
    for stream in plan.streams:
        files = [file for group in stream.inputs for file in group.files]
        gained = counted(len(files), "file") if files else "no new file"
        if stream.archive_of:
            gained = f"rows that expired from {stream.archive_of}"
        elif stream.synopsis is not None:
            gained = f"what {stream.synopsis.synopsis.source} takes in, counted"
        elif stream.coalesced is not None:
            gained = f"the points that {stream.coalesced.definition.source} takes in"
        elif stream.answers is not None:
            gained = f"the answers of {counted(len(stream.answers.due), 'window')}"
        come[stream.name] = Incoming(files, gained)
    results = Incoming((), "the results that come")
    kinds = [kind_of(step) for step in plan.steps]
    ways = expected_ways(plan, plan.base or last, root, kinds)
    return tuple(
        replace(kind.explain(number, step, come.get(step.stream, results)), way=way)
        for number, (step, kind, way) in enumerate(zip(plan.steps, kinds, ways, strict=True))
    )
