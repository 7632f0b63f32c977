"""The records of epochs: the persisted state of a warehouse as frozen values.

Invariant: an epoch ``n`` names, for every table, the Delta version whose files hold exactly
``{ r loaded by update n : r.exp > window_time }`` plus expired rows that readers filter by ``_exp > window_time``.
All instants and durations are microseconds, all paths relative to the root (a landing file's: to its landing
directory). Reading commands need these types and nothing of Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from warehouse.catalog.declaration import ColumnRecord, Declaration
from warehouse.coalescing.choosing import Choice
from warehouse.epochs.following import AnswersRecord, CoalescedRecord, LazyTable, SynopsisRecord, followed_by
from warehouse.ingest.files import LandingFile, LeftOut
from warehouse.layout import Layout
from warehouse.promise.units import Ledger, ViewBudget
from warehouse.views.algebra import Node

__all__ = [
    "AgeMark",
    "Cause",
    "ColumnRecord",
    "Counts",
    "Declaration",
    "Epoch",
    "Erased",
    "ErasedRows",
    "ForeignCommits",
    "FormerLayout",
    "LandingFile",
    "LeftOut",
    "Loaded",
    "Partition",
    "PinnedEntry",
    "Removed",
    "SideTable",
    "StepSeconds",
    "Stopped",
    "TableState",
    "ViewRecord",
    "WaitingSlot",
]

Cause = Literal["update", "reload", "drop", "rollback", "restate", "migrate", "adopt", "rebuild", "complete"]


@dataclass(frozen=True)
class ForeignCommits:
    """Commits of outsiders that an epoch's version of a table (its directory, relative to the root) is above.

    Commits that changed nothing were ``passed``; commits that only put rows into other files, which was proven, were ``adopted``;
    others were ``reversed`` by a further commit. ``last`` is the last version of them, the further commit included.
    """

    path: str
    first: int
    last: int
    operations: tuple[str, ...]
    became: Literal["passed", "adopted", "reversed"]

    def covers(self, path: str, version: int) -> bool:
        """Whether it includes a commit of a table."""
        return path == self.path and self.first <= version <= self.last


@dataclass(frozen=True)
class Stopped:
    """A table that does not move while others do, since outsiders changed it.

    ``slot`` is the last slot to which it was moved, and from which it continues; ``first`` as in :class:`Loaded`.
    """

    reason: str
    slot: int
    first: bool = False


@dataclass(frozen=True)
class Partition:
    """One (sub-index, expiry block) of a table: its runs, files, rows, bytes, the largest and smallest ``_exp_slot``.

    The smallest is None if an earlier build did not record it.
    """

    sub_index: int
    exp_block: int
    runs: int
    files: int
    rows: int
    bytes: int
    max_exp_slot: int
    min_exp_slot: int | None = None


@dataclass(frozen=True)
class WaitingSlot:
    """Rows that wait for one slot."""

    slot: int
    rows: int


@dataclass(frozen=True)
class AgeMark:
    """How old rows are: epochs above the previous mark's, up to ``epoch``, found them, at ``at`` (microseconds) at the latest."""

    epoch: int
    at: int


@dataclass(frozen=True)
class SideTable:
    """A stream's deferred or rejected rows, or a view's short-lived results: a Delta table of its own at ``version``.

    ``found`` are the ages of its rows, the oldest first (:mod:`warehouse.planning.keeping`). Deferred rows have no ages, nor have
    rows that are kept forever.
    """

    path: str
    table_id: str
    version: int
    rows: int
    waiting: tuple[WaitingSlot, ...] = ()
    found: tuple[AgeMark, ...] = ()


@dataclass(frozen=True)
class ViewRecord:
    """The view to which a table belongs, and its part of the view; ``sql`` is the view's query as declared.

    ``failed`` is the reason why the last update could not maintain it: its rows are older than the window time, and the next
    update rebuilds it. Under a ``budget`` the ``ledger`` records the owed results.
    """

    view: str
    sql: str
    node: Node
    short_lived: Literal["drop", "report"]
    state: tuple[ColumnRecord, ...] = ()
    spare_of: str | None = None
    failed: str | None = None
    budget: ViewBudget | None = None
    ledger: Ledger | None = None


