"""The work of an update and of a probe, in the units of prices: doubly-partitioned-index sheet, sections 5.4 and 11.

An update reads landing files, and distributes the runs that it writes over tasks (the largest run first, to the least loaded
task, as the writer does). It takes as long as its busiest task, so rows read again, written and sorted are counted for this task.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from heapq import heapreplace
from math import log2
from typing import TYPE_CHECKING

from warehouse.layout.tasks import FILE_ROWS, distribute, key_ranges, loads

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ProbeWork", "UpdateWork", "busiest_task", "task_work"]


@dataclass(frozen=True)
class UpdateWork:
    """The work of an update on one table; every field has a price.

    `reread` is 1 if the update reads old files: this takes another source and its tasks, even for few rows.
    """

    update: float = 1.0
    landing_file: float = 0.0
    arriving_row: float = 0.0
    sub_index: float = 0.0
    file: float = 0.0
    reread: float = 0.0
    row_read: float = 0.0
    row_written: float = 0.0
    row_sorted: float = 0.0

    def vector(self) -> tuple[float, ...]:
        """Return the values in the order of :meth:`names`."""
        return tuple(getattr(self, name) for name in self.__match_args__)  # astuple copies each value

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the fields in order."""
        return tuple(field.name for field in fields(cls))


@dataclass(frozen=True)
class ProbeWork:
    """The work of a probe of one key; every field has a price.

    `passed_file` counts files pruned by statistics or filters, `opened_file` files that are read without a match, and `key_file`
    files with the key. `first` is 1 for the first probe of a process, which has no filters yet.
    """

    probe: float = 1.0
    first: float = 0.0
    passed_file: float = 0.0
    opened_file: float = 0.0
    key_file: float = 0.0
    row: float = 0.0

    def vector(self) -> tuple[float, ...]:
        """Return the values in the order of :meth:`names`."""
        return tuple(getattr(self, name) for name in self.__match_args__)  # astuple copies each value

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the fields in order."""
        return tuple(field.name for field in fields(cls))


def busiest_task(sizes: Iterable[float], workers: int, target_rows: int = FILE_ROWS) -> float:
    """Return the rows of the busiest worker if runs of these sizes are distributed over tasks; runs larger than a file are cut.

    Examples
    --------
    >>> busiest_task([30_000, 20_000, 15_000], 2)
    35000.0
    >>> busiest_task([300, 200], 2)
    500.0
    >>> busiest_task([8_000_000, 8_000_000], 4)
    4000000.0
    """
    runs = [float(size) for size in sizes if size > 0]
    if not runs:
        return 0.0
    tasks = distribute(runs, workers, target_rows)
    ranges = key_ranges(runs, tasks, workers, target_rows)
    if ranges:
        return -(-ranges // workers) * sum(runs) / ranges
    busy = [0.0] * workers
    for rows in sorted(loads(runs, tasks), reverse=True):
        heapreplace(busy, busy[0] + rows)
    return max(busy)


def task_work(
    *,
    runs: Iterable[float],
    files: float,
    read: float,
    workers: int,
    sub_indices: float,
    arriving: float,
    landing_files: float,
    target_rows: int = FILE_ROWS,
) -> UpdateWork:
    """Return the work of an update that writes runs of these rows.

    Parameters
    ----------
    runs
        Rows of each run that is written.
    files
        How many files the runs have.
    read
        Rows of old files that are read again, expired ones included.
    workers
        Tasks that run at the same time.
    sub_indices
        Sub-indices that are written to.
    arriving, landing_files
        Rows and landing files that arrived.
    target_rows
        Rows of a file.
    """
    sizes = [rows for rows in runs if rows > 0]
    busiest = busiest_task(sizes, workers, target_rows)
    tasks = max(1.0, sum(sizes) / busiest) if busiest else 1.0
    return UpdateWork(
        landing_file=landing_files,
        arriving_row=arriving,
        sub_index=sub_indices,
        file=float(files),
        reread=min(1.0, read),
        row_read=read / tasks,
        row_written=busiest,
        row_sorted=busiest * log2(max(2.0, busiest)),
    )
