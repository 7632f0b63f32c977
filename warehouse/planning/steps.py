"""What an update will do, as values: the steps of a plan, each one commit in one table.

A plan is the write-ahead record of an update: it holds everything that decides the outcome (declarations, layout,
files, clock instant), so that a later process that finishes it does exactly the same.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from warehouse.coalescing.choosing import Choice
from warehouse.epochs.following import LazyTable
from warehouse.epochs.records import Cause, ColumnRecord, Declaration, Epoch, LeftOut, Loaded
from warehouse.ingest.files import InputFiles
from warehouse.layout import Layout, Seal
from warehouse.planning.following import AnswersPlan, CoalescedPlan, SynopsisPlan
from warehouse.promise.units import BudgetPlan
from warehouse.views.algebra import Node

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
    """What becomes of (sub-index, expiry block) pairs of former layouts, of which a table migrates side by side.

    ``gone`` ones hold no live row and are removed unread; ``aged`` ones are rewritten in place without their expired rows; live
    rows of ``moved`` ones go to the layout in force.
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

    ``columns`` are those that are stored now, ``renamed`` pairs of former and new names. With ``reslotted`` the slots of
    each row are counted again, since anchor or update interval changed. ``takes`` tells whether the batch may have rows that
    waited, ``rows`` how many are stored.
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
    """Take rows whose slot has come out of the deferred table and put new waiting rows in."""

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
    """Take a batch of changes into a relation: versions end and begin; those that ended ``history`` ago may go.

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
    """Replace the rows that changed of a keyed table, in the buckets where they lie."""

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
    """Rewrite partitions without the rows of the plan's erased keys, and without those that expired by ``dead_by``.

    ``cells`` are (sub-index, expiry block), of deferred rows (slot, 0); None: the whole table, of which restored rows go
    altogether. ``keyed`` tells whether keys are erased, not expired rows alone; ``rows`` how many were found. ``dead_by`` is in
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
    """Commit a version at which a table's log is cut once the epoch is written."""

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
    """What an update does for one stream, or for a table that follows one.

    ``first`` is true when the table gets its first build: load slots are clamped to ``k - p + 1 .. k`` and nothing is
    late. ``k0`` is this stream's last processed slot (``k - p`` on a first build). ``more`` files wait for the next
    plan, ``gone`` loaded ones are no longer in the landing directory. Of ``retried`` files only the records that were
    rejected are loaded. The archived ``restored_files`` are moved back before anything is read. ``archive_of`` names the stream
    whose expired rows the table gets, when it is an archive; ``synopsis``, ``answers`` and ``coalesced`` say what it gets
    otherwise.
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
        if self.synopsis is not None:
            return self.synopsis.synopsis.source
        if self.answers is not None:
            return self.answers.definition.source
        return None if self.coalesced is None else self.coalesced.definition.source

    @property
    def stored_columns(self) -> tuple[ColumnRecord, ...]:
        """The stored columns before the system's: those of its declaration, and the state of a coalesced table."""
        state = () if self.coalesced is None else self.coalesced.definition.state
        return (*self.declaration.columns, *(ColumnRecord(name, kind) for name, kind in state))


class NodePlan(msgspec.Struct, frozen=True):
    """What an update does for one node of a view.

    ``columns`` are the user's with their types, ``state`` the columns of aggregates' state. ``first`` nodes are built
    over the rows that are live at the window time. ``spare_of`` names the DISTINCT whose spare rows the table holds.
    Under a ``budget`` a part of the results is made, and the rest is owed.
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
    """What an erasure was asked for: keys of a table, or, without keys, the expired rows of all that it has steps for.

    ``key`` are the columns with their types, ``keys`` tuples of their texts (a prefix has fewer), with None for a null; ``views``
    are rebuilt without the rows. ``salt`` goes into the hashes by which the receipt names the keys. A plan with an erasure is
    removed when all is done: until then it shows that something is left to do.
    """

    table: str | None
    key: tuple[ColumnRecord, ...]
    keys: tuple[tuple[str | None, ...], ...]
    views: tuple[str, ...]
    asked_at: int
    salt: str


class Plan(msgspec.Struct, frozen=True):
    """The write-ahead record of epoch ``epoch``: a pure function of the catalog, the last epoch, the landing and T.

    A plan that goes back to the contents of epoch ``starts_from`` has a ``base``: what its first steps, which restore
    tables, make of the last epoch, and all other steps start from. ``known`` is then what the epoch says of landing files,
    in addition to what its own batches say. ``refused`` views cannot be maintained, for the reason: they stand still.
    ``stopped`` tables (and archives) stand still too, since outsiders changed them. ``keep`` (microseconds) of rejected rows and
    short-lived results is that of each table that bounds it. ``lazy`` are the coalesced tables without files that are declared,
    ``choices`` what was decided of tables that are new.
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
        """Return the plan of the view's node of that table; None when the table is a stream's."""
        return next((node for node in self.nodes if node.name == name), None)
