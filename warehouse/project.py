"""A project: one ``warehouse.toml`` and its warehouse, as a Python object with the command line's verbs."""

from __future__ import annotations

import hashlib
import threading
import time
import tomllib
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from warehouse.catalog.sizes import SqlBounds
from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.points import Observer, nobody
from warehouse.errors import ChangedDeclarationError, NoEpochError, RecordDamagedError, UnknownNameError, UsageError
from warehouse.objects.path import is_uri, path_of
from warehouse.time import parse_instant, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from warehouse.advice import Advice
    from warehouse.catalog.model import Catalog
    from warehouse.catalog.verdicts import Verdict
    from warehouse.checking.findings import CheckReport
    from warehouse.epochs.records import Epoch
    from warehouse.epochs.view_findings import ViewFinding
    from warehouse.health import Health
    from warehouse.operations.backup import Backup
    from warehouse.operations.context import WriteContext
    from warehouse.operations.erasure.erase import Outlook
    from warehouse.operations.erasure.receipt import Receipt
    from warehouse.operations.migrate import MigrationReport
    from warehouse.operations.rebuild import RebuildReport
    from warehouse.operations.restate import RestateReport
    from warehouse.operations.rollback import RollbackReport
    from warehouse.operations.run import Clock, Turn
    from warehouse.operations.space import VacuumReport
    from warehouse.operations.undo import Undone
    from warehouse.operations.update import UpdateReport
    from warehouse.operations.verification import ViewVerdict
    from warehouse.planning.first_run import Sample
    from warehouse.planning.inputs import LandingFacts
    from warehouse.planning.steps import Plan
    from warehouse.serving import Answer, Reader
    from warehouse.serving.aggregate_explanation import AggregateExplanation
    from warehouse.serving.catalogue import TableDescription, TableFiles, TableStatus
    from warehouse.serving.coalesced_explanation import CoalescedExplanation
    from warehouse.serving.engine import Resources
    from warehouse.serving.explanation import Explanation
    from warehouse.serving.history import EpochRow
    from warehouse.serving.keys import KeyColumn
    from warehouse.serving.latest import Isolation
    from warehouse.serving.request import OpenUntil
    from warehouse.steps.kind import StepExplanation

__all__ = ["Instant", "Warehouse"]

Instant = int | str | datetime
"""Microseconds since 1970 (UTC), ISO 8601 text, or a datetime that knows its time zone."""


