"""The bounds of :mod:`.bounds` for a Parquet file, checked by its footer and, if that is not sufficient, by its columns.

A footer has the bytes of a column's pages, but not of its values: a dictionary has a long value once for any number of rows, and
values may share prefixes (encoding ``DELTA_BYTE_ARRAY``). If a column could exceed its bound in this way, or have a value longer
than ``max_record``, it is read without expanding its dictionaries. The sizes and counts in a footer are trusted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from warehouse.ingest.bounds import HARMLESS, expands_too_much

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["parquet_bounds_problem", "text_lengths", "value_too_long"]

_CACHED_FILES = 50_000
_ROWS_PER_BATCH = 65_536
_BYTES_PER_BATCH = 256 << 20
_BUFFER = 1 << 20


@lru_cache(maxsize=_CACHED_FILES)
def parquet_bounds_problem(
    path: Path, size: int, mtime_ns: int, longest: int, most: int  # noqa: ARG001 - the file's identity
) -> tuple[str, str] | None:
    """Return (reason, message) if a Parquet file is not read, else None.

    Parameters
    ----------
    path, size, mtime_ns
        The file; an unchanged file is checked once.
    longest
        Bytes of the longest value, ``max_record``.
    most
        The most bytes or rows for each byte of the file, ``max_expansion``.

    Raises
    ------
    Exception
        The reader's exception for a damaged footer.

    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - only Parquet landings need it

    footer = pq.read_metadata(path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = range(footer.num_columns)
    # A row can have many values in a list; a footer counts each value.
    rows = max([footer.num_rows, *(sum(group.column(column).num_values for group in groups) for column in columns)])
    problem_of_footer = expands_too_much(size, sum(group.total_byte_size for group in groups), rows, most)
    if problem_of_footer:
        return "expands_too_much", problem_of_footer
    suspects = [
        (number, group.column(column))
        for number, group in enumerate(groups)
        for column in columns
        if _may_be_long(group.column(column), longest, max(HARMLESS, most * size))
    ]
    return _values_problem(path, suspects, longest, size, most) if suspects else None


def _may_be_long(chunk: Any, longest: int, bound: int) -> bool:  # noqa: ANN401 - pyarrow has no types
    if chunk.physical_type != "BYTE_ARRAY":
        return False
    return bool(chunk.total_uncompressed_size > longest or chunk.num_values * chunk.total_uncompressed_size > bound)


def _values_problem(
    path: Path, suspects: list[tuple[int, Any]], longest: int, size: int, most: int
) -> tuple[str, str] | None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    total = 0
    # Values with shared beginnings are not read as a dictionary, so few of them are read at once.
    shared = {chunk.path_in_schema for _, chunk in suspects if "DELTA_BYTE_ARRAY" in chunk.encodings}
    names = sorted({chunk.path_in_schema for _, chunk in suspects} - shared)
    with pq.ParquetFile(path, read_dictionary=names, buffer_size=_BUFFER) as file:
        try:
            for group, chunk in suspects:
                few = max(1, _BYTES_PER_BATCH // max(1, chunk.total_uncompressed_size))
                rows = min(few, _ROWS_PER_BATCH) if chunk.path_in_schema in shared else _ROWS_PER_BATCH
                for batch in file.iter_batches(rows, row_groups=[group], columns=[chunk.path_in_schema]):
                    for content, length in text_lengths(batch.column(0)):
                        total += content
                        if length > longest:
                            return "record_too_long", value_too_long(chunk.path_in_schema, length, longest)
                    if problem := expands_too_much(size, total, 0, most):
                        return "expands_too_much", problem
        except Exception:  # noqa: BLE001 - reading the file reports what is wrong with it
            return None
    return None


def text_lengths(values: Any) -> Iterator[tuple[int, int]]:  # noqa: ANN401 - pyarrow has no types
    """Yield the bytes of all texts in an array and of the longest one, also for nested arrays."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    kind = values.type
    if pa.types.is_nested(kind):
        inner = values.flatten()
        for part in inner if isinstance(inner, list) else [inner]:
            yield from text_lengths(part)
        return
    if pa.types.is_dictionary(kind):
        lengths = pc.take(pc.binary_length(values.dictionary), values.indices)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        lengths = pc.binary_length(values)
    else:
        return
    yield pc.sum(lengths.cast("int64")).as_py() or 0, pc.max(lengths).as_py() or 0


def value_too_long(column: str, length: int, longest: int) -> str:
    """Return the message about a value longer than ``max_record``."""
    return f'a value of column "{column}" has {length} bytes, more than max_record ({longest}); cut it, or raise max_record'
