"""The answer of a read: a query at a pinned epoch, run when it is read, in pieces, as tuples or as Arrow."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.serving.engine import FAILURES
from warehouse.serving.watch import Watch
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb
    import pyarrow as pa

    from warehouse.errors import WarehouseError
    from warehouse.serving.engine import Resources
    from warehouse.serving.statement import Statement

__all__ = ["Answer", "Explain", "Plan"]

ROWS = 10_000


@dataclass(frozen=True)
class Plan:
    """What a read looked at before it ran: files by what became of them, and the milliseconds this took.

    ``tau`` is the instant (microseconds) after which a row must expire; every file considered is counted in exactly one
    of the others. Of a hot table those count as read whose rows in memory were.
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
    """A plan, and what came of it so far: rows given out, milliseconds in all, the SQL and its bound values."""

    plan: Plan
    rows: int
    milliseconds: float
    sql: str
    parameters: tuple[Any, ...]


class Answer:
    """Rows of one epoch. Each way of reading runs the query anew; the files never change.

    Parameters
    ----------
    connection
        Where the query runs, each time on a cursor of its own.
    statement
        The query.
    columns
        Name and DuckDB type of each column.
    epoch, window_time
        The window state the rows are of; microseconds.
    failed
        Makes an error of ours of one of DuckDB's.
    plan
        What a probe or scan looked at.
    resources
        The bounds of a statement that holds text of the user's; each way of reading has all of its time.
    ended
        Called each time that all rows were read.

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
        plan: Plan | None = None,
        resources: Resources | None = None,
        ended: Callable[[Explain], None] | None = None,
    ) -> None:
        self._resources = resources
        self._ended = ended
        self._watch: Watch | None = None
        self._connection = connection
        self._statement = statement
        self._failed = failed
        self._plan = plan
        self._seconds = 0.0
        self._count = 0
        self.columns = columns
        self.epoch = epoch
        self.window_time = window_time

    def __repr__(self) -> str:
        names = ", ".join(name for name, _ in self.columns)
        return f"<Answer of epoch {self.epoch}, window time {format_instant(self.window_time)}: {names}>"

    @property
    def explain(self) -> Explain | None:
        """What a probe or scan looked at and what came of it so far; none for SQL."""
        if self._plan is None:
            return None
        spent = self._plan.milliseconds + self._seconds * 1000
        return Explain(self._plan, self._count, spent, self._statement.sql, self._statement.parameters)

    @property
    def metadata(self) -> dict[str, str]:
        """What Arrow schemas carry: the window state."""
        return {"stream_wh.window_time": format_instant(self.window_time), "stream_wh.epoch": str(self.epoch)}

    def rows(self, size: int = ROWS) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows as lists of at most ``size`` tuples, in bounded memory.

        Raises
        ------
        EpochVacuumedError
            When a file vanished meanwhile.
        QueryError
            When a condition or query of the user fails on a row.

        """
        cursor = self._begin()
        try:
            self._timed(cursor, lambda: cursor.execute(self._statement.sql, list(self._statement.parameters)))
            while rows := self._timed(cursor, lambda: cursor.fetchmany(size)):
                self._count += len(rows)
                yield rows
        finally:
            cursor.close()
        self._tell_end()

    def all(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return [row for piece in self.rows() for row in piece]

    def arrow(self) -> pa.Table:
        """Return all rows as an Arrow table; its schema metadata tell epoch and window time."""
        cursor = self._begin()
        try:
            table = self._timed(cursor, lambda: self._relation(cursor).to_arrow_table())
        finally:
            cursor.close()
        self._count += table.num_rows
        self._tell_end()
        return table.replace_schema_metadata(self.metadata)

    def batches(self, size: int = ROWS * 10) -> pa.RecordBatchReader:
        """Return the rows as Arrow batches of at most ``size`` rows, in bounded memory; at least one batch."""
        import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

        cursor = self._begin()
        reader = self._timed(cursor, lambda: self._relation(cursor).to_arrow_reader(size))
        schema = reader.schema.with_metadata(self.metadata)
        return pa.RecordBatchReader.from_batches(schema, self._pieces(pa, cursor, reader, schema))

    def _pieces(
        self,
        pa: Any,  # noqa: ANN401 - the module
        cursor: duckdb.DuckDBPyConnection,
        reader: pa.RecordBatchReader,
        schema: pa.Schema,
    ) -> Iterator[pa.RecordBatch]:
        empty = True
        try:
            while (batch := self._timed(cursor, lambda: next(reader, None))) is not None:
                empty = False
                self._count += batch.num_rows
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            if empty:
                yield pa.RecordBatch.from_pylist([], schema=schema)
        finally:
            reader.close()
            cursor.close()
        self._tell_end()

    def _tell_end(self) -> None:
        if self._ended is not None and (told := self.explain) is not None:
            self._ended(told)

    def _begin(self) -> duckdb.DuckDBPyConnection:
        self._seconds, self._count = 0.0, 0
        self._watch = Watch(self._resources) if self._resources is not None else None
        cursor = self._connection.cursor()
        for name, rows in self._statement.tables.items():
            cursor.register(name, rows)
        return cursor

    def _relation(self, cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        parameters = list(self._statement.parameters)
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
