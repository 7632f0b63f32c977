"""How uneven sub-indices are: Theorem 4.1 and Appendix A of the source, corrected and as published.

Setting: G = E = m, n = m^2, p = m * q with q >= 2, constant rate, uniform lifetimes. "Variance" is the source's: the
sum over the sub-indices of (size - mean)^2 in units u^2, averaged over updates, not divided by n;
doubly-partitioned-index sheet, section 6.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warehouse.layout.oracle import Model

__all__ = [
    "cv_chronological",
    "cv_round_robin",
    "published_chronological",
    "published_round_robin",
    "sampling_noise",
    "variance_chronological",
    "variance_ratio",
    "variance_round_robin",
]


def variance_round_robin(side: int, periods: int, model: Model) -> Fraction:
    """Sum of squared deviations with round-robin assignments; the same after every update.

    Examples
    --------
    >>> variance_round_robin(4, 16, "W"), variance_round_robin(4, 36, "C")
    (Fraction(60, 1), Fraction(243, 1))
    """
    parts = side if model == "C" else side**2
    return Fraction(periods**2, 4) * (1 - Fraction(1, parts))


def variance_chronological(side: int, periods: int, model: Model) -> Fraction:
    """Sum of squared deviations with chronological assignments, averaged over p updates."""
    square = Fraction(periods, side) ** 2
    return Fraction(side - 1, 12) * square * (_constant(model) + (3 * side - 4) * square)


def variance_ratio(side: int, periods: int, model: Model) -> Fraction:
    """Chronological over round-robin; above 1 for m >= 2 and q > 1, as the theorem claims."""
    square = Fraction(periods, side) ** 2
    parts = side if model == "C" else side + 1
    return (_constant(model) + (3 * side - 4) * square) / (3 * parts)


def published_chronological(side: int, periods: int) -> Fraction:
    """The printed form of the chronological variance; right for n = 4 only.

    Its proof lets all n - m cells off the diagonal change at every update; only the 2(m-1) of the current row and
    column do.
    """
    n, square = side**2, Fraction(periods) ** 2
    return square / (12 * side) - square / (4 * n) + square**2 / (12 * n) - square**2 / (12 * n * side) + square / 6


def published_round_robin(side: int, periods: int, *, sign_fixed: bool = False) -> Fraction:
    """The printed form of the round-robin variance, or with its last sign as the source's sum gives it; never right.

    The proof's second state loses rows: after every update exactly m(m+1)/2 cells are large and m(m-1)/2 small.
    """
    n = side**2
    last = Fraction(-1 if sign_fixed else 1, n * side)
    return Fraction(periods**2, 2) * (Fraction(1, 2) + Fraction(1, 2 * n) + last)


def cv_round_robin(side: int, periods: int) -> float:
    """Standard deviation over mean of the cell sizes with round-robin, model C."""
    return sqrt(side**2 * (1 - 1 / side)) / periods


def cv_chronological(side: int, periods: int) -> float:
    """Standard deviation over mean with chronological assignments, from the variance averaged over updates, model C."""
    square = (periods / side) ** 2
    return sqrt((side - 1) * (4 + (3 * side - 4) * square) / (3 * side**2 * square))


def sampling_noise(side: int, periods: int, rate: int) -> Fraction:
    """What `rate` random rows per update add to the sum of squared deviations at most: N(1 - 1/n)/u^2, in u^2."""
    return Fraction(rate * periods, 2) * (1 - Fraction(1, side**2)) / Fraction(rate, periods) ** 2


def _constant(model: Model) -> int:
    return 4 if model == "C" else 7
