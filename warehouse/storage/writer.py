"""Writes runs: one Delta commit adds a batch, removes expired rows and rewrites sealed runs.

A run is the rows of one (sub-index, expiry block) sorted by (search key, ``_exp``): one file, or several with disjoint key ranges
when it is large (:mod:`warehouse.storage.writer`). The Parquet options of the key columns are settings
of the table's own session (small row groups, a Bloom filter and no dictionary for key columns).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import CELL, WAITING_SLOT
from warehouse.layout.tasks import FILE_ROWS, distribute, key_ranges, largest_file
from warehouse.storage.cluster import cores
from warehouse.storage.commit import commit, stage, unstage
from warehouse.storage.driver_writer import encoded_in_driver, stage_in_driver, stage_side_rows
from warehouse.storage.footers import LARGE_ROWS, without_dictionary
from warehouse.storage.tables import statistics_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from pyspark.sql import DataFrame

    from warehouse.storage.commit import CommitFacts
    from warehouse.storage.driver_writer import EncodedRuns
    from warehouse.storage.entries import LogEntry

__all__ = ["ROW_GROUP_ROWS", "RunTable", "encoded_runs", "key_settings", "place", "write_rows", "write_runs"]


ROW_GROUP_ROWS = 10_000
"""*Measured*: a probe decodes a row group of each file that holds its key; with 20 000 rows, which are not scanned faster, it
takes 1.3 times as long (benchmarks/README.md, Defaults). As many keys also fill a Bloom filter of 16 KiB."""

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


def encoded_runs(rows: pa.Table, key: Sequence[tuple[str, str]], target_rows: int) -> EncodedRuns:
    """Return rows, in the driver, as the files that :func:`write_runs` writes of them."""
    return encoded_in_driver(
        rows, key=[name for name, _ in key], filtered=[name for name, kind in key if _filtered(kind)],
        file_rows=largest_file(target_rows), group_rows=ROW_GROUP_ROWS,
    )  # fmt: skip


@dataclass(frozen=True)
class RunTable:
    """The table of runs that a commit changes.

    Parameters
    ----------
    path
        The table's directory.
    key
        (column, type) of the search key, in order.
    base
        The table's newest entry, which the commit must follow.
    target_rows
        Rows of a file, by :func:`warehouse.layout.tasks.file_rows`.
    staged
        Called when the rows are written and not yet committed; if it raises an error, the table does not change.

    """

    path: Path
    key: Sequence[tuple[str, str]]
    base: LogEntry
    target_rows: int = FILE_ROWS
    staged: Callable[[], None] | None = None


def write_runs(
    rows: DataFrame | pa.Table,
    table: RunTable,
    *,
    sizes: Mapping[tuple[int, int], int],
    leaving: Callable[[int, int], bool] | None,
    facts: CommitFacts,
    table_metadata: Mapping[str, Any] | None = None,
    encoded: EncodedRuns | None = None,
) -> LogEntry:
    """Commit rows as runs, and return the new entry; without rows no Spark job runs.

    Parameters
    ----------
    rows
        The table's columns, partition columns included, in a session with the table's :func:`key_settings`; or few of them in the
        driver, which then writes them itself.
    table
        The table, and what the commit is made on.
    sizes
        Expected rows per (sub-index, expiry block); they decide how the write is divided into tasks.
    leaving
        Whether the files of a (sub-index, expiry block) leave the table in the same commit. None: the commit only adds.
    facts
        The commit's metadata.
    table_metadata
        The action that also changes the table's columns or key; None: they stay.
    encoded
        The result of :func:`encoded_runs` for the rows, if it was called before.

    """
    directory, names = None, [name for name, _ in table.key]
    if isinstance(rows, pa.Table) and rows.num_rows:
        files = encoded_runs(rows, table.key, table.target_rows) if encoded is None else encoded
        directory = stage_in_driver(files, table.path)
    elif sizes and not isinstance(rows, pa.Table):
        settings = {**_filter_sizes(table.key, sizes), **_dictionaries(table.path, table.base.version, sum(sizes.values()))}
        order = (*CELL, *map(quoted, names), "_exp")
        placed = place(rows, names, sizes, table.target_rows)
        directory = stage(placed, table.path, CELL, largest_file(table.target_rows), order, settings)
    else:
        unstage(table.path)  # files of an attempt that did not finish are not of this commit
    if directory is not None and table.staged is not None:
        table.staged()
    return commit(
        table.path,
        table.base,
        statistics=statistics_columns(table.key),
        leaving=None if leaving is None else lambda values: leaving(values["sub_index"], values["exp_block"]),
        facts=facts,
        staged=directory,
        table_metadata=table_metadata,
        summarized=names,
    )


def _filter_sizes(key: Sequence[tuple[str, str]], sizes: Mapping[tuple[int, int], int]) -> dict[str, str]:
    """The key columns' filters hold the keys of the largest run, if that is less than a row group."""
    keys = str(min(ROW_GROUP_ROWS, max(sizes.values())))
    return {f"parquet.bloom.filter.expected.ndv#{name}": keys for name, kind in key if _filtered(kind)}


def _dictionaries(table: Path, version: int, expected: int) -> dict[str, str]:
    """Return settings by which a large write makes no dictionaries that it would discard."""
    if expected < LARGE_ROWS:
        return {}
    return {f"parquet.enable.dictionary#{name}": "false" for name in without_dictionary(table, version)}


def write_rows(
    rows: DataFrame | pa.Table,
    table: Path,
    *,
    base: LogEntry,
    facts: CommitFacts,
    slotted: bool = False,
    statistics: Sequence[str] = (),
    leaving: Callable[[int], bool] | None = None,
    staged: Callable[[], None] | None = None,
) -> LogEntry:
    """Commit rows as they come: restored and rejected rows, or deferred rows by ``_slot``; ``leaving`` takes a slot.

    The driver writes rows that it has in memory. ``staged`` is called as in :func:`write_runs`; the log keeps the bounds of the
    columns in ``statistics``.
    """
    slots, file_rows = WAITING_SLOT if slotted else None, largest_file(FILE_ROWS)
    if isinstance(rows, pa.Table):
        directory = stage_side_rows(rows, table, slots, file_rows=file_rows, group_rows=ROW_GROUP_ROWS)
    else:
        directory = stage(rows, table, () if slots is None else (slots,), file_rows)
    if staged is not None:
        staged()
    return commit(
        table,
        base,
        statistics=statistics,
        leaving=None if leaving is None else lambda values: leaving(values[WAITING_SLOT]),
        facts=facts,
        staged=directory,
    )


# Distributing rows over tasks, so that each run is written sorted, by one task or by several with disjoint ranges of keys.
# How is a matter of :mod:`warehouse.layout.tasks`. For ranges of the search key Spark samples the keys, so that the
# update of a large table is the work of all executors whatever its grid.


def place(rows: DataFrame, key: Sequence[str], sizes: Mapping[tuple[int, int], int], target_rows: int = FILE_ROWS) -> DataFrame:
    """Distribute rows over tasks: each run to one task, or a large run to several by ranges of the search key.

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
    tasks = distribute(runs, workers, target_rows)
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
