"""The job that every contender gets: how many rows, how they live, at what rate they come.

Slots and window times are those of the warehouse: update k happens at ``anchor + k * interval`` and loads the rows that
arrived in its slot. Everything is a function of this value and its seed.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from benchmarks.data import MANY, Shape, absent_key, key, table_of
from warehouse.time import HOUR, at_slot, parse_instant, slot

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["ANCHOR", "LIFETIMES", "RATES", "Job", "Lifetimes", "Rate"]

Lifetimes = Literal["uniform", "exponential", "bimodal", "equal", "trace"]
Rate = Literal["constant", "alternating", "random", "burst"]
LIFETIMES: tuple[Lifetimes, ...] = get_args(Lifetimes)
RATES: tuple[Rate, ...] = get_args(Rate)

ANCHOR = "2024-01-01T00:00:00Z"
_SAMPLE = 200_000
_FLIGHTS = Path(__file__).parents[2] / "sample_data" / "flights" / "landing" / "flights"
_BURST = 6
_BURST_CYCLE = 36


@dataclass(frozen=True)
class Job:
    """What is asked of a contender.

    Parameters
    ----------
    rows
        Live rows in a steady state; the rate follows from it and the mean lifetime (Little's law).
    row_bytes
        Bytes of a row's values before encoding; at least 60.
    keys
        Distinct search keys, at least 100. With more, a tenth of the rows has one of 100 keys.
    updates
        Updates after the first build that are measured.
    settling
        Updates between the build and these, of which nothing is asked: after p of them, all rows of the build have expired.
    lifetimes
        ``uniform`` in (0, S]; ``exponential`` with mean S/10, cut at S; ``bimodal``: 80 % in (0, S/20], 20 % in
        (0.9 S, S]; ``equal`` to S; ``trace``: the flight times of the bundled flights, the longest as S.
    rate
        Rows per update: ``constant``; ``alternating`` 1 and 4; ``random`` 1 to 4; ``burst``: 4 times during 6 of every 36.
    periods
        p: the longest lifetime S in update intervals.
    seed
        Of all data.

    """

    rows: int = 1_000_000
    row_bytes: int = 130
    keys: int = 100_000
    updates: int = 12
    lifetimes: Lifetimes = "uniform"
    rate: Rate = "constant"
    periods: int = 36
    seed: int = 20130101
    settling: int = 0

    def digest(self) -> dict[str, object]:
        """Return the values by which a run is known: results of another job are not mixed with it."""
        return {**asdict(self), "updates": None}

    @property
    def first_slot(self) -> int:
        """The slot of the first build: every live row arrived after the anchor."""
        return self.periods

    @property
    def unmeasured(self) -> range:
        """The slots of the updates that settle."""
        return range(self.first_slot + 1, self.first_slot + 1 + self.settling)

    @property
    def slots(self) -> range:
        """The slots of the updates that are measured."""
        return range(self.unmeasured.stop, self.unmeasured.stop + self.updates)

    @property
    def longest(self) -> int:
        """S in microseconds."""
        return self.periods * HOUR

    @staticmethod
    def instant(number: int) -> int:
        """Return the window time of a slot in microseconds."""
        return at_slot(number, parse_instant(ANCHOR), HOUR)

    @staticmethod
    def slot(instant: int) -> int:
        """Return the slot of an instant in microseconds."""
        return slot(instant, parse_instant(ANCHOR), HOUR)

    @property
    def shape(self) -> Shape:
        """What the rows look like."""
        return Shape(self.row_bytes, self.keys, self.seed)

    @cached_property
    def batch(self) -> int:
        """Rows of an update at the mean rate."""
        mean = self.lifetime(np.random.default_rng([self.seed, 0]), _SAMPLE).mean()
        return max(1, round(self.rows * HOUR / float(mean)))

    def lifetime(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """Return lifetimes in microseconds, each in [1, S]."""
        longest = self.longest
        match self.lifetimes:
            case "uniform":
                return rng.integers(1, longest + 1, count)
            case "exponential":
                drawn = -0.1 * np.log1p(-rng.random(count) * (1 - np.exp(-10.0)))
                return np.clip((drawn * longest).astype(np.int64), 1, longest)
            case "bimodal":
                short = rng.integers(1, longest // 20 + 1, count)
                long = rng.integers(longest * 9 // 10 + 1, longest + 1, count)
                return np.where(rng.random(count) < 0.8, short, long)
            case "equal":
                return np.full(count, longest, np.int64)
            case "trace":
                flown = _flight_seconds()
                return np.maximum(1, rng.choice(flown, count) * (longest // int(flown.max())))

    def rows_of(self, number: int) -> int:
        """Return how many rows arrive in a slot; the mean over slots is :attr:`batch`."""
        match self.rate:
            case "constant":
                weight = 1.0
            case "alternating":
                weight = 0.4 if number % 2 else 1.6
            case "random":
                weight = np.random.default_rng([self.seed, 1, number]).uniform(1, 4) / 2.5
            case "burst":
                weight = (4.0 if number % _BURST_CYCLE < _BURST else 1.0) * 2 / 3
        return max(1, round(self.batch * weight))

    def arriving(self, number: int) -> pa.Table:
        """Return the rows that arrive in a slot, in the order of :data:`benchmarks.data.COLUMNS`."""
        rng = np.random.default_rng([self.seed, 2, number])
        ts = rng.integers(self.instant(number - 1) + 1, self.instant(number) + 1, self.rows_of(number))
        return table_of(self.shape, rng, ts, ts + self.lifetime(rng, len(ts)))

    def probed(self, number: int, *, few: int = 5, many: int = 2, absent: int = 1) -> dict[str, list[str]]:
        """Return the keys that are asked for after an update: with few rows, with many, and no keys at all."""
        rng = np.random.default_rng([self.seed, 3, number])
        step = self.keys // MANY
        return {
            "few": [key(int(index)) for index in rng.integers(0, self.keys, few)],
            "many": [key(int(index) * step) for index in rng.integers(0, MANY, many)],
            "absent": [absent_key(int(index)) for index in rng.integers(0, self.keys - 1, absent)],
        }


@cache
def _flight_seconds() -> NDArray[np.int64]:
    """Return how many seconds each bundled flight was in the air, in the files' order."""
    seconds = []
    for path in sorted(_FLIGHTS.rglob("*.csv.gz")):
        with gzip.open(path, "rt", newline="") as lines:
            for row in csv.DictReader(lines):
                if row["departed_at"] and row["landed_at"]:  # a cancelled flight has neither
                    start, end = (datetime.fromisoformat(row[name]) for name in ("departed_at", "landed_at"))
                    seconds.append(int((end - start).total_seconds()))
    return np.array([each for each in seconds if each > 0], np.int64)