@dataclass(frozen=True)
class FormerLayout:
    """A layout from which a table migrates side by side: it gets no new rows, and its rows only expire.

    ``since`` is the slot at which it was replaced, ``rows`` its live rows then. Once it has fewer than the share ``move_below``
    of these, the remaining rows move to the current layout; None: they only expire.
    """

    layout: Layout
    since: int
    rows: int
    move_below: float | None = None

    def holds(self, sub_index: int) -> bool:
        """Whether a sub-index is one of its cells."""
        return self.layout.first_cell <= sub_index <= self.layout.last_cell


@dataclass(frozen=True)
class TableState:
    """A table at one epoch.

    A ``state`` table is internal: it has the state of an operator of a view, or is a ``synopsis``. An ``archive`` has the expired
    rows of the stream ``archive_of``, an ``aggregate`` its ``answers``, a ``coalesced`` table the points of a stream.

    ``schema_file`` is a zero-row Parquet file of the table's columns, relative to the root; ``declared`` is False for a table
    that is frozen because its declaration was removed. ``newest`` is the largest ``_ts`` that was ever stored in it (to the
    millisecond; None: unknown), even if the row has expired since. ``former`` are layouts before a migration side by side that
    still have rows. ``properties`` is the number of the set of Delta properties that it and the side tables have
    (:data:`warehouse.storage.tables.PROPERTIES`). A table that outsiders changed is ``stopped``: its state is the one before the
    change. ``adopted`` are the files, relative to ``path``, that an outsider's OPTIMIZE wrote; they are not sorted and have no
    filters.
    """

    name: str
    kind: Literal["stream", "view", "relation", "state", "archive", "aggregate", "coalesced"]
    path: str
    table_id: str
    version: int
    layout: Layout
    declaration: Declaration
    schema_file: str
    partitions: tuple[Partition, ...]
    deferred: SideTable | None = None
    rejected: SideTable | None = None
    declared: bool = True
    view: ViewRecord | None = None
    restored: SideTable | None = None
    newest: int | None = None
    archive_of: str | None = None
    former: tuple[FormerLayout, ...] = ()
    properties: int = 0
    stopped: Stopped | None = None
    adopted: tuple[str, ...] = ()
    synopsis: SynopsisRecord | None = None
    answers: AnswersRecord | None = None
    coalesced: CoalescedRecord | None = None

    def layout_at(self, sub_index: int) -> Layout:
        """Return the layout that places the rows of a sub-index."""
        return next((layout_before.layout for layout_before in self.former if layout_before.holds(sub_index)), self.layout)

    @property
    def keyed(self) -> bool:
        """Whether it is cut by its search key (label STR): rows may leave it before their own end."""
        return self.kind == "relation" or self.coalesced is not None or (self.view is not None and self.view.node.label == "STR")

    @property
    def stored_columns(self) -> tuple[ColumnRecord, ...]:
        """The stored columns before the system columns: the declared ones, and columns of state."""
        return (*self.declaration.columns, *self.state)

    @property
    def state(self) -> tuple[ColumnRecord, ...]:
        """The stored columns that keep the state of a view's operator, or the members of a coalesced table."""
        if self.coalesced is not None:
            return tuple(ColumnRecord(name, kind) for name, kind in self.coalesced.definition.state)
        return () if self.view is None else self.view.state

    @property
    def followed(self) -> str | None:
        """The stream or view that it follows as a synopsis, answers or a coalesced table."""
        return followed_by(self.synopsis, self.answers, self.coalesced)

    @property
    def owner(self) -> str:
        """The declared name to which it belongs: its own name, its view's, or that of a synopsis's stream."""
        if self.synopsis is not None:
            return self.synopsis.synopsis.source
        return self.view.view if self.view else self.name

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories of the table and of its side tables."""
        return (self.path, *(side.path for side in self.sides))

    @property
    def sides(self) -> tuple[SideTable, ...]:
        """Its side tables that exist: deferred and rejected rows, short-lived results."""
        return tuple(side for side in (self.deferred, self.rejected, self.restored) if side is not None)


@dataclass(frozen=True)
class Loaded:
    """The outcome of a stream's landing files in one epoch.

    ``loaded`` files are not loaded again while they exist, ``left_out`` ones not until they change; ``reload`` are loaded paths
    to load again at the next update that moves the window; ``gone`` are loaded paths that no longer exist. ``more`` files were
    left for another epoch at the same window time, whose load slots start above ``k0``.
    """

    stream: str
    loaded: tuple[LandingFile, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    reload: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    more: int = 0
    k0: int = 0
    first: bool = False


@dataclass(frozen=True)
class Counts:
    """Rows of one stream in one update.

    ``rows`` were read from files, ``taken`` from the deferred ones; of both together, ``inserted`` went into the table (including
    ``late`` and ``over_lifetime``), ``deferred`` wait, ``dead`` were dead on arrival, ``rejected`` were invalid. ``expired`` rows
    were removed from the table's files, ``rewritten`` ones read and written again. ``planned`` and ``changed`` count sub-indices;
    ``bytes_written`` counts bytes of added files, ``bytes_read`` bytes of landing files.
    """

    stream: str
    files: int = 0
    rows: int = 0
    taken: int = 0
    inserted: int = 0
    late: int = 0
    over_lifetime: int = 0
    deferred: int = 0
    dead: int = 0
    rejected: int = 0
    lost: int = 0
    expired: int = 0
    rewritten: int = 0
    planned: int = 0
    changed: int = 0
    sealed: int = 0
    files_added: int = 0
    files_removed: int = 0
    bytes_written: int = 0
    bytes_read: int = 0


@dataclass(frozen=True)
class StepSeconds:
    """Wall-clock seconds of one step, and the number of its Spark jobs (None: not known)."""

    step: str
    seconds: float
    jobs: int | None = None


@dataclass(frozen=True)
class Removed:
    """Files that this epoch's commits took out of a table's snapshot.

    ``table`` is the table's directory relative to the root, ``files`` are relative to it; ``whole`` means that the
    table itself was dropped.
    """

    table: str
    files: tuple[str, ...]
    whole: bool = False


@dataclass(frozen=True)
class ErasedRows:
    """Rows found and erased in one table's directory; ``rewritten`` rows of the same partitions were kept."""

    path: str
    rows: int
    rewritten: int = 0


