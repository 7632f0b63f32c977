"""Checks that each row is in the cell of its slots, and that the statistics for pruning bound the values of their files.

Invariants of a row of a table: ``_exp_slot`` is the slot of ``_exp``; ``_load_slot`` is not before the slot of ``_ts`` and not
after the epoch's; ``_exp > _ts``; its file is in the partition ``(sub_index, exp_block)`` that the layout gives for its two
slots, or in a keyed table for its search key; cells of a coalesced table hold the closed rows that begin in their block
(:mod:`warehouse.coalescing.cells`). In a file rows follow each other by search key, then ``_exp``. DuckDB reads every column of
every row and groups the rows by file and slots. The pure functions of :mod:`warehouse.layout` compute the cell of each group,
not the SQL that wrote it.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa

from warehouse.catalog.types import parse_type
from warehouse.checking.files import order_fault
from warehouse.checking.findings import RESTORE_FILE, Finding, fault
from warehouse.checking.order import first_row_out_of_order, order_columns
from warehouse.coalescing.cells import blocks_of
from warehouse.errors import WarehouseError
from warehouse.layout import exp_block, sub_index
from warehouse.serving.engine import Resources, connect
from warehouse.serving.pruning import Keys, NullKey, any_live, may_hold
from warehouse.storage.copies import Copies, fresh_copies
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.storage.hashing import bucket
from warehouse.storage.snapshot import read_snapshot
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.checking.files import NamedFile
    from warehouse.epochs.records import TableState
    from warehouse.storage.snapshot import DataFile

__all__ = ["RowsCheck"]

_FILES_AT_ONCE = 64
_READ_ALL_COLUMNS = "bit_xor(hash(COLUMNS(* EXCLUDE (_in))))"
"""Decodes every column; ``_in`` is the file's path."""
_ROWS_AT_ONCE = 50_000
_REMEDY = "tables are written by updates only; " + RESTORE_FILE


