"""Reads all rows of many files of a table into the driver, with the partition columns."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.layout.columns import CELL
from warehouse.limits import limits
from warehouse.storage.lookup import FAILURES, leave_to_spark
from warehouse.storage.side_by_side import each

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.storage.snapshot import DataFile

__all__ = ["fits_arrays", "read_in_cells"]

_AT_ONCE = 16_384
"""Rows after which bytes are counted, since a footer does not have the expanded size of a dictionary's values."""


def fits_arrays(files: Sequence[DataFile], most_bytes: int) -> bool:
    """Whether files are on a disk of this machine and hold no more than the driver takes as arrays, by their footers."""
    if any("://" in file.path for file in files) or sum(file.size for file in files) > most_bytes:
        return False
    values = size = 0
    for file in files:
        try:
            footer = pq.read_metadata(file.path)
        except FAILURES as error:
            leave_to_spark(error)
            return False
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            values += max((group.column(number).num_values for number in range(group.num_columns)), default=0)
            size += group.total_byte_size
    return values <= limits().array_values and size <= most_bytes


class _BytesRead:
    """The bytes that several threads have read; too many end all of them."""

    def __init__(self, most: int) -> None:
        self._bytes, self._most, self._lock = 0, most, Lock()

    def counted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with self._lock:
                self._bytes += batch.nbytes
            if self._bytes > self._most:
                raise ValueError("the rows are too wide for arrays")
            yield batch


def read_in_cells(
    files: Sequence[DataFile], wanted: pa.Schema, *, whole: bool = True, most_bytes: int | None = None
) -> pa.Table | None:
    """Return the rows of files in their order; None if Arrow cannot read them with these columns, or if they are too wide.

    Parameters
    ----------
    files
        The files.
    wanted
        The columns, partition columns included.
    whole
        Whether the files are known to be whole; else the pages that are read are verified.
    most_bytes
        Upper bound of the bytes of the rows; None: ``array_bytes``.

    """
    stored = [name for name in wanted.names if name not in CELL]
    bytes_read = _BytesRead(limits().array_bytes if most_bytes is None else most_bytes)

    def rows_of(file: DataFile) -> pa.Table:
        with pq.ParquetFile(file.path, page_checksum_verification=not whole) as parquet:
            batches = bytes_read.counted(parquet.iter_batches(_AT_ONCE, columns=stored, use_threads=False))
            rows = pa.Table.from_batches(batches, pa.schema([parquet.schema_arrow.field(name) for name in stored]))
        for name, value in zip(CELL, (file.sub_index, file.exp_block), strict=True):
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        return rows.select(wanted.names).cast(wanted)

    try:
        return pa.concat_tables([wanted.empty_table(), *each(rows_of, files)])
    except FAILURES as error:
        leave_to_spark(error)
        return None
