"""The steps of a plan as values; each step is one commit to one table.

A plan is the write-ahead record of an update: it has everything that decides the outcome (declarations, layout, files, clock
instant), so a later process that completes it gets exactly the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from warehouse.coalescing.choosing import Choice
from warehouse.epochs.following import LazyTable, followed_by
from warehouse.epochs.records import Cause, ColumnRecord, Declaration, Epoch, LeftOut, Loaded
from warehouse.ingest.files import InputFiles
from warehouse.layout import Layout, Seal
from warehouse.layout.tasks import file_rows
from warehouse.planning.following import AnswersPlan, CoalescedPlan, SynopsisPlan
from warehouse.promise.units import BudgetPlan
from warehouse.views.algebra import Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import Partition

__all__ = [
    "AddColumns",
    "CreateTable",
    "CutLog",
    "DropOverdue",
    "EraseRows",
    "Erasure",
    "FormerCells",
    "MigrateTable",
    "MoveDeferred",
    "MoveRelation",
    "MoveWindow",
    "NodePlan",
    "Plan",
    "ReplaceTable",
    "RestoreTable",
    "RestoredFile",
    "RewriteBuckets",
    "RewriteCells",
    "Role",
    "SetProperties",
    "Step",
    "StoreRejected",
    "StoreRestored",
    "StreamPlan",
]

Role = Literal["rows", "deferred", "rejected", "restored"]


class CreateTable(msgspec.Struct, frozen=True, tag="create-table"):
    """Create a table with its properties; ``deferred`` and ``rejected`` ones only when they get rows."""

    stream: str
    role: Role
    path: str
    table_id: str


class AddColumns(msgspec.Struct, frozen=True, tag="add-columns"):
    """Give a table the columns of its declaration; stored rows have null in the new ones.

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

    ``cells`` are pairs (sub-index, expiry block), for deferred rows (slot, 0). None: the whole table; restored rows are then all
    removed. ``keyed``: keys are erased, and not only expired rows. ``rows``: the number of rows found. ``dead_by`` is in
    microseconds; None keeps expired rows.
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


class RestoredFile(msgspec.Struct, frozen=True):
    """An archived landing file to move back: its place, relative to the landing directory, and its path in that directory."""

    source: str
    path: str


class StreamPlan(msgspec.Struct, frozen=True):
    """The work of an update for one stream, or for a table that follows one.

    ``first``: the table gets its first build, in which load slots are clamped to ``k - p + 1 .. k`` and no row is late. ``k0`` is
    this stream's last processed slot (``k - p`` on a first build). ``more`` files wait for the next plan; ``gone`` files were
    loaded and are no longer in the landing directory. From ``retried`` files only rejected records are loaded. Archived
    ``restored_files`` are moved back before anything is read. An archive has ``archive_of``, the stream whose expired rows it
    gets; other tables that follow a stream have ``synopsis``, ``answers`` or ``coalesced``.
    """

    name: str
    declaration: Declaration
    layout: Layout
    k0: int
    first: bool
    inputs: tuple[InputFiles, ...]
    left_out: tuple[LeftOut, ...]
    gone: tuple[str, ...] = ()
    more: int = 0
    retried: tuple[str, ...] = ()
    restored_files: tuple[RestoredFile, ...] = msgspec.field(default=(), name="put_back")
    archive_of: str | None = None
    synopsis: SynopsisPlan | None = None
    answers: AnswersPlan | None = None
    coalesced: CoalescedPlan | None = None

    @property
    def lands(self) -> bool:
        """Whether it loads landing files: other tables follow a stream."""
        return self.archive_of is None and self.followed is None

    @property
    def followed(self) -> str | None:
        """The stream that it follows as a synopsis, answers or a coalesced table."""
        return followed_by(self.synopsis, self.answers, self.coalesced)

    @property
    def stored_columns(self) -> tuple[ColumnRecord, ...]:
        """The stored columns before the system columns: the declared ones, and the state of a coalesced table."""
        state = () if self.coalesced is None else self.coalesced.definition.state
        return (*self.declaration.columns, *(ColumnRecord(name, kind) for name, kind in state))


class NodePlan(msgspec.Struct, frozen=True):
    """The work of an update for one node of a view.

    ``columns`` are the user's columns with their types, ``state`` the columns of aggregates' state. ``first`` nodes are built
    over the rows that are live at the window time. ``spare_of`` names the DISTINCT whose spare rows the table holds. Under a
    ``budget`` a part of the results is made, and the others are owed.
    """

    name: str
    view: str
    sql: str
    node: Node
    layout: Layout
    k0: int
    first: bool
    short_lived: Literal["drop", "report"]
    columns: tuple[ColumnRecord, ...]
    state: tuple[ColumnRecord, ...] = ()
    spare_of: str | None = None
    schema_file: str = ""
    max_lifetime: int | None = None
    budget: BudgetPlan | None = None


class Erasure(msgspec.Struct, frozen=True):
    """The request of an erasure: keys of a table, or, without keys, the expired rows of all tables with steps.

    ``key`` are the columns with their types, ``keys`` tuples of their texts (a prefix has fewer), with None for a null; ``views``
    are rebuilt without the rows. ``salt`` is part of the hashes that replace the keys in the receipt. A plan with an erasure is
    removed at the end: while it exists, the erasure is not finished. ``ended`` are the ended rows that views under a budget
    have set aside, by view: they are given up.
    """

    table: str | None
    key: tuple[ColumnRecord, ...]
    keys: tuple[tuple[str | None, ...], ...]
    views: tuple[str, ...]
    asked_at: int
    salt: str
    ended: tuple[tuple[str, int], ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """The write-ahead record of epoch ``epoch``: a pure function of the catalog, the last epoch, the landing and T.

    A plan that goes back to the contents of epoch ``starts_from`` has a ``base``: the state after its first steps, which restore
    tables, and from which all other steps start. ``known`` is then the epoch's list of landing files, in addition to its own
    batches. ``refused`` views cannot be maintained, for the given reason, and do not move. ``stopped`` tables (and archives) do
    not move, either, since outsiders changed them. ``keep`` (microseconds) bounds rejected rows and short-lived results, by
    table. ``lazy`` are the declared coalesced tables without files, ``choices`` the decisions for new tables.
    """

    epoch: int
    window_time: int
    slot: int
    previous_slot: int
    anchor: int
    update_interval: int
    retain: int
    clock: int
    catalog_digest: str
    streams: tuple[StreamPlan, ...]
    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()
    nodes: tuple[NodePlan, ...] = ()
    cause: Cause = "update"
    starts_from: int | None = None
    base: Epoch | None = None
    known: tuple[Loaded, ...] = ()
    erasure: Erasure | None = None
    refused: tuple[tuple[str, str], ...] = ()
    declared: tuple[tuple[str, str], ...] = ()
    target_file_size: int | None = None
    stopped: tuple[tuple[str, str], ...] = ()
    keep: tuple[tuple[str, int], ...] = ()
    lazy: tuple[LazyTable, ...] = ()
    choices: tuple[Choice, ...] = ()

    def stream(self, name: str) -> StreamPlan:
        """Return the plan of the stream of that name."""
        return next(stream for stream in self.streams if stream.name == name)

    def node(self, name: str) -> NodePlan | None:
        """Return the plan of the view's node with that table; None for the table of a stream."""
        return next((node for node in self.nodes if node.name == name), None)

    def target_rows(self, held: Sequence[Partition]) -> int:
        """Return how many rows a file of a table should have, given its stored rows."""
        return file_rows(self.target_file_size, rows=sum(part.rows for part in held), size=sum(part.bytes for part in held))
