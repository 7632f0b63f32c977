"""Frequent items of a window from the lists of its slots: Algorithm 6 (frequent-items sheet, sections 3 and 4).

Invariant of a summary S of a bag of items, with `rank` by count descending, then item ascending:
S.listed = { (x, count(x)) : rank(x) <= k }, and an item that is not listed occurs at most S.delta times.

The bag of a summary may be a slot, a late batch of a slot, or a pair of slot and expiration slot: the guarantees add up
over disjoint bags in any order (section 8).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["FrequentItem", "ItemBounds", "Summary", "above", "bounds", "summarise", "top"]

Item = Any
"""A value of the item's column: hashable, and comparable with the other values; None comes last."""


@dataclass(frozen=True)
class Summary:
    """The k most frequent items of a bag with their exact counts.

    Parameters
    ----------
    listed
        Items and counts, by rank.
    delta
        The largest count that an item outside the list can have, as Algorithm 6 takes it: the count of rank k; 0 if the bag
        has fewer than k items.
    after
        The count of rank k + 1; 0 if every item is listed. It is the tight choice of ``delta`` (section 9, item 2).
    rows
        Rows of the bag.
    distinct
        Distinct items of the bag.
    """

    listed: tuple[tuple[Item, int], ...]
    delta: int
    after: int
    rows: int
    distinct: int

    def shortened(self, k: int) -> Summary:
        """Return the summary of the same bag with the ``k`` first items: a shorter list is a prefix (section 11).

        Raises
        ------
        ValueError
            If ``k`` is less than 1, or the summary has fewer items than ``k`` and than the bag.
        """
        if k < 1 or (k > len(self.listed) and len(self.listed) < self.distinct):
            message = f"a list of {len(self.listed)} of {self.distinct} items has no {k} first ones"
            raise ValueError(message)
        if k >= len(self.listed):
            return replace(self, delta=self.listed[-1][1] if k == len(self.listed) else 0)
        return replace(self, listed=self.listed[:k], delta=self.listed[k - 1][1], after=self.listed[k][1])

    def tight(self) -> Summary:
        """Return the summary with the tight ``delta``: more items are found above the sum of the deltas (section 9, item 2)."""
        return replace(self, delta=self.after)


def summarise(counts: Mapping[Item, int], k: int) -> Summary:
    """Return the summary of a bag.

    Parameters
    ----------
    counts
        The exact count of each item, at least 1.
    k
        The length of the list, at least 1.

    Examples
    --------
    >>> summarise({"a": 2, "b": 2, "c": 5, "d": 1}, 2)
    Summary(listed=(('c', 5), ('a', 2)), delta=2, after=2, rows=10, distinct=4)
    """
    ranked = sorted(counts.items(), key=_rank)
    return Summary(
        listed=tuple(ranked[:k]),
        delta=ranked[k - 1][1] if len(ranked) >= k else 0,
        after=ranked[k][1] if len(ranked) > k else 0,
        rows=sum(counts.values()),
        distinct=len(ranked),
    )


def _rank(entry: tuple[Item, int]) -> tuple[int, bool, Item]:
    item, count = entry
    return -count, item is None, "" if item is None else item


@dataclass(frozen=True)
class ItemBounds:
    """The bounds of every item from the lists of a window.

    Parameters
    ----------
    items
        The bounds of each listed item, its least and its greatest count: ``est(x)`` and ``est(x) + slack(x)`` (G4).
    delta
        The greatest count of an item that is on no list (G1).
    rows
        Rows of the window.
    """

    items: Mapping[Item, tuple[int, int]]
    delta: int
    rows: int


def bounds(summaries: Iterable[Summary]) -> ItemBounds:
    """Return the bounds of a window from the summaries of disjoint bags that make it up.

    Examples
    --------
    >>> window = [summarise({"a": 4, "b": 3, "c": 2}, 2), summarise({"a": 5, "c": 3, "b": 1}, 2)]
    >>> bounds(window).items
    {'a': (9, 9), 'b': (3, 6), 'c': (3, 6)}
    """
    least: defaultdict[Item, int] = defaultdict(int)
    listed: defaultdict[Item, int] = defaultdict(int)
    delta = rows = 0
    for summary in summaries:
        delta += summary.delta
        rows += summary.rows
        for item, count in summary.listed:
            least[item] += count
            listed[item] += summary.delta
    return ItemBounds({item: (count, count + delta - listed[item]) for item, count in least.items()}, delta, rows)


@dataclass(frozen=True)
class FrequentItem:
    """An item of an answer: its count is within the bounds; a certain one surely belongs to the answer."""

    item: Item
    at_least: int
    at_most: int
    certain: bool


@dataclass(frozen=True)
class Frequent:
    """An answer: its items by rank, and whether it has every item that it should have."""

    items: tuple[FrequentItem, ...]
    complete: bool


def above(window: ItemBounds, share: Fraction | float) -> Frequent:
    """Return the items that certainly or possibly make up more than a share of a window.

    An item is certain if it surely occurs more than ``share * rows`` times (no false positives, G2), possible if its upper
    bound does. The answer is complete if the threshold is at least ``delta`` (G6): an item above it is on a list.

    Parameters
    ----------
    window
        The bounds of the window.
    share
        The share of the rows of the window, from 0 to 1.

    Examples
    --------
    >>> window = bounds([summarise({"a": 6, "b": 3, "c": 1}, 2), summarise({"a": 5, "c": 4, "b": 1}, 2)])
    >>> above(window, 0.4)
    Frequent(items=(FrequentItem(item='a', at_least=11, at_most=11, certain=True),), complete=True)
    >>> above(window, 0.3).items[1:], above(window, 0.3).complete
    ((FrequentItem(item='c', at_least=4, at_most=7, certain=False), FrequentItem(item='b', at_least=3, at_most=7, \
certain=False)), False)
    """
    threshold = Fraction(share) * window.rows
    items = [
        FrequentItem(item, least, most, certain=least > threshold)
        for item, (least, most) in window.items.items()
        if most > threshold
    ]
    return Frequent(_ranked(items), complete=threshold >= window.delta)


def top(window: ItemBounds, n: int) -> Frequent:
    """Return the items that can belong to the ``n`` most frequent ones of a window, by their lower bound.

    An item is certain if fewer than ``n`` others can occur as often. For listed items the upper bound decides, for unlisted items
    ``delta``, and there may be any number of these. An item is left out if ``n`` others surely occur more often. The answer is
    complete if an unlisted item cannot belong to the ``n``.
    """
    least = sorted((low for low, _ in window.items.values()), reverse=True)
    needed = least[n - 1] if len(least) >= n else 0
    most = sorted((high for _, high in window.items.values()), reverse=True)
    items = []
    for item, (low, high) in window.items.items():
        if high >= needed:
            rivals = _at_least(most, low) - 1
            unlisted = window.delta >= low and window.delta > 0
            items.append(FrequentItem(item, low, high, certain=rivals < n and not unlisted))
    return Frequent(_ranked(items), complete=window.delta < needed or window.delta == 0)


def _at_least(descending: list[int], value: int) -> int:
    low, high = 0, len(descending)
    while low < high:
        middle = (low + high) // 2
        if descending[middle] >= value:
            low = middle + 1
        else:
            high = middle
    return low


def _ranked(items: Iterable[FrequentItem]) -> tuple[FrequentItem, ...]:
    return tuple(sorted(items, key=lambda item: _rank((item.item, item.at_least))))
