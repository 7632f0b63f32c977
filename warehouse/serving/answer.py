"""The answer of a read: a query at a pinned epoch, run when it is read, in pieces, as tuples or as Arrow."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Self, TypeVar

import duckdb

from warehouse.errors import LowAccuracyError, PlatformError, UsageError
from warehouse.serving.engine import FAILURES
from warehouse.serving.owed_results import facts_of
from warehouse.serving.statement import Statement, in_memory_rows
from warehouse.serving.watch import Watch
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from warehouse.errors import WarehouseError
    from warehouse.serving.clock import Coverage
    from warehouse.serving.engine import Resources
    from warehouse.serving.owed_results import Owed

__all__ = ["Answer", "Explain", "ReadPlan"]

ROWS = 10_000
_SHOWN = 20
"""Rows that a notebook shows."""
_ROUNDS = 3
"""How often an answer is computed again, at most, because a newer epoch appeared."""
_Found = TypeVar("_Found")


@dataclass(frozen=True)
class ReadPlan:
    """The plan of a read: the number of files by the rule that pruned or kept them, and the milliseconds of planning.

    ``tau`` is the instant (microseconds) after which a row must expire; every file considered is counted in exactly one of the
    other fields. A file of a hot table counts as read if its rows in memory were.
    """

    table: str
    tau: int
    sub_indices_considered: int
    sub_indices_read: int
    files_considered: int
    files_expired: int
    files_out_of_bounds: int
    files_without_key: int
    files_read: int
    bytes_read: int
    milliseconds: float


@dataclass(frozen=True)
class Explain:
    """A plan and its execution so far: rows returned, milliseconds in all, the SQL and its bound values."""

    plan: ReadPlan
    rows: int
    milliseconds: float
    sql: str
    parameters: tuple[Any, ...] | Mapping[str, Any]


class Answer:
    """Rows of one epoch. Each way of reading runs the query again; the files never change.

    It is an Arrow stream too: ``pl.DataFrame(answer)``, ``pa.table(answer)`` and ``duckdb.sql("FROM answer")`` read it.

    Parameters
    ----------
    connection
        Runs the query, each time on a cursor of its own.
    statement
        The query.
    columns
        Name and DuckDB type of each column.
    epoch, window_time
        The epoch of the rows, and its window time in microseconds.
    failed
        Converts an error of DuckDB to one of the warehouse.
    plan
        The files that a probe or scan read or pruned.
    resources
        The bounds of a statement with text of the user; each way of reading may use the whole time.
    ended
        Called each time all rows were read.
    committed_at
        When the epoch was committed, in microseconds.
    put
        For an answer from partial results: the number of its files, and of the files that were read. None: the answer was
        computed from the rows.
    shed
        The shed tables on which the answer depends.
    share
        Returns the accuracy of a shed table, for rows of at least a length in microseconds.
    within
        The known part of an answer with a time limit.
    owed
        The missing results of the views under a budget on which the answer depends.

    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        statement: Statement,
        columns: tuple[tuple[str, str], ...],
        *,
        epoch: int,
        window_time: int,
        failed: Callable[[Exception], WarehouseError],
        plan: ReadPlan | None = None,
        resources: Resources | None = None,
        ended: Callable[[Explain], None] | None = None,
        committed_at: int = 0,
        put: tuple[int, int] | None = None,
        shed: tuple[str, ...] = (),
        share: Callable[[str, int], float] | None = None,
        within: Coverage | None = None,
        owed: tuple[Owed, ...] = (),
    ) -> None:
        self.within = within
        self.owed = owed
        self.committed_at = committed_at
        self.put = put
        self.shed = shed
        self._share = share
        self.newest: bool | None = None
        self._renew: Callable[[], Answer | None] | None = None
        self._resources = resources
        self._ended = ended
        self._watch: Watch | None = None
        self._connection = connection
        self._statement = statement
        self._failed = failed
        self._plan = plan
        self._total: int | None = None
        self._seconds = 0.0
        self._count = 0
        self.columns = columns
        self.epoch = epoch
        self.window_time = window_time

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.columns)
        return f"<Answer of epoch {self.epoch}, window time {format_instant(self.window_time)}: {names}>"

    def renewed_by(self, renew: Callable[[], Answer | None]) -> Self:
        """Make this the answer of the newest epoch at the time it is returned (``isolation = "latest"``), and return it.

        ``renew`` returns the answer of a newer epoch, or None if there is no newer epoch. An answer that is read in pieces
        belongs to the newest epoch at its first piece. If updates come faster than the answer, the last try is returned, and
        :attr:`newest` is False.
        """
        self._renew = renew
        return self

    @property
    def is_renewed(self) -> bool:
        """Whether this is the answer of the newest epoch each time that it is read."""
        return self._renew is not None

    @property
    def staleness(self) -> int:
        """Microseconds since the commit of the epoch that the rows are of (window-concurrency sheet, 8.2)."""
        return max(0, time.time_ns() // 1000 - self.committed_at)

    def held(self) -> Answer:
        """Read the rows now, and return an answer that holds them in memory."""
        statement = in_memory_rows(self.arrow(), self.columns)
        answer = Answer(
            self._connection, statement, self.columns, epoch=self.epoch, window_time=self.window_time, failed=self._failed,
            committed_at=self.committed_at, put=self.put, shed=self.shed, share=self._share, within=self.within, owed=self.owed,
        )  # fmt: skip
        answer.newest = self.newest
        return answer

    @property
    def explain(self) -> Explain | None:
        """The plan of a probe or scan and its execution so far; None for SQL."""
        if self._plan is None:
            return None
        spent = self._plan.milliseconds + self._seconds * 1000
        return Explain(self._plan, self._count, spent, self._statement.sql, self._statement.parameters)

    @property
    def metadata(self) -> dict[str, str]:
        """The metadata of Arrow schemas: the window state, and the names and the accuracy of shed tables behind the rows.

        For views under a budget that owe results, it also has their names and the least share of results that such a view has.
        """
        accuracy = {} if not self.shed else {"stream_wh.accuracy": repr(self.accuracy()), "stream_wh.shed": ", ".join(self.shed)}
        return {
            "stream_wh.window_time": format_instant(self.window_time),
            "stream_wh.epoch": str(self.epoch),
            "stream_wh.committed": format_instant(self.committed_at),
            **accuracy,
            **facts_of(self.owed),
            **({} if self.within is None else self.within.facts),
        }

    def accuracy(self, at_least: int = 0, *, minimum: float = 0.0) -> float | None:
        """Return the accuracy, a share, of the least accurate shed table of the answer; None if it depends on no such table.

        It is the accuracy of the table's window, all groups together, and not of the rows of the answer.

        Parameters
        ----------
        at_least
            Microseconds: only rows of at least this length count.
        minimum
            The least accuracy that is accepted, a share.

        Raises
        ------
        LowAccuracyError
            When the accuracy is below the minimum.

        """
        if self._share is None or not self.shed:
            return None
        share, table = min((self._share(name, at_least), name) for name in self.shed)
        if share < minimum:
            raise LowAccuracyError(table, share, minimum)
        return share

    def rows(self, size: int = ROWS) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows as lists of at most ``size`` tuples, in bounded memory.

        Raises
        ------
        EpochVacuumedError
            When a file was deleted before it was read.
        QueryError
            When a condition or query of the user fails on a row.

        """
        cursor, rows = self._current(lambda: self._first_rows(size), lambda result: result[0].close())
        try:
            while rows:
                self._count += len(rows)
                yield rows
                rows = self._timed(cursor, lambda: cursor.fetchmany(size))
        finally:
            cursor.close()
        self._tell_end()

    def _first_rows(self, size: int) -> tuple[duckdb.DuckDBPyConnection, list[tuple[Any, ...]]]:
        cursor = self._begin()
        try:
            self._timed(cursor, lambda: cursor.execute(self._statement.sql, self._statement.bound))
            return cursor, self._timed(cursor, lambda: cursor.fetchmany(size))
        except BaseException:
            cursor.close()
            raise

    def all(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return [row for batch in self.rows() for row in batch]

    def arrow(self) -> pa.Table:
        """Return all rows as an Arrow table; its schema metadata have epoch and window time."""
        table = self._current(self._all_rows, lambda _: None)
        self._count += table.num_rows
        self._tell_end()
        return table.replace_schema_metadata(self.metadata)

    def _all_rows(self) -> pa.Table:
        cursor = self._begin()
        try:
            return self._timed(cursor, lambda: self._relation(cursor).to_arrow_table())
        finally:
            cursor.close()

    def batches(self, size: int = ROWS * 10) -> pa.RecordBatchReader:
        """Return the rows as Arrow batches of at most ``size`` rows, in bounded memory; at least one batch."""
        import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

        cursor, reader, first = self._current(lambda: self._first_batch(size), lambda result: result[0].close())
        schema = reader.schema.with_metadata(self.metadata)
        return pa.RecordBatchReader.from_batches(schema, self._pieces(pa, cursor, reader, first, schema))

    def _first_batch(self, size: int) -> tuple[duckdb.DuckDBPyConnection, pa.RecordBatchReader, pa.RecordBatch | None]:
        cursor = self._begin()
        try:
            reader = self._timed(cursor, lambda: self._relation(cursor).to_arrow_reader(size))
            return cursor, reader, self._timed(cursor, lambda: next(reader, None)) if self._renew else None
        except BaseException:
            cursor.close()
            raise

    def df(self) -> pd.DataFrame:
        """Return all rows as a pandas frame.

        Raises
        ------
        PlatformError
            When pandas is not installed.

        """
        require_module("pandas", "df()")
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    def pl(self) -> pl.DataFrame:
        """Return all rows as a Polars frame.

        Raises
        ------
        PlatformError
            When Polars is not installed.

        """
        polars: Any = require_module("polars", "pl()")
        frame: pl.DataFrame = polars.from_arrow(self.arrow())
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the rows to any library that takes Arrow streams, in bounded memory (the Arrow PyCapsule interface)."""
        return self.batches().__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows one by one, in bounded memory."""
        return (row for batch in self.rows() for row in batch)

    def __len__(self) -> int:
        """Return the number of rows; columns that the count does not need are not read."""
        if self._total is not None and self._renew is None:
            return self._total
        self._total = self._current(self._counted, lambda _: None)
        return self._total

    def _counted(self) -> int:
        cursor = self._begin()
        try:
            text, parameters = self._statement.sql, self._statement.bound
            row = self._timed(cursor, lambda: cursor.execute(f"SELECT count(*) FROM ({text})", parameters).fetchone())
        finally:
            cursor.close()
        return int(row[0])

    def __bool__(self) -> bool:
        """Whether there is a row, without counting them."""
        return next(iter(self.rows(1)), None) is not None

    def _repr_html_(self) -> str:
        """Return the first rows as a table for notebooks."""
        rows = next(iter(self.rows(_SHOWN + 1)), [])
        head = "".join(f"<th>{escape(name)}<br><small>{escape(kind)}</small></th>" for name, kind in self.columns)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:_SHOWN])
        note = f"; only the first {_SHOWN} rows are shown" if len(rows) > _SHOWN else ""
        moment = f"epoch {self.epoch}, window time {format_instant(self.window_time)}"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><small>{moment}{note}</small>"

    def _pieces(
        self,
        pa: Any,  # noqa: ANN401 - the module
        cursor: duckdb.DuckDBPyConnection,
        reader: pa.RecordBatchReader,
        first: pa.RecordBatch | None,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        empty = True
        try:
            while (batch := first or self._timed(cursor, lambda: next(reader, None))) is not None:
                empty, first = False, None
                self._count += batch.num_rows
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            if empty:
                yield pa.RecordBatch.from_pylist([], schema=schema)
        finally:
            reader.close()
            cursor.close()
        self._tell_end()

    def _current(self, run: Callable[[], _Found], drop: Callable[[_Found], None]) -> _Found:
        """Return the answer from the newest epoch, if ``latest`` is requested; the number of tries is bounded."""
        for _ in range(_ROUNDS):
            result = run()
            newer = self._renew() if self._renew is not None else None
            if newer is None:
                self.newest = None if self._renew is None else True
                return result
            drop(result)
            self._take(newer)
        self.newest = False
        return run()

    def _take(self, newer: Answer) -> None:
        """Become the answer of a newer epoch."""
        self._connection, self._statement, self._failed = newer._connection, newer._statement, newer._failed
        self._plan, self._resources, self._ended = newer._plan, newer._resources, newer._ended
        self.columns, self.put = newer.columns, newer.put
        self.shed, self._share, self.owed = newer.shed, newer._share, newer.owed
        self.epoch, self.window_time, self.committed_at = newer.epoch, newer.window_time, newer.committed_at

    def _tell_end(self) -> None:
        if self._ended is not None and (explained := self.explain) is not None:
            self._ended(explained)

    def _begin(self) -> duckdb.DuckDBPyConnection:
        self._seconds, self._count = 0.0, 0
        self._watch = Watch(self._resources) if self._resources is not None else None
        try:
            cursor = self._connection.cursor()
        except duckdb.ConnectionException:
            raise UsageError("what gave this answer is closed, so it cannot be read any more; read it before") from None
        for name, rows in self._statement.tables.items():
            cursor.register(name, rows)
        return cursor

    def _relation(self, cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        parameters = self._statement.bound
        return cursor.sql(self._statement.sql, params=parameters) if parameters else cursor.sql(self._statement.sql)

    def _timed(self, cursor: duckdb.DuckDBPyConnection, step: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the step returns
        start = time.perf_counter()
        try:
            if self._watch is None:
                return step()
            with self._watch.over(cursor):
                return step()
        except FAILURES as error:
            raise self._failed(error) from error
        finally:
            self._seconds += time.perf_counter() - start


def require_module(name: str, needed_for: str) -> ModuleType:
    """Return a module of an optional library.

    Raises
    ------
    PlatformError
        When it is not installed.

    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise PlatformError(f"{needed_for} needs {name}, which is not installed; `pip install {name}`") from None


def _cell(value: object) -> str:
    return f"<td>{'<i>null</i>' if value is None else escape(str(value))}</td>"
