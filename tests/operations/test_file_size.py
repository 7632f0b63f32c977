"""``target_file_size``: runs are written as files of about that size, by the bytes of the table's rows."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from warehouse import Warehouse

from .projects import csv, row, stream

if TYPE_CHECKING:
    from .projects import Project

WIDE = 1340
"""Letters of a key, of which compression leaves about a thousand bytes: six bits for each."""
ROWS = 1400


def landed(project: Project, hour: int, rows: int) -> None:
    """Let rows of long keys arrive that live until hour 8."""
    drawn = random.Random(hour)  # noqa: S311 - test data
    keys = ("".join(drawn.choices("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", k=WIDE)) for _ in range(rows))
    project.land(f"{hour}.csv", csv(*(row(key, hour - 0.5, 8) for key in keys)))


def test_runs_are_split_by_the_bytes_of_their_rows(project: Project) -> None:
    """Once rows are stored their size is known: a run of 1.4 MB is two files where 1 MB is asked for, with disjoint keys.

    The key changes from one update to the next, and advice counts with it.
    """
    layout = {"grid": [1, 1], "expiry_block": 8, "seal": False}
    project.streams = {"a": stream(max_lifetime="8h", layout=layout)}
    project.declare()
    landed(project, 1, ROWS)
    project.update(1)
    project.warehouse["target_file_size"] = "1MB"
    project.declare()
    landed(project, 2, ROWS)
    project.update(2)
    (partitions,) = (state.partitions for state in project.epoch.tables)
    assert [(part.runs, part.files, part.rows) for part in partitions] == [(2, 3, 2 * ROWS)]
    bounds = []
    for file in (project.root / "tables/a").rglob("*.parquet"):
        if "sub_index=" in str(file):
            keys = pq.read_table(file, columns=["k"], partitioning=None)["k"].to_pylist()
            assert keys == sorted(keys)
            bounds.append((len(keys), keys[0], keys[-1]))
    parts = sorted((low, high) for rows, low, high in bounds if rows < ROWS)
    assert [rows for rows, _, _ in bounds].count(ROWS) == 1
    assert all(low[1] < high[0] for low, high in pairwise(parts)), parts
    assert sum(rows for rows, _, _ in bounds) == 2 * ROWS
    with Warehouse.open(project.directory) as warehouse:
        assert 800 < warehouse.advise("a").load.target_rows < 1200
