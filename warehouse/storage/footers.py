"""Makes the statistics of a data file for the Delta log from the file's footer.

The Delta protocol's per-file statistics: ``numRecords``, and for some columns ``minValues``, ``maxValues``, ``nullCount``. Bounds
are safe: every value v of the file satisfies low <= v <= high, strings in the order of their UTF-8 bytes, which is that of
Parquet and of every reader that the conformance suite runs. Both are written for each column that has a value, since delta-rs'
dataset skips a file without one of them (*measured*, deltalake 1.6). A bound that is not in the footer, such as a string of
several kilobytes, is read from the column. The forms:

* Strings longer than 32 characters are cut. An upper bound then ends with the successor of its last character that has one; an
  appended character would not be enough, since no character sorts after U+10FFFF.
* Instants are milliseconds, a low one cut and a high one raised; the last millisecond of the year 9999 has its microseconds,
  since rows that never expire end with it.
* Decimals are written without an exponent: delta-rs reads ``1E-10`` as null.

Dates and instants outside the years 1 to 9999, NaN, infinities and text that is no UTF-8 have no bound: the log cannot write one.
"""

from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.objects.path import parquet_source
from warehouse.storage.snapshot import BOUND_LENGTH, stored_files
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["LARGE_ROWS", "bounded_leaves", "file_statistics", "leaves_of", "nearly_unique", "without_dictionary"]


_LAST_CHARACTER = "\U0010ffff"
_BEFORE_SURROGATES, _AFTER_SURROGATES = "\ud7ff", "\ue000"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MILLISECOND = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_MILLISECOND = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_BATCH_ROWS = 1000
_ORDINAL_OF_1970 = date(1970, 1, 1).toordinal()
_LAST_INSTANT = "9999-12-31T23:59:59.999999Z"


