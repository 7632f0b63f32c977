"""Distributes runs over the tasks that write them, and cuts large ones, for the writer and for the cost model.

A run of ordinary size is one file, written by one task. A run is cut into ranges of the search key if it is larger than a file,
or if one task would write it for much longer than the other tasks write all the rest. The size of a file is given in bytes
(``target_file_size``); the size of the table's stored rows says how many rows that are.
"""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["FILE_ROWS", "TASK_ROWS", "distribute", "file_rows", "key_ranges", "largest_file", "loads"]

TASK_ROWS = 20_000
"""Fewer rows are written by one task."""
FILE_ROWS = 3_200_000
"""Rows of a file, where no ``target_file_size`` is given: more are not sorted in the memory that a task ordinarily has."""
FILE_BYTES = 384 * 10**6
"""Bytes of a file, where no ``target_file_size`` is given."""
SUPPOSED_BYTES = 120
"""Bytes of a row before any is stored: 118 were measured (docs/sizing.md)."""
SUPPOSED_ROWS = 100
"""As many rows of supposed size are counted with those stored: a few rows in a file of their own are mostly its footer."""
SMALLEST_RANGE = 1_000_000
"""Ranges of fewer rows are not made: sampling the keys costs as much as the other executors would save."""


def file_rows(target: int | None, *, rows: float = 0, size: float = 0) -> int:
    """Return how many rows a file should have, given the rows and bytes of the table.

    Parameters
    ----------
    target
        ``target_file_size`` in bytes; None: :data:`FILE_BYTES`, and at most :data:`FILE_ROWS`.
    rows, size
        Rows of the table, and the bytes of their files.

    Examples
    --------
    >>> file_rows(None), file_rows(64_000_000), file_rows(64_000_000, rows=1e6, size=1e9)
    (3200000, 533333, 64005)
    """
    row_bytes = (size + SUPPOSED_ROWS * SUPPOSED_BYTES) / (rows + SUPPOSED_ROWS)
    if target is None:
        return max(1, min(FILE_ROWS, int(FILE_BYTES / row_bytes)))
    return max(1, int(target / row_bytes))


def largest_file(target_rows: int) -> int:
    """Return the most rows that a file has: ranges of sampled keys differ in size, and few are to be cut again.

    >>> largest_file(FILE_ROWS)
    4000000
    """
    return target_rows + target_rows // 4


def distribute(runs: Sequence[float], workers: int, target_rows: int = FILE_ROWS) -> list[int]:
    """Return the number of the task that writes each run: the largest run goes first, to the task with the fewest rows.

    Small batches are one task.

    Parameters
    ----------
    runs
        Rows of each run, at least one.
    workers
        How many tasks run at once.
    target_rows
        Rows of a file, by :func:`file_rows`.

    Examples
    --------
    >>> distribute([15_000, 30_000, 20_000], 2)
    [1, 0, 1]
    """
    total = sum(runs)
    count = max(1, min(len(runs), max(workers, _parts(total, largest_file(target_rows))), _parts(total, TASK_ROWS)))
    heap = [(0.0, task) for task in range(count)]
    tasks = [0] * len(runs)
    for run in sorted(range(len(runs)), key=lambda number: -runs[number]):
        load, tasks[run] = heap[0]
        heapreplace(heap, (load + runs[run], tasks[run]))
    return tasks


def loads(runs: Sequence[float], tasks: Sequence[int]) -> list[float]:
    """Return the rows of each task."""
    rows_of_task = [0.0] * (max(tasks) + 1)
    for rows, task in zip(runs, tasks, strict=True):
        rows_of_task[task] += rows
    return rows_of_task


def key_ranges(runs: Sequence[float], tasks: Sequence[int], workers: int, target_rows: int = FILE_ROWS) -> int:
    """Return the number of ranges of the search key into which all rows are cut; 0 if it is better to leave each run whole.

    Examples
    --------
    >>> runs = [3_000_000, 2_500_000]
    >>> key_ranges(runs, distribute(runs, 2), 2), key_ranges(runs, distribute(runs, 8), 8)
    (0, 6)
    >>> key_ranges([9_000_000], [0], 1)
    3
    """
    total = sum(runs)
    heaviest = max(loads(runs, tasks))
    files = _parts(total, target_rows)
    ranges = max(files, min(-(-files // workers) * workers, _parts(total, SMALLEST_RANGE)))  # no task is idle in the last round
    # One task that has twice its share, and more than a range: the others wait for it.
    if max(runs) > largest_file(target_rows) or (heaviest > SMALLEST_RANGE and heaviest * ranges > 2 * total):
        return ranges
    return 0


def _parts(rows: float, largest: int) -> int:
    return int(-(-rows // largest))
