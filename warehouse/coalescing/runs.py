"""Runs of coalesced members, and their fragments after shedding (temporal-load-shedding sheet, section 2).

The end of a member is the stamp of the next member that arrived in its group, kept or shed: it is frozen, so a hole never
closes. A fragment is a maximal sequence of kept members of one run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Fragment", "Run"]


@dataclass(frozen=True)
class Fragment:
    """Kept members of a run without a hole: the numbers of the first and the last, and its start and end."""

    first: int
    last: int
    start: int
    end: int

    @property
    def length(self) -> int:
        """Its length in microseconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Run:
    """One exact coalesced row: members of one group that are neighbours in time and alike.

    Parameters
    ----------
    group, value
        The group of the row, and the value that its members have in common.
    stamps
        The stamps of all its members in microseconds, in order, kept ones and shed ones.
    end
        The end of the row: the stamp of the next member of its group, or of the last member of an open run.
    shed
        The numbers of the members that were shed, from 0.
    open
        Whether its last member is the last of its group: its end is not known yet, so its length is 0 and it is never shed.

    Examples
    --------
    >>> run = Run("g", "a", (0, 4, 6), 13)
    >>> run.length, [run.length_of(number) for number in range(3)], run.without([1]).fragments
    (13, [4, 2, 7], (Fragment(first=0, last=0, start=0, end=4), Fragment(first=2, last=2, start=6, end=13)))

    """

    group: object
    value: object
    stamps: tuple[int, ...]
    end: int
    shed: frozenset[int] = frozenset()
    open: bool = False

    @property
    def length(self) -> int:
        """|I|, in microseconds."""
        return self.end - self.stamps[0]

    @property
    def closed(self) -> range:
        """The numbers of the members whose end is known."""
        return range(len(self.stamps) - self.open)

    def end_of(self, number: int) -> int:
        """Return the frozen end of a member."""
        return self.stamps[number + 1] if number + 1 < len(self.stamps) else self.end

    def length_of(self, number: int) -> int:
        """Return len(s) of a member, in microseconds."""
        return self.end_of(number) - self.stamps[number]

    def without(self, numbers: Iterable[int]) -> Run:
        """Return the run without some more members.

        Raises
        ------
        ValueError
            For the open member.

        """
        shed = self.shed | frozenset(numbers)
        if self.open and len(self.stamps) - 1 in shed:
            raise ValueError("the open member of a group is never shed")
        return replace(self, shed=shed)

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments that remain of the run, in order; an open member without neighbours is a fragment of length 0."""
        fragments, first = [], None
        for number in range(len(self.stamps) + 1):
            is_kept = number < len(self.stamps) and number not in self.shed
            if is_kept and first is None:
                first = number
            elif not is_kept and first is not None:
                fragments.append(Fragment(first, number - 1, self.stamps[first], self.end_of(number - 1)))
                first = None
        return tuple(fragments)

    def within(self, edge: int) -> Run | None:
        """Return the run without the members (kept or shed) before the edge of the window, or None if no member is left."""
        departed = sum(stamp < edge for stamp in self.stamps)
        if departed == len(self.stamps):
            return None
        shed = frozenset(number - departed for number in self.shed if number >= departed)
        return replace(self, stamps=self.stamps[departed:], shed=shed)
