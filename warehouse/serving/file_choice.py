"""Chooses the files that a read opens: not pruned by statistics, nor excluded by key summaries or Bloom filters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import duckdb

from warehouse.errors import EpochVacuumedError
from warehouse.serving.answer import ReadPlan
from warehouse.serving.bloom import MAX_KEYS, Filters, first_filters, probes_of
from warehouse.serving.engine import read_error
from warehouse.serving.key_summaries import Summaries
from warehouse.serving.pruning import All, Keys, Selection, prune

if TYPE_CHECKING:
    from warehouse.epochs.records import TableState
    from warehouse.serving.pin import Pin
    from warehouse.storage.snapshot import DataFile

__all__ = ["Chooser", "ChosenFiles"]


@dataclass(frozen=True)
class ChosenFiles:
    """The files to read, and how many were left out by which rule."""

    files: tuple[DataFile, ...]
    sub_indices: int
    considered: int
    expired: int
    out_of_bounds: int
    without_key: int

    def plan(self, table: str, tau: int, seconds: float) -> ReadPlan:
        """Return the record of this."""
        return ReadPlan(
            table=table,
            tau=tau,
            sub_indices_considered=self.sub_indices,
            sub_indices_read=len({file.sub_index for file in self.files}),
            files_considered=self.considered,
            files_expired=self.expired,
            files_out_of_bounds=self.out_of_bounds,
            files_without_key=self.without_key,
            files_read=len(self.files),
            bytes_read=sum(file.size for file in self.files),
            milliseconds=seconds * 1000,
        )


@dataclass
class Chooser:
    """Chooses files by the filters of key summaries, and by Bloom filters of files that have none.

    Bloom filters are read from a table's second probe on, so that a single probe does not pay for them. In an object store they
    are read from the first probe on, for hot tables never.
    """

    filters: Filters = field(default_factory=Filters)
    summaries: Summaries = field(default_factory=Summaries)
    probed: set[str] = field(default_factory=set)

    def choose(
        self, connection: duckdb.DuckDBPyConnection, pin: Pin, state: TableState, selection: Selection, tau: int
    ) -> ChosenFiles:
        """Return the files that can hold rows of a selection that are live at an instant."""
        if pin.lazy(state) is not None:
            selection, tau = self._of_points(pin, state, selection), pin.epoch.window_time
            state = pin.stored(state)
        snapshot = pin.snapshot(state)
        pruned = prune(snapshot, state.declaration.search_key, selection, pin.last_slot(tau))
        files = self._holders(connection, pin, state, selection, pruned.files)
        return ChosenFiles(
            files=files,
            sub_indices=len({file.sub_index for file in snapshot.files}),
            considered=pruned.considered,
            expired=pruned.expired,
            out_of_bounds=pruned.out_of_bounds,
            without_key=len(pruned.files) - len(files),
        )

    @staticmethod
    def _of_points(pin: Pin, state: TableState, selection: Selection) -> Selection:
        """Return the points from which a selection of a lazy table is computed: with a key, the points of the same groups."""
        lazy = pin.lazy(state)
        key = state.declaration.search_key
        alike = lazy is not None and lazy.definition.rows is None and set(key) <= set(lazy.definition.groups)
        return selection if alike and key == pin.stored(state).declaration.search_key else All()

    def _holders(
        self,
        connection: duckdb.DuckDBPyConnection,
        pin: Pin,
        state: TableState,
        selection: Selection,
        files: tuple[DataFile, ...],
    ) -> tuple[DataFile, ...]:
        if not isinstance(selection, Keys) or not 0 < len(selection.keys) <= MAX_KEYS or not files or pin.is_hot(state):
            return files
        search_key = state.declaration.search_key
        if pin.copies is None and all(len(key) == len(search_key) for key in selection.keys):
            files = self.summaries.holders(files, selection.keys)
        if state.table_id not in self.probed:
            self.probed.add(state.table_id)
            if pin.copies is None:
                return files
        try:
            if pin.copies is None:
                paths = [file.path for file in files]
            else:  # a filter costs less than a copy of its file
                sizes = [(file.path, file.size) for file in files]
                paths = pin.copies.tails(sizes, lambda absent: first_filters(connection, absent, search_key))
            unsure = [path for path, file in zip(paths, files, strict=True) if not self.summaries.filtered(file)]
            self.filters.load(connection, unsure, search_key)
        except duckdb.Error as error:
            raise read_error(error, [file.path for file in files]) from error
        except FileNotFoundError as error:
            raise EpochVacuumedError(f"{error.filename}: gone; run again to read the newest epoch") from error
        columns = pin.key_columns(connection, state)
        probes = [probes_of(key, columns) for key in selection.keys]
        return tuple(file for file, path in zip(files, paths, strict=True) if self.filters.may_hold(path, probes))

    def forget(self) -> None:
        """Drop all filters to free memory: filters of deleted files cannot be distinguished from others."""
        if self.filters.full:
            self.filters = Filters()
