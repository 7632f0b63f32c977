"""The costs of eager and lazy coalescing: memory, updates and scans of a window of rows (temporal-coalescing sheet, section 10).

The resolved formulas of the sheet: ``k`` members arrived so far, and the window holds the newest ``w`` of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Atomic", "Costs", "Prices", "Sizes", "Weights", "costs", "prices"]


@dataclass(frozen=True)
class Atomic:
    """The cost of each operation, all in one unit of any kind; a split does not include the insertion that follows it."""

    read: float
    insert: float
    delete: float
    merge: float
    split: float
    detach: float
    coalesce: float


@dataclass(frozen=True)
class Sizes:
    """Bytes of a timestamp, of an eager row and of a lazy one."""

    stamp: float
    eager: float
    lazy: float


@dataclass(frozen=True)
class Weights:
    """The weights of memory, updates and scans."""

    memory: float = 1.0
    update: float = 1.0
    scan: float = 1.0


@dataclass(frozen=True)
class Costs:
    """Memory in bytes, updates since the first member and one scan, in the unit of the atomic costs; and their largest values."""

    memory_eager: float
    memory_lazy: float
    update_eager: float
    update_lazy: float
    scan_eager: float
    scan_lazy: float
    memory_max: float
    update_max: float
    scan_max: float


@dataclass(frozen=True)
class Prices:
    """Eqs. 9 and 10: the cost of an eager table, of the scans of a lazy one, and of the extent that all lazy tables share."""

    eager: float
    scan: float
    shared: float


def costs(coalesces: Sequence[float], late: Sequence[float], window: int, sizes: Sizes, atomic: Atomic) -> Costs:
    """Return Eqs. 1 to 6 after all members.

    Parameters
    ----------
    coalesces
        c: the probability that each member coalesces with the one before; 0 for the first.
    late
        p: the probability that each member arrives out of order.
    window
        w, in members.
    sizes, atomic
        Bytes, and costs of operations.

    """
    k, n = len(coalesces), min(len(coalesces), window)
    window_coalesces = coalesces[k - n + 1 :]
    memory = sizes.eager + sum(c * sizes.stamp + (1 - c) * sizes.eager for c in window_coalesces)
    arrivals = sum(
        (1 - p) * (1 - c) * atomic.insert + c * atomic.merge + p * (1 - c) * (atomic.insert + atomic.split)
        for c, p in zip(coalesces, late, strict=True)
    )
    # Of the i-th member in the sheet, numbered from 1, the one that leaves uses c with the number i - w + 1.
    departures = sum(c * atomic.detach + (1 - c) * atomic.delete for c in coalesces[1 : k - window + 1])
    departed = max(0, k - window)
    return Costs(
        memory_eager=memory,
        memory_lazy=n * sizes.lazy,
        update_eager=arrivals + departures,
        update_lazy=k * atomic.insert + departed * atomic.delete,
        scan_eager=atomic.read * memory / sizes.eager,
        scan_lazy=n * atomic.read + atomic.coalesce * sum(window_coalesces),
        memory_max=n * sizes.lazy,
        update_max=k * atomic.merge + departed * atomic.detach,
        scan_max=n * (atomic.read + atomic.coalesce),
    )


def prices(found: Costs, weights: Weights) -> Prices:
    """Return the normalised costs of a table, eager and lazy (Eqs. 7 to 10)."""

    def weighed(memory: float, update: float, scan: float) -> float:
        return (
            weights.memory * memory / found.memory_max
            + weights.update * update / found.update_max
            + weights.scan * scan / found.scan_max
        )

    return Prices(
        eager=weighed(found.memory_eager, found.update_eager, found.scan_eager),
        scan=weighed(0.0, 0.0, found.scan_lazy),
        shared=weighed(found.memory_lazy, found.update_lazy, 0.0),
    )
