"""Facts about a table's rows, from its files: how long they live, and how many share a key."""

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

__all__ = ["StoredSample", "stored_rows"]

_MOST_ROWS = 5_000_000


@dataclass(frozen=True)
class StoredSample:
    """The live rows of a table, or of a sample of its files.

    Parameters
    ----------
    shares
        Of inserted rows, the share for each distance of load slot and expiration slot 1..p, estimated from the live rows.
    rows_per_key
        Rows by different keys.
    looked_at
        How many rows were read.
    """

    shares: tuple[float, ...]
    rows_per_key: float
    looked_at: int


def stored_rows(reader: Reader, state: TableState, *, keys: bool = True) -> StoredSample:
    """Sample the slots and keys of a table's live rows; of a large table only from evenly chosen files.

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
    chosen = _chosen([file for file in reader.pin.snapshot(state).files if any_live(file, slot)])
    places = reader.pin.local([file.path for file in chosen])
    require(places)
    if not chosen:
        return StoredSample((0.0,) * periods, 1.0, 0)
    paths = ", ".join(map(literal, places))
    source = f"read_parquet([{paths}], union_by_name = true, hive_partitioning = false) WHERE _exp_slot > {slot}"
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
        raise read_error(error, places) from error
    counts = {int(distance): int(count) for distance, count in distances}
    return StoredSample(_shares(counts, periods), rows / values if values else 1.0, sum(counts.values()))


def _chosen(files: Sequence[DataFile]) -> list[DataFile]:
    """Return all files, or a regular sample of them if they have more rows than are worth reading."""
    rows = sum(file.rows or 0 for file in files)
    ordered = sorted(files, key=lambda file: (file.exp_block, file.sub_index, file.path))
    return ordered[:: max(1, -(-rows // _MOST_ROWS))]


def _shares(counts: dict[int, int], periods: int) -> tuple[float, ...]:
    each = [counts.get(distance, 0) / distance for distance in range(1, periods + 1)]
    total = sum(each)
    return tuple(value / total for value in each) if total else (0.0,) * periods
