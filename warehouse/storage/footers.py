"""The statistics that a Delta log keeps of a data file, taken from the file's own footer.

The Delta protocol's per-file statistics: ``numRecords``, and for some columns ``minValues``, ``maxValues``, ``nullCount``.
Bounds are safe: every value v of the file satisfies low <= v <= high. Strings longer than 32 characters are cut, a high
one with the largest character behind it; instants are milliseconds, a low one cut and a high one raised. What has no
bound in the footer (a value of several kilobytes, NaN), or none that the log can write, has none here.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet as pq

from warehouse.objects.path import parquet_source

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["file_statistics"]

_STRING_LENGTH = 32
_LAST_CHARACTER = "\U0010ffff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MILLISECOND = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_LAST_MILLISECOND = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_ORDINAL_OF_1970 = date(1970, 1, 1).toordinal()
_JSON = msgspec.json.Encoder(decimal_format="number")


def file_statistics(file: Path, columns: Sequence[str]) -> tuple[int, str]:
    """Return a Parquet file's rows, and its statistics as the log holds them; bounds are given for ``columns``."""
    footer = pq.ParquetFile(parquet_source(file)).metadata
    if not footer.num_row_groups:
        return footer.num_rows, _json({"numRecords": footer.num_rows})
    places = {footer.row_group(0).column(place).path_in_schema: place for place in range(footer.num_columns)}
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in columns:
        if name not in places:
            continue
        chunks = [footer.row_group(group).column(places[name]) for group in range(footer.num_row_groups)]
        if all(chunk.is_stats_set and chunk.statistics.has_null_count for chunk in chunks):
            nulls[name] = sum(chunk.statistics.null_count for chunk in chunks)
        bounds = _bounds(chunks)
        if bounds is not None:
            lows[name], highs[name] = bounds
    known = {"numRecords": footer.num_rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}
    return footer.num_rows, _json(known)


def _json(value: dict[str, Any]) -> str:
    return _JSON.encode(value).decode()


def _bounds(chunks: Iterable[Any]) -> tuple[Any, Any] | None:
    """Return the bounds of a column's chunks as the log writes them; none when one of them has values and no bounds."""
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
    if not lows:
        return None
    low, high = _written(min(lows), kind, up=False), _written(max(highs), kind, up=True)
    return None if low is None or high is None else (low, high)


def _kind(statistics: Any) -> str:  # noqa: ANN401 - pyarrow has no types
    name = str(statistics.logical_type.type)
    return name.lower()


def _comparable(statistics: Any, kind: str, side: str) -> Any:  # noqa: ANN401 - same
    """Return a bound as numbers or strings that compare as the values do; instants and days stay integers."""
    if kind in ("timestamp", "date"):
        return getattr(statistics, f"{side}_raw")
    return getattr(statistics, side)


def _written(bound: Any, kind: str, *, up: bool) -> Any:  # noqa: ANN401 - any statistic
    """Return a bound as JSON has it, or none."""
    if kind == "timestamp":
        milliseconds = min(-(-bound // 1000), _LAST_MILLISECOND) if up else bound // 1000
        if not _FIRST_MILLISECOND <= milliseconds <= _LAST_MILLISECOND:
            return None
        instant = _EPOCH + timedelta(milliseconds=milliseconds)
        return f"{instant.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
    if kind == "date":
        ordinal = bound + _ORDINAL_OF_1970
        return date.fromordinal(ordinal).isoformat() if 0 < ordinal <= date.max.toordinal() else None
    if isinstance(bound, str):
        return bound if len(bound) <= _STRING_LENGTH else bound[:_STRING_LENGTH] + (_LAST_CHARACTER if up else "")
    if isinstance(bound, float):
        return bound if math.isfinite(bound) else None
    return bound if isinstance(bound, (bool, int, Decimal)) else None
