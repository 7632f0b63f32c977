"""What the scripts that make landing files share: the period, null, and one reproducible file an hour.

The same rows make the same files, byte for byte, whenever and wherever they are made with one build of zlib.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["INSTANT", "UNTIL", "Fields", "as_csv", "hourly", "replace", "without_nan"]

UNTIL = datetime(2013, 1, 2, 12, tzinfo=UTC)
"""The name of the last file; what happens later is left out."""

INSTANT = "%Y-%m-%dT%H:%M:%SZ"
"""How an instant, which is UTC, is written."""

_HOUR = timedelta(hours=1)

Fields = tuple[object, ...]
"""The values of a row in the order of its header; ``None`` is null."""


def without_nan(records: Iterable[dict[Any, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the records of a data frame with ``None`` for null, which pandas spells NaN.

    >>> list(without_nan([{"precip": 0.0, "pressure": float("nan")}]))
    [{'precip': 0.0, 'pressure': None}]
    """
    for record in records:
        yield {name: None if value != value else value for name, value in record.items()}  # noqa: PLR0124 - NaN does so


def as_csv(header: Fields, rows: Iterable[Fields]) -> bytes:
    """Return a CSV file: null is empty, lines end with a line feed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue().encode()


def hourly(header: Fields, rows: Iterable[tuple[datetime, Fields]]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each landing file: the rows of the hour that ends at the instant in its name.

    An hour begins after the full hour and ends with the next one, as an update at its end loads it; an hour without
    rows has no file. Rows are ordered by their instant, then by their first two fields, which are never null.
    """
    hours: defaultdict[datetime, list[tuple[datetime, Fields]]] = defaultdict(list)
    for instant, fields in rows:
        if instant <= UNTIL:
            begun = instant.replace(minute=0, second=0, microsecond=0)
            hours[begun if begun == instant else begun + _HOUR].append((instant, fields))
    for ends, listed in sorted(hours.items()):
        ordered = sorted(listed, key=lambda row: (row[0], row[1][:2]))
        # A zero time of modification: the same rows make the same bytes.
        yield f"{ends:%Y-%m-%dT%H}.csv.gz", gzip.compress(as_csv(header, (fields for _, fields in ordered)), mtime=0)


def replace(directory: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Make the landing files of a directory these and no others."""
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.glob("*.csv.gz"):
        old.unlink()
    for name, content in files:
        (directory / name).write_bytes(content)
