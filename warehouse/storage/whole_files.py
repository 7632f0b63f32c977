"""All rows of a table's files in the driver, with the columns of partitions, where they are many and all are asked for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.layout.columns import CELL
from warehouse.limits import limits
from warehouse.storage.lookup import FAILURES, leave_to_spark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.storage.snapshot import DataFile

__all__ = ["fits_arrays", "read_in_cells"]

_THREADS = 4


def fits_arrays(files: Sequence[DataFile]) -> bool:
    """Whether files are on a disk of this machine and hold no more than the driver takes as arrays, by their footers."""
    if any("://" in file.path for file in files) or sum(file.size for file in files) > limits().array_bytes:
        return False
    values = size = 0
    for file in files:
        try:
            found = pq.read_metadata(file.path)
        except FAILURES as error:
            leave_to_spark(error)
            return False
        for number in range(found.num_row_groups):
            group = found.row_group(number)
            values += max((group.column(place).num_values for place in range(group.num_columns)), default=0)
            size += group.total_byte_size
    return values <= limits().array_values and size <= limits().array_bytes


def read_in_cells(files: Sequence[DataFile], wanted: pa.Schema) -> pa.Table | None:
    """Return the rows of files in their order; None when Arrow cannot read them with these columns.

    Parameters
    ----------
    files
        The files.
    wanted
        The columns, with those of partitions.

    """
    stored = [name for name in wanted.names if name not in CELL]

    def rows_of(file: DataFile) -> pa.Table:
        with pq.ParquetFile(file.path) as opened:
            rows = opened.read(stored, use_threads=False)
        for name, value in zip(CELL, (file.sub_index, file.exp_block), strict=True):
            rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
        return rows.select(wanted.names).cast(wanted)

    try:
        with ThreadPoolExecutor(_THREADS) as pool:
            return pa.concat_tables([wanted.empty_table(), *pool.map(rows_of, files)])
    except FAILURES as error:
        leave_to_spark(error)
        return None
