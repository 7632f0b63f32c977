"""Which states of a synopsis are merged for a window: of single slots or of longer intervals (shared-aggregates sheet, 3 and 12).

A *basic interval* synopsis has the states of single slots. A window of n slots merges n of them. One scan reads all windows that
end with the same slot, and each slot is written once. An *interval* synopsis also has the states of 2, 4, 8, ... slots. A window
then merges at most about two intervals of each length, but about twice as many states are written. A late row adds to its slot
and to every interval that contains it.

A *running* synopsis has for each slot the states of all slots up to it, so that a window is the difference of two. It is not
used: each slot would write a state for every group that ever came, and a late row a state for each later slot. Large states
cannot be subtracted. Small states are numbers, and one scan merges hundreds of thousands of them. So intervals pay if states are
large or very many, windows are long, and answers are frequent; :func:`longest_levels` decides it by counting merged and written
states.

Interval ``(l, e)`` is made of the ``2^l`` slots that end with ``e``, a multiple of ``2^l``; ``(0, e)`` is slot ``e``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from warehouse.aggregates.synopses import Synopsis

__all__ = [
    "LARGE",
    "MANY",
    "WRITTEN_AGAIN",
    "Piece",
    "basic_is_enough",
    "changed",
    "cover",
    "levels_of",
    "longest_levels",
    "merged_basic",
    "merged_interval",
    "merged_upkeep",
    "upkeep",
]

LARGE = 1024
"""A state of at least this many bytes is large. Smaller ones are numbers, and one scan merges hundreds of thousands of them."""
MANY = 256 << 10
"""If the states of a slot have at least this many bytes together, they are many, however small each is."""
_STILL = 4
"""Where longer intervals exist, the bytes divided by this are enough, so that a synopsis is not written again to and fro."""
WRITTEN_AGAIN = 256 << 20
"""Upper bound of the bytes of a stored synopsis that is written again for other intervals; the driver collects its rows."""
_COUNTS, _NUMBER = 16, 8
"""Bytes of the numbers of rows of a state, and of another number."""
_QUANTILES = 22
"""Approximate bytes of a sketch of percentiles for each of its k."""
_PHASES = 256
"""The greatest number of ends over which the number of intervals of a window is averaged."""
_WRITTEN = 4
"""Writing one state takes as long as merging this many: it is encoded, compressed, and synced with the commit."""


class Piece(NamedTuple):
    """An interval: of ``2^level`` slots that end with the slot ``last``."""

    level: int
    last: int

    @property
    def first(self) -> int:
        """Its first slot."""
        return self.last - (1 << self.level) + 1


def cover(first: int, end: int, levels: int, oldest: int | None = None) -> Iterator[Piece]:
    """Yield the fewest intervals that cover the slots ``first .. end``, in their order.

    ``levels`` is the level of the longest intervals. Intervals of several slots that begin at ``oldest`` or before no longer
    exist.

    >>> [(piece.first, piece.last) for piece in cover(3, 9, 3)]
    [(3, 4), (5, 8), (9, 9)]
    """
    done = first - 1
    while done < end:
        level = 0
        while level < levels and done % (2 << level) == 0 and done + (2 << level) <= end and not _gone(done + 1, oldest):
            level += 1
        done += 1 << level
        yield Piece(level, done)


def _gone(first: int, oldest: int | None) -> bool:
    return oldest is not None and first <= oldest


def changed(
    levels: int, slots: int, *, before: int | None, through: int, arrived: Collection[int]
) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Return the intervals of several slots that an update completes, and the complete intervals that get late rows.

    An interval exists until no window can use it: until its first slot is too old for every window.

    Parameters
    ----------
    levels, slots
        The level of the longest intervals, and the number of slots for which a slot is kept.
    before, through
        The last slots for which intervals were complete before, and will be after the update; ``before`` is None if there is no
        interval yet.
    arrived
        The slots of the rows that the update adds.

    Examples
    --------
    >>> new, late = changed(3, 8, before=7, through=8, arrived={3, 8})
    >>> [(piece.first, piece.last) for piece in new], [(piece.first, piece.last) for piece in late]
    ([(7, 8), (5, 8), (1, 8)], [(3, 4), (1, 4)])
    """
    new: list[Piece] = []
    late: dict[Piece, None] = {}
    for level in range(1, levels + 1):
        length, oldest = 1 << level, through - slots
        complete = oldest if before is None else before
        start = max(complete, oldest + length - 1)
        new += (Piece(level, last) for last in range(_multiple(start + 1, length), through + 1, length))
        for slot in sorted(arrived):
            piece = Piece(level, _multiple(slot, length))
            if piece.last <= complete and before is not None and piece.first > oldest:
                late[piece] = None
    return tuple(new), tuple(late)


