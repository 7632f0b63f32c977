"""An epoch's records of tables that follow a stream or a view: synopses, answers and coalesced tables, stored or lazy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from warehouse.aggregates.definition import AggregateDefinition, Due
from warehouse.aggregates.synopses import Synopsis
from warehouse.coalescing.definition import CoalescedDefinition

__all__ = ["AnswersRecord", "CoalescedRecord", "LazyTable", "ShedRecord", "SynopsisRecord", "followed_by"]


@dataclass(frozen=True)
class SynopsisRecord:
    """The content of a synopsis, the number of its slots, and the slot from which on it knows all rows that arrived.

    An ``emptied`` synopsis, in the base of a plan that goes back, has no row; the rows of the stream are then added again.
    Windows that end before the slot ``sure`` may lack rows, since they were due before; None: the epoch's slot. A synopsis of a
    view has the rows that the view had by the slot ``through``. It has intervals longer than a slot if they end with the slot
    ``merged`` or before; None: it has no such intervals yet.
    """

    synopsis: Synopsis
    slots: int
    full_from: int
    emptied: bool = False
    sure: int | None = None
    through: int | None = None
    merged: int | None = None


@dataclass(frozen=True)
class AnswersRecord:
    """The definition of an aggregate at its last answers, and the slot up to which its due ends are answered.

    The ``waiting`` ones are not answered: there was no time for them.
    """

    definition: AggregateDefinition
    through: int
    waiting: tuple[Due, ...] = ()

    @property
    def late(self) -> int:
        """The number of updates since the oldest waiting answer was due; 0 if it was the last update, or if no answer waits."""
        return max((due.late for due in self.waiting), default=0)


@dataclass(frozen=True)
class ShedRecord:
    """The result of shedding in a coalesced table's window: the numbers of members kept and shed, and the accuracy, a share.

    ``over`` members exceed the budget: open ones, or members that the budget's accuracy keeps.
    """

    kept: int
    shed: int
    accuracy: float
    over: int = 0


@dataclass(frozen=True)
class CoalescedRecord:
    """The definition of a coalesced table, and its counts of ignored points.

    It has every point that arrived from ``full_from`` on (microseconds; None: from the first point of its stream). Since its
    first build ``repeated`` points had the group and the stamp of another, and ``late`` points had left the window before they
    were loaded. An ``emptied`` table, in the base of a plan that goes back, has no row. ``shed`` is None if nothing was ever
    shed, or if the epoch wrote no row of the table: then its ledger has the figures. ``over`` is from the last update that wrote
    rows.
    """

    definition: CoalescedDefinition
    full_from: int | None
    repeated: int = 0
    late: int = 0
    emptied: bool = False
    shed: ShedRecord | None = None
    over: int = 0


@dataclass(frozen=True)
class LazyTable:
    """A coalesced table without files: each read makes its rows from the points that its stream stores.

    ``condition`` is ``same`` or ``of`` in DuckDB's SQL, which ``reads`` columns of the stream. ``full_from`` is the instant
    (microseconds) from which on the stream has stored every point for the whole window; None: from its first one on.
    """

    name: str
    definition: CoalescedDefinition
    condition: str | None = None
    reads: tuple[str, ...] = ()
    full_from: int | None = None


class _OfSynopsis(Protocol):
    @property
    def synopsis(self) -> Synopsis: ...


class _Defined(Protocol):
    @property
    def definition(self) -> AggregateDefinition | CoalescedDefinition: ...


def followed_by(synopsis: _OfSynopsis | None, answers: _Defined | None, coalesced: _Defined | None) -> str | None:
    """Return the stream or view that a table follows; None for a table without any of the three records or plans."""
    if synopsis is not None:
        return synopsis.synopsis.source
    definition = coalesced if answers is None else answers
    return None if definition is None else definition.definition.source