@dataclass(frozen=True)
class Erased:
    """The erasure of an epoch: rows of keys of ``table``, or expired rows (None).

    The keys themselves are not recorded. ``views`` were rebuilt.
    """

    table: str | None
    keys: int
    rows: tuple[ErasedRows, ...]
    views: tuple[str, ...] = ()


@dataclass(frozen=True)
class PinnedEntry:
    """The entry of a table's log that an epoch names: its version and the SHA-256 of its bytes."""

    path: str
    version: int
    sha256: str


@dataclass(frozen=True)
class Epoch:
    """A committed, consistent set of table versions at one window time.

    ``slot`` is the last processed slot k, ``previous_slot`` k0 of the update that made it; ``catalog_digest`` is the SHA-256 of
    the ``warehouse.toml`` of that time, ``log_retain`` the largest ``retain`` in the tables' properties. ``cause`` is the verb
    that made it; ``starts_from`` is the epoch whose contents a rollback or a restatement restored. ``planned_at`` is when its
    plan was made (0: unknown). ``declared`` has the keys of the ``warehouse.toml`` of that time (None: unknown). ``entries`` has
    by directory the log entries of the tables' versions (empty in epochs of older builds). ``refused`` has the declared views
    without a table, since they cannot be maintained, with the reason. ``foreign`` has the commits of outsiders below the tables'
    versions. ``lazy`` are the coalesced tables without files, ``choices`` the decisions about tables with ``how = "auto"``.
    """

    number: int
    window_time: int
    slot: int
    previous_slot: int
    anchor: int
    update_interval: int
    committed_at: int
    catalog_digest: str
    tables: tuple[TableState, ...]
    files: tuple[Loaded, ...] = ()
    counts: tuple[Counts, ...] = ()
    seconds: tuple[StepSeconds, ...] = ()
    removed: tuple[Removed, ...] = ()
    warnings: tuple[str, ...] = ()
    log_retain: int = 0
    cause: Cause = "update"
    starts_from: int | None = None
    planned_at: int = 0
    erased: Erased | None = None
    declared: tuple[tuple[str, str], ...] = ()
    foreign: tuple[ForeignCommits, ...] = ()
    entries: tuple[PinnedEntry, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    lazy: tuple[LazyTable, ...] = ()
    choices: tuple[Choice, ...] = ()

    def entry(self, path: str) -> PinnedEntry | None:
        """Return the log entry of a table's version (directory relative to the root); None if it is not recorded."""
        return next((entry for entry in self.entries if entry.path == path), None)

    def table(self, name: str) -> TableState | None:
        """Return the state of the table of that name."""
        return next((table for table in self.tables if table.name == name), None)

    def lazy_table(self, name: str) -> LazyTable | None:
        """Return the coalesced table of that name that has no files."""
        return next((table for table in self.lazy if table.name == name), None)
