"""Moving the windows: lock, finish what was begun, plan, record the plan, execute it, write the epoch, free space."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.drift import compare
from warehouse.epochs.journal import epoch_numbers, newest_epoch, read_epoch
from warehouse.epochs.known import keep_ledger, known_files, known_of
from warehouse.epochs.lock import writer_lock
from warehouse.epochs.points import Moment, Point
from warehouse.epochs.records import Epoch, Loaded, Removed
from warehouse.errors import (
    ChangedDeclarationError,
    ForeignChangeError,
    NoEpochError,
    RecordDamagedError,
    UnknownNameError,
    UpdateTimeError,
    UsageError,
)
from warehouse.ingest.object_copies import drop_copies
from warehouse.limits import limits
from warehouse.objects.path import ObjectPath
from warehouse.operations.after_load import put_away
from warehouse.operations.giving_up import give_up
from warehouse.operations.landing_path import landing_path
from warehouse.operations.mend import set_aside_torn
from warehouse.operations.plan_executor import PlanExecutor, released
from warehouse.operations.standing import StandingStill, behind, standing_still, stopped_of, stopping
from warehouse.operations.vacuum import GRACE, VacuumReport, retire, sweep, tidy_records, trim_logs
from warehouse.planning.aggregate_plans import without_history
from warehouse.planning.declared_nodes import declared_nodes, sound_nodes, with_columns
from warehouse.planning.inputs import Excluded, LandingFacts, landed_before, landing_facts
from warehouse.planning.node_plans import unbuilt
from warehouse.planning.plan import columns_declared, make_plan
from warehouse.time import format_instant, grid_slot, slot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from warehouse.ingest.files import LeftOut
    from warehouse.operations.erasure.erase import Outlook
    from warehouse.operations.erasure.receipt import Receipt
    from warehouse.operations.going_back import GoingBack
    from warehouse.operations.migrate import Migrating, MigrationReport, MigrationRequest
    from warehouse.operations.restate import RestateReport
    from warehouse.operations.rollback import RollbackReport
    from warehouse.operations.undo import Undone
    from warehouse.planning.first_run import Sample
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan import StreamInput
    from warehouse.planning.steps import Plan

__all__ = ["UpdateOptions", "UpdateReport", "Updater"]


@dataclass(frozen=True)
class UpdateOptions:
    """What an update is asked for; instants in microseconds.

    ``at`` is T (none: now); ``each`` makes one epoch per slot, from ``start`` on a first run.
    """

    at: int | None = None
    each: bool = False
    start: int | Literal["first"] | None = None
    allow_dead: bool = False
    future: bool = False


@dataclass(frozen=True)
class UpdateReport:
    """What an update did: the epochs it made (none: nothing to do), and the files that need a person.

    ``left_out`` are files that these epochs could not load; ``landing`` what was known before; ``refused`` views with
    faults in their declaration, with the first. ``stopped`` tables stand still, since outsiders changed them.
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
        """What the landing directories hold after the update, as far as it saw them: files that it left out are unreadable."""
        found = []
        for facts in self.landing:
            left = [*facts.unreadable, *(problem for stream, problem in self.left_out if stream == facts.stream)]
            found.append(replace(facts, unreadable=tuple({each.file.path: each for each in left}.values())))
        return tuple(found)

    @property
    def failed_views(self) -> tuple[tuple[str, str], ...]:
        """The views that the last of these epochs could not maintain, and those that cannot be as they are declared."""
        epochs = (*self.finished, *self.epochs)
        tables = epochs[-1].tables if epochs else ()
        failed = {state.view.view: state.view.failed for state in tables if state.view and state.view.failed}
        return tuple({**failed, **dict(self.refused)}.items())


@dataclass(frozen=True)
class RebuildReport:
    """The epoch in which a view was rebuilt; ``finished`` were completed before."""

    epoch: Epoch
    finished: tuple[Epoch, ...] = ()

    @property
    def failed_views(self) -> tuple[tuple[str, str], ...]:
        """The views that could not be built, or that differ from their queries."""
        return tuple(
            {state.view.view: state.view.failed for state in self.epoch.tables if state.view and state.view.failed}.items()
        )


