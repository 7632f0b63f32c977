"""A reader's pinned epoch: opens it, moves to a newer one, has its connection, and handles deleted files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

import duckdb

from warehouse.epochs.journal import epoch_at
from warehouse.errors import EpochVacuumedError, UsageError, WarehouseError
from warehouse.objects.path import path_of
from warehouse.serving.engine import FAILURES, Resources, connect, damaged_error, read_error
from warehouse.serving.file_choice import Chooser
from warehouse.serving.footers import Footers
from warehouse.serving.hot_tables import HotTables
from warehouse.serving.missing_parts import missing_part_error
from warehouse.serving.partial_results import Partials
from warehouse.serving.pin import Pin
from warehouse.serving.pinned_sandboxes import EMPTY
from warehouse.serving.read_log import ReadLog, log_file
from warehouse.serving.statement import SYSTEM_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.serving.keys import KeyColumn

__all__ = ["PinnedReader"]

_Result = TypeVar("_Result")
_EPOCHS_WARM = 24
"""Epochs after which the reader opens a new connection: the old one remembers the footers of deleted files."""


class PinnedReader:
    """Pins an epoch until it is refreshed or closed; :class:`warehouse.serving.Reader` answers from it."""

    def __init__(
        self,
        root: Path,
        epoch: Epoch,
        *,
        as_of: int | None = None,
        resources: Resources | None = None,
        logged: bool = False,
        hot: Iterable[str] = (),
    ) -> None:
        self.root = root
        self._as_of = as_of
        self._resources = resources or Resources()
        self._main: duckdb.DuckDBPyConnection | None = None
        if isinstance(hot, str):
            raise UsageError("hot is one text; allowed: a list of names of tables")
        names = frozenset(hot)
        self._hot = HotTables(names, self._resources) if names else None
        self._pin = Pin(root, epoch, hot=self._hot)
        self._refreshed = 0
        self.chooser = Chooser()
        self.footers = Footers()
        self._partials = Partials(self._resources)
        file = log_file(root) if logged else None
        self._log = ReadLog(file) if file else None

    @classmethod
    def open(
        cls,
        root: Path,
        as_of: int | None = None,
        *,
        resources: Resources | None = None,
        logged: bool = False,
        hot: Iterable[str] = (),
    ) -> Self:
        """Return a reader of the newest epoch, or of the newest whose window time is at or before ``as_of``.

        Parameters
        ----------
        root
            The directory of tables and epochs.
        as_of
            An instant in microseconds.
        resources
            The bounds of the engine.
        logged
            Whether probes and scans are recorded in the user's read log (:mod:`warehouse.serving.read_log`); reads of hot tables,
            whose layout does not matter, are never recorded.
        hot
            Tables whose rows are cached in memory from their first read on (:mod:`warehouse.serving.hot_tables`); a table may
            appear with a later epoch.

        Raises
        ------
        NoEpochError
            When there is no such epoch.
        UsageError
            When ``hot`` is one text.

        """
        absolute = path_of(root)
        return cls(absolute, epoch_at(absolute, as_of), as_of=as_of, resources=resources, logged=logged, hot=hot)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; answers cannot be read any more."""
        self._pin.close()
        self._partials.close()
        if self._hot is not None:
            self._hot.close()
        if self._log is not None:
            self._log.flush()
        if self._main is not None:
            self._main.close()
            self._main = None

    def refresh(self) -> bool:
        """Pin the newest epoch (at or before ``as_of``), never an earlier one, and return whether the epoch changed."""
        epoch = epoch_at(self.root, self._as_of)
        if epoch.number <= self.epoch.number:
            return False
        snapshots = {(table.path, table.version): table.table_id for table in epoch.tables}
        unchanged = {
            version: snapshot
            for version, snapshot in self._pin.snapshots.items()
            if snapshots.get(version) == snapshot.table_id
        }
        # answers may still hold connections of the last epoch
        empty = {identity: sandbox for identity, sandbox in self._pin.sandboxes.items() if identity[0] == EMPTY}
        self._pin = Pin(self.root, epoch, unchanged, copies=self._pin.copies, hot=self._hot, sandboxes=empty)
        self._pin.free_absent_rows()
        self.chooser.forget()
        self._refreshed += 1
        if self._refreshed % _EPOCHS_WARM == 0:
            self._main = None
        return True

    def warm(self) -> None:
        """Read the files of hot tables that are not in memory yet, and open a connection for SQL, before the first read."""
        if self._hot is not None:
            self._hot.prepare()
            self.retrying(lambda pin: pin.warm_all(self.connection))

    @property
    def as_of(self) -> int | None:
        """The instant of the reader in microseconds; None: it reads the newest epoch."""
        return self._as_of

    @property
    def epoch(self) -> Epoch:
        """The pinned epoch."""
        return self._pin.epoch

    @property
    def pin(self) -> Pin:
        """The pinned epoch with the facts that were read of it."""
        return self._pin

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection of reads that hold no SQL of the user's."""
        if self._main is None:
            self._main = connect(self._resources)
        return self._main

    def columns(self, table: str, *, system_columns: bool = False) -> tuple[tuple[str, str], ...]:
        """Return the columns of a table: name and DuckDB type."""
        user_columns = self.retrying(lambda pin: pin.table_columns(self.connection, pin.state(table)))
        return (*user_columns, *SYSTEM_COLUMNS) if system_columns else user_columns

    def key_columns(self, table: str) -> tuple[KeyColumn, ...]:
        """Return the search key of a table: name and DuckDB type."""
        return self.retrying(lambda pin: pin.key_columns(self.connection, pin.state(table)))

    def retrying(self, build: Callable[[Pin], _Result]) -> _Result:
        """Return an answer from the pinned epoch; if one of its files is gone, from the newest epoch, once.

        Raises
        ------
        MissingPartError
            When the newest epoch's table was replaced by another one, or deleted.

        """
        try:
            return self._built(build)
        except EpochVacuumedError as error:
            if not self.refresh():
                raise self._as_lost(error) from error
        try:
            return self._built(build)
        except EpochVacuumedError as error:
            raise self._as_lost(error) from error

    def _as_lost(self, error: EpochVacuumedError) -> WarehouseError:
        """Return the error, or, if the epoch is still the newest one, the error that says why a part of it is missing."""
        newest = self._as_of is None and epoch_at(self.root, None).number == self.epoch.number
        return missing_part_error(self.root, self.epoch, error) if newest else error

    def _built(self, build: Callable[[Pin], _Result]) -> _Result:
        """Return an answer from the pinned epoch; the engine's errors about damaged files become errors of the warehouse."""
        try:
            return build(self._pin)
        except duckdb.Error as error:
            raise read_error(error, self._pin.read_files) from error
        except FAILURES as error:
            damaged = damaged_error(error, self._pin.read_files)
            if damaged is None:
                raise
            raise damaged from error
