"""Key summaries of data files, each in a companion file ``.NAME.parquet.keys``.

The commit that makes a data file writes its summary, and whoever deletes the file deletes the summary. No record names it, it is
not synced, and no answer depends on it: a missing, damaged or wrong summary is ignored, which only costs time. In an object store
no summaries are written, since each would be a request.

A summary begins with a filter of all keys of the file (:mod:`warehouse.promise.presence`), if one fits half of its bytes, so that
a probe reads no more than that; the counts follow. Each has a sum of its own.

Source: promising-tuples sheet, 11 (summary table). Its rows are files, so that sealing, erasure and vacuum need no other code.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import xxhash

from warehouse.limits import limits
from warehouse.promise.presence import BLOCK, bits_of, filter_of, filter_of_blocks, hash_of, holds
from warehouse.promise.summaries import LEAST_COUNT, KeySummary, decode, encode, stored_part
from warehouse.storage.companion_files import SUMMARY
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from warehouse.promise.summaries import Key

__all__ = [
    "FILTER_SHOWS",
    "count_keys",
    "counts_in",
    "counts_of",
    "filter_exceeds",
    "is_readable",
    "key_shown",
    "read_filter",
    "read_summary",
    "share_summary",
    "summary_path",
    "write_summary",
]

_MAGIC = b"KF1\n"
_HEAD = struct.Struct("<4s8sQI")
"""The header of a filter: the magic, the sum of the rest, the rows of the file, the bytes of the filter."""
_SUMMED_FROM = 12
_LARGEST_FILTER = 256 << 10
"""Bytes of a filter above which reading it takes longer than opening the data file."""

_LEAST_BYTES = 64
"""A summary with less room (in bytes) is not written: it would have only a few keys."""
_FEWEST_ROWS = 1.25
"""With fewer rows per key, on average, keys are nearly unique, and their counts are of little use."""
_BYTES_OF_A_KEY = 2
"""The least bytes that a key takes."""
_SAMPLED_GROUPS = 4
FILTER_SHOWS = "a key, by its filter"
"""The text for a key that a filter holds; it holds one in 200 keys wrongly."""


def summary_path(file: Path) -> Path:
    """Return where the summary of a data file is."""
    return file.with_name(f".{file.name}{SUMMARY}")


def write_summary(file: Path, key: Sequence[str]) -> None:
    """Write the summary of a data file that has just been written, if the summary is small enough."""
    if not store_of(file).cheap_requests:
        return
    most = int(file.stat().st_size * limits().summary_share)
    if most < _LEAST_BYTES:
        return
    content = _content(file, key, most)
    if content is not None:
        with suppress(OSError):  # if the disk is full, the commit fails and says so
            summary_path(file).write_bytes(content)


def read_summary(file: str, rows: int | None, most_bytes: int | None = None) -> KeySummary | None:
    """Return the summary of a data file by its number of rows; None: the file has no summary, or a larger one."""
    directory, _, name = file.rpartition("/")
    try:
        with open(f"{directory}/.{name}{SUMMARY}", "rb") as stream:  # noqa: PTH123 - a path object costs more than the read
            head = stream.read(_HEAD.size)
            stream.seek(_size_before_counts(head))
            content = stream.read() if most_bytes is None else stream.read(most_bytes + 1)
    except OSError:
        return None
    summary = decode(content) if most_bytes is None or len(content) <= most_bytes else None
    return summary if summary is not None and summary.rows == rows else None


def counts_of(content: bytes) -> bytes:
    """Return the part of a summary file that follows the filter, if it has one."""
    return content[_size_before_counts(content) :]


def is_readable(file: Path, *, filtered: bool, counted: bool) -> bool:
    """Whether a summary file has just the parts that could be read: its filter, its counts, or both."""
    content = summary_path(file).read_bytes()
    begin = _size_before_counts(content)
    return bool(content) and filtered == (begin > 0) and counted == (len(content) > begin)


def key_shown(content: bytes, keys: Sequence[Key], whole: int) -> str | None:
    """Return how the bytes of a summary file show that its data file had one of some keys; None if they show none.

    Parameters
    ----------
    content
        The bytes of the summary file.
    keys
        The keys, or prefixes of keys, with parts as :func:`stored_part` gives them.
    whole
        The number of parts of a whole key. A filter does not exclude prefixes.

    """
    counts = counts_of(content)
    summary, key_filter = decode(counts), _filter_in(content)
    if (counts and summary is None) or (key_filter is None and len(content) > len(counts)):
        return "bytes that cannot be read"
    if summary is not None and any(summary.between(key)[0] for key in keys):
        return "a key"
    if key_filter is None or (summary is not None and summary.exact):
        return None
    shown = any(len(key) < whole or holds(key_filter, hash_of(key), bits_of(hash_of(key))) for key in keys)
    return FILTER_SHOWS if shown else None


def filter_exceeds(content: bytes, file: Path, key: Sequence[str]) -> bool:
    """Whether the filter in the bytes of a summary file may have bits that no key of the data file has set."""
    import pyarrow as pa  # noqa: PLC0415 - those who only read never need it

    key_filter = _filter_in(content)
    try:
        counted = count_keys(file, key)
    except (OSError, pa.ArrowException):  # it cannot be read, so it shows no key
        return key_filter is not None
    if key_filter is None or counted is None:
        return key_filter is not None
    columns = [[counted_key[number] for counted_key in counted.counts] for number in range(len(key))]
    return bool(int.from_bytes(key_filter) & ~int.from_bytes(filter_of_blocks(columns, len(key_filter) // BLOCK)))


def _filter_in(content: bytes) -> bytes | None:
    """Return the filter at the beginning of a summary file; None if there is none, or it is damaged."""
    begin = _size_before_counts(content)
    if not _HEAD.size < begin <= len(content):
        return None
    digest = _HEAD.unpack_from(content)[1]
    return content[_HEAD.size : begin] if xxhash.xxh3_64_digest(content[_SUMMED_FROM:begin]) == digest else None


def _size_before_counts(content: bytes) -> int:
    if not content.startswith(_MAGIC) or len(content) < _HEAD.size:
        return 0
    return _HEAD.size + int(_HEAD.unpack_from(content)[3])


def read_filter(file: str, rows: int | None) -> bytes | None:
    """Return the filter of the keys of a data file by its number of rows; None: the file has no usable one."""
    directory, _, name = file.rpartition("/")
    try:
        opened = os.open(f"{directory}/.{name}{SUMMARY}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        head = os.read(opened, _HEAD.size)
        if len(head) < _HEAD.size:
            return None
        magic, digest, counted, size = _HEAD.unpack(head)
        if magic != _MAGIC or counted != rows or not 0 < size <= _LARGEST_FILTER:
            return None
        content = os.read(opened, size)
    except OSError:
        return None
    finally:
        os.close(opened)
    return content if len(content) == size and xxhash.xxh3_64_digest(head[_SUMMED_FROM:] + content) == digest else None


def share_summary(file: Path, other: Path) -> None:
    """Give the summary of a data file, if it has one, to another name of the same bytes."""
    if store_of(file).local_paths:
        with suppress(OSError):
            store_of(file).link_or_copy(summary_path(file), summary_path(other))


def count_keys(file: Path, key: Sequence[str]) -> KeySummary | None:
    """Count the keys of a data file again; None: it has no such columns, or their values have no summaries."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - those who only read never need it

    parquet = pq.ParquetFile(file)
    if not _can_be_counted(parquet.schema_arrow, key):
        return None
    columns, counts = _runs(parquet.read(columns=list(key)), key)
    rows_of_key: dict[tuple[Any, ...], int] = {}
    for parts, count in zip(zip(*(_listed(column) for column in columns), strict=True), counts.tolist(), strict=True):
        rows_of_key[parts] = rows_of_key.get(parts, 0) + count
    return KeySummary(parquet.metadata.num_rows, rows_of_key)


