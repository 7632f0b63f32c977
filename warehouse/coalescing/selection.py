"""Which coalesced tables to keep eagerly: the exact optimum (temporal-coalescing sheet, section 11).

``minimise sum(eager x + scan (1 - x)) + shared y`` with ``y >= 1 - x`` for each table: all lazy ones share one extent, which is
paid once if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LARGEST", "Selection", "Storage", "cost_of", "select"]

LARGEST = 20
"""Tables up to which every choice is tried where storage is limited; above it, branch and bound."""


@dataclass(frozen=True)
class Selection:
    """Which tables are eager, in their order, and the cost of this choice."""

    eager: tuple[bool, ...]
    cost: float


@dataclass(frozen=True)
class Storage:
    """The bytes of each table if it is eager, the bytes of the shared extent, and the limit for all bytes."""

    eager: Sequence[float]
    shared: float
    limit: float


def cost_of(eager: Sequence[bool], costs: Sequence[float], scans: Sequence[float], shared: float) -> float:
    """Return the cost of a choice.

    >>> cost_of([True, False], [1.0, 1.1], [1.2, 1.5], 0.5)
    3.0
    """
    table_costs = sum(cost if x else scan for x, cost, scan in zip(eager, costs, scans, strict=True))
    return table_costs + (0.0 if all(eager) else shared)


def select(costs: Sequence[float], scans: Sequence[float], shared: float, storage: Storage | None = None) -> Selection | None:
    """Return the choice that costs least, or None if no choice fits the storage.

    Between choices of the same cost, fewer stored extents win, then more eager tables.

    Parameters
    ----------
    costs, scans
        e and s of each table (:class:`warehouse.coalescing.costs.Prices`).
    shared
        F, at least 0.
    storage
        The bytes that are allowed; None: any.

    """
    if storage is not None:
        return _within(costs, scans, shared, storage)
    all_eager = tuple(True for _ in costs)
    mixed = tuple(cost < scan for cost, scan in zip(costs, scans, strict=True))
    return min((Selection(eager, cost_of(eager, costs, scans, shared)) for eager in (all_eager, mixed)), key=_rank, default=None)


def _rank(choice: Selection) -> tuple[float, int, int]:
    eager = sum(choice.eager)
    return choice.cost, eager + (not all(choice.eager)), -eager


def _within(costs: Sequence[float], scans: Sequence[float], shared: float, storage: Storage) -> Selection | None:
    if len(costs) <= LARGEST:
        choices = (
            Selection(eager, cost_of(eager, costs, scans, shared))
            for eager in product((False, True), repeat=len(costs))
            if _stored(eager, storage) <= storage.limit
        )
        return min(choices, key=_rank, default=None)
    selections = [_bounded(costs, scans, storage.eager, storage.limit - storage.shared, shared)]
    if sum(storage.eager) <= storage.limit:
        all_eager = tuple(True for _ in costs)
        selections.append(Selection(all_eager, cost_of(all_eager, costs, scans, shared)))
    return min((selection for selection in selections if selection is not None), key=_rank, default=None)


def _stored(eager: Sequence[bool], storage: Storage) -> float:
    table_bytes = sum(size for x, size in zip(eager, storage.eager, strict=True) if x)
    return table_bytes + (0.0 if all(eager) else storage.shared)


def _bounded(
    costs: Sequence[float], scans: Sequence[float], sizes: Sequence[float], room: float, shared: float
) -> Selection | None:
    """Branch and bound over the tables for which eager saves cost, the greatest saving per byte first, with a lazy extent.

    The upper bound of the saving of the remaining tables comes from the fractional knapsack.
    """
    if room < 0:
        return None
    gains = [scan - cost for cost, scan in zip(costs, scans, strict=True)]
    order = sorted((n for n, gain in enumerate(gains) if gain > 0), key=lambda n: -gains[n] / sizes[n] if sizes[n] else -inf)
    best, chosen = 0.0, frozenset[int]()
    pending: list[tuple[int, float, float, frozenset[int]]] = [(0, 0.0, room, frozenset())]
    while pending:
        position, gain, room_left, selected = pending.pop()
        if gain > best:
            best, chosen = gain, selected
        if position == len(order) or gain + _at_most(order[position:], gains, sizes, room_left) <= best:
            continue
        table = order[position]
        pending.append((position + 1, gain, room_left, selected))
        if sizes[table] <= room_left:
            pending.append((position + 1, gain + gains[table], room_left - sizes[table], selected | {table}))
    eager = tuple(number in chosen for number in range(len(costs)))
    return Selection(eager, cost_of(eager, costs, scans, shared))


def _at_most(order: Sequence[int], gains: Sequence[float], sizes: Sequence[float], room: float) -> float:
    total = 0.0
    for table in order:
        if sizes[table] > room:
            return total + gains[table] * room / sizes[table]
        total, room = total + gains[table], room - sizes[table]
    return total
