"""The facts about a table that a node reads, known without its rows: versions, and files with exact bounds of their slots."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from warehouse.limits import limits
from warehouse.storage.scan import SlotBounds, few

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.storage.scan import TableFiles
    from warehouse.storage.snapshot import DataFile

__all__ = ["Changed", "DeadRows", "InputFacts", "Move"]

_WIDE = 8 * 1024 * 1024
"""The driver reads no files with more bytes, even if they have few rows: compressed texts may be many times as long."""


@dataclass(frozen=True)
class Move:
    """The times of a node's step: from slot ``k0``, which ended at ``before``, to slot ``k``, which ends at ``now``.

    ``before`` and ``now`` are microseconds; ``first`` builds the node over the rows that are live at ``now``.
    """

    k0: int
    k: int
    before: int
    now: int
    anchor: int
    interval: int
    first: bool


@dataclass(frozen=True, eq=False)
class DeadRows:
    """Rows that expired before they were stored, and their count.

    ``read`` returns them to Spark; ``in_driver`` are the same rows in the driver, None if Spark must read them.
    """

    read: Callable[[], DataFrame]
    count: int
    in_driver: pa.Table | None = None

    @cached_property
    def rows(self) -> DataFrame:
        """The rows as Spark has them."""
        return self.read()


@dataclass(frozen=True, eq=False)
class Changed:
    """How a keyed table differs from the last epoch, if this process made its step: few inserted and few removed rows.

    Both have the user columns, ``_ts`` and ``_exp``; rows that ended by themselves are removed ones, too.
    """

    inserted: pa.Table
    removed: pa.Table


@dataclass(frozen=True, eq=False)
class InputFacts:
    """A table that a node reads at one step.

    Parameters
    ----------
    name, columns
        The table and the columns that views read, including those of aggregates' state.
    opened, files
        The access to the table: ``opened`` opens a session, for reads by Spark; ``files`` reads the files.
    move
        The times between which the node's step moves.
    base, version
        The version of the last epoch, and the version with the plan's commits. None: the table has no row.
    loaded_until
        The last load slot of the rows that the last epoch has.
    keyed
        Whether rows may leave the table before their own end (label STR).
    size
        The approximate number of rows of the last epoch.
    dead
        Rows that expired before they were stored. None: there are no such rows, or they are no longer known.
    changed
        The changes of a keyed table since the last epoch. None: a comparison of both contents shows them.
    search_key
        The columns of its search key; its files have summaries of these columns.

    """

    name: str
    columns: Sequence[ColumnRecord]
    opened: Callable[[], SparkSession]
    files: TableFiles
    move: Move
    base: int | None
    version: int | None
    loaded_until: int
    keyed: bool = False
    size: int = 0
    dead: DeadRows | None = None
    changed: Changed | None = None
    search_key: Sequence[str] = ()

    @property
    def session(self) -> SparkSession:
        """The session by which Spark reads it."""
        return self.opened()

    def fits_driver(self) -> bool:
        """Whether the last epoch has so few rows of a keyed table that the driver may rewrite all of them."""
        return self.move.first or limits().rewrites_in_driver(self.size)

    def is_small(self) -> bool:
        """Whether the last epoch has few rows of the table, so that the driver reads them all sooner than Spark would."""
        return not self.move.first and few(self._files(self.base))

    def has_few_live(self) -> bool:
        """Whether few rows are live at the plan's window time, so that the driver reads them all sooner than Spark would."""
        return few([*filter(SlotBounds.expiring_after(self.move.k), self._files(self.version))])

    def files_before(self) -> Sequence[DataFile]:
        """Return the files of the rows that were live at the last epoch; no files on a first build."""
        if self.move.first:
            return ()
        return [file for file in self._files(self.base) if SlotBounds.expiring_after(self.move.k0)(file)]

    def loaded_files(self) -> Sequence[DataFile] | None:
        """Return the files of the rows that this plan loaded; None if these files may have other rows, too."""
        if self.move.first or self._overlaps():
            return None
        loaded = [file for file in self._files(self.version) if SlotBounds.loaded_after(self.loaded_until)(file)]
        lows = [file.of("_load_slot").low for file in loaded]
        return loaded if all(low is not None and low > self.loaded_until for low in lows) else None

    def most_arrived(self) -> int | None:
        """Return an upper bound of the rows that arrived; None if no bound is known, or if rows are wide."""
        whole = self.move.first or self._overlaps()
        wanted = SlotBounds.expiring_after(self.move.k) if whole else SlotBounds.loaded_after(self.loaded_until)
        files = [file for file in self._files(self.version) if wanted(file)]
        if any(file.rows is None for file in files) or sum(file.size for file in files) > _WIDE:
            return None
        dead_count = 0 if self.move.first or self.keyed or self.dead is None else self.dead.count
        return sum(file.rows or 0 for file in files) + dead_count

    def is_unchanged(self) -> bool:
        """Whether the table gained no row since the last epoch; for a keyed table: whether it also lost none."""
        if self.move.first or self.base is None or self.dead is not None:
            return False
        if self.keyed or self.version == self.base or self._overlaps():
            return self.version == self.base
        loaded = SlotBounds.loaded_after(self.loaded_until)
        return not any(loaded(file) for file in self._files(self.version))

    def may_expire(self, window: int | None = None) -> bool:
        """Whether rows, or rows of a time window of this length in microseconds, may have ended since the last epoch."""
        if self.move.first or self.base is None:
            return False
        lived = SlotBounds.expiring_after(self.move.k0)
        files = [file for file in self._files(self.base) if lived(file)]
        if window is not None:
            inside = SlotBounds.loaded_after(self.move.k0 - window // self.move.interval - 1)
            return any(inside(file) for file in files)
        return any(map(self._may_end, files))

    def _overlaps(self) -> bool:
        """Whether the last epoch has rows of slots to which this plan loads; then both contents must be compared.

        This happens if files were left over, or if a stream stood still and continued at an earlier window time.
        """
        loads = SlotBounds.loaded_after(self.loaded_until)
        return self.move.k0 == self.move.k or any(loads(file) for file in self._files(self.base))

    @property
    def _path(self) -> str:
        return f"tables/{self.name}"

    def _files(self, version: int | None) -> Sequence[DataFile]:
        return () if version is None else self.files.files(self._path, version)

    def _may_end(self, file: DataFile) -> bool:
        return file.min_exp_slot is None or file.min_exp_slot <= self.move.k
