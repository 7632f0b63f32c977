"""Plans a stream's archive: a table that gets the rows that expire in an update, in the same epoch.

The rows are read from the stream's files at the last epoch: all rows that end in the slots of this update, in any partition. So
each row is archived exactly once, by the update that moves the window past its end. A row that is not in the files of that epoch
was never in the table. The archive's own rows never expire. Their load slot is the slot in which they expired in the stream, so
the archive is divided by the time at which rows came into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.archives import EXPIRED_AT, archive_name
from warehouse.catalog.declaration import ColumnRecord, table_declaration
from warehouse.layout import resolve
from warehouse.planning.plan_record import StreamPlan

if TYPE_CHECKING:
    from warehouse.epochs.records import Epoch, Stopped, TableState

__all__ = ["archive_plan", "expire_within"]


def archive_plan(stream: StreamPlan, last: Epoch | None, slot: int) -> StreamPlan:
    """Return the plan of a stream's archive for an update to a slot, like the plan of a stream that loads no file."""
    name = archive_name(stream.name)
    before = last.table(name) if last else None
    stopped = _stopped(before, last.table(stream.name) if last else None)
    declared = (column for column in stream.declaration.columns if column.name not in stream.declaration.added)
    columns = (*declared, ColumnRecord(EXPIRED_AT, "timestamp"))
    recorded = table_declaration(columns, stream.declaration.search_key, label="MON", max_lifetime=None)
    return StreamPlan(
        name=name,
        declaration=before.declaration if before else recorded,
        layout=before.layout if before else resolve(periods=stream.layout.periods, label="MON"),
        k0=stopped.slot if stopped else last.slot if last else slot - 1,
        first=False,
        inputs=(),
        left_out=(),
        archive_of=stream.name,
    )


def _stopped(archive: TableState | None, stream: TableState | None) -> Stopped | None:
    """The slot at which an archive stood still; a new one begins where its stream did."""
    state = archive or stream
    return state.stopped if state else None


def expire_within(state: TableState | None, after: int, slot: int) -> bool:
    """Whether rows of a table can expire in the slots after one, up to another."""
    return state is not None and any(
        part.max_exp_slot > after and (part.min_exp_slot is None or part.min_exp_slot <= slot) for part in state.partitions
    )
