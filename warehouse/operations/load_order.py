"""Refuses a migration to another grid of times if it would change the rows of coalesced tables without files.

If points have the same group and time, the point that was loaded first counts, and load slots show which point this is. A new
grid of times derives load slots from the points' own times: these points then have the same slot, and the smallest values count.
A table whose rows would change by this must be stored first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.errors import MigrationError
from warehouse.serving import Reader
from warehouse.serving.lazy_rows import lazy_rows, points_read
from warehouse.serving.pin import require
from warehouse.serving.statement import select
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.following import LazyTable
    from warehouse.epochs.records import Epoch
    from warehouse.serving.pin import Pin

__all__ = ["require_no_load_order"]


def require_no_load_order(root: Path, last: Epoch) -> None:
    """Raise an error if new slots would change the rows of a table without files.

    Raises
    ------
    MigrationError
        When updates loaded several points of one group and time for such a table, and the first point was not the smallest.

    """
    if not last.lazy:
        return
    with Reader(root, last) as reader:
        for table in last.lazy:
            if reader.retrying(lambda pin: _depends_on_slots(pin, reader, table)):  # noqa: B023 - called at once
                raise MigrationError(
                    table.name,
                    "of points of one group and time, the one that was loaded first counts, and this order is lost once slots "
                    f'are counted again: restore anchor and update_interval, set how = "eager" in [coalesced.{table.name}] and '
                    f"run `stream-wh migrate {table.name}` first",
                )


def _depends_on_slots(pin: Pin, reader: Reader, table: LazyTable) -> bool:
    """Whether the rows would differ if all points had the same slot."""
    tau, stream = pin.epoch.window_time, pin.epoch.table(table.definition.source)
    if stream is None:
        return False
    source = pin.live_source(stream, tau)
    require((source.schema_file, *source.files))
    points = select(source, [*points_read(table), "_ts", "_load_slot"])
    columns = ", ".join(quoted(name) for name, _ in table.definition.columns)
    rows, slotless = (
        f"SELECT {columns} FROM ({lazy_rows(table, text, tau)})"
        for text in (points, f"SELECT * REPLACE (0 AS _load_slot) FROM ({points})")
    )
    query = f"SELECT count(*) FROM (({rows} EXCEPT ALL {slotless}) UNION ALL ({slotless} EXCEPT ALL {rows}))"
    return bool(reader.connection.execute(query).fetchall()[0][0])
