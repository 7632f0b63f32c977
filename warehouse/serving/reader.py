"""Reading a warehouse: probe, scan and SQL at a pinned epoch, without a JVM and without writing anything.

An answer is `{ r : r in table at the epoch, r.exp > tau, the selection holds }` where tau is the window time or a later `now`.
Answers do not depend on the grid, the technique or the runs: these only decide which files are left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb

from warehouse.errors import UnknownNameError, UsageError, WarehouseError
from warehouse.layout.columns import CELL
from warehouse.serving.accuracy import shed_below, shed_share
from warehouse.serving.answer import Answer, Explain, ReadPlan
from warehouse.serving.changes import changes_of, newest_asked
from warehouse.serving.clock import clock_of
from warehouse.serving.condition import Condition, check_boolean, checked_condition
from warehouse.serving.engine import damaged_error, read_error
from warehouse.serving.guard import CheckedQuery, checked_query, query_error, without_temporal_functions
from warehouse.serving.key_conditions import probe_order, where_key
from warehouse.serving.keys import key_range, keys_of
from warehouse.serving.latest import Isolation, latest
from warehouse.serving.owed_results import owed_by
from warehouse.serving.pin import Pin, require, until_now
from warehouse.serving.pinned_reader import PinnedReader
from warehouse.serving.pinned_sandboxes import sandbox_of
from warehouse.serving.pruning import All, KeyRange, Keys, NullKey, Selection
from warehouse.serving.request import OpenUntil, Request, check_open_until, instant_of
from warehouse.serving.statement import SYSTEM_COLUMNS, Statement, in_memory_rows, restored_query, select
from warehouse.serving.visible_tables import readable
from warehouse.serving.watch import Watch
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from warehouse.epochs.records import TableState
    from warehouse.serving.clock import Coverage
    from warehouse.serving.keys import KeyColumn
    from warehouse.serving.partial_results import CombinedRows

__all__ = ["Reader"]


class Reader(PinnedReader):
    """A reader pins an epoch and answers from it until it is refreshed or closed.

    One thread at a time may use it; answers may be read side by side.

    Examples
    --------
    >>> with Reader.open(root) as reader:  # doctest: +SKIP
    ...     for row in reader.probe("flights", ["N14228"]).all():
    ...         print(row)
    """

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
        now: int | None = None,
        system_columns: bool = False,
        open_until: OpenUntil | None = None,
        within: int | None = None,
    ) -> Answer:
        """Return the live rows of keys, of a key range, or of null keys, by key (nulls first), ``_exp``, ``_ts``.

        Parameters
        ----------
        table
            The table's name.
        keys
            Values of the search key; for a composite key tuples, or mappings of column to value. Fewer parts are a prefix. All
            keys are one query, and a repeated key counts once. A part ``None`` is null.
        from_, to
            The half-open range ``[from_, to)``; an end may be left out, or be a prefix. A key whose first part is null
            is in no range; a null in a later part comes before every value.
        null
            Whether to return the rows with null in a part of the key.
        columns
            The columns to show, system columns too; all of the user's by default.
        limit
            The greatest number of rows.
        now
            An instant (microseconds) at or after the window time; rows must expire after it.
        system_columns
            Whether the default columns include the system columns.
        open_until
            ``"now"``: the open rows of a coalesced table end at that instant, not at their last point; ``open`` marks them.
        within
            For keys alone: a time limit in microseconds. The answer has the rows that were found by then (:attr:`Answer.within`
            says whether these are all).

        Raises
        ------
        UsageError
            For a key that does not have the column's type, or a wrong combination of arguments.
        UnknownNameError
            For an unknown table or column.
        EpochVacuumedError
            When files are gone, also those of the newest epoch.

        """
        has_range = from_ is not None or to is not None
        if (keys is not None) + has_range + null != 1:
            raise UsageError("a probe needs keys, or a range, or null: give exactly one of them, or read everything with `scan`")
        if isinstance(keys, (str, bytes)):
            raise UsageError("keys is one text; allowed: a list of keys")

        request = Request.of(columns, limit, now, system_columns=system_columns, open_until=open_until)
        if within is not None:
            if keys is None or open_until is not None:
                raise UsageError("within goes with keys alone; leave it out for a range, the null key and open_until")
            from warehouse.serving.timed import rows_within  # noqa: PLC0415 - it imports NumPy

            requested_keys, clock = keys, clock_of(within)

            def found_by_then(pin: Pin) -> Answer:
                rows_found = rows_within(self.connection, self.chooser, pin, table, requested_keys, request, clock)
                return self.answer(
                    pin, self.connection, rows_found.statement, rows_found.columns, within=rows_found.coverage, tables=(table,)
                )

            return self.retrying(found_by_then)

        def build(pin: Pin) -> Answer:
            state = _with_open_rows(pin.state(table), request)
            key = pin.key_columns(self.connection, state)
            selection: Selection = NullKey()
            if keys is not None:
                selection = keys_of(keys, key)
            elif has_range:
                selection = key_range(from_, to, key)
            if request.open_until is not None:
                _require_stored_ends(table, selection, key)
            return self._read(pin, state, selection, request)

        return self.retrying(build)

    def scan(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        limit: int | None = None,
        now: int | None = None,
        system_columns: bool = False,
        isolation: Isolation = "pinned",
        open_until: OpenUntil | None = None,
    ) -> Answer:
        """Return the live rows of a table in no order; parameters as for :meth:`probe`.

        Parameters
        ----------
        where
            A DuckDB condition over the table's columns and the system columns, as they are shown: ``_exp`` is null
            for rows that never expire.
        isolation
            As for :meth:`sql`.

        Raises
        ------
        QueryError
            When the condition is not one boolean expression, or has a sub-query.
        UnknownNameError
            For an unknown table or column.

        """
        request = Request.of(columns, limit, now, system_columns=system_columns, open_until=open_until)

        def build(pin: Pin) -> Answer:
            state = _with_open_rows(pin.state(table), request)
            if where is None:
                return self._read(pin, state, All(), request)
            return self._filtered(pin, state, where, request)

        return latest(self, isolation, lambda _: self.retrying(build))

    def sql(
        self,
        query: str,
        parameters: Sequence[object] | Mapping[str, object] = (),
        *,
        now: int | None = None,
        isolation: Isolation = "pinned",
        open_until: OpenUntil | None = None,
        within: int | None = None,
    ) -> Answer:
        """Return the answer of a read-only DuckDB query over the live rows.

        Parameters
        ----------
        query
            One SELECT.
        parameters
            The values of ``?`` and ``$1`` in it, by position, or the values of ``$name``, by name.
        now
            An instant (microseconds) at or after the window time; rows must expire after it.
        isolation
            ``"pinned"``: the answer is of this reader's epoch. ``"latest"``: the answer is of the newest epoch at the moment of
            the answer, and the reader moves to this epoch; the answer is computed again if a newer epoch appears before it is
            complete. Then counts, sums, averages, minima and maxima by group over one table are combined from partial results of
            data files. The reader caches these in memory, so a repeated query reads only the files that an update added.
        open_until
            As for :meth:`probe`, of all coalesced tables in the query.
        within
            A time limit in microseconds. Counts, sums, averages and medians by group over one table are then estimates from the
            files that could be read in time, with certain bounds in columns ``NAME_low`` and ``NAME_high`` (null: open);
            :attr:`Answer.within` has the details. Other queries are refused.

        Tables have their names and the user's columns; schema ``system`` has them with the system columns; ``_epochs``,
        ``_files`` and ``_rejected`` have the metadata of the warehouse. ``SHOW TABLES``, ``DESCRIBE``, ``SUMMARIZE`` and
        ``EXPLAIN`` work. The query sees no files.

        Raises
        ------
        QueryError
            When it is not one read-only statement, or DuckDB refuses it.
        UnknownNameError
            When it names a table that does not exist.

        """
        if isinstance(parameters, (str, bytes)):
            raise UsageError("parameters is one text; allowed: a list of values, or a mapping of names to values")
        check_open_until(open_until)
        clock = None if within is None else clock_of(within)
        if clock is not None and (parameters or isolation != "pinned" or open_until is not None):
            plain = "the pinned epoch, rows as they are stored and a query without parameters"
            raise UsageError(f"within goes with {plain}; leave the others or the time out")
        bound = Statement("", dict(parameters) if isinstance(parameters, Mapping) else tuple(parameters))

        def build(pin: Pin, between: Callable[[], None] | None) -> Answer:
            tau = instant_of(pin, now)
            try:
                checked = checked_query(self.connection, query, [state.name for state in readable(pin.epoch)])
            except UnknownNameError as error:
                pin.check_refused(error.name)
                raise
            if between is not None and not bound.parameters and open_until is None:
                combined = self._partials.combined(pin, self.connection, checked, tau, between)
                if combined is not None:
                    return self._combined_answer(pin, combined, checked.tables)
            sandbox = sandbox_of(pin, self.connection, self._resources, checked, tau, open_until_now=open_until is not None)
            cursor = sandbox.cursor()
            try:
                with Watch(self._resources).over(cursor):  # constants are computed when it is planned
                    relation = cursor.sql(checked.sql, params=bound.bound) if bound.parameters else cursor.sql(checked.sql)
                columns = tuple(zip(relation.columns, map(str, relation.types), strict=True))
            except duckdb.Error as error:
                raise _users_error(error, pin.read_files) from error
            finally:
                cursor.close()
            if clock is not None:
                from warehouse.serving.timed import aggregates_within  # noqa: PLC0415 - it imports NumPy

                cached = self.chooser.summaries, self.footers
                try:
                    result = aggregates_within(self.connection, pin, checked, sandbox, columns, now, clock, cached)
                except duckdb.Error as error:
                    raise _users_error(error, pin.read_files) from error
                statement = in_memory_rows(result.rows, result.columns)
                return self.answer(pin, self.connection, statement, result.columns, within=result.coverage, tables=checked.tables)
            statement = replace(bound, sql=checked.sql)
            return self.answer(pin, sandbox, statement, columns, users=True, tables=checked.tables)

        return latest(self, isolation, lambda between: self.retrying(lambda pin: build(pin, between)))

    def _combined_answer(self, pin: Pin, combined: CombinedRows, tables: Iterable[str]) -> Answer:
        """Return the answer that is combined from partial results."""
        statement, files = in_memory_rows(combined.rows, combined.columns), (combined.files, combined.files_read)
        return self.answer(pin, self.connection, statement, combined.columns, put=files, tables=tables)

    def restored(self, view: str, *, limit: int | None = None) -> Answer:
        """Return a view's short-lived results: its columns, ``_ts``, ``_exp``, and the ``_epoch`` that reported them.

        They began and ended between two updates, so no window state ever showed them. A view under a budget also has results that
        ended before they were computed, and marks them with ``_owed``. A view that does not report short-lived results
        (``short_lived = "drop"``) has no such row. With a limit, results of the earliest epochs come first.

        Raises
        ------
        UsageError
            When the table is no view, or the limit is no number of rows.
        UnknownNameError
            For an unknown table.

        """
        request = Request.of(None, limit, None, system_columns=False)

        def build(pin: Pin) -> Answer:
            state = pin.recorded(view)
            if state.kind != "view":
                raise UsageError(f'"{view}" is a {state.kind}; name a view, since only views have short-lived results')
            user_columns = pin.table_columns(self.connection, state)
            paths = pin.side_files(state.restored)
            require(paths)
            owed = state.view is not None and state.view.budget is not None
            text, columns = restored_query(user_columns, paths, request.limit, owed=owed)
            return self.answer(pin, self.connection, Statement(text), columns)

        return self.retrying(build)

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
        """Return the rows that entered or left a table after epoch ``since``, up to epoch ``to`` (None: the pinned one).

        Each row has ``_change_type`` (``insert``, ``expire``, ``delete``: it left before its end; for relations and views whose
        rows are replaced by their key also ``update_preimage`` and ``update_postimage``), ``_change_epoch`` and ``_change_time``,
        the epoch's window time. Rows are in the order in which to apply them.

        Parameters
        ----------
        since, to
            Numbers of epochs that can still be read.
        columns, limit, system_columns
            As for :meth:`probe`; of the system columns a change has only ``_ts`` and ``_exp``.

        Raises
        ------
        CursorLostError
            When an epoch between them can no longer be read, or the table had other columns then.
        UsageError
            When there is no epoch of a number.
        UnknownNameError
            For an unknown table or column.

        """
        request = Request.of(columns, limit, None, system_columns=system_columns)
        if newest_asked(since, to) > self.epoch.number:
            self.refresh()

        def build(pin: Pin) -> Answer:
            read = changes_of(self.connection, pin, table, since, to, request)
            return self.answer(read.pin, self.connection, read.statement, read.columns, tables=(table,))

        return self.retrying(build)

    def _read(self, pin: Pin, state: TableState, selection: Selection, request: Request) -> Answer:
        """Answer a probe or a scan on the main connection: the SQL has no text of the user, and values are bound."""
        start = time.perf_counter()
        tau = instant_of(pin, request.now)
        shown = request.shown(pin.table_columns(self.connection, state))
        choice = self.chooser.choose(self.connection, pin, state, selection, tau)
        source = pin.read_source(self.connection, state, choice.files, tau, selection)
        source = until_now(source, state, open_until_now=request.open_until is not None)
        key = pin.key_columns(self.connection, state)
        condition = where_key(selection, key)
        order = "" if isinstance(selection, All) else probe_order(key)
        text = select(source, [name for name, _ in shown], condition.sql, order, request.limit)
        statement = Statement(text, condition.parameters, source.tables)
        plan = choice.plan(state.name, tau, time.perf_counter() - start)
        ended = self._noted(pin, state, selection)
        return self.answer(pin, self.connection, statement, shown, plan=plan, ended=ended, tables=(state.name,))

    def _noted(self, pin: Pin, state: TableState, selection: Selection) -> Callable[[Explain], None] | None:
        """Return the function that logs a read when it ends."""
        log = self._log
        if log is None or pin.is_hot(state):
            return None
        keys = len(selection.keys) if isinstance(selection, Keys) else 0
        kind = "scan" if isinstance(selection, All) else "probe" if keys else "range"
        return lambda explained: log.add(kind, keys, explained)

    def _filtered(self, pin: Pin, state: TableState, where: str, request: Request) -> Answer:
        """Answer a scan with the user's condition, on a connection that sees this table only."""
        start = time.perf_counter()
        tau = instant_of(pin, request.now)
        user_columns = pin.table_columns(self.connection, state)
        shown = request.shown(user_columns)
        where = without_temporal_functions(where)
        condition_columns = checked_condition(self.connection, where)
        query = CheckedQuery("", frozenset({state.name}), frozenset(), lists=False, in_system=False)
        sandbox = sandbox_of(pin, self.connection, self._resources, query, tau)
        columns = [name for name, _ in (*user_columns, *SYSTEM_COLUMNS)]
        needed = condition_columns | {name for name, _ in shown}
        read_columns = [name for name in columns if name not in CELL or name in needed]
        condition = Condition(state.name, where)
        with Watch(self._resources).over(sandbox):
            check_boolean(sandbox, condition, select(pin.source(state, (), tau), columns), columns)
        choice = self.chooser.choose(self.connection, pin, state, All(), tau)
        projection = ", ".join(quoted(name) for name, _ in shown)
        source = pin.read_source(self.connection, state, choice.files, tau)
        source = until_now(source, state, open_until_now=request.open_until is not None)
        text = condition.over(select(source, read_columns), projection)
        end = "" if request.limit is None else f" LIMIT {request.limit}"
        statement = Statement(text + end, tables=source.tables)
        plan = choice.plan(state.name, tau, time.perf_counter() - start)
        ended = self._noted(pin, state, All())
        return self.answer(pin, sandbox, statement, shown, plan=plan, users=True, ended=ended, tables=(state.name,))

    def answer(
        self,
        pin: Pin,
        connection: duckdb.DuckDBPyConnection,
        statement: Statement,
        columns: tuple[tuple[str, str], ...],
        *,
        plan: ReadPlan | None = None,
        users: bool = False,
        ended: Callable[[Explain], None] | None = None,
        put: tuple[int, int] | None = None,
        tables: Iterable[str] = (),
        within: Coverage | None = None,
    ) -> Answer:
        """Return the answer of a statement.

        ``users``: its SQL has text of the user. ``ended`` is called when it ends. ``tables`` are the tables that it reads.
        """
        return Answer(
            connection,
            statement,
            columns,
            epoch=pin.epoch.number,
            window_time=pin.epoch.window_time,
            failed=lambda error: (_users_error if users else read_error)(error, pin.read_files),
            plan=plan,
            resources=self._resources if users and self._resources.bounded else None,
            ended=ended,
            committed_at=pin.epoch.committed_at,
            put=put,
            shed=shed_below(pin.epoch, tables),
            share=lambda table, at_least: shed_share(pin, self.connection, pin.state(table), at_least),
            within=within,
            owed=owed_by(pin.epoch, tables),
        )


