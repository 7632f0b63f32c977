"""What an update costs by the source, in sub-indices and in rows: doubly-partitioned-index sheet, section 5.

The experiments compare measured updates with it, and tests compare the layouts of the library.

Wave indices need no formulas of their own: n insertion parts are the grid n x 1, n expiration parts the grid 1 x n.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, gcd, isqrt
from typing import TYPE_CHECKING

from warehouse.layout.advice.decision import accessed_share

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Flow",
    "Prices",
    "Share",
    "Shares",
    "UpdateCost",
    "best_grid",
    "best_side",
    "buckets_hit",
    "equal_lifetimes_update",
    "grid_update",
    "rebuild_price",
    "shares",
    "threshold",
    "total_price",
    "uniform_flow",
    "wave_price",
    "whole_slot_share",
]


def best_grid(n: int) -> tuple[int, int]:
    """The grid (G, E) of n sub-indices with the fewest accessed per update: factors closest to the root, section 5.1.

    G >= E, since buckets sorted by expiration make deletions the cheaper accesses.

    Examples
    --------
    >>> best_grid(6), best_grid(16)
    ((3, 2), (4, 4))
    """
    columns = next(factor for factor in range(isqrt(n), 0, -1) if n % factor == 0)
    return n // columns, columns


@dataclass(frozen=True)
class Flow:
    """Rows at a constant rate under uniform lifetimes: stored, dead on arrival, and inserted (= deleted) per update."""

    live: Fraction
    dead_on_arrival: Fraction
    inserted: Fraction


def uniform_flow(rate: int | Fraction, periods: int) -> Flow:
    """Live rows and rows per update in model C for `rate` rows generated per update interval, section 5.2."""
    dead = Fraction(rate) / (2 * periods)
    return Flow(live=Fraction(rate) * periods / 2, dead_on_arrival=dead, inserted=rate - dead)


@dataclass(frozen=True)
class Share:
    """A part of all live rows, before and after an update."""

    before: Fraction
    after: Fraction


@dataclass(frozen=True)
class Shares:
    """The row inserted into (E cells), the column deleted from (G cells), the cell they share, and their union."""

    row: Share
    column: Share
    shared: Share
    union: Share


def shares(rows: int, columns: int, periods: int) -> Shares:
    """Shares of the live rows in the parts that an update touches: model C, G and E dividing p, section 5.2.

    They hold at every update with round-robin and on average with chronological assignments.
    """
    cells = rows * columns
    row_swing = Fraction(rows - 1, rows * periods)
    column_swing = Fraction(columns - 1, columns * periods)
    shared_swing = Fraction(rows - columns, cells * periods)
    union = accessed_share(rows, columns)
    return Shares(
        row=Share(Fraction(1, rows) - row_swing, Fraction(1, rows) + row_swing),
        column=Share(Fraction(1, columns) + column_swing, Fraction(1, columns) - column_swing),
        shared=Share(Fraction(1, cells) - shared_swing, Fraction(1, cells) + shared_swing),
        union=Share(union, union),
    )


def whole_slot_share(rows: int, columns: int, periods: int) -> Fraction:
    """The share that a round-robin update reads when lifetimes are whole slots (model W), section 5.2."""
    common = Fraction(periods + gcd(rows, columns), periods + 1)
    return (rows + columns - common) / (rows * columns)


@dataclass(frozen=True)
class UpdateCost:
    """A line of the table of section 5.3: sub-indices by what is done to them, rows read (and, rebuilding, written)."""

    accessed: int
    inserted_into: int
    deleted_from: int
    rows: Fraction


def grid_update(rows: int, columns: int, live: int | Fraction) -> UpdateCost:
    """The cost of one update of a round-robin grid of `live` rows, wave indices included, section 5.3.

    Examples
    --------
    >>> grid_update(4, 4, 1600)
    UpdateCost(accessed=7, inserted_into=4, deleted_from=4, rows=Fraction(700, 1))
    """
    return UpdateCost(
        accessed=rows + columns - 1,
        inserted_into=columns,
        deleted_from=rows,
        rows=live * accessed_share(rows, columns),
    )


def equal_lifetimes_update(n: int, live: int | Fraction) -> UpdateCost:
    """The cost of one update of a wave index whose rows all live equally long, section 5.3."""
    return UpdateCost(accessed=1, inserted_into=1, deleted_from=1, rows=Fraction(live) / n)


def buckets_hit(rows: int, keys: int, buckets_per_key: float, deleted: float) -> float:
    """How many fixed buckets one update deletes from, GKβ(1 - exp(-λ/(GKβ))), section 5.3.

    Parameters
    ----------
    rows
        G, the sub-indices deleted from.
    keys
        K, distinct search keys.
    buckets_per_key
        β, buckets per key and sub-index.
    deleted
        Rows deleted per update.
    """
    buckets = rows * keys * buckets_per_key
    return buckets * (1 - exp(-deleted / buckets))


@dataclass(frozen=True)
class Prices:
    """Measured prices of one storage, in one unit of time, section 5.4.

    Parameters
    ----------
    access
        a: fixed cost per sub-index that an update accesses.
    row
        c: cost of reading and rewriting one row.
    query
        f: fixed cost per sub-index that a probe or scan visits.
    """

    access: float
    row: float
    query: float = 0.0


def rebuild_price(prices: Prices, live: float, side: int) -> float:
    """The price of one update of a side x side grid, section 5.4."""
    return prices.access * (2 * side - 1) + prices.row * live * (2 * side - 1) / side**2


def wave_price(prices: Prices, live: float, n: int) -> float:
    """The price of one update of a wave index of n parts when lifetimes vary, section 5.4."""
    return prices.access * n + prices.row * live


def total_price(prices: Prices, live: float, side: int, queries: float) -> float:
    """The price of an update interval with its probes and scans, without the part that all sides share, section 5.4."""
    return rebuild_price(prices, live, side) + queries * prices.query * side**2


def best_side(prices: Prices, live: float, queries: float = 0.0, sides: Iterable[int] = range(1, 9)) -> int:
    """The side of the square grid with the lowest total price; of two equal prices the smaller side, section 5.4."""
    return min(sides, key=lambda side: (total_price(prices, live, side, queries), side))


def threshold(side: int) -> Fraction:
    """The value of H = cN/a above which side + 1 is cheaper than `side`, without queries, section 5.4.

    Examples
    --------
    >>> [round(float(threshold(side)), 1) for side in range(1, 8)]
    [8.0, 10.3, 16.9, 25.8, 36.7, 49.7, 64.7]
    """
    return 2 / (accessed_share(side, side) - accessed_share(side + 1, side + 1))
