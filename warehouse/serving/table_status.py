"""The state of each table at an epoch: live rows, files, bytes, waiting and rejected rows, and how long expired rows stay.

All of it comes from the epoch's record and the tables' statistics; the engine counts only the rows of files with expired rows.
This module does not read landing directories, so it does not know lags.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import duckdb

from warehouse.layout import OVERFLOW_BLOCK, how_long_dead, remaining_share
from warehouse.serving.accuracy import is_shed, shed_share
from warehouse.serving.each_table import each_table
from warehouse.serving.engine import read_error
from warehouse.serving.lazy_rows import lazy_states
from warehouse.serving.owed_results import Owed, owed_of
from warehouse.serving.pin import require
from warehouse.serving.pruning import all_live, any_live
from warehouse.serving.statement import instant, select
from warehouse.storage.duckdb_sql import literal

if TYPE_CHECKING:
    from warehouse.epochs.records import Epoch, FormerLayout, Partition, TableState
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader
    from warehouse.storage.snapshot import DataFile

__all__ = ["FormerStatus", "TableStatus", "accuracies", "lazy_count", "live_row_count", "refused_status", "status"]


@dataclass(frozen=True)
class FormerStatus:
    """The rest of a former layout during a migration side by side.

    ``rows`` of it are still live: the ``share`` of the rows that were live when the migration began, ``updates`` slots ago.
    ``predicted`` is the share for steady arrivals and uniform lifetimes.
    """

    rows: int
    share: float
    predicted: float
    updates: int


@dataclass(frozen=True)
class TableStatus:
    """The state of a table; instants and durations in microseconds.

    ``rows`` counts all rows in its files, ``live_rows`` the rows that expire after the window time. If updates come in time, an
    expired row has left the newest epoch's files ``dead_for`` after its expiration. It has left the disk after ``on_disk_for``:
    then the epochs that name its file are retired and the next update has vacuumed. ``overflow_rows`` were loaded with a lifetime
    beyond p slots; for them ``overflow_dead_for`` replaces ``dead_for``. ``failed`` says why the last update could not maintain a
    view, or move a table that outsiders changed; then the counts are of former rows. ``newest`` is the largest ``_ts`` of all its
    rows so far, also of expired ones (None: unknown). ``former`` are layouts that a migration side by side has not emptied yet.
    For an aggregate, ``waiting`` are due windows that the last update had no time to answer, and ``late`` is how many updates ago
    the first of them was due. ``owed`` has the results that a view under a budget owes.
    """

    table: str
    kind: str
    declared: bool
    epoch: int
    window_time: int
    live_rows: int
    rows: int
    files: int
    bytes: int
    waiting: int
    rejected: int
    dead_for: int
    on_disk_for: int
    overflow_rows: int
    overflow_dead_for: int
    partitions: tuple[Partition, ...]
    failed: str | None = None
    newest: int | None = None
    late: int | None = None
    owed: Owed | None = None
    former: tuple[FormerStatus, ...] = ()


def status(reader: Reader, *, retain: int) -> tuple[TableStatus, ...]:
    """Return the state of every table at the epoch, including the tables of operators' state (kind ``state``).

    A table that cannot be read, since its directory was replaced or files were removed, has the recorded counts, no live row, and
    a reason in ``failed``.

    Parameters
    ----------
    reader
        The epoch.
    retain
        How long a superseded epoch stays readable, in microseconds.

    """
    statuses, errors = each_table(
        reader, lambda epoch: epoch.tables, lambda pin, state: _status(reader, pin, state, retain, pin.snapshot(state).files)
    )
    epoch = reader.epoch
    for state in epoch.tables:
        if state.name in errors:
            statuses[state.name] = replace(_recorded(reader, state, retain), failed=errors[state.name])
    counts, unread = each_table(reader, lazy_states, lambda pin, state: lazy_count(pin, reader.connection, state))
    lazy = (
        replace(_without_files(epoch, state.name, state.kind), live_rows=counts.get(state.name, 0), failed=unread.get(state.name),
                newest=state.newest)
        for state in lazy_states(epoch)
    )
    refused = (refused_status(epoch, view, why) for view, why in epoch.refused)
    return *(statuses[state.name] for state in epoch.tables), *lazy, *refused


def _recorded(reader: Reader, state: TableState, retain: int) -> TableStatus:
    """Return the state of a table as far as the epoch's record has it, without reading the table."""
    rows, number, size = (sum(getattr(part, name) for part in state.partitions) for name in ("rows", "files", "bytes"))
    return replace(_status(reader, reader.pin, state, retain, ()), rows=rows, files=number, bytes=size)


