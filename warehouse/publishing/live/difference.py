"""The difference of a live table from the table that an epoch makes: its log, its files, and each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import duckdb

from warehouse.errors import WarehouseError
from warehouse.layout.columns import TIMES
from warehouse.publishing.live.log import LIVE, newest_state
from warehouse.serving.statement import select
from warehouse.serving.visible_tables import is_user_column
from warehouse.storage.duckdb_sql import listed, quoted
from warehouse.storage.fingerprint import damage
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import TableState
    from warehouse.publishing.live.log import LiveState
    from warehouse.serving.pin import Pin

__all__ = ["LiveDifference", "has_files", "live_difference"]


@dataclass(frozen=True)
class LiveDifference:
    """A fault of a live table."""

    kind: Literal["missing", "stale", "changed", "damaged"]
    message: str

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.kind in ("missing", "stale"):
            return "the next update or `stream-wh check --repair` makes it again"
        return "`stream-wh check --repair` makes it again from the table, once that is whole itself"


def has_files(table: Path, state: LiveState) -> bool:
    """Return whether the files of a live table exist with their sizes; in an object store only names are compared.

    Raises
    ------
    OSError
        When the disk cannot be read.

    """
    if not store_of(table).cheap_requests:
        return set(state.files) <= set(store_of(table).entry_names(table))
    try:
        return all((table / path).stat().st_size == add["size"] for path, add in state.files.items())
    except (FileNotFoundError, NotADirectoryError):
        return False


def live_difference(pin: Pin, state: TableState, connection: duckdb.DuckDBPyConnection | None) -> LiveDifference | None:
    """Return the difference of a table's live table from the pinned newest epoch; None if they are equal.

    Without a connection, rows are not compared.
    """
    table, epoch = pin.root / LIVE / state.name, pin.epoch
    live_state = newest_state(table)
    if live_state is None:
        return LiveDifference("missing", "there is no such table, or its log cannot be read")
    if not live_state.trusted:
        return LiveDifference("changed", f"somebody else made its version {live_state.version}")
    if not live_state.is_of(epoch):
        return LiveDifference("stale", f"it is of epoch {live_state.epoch}, the newest is {epoch.number}")
    if not has_files(table, live_state):
        return LiveDifference("damaged", "files that its log names are missing, or have other sizes")
    if connection is None:
        return None
    if (damaged := _first_damaged(table, live_state)) is not None:
        return LiveDifference("damaged", f"{damaged[0]}: {damaged[1]}")
    try:
        published, expected = _rows_of_both(pin, state, table, live_state, connection)
    except (WarehouseError, duckdb.Error) as error:
        return LiveDifference("damaged", f"it cannot be compared: {str(error).partition(chr(10))[0]}")
    message = f"it holds {published[0]} rows, which are not the {expected[0]} live ones"
    return None if published == expected else LiveDifference("changed", message)


def _first_damaged(table: Path, live_state: LiveState) -> tuple[str, str] | None:
    """Return the first file whose bytes changed since they were written, and the damage; None in an object store."""
    if not store_of(table).cheap_requests:
        return None
    reasons = ((path, damage(table / path)) for path in sorted(live_state.files))
    return next(((path, reason) for path, reason in reasons if reason is not None), None)


def _rows_of_both(
    pin: Pin, state: TableState, table: Path, live_state: LiveState, connection: duckdb.DuckDBPyConnection
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the number of live rows and the sum of their hashes: for the live table, then for the table."""
    columns = [column.name for column in state.declaration.columns if is_user_column(column.name)]
    names = [*columns, *TIMES]
    files = pin.local([str(table / path) for path in sorted(live_state.files)])
    raw = f"read_parquet({listed((pin.schema_file(state), *files))}, union_by_name = true, hive_partitioning = false)"
    tau = pin.epoch.window_time
    published, live = f"SELECT {', '.join(map(quoted, names))} FROM {raw}", select(pin.live_source(state, tau), names)
    return _count_and_hash(connection, published), _count_and_hash(connection, live)


def _count_and_hash(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[int, int]:
    null_for_never = "CASE WHEN year(_exp) < 9999 THEN _exp END AS _exp"  # a scan shows null where a row never ends
    rows = f"SELECT * REPLACE ({null_for_never}) FROM ({query})"
    query = f"SELECT count(*), coalesce(sum(hash(r)::HUGEINT), 0) FROM ({rows}) AS r"
    ((count, total),) = connection.execute(query).fetchall()  # an answer that is not read to its end blocks the connection
    return int(count), int(total)
