"""Fitting prices to measurements: least squares with prices that are not negative, held near the prices brought along.

The layouts of one table's past vary little, so its measurements alone cannot tell a price per file from a price per
row. So each price is a share of the brought price times one factor for the speed of this storage, and shares lie near 1
unless measurements say otherwise (ridge regression towards a prior; Hoerl and Kennard, 1970). Measurements far off the
others count less (Huber's weights), since a busy machine makes some updates slow and none fast.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from warehouse.layout.advice.prices import Prices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["fitted"]

_SPREAD = 0.5
"""Standard deviation of a price's share of what was brought along."""
_HUBER = 1.5
"""Residuals beyond so many standard deviations count less."""
_ROUNDS = 4
_LEAST_NOISE = 0.02
"""Of a typical measurement: clocks and caches are never quieter."""


def fitted(brought: Prices, work: Sequence[Sequence[float]], seconds: Sequence[float]) -> Prices:
    """Return prices fitted to measurements.

    Parameters
    ----------
    brought
        Prices from elsewhere.
    work
        What was done, a line for each measurement in the order of the prices; at least one.
    seconds
        How long each took, above 0.
    """
    measured = np.asarray(seconds, dtype=float)
    units = np.asarray(work, dtype=float) * np.asarray(brought.values)
    factor = float(np.median(measured / units.sum(axis=1)))
    units = units * factor
    weights = np.ones_like(measured)
    noise = max(_LEAST_NOISE * float(np.median(measured)), float(np.std(measured)))
    shares, covariance = _solved(units, measured, weights, noise)
    for _ in range(_ROUNDS):
        residuals = measured - units @ shares
        middle = float(np.median(np.abs(residuals))) / 0.6745  # of a normal distribution that is its deviation
        noise = max(middle, _LEAST_NOISE * float(np.median(measured)))
        weights = np.minimum(1.0, _HUBER * noise / np.maximum(np.abs(residuals), 1e-12))
        shares, covariance = _solved(units, measured, weights, noise)
    scale = np.asarray(brought.values) * factor
    return Prices(
        names=brought.names,
        values=tuple(float(each) for each in shares * scale),
        covariance=tuple(tuple(float(each) for each in line) for line in covariance * np.outer(scale, scale)),
        samples=len(measured),
    )


def _solved(
    units: NDArray[np.float64], measured: NDArray[np.float64], weights: NDArray[np.float64], noise: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shares and their covariance: the least of a quadratic over shares that are not negative.

    At the optimum some shares are 0 and the others solve the equations without them; with this few prices all choices
    are tried. A share at 0 keeps the prior's uncertainty.
    """
    size = units.shape[1]
    matrix = (units.T * weights) @ units / noise**2 + np.eye(size) / _SPREAD**2
    target = (units.T * weights) @ measured / noise**2 + np.ones(size) / _SPREAD**2
    best, least = np.zeros(size), 0.0
    for chosen in product((True, False), repeat=size):
        kept = np.flatnonzero(chosen)
        if not len(kept):
            continue
        found = np.linalg.solve(matrix[np.ix_(kept, kept)], target[kept])
        height = -float(target[kept] @ found)  # twice the objective, less what is the same for all
        if (found >= 0).all() and height < least:
            best, least = np.zeros(size), height
            best[kept] = found
        if len(kept) == size and (found >= 0).all():
            break
    return best, np.asarray(np.linalg.inv(matrix), dtype=np.float64)
