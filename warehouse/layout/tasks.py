"""Dealing runs to the tasks that write them, and cutting large ones: what the writer does and what the cost model counts on.

A run of ordinary size is one file of one task. One that a single task would write much longer than the others write all the
rest, or that is more than a file's rows, is cut into ranges of the search key.
"""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FILE_ROWS", "RANGE_ROWS", "ROW_GROUP_ROWS", "deal", "key_ranges", "loads"]

ROW_GROUP_ROWS = 20_000
"""Rows of a Parquet row group; fewer are not dealt to a second task."""
FILE_ROWS = 4_000_000
"""A larger run is written as several files of disjoint key ranges."""
RANGE_ROWS = 3_200_000
"""Ranges of sampled keys differ in size; they are made smaller than a file, so that few are cut again."""
SMALLEST_RANGE = 1_000_000
"""Ranges of fewer rows are not made: what the other executors would save, Spark needs to sample the keys."""


def deal(runs: Sequence[float], workers: int) -> list[int]:
    """The number of the task that writes each run: largest first to the least loaded; small batches are one task.

    Parameters
    ----------
    runs
        Rows of each run, at least one.
    workers
        How many tasks run at once.

    Examples
    --------
    >>> deal([15_000, 30_000, 20_000], 2)
    [1, 0, 1]
    """
    total = sum(runs)
    count = max(1, min(len(runs), max(workers, _parts(total, FILE_ROWS)), _parts(total, ROW_GROUP_ROWS)))
    least = [(0.0, task) for task in range(count)]
    tasks = [0] * len(runs)
    for place in sorted(range(len(runs)), key=lambda number: -runs[number]):
        load, tasks[place] = least[0]
        heapreplace(least, (load + runs[place], tasks[place]))
    return tasks


def loads(runs: Sequence[float], tasks: Sequence[int]) -> list[float]:
    """The rows of each task."""
    found = [0.0] * (max(tasks) + 1)
    for rows, task in zip(runs, tasks, strict=True):
        found[task] += rows
    return found


def key_ranges(runs: Sequence[float], tasks: Sequence[int], workers: int) -> int:
    """Into how many ranges of the search key all rows are cut; none when each run is better left whole.

    Examples
    --------
    >>> runs = [3_000_000, 2_500_000]
    >>> key_ranges(runs, deal(runs, 2), 2), key_ranges(runs, deal(runs, 8), 8)
    (0, 6)
    >>> key_ranges([9_000_000], [0], 1)
    3
    """
    total = sum(runs)
    heaviest = max(loads(runs, tasks))
    files = _parts(total, RANGE_ROWS)
    wanted = max(files, min(-(-files // workers) * workers, _parts(total, SMALLEST_RANGE)))  # none is idle in the last round
    # One task that has twice its share, and more than a range: the others wait for it.
    if max(runs) > FILE_ROWS or (heaviest > SMALLEST_RANGE and heaviest * wanted > 2 * total):
        return wanted
    return 0


def _parts(rows: float, largest: int) -> int:
    return int(-(-rows // largest))
