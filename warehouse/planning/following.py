"""A plan's entries for the tables that follow a stream or a view: synopses, answers and coalesced tables."""

from __future__ import annotations

import msgspec

from warehouse.aggregates.definition import AggregateDefinition, Due
from warehouse.aggregates.synopses import ColumnState, Synopsis
from warehouse.coalescing.definition import CoalescedDefinition
from warehouse.ingest.files import InputFiles

__all__ = ["AnswersPlan", "CoalescedPlan", "SynopsisPlan", "SynopsisRead"]


class SynopsisPlan(msgspec.Struct, frozen=True):
    """The work of an update for a synopsis of a stream or a view; its rows stay for ``slots`` slots.

    ``arrives``: the stream may get rows. ``opening``: the stream is in its own first build, so no row of it can have expired.
    ``history``: the rows of ``landed`` files that were loaded before, or the rows of the stream and its archive, are added,
    whichever are more. ``carried``: the synopsis's own rows are written again, to stay longer. ``rebuilt``: the synopsis is
    written again from the rows of its stream, which include all live rows. ``spare``: the number of its slots for answers that
    are given later than they are due. The windows that read it end with slot ``first_end`` or later; windows that end before
    ``sure`` may lack rows. A migration of the grid of times gives the former anchor and interval. The table has the longer
    intervals that end with the slot ``merged`` or before; None: it has none yet. The carried rows of a ``large`` synopsis are not
    collected in the driver.

    A synopsis of a ``view`` follows the view's node. If the plan builds the view (``built``), all of its live rows are read. Of
    these, and of ``history``, only rows that arrived after the slot ``since`` count: the synopsis has the earlier rows.
    """

    synopsis: Synopsis
    slots: int
    arrives: bool
    opening: bool
    history: bool
    carried: bool
    landed: tuple[InputFiles, ...] = ()
    rebuilt: bool = False
    spare: int = 0
    first_end: int | None = None
    sure: int = 0
    former_grid: tuple[int, int] | None = None
    view: bool = False
    built: bool = False
    since: int | None = None
    merged: int | None = None
    large: bool = False


class SynopsisRead(msgspec.Struct, frozen=True):
    """The parts of a synopsis that answers read: states of columns, and with ``rows`` the number of rows.

    With ``less`` the answers read a difference: the rows of this table and of ``plus``, without the rows of ``less``.
    """

    table: str
    synopsis: Synopsis
    states: tuple[ColumnState, ...]
    rows: bool
    plus: tuple[str, ...] = ()
    less: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables that are read."""
        return (self.table, *self.plus, *self.less)


class AnswersPlan(msgspec.Struct, frozen=True):
    """The answers that an update gives for an aggregate: the due windows and their synopses.

    The update answers windows that end up to the slot ``through``, or with ``within`` (microseconds for all aggregates of the
    update together) as many windows as the time allows. Ends before the slot ``sure`` may lack rows that were live at their time.
    """

    definition: AggregateDefinition
    reads: tuple[SynopsisRead, ...]
    due: tuple[Due, ...]
    through: int
    sure: int
    within: int | None = None


class CoalescedPlan(msgspec.Struct, frozen=True):
    """The work of an update for a coalesced table of a stream.

    ``arrives``, ``opening``, ``history`` and ``landed`` are as in a :class:`SynopsisPlan`.
    """

    definition: CoalescedDefinition
    arrives: bool
    opening: bool
    history: bool
    landed: tuple[InputFiles, ...] = ()
