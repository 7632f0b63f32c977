"""Aggregates with a time limit: files are read until the time is up; estimates and certain bounds cover the unread files.

The time for the next files is predicted from the files before, and a read that does not fit is not begun; no read is interrupted.
So there is always an answer. It is exact if all files were read, or if no file must be read (numbers of rows by key, from key
summaries). :mod:`warehouse.promise.bounds` computes the bounds: the number of rows of an unread file bounds its rows (from 0, if
rows may be dead or filtered out), its footer bounds its values.

Source: promising-tuples sheet, 5.4 and 11 (aggregates over the regions that were reached, counts without reading).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from warehouse.errors import QueryError
from warehouse.promise.bounds import BoundedEstimate, Unread, average, count, median, total
from warehouse.serving.clock import Coverage
from warehouse.serving.row_counts import RowCounts
from warehouse.serving.statement import select
from warehouse.serving.timed_values import (
    FLOATS,
    exact_bound,
    exact_number,
    group_array,
    in_range,
    number_text,
    numbers_of,
    rounded_outward,
    sort_value,
    stored_values,
    text_array,
    widened_by_rounding,
)
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb
    import pyarrow as pa

    from warehouse.epochs.records import TableState
    from warehouse.serving.clock import Clock
    from warehouse.serving.footers import Footers
    from warehouse.serving.key_summaries import Summaries
    from warehouse.serving.pin import Pin
    from warehouse.serving.row_counts import Group
    from warehouse.serving.timed_query import QueryColumn, QueryParts
    from warehouse.storage.snapshot import DataFile

__all__ = ["TimedAggregates", "TimedAnswer"]

_ORDER_SEED = 20
"""Files are read in a random order, always the same one, so that the files that were read are a fair sample."""
_FOR_FOOTERS = 0.3
"""The part of the time that footers may take."""
_LAST_SECONDS = 0.004
_SECONDS_A_GROUP = 40e-6
_SECONDS_A_VALUE = 0.15e-6
"""Seconds that a median takes at the end for each value, as long as that was not measured."""
_ENOUGH_VALUES = 50_000
"""Values whose median takes long enough to be measured."""
_SLOWER = 1.5
"""Among more values, a value may take this many times as long."""
_WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")
_GROUPS = (*_WHOLE[:4], *FLOATS, "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


@dataclass(frozen=True)
class TimedAnswer:
    """The rows, the names and types of their columns, and how much is known."""

    rows: pa.Table
    columns: tuple[tuple[str, str], ...]
    coverage: Coverage


@dataclass
class _State:
    """The read rows of a group: their number, and for each argument the number of values and their sum."""

    rows: int = 0
    values: dict[str, tuple[int, Any]] = field(default_factory=dict)


class TimedAggregates:
    """Answers one query from the files that it can read until its time is up.

    Parameters
    ----------
    pin, state
        The epoch and the table.
    connection
        Reads footers.
    sandbox
        The connection that may open the table's files; the user's expressions are evaluated there.
    asked
        The query.
    columns
        Names and types of its columns without a time limit.
    tau
        The instant after which rows must expire.
    summaries, footers
        The reader's caches of facts about files.

    """

    def __init__(
        self,
        pin: Pin,
        state: TableState,
        connection: duckdb.DuckDBPyConnection,
        sandbox: duckdb.DuckDBPyConnection,
        asked: QueryParts,
        columns: Sequence[tuple[str, str]],
        tau: int,
        summaries: Summaries,
        footers: Footers,
    ) -> None:
        self._pin, self._table, self._sandbox, self._asked, self._columns = pin, state, sandbox, asked, tuple(columns)
        self._tau, self._footers, self._connection = tau, footers, connection
        self._own = pin.table_columns(sandbox, state)
        self._names = {name.lower(): name for name, _ in self._own}
        self._counts = RowCounts(pin, state, sandbox, asked, tau, summaries)
        self._groups: dict[Group, _State] = defaultdict(_State)
        self._medians: dict[str, list[pa.Table]] = {}
        self._seconds_a_value, self._is_rehearsed = _SECONDS_A_VALUE, False
        self._kinds, self._schema = self._types()
        types = {name: kind for name, kind in self._own if _is_plain(kind)}
        column_of = {item.argument: self._names[item.column] for item in asked.items if item.argument and item.column}
        self._keys = {argument: name for argument, name in column_of.items() if name in types}

    def answer(self, clock: Clock) -> TimedAnswer:
        """Read until all is known or the time is up."""
        live_files = [file for file in self._pin.live_files(self._table, self._tau) if self._counts.between(file)[1]]
        files = [file for file in live_files if not self._known(file)]
        Random(_ORDER_SEED).shuffle(files)  # noqa: S311 - nothing is secret here
        read: list[DataFile] = []
        while batch := clock.next_files(files, self._reserve()):
            begun = clock.now()
            values = self._values
            self._read(batch)
            spent = clock.now() - begun
            self._rehearse(clock)
            at_the_end = self._seconds_a_value * (self._values - values)
            clock.measured(sum(file.size for file in batch), spent + at_the_end)
            if not read:
                self._read_footers(files, clock)
            read += batch
        if not read:
            self._read_footers(files, clock)
        return self._made(live_files, read, files)

    def _read_footers(self, files: Sequence[DataFile], clock: Clock) -> None:
        """Read the footers of files that cannot all be read in time."""
        if self._pin.copies is None and not clock.suffices(files):
            types = {name: kind for name, kind in self._own if name in self._keys.values()}
            self._footers.load(self._connection, files, types, clock, clock.left * (1 - _FOR_FOOTERS))

    def _reserve(self) -> float:
        """Return the seconds that the end of the work takes for the rows read so far."""
        return _LAST_SECONDS + _SECONDS_A_GROUP * len(self._groups) + self._seconds_a_value * self._values

    @property
    def _values(self) -> int:
        """The values that were read for medians."""
        return sum(table.num_rows for tables in self._medians.values() for table in tables)

    def _rehearse(self, clock: Clock) -> None:
        """Measure the time for each value at the end of the work, once there are enough values."""
        if self._is_rehearsed or self._values < _ENOUGH_VALUES:
            return
        begun = clock.now()
        for argument in self._medians:
            self._medians_of(argument)
        self._seconds_a_value = _SLOWER * (clock.now() - begun) / self._values
        self._is_rehearsed = True

    def _known(self, file: DataFile) -> bool:
        """Take a file's row counts from its summary or the log, if the query needs nothing else; False if it must be read."""
        if any(item.kind not in ("group", "count") or item.argument for item in self._asked.items):
            return False
        row_counts = self._counts.exact(file)
        for group, rows in (row_counts or {}).items():
            self._groups[group].rows += rows
        return row_counts is not None

    def _types(self) -> tuple[dict[str, str], pa.Schema]:
        """Return the types of arguments, and the Arrow types of groups."""
        no_rows = select(self._pin.source(self._table, (), self._tau), [name for name, _ in self._own])
        kinds = {}
        for item in self._asked.items:
            if item.argument is None:
                continue
            text = f"SELECT {item.argument} FROM ({no_rows}) AS {quoted(self._asked.alias)}"
            kind = kinds[item.argument] = str(self._sandbox.sql(text).types[0])
            if item.kind != "count" and not (kind in (*_WHOLE, *FLOATS) or kind.startswith("DECIMAL")):
                raise QueryError(
                    f"{item.kind}({item.argument}) is of type {kind}; within a time it must be of numbers; "
                    "leave the time out, or cast it"
                )
        groups = ", ".join(f"{text} AS _g{position}" for position, text in enumerate(self._asked.groups)) or "0 AS _g"
        result = self._sandbox.sql(f"SELECT {groups} FROM ({no_rows}) AS {quoted(self._asked.alias)}")
        for text, kind in zip(self._asked.groups, map(str, result.types), strict=False):
            if not _is_plain(kind):
                raise QueryError(
                    f"the group {text} is of type {kind}; within a time it must be a text, number, date or time; leave the time "
                    "out, or cast it"
                )
        return kinds, result.to_arrow_table().schema

    def _read(self, files: Sequence[DataFile]) -> None:
        asked, arguments = self._asked, list(self._asked.arguments)
        source = self._pin.read_source(self._sandbox, self._table, files, self._tau, hot=False)
        rows = f"({select(source, [name for name, _ in self._own])}) AS {quoted(asked.alias)}"
        rows += f" WHERE {asked.where}" if asked.where else ""
        groups = [f"{text} AS _g{position}" for position, text in enumerate(asked.groups)]
        states = ["count(*) AS _rows"]
        for position, argument in enumerate(arguments):
            states += [f"count({argument}) AS _c{position}", f"{self._summed(argument)} AS _s{position}"]
        result = self._sandbox.cursor().sql(f"SELECT {', '.join((*groups, *states))} FROM {rows} GROUP BY ALL").to_arrow_table()
        parts = [stored_values(column) for column in result.columns[: len(groups)]]
        numbers = [column.to_pylist() for column in result.columns[len(groups) :]]
        for position in range(result.num_rows):
            state = self._groups[tuple(part[position] for part in parts)]
            number, *values = (column[position] for column in numbers)
            state.rows += number
            for name, counted, summed in zip(arguments, values[::2], values[1::2], strict=True):
                before = state.values.get(name, (0, 0))
                state.values[name] = before[0] + counted, before[1] + exact_number(summed)
        for median_of in {str(item.argument): None for item in asked.items if item.kind == "median"}:
            text = f"SELECT {', '.join((*groups, f'{median_of} AS _v'))} FROM {rows}"
            self._medians.setdefault(median_of, []).append(self._sandbox.cursor().sql(text).to_arrow_table())

    def _summed(self, argument: str) -> str:
        """Return the sum of an argument: of exact numbers as text, with all digits; of columns that are only counted, NULL."""
        kind = self._kinds[argument]
        if kind in FLOATS:
            return f"sum({argument})"
        return f"CAST(sum({argument}) AS VARCHAR)" if kind in _WHOLE or kind.startswith("DECIMAL") else "NULL"

    def _made(self, live_files: Sequence[DataFile], read: Sequence[DataFile], unread: Sequence[DataFile]) -> TimedAnswer:
        import pyarrow as pa  # noqa: PLC0415 - slow to import, needed only here

        if not self._asked.groups:
            self._groups[()]  # there is one row, whatever was read
        kinds = self._schema.types

        def order(key: Group) -> list[tuple[bool, Any]]:
            return [(part is not None, sort_value(part, kind)) for part, kind in zip(key, kinds, strict=False)]

        keys = sorted(self._groups, key=order)
        medians = {argument: self._medians_of(argument) for argument in self._medians}
        stored = sum(file.rows or 0 for file in read)
        columns: list[tuple[str, str]] = []
        arrays: list[pa.Array] = []
        for item, (name, kind) in zip(self._asked.items, self._columns, strict=True):
            if item.kind == "group":
                columns.append((name, kind))
                arrays.append(group_array([key[item.group] for key in keys], self._schema.field(item.group).type))
                continue
            estimates = [self._estimate(item, key, unread, stored, medians) for key in keys]
            if item.kind == "sum":
                estimates = [in_range(estimate, f"sum({item.argument})", kind, exact=not unread) for estimate in estimates]
            bound = kind if item.kind in ("count", "sum") else "DOUBLE"
            columns += [(name, kind), (f"{name}_low", bound), (f"{name}_high", bound)]
            arrays.append(text_array(number_text(estimate.value, kind) for estimate in estimates))
            arrays.append(text_array(number_text(estimate.low, bound) for estimate in estimates))
            arrays.append(text_array(number_text(estimate.high, bound) for estimate in estimates))
        rows = pa.Table.from_arrays(arrays, names=[f"c{position}" for position in range(len(arrays))])
        coverage = Coverage(
            exact=not unread,
            files=len(live_files),
            files_read=len(read),
            rows=sum(file.rows or 0 for file in live_files),
            rows_read=stored,
            groups_complete=not unread or not self._asked.groups,
        )
        return TimedAnswer(rows, tuple(columns), coverage)

    def _estimate(
        self,
        item: QueryColumn,
        key: Group,
        unread: Sequence[DataFile],
        stored: int,
        medians: Mapping[str, Mapping[Group, tuple[Any, np.ndarray]]],
    ) -> BoundedEstimate:
        state = self._groups[key]
        rows, read = (state.rows, 0) if item.argument is None else state.values.get(item.argument, (0, 0))
        facts = [self._unread(item, file, key) for file in unread]
        share = rows / stored if stored else None
        if item.kind == "count":
            return count(rows, facts, share)
        if item.kind == "median":
            value, values = medians.get(str(item.argument), {}).get(key, (None, np.array([])))
            estimate = rounded_outward(median(values, None if value is None else float(value), facts), values)
            return replace(estimate, value=value) if value is not None and estimate.value == float(value) else estimate
        estimate = total(read, rows, facts, share) if item.kind == "sum" else average(read, rows, facts)
        if self._kinds[str(item.argument)] not in FLOATS or not facts:
            return estimate
        return widened_by_rounding(estimate, read, facts)

    def _unread(self, item: QueryColumn, file: DataFile, key: Group) -> Unread:
        least, most = self._counts.between(file, key)
        if item.argument is None:
            return Unread(least, most)
        name = self._keys.get(item.argument)
        bounds = None if name is None else self._footers.of(file, name)
        if bounds is None:
            return Unread(0, most)
        if bounds.nulls is not None and file.rows is not None:
            values = file.rows - bounds.nulls
            least, most = max(0, least - bounds.nulls), min(most, values)
        else:
            least = 0
        if item.kind == "count":  # its argument need not be a number
            return Unread(least, most)
        if self._kinds[item.argument] in FLOATS:
            return Unread(least, most, bounds.low, bounds.high)
        return Unread(least, most, exact_bound(bounds.low), exact_bound(bounds.high))

    def _medians_of(self, argument: str) -> dict[Group, tuple[Any, np.ndarray]]:
        """Return, for each group, the median of the values that were read, and these values as ascending doubles."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        groups = [f"_g{position}" for position in range(len(self._asked.groups))]
        cursor = self._sandbox.cursor()
        cursor.register("_values", pa.concat_tables(self._medians[argument]))
        columns = ", ".join((*groups, "median(_v)", "list(CAST(_v AS DOUBLE))"))
        rows = cursor.sql(f"SELECT {columns} FROM _values WHERE _v IS NOT NULL GROUP BY ALL HAVING count(*) > 0").to_arrow_table()
        cursor.close()
        *keys, middles, lists = rows.combine_chunks().columns
        values = lists.combine_chunks()
        flat = numbers_of(values.flatten(), np.float64)
        ends = np.cumsum(numbers_of(values.value_lengths(), np.int32), dtype=np.int64)
        parts = [stored_values(pa.chunked_array(column)) for column in keys]
        medians: dict[Group, tuple[Any, np.ndarray]] = {}
        for position, middle in enumerate(middles.to_pylist()):
            group = tuple(part[position] for part in parts)
            medians[group] = middle, np.sort(flat[ends[position - 1] if position else 0 : ends[position]])
        return medians


def _is_plain(kind: str) -> bool:
    return kind in _GROUPS or kind.startswith("DECIMAL")
