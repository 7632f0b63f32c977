"""The next epoch: the tables and views that move, its plan, and the work that is left for another one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.errors import ForeignChangeError
from warehouse.operations.execution import CurrentState, begin, settle_foreign
from warehouse.operations.giving_up import give_up
from warehouse.operations.standing_still import StandingStill, standing_still, stopped_of
from warehouse.planning.aggregate_plans import without_history
from warehouse.planning.coalesced_plans import without_points
from warehouse.planning.declared_nodes import sound_nodes, with_columns
from warehouse.planning.inputs import Excluded, landed_before
from warehouse.planning.lazy_tables import lazy_tables
from warehouse.planning.node_plans import unbuilt
from warehouse.planning.plan import columns_declared, make_plan
from warehouse.time import at_slot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.catalog.model import Catalog
    from warehouse.coalescing.choosing import Choice
    from warehouse.epochs.records import Epoch
    from warehouse.operations.context import WriteContext
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan import StreamInput

__all__ = [
    "SoundViews",
    "catch_up_slots",
    "declared_tables",
    "epoch_of_files_left",
    "files_left",
    "load_files_left",
    "next_epoch",
    "tables_standing_still",
]

SoundViews = tuple[list["NodeInput"], dict[str, str]]
"""The nodes of the views that can be maintained, and the reasons, by name, why the other views stand still."""


def declared_tables(catalog: Catalog) -> set[str]:
    """Return the names of all declared tables except views: sources, aggregates, coalesced tables and archives."""
    following = {aggregate.name for aggregate in catalog.aggregates} | {table.name for table in catalog.coalesced}
    return {source.name for source in catalog.sources} | following | set(catalog.archives)


def tables_standing_still(catalog: Catalog, current: CurrentState, views: SoundViews) -> StandingStill:
    """Return the tables and views that stand still, since outsiders changed them or their inputs."""
    return standing_still(current.last, current.stopped, views[0], declared_tables(catalog))


def catch_up_slots(
    catalog: Catalog, last: Epoch | None, inputs: Sequence[StreamInput], views: SoundViews, still: StandingStill
) -> list[int]:
    """Return the slot of the last epoch again if the epoch is incomplete, else an empty list.

    It is incomplete if declared tables or columns do not exist yet, if files were left over, or if stopped tables can continue.
    """
    if last is None:
        return []
    declared = declared_tables(catalog)
    moving = [stream_input for stream_input in inputs if stream_input.stream.name not in still.tables]
    missing = any(last.table(stream_input.stream.name) is None or columns_declared(stream_input, last) for stream_input in moving)
    missing = missing or bool(unbuilt(still.moving(views[0]), last))
    missing = missing or any(name not in still.tables for name in without_points(catalog, last))
    missing = missing or any(name in declared and name not in still.tables for name in stopped_of(last))
    missing = missing or lazy_tables(catalog, last, last.window_time) != last.lazy
    return [last.slot] if missing or any(entry.more for entry in last.files) else []


def files_left(last: Epoch, still: StandingStill) -> bool:
    """Whether an epoch left files for the next one, of tables that do not stand still."""
    return any(entry.more and entry.stream not in still.tables for entry in last.files)


def next_epoch(
    context: WriteContext,
    current: CurrentState,
    views: SoundViews,
    slot: int,
    excluded: Excluded,
    inputs: Sequence[StreamInput] | None = None,
    *,
    switched: Catalog | None = None,
) -> CurrentState:
    """Make the next epoch, and return the state after it.

    Its ``last`` is the former epoch if the windows do not move and only impossible views were to be built.

    Parameters
    ----------
    context, current
        The warehouse, whose lock is held, and its state.
    views
        The declared views; views that Spark refuses are added to the stopped ones.
    slot
        The slot of the epoch.
    excluded
        Files that earlier epochs of the same update could not read.
    inputs
        The waiting files after ``current.last``; None: the landing directories are listed.
    switched
        The declarations of a migration that has decided which coalesced tables are lazy; None: the update decides about new
        tables.

    """
    last = current.last
    catalog, choices = (switched, ()) if switched is not None else chosen(context, last)
    if inputs is None:
        inputs, _ = context.inputs(last, excluded)
    sound, refused = views
    still = tables_standing_still(catalog, current, views)
    lazy = lazy_tables(catalog, last, at_slot(slot, catalog.anchor, catalog.update_interval))
    nodes = with_columns(still.moving(sound), catalog, last, slot, context.writing_spark, refused)
    plan = make_plan(
        catalog,
        last,
        [stream_input for stream_input in inputs if stream_input.stream.name not in still.tables],
        slot=slot,
        clock=context.clock(),
        nodes=nodes,
        refused={**refused, **still.views},
        stopped=still.tables,
        changed=current.stopped.keys(),
        landed=landed_before(catalog, last, [*dict.fromkeys((*without_history(catalog, last), *without_points(catalog, last)))]),
        lazy=lazy,
    )
    plan = msgspec.structs.replace(plan, choices=choices)
    if last is not None and plan.slot == last.slot and not plan.streams and not plan.nodes and plan.lazy == last.lazy:
        return current
    try:
        return replace(current, last=begin(context, current, plan))
    except ForeignChangeError:
        if last is None or not give_up(context.root, plan, last, at=context.clock()):
            raise
    settled = settle_foreign(context, last)
    adopted = [warning for epoch in settled.finished for warning in epoch.warnings]
    notices = (*current.notices, *settled.notices, *adopted)
    state = replace(settled, finished=current.finished, notices=notices)
    return next_epoch(context, state, views, slot, excluded, switched=switched)


def chosen(context: WriteContext, last: Epoch | None) -> tuple[Catalog, tuple[Choice, ...]]:
    """Return the declarations with the decisions about new coalesced tables, from the stored points."""
    catalog = context.catalog
    if last is None or not any(table.how == "auto" for table in catalog.coalesced):
        return catalog, ()
    from warehouse.advice.coalescing import first_choices, undecided_tables  # noqa: PLC0415 - few updates choose
    from warehouse.serving import Reader  # noqa: PLC0415 - same

    streams = {state.name for state in last.tables if state.kind == "stream"}
    tables = undecided_tables(catalog, {state.name for state in last.tables}, streams)
    if not tables:
        return catalog, ()
    with Reader(context.root, last) as reader:
        choices = first_choices(reader, catalog, tables)
    return catalog.with_lazy({choice.table for choice in choices if choice.how == "lazy"}), choices


def epoch_of_files_left(
    context: WriteContext, current: CurrentState, views: SoundViews, excluded: Excluded
) -> CurrentState:
    """Make the epoch that loads files left over by the last epoch; make no epoch if outsiders have just changed the table."""
    if current.last is None:
        raise TypeError("before the first epoch no files are left over")
    following = next_epoch(context, current, views, current.last.slot, excluded)
    if following.last is current.last and not following.stopped:
        raise TypeError("an epoch that left files has something to do")
    return following


def load_files_left(context: WriteContext, current: CurrentState, made: Epoch) -> list[Epoch]:
    """Make the epochs that load the files left over by an epoch of a verb other than an update.

    Raises
    ------
    ForeignChangeError
        When outsiders have changed the table of these files.

    """
    epochs: list[Epoch] = []
    views: SoundViews | None = None
    while any(entry.more for entry in made.files):
        views = views or sound_nodes(context.catalog)
        current = epoch_of_files_left(context, replace(current, last=made), views, {})
        if current.last is None or current.last is made:
            raise next(iter(current.stopped.values())).error
        epochs.append(made := current.last)
    return epochs
