"""The options of an update, and the window times of its epochs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.errors import UpdateTimeError, UsageError
from warehouse.time import format_instant, grid_slot, slot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.operations.context import WriteContext
    from warehouse.planning.inputs import Excluded
    from warehouse.planning.plan import StreamInput

__all__ = ["UpdateOptions", "new_slots", "require_live_rows", "target_slot"]


@dataclass(frozen=True)
class UpdateOptions:
    """The options of an update; instants in microseconds.

    ``at`` is T (None: now); ``each`` makes one epoch per slot, from ``start`` on a first run.
    """

    at: int | None = None
    each: bool = False
    start: int | Literal["first"] | None = None
    allow_dead: bool = False
    future: bool = False


def target_slot(catalog: Catalog, options: UpdateOptions, now: int) -> int:
    """Return the slot of the last grid point at or before T; ``now`` is in microseconds.

    Raises
    ------
    UpdateTimeError, UsageError
        When T is too far ahead of the clock or before the anchor, or ``start`` comes without ``each``.

    """
    instant = now if options.at is None else options.at
    if options.start is not None and not options.each:
        raise UsageError("--from says where --each starts; give --each too")
    if instant > now + catalog.update_interval and not options.future:
        raise UpdateTimeError(
            f"{format_instant(instant)} is further ahead of the clock ({format_instant(now)}) than one update interval; "
            "every row that expires before it would be lost. Give --future if you mean it",
        )
    target = grid_slot(instant, catalog.anchor, catalog.update_interval)
    if target < 0:
        raise UpdateTimeError(
            f"{format_instant(instant)} is before the anchor {format_instant(catalog.anchor)}; "
            "choose a later time, or an earlier anchor while the warehouse is empty",
        )
    return target


def new_slots(
    context: WriteContext,
    options: UpdateOptions,
    target: int,
    last: Epoch | None,
    excluded: Excluded,
    spark: Callable[[], SparkSession],
) -> list[int]:
    """Return the slots of the epochs up to a target, the oldest first; empty when the windows do not move."""
    catalog = context.catalog
    if last is not None and target <= last.slot:
        return []
    if not options.each:
        return [target]
    if last is not None:
        return list(range(last.slot + 1, target + 1))
    start = options.start
    if not isinstance(start, int):
        start = _earliest_arrival(context, target, excluded, spark)
    first = target if start is None else slot(start, catalog.anchor, catalog.update_interval)
    return list(range(min(max(0, first), target), target + 1))


def _earliest_arrival(
    context: WriteContext, target: int, excluded: Excluded, spark: Callable[[], SparkSession]
) -> int | None:
    from warehouse.planning.first_run import earliest_arrival  # noqa: PLC0415 - only a first run needs Spark to plan

    inputs, _ = context.inputs(None, excluded)
    if not any(group.files for stream_input in inputs for group in stream_input.groups):
        return None
    return earliest_arrival(
        spark(), context.catalog, inputs, slot=target, clock=context.clock(), excluded=excluded
    )


def require_live_rows(
    context: WriteContext,
    options: UpdateOptions,
    inputs: Sequence[StreamInput],
    last: Epoch | None,
    moment: int,
    excluded: Excluded,
    spark: Callable[[], SparkSession],
) -> None:
    """Refuse to create a table from files without a live row at a slot, unless that is allowed.

    Raises
    ------
    EmptyFirstRunError
        When every waiting row would be dead.

    """
    created = [stream_input for stream_input in inputs if last is None or last.table(stream_input.stream.name) is None]
    if options.allow_dead or not any(group.files for stream_input in created for group in stream_input.groups):
        return
    from warehouse.planning.first_run import refuse_empty  # noqa: PLC0415 - only a first run needs Spark to plan

    context.classified = refuse_empty(
        spark(),
        context.catalog,
        created,
        slot=moment,
        clock=context.clock(),
        excluded=excluded,
        replays=options.each,
        last=last,
    )