class Warehouse:
    """The warehouse of one project directory.

    Reading needs no Java and writes nothing; the catalog is checked in full only when ``warehouse.toml`` is another
    than the newest epoch's.

    Parameters
    ----------
    directory
        Where ``warehouse.toml`` is.
    root
        Where the tables are.
    sql
        What a query may use.
    read_log
        Whether what reads looked at is noted for :meth:`advise`.
    hot
        Tables whose newest rows are kept in memory.

    """

    def __init__(
        self,
        directory: Path,
        root: Path,
        sql: SqlBounds | None = None,
        *,
        read_log: bool = True,
        hot: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.root = root
        self.sql_bounds = sql or SqlBounds()
        self._read_log = read_log
        self._hot = tuple(hot)
        self._readers: dict[int | None, Reader] = {}
        self._closed = False

    @classmethod
    def open(cls, directory: str | Path = ".", *, compared: bool = True, hot: Sequence[str] = ()) -> Warehouse:
        """Open the project in a directory.

        Parameters
        ----------
        directory
            Where ``warehouse.toml`` is.
        compared
            Whether the declarations are compared with the newest epoch; verifying a damaged warehouse does without.
        hot
            Names of tables whose live rows this object keeps in memory: what is probed, scanned and asked of the newest
            epoch is answered from there, and each new epoch costs reading the files that it added. Rows take some 1.5 times
            the bytes of their values, and no bound applies to them. A table that is declared may come with a later epoch.

        Raises
        ------
        ConfigurationError
            When ``warehouse.toml`` has faults: all of them.
        ChangedDeclarationError
            When a declaration differs from what the tables were built with.
        UnknownNameError
            When no table has a name that is hot.

        """
        place = Path(directory)
        content = _content(place)
        raw = _raw(content)
        root = _root(place, raw)
        if not compared:
            found = cls(place, root or _catalog(place).root, hot=hot)
            found._check_hot(hot)
            return found
        if root is not None:
            last = newest_epoch(root)
            if last is not None and last.catalog_digest == hashlib.sha256(content).hexdigest():
                reads = raw.get("warehouse", {}).get("read_log", "on")
                opened = cls(place, root, SqlBounds.of(raw.get("sql", {})), read_log=reads == "on", hot=hot)
                opened._check_hot(hot)
                return opened
        catalog = _catalog(place)
        warehouse = cls(place, catalog.root, catalog.sql, read_log=catalog.read_log, hot=hot)
        warehouse._check_hot(hot)
        warehouse._check_declarations()
        return warehouse

    def _check_hot(self, names: Sequence[str]) -> None:
        if isinstance(names, str):
            raise UsageError("hot is one text; allowed: a list of names of tables")
        if not names:
            return
        from warehouse.catalog.spelling import nearest  # noqa: PLC0415 - few name tables
        from warehouse.serving.visible_tables import visible  # noqa: PLC0415 - same

        catalog, last = self.catalog, newest_epoch(self.root)
        every = (catalog.sources, catalog.views, catalog.aggregates, catalog.coalesced)
        declared = [each.name for tables in every for each in tables]
        known = list(dict.fromkeys([*declared, *(table.name for table in (visible(last) if last else ()))]))
        for name in names:
            if name not in known:
                raise UnknownNameError("table", name, known, nearest(name, known))

    def _check_declarations(self) -> None:
        from warehouse.catalog.drift import compare  # noqa: PLC0415 - only when the file is another

        last = newest_epoch(self.root)
        problems = compare(self.catalog, last).problems if last else ()
        if problems and last is not None and not self._migrating(last):
            raise ChangedDeclarationError(problems)

    def _migrating(self, last: Epoch) -> bool:
        """Whether a migration to this very file is at work: meanwhile readers have the epoch before it."""
        from warehouse.epochs.journal import plan_path, read_record  # noqa: PLC0415 - only when the file is another
        from warehouse.planning.steps import Plan  # noqa: PLC0415 - same

        try:
            plan = read_record(plan_path(self.root, last.number + 1), Plan)
        except (OSError, RecordDamagedError):
            return False
        return plan.catalog_digest == self.catalog.digest

    @property
    def catalog(self) -> Catalog:
        """The declarations in force, checked."""
        return _catalog(self.directory)

    def close(self) -> None:
        """Let the readers go; a closed warehouse reads no more."""
        self._closed = True
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

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
            Called at every named point.
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
        clock: Clock | None = None,
        told: Callable[[Turn], None] | None = None,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
    ) -> int:
        """Update now and at every grid point, in one warm process, until the clock says to end; return how many succeeded.

        Parameters
        ----------
        delay
            Microseconds after each grid point: files of its slot may still be landing.
        each
            One epoch for each slot that was missed, instead of one for all.
        clock
            :class:`warehouse.operations.run.WallClock` with an event that ends the run; None: the machine's clock, for ever.
        told
            Is given what each update did, or why it failed (:class:`warehouse.operations.run.Turn`).
        observer, spark
            As for :meth:`update`.

        Raises
        ------
        RunHeldError
            When another process keeps this warehouse up to date.
        WarehouseError
            When the first update fails with what does not pass by itself.

        """
        from warehouse.epochs.lock import run_lock  # noqa: PLC0415 - reading does without
        from warehouse.operations.run import Grid, WallClock, keep_up_to_date  # noqa: PLC0415 - same

        timed = clock or WallClock(threading.Event())

        def update() -> UpdateReport:
            return self.update(timed.now(), each=each, observer=observer, spark=spark)

        def grid() -> Grid:
            return Grid(self.catalog.anchor, self.catalog.update_interval)

        with run_lock(self.root, _clock()):
            return keep_up_to_date(update, grid, delay, timed, told or (lambda _: None))

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
        from warehouse.operations.preview import plan  # noqa: PLC0415 - reading does without
        from warehouse.steps.registry import explain  # noqa: PLC0415 - same

        options = _options(at, each=each, start=start, allow_dead=allow_dead, future=future)
        made, landing = plan(self._context(), options)
        return made, explain(made) if made else (), landing

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

    def verdicts(self) -> tuple[Verdict, ...]:
        """Return what every key of ``warehouse.toml`` means that changed since the newest epoch."""
        from warehouse.catalog.verdicts import verdicts  # noqa: PLC0415 - reading does without

        last = newest_epoch(self.root)
        return () if last is None else verdicts(self.catalog, last, last.declared)

    def reload(self, path: str) -> Epoch:
        """Mark a changed landing file for the next update that moves the window."""
        from warehouse.operations.reload import reload  # noqa: PLC0415 - reading does without

        return reload(self._context(), path)

    def drop(self, table: str) -> Epoch:
        """Forget a table that is no longer declared."""
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

        begin = _beginning(since)
        context = self._context(observer, spark)
        return restate(context, table, since=begin, rejected=rejected, allow_lost=allow_lost)

    def rebuild(self, view: str, *, observer: Observer = nobody, spark: SparkSession | None = None) -> RebuildReport:
        """Rebuild a view over the live rows, and the views that read it."""
        from warehouse.operations.rebuild import rebuild  # noqa: PLC0415 - reading does without

        return rebuild(self._context(observer, spark), view)

    def check_views(self, *, epoch: int | None = None, spark: SparkSession | None = None) -> tuple[ViewVerdict, ...]:
        """Compare every view with its query at an epoch, by Spark and without the lock, and record which differ.

        Parameters
        ----------
        epoch
            Its number; None: the newest one. Of an earlier one nothing is recorded.
        spark
            A session of the caller's.

        Raises
        ------
        NoEpochError, EpochVacuumedError
            When there is no such epoch, or none any more.

        """
        from warehouse.operations.verification import checked_views  # noqa: PLC0415 - reading does without

        return checked_views(self.root, self._context(spark=spark).start_spark, epoch=epoch, now=_clock())

    def view_findings(self) -> tuple[ViewFinding, ...]:
        """Return the views that were found to differ from their queries and are not mended yet."""
        from warehouse.epochs.view_findings import open_findings  # noqa: PLC0415 - nothing else needs it

        return open_findings(self.root, newest_epoch(self.root))

    def migrate(
        self,
        table: str | None = None,
        *,
        side_by_side: bool = False,
        move_below: float | None = None,
        renamed: Sequence[tuple[str, str]] = (),
        dry_run: bool = False,
        observer: Observer = nobody,
        spark: SparkSession | None = None,
        **layout: Any,  # noqa: ANN401 - passed on
    ) -> MigrationReport:
        """Give a table, or every one whose declaration asks for it, another layout, columns or grid of times.

        Parameters
        ----------
        table
            A declared stream; None: whatever does not fit ``warehouse.toml``.
        side_by_side
            Let new rows go to the new layout and old ones expire where they are, instead of writing them again.
        move_below
            Side by side: the share of what there was below which the rest moves.
        renamed
            Pairs of former and new names of columns.
        layout
            Keys of ``[streams.NAME.layout]`` that the file leaves out: ``technique``, ``grid``, ...
        dry_run
            Look, and write nothing.
        observer, spark
            As for :meth:`update`.

        """
        from warehouse.catalog.model import LayoutSpec  # noqa: PLC0415 - only this verb needs it
        from warehouse.operations.migrate import MigrationRequest, migrate  # noqa: PLC0415 - same

        request = MigrationRequest(LayoutSpec(**layout), side_by_side, move_below, tuple(renamed))
        return migrate(self._context(observer, spark), table, request, dry_run=dry_run)

    def vacuum(self, *, dry_run: bool = False) -> VacuumReport:
        """Delete files that no readable epoch needs."""
        from warehouse.operations.vacuum import vacuum  # noqa: PLC0415 - reading does without

        return vacuum(self._context(), dry_run=dry_run)

    def backup(self, target: str | Path, *, copy: bool = False) -> Backup:
        """Copy the newest epoch with all that updates need to go on; see :func:`warehouse.operations.backup.back_up`."""
        from warehouse.operations.backup import back_up  # noqa: PLC0415 - now and then

        return back_up(self.root, self.catalog.file, Path(target), now=_clock(), copy=copy)

    @staticmethod
    def restore(directory: str | Path, backup: str | Path, *, replace: bool = False) -> Backup:
        """Bring a backup back into a project directory: its ``warehouse.toml`` unless one is there, and the root."""
        from warehouse.operations.recovery import restore_project  # noqa: PLC0415 - now and then

        return restore_project(Path(directory), Path(backup), now=_clock(), replace=replace)

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
            Whose rows; None: expired rows of all tables.
        keys
            Search keys as values, tuples of values or prefixes of these, or what makes them of the key columns; None:
            rows that have expired.
        dry_run
            Look, and write nothing.
        observer, spark
            As for :meth:`update`.

        Returns
        -------
            What was found, and the receipt; None when it only looked, or there was nothing to erase.

        """
        from warehouse.operations.erase import erase  # noqa: PLC0415 - reading does without

        made = keys
        if callable(keys):
            with self.reader() as reader:
                made = keys(reader.key_columns(table or ""))
        context = self._context(observer, spark)
        return erase(context, table, cast("Sequence[object] | None", made), dry_run=dry_run)

    def landing(self) -> tuple[LandingFacts, ...]:
        """Return what waits in the landing directories and what needs a person."""
        from warehouse.operations.preview import landing  # noqa: PLC0415 - reading does without

        return landing(self._context())

    def _context(self, observer: Observer = nobody, spark: SparkSession | None = None) -> WriteContext:
        from warehouse.operations.context import WriteContext  # noqa: PLC0415 - reading does without
        from warehouse.operations.log_records import announced, logged  # noqa: PLC0415 - same
        from warehouse.storage.jvm import SMALL_WORK  # noqa: PLC0415 - reading does without
        from warehouse.storage.session import spark_session  # noqa: PLC0415 - reading does without

        catalog = self.catalog

        def session(work: int) -> SparkSession:
            return spark or spark_session(catalog.spark, small=work < SMALL_WORK, root=catalog.root)

        return WriteContext(catalog, session, _clock, announced(catalog.root, logged(observer)))

    def check(self, *, rows: bool = True) -> CheckReport:
        """Verify the warehouse against its invariants and ``erase_within``, without Java.

        See :func:`warehouse.checking.check.check`; dead rows that lie longer than allowed are a fault ``erase_overdue``.
        """
        from warehouse.checking.check import check  # noqa: PLC0415 - nothing else needs it
        from warehouse.checking.findings import fault  # noqa: PLC0415 - same
        from warehouse.operations.erasure.overdue import overdue  # noqa: PLC0415 - same

        report = check(self.root, rows=rows, published=self.catalog.published)
        now = _clock()
        late = tuple(
            fault("erase_overdue", row.table, row.message(now), "run `stream-wh erase --expired`", table=row.table)
            for row in overdue(self.root, self.catalog.erase_within, now)
        )
        differing = tuple(
            fault("view_differs", each.view, each.message, f"run `stream-wh rebuild {each.view}`", table=each.view)
            for each in self.view_findings()
        )
        return replace(report, findings=(*late, *differing, *report.findings))

    def repair(self, *, observer: Observer = nobody, spark: SparkSession | None = None) -> tuple[str, ...]:
        """Mend what can be mended without deciding anything; returns what was done, in words."""
        from warehouse.operations.repair import repair  # noqa: PLC0415 - reading does without

        return repair(self._context(observer, spark))

    def undo_foreign(self, table: str | None = None, *, dry_run: bool = False) -> tuple[Undone, ...]:
        """Take back what outsiders committed to a table, or to all, since the newest epoch; what changed no row stays.

        Raises
        ------
        UnknownNameError
            When there is no such table.
        MissingPartError
            When files that would come back are not there any more.

        """
        from warehouse.operations.undo import undo_foreign  # noqa: PLC0415 - reading does without

        return undo_foreign(self._context(), table, dry_run=dry_run)

    def health(
        self, reader: Reader | None = None, *, landing: Sequence[LandingFacts] | None = None, layouts: bool = True
    ) -> Health:
        """Return whether the warehouse is well, and what needs a person, with the thresholds of ``[health]``.

        Parameters
        ----------
        reader
            The newest epoch; None: it is opened.
        landing
            What the landing directories hold; None: they are listed.
        layouts
            Whether to look for layouts that no longer fit too, which takes longest.

        Raises
        ------
        NoEpochError
            When nothing was committed yet.

        """
        from warehouse.health import judge  # noqa: PLC0415 - reading does without
        from warehouse.operations.health import health_facts  # noqa: PLC0415 - same

        catalog, pinned = self.catalog, self._newest(None) if reader is None else reader
        listed = self.landing if landing is None else lambda: landing
        return judge(health_facts(catalog, pinned, listed, now=_clock(), layouts=layouts), catalog.health)

    def metrics(self) -> bytes:
        """Return gauges of the newest epoch, the landing directories and the health, as text for Prometheus.

        Raises
        ------
        NoEpochError
            When nothing was committed yet.

        """
        from warehouse.serving.metrics import prometheus_text  # noqa: PLC0415 - nothing else needs it

        catalog, reader = self.catalog, self._newest(None)
        landing = self.landing()
        health = self.health(reader, landing=landing)
        return prometheus_text(reader, landing, catalog.stale_after, health, retain=catalog.retain, now=_clock())

    def report(self) -> str:
        """Return one HTML page with pictures of the newest epoch and those before it.

        Raises
        ------
        NoEpochError
            When nothing was committed yet.

        """
        from warehouse.picturing.figures import figures_of  # noqa: PLC0415 - nothing else needs it
        from warehouse.picturing.page import html_page  # noqa: PLC0415 - same
        from warehouse.serving import Reader  # noqa: PLC0415 - updating does without

        # not logged: the probes made for the page are nobody's
        with Reader.open(self.root, resources=self.resources(self.sql_bounds)) as reader:
            return html_page(figures_of(reader), self.directory.absolute().name, self.health(reader))

    def explain(self, view: str) -> Explanation:
        """Return a declared view's plan, and what the newest epoch, if there is one, tells of it; needs no Spark.

        Raises
        ------
        UnknownNameError
            When no such view is declared.

        """
        from warehouse.serving.explanation import explained  # noqa: PLC0415 - it takes the parser of SQL

        try:
            reader = self._newest(None)
        except NoEpochError:
            reader = None
        return explained(self.catalog, view, reader)

    def explain_aggregate(self, aggregate: str) -> AggregateExplanation:
        """Return which synopses a declared aggregate reads, who shares them, and when its windows are due; needs no Spark.

        Raises
        ------
        UnknownNameError
            When no such aggregate is declared.

        """
        from warehouse.catalog.spelling import nearest  # noqa: PLC0415 - as above
        from warehouse.serving.aggregate_explanation import explained_aggregate  # noqa: PLC0415 - nothing else needs it

        found = explained_aggregate(self.catalog, aggregate, newest_epoch(self.root))
        if found is None:
            names = [each.name for each in self.catalog.aggregates]
            raise UnknownNameError("aggregate", aggregate, names, nearest(aggregate, names))
        return found

    def explain_coalesced(self, table: str) -> CoalescedExplanation:
        """Return what a declared coalesced table holds, and which points it did not take; needs no Spark.

        Raises
        ------
        UnknownNameError
            When no such table is declared.

        """
        from warehouse.catalog.spelling import nearest  # noqa: PLC0415 - as above
        from warehouse.serving.coalesced_explanation import explained_coalesced  # noqa: PLC0415 - nothing else needs it

        reader = None if newest_epoch(self.root) is None else self._newest(None)
        found = explained_coalesced(self.catalog, table, reader)
        if found is None:
            names = [each.name for each in self.catalog.coalesced]
            raise UnknownNameError("coalesced table", table, names, nearest(table, names))
        return found

    def advise(self, table: str, *, what_if: str | None = None) -> Advice:
        """Return which layout fits a table of the newest epoch, with predicted figures; needs no Spark.

        Parameters
        ----------
        table
            A stream, or a view cut on a grid.
        what_if
            What to suppose in place of what was measured, as ``key=value,key=value``:
            :func:`warehouse.advice.what_if.parse_what_if`.

        """
        from warehouse.advice.advise import advise  # noqa: PLC0415 - nothing else needs it

        catalog = self.catalog
        declared = catalog.stream(table) or catalog.view(table)
        return advise(
            self._newest(None),
            table,
            spark=dict(catalog.spark),
            retain=catalog.retain,
            now=_clock(),
            widest=declared.widest_block if declared else None,
            what_if=what_if,
            target_file_size=catalog.target_file_size,
        )

    # --- what it knows of itself ---

    @staticmethod
    def init(directory: str | Path, *, example: str | None = None, source: str | Path | None = None) -> tuple[Path, ...]:
        """Write a project to start from, and return its files, ``warehouse.toml`` first; nothing is ever overwritten.

        Parameters
        ----------
        directory
            Where; it is made if need be.
        example
            The name of a bundled example; by default the one that shows every key.
        source
            A file to propose a stream for instead; :func:`warehouse.catalog.proposal.proposal` takes wishes too.

        Raises
        ------
        UsageError
            When a file would be overwritten, or the source is not usable.

        """
        from warehouse.catalog.initialise import write_project  # noqa: PLC0415 - nothing else needs it

        return tuple(write_project(Path(directory), example, None if source is None else Path(source)))

    def validate(self) -> tuple[str, ...]:
        """Check ``warehouse.toml``, the queries of views too, and return its warnings.

        Raises
        ------
        ConfigurationError
            When it has faults: all of them.

        """
        catalog = self.catalog
        if not catalog.views:
            return catalog.warnings
        from warehouse.views.plans import compile_views  # noqa: PLC0415 - it takes the parser of SQL

        return (*catalog.warnings, *compile_views(catalog).warnings())

    def status(self) -> tuple[TableStatus, ...]:
        """Return where each table of the newest epoch stands: live rows, files, bytes, what waits and was rejected."""
        from warehouse.serving.catalogue import status  # noqa: PLC0415 - nothing else needs it

        return status(self._newest(None), retain=self.catalog.retain)

    def tables(self) -> tuple[str, ...]:
        """Return the names of the newest epoch's tables."""
        from warehouse.serving.catalogue import tables  # noqa: PLC0415 - nothing else needs it

        return tables(self._newest(None).epoch)

    def describe(self, table: str) -> TableDescription:
        """Return the columns, the search key and the layout of a table; see :func:`warehouse.serving.catalogue.describe`."""
        from warehouse.serving.catalogue import describe  # noqa: PLC0415 - nothing else needs it

        return describe(self._newest(None), table)

    def files(self, table: str) -> TableFiles:
        """Return the files that may hold live rows of a table, and the filter that keeps these in any engine."""
        from warehouse.serving.catalogue import files  # noqa: PLC0415 - nothing else needs it

        return files(self._newest(None), table)

    def history(self, limit: int | None = None) -> tuple[EpochRow, ...]:
        """Return the readable epochs, the newest first: window time, commit time, counts, seconds."""
        from warehouse.serving.history import history  # noqa: PLC0415 - nothing else needs it

        self._check_open()
        return tuple(history(self.root, limit))

    def rejected(self, table: str, *, limit: int | None = None) -> Answer:
        """Return the invalid rows of a table with their file, record number and reason."""
        from warehouse.serving.catalogue import rejected  # noqa: PLC0415 - nothing else needs it

        return rejected(self._newest(None), table, limit)

    # --- reading ---

    def connect(self, tool: str, table: str) -> str:
        """Return what to type so that another tool reads the live rows of a table.

        Raises
        ------
        UsageError
            When it is none of the tools, or there is no such table.
        ViewFailedError
            When the table is a view that stands still.
        MissingPartError
            When ``warehouse.duckdb`` is not there.

        """
        from warehouse.publishing.connect import tool_of, written_snippet  # noqa: PLC0415 - nothing else needs it

        pin = self._newest(None).pin
        return written_snippet(tool_of(tool), self.root, pin.state(table), pin.epoch)

    def reader(
        self, as_of: Instant | None = None, *, resources: Resources | None = None, hot: Sequence[str] = ()
    ) -> Reader:
        """Return a reader of the newest epoch, or of the newest at or before ``as_of``; the caller closes it.

        ``resources`` are what it may use; those of ``[sql]`` by default. Tables that are ``hot`` it keeps in memory.

        Raises
        ------
        NoEpochError
            When nothing was committed, or nothing that is still readable at that time.
        UnknownNameError
            When there is no such table to be kept in memory.

        """
        self._check_open()
        self._check_hot(hot)
        return self._reader(as_of, resources, hot)

    def _reader(self, as_of: Instant | None, resources: Resources | None, hot: Sequence[str]) -> Reader:
        from warehouse.serving import Reader  # noqa: PLC0415 - updating does without

        return Reader.open(
            self.root,
            as_of=_instant(as_of),
            resources=resources or self.resources(self.sql_bounds),
            logged=self._read_log,
            hot=hot,
        )

    @staticmethod
    def resources(bounds: SqlBounds) -> Resources:
        """Return bounds as the engine takes them."""
        from warehouse.serving.engine import Resources  # noqa: PLC0415 - updating does without

        return Resources(f"{bounds.memory}B", spill_limit=f"{bounds.spill}B", timeout=bounds.timeout)

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("the warehouse is closed; open it again: Warehouse.open(directory)")

    def _newest(self, as_of: Instant | None) -> Reader:
        """A kept reader, refreshed when there is a newer epoch, so that snapshots, footers and hot tables stay warm."""
        from warehouse.epochs.journal import epoch_numbers  # noqa: PLC0415 - one use

        self._check_open()
        moment = _instant(as_of)
        numbers = epoch_numbers(self.root)
        kept = self._readers.get(moment)
        if kept is not None and (not numbers or (moment is None and numbers[-1] < kept.epoch.number)):
            self._readers.pop(moment).close()  # another warehouse is in its place, or none
            kept = None
        if kept is None:
            kept = self._readers[moment] = self._reader(moment, None, self._hot if moment is None else ())
        elif moment is None and numbers[-1] > kept.epoch.number:
            kept.refresh()
        return kept

    def warm(self) -> None:
        """Do for hot tables what the first reads of the newest epoch would: read what it added to them.

        Raises
        ------
        NoEpochError
            When nothing was committed.

        """
        self._newest(None).warm()

    def probe(
        self,
        table: str,
        keys: Sequence[object] | None = None,
        *,
        from_: object = None,
        to: object = None,
        null: bool = False,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        now: Instant | None = None,
        as_of: Instant | None = None,
        system_columns: bool = False,
        open_until: OpenUntil | None = None,
    ) -> Answer:
        """Return the live rows of keys, of a key range or of the null key.

        Parameters and errors are those of :meth:`warehouse.serving.Reader.probe`; ``as_of`` reads the newest epoch whose window
        time is at or before it.
        """
        return self._newest(as_of).probe(
            table,
            keys,
            from_=from_,
            to=to,
            null=null,
            columns=columns,
            limit=limit,
            now=_instant(now),
            system_columns=system_columns,
            open_until=open_until,
        )

    def scan(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        now: Instant | None = None,
        as_of: Instant | None = None,
        system_columns: bool = False,
        isolation: Isolation = "pinned",
        open_until: OpenUntil | None = None,
    ) -> Answer:
        """Return live rows in no order; see :meth:`warehouse.serving.Reader.scan`."""
        return self._newest(as_of).scan(
            table,
            columns=columns,
            where=where,
            limit=limit,
            now=_instant(now),
            system_columns=system_columns,
            isolation=isolation,
            open_until=open_until,
        )

    def sql(
        self,
        query: str,
        parameters: Sequence[object] | Mapping[str, object] = (),
        *,
        now: Instant | None = None,
        as_of: Instant | None = None,
        isolation: Isolation = "pinned",
        open_until: OpenUntil | None = None,
    ) -> Answer:
        """Return the answer to a DuckDB SELECT over the tables; see :meth:`warehouse.serving.Reader.sql`."""
        return self._newest(as_of).sql(query, parameters, now=_instant(now), isolation=isolation, open_until=open_until)

    def changes(
        self,
        table: str,
        *,
        since: int,
        to: int | None = None,
        columns: Sequence[str] | None = None,
        limit: int | None = None,
        system_columns: bool = False,
    ) -> Answer:
        """Return what entered a table and what left it between two epochs; see :meth:`warehouse.serving.Reader.changes`."""
        return self._newest(None).changes(
            table, since=since, to=to, columns=columns, limit=limit, system_columns=system_columns
        )

    def restored(self, view: str, *, limit: int | None = None, as_of: Instant | None = None) -> Answer:
        """Return a view's short-lived results; see :meth:`warehouse.serving.Reader.restored`."""
        return self._newest(as_of).restored(view, limit=limit)


