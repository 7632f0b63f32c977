"""A project: one ``warehouse.toml`` and its warehouse, as a Python object with the command line's verbs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.epochs.journal import newest_epoch
from warehouse.errors import NoEpochError, UnknownNameError, UsageError
from warehouse.opening import Instant, clock_now, instant_of, time_given
from warehouse.time import parse_duration
from warehouse.writing import WritingProject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.advice import Advice
    from warehouse.checking.findings import CheckReport
    from warehouse.coalescing.choosing import Choice
    from warehouse.health import Health
    from warehouse.planning.inputs import LandingFacts
    from warehouse.serving import Answer, Reader
    from warehouse.serving.aggregate_explanation import AggregateExplanation
    from warehouse.serving.coalesced_explanation import CoalescedExplanation
    from warehouse.serving.explanation import Explanation
    from warehouse.serving.history import EpochRow
    from warehouse.serving.latest import Isolation
    from warehouse.serving.metadata import LiveFiles, TableDescription
    from warehouse.serving.request import OpenUntil
    from warehouse.serving.table_status import TableStatus

__all__ = ["Instant", "Warehouse"]


class Warehouse(WritingProject):
    """The warehouse of one project directory.

    Reading needs no Java and writes nothing. The catalog is checked in full only if ``warehouse.toml`` differs from that of the
    newest epoch.

    Parameters
    ----------
    directory
        The directory of ``warehouse.toml``.
    root
        The root of the tables.
    sql
        The resources that a query may use.
    read_log
        Whether reads are recorded for :meth:`advise`.
    hot
        Tables whose newest rows are cached in memory.

    """

    # --- how it is ---

    def check(self, *, rows: bool = True) -> CheckReport:
        """Verify the warehouse against its invariants and ``erase_within``, without Java.

        See :func:`warehouse.checking.check.check`. Expired rows that are stored for longer than allowed are the fault
        ``erase_overdue``.
        """
        from warehouse.checking.check import check  # noqa: PLC0415 - nothing else needs it
        from warehouse.checking.findings import fault  # noqa: PLC0415 - same
        from warehouse.operations.erasure.overdue import overdue  # noqa: PLC0415 - same

        report = check(self.root, rows=rows, published=self.catalog.published)
        now = clock_now()
        late = tuple(
            fault("erase_overdue", row.table, row.message(now), f"run `{row.command}`", table=row.table)
            for row in overdue(self.root, self.catalog.erase_within, now)
        )
        differing = tuple(
            fault("view_differs", finding.view, finding.message, f"run `stream-wh rebuild {finding.view}`", table=finding.view)
            for finding in self.view_findings()
        )
        return replace(report, findings=(*late, *differing, *report.findings))

    def health(
        self, reader: Reader | None = None, *, landing: Sequence[LandingFacts] | None = None, layouts: bool = True
    ) -> Health:
        """Return the verdict on the warehouse and its reasons, by the thresholds of ``[health]``.

        Parameters
        ----------
        reader
            The newest epoch; None: it is opened.
        landing
            The files of the landing directories; None: they are listed.
        layouts
            Whether to look for layouts that no longer fit, too. This takes most of the time.

        Raises
        ------
        NoEpochError
            When nothing was committed yet.

        """
        from warehouse.health import judge  # noqa: PLC0415 - reading does without
        from warehouse.operations.health import health_facts  # noqa: PLC0415 - same

        catalog, pinned = self.catalog, self._newest(None) if reader is None else reader
        listed = self.landing if landing is None else lambda: landing
        return judge(health_facts(catalog, pinned, listed, now=clock_now(), layouts=layouts), catalog.health)

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
        return prometheus_text(reader, landing, catalog.stale_after, health, retain=catalog.retain, now=clock_now())

    def report(self) -> str:
        """Return one HTML page with pictures of the newest epoch and those before it.

        Raises
        ------
        NoEpochError
            When nothing was committed yet.

        """
        from warehouse.report.figures import figures_of  # noqa: PLC0415 - nothing else needs it
        from warehouse.report.page import html_page  # noqa: PLC0415 - same
        from warehouse.serving import Reader  # noqa: PLC0415 - updating does without

        # not logged: the probes made for the page are nobody's
        with Reader.open(self.root, resources=self.resources(self.sql_bounds)) as reader:
            return html_page(figures_of(reader), self.directory.absolute().name, self.health(reader))

    def explain(self, view: str) -> Explanation:
        """Return the plan of a declared view, with figures of the newest epoch if there is one; needs no Spark.

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

        explanation = explained_aggregate(self.catalog, aggregate, newest_epoch(self.root))
        if explanation is None:
            names = [declared.name for declared in self.catalog.aggregates]
            raise UnknownNameError("aggregate", aggregate, names, nearest(aggregate, names))
        return explanation

    def explain_coalesced(self, table: str) -> CoalescedExplanation:
        """Return the contents of a declared coalesced table, and the points that it did not use; needs no Spark.

        Raises
        ------
        UnknownNameError
            When no such table is declared.

        """
        from warehouse.catalog.spelling import nearest  # noqa: PLC0415 - as above
        from warehouse.serving.coalesced_explanation import explained_coalesced  # noqa: PLC0415 - nothing else needs it

        reader = None if newest_epoch(self.root) is None else self._newest(None)
        explanation = explained_coalesced(self.catalog, table, reader)
        if explanation is None:
            names = [declared.name for declared in self.catalog.coalesced]
            raise UnknownNameError("coalesced table", table, names, nearest(table, names))
        return explanation

    def advise(self, table: str, *, what_if: str | None = None) -> Advice:
        """Return the recommended layout for a table of the newest epoch, with predicted figures; needs no Spark.

        Parameters
        ----------
        table
            A stream, or a view that is partitioned on a grid.
        what_if
            Assumptions that replace measured values, as ``key=value,key=value``: :func:`warehouse.advice.what_if.parse_what_if`.

        """
        from warehouse.advice.advise import advise  # noqa: PLC0415 - nothing else needs it

        catalog = self.catalog
        declared = catalog.stream(table) or catalog.view(table)
        return advise(
            self._newest(None),
            table,
            spark=dict(catalog.spark),
            retain=catalog.retain,
            now=clock_now(),
            widest=declared.widest_block if declared else None,
            what_if=what_if,
            target_file_size=catalog.target_file_size,
        )

    def advise_coalesced(self, table: str) -> Choice:
        """Return whether a coalesced table is eager or lazy, and the costs of both; needs no Spark.

        Raises
        ------
        UsageError
            When it is stored in any case.

        """
        from warehouse.advice.coalescing import advise_coalesced  # noqa: PLC0415 - nothing else needs it
        from warehouse.operations.decided_catalog import decided_catalog  # noqa: PLC0415 - same

        return advise_coalesced(self._newest(None), decided_catalog(self.catalog, self.root), table)

    # --- facts about the warehouse ---

    @staticmethod
    def init(
        directory: str | Path,
        *,
        example: str | None = None,
        source: str | Path | None = None,
        key: Sequence[str] = (),
        arrival: str | None = None,
        expires: str | None = None,
        interval: int | str | None = None,
        columns: Sequence[str] = (),
    ) -> tuple[Path, ...]:
        """Write a new project, and return its files, ``warehouse.toml`` first; never overwrite a file.

        Parameters
        ----------
        directory
            The directory of the project; it is created if it does not exist.
        example
            The name of a bundled example; by default the example that shows every key.
        source
            Instead of an example: a file, or a folder of files, for which a stream is proposed.
        key, arrival, expires, interval, columns
            Values that replace a proposal for the source: columns of the search key, columns or expressions of the times
            (``expires`` may be ``never``), a duration such as ``10m`` or microseconds, the columns to declare.

        Raises
        ------
        UsageError
            When a file would be overwritten, the source is not usable, or it lacks a named column.

        """
        from warehouse.catalog.init_options import InitOptions  # noqa: PLC0415 - same
        from warehouse.catalog.initialise import write_project  # noqa: PLC0415 - nothing else needs it

        try:
            step = parse_duration(interval) if isinstance(interval, str) else interval
        except ValueError as error:
            raise UsageError(f"interval: {error}") from error
        choices = InitOptions(tuple(key), arrival, expires, step, tuple(columns))
        if source is None and choices != InitOptions():
            raise UsageError("key=, arrival=, expires=, interval= and columns= are about a source; give source= too")
        return tuple(write_project(Path(directory), example, None if source is None else Path(source), choices))

    def validate(self) -> tuple[str, ...]:
        """Check ``warehouse.toml``, the queries of views too, and return its warnings.

        Raises
        ------
        ConfigurationError
            When it has faults: all of them.

        """
        catalog = self.catalog
        if not catalog.views and not catalog.lazy:
            return catalog.warnings
        from warehouse.views.lazy_conditions import lazy_conditions  # noqa: PLC0415 - it takes the parser of SQL
        from warehouse.views.plans import compile_views  # noqa: PLC0415 - same

        lazy_conditions(catalog)
        return (*catalog.warnings, *compile_views(catalog).warnings())

    def status(self) -> tuple[TableStatus, ...]:
        """Return the state of each table of the newest epoch: live rows, files, bytes, waiting files and rejected rows."""
        from warehouse.serving.table_status import status  # noqa: PLC0415 - nothing else needs it

        return status(self._newest(None), retain=self.catalog.retain)

    def tables(self) -> tuple[str, ...]:
        """Return the names of the newest epoch's tables."""
        from warehouse.serving.metadata import tables  # noqa: PLC0415 - nothing else needs it

        return tables(self._newest(None).epoch)

    def describe(self, table: str) -> TableDescription:
        """Return the columns, the search key and the layout of a table; see :func:`warehouse.serving.metadata.describe`."""
        from warehouse.serving.metadata import describe  # noqa: PLC0415 - nothing else needs it

        return describe(self._newest(None), table)

    def files(self, table: str) -> LiveFiles:
        """Return the files that may hold live rows of a table, and the filter that keeps these in any engine."""
        from warehouse.serving.metadata import files  # noqa: PLC0415 - nothing else needs it

        return files(self._newest(None), table)

    def history(self, limit: int | None = None) -> tuple[EpochRow, ...]:
        """Return the readable epochs, the newest first: window time, commit time, counts, seconds."""
        from warehouse.serving.history import history  # noqa: PLC0415 - nothing else needs it

        self._check_open()
        return tuple(history(self.root, limit))

    def rejected(self, table: str, *, limit: int | None = None) -> Answer:
        """Return the invalid rows of a table with their file, record number and reason."""
        from warehouse.serving.metadata import rejected  # noqa: PLC0415 - nothing else needs it

        return rejected(self._newest(None), table, limit)

    # --- reading ---

    def connect(self, tool: str, table: str) -> str:
        """Return a snippet with which another tool reads the live rows of a table.

        Raises
        ------
        UsageError
            When the tool or the table is unknown.
        ViewFailedError
            When the table is a view that failed.
        MissingPartError
            When ``warehouse.duckdb`` does not exist.

        """
        from warehouse.publishing.connect import table_snippet, tool_of  # noqa: PLC0415 - nothing else needs it

        pin = self._newest(None).pin
        return table_snippet(tool_of(tool), self.root, pin.state(table), pin.epoch)

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
        within: int | str | None = None,
    ) -> Answer:
        """Return the live rows of keys, of a key range or of the null key.

        Parameters and errors are the same as for :meth:`warehouse.serving.Reader.probe`; ``as_of`` reads the newest epoch whose
        window time is at or before it.
        """
        return self._newest(as_of).probe(
            table,
            keys,
            from_=from_,
            to=to,
            null=null,
            columns=columns,
            limit=limit,
            now=instant_of(now),
            system_columns=system_columns,
            open_until=open_until,
            within=time_given(within),
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
            now=instant_of(now),
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
        within: int | str | None = None,
    ) -> Answer:
        """Return the answer to a DuckDB SELECT over the tables; see :meth:`warehouse.serving.Reader.sql`.

        ``within`` is a time such as ``"200ms"``, or microseconds.
        """
        return self._newest(as_of).sql(
            query, parameters, now=instant_of(now), isolation=isolation, open_until=open_until, within=time_given(within)
        )

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
        """Return the rows that entered or left a table between two epochs; see :meth:`warehouse.serving.Reader.changes`."""
        return self._newest(None).changes(
            table, since=since, to=to, columns=columns, limit=limit, system_columns=system_columns
        )

    def restored(self, view: str, *, limit: int | None = None, as_of: Instant | None = None) -> Answer:
        """Return a view's short-lived results; see :meth:`warehouse.serving.Reader.restored`."""
        return self._newest(as_of).restored(view, limit=limit)
