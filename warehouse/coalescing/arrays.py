"""Computes the rows of a coalesced table as arrays of numbers, for neighbours with equal values; :mod:`.islands` does it by SQL.

Groups and values are replaced by numbers: equal values have equal numbers. In a large table an update changes few rows of each
group: one at the edge of the window, and one or two where points arrived. A query would sort, group and compare all other rows
with their stamps, too; arrays need none of this work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

__all__ = ["Moved", "Points", "RowArrays", "StoredArrays", "hit_rows", "moved", "places"]

_LATEST = np.iinfo(np.int64).max
_EARLIEST = np.iinfo(np.int64).min


@dataclass(frozen=True)
class StoredArrays:
    """The rows of a table: for each row its group, its value, its end, and whether it is open.

    ``stamps`` has the stamps of all members; the stamps of row ``n`` are ``stamps[starts[n]:starts[n + 1]]``.
    """

    group: Numbers
    value: Numbers
    ends: Numbers
    open: Truths
    stamps: Numbers
    starts: Numbers


@dataclass(frozen=True)
class Points:
    """Points that arrived; if several points have the same group and stamp, the first in this order counts."""

    group: Numbers
    value: Numbers
    at: Numbers


@dataclass(frozen=True)
class RowArrays:
    """Rows with their members, which are ``size`` many from ``begin`` on in ``stamps``."""

    group: Numbers
    source: Numbers
    begin: Numbers
    size: Numbers
    stamps: Numbers

    @property
    def first(self) -> Numbers:
        """The first stamp of each row."""
        stamps: Numbers = self.stamps[self.begin]
        return stamps

    @property
    def last(self) -> Numbers:
        """The last stamp of each row."""
        stamps: Numbers = self.stamps[self.begin + self.size - 1]
        return stamps


@dataclass(frozen=True)
class Moved:
    """The rows of a table after a batch of points, in order of group and start.

    ``source`` is the number of the stored row or point that gives a row its group and value; points are numbered after the stored
    rows. ``same`` is True where the stored row of that number is unchanged. ``late`` counts the points that had left the window,
    ``repeated`` the points with the group and stamp of another point.
    """

    rows: RowArrays
    same: Truths
    ends: Numbers
    open: Truths
    late: int
    repeated: int


def moved(stored: StoredArrays, points: Points, edge: int) -> Moved:
    """Return the rows of a table after a batch of points, with the stamps from ``edge`` on.

    In each group with points, it computes these rows again: from the row at or before the first point to the row after the last
    point. ``stored`` need not have the other rows of the group.
    """
    numbers = np.flatnonzero(points.at >= edge)
    late = len(points.at) - len(numbers)
    order = _once(points, numbers)
    hit = _hit(stored.group, stored.stamps[stored.starts[:-1]], points.group[order], points.at[order])
    members, repeated = _members(stored, points, order, np.flatnonzero(hit), edge)
    runs = _runs(*members)
    untouched = _rest(stored, np.flatnonzero(~hit), edge)
    rows, whole = _ordered(untouched, runs)
    return _compared(stored, rows, _ends(stored, rows, whole, np.flatnonzero(hit)), late, len(numbers) - len(order) + repeated)


def hit_rows(group: Numbers, first: Numbers, points: Points, edge: int) -> Truths:
    """Return which rows, known by their groups and first stamps, :func:`moved` takes apart."""
    order = _once(points, np.flatnonzero(points.at >= edge))
    return _hit(group, first, points.group[order], points.at[order])


def _once(points: Points, numbers: Numbers) -> Numbers:
    """Return the numbers of points in order of their groups and stamps, without points of the same group and stamp."""
    order = numbers[_in_order(points.group[numbers], points.at[numbers])]
    return order[_begins(points.group[order], points.at[order])]


def _begins(*columns: Numbers) -> Truths:
    """Return, for each row of sorted columns, whether it differs from the row before in one of them."""
    begins = np.ones(len(columns[0]), dtype=bool)
    if len(begins):
        begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return begins


def _in_order(group: Numbers, at: Numbers) -> Numbers:
    """Return the stable order by group and stamp. One sort is faster than two, above all if the input is nearly sorted."""
    if not len(at):
        return np.zeros(0, np.int64)
    least = int(at.min())
    span = int(at.max()) - least + 1
    if (int(group.max()) + 1) * span > _LATEST:
        return np.lexsort((at, group))
    return np.argsort(group * span + (at - least), kind="stable")


def places(begin: Numbers, size: Numbers) -> Numbers:
    """Return the positions of all elements of slices, which are given by their begins and sizes."""
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    positions: Numbers = np.arange(total) + np.repeat(begin - (ends - size), size)
    return positions


def _hit(group: Numbers, first: Numbers, groups: Numbers, at: Numbers) -> Truths:
    """Return which rows are taken apart; the points are in order of their groups and stamps, without repetitions."""
    is_hit = np.zeros(len(group), dtype=bool)
    if not len(groups) or not len(is_hit):
        return is_hit
    order = _in_order(group, first)
    group, first = group[order], first[order]
    heads = np.flatnonzero(_begins(groups))
    count = int(max(group[-1], groups[-1])) + 1
    low, high = np.full(count, _LATEST), np.full(count, _EARLIEST)
    low[groups[heads]] = at[heads]
    high[groups[heads]] = at[np.append(heads[1:], len(at)) - 1]
    begins = _begins(group)
    previous = np.where(begins, _EARLIEST, np.append(_EARLIEST, first[:-1]))
    following = np.where(np.append(begins[1:], True), _LATEST, np.append(first[1:], _LATEST))
    has_points = low[group] < _LATEST
    reached = (first <= high[group]) | (previous <= high[group])
    is_hit[order] = has_points & reached & (following > low[group])
    return is_hit


def _members(
    stored: StoredArrays, points: Points, order: Numbers, hit: Numbers, edge: int
) -> tuple[tuple[Numbers, Numbers, Numbers, Numbers], int]:
    """Return the members of rows that are taken apart, and the points, in order; and the number of repeated points.

    The members are four arrays: groups, values, stamps, and sources.
    """
    begin, size = stored.starts[hit], stored.starts[hit + 1] - stored.starts[hit]
    at, row = stored.stamps[places(begin, size)], np.repeat(hit, size)
    in_window = at >= edge
    at, row = at[in_window], row[in_window]
    group = np.concatenate((stored.group[row], points.group[order]))
    value = np.concatenate((stored.value[row], points.value[order]))
    source = np.concatenate((row, order + len(stored.group)))
    at = np.concatenate((at, points.at[order]))
    placed = _in_order(group, at)  # it is stable: a stored member comes before a point
    first = placed[_begins(group[placed], at[placed])]
    return (group[first], value[first], at[first], source[first]), len(placed) - len(first)


def _runs(group: Numbers, value: Numbers, at: Numbers, source: Numbers) -> RowArrays:
    """The rows that members in order make."""
    begin = np.flatnonzero(_begins(group, value))
    return RowArrays(group[begin], source[begin], begin, np.diff(np.append(begin, len(at))), at)


def _rest(stored: StoredArrays, rows: Numbers, edge: int) -> RowArrays:
    """Return the rows that stay, without the stamps that have left the window."""
    begin, end = stored.starts[rows], stored.starts[rows + 1]
    cut = np.flatnonzero(stored.stamps[begin] < edge)
    size = (end - begin)[cut]
    expired = np.add.reduceat(stored.stamps[places(begin[cut], size)] < edge, np.cumsum(size) - size) if len(cut) else 0
    begin[cut] += expired
    remains = begin < end
    rows, begin = rows[remains], begin[remains]
    return RowArrays(stored.group[rows], rows, begin, end[remains] - begin, stored.stamps)


def _ordered(untouched: RowArrays, runs: RowArrays) -> tuple[RowArrays, Truths]:
    """Return all rows in order of their groups and starts, and which of them were not taken apart."""
    group = np.concatenate((untouched.group, runs.group))
    order = _in_order(group, np.concatenate((untouched.first, runs.first)))
    stamps = np.concatenate((untouched.stamps, runs.stamps))
    begin = np.concatenate((untouched.begin, runs.begin + len(untouched.stamps)))[order]
    size = np.concatenate((untouched.size, runs.size))[order]
    source = np.concatenate((untouched.source, runs.source))[order]
    return RowArrays(group[order], source, begin, size, stamps), order < len(untouched.group)


def _ends(stored: StoredArrays, rows: RowArrays, whole: Truths, hit: Numbers) -> tuple[Numbers, Truths]:
    """Return when rows end, and which rows are open.

    A row that was not taken apart (``whole``) keeps its end. The last new row of a group ends where the last row that was taken
    apart did; it is open if that row was open, or if the group is new.
    """
    ends, is_open = rows.last, np.ones(len(rows.group), dtype=bool)
    if not len(ends):
        return ends, is_open
    ends[whole], is_open[whole] = stored.ends[rows.source[whole]], stored.open[rows.source[whole]]
    is_new = ~whole
    next_made = is_new & np.append(is_new[1:] & ~_begins(rows.group)[1:], False)
    ends[next_made], is_open[next_made] = rows.first[np.flatnonzero(next_made) + 1], False
    order = hit[_in_order(stored.group[hit], stored.stamps[stored.starts[hit]])]
    last = np.full(int(max(rows.group[-1], stored.group.max(initial=0))) + 1, -1)
    last[stored.group[order]] = order  # the last of several rows counts
    final = np.flatnonzero(is_new & ~next_made)
    previous = last[rows.group[final]]
    final, previous = final[previous >= 0], previous[previous >= 0]
    closed = ~stored.open[previous]
    ends[final[closed]], is_open[final[closed]] = stored.ends[previous[closed]], False
    return ends, is_open


def _compared(stored: StoredArrays, rows: RowArrays, ends: tuple[Numbers, Truths], late: int, repeated: int) -> Moved:
    """Compare the rows and their ends with the stored rows."""
    first, last = rows.first, rows.last
    until, is_open = ends
    is_same = np.zeros(len(first), dtype=bool)
    old = np.flatnonzero(rows.source < len(stored.group))
    source = rows.source[old]
    begin, end = stored.starts[source], stored.starts[source + 1]
    is_same[old] = (
        (stored.stamps[begin] == first[old]) & (stored.stamps[end - 1] == last[old]) & (end - begin == rows.size[old])
        & (stored.ends[source] == until[old]) & (stored.open[source] == is_open[old])
    )  # fmt: skip
    return Moved(rows, is_same, until, is_open, late, repeated)