def file_statistics(file: Path, columns: Sequence[str]) -> tuple[int, str]:
    """Return a Parquet file's rows, and its statistics as the log holds them; bounds are given for ``columns``."""
    parquet = pq.ParquetFile(parquet_source(file))
    footer = parquet.metadata
    if not footer.num_row_groups:
        return footer.num_rows, _json({"numRecords": footer.num_rows})
    column_numbers = {footer.row_group(0).column(number).path_in_schema: number for number in range(footer.num_columns)}
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in columns:
        if name not in column_numbers:
            continue
        chunks = [footer.row_group(group).column(column_numbers[name]) for group in range(footer.num_row_groups)]
        if all(chunk.is_stats_set and chunk.statistics.has_null_count for chunk in chunks):
            nulls[name] = sum(chunk.statistics.null_count for chunk in chunks)
        bounds = _bounds(chunks)
        if bounds is None and nulls.get(name) != footer.num_rows:
            bounds = _bounds_of_values(parquet, name)
        if bounds is None:
            continue
        kind, lowest, highest = bounds
        low, high = _written(lowest, kind, up=False), _written(highest, kind, up=True)
        if low is not None:
            lows[name] = low
        if high is not None:
            highs[name] = high
    statistics = {"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}
    return footer.num_rows, _json(statistics)


@lru_cache(maxsize=64)
def leaves_of(schema: pa.Schema) -> tuple[str, ...]:
    """Return the paths of a schema's columns of plain values."""
    return tuple(column.path for column in _columns(schema))


@lru_cache(maxsize=64)
def bounded_leaves(schema: pa.Schema) -> tuple[str, ...]:
    """Return the paths of the columns that get bounds in a file that is written batch by batch: all except floats.

    Bounds ignore NaN, so readers would prune as if there were none, and it is unknown before whether a NaN will come.
    """
    return tuple(column.path for column in _columns(schema) if column.physical_type not in ("FLOAT", "DOUBLE"))


def _columns(schema: pa.Schema) -> Iterator[Any]:
    empty = io.BytesIO()
    pq.write_table(schema.empty_table(), empty, store_schema=False)
    stored = pq.ParquetFile(empty).schema
    return (stored.column(number) for number in range(len(stored)))


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.encode(value).decode()


def _bounds(chunks: Iterable[Any]) -> tuple[str, Any, Any] | None:
    """Return the kind and the bounds of a column's chunks; None if a chunk has values without bounds, or no chunk has values."""
    lows, highs = [], []
    for chunk in chunks:
        statistics = chunk.statistics
        if statistics is None:
            return None
        if statistics.has_min_max:
            kind = _kind(statistics)
            try:
                lows.append(_comparable(statistics, kind, "min"))
                highs.append(_comparable(statistics, kind, "max"))
            except UnicodeDecodeError:
                return None
        elif not statistics.has_null_count or statistics.null_count < chunk.num_values:
            return None
    return (kind, min(lows), max(highs)) if lows else None


def _bounds_of_values(parquet: pq.ParquetFile, name: str) -> tuple[str, str, str] | None:
    """Return the bounds of a string column by its values, a batch at a time; None for other types."""
    column = next(field for field in parquet.schema_arrow if field.name == name)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    bounds: list[str] = []
    for batch in parquet.iter_batches(_BATCH_ROWS, columns=[name]):
        try:
            extremes = pc.min_max(batch.column(0)).as_py()
        except UnicodeDecodeError:
            return None
        bounds += [bound for bound in extremes.values() if bound is not None]
    return ("string", min(bounds), max(bounds)) if bounds else None


def _kind(statistics: Any) -> str:  # noqa: ANN401 - pyarrow has no types
    name = str(statistics.logical_type.type)
    return name.lower()


def _comparable(statistics: Any, kind: str, side: str) -> Any:  # noqa: ANN401 - same
    """Return a bound as numbers or strings that compare as the values do; instants and days stay integers."""
    if kind in ("timestamp", "date"):
        return getattr(statistics, f"{side}_raw")
    return getattr(statistics, side)


def _written(bound: Any, kind: str, *, up: bool) -> Any:  # noqa: ANN401 - any statistic
    """Return a bound as JSON has it, or None."""
    match bound:
        case int() if kind == "timestamp":
            return _instant(bound, up=up)
        case int() if kind == "date":
            return _day(bound, up=up)
        case str():
            return bound if len(bound) <= BOUND_LENGTH else _following(bound) if up else bound[:BOUND_LENGTH]
        case float():
            return bound if math.isfinite(bound) else None
        case Decimal():
            return msgspec.Raw(f"{bound:f}".encode())
        case bool() | int():
            return bound
    return None


def _instant(bound: int, *, up: bool) -> str | None:
    milliseconds = -(-bound // 1000) if up else min(bound // 1000, _LAST_MILLISECOND)
    if up and milliseconds > _LAST_MILLISECOND:
        return _LAST_INSTANT if bound <= NEVER else None
    if milliseconds < _FIRST_MILLISECOND:
        if not up:
            return None
        milliseconds = _FIRST_MILLISECOND
    instant = _EPOCH + timedelta(milliseconds=milliseconds)
    return f"{instant.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _day(bound: int, *, up: bool) -> str | None:
    """Return a day as a bound: a low one after the year 9999 is the last day of it, a high one before the year 1 its first."""
    ordinal = bound + _ORDINAL_OF_1970
    nearest = max(ordinal, 1) if up else min(ordinal, date.max.toordinal())
    return date.fromordinal(nearest).isoformat() if 0 < nearest <= date.max.toordinal() else None


def _following(text: str) -> str:
    """Return a string that sorts after every string that begins as ``text`` does, as short as can be.

    >>> _following("a" * 40) == "a" * 31 + "b", _following("\U0010ffff" * 33 + "ab") == "\U0010ffff" * 33 + "b"
    (True, True)
    """
    for end in (*range(BOUND_LENGTH, 0, -1), *range(BOUND_LENGTH + 1, len(text) + 1)):
        last = text[end - 1]
        if last != _LAST_CHARACTER:
            return text[: end - 1] + (_AFTER_SURROGATES if last == _BEFORE_SURROGATES else chr(ord(last) + 1))
    return text


# Columns that get no dictionary in a large write: few values repeat in them, by the table's existing files.
#
# A dictionary that saves nothing is made and thrown away, page by page. *Measured*, 500 000 rows whose columns are
# nearly unique: without them a write takes 1.7 instead of 2.6 seconds of a processor, for files of the same size
# (``python -m benchmarks.encodings``).

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
        return frozenset()  # a reader of its rows reports the fault
    if rows.num_rows < _TELLING_ROWS:
        return frozenset()
    return frozenset(name for name, values in zip(rows.column_names, rows.columns, strict=True) if nearly_unique(values))
