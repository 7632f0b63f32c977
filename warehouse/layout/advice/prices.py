"""Prices of the work of updates and probes, in seconds, and their uncertainty.

A cost is linear in the work: doubly-partitioned-index sheet, section 5.4, with a price for each of the things that
section 11 says count on columnar files.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from warehouse.layout.advice.work import ProbeWork, UpdateWork

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DEFAULT_PRICES", "Estimate", "LayoutPrices", "Pricing"]

_NINETY_PERCENT = 1.645
"""Standard deviations on either side of the mean that hold nine tenths of a normal distribution."""
_UNSURE = 0.5
"""The standard deviation of a price that was measured on another machine, as a share of the price."""


@dataclass(frozen=True)
class Estimate:
    """A predicted figure, and the bounds that contain it nine times out of ten."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, deviation: float) -> Estimate:
        """Return the estimate of a mean with a standard deviation; no cost is negative.

        Examples
        --------
        >>> Estimate.of(10.0, 1.0)
        Estimate(value=10.0, low=8.355, high=11.645)
        """
        reach = _NINETY_PERCENT * deviation
        return cls(value, max(0.0, value - reach), value + reach)


@dataclass(frozen=True)
class LayoutPrices:
    """Seconds for each unit of work.

    Parameters
    ----------
    names
        The names of the units.
    values
        Seconds for one of each unit.
    covariance
        The covariance of the values, row by row.
    samples
        How many measurements they were fitted to; 0 for assumed prices.
    """

    names: tuple[str, ...]
    values: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    samples: int = 0

    def cost(self, work: Sequence[float]) -> Estimate:
        """Return the seconds that a piece of work takes on average."""
        value = sum(price * units for price, units in zip(self.values, work, strict=True))
        variance = sum(
            units * sum(covariance * other_units for covariance, other_units in zip(line, work, strict=True))
            for line, units in zip(self.covariance, work, strict=True)
        )
        return Estimate.of(value, sqrt(max(0.0, variance)))

    def scaled(self, factor: float) -> LayoutPrices:
        """Return the prices on a storage that is slower by a factor."""
        return LayoutPrices(
            self.names,
            tuple(value * factor for value in self.values),
            tuple(tuple(covariance * factor * factor for covariance in line) for line in self.covariance),
            self.samples,
        )


@dataclass(frozen=True)
class Pricing:
    """Prices of updates and of probes."""

    update: LayoutPrices
    probe: LayoutPrices


def assumed_prices(names: tuple[str, ...], values: Sequence[float]) -> LayoutPrices:
    """Return prices from another machine: the standard deviation of each is half of it, and they are independent."""
    covariance = tuple(
        tuple((_UNSURE * value) ** 2 if i == j else 0.0 for j in range(len(values))) for i, value in enumerate(values)
    )
    return LayoutPrices(names, tuple(values), covariance)


DEFAULT_PRICES = Pricing(
    update=assumed_prices(UpdateWork.names(), (0.41, 2e-3, 2.6e-6, 2e-3, 8e-3, 0.16, 0.65e-6, 1.5e-6, 0.065e-6)),
    probe=assumed_prices(ProbeWork.names(), (2.5e-3, 2.5e-2, 1e-5, 1.5e-4, 1.45e-3, 1e-6)),
)
"""Prices of work on the machine of `benchmarks/README.md` (two cores, rows of 130 bytes, a warm session).

Prices of updates are fitted to the thirty warm updates of that page's run of 2026-11-21, and reproduce them to 5 percent (100,000
rows in 0.87 s; 1.39 s with 125,000 sealed old rows). Prices of probes reproduce its 13.9 ms for 8 rows in 7 files, and 49.3 ms
for 1,792 rows in 32 files. All its updates wrote four or five runs from four landing files, so the run cannot separate the prices
of a file, of a sub-index and of an update: those three prices are assumed. `python -m benchmarks.advice` measures layouts that
differ in them, and fits all.
"""
