"""The verbs that write, and the methods that show their plans, with explicit signatures."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.points import Observer, nobody

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.verdicts import Verdict
    from warehouse.epochs.records import Epoch
    from warehouse.epochs.view_findings import ViewFinding
    from warehouse.layout import Expiration, Insertion, Technique
    from warehouse.operations.backup import Backup
    from warehouse.operations.complete import CompletionReport
    from warehouse.operations.erasure.outlook import Outlook
    from warehouse.operations.erasure.receipt import Receipt
    from warehouse.operations.migrate import MigrationReport
    from warehouse.operations.rebuild import RebuildReport
    from warehouse.operations.restate import RestateReport
    from warehouse.operations.rollback import RollbackReport
    from warehouse.operations.run import RunClock, Turn
    from warehouse.operations.undo import Undone
    from warehouse.operations.unneeded_files import VacuumReport
    from warehouse.operations.update import UpdateReport
    from warehouse.operations.verification import ViewVerdict
    from warehouse.planning.first_run import Sample
    from warehouse.planning.inputs import LandingFacts
    from warehouse.planning.plan_record import Plan
    from warehouse.serving.keys import KeyColumn
    from warehouse.steps.kind import StepExplanation

from warehouse.opening import Instant, OpenProject, beginning_of, clock_now, instant_of, time_given

__all__ = ["WritingProject"]


class WritingProject(OpenProject):
    """A project whose tables are written; :class:`warehouse.project.Warehouse` reads them too."""

    # --- moving the windows ---

    def update(
        self,
        at: Instant | None = None,
        *,
        each: bool = False,
        start: Instant | Literal["first"] | None = None,
        allow_dead: bool = False,
        future: bool = False,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
    ) -> UpdateReport:
        """Move every window to the last grid point at or before ``at``.

        Parameters
        ----------
        at
            T; now when left out.
        each, start
            One epoch per slot, on a first run from the slot of ``start`` or of the earliest waiting row.
        allow_dead
            Let a first run declare all waiting rows dead.
        future
            Let T be further ahead of the clock than one update interval.
        observer
            Called at every named point; left out, a notebook shows each step below its cell.
        spark
            The session to use; else the active one, else one is started from ``[spark]``.

        """
        from warehouse.operations.update import update  # noqa: PLC0415 - reading does without

        options = _options(at, each=each, start=start, allow_dead=allow_dead, future=future)
        return update(self._context(observer, spark), options)

    def run(
        self,
        *,
        delay: int = 0,
        each: bool = False,
        clock: RunClock | None = None,
        report_turn: Callable[[Turn], None] | None = None,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
    ) -> int:
        """Update now and at every grid point in one warm process; return the number of updates that succeeded.

        Parameters
        ----------
        delay
            Microseconds to wait after each grid point, while files of its slot may still be landing.
        each
            One epoch for each slot that was missed, instead of one for all.
        clock
            :class:`warehouse.operations.run.WallClock` with an event that ends the run; None: the machine's clock, for ever.
        report_turn
            A callback that gets the result of each update, or its error (:class:`warehouse.operations.run.Turn`).
        observer, spark
            As for :meth:`update`.

        Raises
        ------
        RunHeldError
            When another process keeps this warehouse up to date.
        WarehouseError
            When the first update fails with an error that is not transient.

        """
        from warehouse.epochs.lock import run_lock  # noqa: PLC0415 - reading does without
        from warehouse.operations.run import Grid, WallClock, keep_up_to_date  # noqa: PLC0415 - same

        timed = clock or WallClock(threading.Event())

        def update() -> UpdateReport:
            return self.update(timed.now(), each=each, observer=observer, spark=spark)

        def grid() -> Grid:
            return Grid(self.catalog.anchor, self.catalog.update_interval)

        with run_lock(self.root, clock_now()):
            return keep_up_to_date(update, grid, delay, timed, report_turn or (lambda _: None))

    def plan(
        self,
        at: Instant | None = None,
        *,
        each: bool = False,
        start: Instant | Literal["first"] | None = None,
        allow_dead: bool = False,
        future: bool = False,
    ) -> tuple[Plan | None, tuple[StepExplanation, ...], tuple[LandingFacts, ...]]:
        """Return the plan that :meth:`update` would record first (None: nothing to do), explained, and landing facts."""
        from warehouse.epochs.journal import newest_epoch  # noqa: PLC0415 - reading does without
        from warehouse.operations.preview import plan  # noqa: PLC0415 - same
        from warehouse.steps.registry import explain  # noqa: PLC0415 - same

        options = _options(at, each=each, start=start, allow_dead=allow_dead, future=future)
        first_plan, landing = plan(self._context(), options)
        return first_plan, explain(first_plan, newest_epoch(self.root), self.root) if first_plan else (), landing

    def sample(self, rows: int = 1000, *, at: Instant | None = None, future: bool = False) -> tuple[Sample, ...]:
        """Return up to ``rows`` waiting rows of each stream, as :meth:`update` would load them; nothing is written.

        Parameters
        ----------
        rows
            How many rows of a stream are read at most, from 1.
        at, future
            As for :meth:`update`.

        """
        from warehouse.operations.preview import sample  # noqa: PLC0415 - reading does without

        options = _options(at, each=False, start=None, allow_dead=True, future=future)
        return sample(self._context(), options, rows)

    def landing(self) -> tuple[LandingFacts, ...]:
        """Return the waiting files in the landing directories, and the files that need a person."""
        from warehouse.operations.preview import landing  # noqa: PLC0415 - reading does without

        return landing(self._context())

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return the effect of every key of ``warehouse.toml`` that changed since the newest epoch."""
        from warehouse.catalog.verdicts import verdicts  # noqa: PLC0415 - reading does without

        last = newest_epoch(self.root)
        return () if last is None else verdicts(self.catalog, last, last.declared)

    # --- correcting ---

    def reload(self, path: str) -> Epoch:
        """Mark a changed landing file for the next update that moves the window."""
        from warehouse.operations.reload import reload  # noqa: PLC0415 - reading does without

        return reload(self._context(), path)

    def drop(self, table: str) -> Epoch:
        """Remove a table that is no longer declared."""
        from warehouse.operations.drop import drop  # noqa: PLC0415 - reading does without

        return drop(self._context(), table)

    def rollback(self, to_epoch: int, *, observer: Observer = nobody, spark: SparkSession | None = None) -> RollbackReport:
        """Write an epoch with the contents of an earlier one; window time does not go back."""
        from warehouse.operations.rollback import rollback  # noqa: PLC0415 - reading does without

        return rollback(self._context(observer, spark), to_epoch)

    def restate(
        self,
        table: str,
        *,
        since: Instant | Literal["first"] | None = None,
        rejected: bool = False,
        allow_lost: bool = False,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
    ) -> RestateReport:
        """Read landing files of a stream or relation once more; see :func:`warehouse.operations.restate.restate`."""
        from warehouse.operations.restate import restate  # noqa: PLC0415 - reading does without

        begin = beginning_of(since)
        context = self._context(observer, spark)
        return restate(context, table, since=begin, rejected=rejected, allow_lost=allow_lost)

    def rebuild(self, view: str, *, observer: Observer = nobody, spark: SparkSession | None = None) -> RebuildReport:
        """Rebuild a view over the live rows, and the views that read it."""
        from warehouse.operations.rebuild import rebuild  # noqa: PLC0415 - reading does without

        return rebuild(self._context(observer, spark), view)

    def complete(
        self,
        view: str,
        *,
        within: int | str | None = None,
        dry_run: bool = False,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
    ) -> CompletionReport:
        """Make the results that a view owes under its budget, all or for about ``within``: microseconds, or ``"10m"``.

        Each chunk is an epoch; an update of another process can begin between two chunks. A ``dry_run`` makes no
        epoch, and returns the owed results.

        Raises
        ------
        UnknownNameError, UsageError, ConfigurationError
            When there is no such view, it has no budget, or it cannot be maintained.

        """
        from warehouse.operations.complete import complete, owed_results  # noqa: PLC0415 - reading does without

        if dry_run:
            return owed_results(self._context(observer, spark), view)
        time_left = time_given(within)
        end = None if time_left is None else time.monotonic_ns() // 1000 + time_left
        out_of_time = (lambda: False) if end is None else (lambda: time.monotonic_ns() // 1000 >= end)
        return complete(self._context(observer, spark), view, out_of_time=out_of_time)

    def check_views(self, *, epoch: int | None = None, spark: SparkSession | None = None) -> tuple[ViewVerdict, ...]:
        """Compare every view with its query at an epoch, by Spark and without the lock, and record which differ.

        Parameters
        ----------
        epoch
            The number of the epoch; None: the newest one. Results for an earlier epoch are not recorded.
        spark
            A session of the caller's.

        Raises
        ------
        NoEpochError, EpochVacuumedError
            When there is no such epoch, or it is no longer readable.

        """
        from warehouse.operations.verification import checked_views  # noqa: PLC0415 - reading does without

        return checked_views(self.root, self._context(spark=spark).start_spark, epoch=epoch, now=clock_now())

    def view_findings(self) -> tuple[ViewFinding, ...]:
        """Return the views that differed from their queries and were not corrected since."""
        from warehouse.epochs.view_findings import open_findings  # noqa: PLC0415 - nothing else needs it

        return open_findings(self.root, newest_epoch(self.root))

    def migrate(
        self,
        table: str | None = None,
        *,
        side_by_side: bool = False,
        move_below: float | None = None,
        renamed: Sequence[tuple[str, str]] = (),
        technique: Technique | None = None,
        grid: tuple[int, int] | None = None,
        insertion: Insertion | None = None,
        expiration: Expiration | None = None,
        expiry_block: int | None = None,
        seal: bool | None = None,
        seed: int | None = None,
        dry_run: bool = False,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
    ) -> MigrationReport:
        """Give a table, or every table whose declaration changed, another layout, columns or grid of times.

        Parameters
        ----------
        table
            A declared stream; None: all tables that differ from ``warehouse.toml``.
        side_by_side
            Write new rows to the new layout, and let old rows expire in the old one instead of writing them again.
        move_below
            With ``side_by_side``: when less than this share of the old rows is left, they are moved to the new layout.
        renamed
            Pairs of former and new names of columns.
        technique, grid, insertion, expiration, expiry_block, seal, seed
            Keys of ``[streams.NAME.layout]`` that the file leaves out.
        dry_run
            Write nothing, and report what would be done.
        observer, spark
            As for :meth:`update`.

        """
        from warehouse.catalog.model import LayoutSpec  # noqa: PLC0415 - only this verb needs it
        from warehouse.operations.migrate import MigrationRequest, migrate  # noqa: PLC0415 - same

        layout = LayoutSpec(technique, grid, insertion, expiration, expiry_block, seal, seed)
        request = MigrationRequest(layout, side_by_side, move_below, tuple(renamed))
        return migrate(self._context(observer, spark), table, request, dry_run=dry_run)

    # --- files ---

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        """Delete files that no readable epoch needs."""
        from warehouse.operations.vacuum import vacuum  # noqa: PLC0415 - reading does without

        return vacuum(self._context(), dry_run=dry_run)

    def backup(self, target: str | Path, *, copy: bool = False) -> Backup:
        """Copy the newest epoch with all that updates need to go on; see :func:`warehouse.operations.backup.back_up`."""
        from warehouse.operations.backup import back_up  # noqa: PLC0415 - now and then

        return back_up(self.root, self.catalog.file, Path(target), now=clock_now(), copy=copy)

    @staticmethod
    def restore(directory: str | Path, backup: str | Path, *, replace: bool = False) -> Backup:
        """Bring a backup back into a project directory: its ``warehouse.toml`` unless one is there, and the root."""
        from warehouse.operations.recovery import restore_project  # noqa: PLC0415 - now and then

        return restore_project(Path(directory), Path(backup), now=clock_now(), replace=replace)

    def erase(
        self,
        table: str | None,
        keys: Sequence[object] | Callable[[Sequence[KeyColumn]], Sequence[object]] | None = None,
        *,
        dry_run: bool = False,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
    ) -> tuple[Outlook, Receipt | None]:
        """Remove rows physically from every file under the root, and prove it.

        Parameters
        ----------
        table
            The table; None: expired rows of all tables.
        keys
            Search keys as values, tuples of values or prefixes of these, or a function that makes them from the key columns;
            None: rows that have expired.
        dry_run
            Write nothing, and report what would be done.
        observer, spark
            As for :meth:`update`.

        Returns
        -------
            The rows that were found, and the receipt; None for a dry run, or if there was nothing to erase.

        """
        from warehouse.operations.erase import erase  # noqa: PLC0415 - reading does without

        chosen_keys = keys
        if callable(keys):
            with self.reader() as reader:
                chosen_keys = keys(reader.key_columns(table or ""))
        context = self._context(observer, spark)
        return erase(context, table, cast("Sequence[object] | None", chosen_keys), dry_run=dry_run)

    def repair(self, *, observer: Observer = nobody, spark: SparkSession | None = None) -> tuple[str, ...]:
        """Repair everything that needs no decision; return the repairs in words."""
        from warehouse.operations.repair import repair  # noqa: PLC0415 - reading does without

        return repair(self._context(observer, spark))

    def undo_foreign(self, table: str | None = None, *, dry_run: bool = False) -> tuple[Undone, ...]:
        """Undo outsiders' commits to a table, or to all, since the newest epoch; commits that changed no row stay.

        Raises
        ------
        UnknownNameError
            When there is no such table.
        MissingPartError
            When files that must come back no longer exist.

        """
        from warehouse.operations.undo import undo_foreign  # noqa: PLC0415 - reading does without

        return undo_foreign(self._context(), table, dry_run=dry_run)


def _options(
    at: Instant | None,
    *,
    each: bool,
    start: Instant | Literal["first"] | None,
    allow_dead: bool,
    future: bool,
) -> Any:  # noqa: ANN401 - imported late
    from warehouse.operations.update import UpdateOptions  # noqa: PLC0415 - reading does without

    begin = beginning_of(start)
    return UpdateOptions(at=instant_of(at), each=each, start=begin, allow_dead=allow_dead, future=future)
