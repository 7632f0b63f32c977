"""Previews an update: its plan, and rows as it would load them; nothing is written and no lock is needed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from warehouse.epochs.journal import newest_epoch
from warehouse.errors import RecordDamagedError
from warehouse.operations.execution import CurrentState, recorded_plan, require_unchanged_declarations
from warehouse.operations.next_epoch import catch_up_slots, tables_standing_still
from warehouse.operations.standing_still import stopping
from warehouse.operations.window_times import new_slots, require_live_rows, target_slot
from warehouse.planning.declared_nodes import sound_nodes
from warehouse.planning.inputs import Excluded, LandingFacts, landing_facts
from warehouse.planning.plan import make_plan

if TYPE_CHECKING:
    from warehouse.operations.context import WriteContext
    from warehouse.operations.window_times import UpdateOptions
    from warehouse.planning.first_run import Sample
    from warehouse.planning.plan_record import Plan

__all__ = ["landing", "plan", "sample"]


def plan(context: WriteContext, options: UpdateOptions) -> tuple[Plan | None, tuple[LandingFacts, ...]]:
    """Return the plan that an update would record first (None: nothing to do), and the state of the landing directories."""
    catalog = context.catalog
    target = target_slot(catalog, options, context.clock())
    last = newest_epoch(context.root)
    with suppress(RecordDamagedError):  # an update reports it, or makes the plan again
        unfinished = recorded_plan(context.root, last)
        if unfinished is not None:
            return unfinished, ()
    require_unchanged_declarations(catalog, last)
    excluded: Excluded = {}
    slots = new_slots(context, options, target, last, excluded, context.reading_spark)
    inputs, waiting = context.inputs(last, excluded)
    current = CurrentState(last, stopped={} if last is None else stopping(context.root, last))
    views = sound_nodes(catalog)
    still = tables_standing_still(catalog, current, views)
    slots = slots or catch_up_slots(catalog, last, inputs, views, still)
    if not slots:
        return None, waiting
    require_live_rows(context, options, inputs, last, slots[0], excluded, context.reading_spark)
    inputs, waiting = context.inputs(last, excluded)
    nodes, refused = views
    update_plan = make_plan(
        catalog,
        last,
        [stream_input for stream_input in inputs if stream_input.stream.name not in still.tables],
        slot=slots[0],
        clock=context.clock(),
        nodes=still.moving(nodes),
        refused={**refused, **still.views},
        stopped=still.tables,
        changed=current.stopped.keys(),
    )
    return update_plan, waiting


def sample(context: WriteContext, options: UpdateOptions, most: int) -> tuple[Sample, ...]:
    """Return up to ``most`` waiting rows of each stream as an update would load them."""
    from warehouse.planning.first_run import samples  # noqa: PLC0415 - only looking at rows needs Spark to plan

    target = target_slot(context.catalog, options, context.clock())
    last = newest_epoch(context.root)
    inputs, _ = context.inputs(last, {})
    slot = target if last is None else max(target, last.slot)
    session, clock = context.reading_spark(), context.clock()
    return samples(session, context.catalog, inputs, slot=slot, clock=clock, last=last, most=most)


def landing(context: WriteContext) -> tuple[LandingFacts, ...]:
    """Return the waiting files in the landing directories, and the files that need a person."""
    return landing_facts(context.catalog, newest_epoch(context.root), context.clock())