def _clock() -> int:
    return time.time_ns() // 1000


def _catalog(directory: Path) -> Catalog:
    from warehouse.catalog.load import load_catalog  # noqa: PLC0415 - reading mostly does without

    return load_catalog(directory)


def _content(directory: Path) -> bytes:
    try:
        return (directory / "warehouse.toml").read_bytes()
    except OSError:
        return b""


def _raw(content: bytes) -> dict[str, Any]:
    """What the file says, without being checked; nothing when it is no TOML."""
    try:
        return tomllib.loads(content.decode())
    except (ValueError, RecursionError):
        return {}


def _root(directory: Path, raw: dict[str, Any]) -> Path | None:
    try:
        root = raw["warehouse"]["root"]
    except (LookupError, TypeError):
        return None
    if not isinstance(root, str) or not root:
        return None
    if is_uri(root):
        return path_of(root)
    return None if "://" in root else Path(directory.absolute() / root)


def _instant(given: Instant | None) -> int | None:
    if isinstance(given, datetime):
        if given.tzinfo is None:
            aware = f"datetime({given.year}, {given.month}, {given.day}, ..., tzinfo=UTC)"
            raise UsageError(f"the datetime {given.isoformat()} has no time zone; say which it is in, such as {aware}")
        return to_micros(given)
    return parse_instant(given) if isinstance(given, str) else given


def _beginning(given: Instant | Literal["first"] | None) -> int | Literal["first"] | None:
    return "first" if given == "first" else _instant(given)


def _options(
    at: Instant | None,
    *,
    each: bool,
    start: Instant | Literal["first"] | None,
    allow_dead: bool,
    future: bool,
) -> Any:  # noqa: ANN401 - imported late
    from warehouse.operations.update import UpdateOptions  # noqa: PLC0415 - reading does without

    begin = _beginning(start)
    return UpdateOptions(at=_instant(at), each=each, start=begin, allow_dead=allow_dead, future=future)
