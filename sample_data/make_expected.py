"""Makes the expected answers of queries over the ``flights`` example: ``python -m warehouse.sample_data.make_expected``.

The answers are computed from the bundled landing files alone, by loops and if statements, without Spark, DuckDB and the
warehouse, so that they can check all of these. They are those of the window states at :data:`WINDOW_TIMES`, over the
rows that are live then: a flight from its departure until it lands, an observation of the weather until its end.

``flights/expected/<window time>/<query>.csv`` has a header, empty for null, and its rows in the order of their text;
an answer is a bag, so compare it as one. The values of columns that a query only passes on are those of the landing
files, as text.
"""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.sample_data.landing_files import INSTANT, as_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["QUERIES", "WINDOW_TIMES", "files"]

LANDING = Path(__file__).parent / "flights" / "landing"
EXPECTED = Path(__file__).parent / "flights" / "expected"
WINDOW_TIMES = tuple(
    datetime(2013, 1, day, hour, tzinfo=UTC).strftime(INSTANT) for day, hour in ((1, 12), (1, 18), (2, 0))
)
"""The instants at which the queries are asked; all instants are text of one width here, which orders as they do."""

Row = dict[str, str]
"""A row of a landing file or of an answer: each column's text, empty for null."""


def with_weather(flights: Sequence[Row], weather: Sequence[Row]) -> Iterator[Row]:
    """Yield the flights with each observation that is valid at their origin; a result lives while both parts do."""
    for flight in flights:
        for observation in weather:
            if flight["origin"] == observation["origin"]:
                yield {
                    **_described(flight),
                    **{name: observation[name] for name in ("temp", "wind_speed", "visib")},
                    "_ts": max(flight["departed_at"], observation["observed_at"]),
                    "_exp": min(flight["landed_at"], observation["valid_until"]),
                }


def destinations(flights: Sequence[Row], _weather: Sequence[Row]) -> Iterator[Row]:
    """Yield each destination once."""
    seen = set()
    for flight in flights:
        if flight["dest"] not in seen:
            seen.add(flight["dest"])
            yield {"dest": flight["dest"]}


def without_rain(flights: Sequence[Row], weather: Sequence[Row]) -> Iterator[Row]:
    """Yield the flights for which no observation of rain or snow (more than 0 inches) is valid at their origin."""
    wet = {observation["origin"] for observation in weather if _exceeds(observation["precip"], 0)}
    for flight in flights:
        if flight["origin"] not in wet:
            yield _described(flight)


def without_strong_wind(flights: Sequence[Row], weather: Sequence[Row]) -> Iterator[Row]:
    """Yield the flights for which no observation of a wind over 15 miles per hour is valid at their origin."""
    windy = {observation["origin"] for observation in weather if _exceeds(observation["wind_speed"], 15)}
    for flight in flights:
        if flight["origin"] not in windy:
            yield _described(flight)


def by_carrier(flights: Sequence[Row], _weather: Sequence[Row]) -> Iterator[Row]:
    """Yield for each carrier its flights, their mean time in the air (minutes) and their distances' sum (miles)."""
    minutes: dict[str, list[int]] = {}
    miles: dict[str, int] = {}
    for flight in flights:
        carrier = flight["carrier"]
        minutes.setdefault(carrier, []).append(int(flight["air_time"]))
        miles[carrier] = miles.get(carrier, 0) + int(flight["distance"])
    for carrier, times in minutes.items():
        yield {
            "carrier": carrier,
            "flights": str(len(times)),
            "mean_air_time": repr(sum(times) / len(times)),
            "total_distance": str(miles[carrier]),
        }


QUERIES: tuple[Callable[[Sequence[Row], Sequence[Row]], Iterator[Row]], ...] = (
    with_weather,
    destinations,
    without_rain,
    without_strong_wind,
    by_carrier,
)
"""Each takes the live flights and the live observations, and gives its name to its files."""


def _described(flight: Row) -> Row:
    return {name: flight[name] for name in ("tailnum", "flight", "carrier", "origin", "dest")}


def _exceeds(text: str, bound: float) -> bool:
    """Whether a number is larger than a bound; null is not."""
    return text != "" and float(text) > bound


def files() -> Iterator[tuple[Path, bytes]]:
    """Yield (path below the directory of the answers, content) of each answer."""
    flights, weather = _landed("flights"), _landed("weather")
    for at in WINDOW_TIMES:
        # A flight without a landing is rejected when it is loaded.
        aloft = [row for row in flights if row["landed_at"] and row["departed_at"] <= at < row["landed_at"]]
        valid = [row for row in weather if row["observed_at"] <= at < row["valid_until"]]
        for query in QUERIES:
            answer = list(query(aloft, valid))
            ordered = sorted(tuple(row.values()) for row in answer)
            yield Path(at[: len("2013-01-01T12")], f"{query.__name__}.csv"), as_csv(tuple(answer[0]), ordered)


def _landed(name: str) -> list[Row]:
    rows: list[Row] = []
    for path in sorted((LANDING / name).glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows.extend(csv.DictReader(file))
    return rows


def main() -> None:
    """Write the answers."""
    for path, content in files():
        (EXPECTED / path).parent.mkdir(parents=True, exist_ok=True)
        (EXPECTED / path).write_bytes(content)


if __name__ == "__main__":
    main()
