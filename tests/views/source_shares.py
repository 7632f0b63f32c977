"""What the source says of lost results, to compare the exact shares with: window-joins sheet, section 7."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

from warehouse.views.costs.losses import _finite, _started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.views.costs.losses import Number


def short_share(lifetimes: Sequence[Number], interval: Number) -> Fraction:
    """Return the share of a join's results that live shorter than `interval`: all that may be lost, section 7, last column.

    Parameters and errors as for :func:`lost_share`; the clock is continuous.
    """
    finite = _finite(lifetimes, interval)
    if not finite:
        return Fraction(0)
    if Fraction(interval) > min(finite):
        return Fraction(1)
    return 1 - _started([lifetime - Fraction(interval) for lifetime in finite]) / _started(finite)


def rule_share(lifetimes: Sequence[Number], interval: Number, rates: Sequence[Number] | None = None) -> Fraction:
    """Return the source's estimate, Δ/T, for comparison: it is the share of *short-lived* results of two inputs.

    Parameters
    ----------
    lifetimes, interval
        As for :func:`lost_share`.
    rates
        Where lifetimes differ, the weights of the mean of the single Δ/T (the source says "weighted by stream rates" and
        no more); without rates, and when all are 0, each input counts the same.

    Raises
    ------
    ValueError
        When a lifetime or the interval is not positive, or there are not as many rates as lifetimes.
    """
    _finite(lifetimes, interval)
    weights = [Fraction(rate) for rate in rates or ()]
    if not any(weights):
        weights = [Fraction(1)] * len(lifetimes)
    single = (
        min(Fraction(1), Fraction(interval) / Fraction(lifetime)) if lifetime < inf else Fraction(0) for lifetime in lifetimes
    )
    return sum((weight * share for weight, share in zip(weights, single, strict=True)), start=Fraction(0)) / sum(weights)
