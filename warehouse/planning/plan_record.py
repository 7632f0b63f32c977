"""A plan as a value: the write-ahead record of an update.

It has everything that decides the outcome (declarations, layout, files, clock instant), so a later process that completes it gets
exactly the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from warehouse.coalescing.choosing import Choice
from warehouse.epochs.following import LazyTable, followed_by
from warehouse.epochs.records import Cause, ColumnRecord, Declaration, Epoch, LeftOut, Loaded
from warehouse.ingest.files import InputFiles
from warehouse.layout import Layout
from warehouse.layout.tasks import file_rows
from warehouse.planning.following import AnswersPlan, CoalescedPlan, SynopsisPlan
from warehouse.planning.steps import Step
from warehouse.promise.units import BudgetPlan
from warehouse.views.algebra import Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import Partition

__all__ = ["Erasure", "NodePlan", "Plan", "RestoredFile", "StreamPlan"]


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
        """The stored columns before the system columns: the declared columns, and the state of a coalesced table."""
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
