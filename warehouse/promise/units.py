"""Units of a join under a budget, and the ledger of the results that are owed.

A *unit* is the pairs of a range of load slots and a bucket of the join key: a pair belongs to the range of the later load slot of
its two rows, and to the bucket of its left row's key. Rows keep their load slot and their key, so each pair belongs to exactly
one unit, wherever its rows are stored. With ``through`` = t, ranges R and buckets b, the invariant of a :class:`Ledger` is

    pairs live at the window time  =  made  +  { pairs of owed units, from each unit's position on }  +  { pairs later than t }

as bags, without a pair on both sides. The pairs of a unit have an order that is a function of their rows alone: ``place`` (a hash
of the left row's key, times and load slot), then ``row`` (a hash of the result). Equal results end at the same instant, so a
:class:`Position` (place, row, and the number of made results with exactly this place and row) stays valid while rows expire.

Source: approximate-joins sheet, 9.3 to 9.5 (unit ledger, batch run, completion).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "BUCKETS",
    "COUNTED",
    "FIRST",
    "LAST",
    "PREFERENCES",
    "RANGES",
    "Begun",
    "BudgetPlan",
    "Ledger",
    "OwedRange",
    "Position",
    "Unit",
    "ViewBudget",
    "slice_end",
]

COUNTED = ("left_count", "right_count", "age")
"""The names that an expression may use in addition to the columns of the key."""
PREFERENCES = ("desc", "asc", "weighted")
"""The words that a budget may prefer results by; any other text is an expression."""
BUCKETS = 256
"""Buckets of a join key. It is part of the format: an owed unit is named by the number of its bucket."""
_ALL_BUCKETS = (1 << BUCKETS) - 1
FIRST, LAST = -(1 << 63), (1 << 63) - 1
"""The smallest and the largest ``place``, and ``row``: hashes are signed integers of 64 bits."""
RANGES = 32
"""If a ledger has more ranges, a new range waits for others until it is a 32nd of the slots of the ledger."""
_EXCESS_PAIRS = 10_000
"""How many pairs over a quota may be made and dropped: up to this number that costs less than a more exact read."""


@dataclass(frozen=True)
class ViewBudget:
    """``[views.NAME.budget]``: the upper bound of an epoch's work, the preferred results, and whether other results are owed.

    One of ``pairs`` (results), ``rows`` (rows that are joined) and ``seconds`` is set. ``prefer`` is one of ``PREFERENCES``, or
    an expression: units with greater values come first.
    """

    pairs: int | None = None
    prefer: str = "desc"
    complete: Literal["later", "never"] = "later"
    rows: int | None = None
    seconds: float | None = None

    @property
    def expression(self) -> str | None:
        """The expression by which results are preferred, if there is one."""
        return None if self.prefer in PREFERENCES else self.prefer

    @property
    def amount(self) -> int:
        """The results or rows of an epoch; a budget of seconds must be converted into results before."""
        amount = self.rows if self.pairs is None else self.pairs
        if amount is None:
            raise ValueError("a budget of seconds is no number of results before an update is planned")
        return amount


class Unit(NamedTuple):
    """A unit: the number of its range in the ledger, and its bucket."""

    range: int
    bucket: int


@dataclass(frozen=True)
class Position:
    """The progress of a unit: all results before (place, row) are made, and ``made`` results of exactly this place and row."""

    place: int = FIRST
    row: int = FIRST
    made: int = 0


class Begun(msgspec.Struct, frozen=True, array_like=True):
    """A unit of a range that is made in part. Records store it as a list of numbers, since there may be many units."""

    bucket: int
    place: int
    row: int
    made: int

    @property
    def position(self) -> Position:
        """The progress of the unit."""
        return Position(self.place, self.row, self.made)


@dataclass(frozen=True)
class OwedRange:
    """The owed units of the load slots above ``above`` (None: from the first on) up to ``upto``.

    ``buckets`` has a bit for each owed bucket, as a hexadecimal number.
    """

    above: int | None
    upto: int
    buckets: str
    begun: tuple[Begun, ...] = ()

    @property
    def untouched(self) -> bool:
        """Whether all its units are owed, and no unit is made in part."""
        return int(self.buckets, 16) == _ALL_BUCKETS and not self.begun

    @property
    def owed(self) -> Iterator[int]:
        """The owed buckets."""
        bits = int(self.buckets, 16)
        return (bucket for bucket in range(BUCKETS) if bits >> bucket & 1)

    def position(self, bucket: int) -> Position:
        """Return the progress of a unit."""
        return next((begun.position for begun in self.begun if begun.bucket == bucket), Position())


@dataclass(frozen=True)
class Ledger:
    """The results that a view under a budget owes: ranges of load slots up to ``through``, the oldest first.

    ``through`` is None before the first build. ``made`` counts the results of the last epoch. ``exact`` counts the pairs of its
    window time (None: they were not counted, or a condition decides); at least ``least`` and at most ``most`` of them were
    missing then. Since the first build, ``lapsed`` units ended before they were made, and ``given_up`` units were not made
    because of ``complete = "never"``. ``later`` counts pairs with a later slot than ``through``; they belong to a unit once all
    rows of the slot are there. ``rows`` counts the rows of the owed units, once for each unit: completing joins these rows. At
    least ``incomplete`` and at most ``rows`` rows lack a partner. ``allowed`` is the number of results that the seconds of the
    budget allowed. ``ended`` rows had been set aside and were given up when the view was rebuilt, so their results are not
    reported.
    """

    through: int | None = None
    ranges: tuple[OwedRange, ...] = ()
    made: int = 0
    exact: int | None = 0
    least: int = 0
    most: int = 0
    lapsed: int = 0
    given_up: int = 0
    later: int = 0
    rows: int = 0
    incomplete: int = 0
    allowed: int | None = None
    ended: int = 0

    @property
    def complete(self) -> bool:
        """Whether nothing is owed or to come later, and nothing was given up."""
        return not self.ranges and not self.given_up and not self.later

    @property
    def shares(self) -> tuple[float, float]:
        """The least and the greatest share of the exact pairs that the view may have.

        >>> Ledger(exact=200, least=20, most=50, given_up=1).shares
        (0.75, 0.9)
        """
        if self.complete or self.exact == 0:
            return 1.0, 1.0
        if self.exact is None:
            return 0.0, 1.0
        return 1 - self.most / self.exact, 1 - self.least / self.exact

    def with_slots(self, upto: int | None) -> Ledger:
        """Return the ledger that also owes the pairs of later load slots, up to a slot whose rows are all loaded.

        >>> ledger = Ledger(through=4).with_slots(5)
        >>> ledger.ranges[0].above, ledger.ranges[0].upto, len([*ledger.units()])
        (4, 5, 256)
        """
        if upto is None or (self.through is not None and upto <= self.through):
            return self
        if self.waiting is not None:
            *older, last = self.ranges
            return replace(self, through=upto, ranges=(*older, replace(last, upto=upto)))
        new_range = OwedRange(self.through, upto, f"{_ALL_BUCKETS:x}")
        return replace(self, through=upto, ranges=(*self.ranges, new_range))

    @property
    def waiting(self) -> int | None:
        """The number of the newest range, if it waits for later slots; None: all ranges may be made.

        Rows that never end owe results forever, so without this each update of a view that is never completed would add a range.
        With it each range is at least a 32nd of the slots of the ledger, and the number of ranges grows as their logarithm.
        """
        if self.through is None or len(self.ranges) <= RANGES:
            return None
        first, last = self.ranges[0], self.ranges[-1]
        slots = self.through - first.upto
        is_short = last.above is not None and (last.upto - last.above) * RANGES < slots
        return len(self.ranges) - 1 if is_short and last.untouched else None

    def units(self) -> Iterator[Unit]:
        """Yield the owed units."""
        for number, owed_range in enumerate(self.ranges):
            yield from (Unit(number, bucket) for bucket in owed_range.owed)

    def position(self, unit: Unit) -> Position:
        """Return the progress of a unit."""
        return self.ranges[unit.range].position(unit.bucket)

    def with_positions(self, positions: Mapping[Unit, Position | None]) -> Ledger:
        """Return the ledger after units were made up to a position, or completely (None); ranges keep their numbers.

        >>> ledger = Ledger().with_slots(5).with_positions({Unit(0, 7): None, Unit(0, 8): Position(3, 4, 1)})
        >>> 7 in ledger.ranges[0].owed, ledger.position(Unit(0, 8))
        (False, Position(place=3, row=4, made=1))
        """
        ranges = []
        for number, owed_range in enumerate(self.ranges):
            bits, begun = int(owed_range.buckets, 16), {part.bucket: part for part in owed_range.begun}
            for unit, position in positions.items():
                if unit.range == number:
                    begun.pop(unit.bucket, None)
                    if position is None:
                        bits &= ~(1 << unit.bucket)
                    else:
                        begun[unit.bucket] = Begun(unit.bucket, position.place, position.row, position.made)
            ranges.append(replace(owed_range, buckets=f"{bits:x}", begun=tuple(begun[bucket] for bucket in sorted(begun))))
        return replace(self, ranges=tuple(ranges))

    def without_empty(self) -> Ledger:
        """Return the ledger without ranges that owe no unit."""
        return replace(self, ranges=tuple(owed_range for owed_range in self.ranges if int(owed_range.buckets, 16)))


@dataclass(frozen=True)
class BudgetPlan:
    """The results of a view under a budget that an update may make; ``ledger`` has the owed results before it.

    ``upto`` is the slot up to which all rows are loaded after its steps; None: the slot of ``ledger``, since files were left for
    another epoch. A ``chunk`` of ``complete`` makes this number of results instead.
    """

    budget: ViewBudget
    ledger: Ledger
    upto: int | None
    chunk: int | None = None

    @property
    def effective_budget(self) -> ViewBudget:
        """The budget that this plan applies, as results or rows."""
        if self.chunk is not None:
            return replace(self.budget, pairs=self.chunk, rows=None, seconds=None)
        if self.budget.seconds is not None:
            return replace(self.budget, pairs=self.ledger.allowed, seconds=None)
        return self.budget


def slice_end(position: Position, pairs: int, quota: int, slack: int) -> int:
    """Return the last place of a unit to read for a quota of its pairs; places are distributed evenly.

    ``slack`` is the factor by which more pairs are read than are expected to suffice.

    >>> slice_end(Position(), 1_000_000, 1_000_000, 2) == LAST, slice_end(Position(), 1_000_000, 100, 2) < FIRST // 2
    (True, True)
    """
    places = LAST - position.place + 1
    expected = pairs * places / (1 << 64)
    target = slack * quota
    if expected <= target + _EXCESS_PAIRS:
        return LAST
    return min(LAST, position.place + int(places * ((target + _EXCESS_PAIRS) / expected)))
