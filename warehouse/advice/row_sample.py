"""Samples a table's live rows: how long they live, and how many of them have the same key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from warehouse.serving.engine import read_error
from warehouse.serving.pin import require
from warehouse.serving.pruning import any_live
from warehouse.storage.duckdb_sql import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import TableState
    from warehouse.serving.reader import Reader
    from warehouse.storage.snapshot import DataFile

__all__ = ["RowSample", "sample_rows"]

_MAX_ROWS = 5_000_000


@dataclass(frozen=True)
class RowSample:
    """The live rows of a table, or of a sample of its files.

    Parameters
    ----------
    shares
        The share of inserted rows for each distance 1..p between load slot and expiration slot, estimated from the live rows.
    rows_per_key
        Rows divided by different keys.
    looked_at
        How many rows were read.
    """

    shares: tuple[float, ...]
    rows_per_key: float
    rows_read: int


def sample_rows(reader: Reader, state: TableState, *, keys: bool = True) -> RowSample:
    """Return a sample of a table's live rows; of a large table only some files are read.

    A row of distance d is live after d updates, so there are d times as many live rows of distance d as each update inserts.

    Parameters
    ----------
    reader
        The epoch.
    state
        The table.
    keys
        Whether to count different keys too, which reads the key's columns.
    """
    slot, periods = reader.epoch.slot, state.layout.periods
    files = _sampled_files([file for file in reader.pin.snapshot(state).files if any_live(file, slot)])
    paths = reader.pin.local([file.path for file in files])
    require(paths)
    if not files:
        return RowSample((0.0,) * periods, 1.0, 0)
    listed_paths = ", ".join(map(literal, paths))
    source = f"read_parquet([{listed_paths}], union_by_name = true, hive_partitioning = false) WHERE _exp_slot > {slot}"
    try:
        distances = reader.connection.execute(
            f"SELECT _exp_slot - _load_slot, count(*) FROM {source} AND _exp_slot - _load_slot <= {periods} GROUP BY 1"
        ).fetchall()
        rows, values = (0, 0)
        if keys:
            key = ", ".join(quoted(column) for column in state.declaration.search_key)
            counted = f"SELECT count(*), approx_count_distinct(({key})) FROM {source}"
            rows, values = reader.connection.execute(counted).fetchall()[0]
    except duckdb.Error as error:
        raise read_error(error, paths) from error
    counts = {int(distance): int(count) for distance, count in distances}
    return RowSample(_shares(counts, periods), rows / values if values else 1.0, sum(counts.values()))


def _sampled_files(files: Sequence[DataFile]) -> list[DataFile]:
    """Return all files, or every n-th file if they have too many rows to read."""
    rows = sum(file.rows or 0 for file in files)
    ordered = sorted(files, key=lambda file: (file.exp_block, file.sub_index, file.path))
    return ordered[:: max(1, -(-rows // _MAX_ROWS))]


def _shares(counts: dict[int, int], periods: int) -> tuple[float, ...]:
    rates = [counts.get(distance, 0) / distance for distance in range(1, periods + 1)]
    total = sum(rates)
    return tuple(value / total for value in rates) if total else (0.0,) * periods
