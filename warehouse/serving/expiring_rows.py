"""The rows that expire next: the live rows of each table that expire within given times, and their share of the files' bytes.

Files whose smallest and largest expiration slots are on one side of a horizon are counted from statistics; the engine counts the
rows of other files. Bytes are a file's size times the share of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import duckdb

from warehouse.serving.each_table import each_table
from warehouse.serving.engine import read_error
from warehouse.serving.pin import require
from warehouse.serving.pruning import any_live
from warehouse.serving.statement import instant
from warehouse.serving.visible_tables import visible
from warehouse.storage.duckdb_sql import literal
from warehouse.time import DAY, HOUR, slot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader
    from warehouse.storage.snapshot import DataFile

__all__ = ["HORIZONS", "ExpiringRows", "expiring_rows"]

HORIZONS = (6 * HOUR, DAY)
"""The horizons in addition to the next update, in microseconds."""


@dataclass(frozen=True)
class ExpiringRows:
    """The rows of a table that expire within ``within`` microseconds after the window time, and about how many bytes they are."""

    table: str
    within: int
    rows: int
    bytes: int


def expiring_rows(reader: Reader, horizons: Sequence[int]) -> tuple[ExpiringRows, ...]:
    """Return the rows that expire within each horizon (microseconds after the window time), for each table except archives.

    A table that cannot be read is left out.
    """
    rows_of_tables, _ = each_table(
        reader,
        lambda epoch: (state for state in visible(epoch) if state.kind != "archive"),
        lambda pin, state: _of_table(reader, pin, state, horizons),
    )
    return tuple(rows for rows_of_table in rows_of_tables.values() for rows in rows_of_table)


def _of_table(reader: Reader, pin: Pin, state: TableState, horizons: Sequence[int]) -> list[ExpiringRows]:
    epoch = pin.epoch
    last = _slot_of(epoch, max(horizons, default=0))
    files = [file for file in pin.snapshot(state).files if any_live(file, epoch.slot) and not _begins_after(file, last)]
    totals = [[0, 0] for _ in horizons]
    mixed: list[DataFile] = []
    for file in files:
        if not _is_whole(file, epoch, horizons):
            mixed.append(file)
            continue
        for number, horizon in enumerate(horizons):
            if (file.max_exp_slot or 0) <= _slot_of(epoch, horizon):
                totals[number][0] += file.rows or 0
                totals[number][1] += file.size
    for file, counts in zip(mixed, _counted(reader, pin, mixed, horizons), strict=True):
        for number, (rows, all_rows) in enumerate(counts):
            totals[number][0] += rows
            totals[number][1] += file.size * rows // max(1, all_rows)
    return [ExpiringRows(state.name, horizon, *total) for horizon, total in zip(horizons, totals, strict=True)]


def _slot_of(epoch: Epoch, horizon: int) -> int:
    return slot(epoch.window_time + horizon, epoch.anchor, epoch.update_interval)


def _begins_after(file: DataFile, last: int) -> bool:
    return file.min_exp_slot is not None and file.min_exp_slot > last


def _is_whole(file: DataFile, epoch: Epoch, horizons: Sequence[int]) -> bool:
    """Whether statistics alone show, for each horizon, that all rows or no rows of a file end by then."""
    if file.rows is None or file.min_exp_slot is None or file.max_exp_slot is None or file.min_exp_slot <= epoch.slot:
        return False
    least, largest, interval = file.min_exp_slot, file.max_exp_slot, epoch.update_interval
    on_grid = all(horizon % interval == 0 for horizon in horizons)
    return on_grid and all(largest <= _slot_of(epoch, horizon) or least > _slot_of(epoch, horizon) for horizon in horizons)


def _counted(
    reader: Reader, pin: Pin, files: Sequence[DataFile], horizons: Sequence[int]
) -> list[list[tuple[int, int]]]:
    """Return, for each file and horizon, the number of live rows that end by then, and the number of rows in the file."""
    if not files:
        return []
    paths = pin.local([file.path for file in files])
    require(paths)
    tau = pin.epoch.window_time
    sums = ", ".join(
        f"count(*) FILTER (WHERE _exp > {instant(tau)} AND _exp <= {instant(tau + horizon)})" for horizon in horizons
    )
    queries = [
        f"SELECT {number}, count(*), {sums} FROM read_parquet({literal(path)}, hive_partitioning = false)"
        for number, path in enumerate(paths)
    ]
    try:
        rows = reader.connection.execute(" UNION ALL ".join(queries)).fetchall()
    except duckdb.Error as error:
        raise read_error(error, paths) from error
    return [[(int(count), int(row[1])) for count in row[2:]] for row in sorted(rows)]
