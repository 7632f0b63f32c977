"""What a plan has for the tables that follow a stream or a view: synopses, answers and coalesced tables."""

from __future__ import annotations

import msgspec

from warehouse.aggregates.definition import Definition, Due
from warehouse.aggregates.synopses import State, Synopsis
from warehouse.coalescing.definition import Definition as CoalescedDefinition
from warehouse.ingest.files import InputFiles

__all__ = ["AnswersPlan", "CoalescedPlan", "SynopsisPlan", "SynopsisRead"]


class SynopsisPlan(msgspec.Struct, frozen=True):
    """What an update does for a synopsis of a stream or a view; its rows stay for ``slots`` slots.

    ``arrives`` tells whether the stream may get rows, ``opening`` whether it is in its own first build, so that no row of it can
    have gone. With ``history`` what the ``landed`` files give that were loaded before, or what the stream and its archive hold,
    is added, whichever is more; with ``carried`` the synopsis's own rows are written again, to stay longer. One that is
    ``rebuilt`` is written again from what its stream holds: the stored rows tell all of those that are live. ``spare`` of the
    slots are for answers that are given later than they are due. The windows that read it end with slot ``first_end`` or later;
    of those that end before ``sure`` rows have gone. A migration of the grid of times gives the former one: anchor and interval.

    One of a ``view`` follows its node. Where the view is built in this plan (``built``) all of its live rows come. Of these, and
    of ``history``, only those count that arrived after the slot ``since``: up to that one the synopsis knows them.
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


class SynopsisRead(msgspec.Struct, frozen=True):
    """What answers read of the synopsis in that table: states of columns, and with ``rows`` the number of rows.

    With ``less`` they are of a difference: of the rows in this table and in ``plus``, without the rows in ``less``.
    """

    table: str
    synopsis: Synopsis
    states: tuple[State, ...]
    rows: bool
    plus: tuple[str, ...] = ()
    less: tuple[str, ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """All tables that are read."""
        return (self.table, *self.plus, *self.less)


class AnswersPlan(msgspec.Struct, frozen=True):
    """The answers that an update gives of an aggregate: what is due, and from which synopses.

    After it windows are answered that end up to the slot ``through``, or with ``within`` (microseconds that all aggregates of the
    update have together) those for which there was time. Ends before the slot ``sure`` may lack rows that were there at their
    time.
    """

    definition: Definition
    reads: tuple[SynopsisRead, ...]
    due: tuple[Due, ...]
    through: int
    sure: int
    within: int | None = None


class CoalescedPlan(msgspec.Struct, frozen=True):
    """What an update does for a coalesced table of a stream.

    ``arrives``, ``opening``, ``history`` and ``landed`` are as in a :class:`SynopsisPlan`.
    """

    definition: CoalescedDefinition
    arrives: bool
    opening: bool
    history: bool
    landed: tuple[InputFiles, ...] = ()
