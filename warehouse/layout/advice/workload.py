"""The load of a table: how many rows arrive, how long they live, how often the table is read."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import TYPE_CHECKING, Literal, TypeAlias, assert_never

from warehouse.layout.oracle import lifetime_weights
from warehouse.layout.tasks import FILE_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Kind", "Lifetimes", "Workload", "shares"]


@dataclass(frozen=True)
class Workload:
    """The load of one table for each update interval.

    Parameters
    ----------
    periods
        p, the bound on lifetimes in update intervals.
    rate
        Rows inserted.
    shares
        The shares of the inserted rows with b - a = 1, 2, .., p; the remainder to 1 outlives the window.
    arriving
        Rows read from landing files, with rows that are dead on arrival or rejected.
    landing_files
        Landing files.
    row_bytes
        Bytes of a stored row.
    rows_per_key
        Live rows in the answer to a probe.
    probes
        Probes.
    cold_probes
        The share of the probes that are the first of a process.
    scans
        Scans.
    retained
        Update intervals for which a superseded file stays on disk.
    workers
        Tasks of an update that run at the same time.
    target_rows
        Rows of a file; larger runs have several files.
    """

    periods: int
    rate: float
    shares: tuple[float, ...]
    arriving: float
    landing_files: float = 1.0
    row_bytes: float = 100.0
    rows_per_key: float = 1.0
    probes: float = 0.0
    cold_probes: float = 0.0
    scans: float = 0.0
    retained: float = 0.0
    workers: int = 2
    target_rows: int = FILE_ROWS

    @property
    def live(self) -> float:
        """Live rows after an update: a row of distance d is live after d updates.

        Examples
        --------
        >>> Workload(periods=3, rate=100, shares=(0.5, 0.0, 0.5), arriving=100).live
        200.0
        """
        return self.rate * sum(distance * share for distance, share in enumerate(self.shares, start=1))

    @property
    def mean_lifetime(self) -> float:
        """For how many updates a row is live, on average."""
        return self.live / self.rate if self.rate else 0.0


# --- how long rows live, as the share of rows for each distance between load slot and expiration slot ---

Kind: TypeAlias = Literal["uniform", "exponential", "constant"]


@dataclass(frozen=True)
class Lifetimes:
    """A distribution of lifetimes.

    Parameters
    ----------
    kind
        `uniform` on (0, size], `exponential` with mean `size`, or all equal to `size`.
    size
        In update intervals, above 0.
    """

    kind: Kind
    size: float

    @property
    def longest(self) -> float:
        """The value for S, in update intervals: at most one row of three hundred lives longer."""
        return self.size * (6 if self.kind == "exponential" else 1)


def shares(lifetimes: Lifetimes, periods: int) -> tuple[float, ...]:
    """Return the share of inserted rows with b - a = 1, 2, .., p; rows dead on arrival are not inserted.

    Lifetimes are cut at p; instants are uniform in their slot: doubly-partitioned-index sheet, section 6.

    Examples
    --------
    >>> [round(share, 3) for share in shares(Lifetimes("uniform", 4), 4)]
    [0.286, 0.286, 0.286, 0.143]
    >>> shares(Lifetimes("constant", 2), 2)
    (0.0, 1.0)
    """
    weights = lifetime_weights(_integral(lifetimes, periods), periods)
    total = sum(weights)
    return tuple(max(0.0, weight) / total for weight in weights) if total > 0 else (1.0, *(0.0,) * (periods - 1))


def _integral(lifetimes: Lifetimes, periods: int) -> Callable[[float], float]:
    """Return the integral, from 0, of the distribution function."""
    size = lifetimes.size
    match lifetimes.kind:
        case "uniform":
            top = min(size, periods)
            return lambda x: 0.0 if x <= 0 else x * x / (2 * top) if x <= top else x - top / 2
        case "constant":
            return lambda x: max(0.0, x - min(size, periods))
        case "exponential":
            total_share = 1 - exp(-periods / size)
            until = (periods - size * total_share) / total_share

            def integral(x: float) -> float:
                if x <= 0:
                    return 0.0
                if x > periods:
                    return until + x - periods
                return (x - size * (1 - exp(-x / size))) / total_share

            return integral
        case _:
            assert_never(lifetimes.kind)