def counts_in(column: pa.ChunkedArray) -> dict[Any, int]:
    """Return the rows of each value of a column, as summaries store values; nulls are left out.

    >>> import pyarrow as pa
    >>> counts_in(pa.chunked_array([["a", "b", None], ["a"]]))
    {'a': 2, 'b': 1}
    """
    import pyarrow.compute as pc  # noqa: PLC0415 - those who only read never need it

    value_counts = pc.value_counts(_comparable(column))
    counted = zip(_listed(value_counts.field("values")), value_counts.field("counts").to_pylist(), strict=True)
    return {value: count for value, count in counted if value is not None}


def _content(file: Path, key: Sequence[str], most: int) -> bytes | None:
    import pyarrow as pa  # noqa: PLC0415 - those who only read never need it

    table = _keys_of(file, key)
    if table is None:
        return None
    rows = table.num_rows
    columns, counts = _runs(table, key)
    if len(counts) * _FEWEST_ROWS > rows:
        return None
    try:
        first = _filter(rows, columns, min(most // 2, _LARGEST_FILTER))
        numbers = _most_frequent(counts, (most - len(first)) // _BYTES_OF_A_KEY)
        if numbers is not None:
            columns, counts = [column.take(pa.array(numbers)) for column in columns], counts[numbers]
        second = encode(rows, [_parts(column) for column in columns], counts.tolist(), most - len(first))
    except UnicodeDecodeError:
        return None
    return first + (second or b"") or None


def _keys_of(file: Path, key: Sequence[str]) -> pa.Table | None:
    """The keys of a file's rows, in their order, from memory if it was written from there; None if they need no summary."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - those who only read never need it

    from warehouse.storage.recent_rows import LOWER, recent_rows  # noqa: PLC0415 - same

    written = recent_rows().written(str(file))
    if written is not None:
        names = [name.translate(LOWER) for name in key]
        keys = written.select(names).rename_columns(list(key)) if set(names) <= set(written.column_names) else None
        return keys if keys is not None and keys.num_rows and _can_be_counted(keys.schema, key) else None
    parquet = pq.ParquetFile(file)
    if not parquet.metadata.num_rows or not _can_be_counted(parquet.schema_arrow, key):
        return None
    if parquet.num_row_groups > _SAMPLED_GROUPS and _nearly_unique(parquet.read_row_group(0, columns=list(key)), key):
        return None
    return parquet.read(columns=list(key))


def _filter(rows: int, columns: Sequence[Any], most: int) -> bytes:
    """Return the filter of distinct keys with its header; empty if it does not fit."""
    if len(columns[0]) > most:  # a key takes a byte or more
        return b""
    key_filter = filter_of([_parts(column) for column in columns], most - _HEAD.size)
    if key_filter is None:
        return b""
    head = _HEAD.pack(_MAGIC, bytes(8), rows, len(key_filter))
    return head[:4] + xxhash.xxh3_64_digest(head[_SUMMED_FROM:] + key_filter) + head[_SUMMED_FROM:] + key_filter


def _nearly_unique(table: pa.Table, key: Sequence[str]) -> bool:
    return bool(len(_runs(table, key)[1]) * _FEWEST_ROWS > table.num_rows)


def _most_frequent(counts: Any, most: int) -> Any:  # noqa: ANN401 - arrays of NumPy
    """The numbers of the most frequent keys, ascending, if there are surely too many keys; None: all may be written."""
    import numpy as np  # noqa: PLC0415 - as above

    if len(counts) <= most:
        return None
    numbers = np.sort(np.argpartition(counts, len(counts) - most)[len(counts) - most :])
    return numbers[counts[numbers] >= LEAST_COUNT]


def _runs(table: pa.Table, key: Sequence[str]) -> tuple[list[Any], Any]:
    """The distinct keys of sorted rows, a column for each part, and how many rows have each."""
    import numpy as np  # noqa: PLC0415 - as above
    import pyarrow as pa  # noqa: PLC0415 - same
    import pyarrow.compute as pc  # noqa: PLC0415 - same

    columns = [_comparable(table[name].combine_chunks()) for name in key]
    ends: Any = np.array([], dtype=np.int64)
    for column in columns:
        # run_end_encode also compares the bytes under a null; codes have no nulls.
        plain = pc.dictionary_encode(column, null_encoding="encode").indices if column.null_count else column
        encoded = pc.run_end_encode(plain, run_end_type=pa.int64())
        ends = np.union1d(ends, encoded.run_ends.to_numpy())
    return [column.take(pa.array(ends - 1)) for column in columns], np.diff(ends, prepend=0)


def _comparable(column: Any) -> Any:  # noqa: ANN401 - an Arrow array
    """Instants as microseconds and dates as days."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date32(column.type) else column


def _parts(column: Any) -> Any:  # noqa: ANN401 - an Arrow array; an array of NumPy or a list
    """The parts of keys as :func:`warehouse.promise.summaries.encode` takes them."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    if pa.types.is_integer(column.type) and not column.null_count:
        return column.cast(pa.int64()).to_numpy()
    return _listed(column)


def _listed(column: Any) -> list[Any]:  # noqa: ANN401 - an Arrow array
    import pyarrow as pa  # noqa: PLC0415 - as above

    values: list[Any] = column.to_pylist()
    if pa.types.is_decimal(column.type):
        return [stored_part(value) for value in values]
    return values


def _can_be_counted(schema: pa.Schema, key: Sequence[str]) -> bool:
    """Whether a file has the columns of a key, and their types have values that are equal to themselves alone."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    kinds = {field.name: field.type for field in schema}
    tests = (
        pa.types.is_string, pa.types.is_large_string, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32,
        pa.types.is_timestamp, pa.types.is_decimal,
    )  # fmt: skip
    return bool(key) and all(name in kinds and any(test(kinds[name]) for test in tests) for name in key)
