"""Which columns a large write gives no dictionary: those in which, as the table's own files say, few values come twice.

A dictionary that saves nothing is made and thrown away, page by page. *Measured*, 500 000 rows whose columns are nearly unique:
without them a write takes 1.7 instead of 2.6 seconds of a processor, for files of the same size (``python -m
benchmarks.encodings``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.objects.path import parquet_source
from warehouse.storage.snapshot import stored_files

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LARGE_ROWS", "nearly_unique", "without_dictionary"]

LARGE_ROWS = 100_000
"""Writes of fewer rows do not look: reading a row group takes some milliseconds, from a store some requests."""
_TELLING_ROWS = 1_000


def nearly_unique(values: pa.ChunkedArray) -> bool:
    """Return whether a dictionary of these values would hold more than half as many."""
    distinct: int = pc.count_distinct(values).as_py()
    return 2 * distinct > len(values)


def without_dictionary(table: Path, version: int) -> frozenset[str]:
    """Return the columns of plain values that are nearly unique in the first row group of the table's largest file.

    A table without files, or whose largest one cannot be read or has fewer than a thousand rows, says nothing.
    """
    if version < 0:
        return frozenset()
    largest = max(stored_files(table, version), key=lambda file: file.size, default=None)
    if largest is None:
        return frozenset()
    try:
        with pq.ParquetFile(parquet_source(table / unquote(largest.path))) as file:
            plain = [field.name for field in file.schema_arrow if not pa.types.is_nested(field.type)]
            rows = file.read_row_group(0, columns=plain)
    except (OSError, pa.ArrowException):
        return frozenset()  # what is wrong with it, whoever needs its rows will say
    if rows.num_rows < _TELLING_ROWS:
        return frozenset()
    return frozenset(name for name, values in zip(rows.column_names, rows.columns, strict=True) if nearly_unique(values))