def accuracies(reader: Reader, at_least: int = 0) -> dict[str, float]:
    """Return the accuracy of each shed table at the pinned epoch; rows shorter than ``at_least`` microseconds do not count."""
    shares, _ = each_table(
        reader,
        lambda epoch: tuple(filter(is_shed, epoch.tables)),
        lambda pin, state: shed_share(pin, reader.connection, state, at_least),
    )
    return shares


def refused_status(epoch: Epoch, view: str, why: str) -> TableStatus:
    """Return the state of a declared view that has no table."""
    return replace(_without_files(epoch, view, "view"), failed=why)


def _without_files(epoch: Epoch, name: str, kind: str) -> TableStatus:
    return TableStatus(
        table=name, kind=kind, declared=True, epoch=epoch.number, window_time=epoch.window_time, live_rows=0, rows=0, files=0,
        bytes=0, waiting=0, rejected=0, dead_for=0, on_disk_for=0, overflow_rows=0, overflow_dead_for=0, partitions=(),
    )  # fmt: skip


def lazy_count(pin: Pin, connection: duckdb.DuckDBPyConnection, state: TableState) -> int:
    """Return the number of rows that the points of a coalesced table without files make."""
    source = pin.live_source(state, pin.epoch.window_time)
    require((source.schema_file, *source.files))
    row = connection.execute(f"SELECT count(*) FROM ({select(source, ['members'])})").fetchone()
    return int(row[0]) if row else 0


def _status(reader: Reader, pin: Pin, state: TableState, retain: int, files: tuple[DataFile, ...]) -> TableStatus:
    epoch = pin.epoch
    interval, layouts = epoch.update_interval, (state.layout, *(former.layout for former in state.former))
    dead_for = (max(map(how_long_dead, layouts)) + 1) * interval
    overflow = sum(part.rows for part in state.partitions if part.exp_block == OVERFLOW_BLOCK)
    cycle = max(layout.rows * layout.rows_span for layout in layouts) * interval
    overflow_dead_for = max(dead_for, cycle) if overflow else dead_for
    return TableStatus(
        table=state.name,
        kind=state.kind,
        declared=state.declared,
        epoch=epoch.number,
        window_time=epoch.window_time,
        live_rows=live_row_count(reader, pin, files),
        rows=_rows(reader, files),
        files=len(files),
        bytes=sum(file.size for file in files),
        waiting=state.deferred.rows if state.deferred else len(state.answers.waiting) if state.answers else 0,
        rejected=state.rejected.rows if state.rejected else 0,
        dead_for=dead_for,
        on_disk_for=dead_for + retain + interval,
        overflow_rows=overflow,
        overflow_dead_for=overflow_dead_for,
        partitions=state.partitions,
        failed=state.view.failed if state.view else state.stopped.reason if state.stopped else None,
        owed=owed_of(state),
        newest=state.newest,
        late=None if state.answers is None else state.answers.late,
        former=tuple(_former_status(reader, pin, former, files) for former in state.former),
    )


def _former_status(reader: Reader, pin: Pin, former: FormerLayout, files: tuple[DataFile, ...]) -> FormerStatus:
    rows = live_row_count(reader, pin, tuple(file for file in files if former.holds(file.sub_index)))
    updates = pin.epoch.slot - former.since
    return FormerStatus(
        rows, rows / former.rows if former.rows else 0.0, remaining_share(updates, former.layout.periods), updates
    )


def live_row_count(reader: Reader, pin: Pin, held: tuple[DataFile, ...]) -> int:
    """Return the number of live rows in a table's files; files whose smallest ``_exp_slot`` proves all rows live are not read."""
    slot = pin.epoch.slot
    live = [file for file in held if all_live(file, slot)]
    mixed = [file for file in held if any_live(file, slot) and not all_live(file, slot)]
    return _rows(reader, live) + _count(reader, mixed, f" WHERE _exp > {instant(pin.epoch.window_time)}")


def _rows(reader: Reader, files: tuple[DataFile, ...] | list[DataFile]) -> int:
    unknown = [file for file in files if file.rows is None]
    return sum(file.rows or 0 for file in files) + _count(reader, unknown, "")


def _count(reader: Reader, files: list[DataFile], where: str) -> int:
    if not files:
        return 0
    local_paths = reader.pin.local([file.path for file in files])
    require(local_paths)
    paths = ", ".join(map(literal, local_paths))
    try:
        row = reader.connection.execute(
            f"SELECT count(*) FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false){where}"
        ).fetchone()
    except duckdb.Error as error:
        raise read_error(error, local_paths) from error
    return int(row[0]) if row else 0