class RowsCheck:
    """Reads the rows of files by DuckDB; ``rows`` is the number of rows read."""

    def __init__(self, root: Path, resources: Resources) -> None:
        self.root = root
        self.rows = 0
        self._copies: Copies | None = None
        self._connection = connect(resources)

    def close(self) -> None:
        """Close the connection to the engine."""
        self._connection.close()

    def findings(self, files: Sequence[NamedFile]) -> Iterator[Finding]:
        """Yield the faults in the rows of the files of one directory; all files exist."""
        groups: dict[tuple[Any, ...], list[NamedFile]] = defaultdict(list)
        for file in files:
            # a view that was rebuilt has files of its former columns and layout
            groups[file.state.schema_file, file.state.declaration.columns, file.state.layout].append(file)
        for group in groups.values():
            for begin in range(0, len(group), _FILES_AT_ONCE):
                yield from self._batch(group[begin : begin + _FILES_AT_ONCE])

    def _batch(self, files: Sequence[NamedFile]) -> Iterator[Finding]:
        try:
            with self._with_fresh_copies():
                yield from list(self._batch_findings(files))
        except duckdb.Error as error:
            if len(files) == 1:
                first = str(error).splitlines()[0]
                subject, name = files[0].subject, files[0].table.name
                yield fault("file_damaged", subject, f"its rows cannot be read: {first}", RESTORE_FILE, table=name)
                return
            middle = len(files) // 2
            yield from self._batch(files[:middle])
            yield from self._batch(files[middle:])

    def _batch_findings(self, files: Sequence[NamedFile]) -> Iterator[Finding]:
        source = f"read_parquet([{', '.join(literal(self._path(file)) for file in files)}], filename = '_in', "
        source += "hive_partitioning = false, union_by_name = true)"
        by_path = {self._path(file): file for file in files}
        if files[0].table.role != "rows":
            yield from self._side_table_findings(source, by_path)
            return
        yield from self._invariant_findings(source, by_path)
        yield from self._order_findings(files)
        keyed = files[0].state.keyed
        yield from self._bucket_findings(source, by_path) if keyed else self._grid_findings(source, by_path)

    @contextmanager
    def _with_fresh_copies(self) -> Iterator[None]:
        """Copy files of an object store again: existing copies do not show the bytes in the store."""
        with fresh_copies(self.root) as self._copies:
            yield

    def _path(self, file: NamedFile) -> str:
        path = str(self.root / file.subject)
        return path if self._copies is None else self._copies.whole([path])[0]

    def _side_table_findings(self, source: str, files: dict[str, NamedFile]) -> Iterator[Finding]:
        """Decode every column of the rows of a side table, and compare their number with the commit."""
        query = f"SELECT _in, count(*), {_READ_ALL_COLUMNS} FROM {source} GROUP BY _in"
        for path, rows, *_ in self._connection.execute(query).fetchall():
            yield from self._count_findings(files[path], rows)

    def _count_findings(self, file: NamedFile, rows: int) -> Iterator[Finding]:
        self.rows += rows
        if file.rows is not None and rows != file.rows:
            yield _fault(file, "rows", f"it has {rows} rows, its commit says {file.rows}")

    def _invariant_findings(self, source: str, files: dict[str, NamedFile]) -> Iterator[Finding]:
        """Count the rows that violate an invariant, and compare the extremes of each file with its statistics."""
        first = next(iter(files.values()))
        anchor, interval = first.epoch.anchor, first.epoch.update_interval
        slots = [_slot(name, anchor, interval) for name in ("_exp", "_ts")]
        key = first.state.declaration.search_key
        types = {column.name: column.type for column in first.state.declaration.columns}
        ordered = [name for name in key if _has_bounds(types[name])]
        extremes = [f"{side}({_comparable(name, types[name])})" for name in ordered for side in ("min", "max")]
        # the columns of the answer are known by their position; the last one reads the columns that the others did not read
        columns = (
            "count(*)",
            "count_if(_ts IS NULL OR _exp IS NULL OR _load_slot IS NULL OR _exp_slot IS NULL)",
            f"count_if(_exp_slot <> {slots[0]})",
            f"count_if(_load_slot < {slots[1]})",
            "count_if(_exp <= _ts)",
            "max(_load_slot)",
            "max(_exp_slot)",
            "min(_exp_slot)",
            *(f"count(*) - count({quoted(name)})" for name in key),
            *extremes,
            _READ_ALL_COLUMNS,
        )
        bounds = self._statistics(first)
        query = f"SELECT _in, {', '.join(columns)} FROM {source} GROUP BY _in"
        for path, *values in self._connection.execute(query).fetchall():
            file = files[path]
            rows, nulls, other_slot, loaded_early, never_lived, last_load, last_exp, first_exp, *key_values = values
            yield from self._count_findings(file, rows)
            if nulls:
                yield _fault(file, "system_columns", f"{nulls} rows lack a time or a slot")
                continue
            for count, text in (
                (other_slot, "have an _exp_slot that is not the slot of their _exp"),
                (loaded_early, "have a _load_slot before the slot of their _ts"),
                (never_lived, "end before they begin"),
            ):
                if count:
                    yield _fault(file, "slots", f"{count} rows {text}")
            if last_load > file.epoch.slot:
                yield _fault(file, "slots", f"rows were loaded in slot {last_load}, after that of the epoch, {file.epoch.slot}")
            yield from _statistics_findings(file, self._statistics_of(bounds, file), (first_exp, last_exp), key_values, ordered)

    def _order_findings(self, files: Sequence[NamedFile]) -> Iterator[Finding]:
        """Compare each row with the row above it by the columns of the order, which are read without the engine."""
        for file in files:
            columns = () if file.adopted else order_columns(file.state)
            with suppress(pa.ArrowException, OSError):  # the engine has reported files that cannot be read
                row = first_row_out_of_order(Path(self._path(file)), columns) if columns else None
                if row is not None:
                    yield order_fault(file, f"row {row}, counted from 0, belongs before the one above it")

    def _statistics(self, file: NamedFile) -> dict[str, DataFile]:
        """Return the statistics of a table's files, by path, as readers see them."""
        statistics: dict[str, DataFile] = {}
        for epoch, state, _ in file.table.epochs:
            if state.version in file.table.states and not (statistics and epoch.number != file.table.newest[0].number):
                try:
                    snapshot = read_snapshot(self.root, state.path, state.version, (*state.declaration.search_key, "_exp_slot"))
                except WarehouseError:
                    continue  # the check of logs reports the reason
                statistics.update({data_file.path: data_file for data_file in snapshot.files})
        return statistics

    def _statistics_of(self, bounds: Mapping[str, DataFile], file: NamedFile) -> DataFile | None:
        return bounds.get(str(self.root / file.subject))

    def _grid_findings(self, source: str, files: dict[str, NamedFile]) -> Iterator[Finding]:
        """Yield the rows of a grid that are not in the cell of their slots."""
        query = f"SELECT _in, _load_slot, _exp_slot, epoch_us(_exp) = {NEVER}, count(*) FROM {source} GROUP BY ALL"
        misplaced: dict[str, int] = defaultdict(int)
        expected: dict[str, tuple[int, int]] = {}
        for path, load, end, never, count in self._connection.execute(query).fetchall():
            if load is None or end is None:
                continue
            layout = files[path].state.layout_at(files[path].cell[0])
            cell = (sub_index(layout, load, end, never=never), exp_block(layout, load, end, never=never))
            if cell != files[path].cell:
                misplaced[path] += count
                expected[path] = cell
        for path, count in misplaced.items():
            yield _misplaced(files[path], count, expected[path])

    def _bucket_findings(self, source: str, files: dict[str, NamedFile]) -> Iterator[Finding]:
        """Yield the rows of a keyed table that are not in the bucket of their search key, by Spark's hash."""
        state = next(iter(files.values())).state
        names = state.declaration.search_key
        column_types = {column.name.lower(): parse_type(column.type) for column in state.declaration.columns}
        types = [column_types[name.lower()] for name in names]
        key_columns = ", ".join(quoted(name) for name in names)
        misplaced: dict[str, int] = defaultdict(int)
        expected: dict[str, tuple[int, int]] = {}
        answer = self._connection.execute(f"SELECT _in, count(*), {key_columns} FROM {source} GROUP BY ALL")
        while rows := answer.fetchmany(_ROWS_AT_ONCE):
            for path, count, *key in rows:
                block = files[path].cell[1] if _window(files[path].state) is not None else 0
                cell = (bucket(key, types, files[path].state.layout), block)
                if cell != files[path].cell:
                    misplaced[path] += count
                    expected[path] = cell
        for path, count in misplaced.items():
            yield _misplaced(files[path], count, expected[path])
        if any(file.cell[1] for file in files.values()) and _window(state) is not None:
            yield from self._closed_cell_findings(source, files)

    def _closed_cell_findings(self, source: str, files: dict[str, NamedFile]) -> Iterator[Finding]:
        """Yield the rows of closed cells that are open, or begin in another block."""
        columns = "count_if(open), epoch_us(min(valid_from)), epoch_us(max(valid_from)), epoch_us(max(_exp))"
        query = f"SELECT _in, {columns} FROM {source} GROUP BY _in"
        for path, open_rows, first, last, ends in self._connection.execute(query).fetchall():
            file, window = files[path], _window(files[path].state)
            # rows that have ended may be in blocks of a window that was longer
            if not file.cell[1] or window is None or ends <= file.epoch.window_time:
                continue
            blocks = sorted({*blocks_of(np.array([first, last]), window).tolist()})
            if open_rows:
                yield _fault(file, "misplaced", f"{open_rows} open rows lie in a cell of closed ones, block {file.cell[1]}")
            if blocks != [file.cell[1]]:
                yield _fault(file, "misplaced", f"rows of block {blocks[0]} lie in block {file.cell[1]}")


