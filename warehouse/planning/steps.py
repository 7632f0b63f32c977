"""The steps of a plan as values; each step is one commit to one table."""

from __future__ import annotations

from typing import Literal

import msgspec

from warehouse.epochs.records import ColumnRecord
from warehouse.layout import Seal

__all__ = [
    "AddColumns",
    "CreateTable",
    "CutLog",
    "DropOverdue",
    "EraseRows",
    "FormerCells",
    "MigrateTable",
    "MoveDeferred",
    "MoveRelation",
    "MoveWindow",
    "ReplaceTable",
    "RestoreTable",
    "RewriteBuckets",
    "RewriteCells",
    "Role",
    "SetProperties",
    "Step",
    "StoreRejected",
    "StoreRestored",
]

Role = Literal["rows", "deferred", "rejected", "restored"]


class CreateTable(msgspec.Struct, frozen=True, tag="create-table"):
    """Create a table with its properties; ``deferred`` and ``rejected`` tables only when they get rows."""

    stream: str
    role: Role
    path: str
    table_id: str


class AddColumns(msgspec.Struct, frozen=True, tag="add-columns"):
    """Give a table the columns of its declaration; stored rows have null in the new columns.

    Short-lived results also get values of today's types (:mod:`warehouse.storage.reshaping`).
    """

    stream: str
    role: Role
    path: str
    table_id: str
    base_version: int


class FormerCells(msgspec.Struct, frozen=True):
    """The (sub-index, expiry block) pairs of former layouts that change in a table that migrates side by side.

    ``gone`` pairs have no live row and are removed unread; ``aged`` pairs are rewritten in place without their expired rows; live
    rows of ``moved`` pairs go to the present layout.
    """

    gone: tuple[tuple[int, int], ...] = ()
    aged: tuple[tuple[int, int], ...] = ()
    moved: tuple[tuple[int, int], ...] = ()

    @property
    def leaving(self) -> frozenset[tuple[int, int]]:
        """The pairs whose files leave the table."""
        return frozenset((*self.gone, *self.aged, *self.moved))


class MoveWindow(msgspec.Struct, frozen=True, tag="move-window"):
    """``norebuild``: append the batch as runs, remove blocks below ``expired_below``, merge the runs of ``seals``.

    ``expired`` lists the partitions of those blocks, ``dead`` overflow partitions whose rows have all expired.
    """

    stream: str
    path: str
    table_id: str
    base_version: int
    expired_below: int
    expired: tuple[tuple[int, int], ...]
    dead: tuple[tuple[int, int], ...]
    seals: tuple[Seal, ...]
    former: FormerCells = FormerCells()


class RewriteCells(msgspec.Struct, frozen=True, tag="rewrite-cells"):
    """``rebuild``: rewrite the planned sub-indices from their survivors and the batch."""

    stream: str
    path: str
    table_id: str
    base_version: int
    cells: tuple[int, ...]
    rows: int
    former: FormerCells = FormerCells()


class MigrateTable(msgspec.Struct, frozen=True, tag="migrate-table"):
    """Write all live rows of a table again, under the layout and the columns of its declaration, in one commit.

    ``columns`` are the stored columns, ``renamed`` pairs of former and new names. With ``reslotted`` the slots of each row are
    computed again, since anchor or update interval changed. ``takes``: the batch may have rows that waited. ``rows``: the number
    of stored rows.
    """

    stream: str
    path: str
    table_id: str
    base_version: int
    columns: tuple[ColumnRecord, ...]
    renamed: tuple[tuple[str, str], ...]
    rows: int
    reslotted: bool = False
    takes: bool = False


class MoveDeferred(msgspec.Struct, frozen=True, tag="move-deferred"):
    """Remove rows whose slot has come from the deferred table, and add new waiting rows."""

    stream: str
    path: str
    table_id: str
    base_version: int
    taken: tuple[int, ...]


class StoreRejected(msgspec.Struct, frozen=True, tag="store-rejected"):
    """Keep the batch's invalid rows with their reasons.

    If files are tried again, an earlier step has emptied the table. Its rows of ``kept_version`` that are not of the ``retried``
    files are then kept too.
    """

    stream: str
    path: str
    table_id: str
    base_version: int
    kept_version: int | None = None
    retried: tuple[str, ...] = ()


class DropOverdue(msgspec.Struct, frozen=True, tag="drop-overdue"):
    """Remove rejected or restored rows that epochs up to ``through`` found, in whole files where it can be."""

    stream: str
    role: Role
    path: str
    table_id: str
    base_version: int
    through: int


class SetProperties(msgspec.Struct, frozen=True, tag="set-properties"):
    """Give a table the properties of this build, and a log that is kept as long as ``retain`` says.

    Planned for tables of an earlier build, and after ``retain`` was raised: otherwise versions that epochs pin could not be
    opened.
    """

    stream: str
    path: str
    base_version: int


class MoveRelation(msgspec.Struct, frozen=True, tag="move-relation"):
    """Apply a batch of changes to a relation: versions end and begin; versions that ended ``history`` ago may be removed.

    ``history`` is in microseconds; None keeps all versions.
    """

    stream: str
    path: str
    table_id: str
    base_version: int
    history: int | None


class RestoreTable(msgspec.Struct, frozen=True, tag="restore-table"):
    """Restore a table's files of an earlier version (-1: no file): the first steps of a plan that goes back."""

    stream: str
    path: str
    base_version: int
    to_version: int


class ReplaceTable(msgspec.Struct, frozen=True, tag="replace-table"):
    """Empty a table and give it the columns of its changed declaration; steps that follow fill it again."""

    stream: str
    path: str
    table_id: str
    base_version: int
    role: Role = "rows"


class RewriteBuckets(msgspec.Struct, frozen=True, tag="rewrite-buckets"):
    """Replace the changed rows of a keyed table, in their buckets."""

    stream: str
    path: str
    table_id: str
    base_version: int


class StoreRestored(msgspec.Struct, frozen=True, tag="store-restored"):
    """Keep the results of a view that began and ended between two updates."""

    stream: str
    path: str
    table_id: str
    base_version: int


class EraseRows(msgspec.Struct, frozen=True, tag="erase-rows"):
    """Rewrite partitions without the rows of the plan's erased keys, and without rows that expired by ``dead_by``.

    ``cells`` are pairs (sub-index, expiry block), for deferred rows (slot, 0). Without cells the whole table is rewritten;
    restored rows are then all removed. ``keyed``: keys are erased, and not only expired rows. ``rows``: the number of rows found.
    ``dead_by`` is in microseconds; None keeps expired rows.
    """

    stream: str
    role: Role
    path: str
    table_id: str
    base_version: int
    cells: tuple[tuple[int, int], ...]
    rows: int
    keyed: bool
    dead_by: int | None = None


class CutLog(msgspec.Struct, frozen=True, tag="cut-log"):
    """Commit a version at which a table's log will be cut after the epoch is written."""

    stream: str
    path: str
    table_id: str
    base_version: int


Step = (
    SetProperties
    | CreateTable
    | RestoreTable
    | ReplaceTable
    | AddColumns
    | MigrateTable
    | MoveWindow
    | RewriteCells
    | MoveRelation
    | RewriteBuckets
    | MoveDeferred
    | StoreRejected
    | StoreRestored
    | DropOverdue
    | EraseRows
    | CutLog
)