def _with_open_rows(state: TableState, request: Request) -> TableState:
    """Return a table; refuse it if open rows should end now and it has none."""
    if request.open_until is not None and state.coalesced is None:
        raise UsageError(f'"{state.name}" is no coalesced table, so it has no open rows; leave open_until out')
    return state


def _require_stored_ends(table: str, selection: Selection, key: Sequence[KeyColumn]) -> None:
    """Refuse a selection by ``valid_to``: open rows end at another instant than the stored one."""
    match selection:
        case Keys(keys):
            parts = max(map(len, keys), default=0)
        case KeyRange(low, high):
            parts = max(len(low or ()), len(high or ()))
        case _:
            parts = 0
    if "valid_to" in [column.name for column in key[:parts]]:
        raise UsageError(
            f'the search key of "{table}" has valid_to, which open_until changes; use scan with a condition on valid_to, or sql'
        )


def _users_error(error: Exception, files: Sequence[str]) -> WarehouseError:
    if isinstance(error, duckdb.OutOfMemoryException):
        first = str(error).splitlines()[0]
        return WarehouseError(f"{first}; ask for less at once, or give it more (--memory, `memory` and `spill` in [sql])")
    if not isinstance(error, duckdb.Error) or isinstance(error, duckdb.IOException):
        return read_error(error, files)
    return damaged_error(error, files) or query_error(error)
