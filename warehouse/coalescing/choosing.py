"""Decides whether a coalesced table is stored or computed by each read, from counts of its points and the sheet's costs.

The atomic costs and the weights of memory, updates and scans come from temporal-coalescing, section 12; they reproduce the
source's selections. There, coalescing a point during a scan costs nine reads of a stored row; DuckDB took 7.4 on a million points
(``benchmarks/measured/source-intervals``). Lazy tables share the extent of the stream, which is stored anyway, so it costs
nothing more (F = 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.coalescing.costs import Atomic, Sizes, Weights, costs, prices
from warehouse.coalescing.selection import select

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ATOMIC", "MARGIN", "WEIGHTS", "Choice", "PointCounts", "choose"]

ATOMIC = Atomic(read=1, insert=1, delete=1, merge=18, split=6, detach=2, coalesce=9)
WEIGHTS = Weights(memory=1, update=1, scan=2)
SIZES = Sizes(stamp=8, eager=24, lazy=40)
MARGIN = 0.1
"""The share by which the other side must cost less to be worth a switch."""
_WINDOWS = 10
"""A switch must pay for its costs within this many windows, of time or of rows."""
_WINDOW, _ARRIVALS = 100, 4000
"""Members of the window that is priced, and of its stream: costs are for each member, so neither matters once it is full."""


@dataclass(frozen=True)
class PointCounts:
    """Counts of a table's points: members, rows, groups, and the share of late points."""

    members: int
    rows: int
    groups: int
    late: float = 0.0

    @property
    def coalescing(self) -> float:
        """The probability that a member coalesces with the member before in its group.

        >>> PointCounts(members=100, rows=28, groups=10).coalescing
        0.8
        """
        followed = self.members - self.groups
        return (self.members - self.rows) / followed if followed else 0.0


@dataclass(frozen=True)
class Choice:
    """Whether a table is eager or lazy, the costs of both (the sheet's e and s), and the probabilities that gave them.

    ``build`` is the cost of storing a lazy table for the first time, spread over the updates of ten windows.
    """

    table: str
    how: Literal["eager", "lazy"]
    members: int
    coalescing: float
    late: float
    eager: float
    lazy: float
    build: float

    @property
    def better(self) -> Literal["eager", "lazy"] | None:
        """The other way, if it costs at least a tenth less, including the switch."""
        if self.how == "eager":
            return "lazy" if self.lazy < self.eager * (1 - MARGIN) else None
        return "eager" if self.eager + self.build < self.lazy * (1 - MARGIN) else None


def choose(tables: Sequence[tuple[str, PointCounts]]) -> tuple[Choice, ...]:
    """Return the choice that costs least for tables over points that are stored.

    >>> [choice.how for choice in choose([("a", PointCounts(1000, 900, 10)), ("b", PointCounts(1000, 200, 10))])]
    ['lazy', 'eager']
    """
    priced = [(name, counted, *_priced(counted)) for name, counted in tables]
    selection = select([eager for _, _, eager, _, _ in priced], [lazy for _, _, _, lazy, _ in priced], 0.0)
    stored = selection.eager if selection is not None else ()
    return tuple(
        Choice(name, "eager" if is_eager else "lazy", counted.members, counted.coalescing, counted.late, eager, lazy, build)
        for (name, counted, eager, lazy, build), is_eager in zip(priced, stored, strict=True)
    )


def _priced(counted: PointCounts) -> tuple[float, float, float]:
    likely = [0.0, *[counted.coalescing] * (_ARRIVALS - 1)]
    estimated = costs(likely, [counted.late] * _ARRIVALS, _WINDOW, SIZES, ATOMIC)
    price = prices(estimated, WEIGHTS)
    # To build it, all members of the window go through an update once more.
    return price.eager, price.scan, WEIGHTS.update * estimated.update_eager / estimated.update_max / _WINDOWS
