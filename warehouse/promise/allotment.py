"""Allots a budget to the units of a join: which units are made, in which order, and how much of each.

Source: promising-tuples sheet, 5.1 (preferences, shares), 6 and 8.2 (promise for the work); approximate-joins sheet, 9.4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from warehouse.promise.units import Unit, ViewBudget

__all__ = ["Worth", "allotted", "allowed_in", "densest_share", "spent"]

_FIRST_RATE = 20_000
"""Results a second, as long as no update of the view was measured."""
_STEP = 4
"""How many times as much, or as little, the seconds of a budget may allow than before."""


class Worth(NamedTuple):
    """The worth of a unit: an upper bound of its pairs, its rows of both inputs, and the value of an expression.

    ``right`` of the rows are of the second input. A unit is cut along the rows of the first one: a part joins its share of these
    with all of the second one's.
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


def allotted(units: Mapping[Unit, Worth], budget: ViewBudget, left: int) -> dict[Unit, int]:
    """Return how many pairs each unit may make, in order of preference, within the amount ``left`` of a budget.

    Between equal units the later one comes first, since its results live longest. A budget of rows takes whole units, and a part
    of the first unit that does not fit. If not even a part of a unit fits, each pair of the preferred unit counts as two rows.

    >>> from warehouse.promise.units import ViewBudget, Unit
    >>> units = {Unit(0, 1): Worth(6, 5), Unit(0, 2): Worth(1, 2), Unit(1, 1): Worth(3, 4), Unit(1, 2): Worth(0, 0)}
    >>> [(*unit, count) for unit, count in allotted(units, ViewBudget(pairs=8), 8).items()]
    [(0, 1, 6), (1, 1, 2)]
    >>> [(*unit, count) for unit, count in allotted(units, ViewBudget(pairs=5, prefer="weighted"), 5).items()]
    [(0, 1, 3), (1, 1, 2)]
    >>> [(*unit, count) for unit, count in allotted(units, ViewBudget(rows=8), 8).items()]
    [(0, 1, 6), (1, 1, 2)]
    """
    todo = {unit: worth for unit, worth in units.items() if worth.pairs > 0}
    if budget.prefer == "weighted":
        return _shared(todo, budget, left)
    order = sorted(todo, key=lambda unit: (_rank(todo[unit], budget), -unit.range, unit.bucket))
    return _of_pairs(todo, order, left) if budget.rows is None else _of_rows(todo, order, left)


def _rank(worth: Worth, budget: ViewBudget) -> float:
    """The smaller, the earlier."""
    if budget.expression is not None:
        value = worth.value
        return math.inf if value is None or math.isnan(value) else -value
    if budget.prefer == "asc":
        return worth.pairs
    return -worth.pairs if budget.rows is None else -worth.pairs / max(worth.rows, 1)


def _of_pairs(units: Mapping[Unit, Worth], order: list[Unit], left: int) -> dict[Unit, int]:
    found = {}
    for unit in order:
        if left <= 0:
            break
        found[unit] = min(left, units[unit].pairs)
        left -= found[unit]
    return found


def _of_rows(units: Mapping[Unit, Worth], order: list[Unit], left: int) -> dict[Unit, int]:
    found, rest = {}, left
    for unit in order:
        quota = units[unit].pairs_within(rest)
        if quota:
            found[unit] = quota
            rest -= units[unit].rows
        if rest <= 0:
            break
    if not found and order and left > 1:
        found[order[0]] = min(left // 2, units[order[0]].pairs)
    return found


def _shared(units: Mapping[Unit, Worth], budget: ViewBudget, left: int) -> dict[Unit, int]:
    """Shares that are proportional to the pairs, rounded by the largest remainder."""
    order = sorted(units, key=lambda unit: (-units[unit].pairs, -unit.range, unit.bucket))
    total = sum(worth.pairs for worth in units.values())
    if budget.rows is not None and sum(worth.rows for worth in units.values()) <= left:
        return {unit: units[unit].pairs for unit in order}
    whole = Worth(total, sum(worth.rows for worth in units.values()), right=sum(worth.right for worth in units.values()))
    rounded = 2 * len(order)  # a share is at most two rows more
    quota = left if budget.rows is None else max(left // 2, whole.pairs_within(left - rounded))
    if total <= quota:
        return {unit: units[unit].pairs for unit in order}
    shares = {unit: quota * units[unit].pairs // total for unit in order}
    rest = quota - sum(shares.values())
    for unit in sorted(order, key=lambda unit: -(quota * units[unit].pairs % total))[:rest]:
        shares[unit] += 1
    return {unit: share for unit, share in shares.items() if share}


def densest_share(keys: Iterable[tuple[int, int]], work: float) -> float:
    """Return the share of a join's pairs that a share of its rows gives, the keys of most pairs for a row first.

    ``keys`` are the rows of both inputs that have a key, for each key; rows without a partner are no work.

    >>> round(densest_share([(30, 30), (2, 2), (1, 1), (9, 0)], 0.5), 2), densest_share([], 0.1)
    (0.1, 1.0)
    """
    met = [Worth(left * right, left + right, right=right) for left, right in keys if left and right]
    rest, made = int(work * sum(each.rows for each in met)), 0
    for each in sorted(met, key=lambda each: -each.pairs / each.rows):
        if given := each.pairs_within(rest):
            made += given
            rest = max(0, rest - each.rows)
    total = sum(each.pairs for each in met)
    return made / total if total else 1.0


def spent(worth: Worth, budget: ViewBudget, made: int, looked_at: float) -> int:
    """Return how much of a budget a round used that made ``made`` results and read the share ``looked_at`` of a unit's places.

    >>> from warehouse.promise.units import ViewBudget
    >>> spent(Worth(100, 40), ViewBudget(pairs=10), 7, 0.5), spent(Worth(100, 40), ViewBudget(rows=10), 7, 0.5)
    (7, 20)
    """
    if budget.rows is None:
        return made
    return max(1, min(worth.rows, max(2 * made, math.ceil(worth.rows * looked_at))))


def allowed_in(seconds: float, *, before: int | None, made: int, took: float | None) -> int:
    """Return how many results a budget of seconds allows an update, at least one.

    Parameters
    ----------
    seconds
        The budget.
    before
        The number of results that it allowed the last update; None: there was no update with this budget.
    made, took
        The number of results that this update made, and the seconds that it took; None: unknown.

    Examples
    --------
    >>> allowed_in(2.0, before=None, made=0, took=None)
    40000
    >>> [allowed_in(2.0, before=1000, made=1000, took=took) for took in (1.0, 4.0, 0.1)]
    [2000, 500, 4000]
    >>> [allowed_in(2.0, before=1000, made=10, took=took) for took in (1.0, 4.0)]
    [1000, 250]

    """
    if before is None:
        return max(1, int(seconds * _FIRST_RATE))
    if took is None or not took or (made < before and took <= seconds):
        return before
    fitting = int(made * seconds / took)
    return max(1, before // _STEP, min(fitting, before * _STEP))
