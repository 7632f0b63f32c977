"""Predicts the share of a join's results that periodic evaluation loses.

A result that lives in ``[gen, exp)`` is seen by the evaluations at ``anchor + kΔ``, and without restore it is lost if
no evaluation falls into its life. A lifetime below Δ is necessary but not sufficient: a result of lifetime L is lost with
probability ``max(0, 1 - L/Δ)``; window-joins sheet, section 7, and update-patterns sheet, section 4.4.

The shares apply to an equi-join of windows of T_1..T_n whose rows arrive at constant rates and independently of each
other. Rates and keys then cancel out. Lifetimes, Δ and the tick are in one unit; shares are exact fractions of 0 to 1.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, prod
from typing import TYPE_CHECKING, TypeAlias

from warehouse.time import at_slot, slot

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["is_lost", "lagged_share", "lost_share"]

Number: TypeAlias = float | Fraction


def is_lost(gen: int, exp: int, anchor: int, interval: int) -> bool:
    """Whether no evaluation sees a result that lives in [gen, exp): the first one at or after gen is at exp or later.

    All in microseconds, of any sign; `interval` is positive. No evaluation sees an empty life.

    Examples
    --------
    >>> is_lost(7, 10, 0, 5), is_lost(7, 11, 0, 5), is_lost(10, 11, 0, 5)
    (True, False, False)
    """
    return at_slot(slot(gen, anchor, interval), anchor, interval) >= exp


def lost_share(lifetimes: Sequence[Number], interval: Number, *, tick: Number = 0) -> Fraction:
    """Return the share of a join's results that evaluation at every `interval` loses, section 7.

    1 - (ΠT - Π(T-d)) / (Δ·ΣΠT'), the sum over the inputs of the product of the other lifetimes, d = min(Δ, min T). The
    sheet has Δ <= T, hence d = Δ; beyond that no result outlives the shortest window. A single input loses nothing
    while Δ <= T. Inputs that never expire (``math.inf``) do not change the share.

    Parameters
    ----------
    lifetimes
        T of each input, positive.
    interval
        Δ, positive.
    tick
        The unit of arrival times; lifetimes and Δ are multiples of it. 0: a continuous clock. With a coarse clock several rows
        arrive at one instant, and fewer results are lost. ΣΠT' is then (ΠT - Π(T-tick)) / tick.

    Raises
    ------
    ValueError
        When a lifetime or the interval is not positive.

    Examples
    --------
    >>> [round(float(lost_share(windows, 10)), 4) for windows in ((60, 60), (60, 30), (60, 60, 60))]
    [0.0833, 0.1111, 0.1574]
    """
    finite = _finite(lifetimes, interval)
    if not finite:
        return Fraction(0)
    within = min(Fraction(interval), *finite)
    seen = prod(finite) - prod(lifetime - within for lifetime in finite)
    return 1 - seen / (Fraction(interval) * _started(finite, Fraction(tick)))


def lagged_share(lifetime: Number, lag: Number, interval: Number) -> Fraction:
    """Return the share lost when new rows meet only rows of age `lag`, since one stream trails the other, section 7.

    Results then live for about T - lag. With a lag of T or more there is no result, and the share is 1.

    Examples
    --------
    >>> [float(lagged_share(60, lag, 10)) for lag in (50, 52, 55, 58, 60)]
    [0.0, 0.2, 0.5, 0.8, 1.0]
    """
    lived = Fraction(lifetime) - Fraction(lag)
    return min(Fraction(1), max(Fraction(0), 1 - lived / Fraction(interval)))


def _finite(lifetimes: Sequence[Number], interval: Number) -> list[Fraction]:
    if not (lifetimes and all(lifetime > 0 for lifetime in lifetimes) and interval > 0):
        raise ValueError(f"lifetimes {[*lifetimes]} and interval {interval}: give lifetimes and an interval above 0")
    return [Fraction(lifetime) for lifetime in lifetimes if lifetime < inf]


def _started(lifetimes: list[Fraction], tick: Fraction = Fraction(0)) -> Fraction:
    """Return how many results start per unit of time, up to a factor: the derivative of ΠT by a change of all T."""
    if tick:
        return (prod(lifetimes, start=Fraction(1)) - prod(lifetime - tick for lifetime in lifetimes)) / tick
    other_lifetimes = (lifetimes[:index] + lifetimes[index + 1 :] for index in range(len(lifetimes)))
    return sum((prod(factors, start=Fraction(1)) for factors in other_lifetimes), start=Fraction(0))