def _multiple(slot: int, length: int) -> int:
    """The first multiple of a length that is not less than a slot."""
    return -(-slot // length) * length


def longest_levels(synopsis: Synopsis, windows: Mapping[int, int], groups: float = 1) -> int:
    """Return the level of the longest intervals for a synopsis, by its states and the windows that it answers.

    ``groups`` is the approximate number of rows of a slot.

    Some synopses have basic intervals only, since an interval of them has as many rows as its slots together, or since their rows
    do not merge. These are synopses whose rows are separated by the slot in which they end, or by the slots of a join's parts: if
    all rows live equally long, each arrival slot has another end slot. Counts of values differ from slot to slot as the values
    do. Lists of items do not merge to a list.
    """
    counts = {state.column for state in synopsis.states if state.function == "count"}
    counts_known = all(state.column in counts for state in synopsis.states if state.function in ("sum", "mean", "m2"))
    if synopsis.live or synopsis.parts is not None or synopsis.counted is not None or not counts_known:
        return 0
    size = _COUNTS
    for state in synopsis.states:
        parameter = state.size or 0
        size += {"hll": 1 << parameter, "kll": _QUANTILES * parameter}.get(state.function, _NUMBER)
    enough = 1 / _STILL if synopsis.levels else 1
    return levels_of(windows) if size >= LARGE or groups * size >= MANY * enough else 0


def levels_of(windows: Mapping[int, int]) -> int:
    """Return the level of the longest intervals that pay for large or many states: 0 for basic intervals only.

    They pay if they save answers more merged states than an update merges and writes for them.

    Parameters
    ----------
    windows
        The length of each window that is merged from the synopsis, with its period; both in slots.

    Examples
    --------
    >>> levels_of({24: 1}), levels_of({24: 24}), levels_of({720: 1})
    (4, 0, 9)
    """
    if not windows or basic_is_enough(max(windows), len(windows)):
        return 0
    levels = max(windows).bit_length() - 1
    extra = upkeep(levels) * _WRITTEN + merged_upkeep(levels)
    saved = merged_basic(windows) - merged_interval(windows, levels)
    return levels if saved > extra else 0


def merged_basic(windows: Mapping[int, int]) -> float:
    """Return how many states of a group an update merges from slots alone, on average."""
    return sum(length / period for length, period in windows.items())


def merged_interval(windows: Mapping[int, int], levels: int) -> float:
    """Return how many states of a group an update merges for its windows where there are intervals, on average."""
    total = 0.0
    for length, period in windows.items():
        ends = range(period, (1 << levels) * period + 1, period)[:_PHASES]
        total += sum(_pieces(end - length + 1, end, levels) for end in ends) / len(ends) / period
    return total


def _pieces(first: int, end: int, levels: int) -> int:
    return sum(1 for _ in cover(first, end, levels))


def upkeep(levels: int) -> float:
    """Return how many more states of a group are written for each slot: one of each level in ``2^level`` slots."""
    return 1 - 2.0**-levels


def merged_upkeep(levels: int) -> float:
    """Return how many states are merged for these states: a new interval has one of each shorter length, and the newest slot."""
    return sum((level + 1) / (1 << level) for level in range(1, levels + 1))


def basic_is_enough(slots: int, together: int) -> bool:
    """Whether a number of windows of up to ``slots`` slots, read in one scan, need no intervals: from ``slots / log2(slots)`` on.

    This is the sheet's rule (section 3) for synopses whose answers come from one scan that goes on from window to window.

    >>> [next(q for q in range(1, slots) if basic_is_enough(slots, q)) for slots in (8, 16, 32, 64, 128, 256)]
    [3, 4, 7, 11, 19, 32]
    """
    return slots < 2 or together >= slots / math.log2(slots)  # noqa: PLR2004 - one slot has no intervals
