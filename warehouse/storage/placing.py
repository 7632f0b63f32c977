"""Dealing rows to tasks, so that each run is written sorted, by one task or by several with disjoint ranges of keys.

A run of ordinary size is one file of one task. One that a single task would write much longer than the others write all the
rest, or that is more than a file's rows, is cut into ranges of the search key (Spark samples the keys for that), so that the
update of a large table is the work of all executors whatever its grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.storage.cluster import cores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

__all__ = ["FILE_ROWS", "ROW_GROUP_ROWS", "place"]

ROW_GROUP_ROWS = 20_000
FILE_ROWS = 4_000_000
"""A larger run is written as several files of disjoint key ranges."""
RANGE_ROWS = 3_200_000
"""Ranges of sampled keys differ in size; they are made smaller than a file, so that few are cut again."""
SMALLEST_RANGE = 1_000_000
"""Ranges of fewer rows are not made: what the other executors would save, Spark needs to sample the keys."""
_RUN = ("sub_index", "exp_block")


def place(rows: DataFrame, key: Sequence[str], sizes: Mapping[tuple[int, int], int]) -> DataFrame:
    """Deal rows to tasks, each run to one, or a large one to several by ranges of the search key.

    Parameters
    ----------
    rows
        The rows to write, partition columns included; they still have to be sorted within tasks.
    key
        The columns of the search key.
    sizes
        Rows to expect per (sub-index, expiry block).

    """
    workers = cores(rows.sparkSession)
    tasks = _tasks(sizes, workers)
    ranges = _ranges(sizes, tasks, workers)
    if ranges:
        return rows.repartitionByRange(ranges, *_RUN, *[identifier(name) for name in key])
    count = max(tasks.values()) + 1
    if count == 1:
        return rows.coalesce(1)
    number = F.coalesce(
        F.create_map(*[F.lit(part) for cell, task in tasks.items() for part in (f"{cell[0]}/{cell[1]}", task)])[
            F.concat_ws("/", *_RUN)
        ],
        F.lit(0),
    )
    return rows.repartitionById(count, number)


def identifier(name: str) -> str:
    """Return a column name as a Spark SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def _tasks(sizes: Mapping[tuple[int, int], int], workers: int) -> dict[tuple[int, int], int]:
    """Deal runs to tasks, largest first to the least loaded; small batches are one task.

    >>> _tasks({(1, 0): 30_000, (2, 0): 20_000, (3, 0): 15_000}, 2)
    {(1, 0): 0, (2, 0): 1, (3, 0): 1}
    """
    total = sum(sizes.values())
    count = max(1, min(len(sizes), max(workers, -(-total // FILE_ROWS)), -(-total // ROW_GROUP_ROWS)))
    loads = [0] * count
    dealt = {}
    for cell, rows in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        task = loads.index(min(loads))
        loads[task] += rows
        dealt[cell] = task
    return dealt


def _ranges(sizes: Mapping[tuple[int, int], int], tasks: Mapping[tuple[int, int], int], workers: int) -> int:
    """Return into how many ranges to cut all rows; none when each run is better left whole.

    >>> runs = {(1, 0): 3_000_000, (1, 1): 2_500_000}
    >>> _ranges(runs, _tasks(runs, 2), 2), _ranges(runs, _tasks(runs, 8), 8)
    (0, 6)
    >>> large = {(1, 0): 9_000_000}
    >>> _ranges(large, _tasks(large, 1), 1)
    3
    """
    total = sum(sizes.values())
    loads: dict[int, int] = {}
    for cell, task in tasks.items():
        loads[task] = loads.get(task, 0) + sizes[cell]
    heaviest = max(loads.values())
    files = -(-total // RANGE_ROWS)
    wanted = max(files, min(-(-files // workers) * workers, -(-total // SMALLEST_RANGE)))  # none is idle in the last round
    # One task that has twice its share, and more than a range: the others wait for it.
    if max(sizes.values()) > FILE_ROWS or (heaviest > SMALLEST_RANGE and heaviest * wanted > 2 * total):
        return wanted
    return 0
