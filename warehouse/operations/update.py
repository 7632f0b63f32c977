"""Moves the windows: lock, complete unfinished plans, plan, record the plan, execute it, write the epoch, free space."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers
from warehouse.epochs.known import keep_ledger
from warehouse.epochs.points import Point
from warehouse.errors import UsageError
from warehouse.health.judgement import ahead_of_clock
from warehouse.ingest.object_copies import drop_copies
from warehouse.limits import limits
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import CurrentState, finish, require_unchanged_declarations
from warehouse.operations.landing_archive import archive_loaded
from warehouse.operations.next_epoch import (
    catch_up_slots,
    epoch_of_files_left,
    files_left,
    next_epoch,
    tables_standing_still,
)
from warehouse.operations.publication import free_live_tables, publish_if_behind
from warehouse.operations.unneeded_files import VacuumReport, retire, sweep, trim_logs
from warehouse.operations.window_times import UpdateOptions, new_slots, require_live_rows, target_slot
from warehouse.planning.declared_nodes import sound_nodes
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.epochs.records import Epoch
    from warehouse.ingest.files import LeftOut
    from warehouse.planning.inputs import Excluded, LandingFacts

__all__ = ["UpdateOptions", "UpdateReport", "update"]


@dataclass(frozen=True)
class UpdateReport:
    """The result of an update: the epochs it made (empty: nothing to do), and the files that need a person.

    ``left_out`` are files that these epochs could not load; ``landing`` the facts from before; ``refused`` views with faults in
    their declaration, with the first fault. ``stopped`` tables stand still, since outsiders changed them.
    """

    epochs: tuple[Epoch, ...]
    finished: tuple[Epoch, ...] = ()
    left_out: tuple[tuple[str, LeftOut], ...] = ()
    landing: tuple[LandingFacts, ...] = ()
    vacuum: VacuumReport = field(default_factory=VacuumReport)
    warnings: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    stopped: tuple[tuple[str, str], ...] = ()

    @property
    def landing_now(self) -> tuple[LandingFacts, ...]:
        """The landing directories after the update, as far as it saw them: files that it left out are unreadable."""
        landing_facts = []
        for facts in self.landing:
            unreadable = [*facts.unreadable, *(problem for stream, problem in self.left_out if stream == facts.stream)]
            landing_facts.append(
                replace(facts, unreadable=tuple({problem.file.path: problem for problem in unreadable}.values()))
            )
        return tuple(landing_facts)

    @property
    def failed_views(self) -> tuple[tuple[str, str], ...]:
        """The views that the last of these epochs could not maintain, and views whose declaration cannot be maintained."""
        epochs = (*self.finished, *self.epochs)
        tables = epochs[-1].tables if epochs else ()
        failed = {state.view.view: state.view.failed for state in tables if state.view and state.view.failed}
        return tuple({**failed, **dict(self.refused)}.items())


def update(context: WriteContext, options: UpdateOptions) -> UpdateReport:
    """Move every window to the last grid point at or before T.

    Raises
    ------
    UpdateTimeError, EmptyFirstRunError, LockHeldError, ChangedDeclarationError, LandingError, ForeignChangeError
        Either nothing was written, or a later update completes the begun work.

    """
    target = target_slot(context.catalog, options, context.clock())
    with locked(context):
        return _update(context, options, target)


def _update(context: WriteContext, options: UpdateOptions, target: int) -> UpdateReport:
    catalog, spark = context.catalog, context.writing_spark
    current = finish(context)
    last, finished = current.last, current.finished
    warnings = (*require_unchanged_declarations(catalog, last), *current.notices, *_ahead(context, last, options))
    if last is not None and options.start is not None:
        raise UsageError("--from is for the first update; the warehouse has epochs already. Leave it out")
    excluded: Excluded = {}
    slots = new_slots(context, options, target, last, excluded, spark)
    inputs, landing = context.inputs(last, excluded)
    views = sound_nodes(catalog)
    slots = slots or catch_up_slots(catalog, last, inputs, views, tables_standing_still(catalog, current, views))
    if slots:
        require_live_rows(context, options, inputs, last, slots[0], excluded, spark)
    epochs_made: list[Epoch] = []
    for slot in slots:
        listed_inputs = inputs if not epochs_made and not any(excluded.values()) else None
        before, current = current.last, next_epoch(context, current, views, slot, excluded, listed_inputs)
        while current.last is not None and current.last is not before:
            epochs_made.append(current.last)
            if not files_left(current.last, tables_standing_still(catalog, current, views)):
                break
            before, current = current.last, epoch_of_files_left(context, current, views, excluded)
    epochs = (*finished, *epochs_made)
    _tidy_up(context, current, epochs)
    freed = _free_space(context, current, epochs)
    if epochs_made:
        warnings = (*warnings, *_view_differences(context, epochs_made[-1]))
    still = tables_standing_still(catalog, current, views)
    return UpdateReport(
        epochs=tuple(epochs_made),
        finished=finished,
        left_out=tuple((entry.stream, file) for epoch in epochs for entry in epoch.files for file in entry.left_out),
        landing=landing,
        vacuum=freed,
        warnings=tuple(dict.fromkeys((*warnings, *current.notices))),
        refused=tuple(sorted({**views[1], **still.views}.items())),
        stopped=tuple(sorted(still.tables.items())),
    )


def _ahead(context: WriteContext, last: Epoch | None, options: UpdateOptions) -> Iterator[str]:
    """Warn that an update up to now has nothing to do, since an earlier one went ahead of the clock."""
    now = context.clock()
    if options.at is None and last is not None and last.window_time > now + context.catalog.update_interval:
        yield ahead_of_clock(last.window_time, now)


def _tidy_up(context: WriteContext, current: CurrentState, epochs: Sequence[Epoch]) -> None:
    """Write the ledger of landing files and remove copies of objects; without an epoch, publish missing files."""
    last = current.last
    if not epochs:
        publish_if_behind(context, last)
    elif last is not None:
        keep_ledger(context.root, last, epoch_numbers(context.root)[0])
        for source in context.catalog.sources:
            drop_copies(source)


def _free_space(context: WriteContext, current: CurrentState, epochs: Sequence[Epoch]) -> VacuumReport:
    """Delete the files that no readable epoch needs, unless ``vacuum`` leaves this to the command."""
    root, catalog, newest = context.root, context.catalog, current.last
    if catalog.vacuum != "auto" or newest is None:
        return VacuumReport()
    freed = retire(
        root,
        retain=catalog.retain,
        now=context.clock(),
        retired=lambda: context.observe(Point.RETIRED, newest.number),
    )
    bounded = catalog.erase_within  # dead rows leave no trace in logs, nor in leftovers of crashes
    if bounded:
        freed += sweep(root, now=context.clock(), spared=current.stopped)
        freed += free_live_tables(context, newest)
    if bounded or (freed.epochs and _trims_logs(context, epochs)):
        freed += trim_logs(root, bounded)
    freed += VacuumReport(landing=archive_loaded(catalog, rarely=True))
    context.observe(Point.VACUUMED, newest.number)
    return freed


def _trims_logs(context: WriteContext, epochs: Sequence[Epoch]) -> bool:
    """Whether to trim the tables' logs after these epochs: on a disk always, in an object store seldom: a request a file."""
    interval = limits().past_records
    return store_of(context.root).cheap_requests or any(epoch.number % interval == 0 for epoch in epochs)


def _view_differences(context: WriteContext, newest: Epoch) -> Iterator[str]:
    """Compare the views with their queries if this is due, and yield the differences."""
    interval, now = context.catalog.verify_views, context.clock()
    if interval is None or not context.catalog.views:
        return
    from warehouse.epochs.view_findings import last_verified, note_verified  # noqa: PLC0415 - now and then
    from warehouse.operations.verification import kept_verdicts, verdicts_of  # noqa: PLC0415 - same

    last_comparison = last_verified(context.root)
    if last_comparison is not None and 0 <= now - last_comparison < interval:  # a clock that was ahead puts no comparison off
        return
    verdicts = list(verdicts_of(context.root, newest, context.writing_spark()))
    kept_verdicts(context.root, verdicts, now)
    note_verified(context.root, now)
    for verdict in verdicts:
        if verdict.outcome == "differs":
            yield f'view "{verdict.view}" differs from its query: {"; ".join((verdict.reason, *verdict.rows))}'
