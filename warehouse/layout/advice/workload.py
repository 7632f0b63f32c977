"""What a table has to cope with: how much arrives, how long it lives, how often it is asked."""

from __future__ import annotations

from dataclasses import dataclass

from warehouse.layout.tasks import FILE_ROWS

__all__ = ["Workload"]


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
        Of the inserted rows, the share with b - a = 1, 2, .., p; what is left to 1 outlives the window.
    arriving
        Rows read from landing files, those dead on arrival and rejected ones included.
    landing_files
        Landing files.
    row_bytes
        Bytes of a stored row.
    rows_per_key
        Live rows that the answer to a probe has.
    probes
        Probes.
    cold_probes
        The share of them that are the first of a process.
    scans
        Scans.
    retained
        Update intervals for which a superseded file stays on disk.
    workers
        Tasks that run side by side.
    target_rows
        Rows of a file, where runs are larger.
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
        """Updates after which a row is still live, on average."""
        return self.live / self.rate if self.rate else 0.0
