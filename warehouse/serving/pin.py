"""A pinned epoch: the files, columns and rows in memory of its tables, each read when it is first needed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from warehouse.catalog.spelling import nearest
from warehouse.errors import (
    RESTORE_TABLE,
    EpochVacuumedError,
    MissingPartError,
    UnknownNameError,
    ViewFailedError,
    WarehouseError,
)
from warehouse.layout.columns import SLOTS, TIMES
from warehouse.serving.history import EpochRow, FileRow, epoch_row, history
from warehouse.serving.keys import KeyColumn
from warehouse.serving.lazy_rows import lazy_states
from warehouse.serving.missing_parts import replaced_table
from warehouse.serving.pruning import All, Selection, all_live, any_live
from warehouse.serving.statement import Source, select
from warehouse.serving.visible_tables import is_user_column, readable, visible
from warehouse.storage.copies import Copies, copies_of
from warehouse.storage.duckdb_sql import literal
from warehouse.storage.local_disk import file_identity
from warehouse.storage.snapshot import Snapshot, read_snapshot
from warehouse.time import grid_slot, slot

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Epoch, SideTable, TableState
    from warehouse.serving.hot_tables import HotTables
    from warehouse.storage.snapshot import DataFile

__all__ = ["Pin", "Sandbox", "require", "until_now"]

_DESCRIBED = 4_096
_columns_of: dict[tuple[str, int, int, int] | None, tuple[tuple[str, str], ...]] = {}
"""The columns of zero-row files, by the identity of the file: other epochs and other pins mostly have the same files."""
Sandbox = tuple[duckdb.DuckDBPyConnection, tuple[str, ...]]
"""A connection that may read some tables only, and their files."""


@dataclass
class Pin:
    """An epoch under a root, with its cached metadata. Pins share snapshots by path and version."""

    root: Path
    epoch: Epoch
    snapshots: dict[tuple[str, int], Snapshot] = field(default_factory=dict)
    columns: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    sandboxes: dict[tuple[object, ...], Sandbox] = field(default_factory=dict)
    copies: Copies | None = None
    schema_files: dict[str, str] = field(default_factory=dict)
    hot: HotTables | None = None
    in_memory: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.copies is None:
            self.copies = copies_of(self.root)

    def local(self, paths: Sequence[str]) -> list[str]:
        """Return the local paths of files: under a local root their own, else the paths of copies, which are made if missing."""
        return list(paths) if self.copies is None else self.copies.whole(paths)

    def close(self) -> None:
        """Close the connections."""
        for connection, _ in self.sandboxes.values():
            connection.close()
        self.sandboxes.clear()

    def state(self, name: str) -> TableState:
        """Return the state of a table to read; operators' state tables are found by their exact names.

        Raises
        ------
        UnknownNameError
            When the epoch has no such table.
        ViewFailedError
            When its rows do not belong to the window time.

        """
        state = self.recorded(name)
        if state.view is not None and state.view.failed is not None:
            raise ViewFailedError(state.view.view, state.view.failed)
        return state

    def recorded(self, name: str) -> TableState:
        """Return a table's state, also of a view that failed.

        Raises
        ------
        UnknownNameError
            When the epoch has no such table.
        ViewFailedError
            When it is a view that cannot be maintained and never could.

        """
        state = self.epoch.table(name) or next((lazy for lazy in lazy_states(self.epoch) if lazy.name == name), None)
        if state is None:
            self.check_refused(name)
            names = [table.name for table in readable(self.epoch)]
            raise UnknownNameError("table", name, names, nearest(name, names))
        return state

    def check_refused(self, name: str) -> None:
        """Raise ViewFailedError if a name is that of a view that cannot be maintained and has no table."""
        reason = dict(self.epoch.refused).get(name)
        if reason is not None:
            raise ViewFailedError(name, reason, built=False)

    def schema_file(self, state: TableState) -> str:
        """Return the absolute path of a table's zero-row file, on this machine."""
        path = str(self.root / state.schema_file)
        if self.copies is None:
            return path
        if path not in self.schema_files:
            self.schema_files[path] = self.copies.current(path)
        return self.schema_files[path]

    def lazy(self, state: TableState) -> LazyTable | None:
        """Return the epoch's record of a coalesced table without files; None for another table."""
        return self.epoch.lazy_table(state.name)

    def stored(self, state: TableState) -> TableState:
        """Return the table whose files are read: the table itself, or the stream of a table without files."""
        lazy = self.lazy(state)
        return state if lazy is None else self.state(lazy.definition.source)

    def snapshot(self, state: TableState) -> Snapshot:
        """Return a table's files at the epoch's version; for a lazy table the files of its stream."""
        state = self.stored(state)
        snapshot = self._snapshot(state.path, state.version, (*state.declaration.search_key, *TIMES, *SLOTS))
        if snapshot.table_id != state.table_id:
            raise replaced_table(self.root, self.epoch, state) or MissingPartError(
                f'table "{state.name}" is not the one that epoch {self.epoch.number} names: its Delta id differs. {RESTORE_TABLE}'
            )
        return snapshot

    def side_files(self, side: SideTable | None) -> tuple[str, ...]:
        """Return the files of a side table, on this machine: deferred or rejected rows, or short-lived results."""
        if side is None:
            return ()
        return tuple(self.local([file.path for file in self._snapshot(side.path, side.version, ()).files]))

    @property
    def read_files(self) -> list[str]:
        """The files of all tables that were looked up so far."""
        return [file.path for snapshot in self.snapshots.values() for file in snapshot.files]

    def _snapshot(self, path: str, version: int, columns: Sequence[str]) -> Snapshot:
        snapshot = self.snapshots.get((path, version))
        if snapshot is None:
            snapshot = self.snapshots[path, version] = read_snapshot(self.root, path, version, columns)
        return snapshot

    def table_columns(self, connection: duckdb.DuckDBPyConnection, state: TableState) -> tuple[tuple[str, str], ...]:
        """Return the user's columns of a table: names and DuckDB types, from its zero-row file."""
        columns = self.columns.get(state.name)
        if columns is None:
            columns = self.columns[state.name] = self._described(connection, state)
        return columns

    def _described(self, connection: duckdb.DuckDBPyConnection, state: TableState) -> tuple[tuple[str, str], ...]:
        path = self.schema_file(state)
        rows_of = f"SELECT * FROM read_parquet([{literal(path)}], hive_partitioning = false)"
        identity = file_identity(path)
        file = None if identity is None else (path, *identity)
        if self.lazy(state) is not None:
            names = [column.name for column in state.declaration.columns]
            rows_of, file = select(self.source(state, (), self.epoch.window_time), names), None
        cached = _columns_of.get(file)
        if cached is not None:
            return cached
        try:
            rows = connection.execute(f"DESCRIBE {rows_of}").fetchall()
        except duckdb.Error as error:
            if Path(path).exists():
                reason = str(error).splitlines()[0]
                raise MissingPartError(f"{path} is damaged: {reason}; `stream-wh check --repair` writes it again") from error
            raise EpochVacuumedError(f"{path}: missing; run again to read the newest epoch") from error
        columns = tuple((row[0], row[1]) for row in rows if is_user_column(row[0]))
        if file is not None:
            while len(_columns_of) >= _DESCRIBED:
                _columns_of.pop(next(iter(_columns_of)), None)
            _columns_of[file] = columns
        return columns

    def key_columns(self, connection: duckdb.DuckDBPyConnection, state: TableState) -> tuple[KeyColumn, ...]:
        """Return the search key of a table with its types."""
        types = dict(self.table_columns(connection, state))
        return tuple(KeyColumn(name, types[name]) for name in state.declaration.search_key)

    def last_slot(self, tau: int) -> int:
        """Return the last slot that ends at or before an instant: its rows are dead then."""
        return grid_slot(tau, self.epoch.anchor, self.epoch.update_interval)

    def source(self, state: TableState, files: Iterable[DataFile], tau: int) -> Source:
        """Return the files of a read at an instant, separated into files without dead rows and others."""
        lazy = self.lazy(state)
        if lazy is not None:
            points = self.source(self.stored(state), files, self.epoch.window_time)
            return replace(points, tau=tau, lazy=lazy, points_at=self.epoch.window_time)
        own_slot = slot(tau, self.epoch.anchor, self.epoch.update_interval)
        live: list[str] = []
        mixed: list[str] = []
        for file in files:
            (live if all_live(file, own_slot) else mixed).append(file.path)
        return Source(self.schema_file(state), tuple(self.local(live)), tuple(self.local(mixed)), tau)

    def live_files(self, state: TableState, tau: int) -> tuple[DataFile, ...]:
        """Return the files of a table with rows that may be live at an instant."""
        last = self.last_slot(tau if self.lazy(state) is None else self.epoch.window_time)
        return tuple(file for file in self.snapshot(state).files if any_live(file, last))

    def live_source(self, state: TableState, tau: int) -> Source:
        """Return the files with rows that may be live at an instant, as the files of a read."""
        return self.source(state, self.live_files(state, tau), tau)

    def is_hot(self, state: TableState) -> bool:
        """Whether rows of a table are cached in memory."""
        return self.hot is not None and state.name in self.hot.names and self.lazy(state) is None

    def read_source(
        self,
        connection: duckdb.DuckDBPyConnection,
        state: TableState,
        files: Sequence[DataFile],
        tau: int,
        selection: Selection | None = None,
        *,
        hot: bool = True,
    ) -> Source:
        """Return the files of a read; for a hot table, rows in memory: a superset of a selection's rows (None: all rows).

        Under a local root the files must exist nevertheless: erased rows are not served from memory.

        Raises
        ------
        EpochVacuumedError
            When a file is gone.

        """
        if self.hot is None or not hot or not self.is_hot(state) or not files:
            source = self.source(state, files, tau)
            require((source.schema_file, *source.files))
            return source
        paths = tuple(file.path for file in files) if self.copies is None else ()
        require(paths)
        self.warm(connection, state)
        own_slot = slot(tau, self.epoch.anchor, self.epoch.update_interval)
        memory = self.hot.memory(state.name, files, selection or All(), own_slot)
        return Source(self.schema_file(state), (), paths, tau, memory)

    def warm(self, connection: duckdb.DuckDBPyConnection, state: TableState) -> None:
        """Load the rows of a hot table into memory, as of this epoch.

        Raises
        ------
        EpochVacuumedError
            When a file is gone.

        """
        if self.hot is None or not self.is_hot(state) or state.name in self.in_memory:
            return
        files = self.live_files(state, self.epoch.window_time)
        columns, key = self.table_columns(connection, state), state.declaration.search_key
        self.hot.load(state.name, columns, key, self.schema_file(state), files, self.local)
        self.in_memory.add(state.name)

    def warm_all(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Load the rows of all hot tables into memory that this epoch has and that can be read."""
        for state in self._hot_states(self.hot.names if self.hot else ()):
            self.warm(connection, state)

    def free_absent_rows(self) -> None:
        """Free the rows in memory that this epoch does not have."""
        if self.hot is None:
            return
        tau = self.epoch.window_time
        try:
            states = self._hot_states(self.hot.loaded)
            self.hot.keep_only({state.name: {file.path for file in self.live_files(state, tau)} for state in states})
        except WarehouseError:  # a read of it raises
            self.hot.keep_only({})

    def _hot_states(self, names: Iterable[str]) -> Iterator[TableState]:
        for name in sorted(names):
            state = self.epoch.table(name)
            if state is not None and (state.view is None or state.view.failed is None):
                yield state

    def epoch_rows(self) -> list[EpochRow]:
        """Return the epochs up to the pinned one, newest first."""
        return [epoch_row(self.epoch), *(row for row in history(self.root) if row.number < self.epoch.number)]

    def file_rows(self, tau: int) -> list[FileRow]:
        """Return the files of all tables that may hold rows live at an instant."""
        return [row for state in visible(self.epoch) for row in self.file_rows_of(state, tau)]

    def file_rows_of(self, state: TableState, tau: int) -> Iterator[FileRow]:
        """Yield the files of a table that may hold rows live at an instant."""
        last, prefix = self.last_slot(tau), f"{self.root}/"
        for file in self.snapshot(state).files:
            if any_live(file, last):
                yield FileRow(
                    table_name=state.name,
                    path=file.path.removeprefix(prefix),
                    bytes=file.size,
                    rows=file.rows,
                    sub_index=file.sub_index,
                    exp_block=file.exp_block,
                    min_exp_slot=file.min_exp_slot,
                    max_exp_slot=file.max_exp_slot,
                )


def until_now(source: Source, state: TableState, *, open_until_now: bool) -> Source:
    """Return the source of a coalesced table with open rows that end at its instant, if requested; other sources unchanged."""
    return replace(source, open_until=source.tau) if open_until_now and state.coalesced is not None else source


def require(paths: Iterable[str]) -> None:
    """Check that files exist.

    Raises
    ------
    EpochVacuumedError
        When a file does not exist.

    """
    for path in paths:
        if not os.path.exists(path):  # noqa: PTH110 - a path object costs more than the look
            raise EpochVacuumedError(f"{path}: a file of the epoch is gone; run again to read the newest epoch")