@dataclass(frozen=True)
class Updater(PlanExecutor):
    """Moves the windows of one warehouse, and carries out all other verbs that write."""

    @cached_property
    def _nodes(self) -> list[NodeInput]:
        """The nodes of the declared views, which must all be sound."""
        return declared_nodes(self.catalog)

    @cached_property
    def _sound(self) -> tuple[list[NodeInput], dict[str, str]]:
        """The nodes of the views that can be maintained, and why the others cannot: they stand still, the rest moves."""
        return sound_nodes(self.catalog)

    # --- verbs ---

    def update(self, options: UpdateOptions) -> UpdateReport:
        """Move every window to the last grid point at or before T.

        Raises
        ------
        UpdateTimeError, EmptyFirstRunError, LockHeldError, ChangedDeclarationError, LandingError, ForeignChangeError
            Nothing was written then, or a later update completes what was begun.

        """
        target = self._target(options)
        with writer_lock(self.root, self.clock()):
            self.observer(Moment(Point.LOCKED, -1))
            with released(self.root):
                return self._update(options, target)

    def plan(self, options: UpdateOptions) -> tuple[Plan | None, tuple[LandingFacts, ...]]:
        """Return the plan that an update would record first (none: nothing to do), writing nothing; it needs no lock."""
        target = self._target(options)
        last = newest_epoch(self.root)
        with suppress(RecordDamagedError):  # an update will say so, or make it again
            unfinished = self._recorded_plan(last)
            if unfinished is not None:
                return unfinished, ()
        self._check_drift(last)
        excluded: Excluded = {}
        slots = self._slots(options, target, last, excluded, self._some_spark)
        inputs, landing = self._inputs(last, excluded)
        self.stopped.clear()
        self.stopped.update({} if last is None else stopping(self.root, last))
        still = self._standing(last)
        slots = slots or self._still(last, inputs, still)
        if not slots:
            return None, landing
        self._refuse_empty(options, inputs, last, slots[0], excluded, self._some_spark)
        inputs, landing = self._inputs(last, excluded)
        nodes, refused = self._sound
        plan = make_plan(
            self.catalog,
            last,
            [given for given in inputs if given.stream.name not in still.tables],
            slot=slots[0],
            clock=self.clock(),
            nodes=still.moving(nodes),
            refused={**refused, **still.views},
            stopped=still.tables,
            changed=self.stopped.keys(),
        )
        return plan, landing

    def sample(self, options: UpdateOptions, most: int) -> tuple[Sample, ...]:
        """Return up to ``most`` waiting rows of each stream as an update would load them, writing nothing; it needs no lock."""
        from warehouse.planning.first_run import samples  # noqa: PLC0415 - only looking at rows needs Spark to plan

        target = self._target(options)
        last = newest_epoch(self.root)
        inputs, _ = self._inputs(last, {})
        slot = target if last is None else max(target, last.slot)
        return samples(self._some_spark(), self.catalog, inputs, slot=slot, clock=self.clock(), last=last, most=most)

    def reload(self, path: str) -> Epoch:
        """Mark a loaded landing file for the next update that moves the window; it writes an epoch at the same time."""
        with writer_lock(self.root, self.clock()), released(self.root):
            last, _ = self._finish()
            if last is None:
                raise UsageError("nothing has been loaded yet; the next update loads every landing file")
            stream, relative = landing_path(self.catalog, path)
            known = known_of(known_files(self.root, last), stream.name)
            if relative not in known.loaded and relative not in known.left_out:
                raise UsageError(f'"{relative}" was not loaded by stream "{stream.name}"; the next update loads new files')
            return self._record(last, (Loaded(stream.name, reload=(relative,)),), cause="reload")

    def drop(self, table: str) -> Epoch:
        """Forget a table that is no longer declared, and what it loaded; its files go when no readable epoch names them."""
        with writer_lock(self.root, self.clock()), released(self.root):
            last, _ = self._finish()
            names = [state.name for state in last.tables] if last else []
            state = last.table(table) if last else None
            if last is None or state is None:
                raise UnknownNameError("table", table, names)
            declared = table in self._declared
            if self.catalog.view(state.owner) is not None or declared:
                raise UsageError(f'"{table}" is still declared; remove its section from warehouse.toml first')
            dropped = [each for each in last.tables if each.owner == state.owner]
            paths = [path for each in dropped for path in each.paths]
            known = known_of(known_files(self.root, last), table)
            files = tuple(sorted({*known.loaded, *known.left_out, *known.reload}))
            return self._record(
                last,
                (Loaded(table, gone=files),) if files else (),
                cause="drop",
                tables=tuple(entry for entry in last.tables if entry not in dropped),
                removed=tuple(Removed(path, (), whole=True) for path in paths),
            )

    def rollback(self, to_epoch: int) -> RollbackReport:
        """Write an epoch with the contents of an earlier one, at the newest window time; see :mod:`.rollback`.

        Raises
        ------
        RollbackError, MissingPartError
            When it cannot be gone back to; nothing was written then.

        """
        with self._going_back() as going:
            return going.roll_back(to_epoch)

    def restate(
        self,
        table: str,
        *,
        since: int | Literal["first"] | None = None,
        rejected: bool = False,
        allow_lost: bool = False,
    ) -> RestateReport:
        """Read landing files of a stream or relation once more, in place of the rows they gave; see :mod:`.restate`.

        Parameters
        ----------
        table
            A declared stream or relation.
        since
            Files that were loaded after this window time (microseconds); none: all whose epochs are still readable; ``first``:
            every file that is known. Then what the table on disk cannot follow, such as a column's type, may have changed.
        rejected
            Only records that were rejected, and files that could not be read.
        allow_lost
            Go on although files that gave rows are not there any more: these rows are lost.

        Raises
        ------
        RestateError
            When it cannot be done; nothing was written then.

        """
        with self._going_back() as going:
            return going.restate(table, since, rejected=rejected, allow_lost=allow_lost)

    def rebuild(self, view: str) -> RebuildReport:
        """Rebuild a view over the live rows, with the state of its operators and the views that read it; see :mod:`.rebuild`.

        Raises
        ------
        UnknownNameError, ConfigurationError
            When there is no such view, or it cannot be maintained as it is declared; nothing was written then.

        """
        from warehouse.operations.rebuild import rebuild_plan  # noqa: PLC0415 - rarely needed

        with writer_lock(self.root, self.clock()), released(self.root):
            self.observer(Moment(Point.LOCKED, -1))
            last, finished = self._finish()
            if last is None:
                raise NoEpochError(f"nothing has been loaded under {self.root} yet, so no view is built")
            self._check_drift(last)
            sound, refused = self._sound
            still = behind(last, sound)
            if view in still.views:
                raise UsageError(f'view "{view}" stands still: {still.views[view]}')
            given, refused = still.moving(sound), {**refused, **still.views}
            plan = rebuild_plan(
                self.catalog, last, view, given, refused, slot=last.slot, clock=self.clock(), spark=self._guarded_spark
            )
            return RebuildReport(self._begun(plan, last), finished)

    def migrate(self, table: str | None, request: MigrationRequest, *, dry_run: bool = False) -> MigrationReport:
        """Give a table, or every one whose declaration asks for it, another layout, columns or grid of times.

        See :mod:`.migrate`; a dry run needs no lock and writes nothing.

        Raises
        ------
        MigrationError, UsageError, LayoutError
            When it cannot be done, or not in this way; nothing was written then.

        """
        if dry_run:
            return self._migrating(newest_epoch(self.root), ()).migrate(table, request, dry_run=True)
        with writer_lock(self.root, self.clock()), released(self.root):
            self.observer(Moment(Point.LOCKED, -1))
            last, finished = self._finish()
            report = self._migrating(last, finished).migrate(table, request)
            if report.epoch is None:
                self._publish_again(last)
            return report

    def _migrating(self, last: Epoch | None, finished: tuple[Epoch, ...]) -> Migrating:
        from warehouse.operations.migrate import Migrating  # noqa: PLC0415 - rarely needed

        if last is None:
            raise NoEpochError("nothing has been loaded yet; the first update takes warehouse.toml as it is")
        return Migrating(
            self.catalog,
            behind(last, self._nodes).moving(self._nodes),
            last,
            finished,
            self.clock(),
            spark=self._guarded_spark,
            begin=lambda plan: self._begun(plan, last),
            record=lambda tables, followed: self._record(
                last,
                (),
                cause="migrate",
                tables=tables,
                previous_slot=last.slot,
                catalog_digest=followed.digest,
                declared=followed.keys,
            ),
        )

    @contextmanager
    def _going_back(self) -> Iterator[GoingBack]:
        from warehouse.operations.going_back import GoingBack  # noqa: PLC0415 - rarely needed

        with writer_lock(self.root, self.clock()), released(self.root):
            self.observer(Moment(Point.LOCKED, -1))
            last, finished = self._finish()
            if last is None:
                raise NoEpochError(f"nothing has been loaded under {self.root} yet, so there is nothing to go back to")
            yield GoingBack(
                self.catalog,
                self._nodes,
                last,
                finished,
                self.clock(),
                spark=self._guarded_spark,
                begin=lambda plan: self._begun(plan, last),
                go_on=self._rest,
            )

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        """Delete files that no readable epoch needs, leftovers included; a dry run needs no lock and writes nothing."""
        if dry_run:
            from warehouse.operations.vacuum_outlook import vacuum_outlook  # noqa: PLC0415 - now and then

            last = newest_epoch(self.root)
            return vacuum_outlook(self.catalog, last, self._recorded_plan(last), now=self.clock())
        with writer_lock(self.root, self.clock()), released(self.root):
            last, _ = self._finish()
            self._publish_again(last)  # or what it shows could go before anybody saw a newer epoch
            now = self.clock()
            freed = retire(self.root, retain=self.catalog.retain, now=now)
            freed += sweep(self.root, now=now, spared=self.stopped)
            freed += trim_logs(self.root, self.catalog.erase_within)
            freed += tidy_records(self.root, now=now)
            freed += self._free_live(last, now)
            return freed + VacuumReport(landing=put_away(self.catalog))

    def _free_live(self, last: Epoch | None, now: int) -> VacuumReport:
        from warehouse.publishing.live.publish import free  # noqa: PLC0415 - now and then
        from warehouse.publishing.live.rules import live_rules  # noqa: PLC0415 - same

        if last is None:
            return VacuumReport()
        space = free(self.root, last, live_rules(self.catalog), now=now, grace=GRACE)
        return VacuumReport(space.files, space.bytes)

    def erase(
        self, table: str | None, keys: Sequence[object] | None, *, dry_run: bool = False
    ) -> tuple[Outlook, Receipt | None]:
        """Erase rows of keys of a table, or without keys its expired rows (of no table: all), from all that holds them.

        Returns what was found, and the receipt; none when it only looked, or there was nothing to erase.
        """
        from warehouse.operations.erasure.erase import outlook  # noqa: PLC0415 - now and then
        from warehouse.operations.erasure.store import require_no_versions  # noqa: PLC0415 - as above

        if dry_run:
            newest = self._epoch(newest_epoch(self.root))
            return outlook(self.catalog, self._nodes, newest, table, keys, now=self.clock(), everywhere=True), None
        with writer_lock(self.root, self.clock()):
            self.observer(Moment(Point.LOCKED, -1))
            with released(self.root):
                last = self._epoch(self._finish()[0])
                require_no_versions(self.root, self._guarded_spark)
                found = outlook(self.catalog, self._nodes, last, table, keys, now=self.clock())
                if found.nothing:
                    return found, None
                return found, self._carry_out(self._begun(found.plan, last))

    @staticmethod
    def _epoch(newest: Epoch | None) -> Epoch:
        if newest is None:
            raise NoEpochError("nothing has been loaded yet; there is nothing to erase")
        return newest

    def repair(self) -> tuple[str, ...]:
        """Mend what can be mended without deciding anything, and return what was done; see :mod:`.repair`.

        An update that was begun is finished, and left-overs are removed as ``vacuum`` does.
        """
        from warehouse.operations.repair import mend_checkpoints, mend_records, mend_schema_files  # noqa: PLC0415 - same
        from warehouse.publishing.database import DATABASE  # noqa: PLC0415 - rarely needed
        from warehouse.publishing.difference import difference  # noqa: PLC0415 - same

        with writer_lock(self.root, self.clock()), released(self.root):
            self.observer(Moment(Point.LOCKED, -1))
            done = list(mend_records(self.root))
            last, finished = self._finish()
            done += [f"finished the update to epoch {epoch.number}" for epoch in finished]
            if last is None:
                return tuple(done)
            done += mend_checkpoints(self.root, last)
            for number in epoch_numbers(self.root):
                done += mend_schema_files(self.root, read_epoch(self.root, number))
            done += [f"moved live/{name} to epoch {last.number}" for name in self._publish_live(last, rebuild=True)]
            if difference(self.root, last) is not None:
                self._publish(last, rebuild=True)
                done.append(f"wrote {DATABASE} again")
            swept = sweep(self.root, now=self.clock(), spared=self.stopped) + self._free_live(last, self.clock())
            if swept.files:
                done.append(f"removed {swept.files} left-over file(s), {swept.bytes} bytes")
            return tuple(done)

    def undo_foreign(self, table: str | None = None, *, dry_run: bool = False) -> tuple[Undone, ...]:
        """Take back what outsiders committed to a table, or to all; what changed no row is adopted. See :mod:`.undo`.

        A dry run needs no lock and writes nothing.
        """
        from warehouse.operations.undo import undo  # noqa: PLC0415 - rarely needed

        if dry_run:
            last = newest_epoch(self.root)
            return undo(self.root, last, self._above(last), table, at=self.clock(), dry_run=True)
        with writer_lock(self.root, self.clock()), released(self.root):
            self.observer(Moment(Point.LOCKED, -1))
            set_aside_torn(self.root)
            last = newest_epoch(self.root)
            plan = self._above(last)
            done = undo(self.root, last, plan, table, at=self.clock(), dry_run=False)
            if plan is None:
                self._settle(last)
            return done

    def _above(self, last: Epoch | None) -> Plan | None:
        """Return the plan that was begun above an epoch; None: there is an epoch, and nothing above it."""
        plan = self._recorded_plan(last)
        if plan is None and last is None:
            raise NoEpochError("nothing has been loaded yet; there is nothing to take back")
        return plan

    def landing(self) -> tuple[LandingFacts, ...]:
        """Return what waits in the landing directories and what needs a person."""
        return landing_facts(self.catalog, newest_epoch(self.root), self.clock())

    # --- the parts of an update ---

    def _target(self, options: UpdateOptions) -> int:
        now = self.clock()
        at = now if options.at is None else options.at
        if options.start is not None and not options.each:
            raise UsageError("--from says where --each starts; give --each too")
        if at > now + self.catalog.update_interval and not options.future:
            raise UpdateTimeError(
                f"{format_instant(at)} is further ahead of the clock ({format_instant(now)}) than one update interval; "
                "every row that expires before it would be lost. Give --future if you mean it",
            )
        target = grid_slot(at, self.catalog.anchor, self.catalog.update_interval)
        if target < 0:
            raise UpdateTimeError(
                f"{format_instant(at)} is before the anchor {format_instant(self.catalog.anchor)}; "
                "choose a later time, or an earlier anchor while the warehouse is empty",
            )
        return target

    def _update(self, options: UpdateOptions, target: int) -> UpdateReport:
        last, finished = self._finish()
        warnings = (*self._check_drift(last), *self.notices)
        if last is not None and options.start is not None:
            raise UsageError("--from is for the first update; the warehouse has epochs already. Leave it out")
        excluded: Excluded = {}
        slots = self._slots(options, target, last, excluded, self._guarded_spark)
        inputs, landing = self._inputs(last, excluded)
        still = self._standing(last)
        slots = slots or self._still(last, inputs, still)
        if slots:
            self._refuse_empty(options, inputs, last, slots[0], excluded, self._guarded_spark)
        made: list[Epoch] = []
        for moment in slots:
            known = inputs if not made and not any(excluded.values()) else None
            epoch = self._one(moment, last, excluded, known)
            if epoch is None:
                continue
            last = epoch
            made.append(last)
            while self._left(last):
                more = self._more(last, excluded)
                if more is None:
                    break
                made.append(last := more)
        freed = VacuumReport()
        if not made and not finished:
            self._publish_again(last)
        elif last is not None:
            keep_ledger(self.root, last, epoch_numbers(self.root)[0])
            for source in self.catalog.sources:
                drop_copies(source)
        if self.catalog.vacuum == "auto" and last is not None:
            newest = last.number
            freed = retire(
                self.root,
                retain=self.catalog.retain,
                now=self.clock(),
                retired=lambda: self.observer(Moment(Point.RETIRED, newest)),
            )
            bounded = self.catalog.erase_within  # nothing of dead rows stays behind in logs, nor in what crashes left
            if bounded:
                freed += sweep(self.root, now=self.clock(), spared=self.stopped)
                freed += self._free_live(last, self.clock())
            if bounded or (freed.epochs and self._trims_logs((*finished, *made))):
                freed += trim_logs(self.root, bounded)
            freed += VacuumReport(landing=put_away(self.catalog, rarely=True))
            self.observer(Moment(Point.VACUUMED, last.number))
        if made and last is not None:
            warnings = (*warnings, *self._verified(last))
        epochs = (*finished, *made)
        left_out = tuple(
            (entry.stream, problem) for epoch in epochs for entry in epoch.files for problem in entry.left_out
        )
        still = self._standing(last)
        refused, stopped = {**self._sound[1], **still.views}, still.tables
        told = (tuple(sorted(refused.items())), tuple(sorted(stopped.items())))
        warnings = tuple(dict.fromkeys((*warnings, *self.notices)))
        return UpdateReport(tuple(made), finished, left_out, landing, freed, warnings, *told)

    def _trims_logs(self, made: Sequence[Epoch]) -> bool:
        """Whether to trim the tables' logs after these epochs: on a disk always, in an object store seldom: a request a file."""
        every = limits().past_records
        return not isinstance(self.root, ObjectPath) or any(epoch.number % every == 0 for epoch in made)

    def _verified(self, newest: Epoch) -> Iterator[str]:
        """Compare the views with their queries when that is due, and yield what differs."""
        every, now = self.catalog.verify_views, self.clock()
        if every is None or not self.catalog.views:
            return
        from warehouse.epochs.view_findings import last_verified, note_verified  # noqa: PLC0415 - same
        from warehouse.operations.verification import kept_verdicts, verdicts_of  # noqa: PLC0415 - now and then

        before = last_verified(self.root)
        if before is not None and now - before < every:
            return
        verdicts = list(verdicts_of(self.root, newest, self._guarded_spark()))
        kept_verdicts(self.root, verdicts, now)
        note_verified(self.root, now)
        for verdict in verdicts:
            if verdict.outcome == "differs":
                yield f'view "{verdict.view}" differs from its query: {"; ".join((verdict.reason, *verdict.rows))}'

    def _standing(self, last: Epoch | None) -> StandingStill:
        """The tables and views that stand still, since outsiders changed them or what they read."""
        return standing_still(last, self.stopped, self._sound[0], self._declared)

    @property
    def _declared(self) -> set[str]:
        aggregates = {aggregate.name for aggregate in self.catalog.aggregates}
        return {source.name for source in self.catalog.sources} | aggregates | set(self.catalog.archives)

    def _still(self, last: Epoch | None, inputs: Sequence[StreamInput], still: StandingStill) -> list[int]:
        """An epoch at the same window time, when declared tables or columns do not exist yet or files were left over.

        Likewise when a table that stood still can go on.
        """
        if last is None:
            return []
        moving = [given for given in inputs if given.stream.name not in still.tables]
        missing = any(last.table(given.stream.name) is None or columns_declared(given, last) for given in moving)
        missing = missing or bool(unbuilt(still.moving(self._sound[0]), last))
        missing = missing or any(name in self._declared and name not in still.tables for name in stopped_of(last))
        return [last.slot] if missing or any(entry.more for entry in last.files) else []

    def _left(self, last: Epoch) -> bool:
        """Whether an epoch left files for the next one, of tables that do not stand still."""
        still = self._standing(last).tables
        return any(entry.more and entry.stream not in still for entry in last.files)

    def _more(self, last: Epoch, excluded: Excluded) -> Epoch | None:
        """Make the epoch that loads what an epoch left over; None: outsiders changed the table just now, and it stands still."""
        epoch = self._one(last.slot, last, excluded)
        if epoch is None and not self.stopped:
            raise TypeError("an epoch that left files has something to do")
        return epoch

    def _rest(self, last: Epoch) -> Epoch:
        """Make the epoch that loads what a verb other than an update left over.

        Raises
        ------
        ForeignChangeError
            When outsiders have changed the table that these files are of.

        """
        epoch = self._more(last, {})
        if epoch is None:
            raise next(iter(self.stopped.values())).error
        return epoch

    def _one(
        self, moment: int, last: Epoch | None, excluded: Excluded, inputs: Sequence[StreamInput] | None = None
    ) -> Epoch | None:
        """Make the next epoch; none when the windows stay and all there was to build are views that cannot be.

        ``inputs`` are those at ``last``, if they are known.
        """
        if inputs is None:
            inputs, _ = self._inputs(last, excluded)
        sound, refused = self._sound
        still = self._standing(last)
        nodes = with_columns(still.moving(sound), self.catalog, last, moment, self._guarded_spark, refused)
        plan = make_plan(
            self.catalog,
            last,
            [given for given in inputs if given.stream.name not in still.tables],
            slot=moment,
            clock=self.clock(),
            nodes=nodes,
            refused={**refused, **still.views},
            stopped=still.tables,
            changed=self.stopped.keys(),
            landed=landed_before(self.catalog, last, without_history(self.catalog, last)),
        )
        if last is not None and plan.slot == last.slot and not plan.streams and not plan.nodes:
            return None
        try:
            return self._begun(plan, last)
        except ForeignChangeError:
            if last is None or not give_up(self.root, plan, last, at=self.clock()):
                raise
        adopted = self._settle(last)
        if adopted is not None:
            self.notices.extend(adopted.warnings)
        return self._one(moment, adopted or last, excluded) or adopted

    def _check_drift(self, last: Epoch | None) -> tuple[str, ...]:
        if last is None:
            return self.catalog.warnings
        drift = compare(self.catalog, last)
        if drift.problems:
            raise ChangedDeclarationError(drift.problems)
        return (*self.catalog.warnings, *drift.notices, *drift.warnings)

    def _slots(
        self, options: UpdateOptions, target: int, last: Epoch | None, excluded: Excluded, spark: Callable[[], SparkSession]
    ) -> list[int]:
        if last is not None and target <= last.slot:
            return []
        if not options.each:
            return [target]
        if last is not None:
            return list(range(last.slot + 1, target + 1))
        start = options.start
        if not isinstance(start, int):
            inputs, _ = self._inputs(None, excluded)
            start = self._earliest(inputs, target, excluded, spark)
        first = target if start is None else slot(start, self.catalog.anchor, self.catalog.update_interval)
        return list(range(min(max(0, first), target), target + 1))

    def _earliest(
        self, inputs: Sequence[StreamInput], target: int, excluded: Excluded, spark: Callable[[], SparkSession]
    ) -> int | None:
        from warehouse.planning.first_run import earliest_arrival  # noqa: PLC0415 - only a first run needs Spark to plan

        if not any(group.files for given in inputs for group in given.groups):
            return None
        return earliest_arrival(
            spark(), self.catalog, inputs, slot=target, clock=self.clock(), excluded=excluded
        )

    def _refuse_empty(
        self,
        options: UpdateOptions,
        inputs: Sequence[StreamInput],
        last: Epoch | None,
        moment: int,
        excluded: Excluded,
        spark: Callable[[], SparkSession],
    ) -> None:
        created = [given for given in inputs if last is None or last.table(given.stream.name) is None]
        if options.allow_dead or not any(group.files for given in created for group in given.groups):
            return
        from warehouse.planning.first_run import refuse_empty  # noqa: PLC0415 - only a first run needs Spark to plan

        refuse_empty(
            spark(),
            self.catalog,
            created,
            slot=moment,
            clock=self.clock(),
            excluded=excluded,
            replays=options.each,
            last=last,
        )
