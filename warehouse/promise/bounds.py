"""Computes bounds of an aggregate while some rows are unread, from numbers of rows and from minima and maxima.

Rows are read file by file. Between ``least`` and ``most`` rows of an unread file belong to a group: 0 to the number of its rows,
if rows may be dead or filtered out. If its footer has statistics, their values are in ``[low, high]``. Invariant: for all unread
rows that agree with these facts, the aggregate over all rows is within the bounds. A bound that nothing limits is None. A sum, an
average or a median over no rows is null, which no bound covers.

An estimate assumes that unread rows are like the rows that were read. An estimate outside the bounds is moved to the nearest
bound.

Source: promising-tuples sheet, 5.4 (aggregates over the regions that were reached); the bounds are an addition of this warehouse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

__all__ = ["BoundedEstimate", "Unread", "average", "count", "median", "total"]

Number = Any
"""An exact number (integer, fraction) or a float; all numbers of one call are of one kind."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Bounds of an unread file's rows of a group: of their number and of their values (None: no bound)."""

    least: int
    most: int
    low: Number | None = None
    high: Number | None = None


@dataclass(frozen=True, slots=True)
class BoundedEstimate:
    """An estimate of an aggregate, and bounds that are certain. None: no bound, or a value that is null over no rows."""

    value: Number | None
    low: Number | None
    high: Number | None


def count(read: int, unread: Sequence[Unread], share: float | None) -> BoundedEstimate:
    """Return the number of rows.

    Parameters
    ----------
    read
        How many rows of the group were read.
    unread
        The files that were not read.
    share
        The group's share of the stored rows in the files that were read; None if no file was read.

    """
    low, high = read + sum(file.least for file in unread), read + sum(file.most for file in unread)
    guess = read + round(share * sum(file.most for file in unread)) if share is not None else (low + high) // 2
    return BoundedEstimate(_clamped(guess, low, high), low, high)


def total(read: Number, rows: int, unread: Sequence[Unread], share: float | None) -> BoundedEstimate:
    """Return the sum of values; ``read`` is the sum over the ``rows`` that were read. Other parameters as for :func:`count`.

    >>> total(10, 2, [Unread(0, 3, -1, 4)], 0.5)
    BoundedEstimate(value=20.0, low=7, high=22)
    """
    low = _sum(read, (_least_product(file) for file in unread))
    high = _sum(read, (_most_product(file) for file in unread))
    if not rows:
        middle = None if low is None or high is None else (low + high) / 2
        return BoundedEstimate(middle if unread else None, low, high)
    more = 0 if share is None else round(share * sum(file.most for file in unread))
    return BoundedEstimate(_clamped(read + read * more / rows if more else read, low, high), low, high)


def average(read: Number, rows: int, unread: Sequence[Unread]) -> BoundedEstimate:
    """Return the mean of values; parameters as for :func:`total`.

    The least possible mean takes as many rows as possible from files whose least value is below it, and as few as possible from
    the others. Files are added in order of their least values while this lowers the mean.
    """
    low, high = _mean(read, rows, unread, "low"), _mean(read, rows, unread, "high")
    if not rows:
        return BoundedEstimate(None if low is None or high is None else (low + high) / 2, low, high)
    return BoundedEstimate(_clamped(read / rows, low, high), low, high)


def median(values: np.ndarray, value: float | None, unread: Sequence[Unread]) -> BoundedEstimate:
    """Return the median.

    The median can be v if the rows that can be at most v are at least as many as the rows that must be above v. The least such v
    is the lower bound; the upper bound is found in the same way.

    Parameters
    ----------
    values
        The values that were read, as ascending doubles.
    value
        Their median; None: there are no values.
    unread
        As for :func:`total`.

    """
    if not any(file.most for file in unread):
        return BoundedEstimate(value, value, value)
    low, high = _least_median(values, unread), _greatest_median(values, unread)
    if value is None:
        return BoundedEstimate(None if low is None or high is None else (low + high) / 2, low, high)
    return BoundedEstimate(_clamped(value, low, high), low, high)


def _clamped(value: Number, low: Number | None, high: Number | None) -> Number:
    if low is not None and value < low:
        return low
    return high if high is not None and value > high else value


def _sum(start: Number, parts: Iterable[Number | None]) -> Number | None:
    result = start
    for part in parts:
        if part is None:
            return None
        result += part
    return result


def _least_product(file: Unread) -> Number | None:
    if file.most == 0:
        return 0
    return None if file.low is None else (file.least if file.low >= 0 else file.most) * file.low


def _most_product(file: Unread) -> Number | None:
    if file.most == 0:
        return 0
    return None if file.high is None else (file.most if file.high >= 0 else file.least) * file.high


def _mean(read: Number, rows: int, unread: Sequence[Unread], side: Literal["low", "high"]) -> Number | None:
    sign = 1 if side == "low" else -1
    bounded = [(getattr(file, side), file) for file in unread if file.most]
    if any(bound is None for bound, _ in bounded):
        return None
    total_sum, number = sign * read, rows
    for bound, file in bounded:
        total_sum, number = total_sum + sign * bound * file.least, number + file.least
    bound_so_far = total_sum / number if number else None
    for bound, file in sorted(bounded, key=lambda pair: sign * pair[0]):
        if bound_so_far is not None and sign * bound >= bound_so_far:
            break
        total_sum, number = total_sum + sign * bound * (file.most - file.least), number + file.most - file.least
        bound_so_far = total_sum / number if number else None
    return None if bound_so_far is None else sign * bound_so_far


def _least_median(values: np.ndarray, unread: Sequence[Unread]) -> float | None:
    """Return the least median, in time that hardly grows with the number of values.

    The rows that can be at most x are the values up to x, and ``most`` rows of each file whose least value is up to x. The other
    values, and ``least`` rows of each other file, must be above x. So x can be the median if twice the number of values up to x
    reaches a number that only falls at the least value of a file. Between two such points the least x is a value of a known rank.
    """
    with_rows = [file for file in unread if file.most]
    lows = [(float(file.low), file) for file in with_rows if file.low is not None]
    if len(lows) < len(with_rows):
        return None
    needed = len(values) + sum(file.least for file in with_rows)
    candidates = [float(values[rank - 1])] if 0 < (rank := _half_rounded_up(needed)) <= len(values) else []
    for low, file in sorted(lows, key=lambda pair: pair[0]):
        needed -= file.most + file.least
        rank = _half_rounded_up(needed)
        if rank <= len(values):
            candidates.append(max(low, float(values[rank - 1])) if rank else low)
    return min(candidates, default=None)


def _half_rounded_up(number: int) -> int:
    """Return half of a number, rounded up; 0 for a negative number."""
    return max(0, -(-number // 2))


def _greatest_median(values: np.ndarray, unread: Sequence[Unread]) -> float | None:
    mirrored = [Unread(file.least, file.most, None if file.high is None else -file.high) for file in unread]
    mirrored_median = _least_median(-values[::-1], mirrored)
    return None if mirrored_median is None else -mirrored_median
