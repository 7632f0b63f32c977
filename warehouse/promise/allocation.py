"""Allocates a budget to the units of a join: which units are made, in which order, and how much of each.

Source: promising-tuples sheet, 5.1 (preferences, shares), 6 and 8.2 (promise for the work); approximate-joins sheet, 9.4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from warehouse.promise.units import Unit, ViewBudget

__all__ = ["Worth", "allocate", "budget_used", "densest_share", "results_allowed"]

_FIRST_RATE = 20_000
"""Results a second, before an update of the view was measured."""
_MAX_CHANGE = 4
"""The greatest factor by which the number of results that seconds allow may rise or fall from one update to the next."""


class Worth(NamedTuple):
    """The worth of a unit: an upper bound of its pairs, its rows of both inputs, and the value of an expression.

    ``right`` of these rows are rows of the second input. A part of a unit joins a share of the first input's rows with all rows
    of the second input.
    """

    pairs: int
    rows: int
    value: float | None = None
    right: int = 0

    def pairs_within(self, rows: int) -> int:
        """Return how many pairs a number of rows gives.

        >>> [Worth(400, 40, right=20).pairs_within(rows) for rows in (40, 30, 21, 20)]
        [400, 200, 20, 0]
        """
        if rows >= self.rows:
            return self.pairs
        return max(0, self.pairs * (rows - self.right) // (self.rows - self.right))


def allocate(units: Mapping[Unit, Worth], budget: ViewBudget, remaining: int) -> dict[Unit, int]:
    """Return how many pairs each unit may make, in order of preference, within the amount ``remaining`` of a budget.

    Between equal units the later one comes first, since its results live longest. A budget of rows takes whole units, and a part
    of the first unit that does not fit. If not even a part of a unit fits, each pair of the preferred unit counts as two rows.

    >>> from warehouse.promise.units import ViewBudget, Unit
    >>> units = {Unit(0, 1): Worth(6, 5), Unit(0, 2): Worth(1, 2), Unit(1, 1): Worth(3, 4), Unit(1, 2): Worth(0, 0)}
    >>> [(*unit, count) for unit, count in allocate(units, ViewBudget(pairs=8), 8).items()]
    [(0, 1, 6), (1, 1, 2)]
    >>> [(*unit, count) for unit, count in allocate(units, ViewBudget(pairs=5, prefer="weighted"), 5).items()]
    [(0, 1, 3), (1, 1, 2)]
    >>> [(*unit, count) for unit, count in allocate(units, ViewBudget(rows=8), 8).items()]
    [(0, 1, 6), (1, 1, 2)]
    """
    with_pairs = {unit: worth for unit, worth in units.items() if worth.pairs > 0}
    if budget.prefer == "weighted":
        return _proportional_shares(with_pairs, budget, remaining)
    order = sorted(with_pairs, key=lambda unit: (_rank(with_pairs[unit], budget), -unit.range, unit.bucket))
    return _pairs_in_order(with_pairs, order, remaining) if budget.rows is None else _rows_in_order(with_pairs, order, remaining)


def _rank(worth: Worth, budget: ViewBudget) -> float:
    """Return the rank of a unit; units of smaller rank come first."""
    if budget.expression is not None:
        value = worth.value
        return math.inf if value is None or math.isnan(value) else -value
    if budget.prefer == "asc":
        return worth.pairs
    return -worth.pairs if budget.rows is None else -worth.pairs / max(worth.rows, 1)


def _pairs_in_order(units: Mapping[Unit, Worth], order: list[Unit], remaining: int) -> dict[Unit, int]:
    allocated = {}
    for unit in order:
        if remaining <= 0:
            break
        allocated[unit] = min(remaining, units[unit].pairs)
        remaining -= allocated[unit]
    return allocated


def _rows_in_order(units: Mapping[Unit, Worth], order: list[Unit], remaining: int) -> dict[Unit, int]:
    allocated, remaining_rows = {}, remaining
    for unit in order:
        quota = units[unit].pairs_within(remaining_rows)
        if quota:
            allocated[unit] = quota
            remaining_rows -= units[unit].rows
        if remaining_rows <= 0:
            break
    if not allocated and order and remaining > 1:
        allocated[order[0]] = min(remaining // 2, units[order[0]].pairs)
    return allocated


def _proportional_shares(units: Mapping[Unit, Worth], budget: ViewBudget, remaining: int) -> dict[Unit, int]:
    """Return shares that are proportional to the pairs, rounded by the largest remainder."""
    order = sorted(units, key=lambda unit: (-units[unit].pairs, -unit.range, unit.bucket))
    total = sum(worth.pairs for worth in units.values())
    if budget.rows is not None and sum(worth.rows for worth in units.values()) <= remaining:
        return {unit: units[unit].pairs for unit in order}
    all_units = Worth(total, sum(worth.rows for worth in units.values()), right=sum(worth.right for worth in units.values()))
    rounded = 2 * len(order)  # a share is at most two rows more
    quota = remaining if budget.rows is None else max(remaining // 2, all_units.pairs_within(remaining - rounded))
    if total <= quota:
        return {unit: units[unit].pairs for unit in order}
    shares = {unit: quota * units[unit].pairs // total for unit in order}
    undistributed = quota - sum(shares.values())
    for unit in sorted(order, key=lambda unit: -(quota * units[unit].pairs % total))[:undistributed]:
        shares[unit] += 1
    return {unit: share for unit, share in shares.items() if share}


def densest_share(keys: Iterable[tuple[int, int]], work: float) -> float:
    """Return the share of a join's pairs that are made from a share of its rows, if keys with most pairs per row come first.

    ``keys`` has the number of rows of both inputs, for each key; rows without a partner do not count. ``work`` is the share of
    the rows.

    >>> round(densest_share([(30, 30), (2, 2), (1, 1), (9, 0)], 0.5), 2), densest_share([], 0.1)
    (0.1, 1.0)
    """
    with_partners = [Worth(left * right, left + right, right=right) for left, right in keys if left and right]
    remaining, made = int(work * sum(worth.rows for worth in with_partners)), 0
    for worth in sorted(with_partners, key=lambda worth: -worth.pairs / worth.rows):
        if pairs := worth.pairs_within(remaining):
            made += pairs
            remaining = max(0, remaining - worth.rows)
    total = sum(worth.pairs for worth in with_partners)
    return made / total if total else 1.0


def budget_used(worth: Worth, budget: ViewBudget, made: int, share_read: float) -> int:
    """Return how much of a budget was used by a round that made ``made`` results from the share ``share_read`` of a unit.

    >>> from warehouse.promise.units import ViewBudget
    >>> budget_used(Worth(100, 40), ViewBudget(pairs=10), 7, 0.5), budget_used(Worth(100, 40), ViewBudget(rows=10), 7, 0.5)
    (7, 20)
    """
    if budget.rows is None:
        return made
    return max(1, min(worth.rows, max(2 * made, math.ceil(worth.rows * share_read))))


def results_allowed(seconds: float, *, before: int | None, made: int, took: float | None) -> int:
    """Return how many results a budget of seconds allows an update, at least one.

    Parameters
    ----------
    seconds
        The budget.
    before
        The number of results that it allowed for the last update; None: there was no update with this budget.
    made, took
        The number of results that this update made, and the seconds that it took; None: unknown.

    Examples
    --------
    >>> results_allowed(2.0, before=None, made=0, took=None)
    40000
    >>> [results_allowed(2.0, before=1000, made=1000, took=took) for took in (1.0, 4.0, 0.1)]
    [2000, 500, 4000]
    >>> [results_allowed(2.0, before=1000, made=10, took=took) for took in (1.0, 4.0)]
    [1000, 250]

    """
    if before is None:
        return max(1, int(seconds * _FIRST_RATE))
    if took is None or not took or (made < before and took <= seconds):
        return before
    fitting = int(made * seconds / took)
    return max(1, before // _MAX_CHANGE, min(fitting, before * _MAX_CHANGE))