def _window(state: TableState) -> int | None:
    """Return the window of a coalesced table that may have cells of closed rows; None for other tables."""
    return None if state.coalesced is None else state.coalesced.definition.window


def _has_bounds(kind: str) -> bool:
    """Return whether values of a type have bounds in statistics; the spare rows of a DISTINCT have keys of any type."""
    return not kind.startswith(("array", "struct", "binary", "boolean", "float", "double"))


def _slot(name: str, anchor: int, interval: int) -> str:
    """Return SQL for ``ceil((t - A)/D)`` in integers; the remainder is subtracted first, since DuckDB rounds towards zero."""
    from_anchor = f"(epoch_us({name}) - ({anchor}))"
    return f"(({from_anchor} + ((-{from_anchor}) % {interval} + {interval}) % {interval}) // {interval})"


def _comparable(name: str, kind: str) -> str:
    return f"epoch_us({quoted(name)})" if kind == "timestamp" else quoted(name)


def _statistics_findings(
    file: NamedFile, statistics: DataFile | None, slots: tuple[int, int], key_values: Sequence[Any], ordered: Sequence[str]
) -> Iterator[Finding]:
    """Yield the statistics by which readers would skip the file, though it has the smallest or largest value of a column."""
    if statistics is None:
        return
    key = file.state.declaration.search_key
    if not any_live(statistics, slots[1] - 1) or (statistics.min_exp_slot is not None and statistics.min_exp_slot > slots[0]):
        yield _fault(file, "statistics", f"its rows expire in slots {slots[0]} to {slots[1]}, its statistics bound others")
    nulls, extremes = key_values[: len(key)], key_values[len(key) :]
    for name, count in zip(key, nulls, strict=True):
        if count and not may_hold(statistics, (name,), NullKey()):
            yield _fault(file, "statistics", f"{count} rows have no {name}, its statistics say none")
    for position, name in enumerate(ordered):
        for value in extremes[2 * position : 2 * position + 2]:
            if value is not None and not may_hold(statistics, (name,), Keys(((value,),))):
                yield _fault(file, "statistics", f"a value of {name} is outside the bounds that its statistics give")


def _misplaced(file: NamedFile, count: int, expected: tuple[int, int]) -> Finding:
    where = "sub-index {}, block {}".format(*file.cell)
    return _fault(file, "misplaced", f"{count} rows lie in {where}, not in sub-index {expected[0]}, block {expected[1]}")


def _fault(file: NamedFile, code: str, message: str) -> Finding:
    return fault(code, file.subject, message, _REMEDY, table=file.table.name)
