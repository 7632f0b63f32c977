"""Fits prices to measurements by least squares; prices are not negative, and stay near the known prices.

The layouts of one table's past vary little, so its measurements alone cannot separate a price per file from a price per row. So
each price is the known price times a share and times one factor for the speed of this storage. Shares and factor are near 1
unless measurements say otherwise (ridge regression towards a prior; Hoerl and Kennard, 1970). Only the first price, of work that
is the same for every layout, is free: it absorbs a cold start or other waiting times of an update. Outliers count less (Huber's
weights), since a busy machine makes some updates slow and none fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from warehouse.layout.advice.prices import LayoutPrices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["fit_prices"]

_SPREAD = 0.5
"""Standard deviation of a price's share of the known price."""
_FACTORS = tuple(2.0 ** (step / 4) for step in range(-12, 13))
"""Factors for the speed of a storage that are tried: from an eighth of the known prices to eight times the known prices."""
_SPEED = 0.7
"""Standard deviation of the logarithm of this factor."""
_HUBER = 1.5
"""Residuals beyond this number of standard deviations count less."""
_ROUNDS = 4
_LEAST_NOISE = 0.02
"""The least noise, as a share of a typical measurement: clocks and caches vary at least this much."""


def fit_prices(known: LayoutPrices, work: Sequence[Sequence[float]], seconds: Sequence[float]) -> LayoutPrices:
    """Return prices fitted to measurements.

    Parameters
    ----------
    known
        The known prices; the first is the price of the work that is done once in each measurement.
    work
        The work of each measurement, a row with a number for each price; at least one.
    seconds
        The duration of each measurement, above 0.
    """
    problem = _Problem(np.asarray(work, dtype=float) * np.asarray(known.values), np.asarray(seconds, dtype=float))
    quietest = _LEAST_NOISE * float(np.median(problem.measured))
    noise = max(quietest, float(np.std(problem.measured)) / 2)
    weights = np.ones_like(problem.measured)
    for _ in range(_ROUNDS):
        factor, shares = problem.best(weights, noise)
        residuals = problem.measured - problem.units(factor) @ shares
        noise = max(quietest, float(np.median(np.abs(residuals))) / 0.6745)  # so it is a standard deviation
        weights = np.minimum(1.0, _HUBER * noise / np.maximum(np.abs(residuals), 1e-12))
    factor, shares = problem.best(weights, noise)
    covariance = np.linalg.inv(problem.equations(factor, weights, noise)[0])
    scale = np.asarray(known.values) * problem.scale(factor)
    return LayoutPrices(
        names=known.names,
        values=tuple(float(value) for value in shares * scale),
        covariance=tuple(tuple(float(value) for value in row) for row in covariance * np.outer(scale, scale)),
        samples=len(problem.measured),
    )


@dataclass(frozen=True)
class _Problem:
    """The costs of each measurement at the known prices, one for each price, and its measured costs."""

    costs: Array
    measured: Array

    def scale(self, factor: float) -> Array:
        """Return the factor of each share; the first price does not depend on the speed."""
        scale = np.full(self.costs.shape[1], factor)
        scale[0] = 1.0
        return scale

    def units(self, factor: float) -> Array:
        """Return the costs that a share of 1 adds to each measurement, by price."""
        return np.asarray(self.costs * self.scale(factor), dtype=np.float64)

    def prior_precision(self) -> Array:
        """Return one over the variance of each share before anything was measured."""
        precision = np.full(self.costs.shape[1], _SPREAD**-2)
        once = float(np.median(self.costs[:, 0]))
        precision[0] = min(_SPREAD**-2, (once / float(np.median(self.measured))) ** 2) if once > 0 else _SPREAD**-2
        return precision

    def equations(self, factor: float, weights: Array, noise: float) -> tuple[Array, Array]:
        """Return the normal equations of the shares."""
        units, precision = self.units(factor), self.prior_precision()
        matrix = (units.T * weights) @ units / noise**2 + np.diag(precision)
        return matrix, (units.T * weights) @ self.measured / noise**2 + precision

    def best(self, weights: Array, noise: float) -> tuple[float, Array]:
        """Return the speed and the shares that explain the measurements with the least deviation from the known prices."""
        solutions = []
        for factor in _FACTORS:
            shares = _non_negative_solution(*self.equations(factor, weights, noise))
            residuals = self.measured - self.units(factor) @ shares
            deviation = float(weights @ residuals**2) / noise**2 + float(self.prior_precision() @ (shares - 1) ** 2)
            solutions.append((deviation + (np.log(factor) / _SPEED) ** 2, factor, shares))
        _, factor, shares = min(solutions, key=lambda solution: solution[0])
        return factor, shares


def _non_negative_solution(matrix: Array, target: Array) -> Array:
    """Return the shares, none of them negative, that solve the equations best.

    At the optimum some shares are 0, and the others solve the equations without them. There are few prices, so if the plain
    solution has a negative share, all choices of shares that are 0 are tried.
    """
    size = len(target)
    best, least = np.zeros(size), 0.0
    for choice in product((True, False), repeat=size):
        positive = np.flatnonzero(choice)
        if not len(positive):
            continue
        solution = np.linalg.solve(matrix[np.ix_(positive, positive)], target[positive])
        objective = -float(target[positive] @ solution)  # twice the objective, without its constant part
        if (solution >= 0).all() and objective < least:
            best, least = np.zeros(size), objective
            best[positive] = solution
        if len(positive) == size and (solution >= 0).all():
            break
    return best
