"""Sums of simulated updates, and the footprint of a layout that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from warehouse.layout.advice.work import UpdateWork, task_work
from warehouse.layout.tasks import largest_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from warehouse.layout.advice.workload import Workload

__all__ = ["Footprint", "FootprintSums", "SimulatedUpdate"]


@dataclass(frozen=True)
class Footprint:
    """A layout under a workload, on average over its updates.

    Parameters
    ----------
    updates
        The work of each simulated update.
    files
        Files of the newest epoch.
    key_files
        How many of them have the key of a probe.
    rows
        Rows in the files, dead ones included.
    written
        Rows that an update writes.
    spread
        The largest standard deviation of the sub-indices' rows, divided by their mean.
    """

    updates: tuple[UpdateWork, ...]
    files: float
    key_files: float
    rows: float
    written: float
    spread: float

    @property
    def mean_work(self) -> UpdateWork:
        """The mean work of the updates; its price is the mean price, because prices are linear."""
        vectors = [update.vector() for update in self.updates]
        return UpdateWork(*(fmean(values) for values in zip(*vectors, strict=True)))


@dataclass(frozen=True)
class SimulatedUpdate:
    """A simulated update: rows of its runs, rows read again, number of sub-indices, and how many updates it stands for."""

    runs: Sequence[float]
    read: float
    cells: int
    weight: float = 1.0


@dataclass
class FootprintSums:
    """Sums over the simulated updates."""

    load: Workload
    works: list[UpdateWork] = field(default_factory=list)
    files: list[float] = field(default_factory=list)
    key_files: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    spread: float = 0.0

    def add_work(self, *updates: SimulatedUpdate) -> None:
        """Add the work of an update, or the mean of several updates, weighted by the numbers of updates that they stand for."""
        load, weight = self.load, sum(update.weight for update in updates)
        vectors = []
        for update in updates:
            files = float(self.expected_files(update.runs).sum())
            work = task_work(
                runs=update.runs, files=files, read=update.read, workers=load.workers, sub_indices=min(update.cells, files),
                arriving=load.arriving, landing_files=load.landing_files, target_rows=load.target_rows,
            )  # fmt: skip
            vectors.append([value * update.weight / weight for value in work.vector()])
        self.works.append(UpdateWork(*map(sum, zip(*vectors, strict=True))))
        self.written.append(sum(sum(update.runs) * update.weight for update in updates) / weight)

    def add_state(self, sizes: Sequence[float], cells: Iterable[float], counts: Sequence[float] | None = None) -> None:
        """Add the files of an epoch.

        Parameters
        ----------
        sizes
            Rows of each run.
        cells
            Rows of every sub-index, also of empty ones.
        counts
            How many runs there are of each size; None: one of each.

        """
        import numpy as np  # noqa: PLC0415 - reading does not need it

        rows = np.asarray(sizes, dtype=float)
        numbers = np.ones(len(rows)) if counts is None else np.asarray(counts, dtype=float)
        total = float(rows @ numbers)
        self.files.append(float(numbers @ self.expected_files(rows)))
        self.rows.append(total)
        shares = np.minimum(1.0, rows / total) if total else rows
        self.key_files.append(float(numbers @ (1 - (1 - shares) ** self.load.rows_per_key)))
        of_cells = np.fromiter(cells, dtype=float)
        mean = float(of_cells.mean())
        if mean:
            self.spread = max(self.spread, float(of_cells.std()) / mean)

    def expected_files(self, rows: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected numbers of files of runs that have ``rows`` rows on average; a run of few rows may have no file."""
        import numpy as np  # noqa: PLC0415 - as above

        sizes, target = np.asarray(rows, dtype=float), self.load.target_rows
        return np.where(sizes <= largest_file(target), 1.0 - np.exp(-sizes), sizes / target)

    def footprint(self) -> Footprint:
        """Return the means over the simulated updates."""
        return Footprint(
            updates=tuple(self.works),
            files=fmean(self.files),
            key_files=fmean(self.key_files),
            rows=fmean(self.rows),
            written=fmean(self.written),
            spread=self.spread,
        )
