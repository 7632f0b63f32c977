"""Caches the rows of small data files that this process has just written or read, for its next update.

A data file is never written again under its name, so its rows do not change. :mod:`warehouse.storage.scan` verifies on each
lookup that its bytes are still on the disk. Rows that an update did not use are dropped when the update after the next one
begins, so memory and erased rows do not outlive the files for long.
"""

from __future__ import annotations

import string
from dataclasses import dataclass, field
from functools import cache
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["LOWER", "SMALL", "RecentRows", "recent_rows"]

SMALL = 128 * 1024
"""Bytes of a file whose rows are kept, at most."""
_WIDE = 4 * 1024**2
"""Bytes of the rows of one file: compressed texts may be many times as long as the file."""
_ALL = 96 * 1024**2
_BATCH_ROWS = 512
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
"""The only letters for which DuckDB ignores the case."""


@dataclass
class RecentRows:
    """Rows by the path of their file, with all columns, whose names are in lower case as far as DuckDB knows it."""

    _rows: dict[str, tuple[int, pa.Table]] = field(default_factory=dict)
    _update: int = 0
    _bytes: int = 0
    _lock: Lock = field(default_factory=Lock)

    def begin(self) -> None:
        """Begin an update: drop rows that the previous update did not use."""
        with self._lock:
            self._update += 1
            self._rows = {path: cached for path, cached in self._rows.items() if cached[0] >= self._update - 1}
            self._bytes = sum(rows.nbytes for _, rows in self._rows.values())

    def keep(self, path: str, rows: pa.Table) -> None:
        """Cache the rows of a file, with all columns, unless they are too wide or the cache is full.

        Bytes that are no UTF-8 text are not cached: DuckDB refuses them in a file, but not in memory.
        """
        if rows.nbytes > _WIDE:
            return
        try:
            rows.validate(full=True)
        except pa.ArrowInvalid:
            return
        with self._lock:
            if self._bytes + rows.nbytes <= _ALL and path not in self._rows:
                self._rows[path] = self._update, _in_lower_case(_of_its_own(rows))
                self._bytes += rows.nbytes

    def written(self, path: str) -> pa.Table | None:
        """Return the rows of a file if they are in memory; this does not count as a use of them."""
        with self._lock:
            cached = self._rows.get(path)
        return None if cached is None else cached[1]

    def of(self, path: str, size: int) -> pa.Table | None:
        """Return the rows of a file of ``size`` bytes, read now if they are not cached; None if the file is too large for this.

        Raises
        ------
        pa.ArrowException, OSError
            When it cannot be read, or has bytes that are no text.

        """
        with self._lock:
            cached = self._rows.get(path)
            if cached is not None:
                self._rows[path] = self._update, cached[1]
                return cached[1]
        rows = _read(path) if size <= SMALL else None
        if rows is not None:
            self.keep(path, rows)
        return None if rows is None else _in_lower_case(rows)


def _in_lower_case(rows: pa.Table) -> pa.Table:
    return rows.rename_columns([name.translate(LOWER) for name in rows.column_names])


def _of_its_own(rows: pa.Table) -> pa.Table:
    """Copy rows that are a part of a larger table, which would stay in memory as a whole, even for deleted files."""
    return rows.take(pa.array(np.arange(rows.num_rows))) if rows.get_total_buffer_size() > rows.nbytes else rows


def _read(path: str) -> pa.Table | None:
    """All rows of a file; None if they are wide."""
    batches, size = [], 0
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
            size += batch.nbytes
            if size > _WIDE:
                return None
            batches.append(batch)
        rows = pa.Table.from_batches(batches, file.schema_arrow)
    rows.validate(full=True)
    return rows


@cache
def recent_rows() -> RecentRows:
    """Return the cache of this process."""
    return RecentRows()
