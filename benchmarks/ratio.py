"""Samples of one quantity, and the ratio of two."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Ratio", "Sample", "ratio", "value"]


@dataclass(frozen=True)
class Sample:
    """Measured values, in order: what was measured, the unit, the values."""

    what: str
    unit: str
    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median."""
        return statistics.median(self.values)


@dataclass(frozen=True)
class Ratio:
    """One line of the result.

    ``low`` and ``high`` are the quartiles of the ratios of each pair; the target is an upper bound, or a lower one when
    ``at_least``; None: printed for comparison.
    """

    measurement: str
    text: str
    value: float
    low: float
    high: float
    target: float | None = None
    at_least: bool = False
    of: Sample | None = None
    to: Sample | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the target is reached; None without a target."""
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target


def ratio(
    measurement: str, text: str, of: Sample, to: Sample, *, target: float | None = None, at_least: bool = False
) -> Ratio:
    """Return the ratio of the medians of two samples that were taken in turn.

    >>> found = ratio("m", "t", Sample("x", "s", (2.0, 3.0, 4.0)), Sample("y", "s", (1.0, 1.0, 2.0)), target=3)
    >>> found.value, found.low, found.high, found.holds
    (3.0, 2.0, 3.0, True)
    """
    pairs = [a / b for a, b in zip(of.values, to.values, strict=len(of.values) == len(to.values))]
    low, high = _quartiles(pairs)
    return Ratio(measurement, text, of.median / to.median, low, high, target, at_least, of, to)


def value(
    measurement: str, text: str, values: Sequence[float], *, target: float | None = None, at_least: bool = False
) -> Ratio:
    """Return a ratio that was itself measured several times."""
    low, high = _quartiles(values)
    return Ratio(measurement, text, statistics.median(values), low, high, target, at_least)


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high
