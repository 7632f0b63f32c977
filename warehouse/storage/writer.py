"""Writing runs: one Delta commit that adds a batch, removes what expired and rewrites what is sealed.

A run is the rows of one (sub-index, expiry block) sorted by (search key, ``_exp``); each run is written by one task,
so it is one file, or several with disjoint key ranges when it is large. The Parquet options of the key columns are settings
of the table's own session (DESIGN 4: row groups of 20 000 rows, a Bloom filter and no dictionary for key columns).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.storage.commit import commit, newest_version, stage, unstage
from warehouse.storage.tables import statistics_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from pyspark.sql import DataFrame

    from warehouse.storage.commit import CommitFacts

__all__ = ["key_settings", "write_rows", "write_runs"]

ROW_GROUP_ROWS = 20_000
FILE_ROWS = 4_000_000
"""A larger run is written as several files of disjoint key ranges."""
_BLOOM_TYPES = ("string", "tinyint", "smallint", "int", "bigint", "date", "timestamp")
_BLOOM_DECIMAL_DIGITS = 18


def key_settings(key: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the session settings that make probes cheap; ``key`` holds (column, Spark SQL type)."""
    settings = {"parquet.block.row.count.limit": str(ROW_GROUP_ROWS)}
    for name, kind in key:
        if _filtered(kind):
            settings[f"parquet.bloom.filter.enabled#{name}"] = "true"
            settings[f"parquet.bloom.filter.expected.ndv#{name}"] = str(ROW_GROUP_ROWS)
            settings[f"parquet.enable.dictionary#{name}"] = "false"
    return settings


def _filtered(kind: str) -> bool:
    if kind.startswith("decimal"):
        return int(kind.removeprefix("decimal(").split(",")[0]) <= _BLOOM_DECIMAL_DIGITS
    return kind in _BLOOM_TYPES


def write_runs(
    rows: DataFrame,
    table: Path,
    *,
    key: Sequence[tuple[str, str]],
    sizes: Mapping[tuple[int, int], int],
    base: int,
    leaving: Callable[[int, int], bool] | None,
    facts: CommitFacts,
    staged: Callable[[], None] | None = None,
    table_metadata: Mapping[str, Any] | None = None,
) -> None:
    """Commit rows as runs; without rows Spark is not asked for anything.

    Parameters
    ----------
    rows
        The table's columns, partition columns included, in a session with the table's :func:`key_settings`.
    table
        The table's directory.
    key
        (column, type) of the search key, in order.
    sizes
        Rows to expect per (sub-index, expiry block): how the write is cut into tasks.
    base
        A version of the table; what was committed since then is looked for.
    leaving
        Whether the files of a (sub-index, expiry block) leave the table in the same commit. None: the commit only adds.
    facts
        What the commit says of itself.
    staged
        Called when the rows are written, before they are committed; what it raises leaves the table as it was.
    table_metadata
        The action that gives the table other columns or another key with it; none: they stay.

    """
    if sizes:
        stage(_placed(rows, key, sizes), table, ("sub_index", "exp_block"), FILE_ROWS)
        if staged is not None:
            staged()
    else:
        unstage(table)  # what an attempt that did not end has left is not of this commit
    commit(
        table,
        newest_version(table, base),
        statistics=statistics_columns([name for name, _ in key]),
        leaving=None if leaving is None else lambda values: leaving(values["sub_index"], values["exp_block"]),
        facts=facts,
        table_metadata=table_metadata,
    )


def _placed(rows: DataFrame, key: Sequence[tuple[str, str]], sizes: Mapping[tuple[int, int], int]) -> DataFrame:
    """Deal rows to tasks, each run to one, sorted."""
    session = rows.sparkSession
    largest = max(sizes.values())
    for name, kind in key:
        if _filtered(kind):
            session.conf.set(f"parquet.bloom.filter.expected.ndv#{name}", str(min(ROW_GROUP_ROWS, largest)))
    tasks = _tasks(sizes, max(1, session.sparkContext.defaultParallelism))
    count = max(tasks.values()) + 1
    if count > 1:
        number = F.coalesce(
            F.create_map(*[F.lit(part) for cell, task in tasks.items() for part in (f"{cell[0]}/{cell[1]}", task)])[
                F.concat_ws("/", "sub_index", "exp_block")
            ],
            F.lit(0),
        )
        placed = rows.repartitionById(count, number)
    else:
        placed = rows.coalesce(1)
    return placed.sortWithinPartitions("sub_index", "exp_block", *[_identifier(name) for name, _ in key], "_exp")


def _identifier(name: str) -> str:
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


def write_rows(
    rows: DataFrame,
    table: Path,
    *,
    base: int,
    facts: CommitFacts,
    slotted: bool = False,
    leaving: Callable[[int], bool] | None = None,
    staged: Callable[[], None] | None = None,
) -> None:
    """Commit rows as they come: restored and rejected ones, or deferred ones by ``_slot``; ``leaving`` takes a slot.

    ``staged`` is called as in :func:`write_runs`.
    """
    stage(rows, table, ("_slot",) if slotted else (), FILE_ROWS)
    if staged is not None:
        staged()
    commit(
        table,
        newest_version(table, base),
        statistics=(),
        leaving=None if leaving is None else lambda values: leaving(values["_slot"]),
        facts=facts,
    )
