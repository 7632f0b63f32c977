"""Dealing rows to tasks, so that each run is written sorted, by one task or by several with disjoint ranges of keys.

How is a matter of :mod:`warehouse.layout.tasks`. For ranges of the search key Spark samples the keys, so that the update of a
large table is the work of all executors whatever its grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import CELL
from warehouse.layout.tasks import FILE_ROWS, deal, key_ranges
from warehouse.storage.cluster import cores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

__all__ = ["place"]



def place(rows: DataFrame, key: Sequence[str], sizes: Mapping[tuple[int, int], int], target_rows: int = FILE_ROWS) -> DataFrame:
    """Deal rows to tasks, each run to one, or a large one to several by ranges of the search key.

    Parameters
    ----------
    rows
        The rows to write, partition columns included; they still have to be sorted within tasks.
    key
        The columns of the search key.
    sizes
        Rows to expect per (sub-index, expiry block).
    target_rows
        Rows of a file.

    """
    workers = cores(rows.sparkSession)
    cells = sorted(sizes)
    runs = [sizes[cell] for cell in cells]
    tasks = deal(runs, workers, target_rows)
    ranges = key_ranges(runs, tasks, workers, target_rows)
    if ranges:
        return rows.repartitionByRange(ranges, *CELL, *[quoted(name) for name in key])
    count = max(tasks) + 1
    if count == 1:
        return rows.coalesce(1)
    number = F.coalesce(
        F.create_map(*[F.lit(part) for cell, task in zip(cells, tasks, strict=True) for part in (f"{cell[0]}/{cell[1]}", task)])[
            F.concat_ws("/", *CELL)
        ],
        F.lit(0),
    )
    return rows.repartitionById(count, number)
