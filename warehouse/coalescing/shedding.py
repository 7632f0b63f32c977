"""Shedding members of coalesced rows in a batch (temporal-load-shedding sheet, section 6).

All ends are known, so members are shed one by one from the whole set, each time the one with the least (score, stamp, group). A
queue with the best candidate of each fragment makes the same decisions as comparing all members each time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from warehouse.coalescing.accuracy import Tally
from warehouse.coalescing.scoring import CALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.coalescing.runs import Run
    from warehouse.coalescing.scoring import Method

__all__ = ["Shed", "candidates", "order_of", "shed"]

Rank = tuple[float, int, str, int, int]
"""Of a candidate: score, stamp, group as text, run, number of the member."""


@dataclass(frozen=True)
class Shed:
    """The result of shedding: the runs, and the shed members in order, as (run, number of the member)."""

    runs: tuple[Run, ...]
    members: tuple[tuple[int, int], ...]
    share: float
    """The accuracy (Eq. 6) after shedding."""


def shed(
    runs: Sequence[Run], count: int, method: Method = CALS, *, floor: float | None = None, at_least: int = 0
) -> Shed:
    """Shed members.

    Parameters
    ----------
    runs
        The exact rows of the window, each with its shed members.
    count
        The upper bound of members to shed. Open members always stay, so fewer may be shed.
    method
        How to choose.
    floor
        Shedding stops before the accuracy (a share) falls below this; None: no floor.
    at_least
        The threshold theta, in microseconds, of the accuracy.

    Examples
    --------
    >>> from warehouse.coalescing.runs import Run
    >>> shed([Run("g", "a", (0, 4, 6), 13), Run("g", "b", (13, 16), 21)], 2).members
    ((0, 0), (0, 1))

    """
    tally = Tally(runs, at_least)
    shed_members: list[list[int]] = [[] for _ in runs]
    members: list[tuple[int, int]] = []
    for run, number, before, pieces in islice(order_of(runs, method), max(0, count)):
        if floor is not None and tally.after(run, before, pieces) < floor:
            break
        tally.split(run, before, pieces)
        shed_members[run].append(number)
        members.append((run, number))
    remaining = tuple(run.without(numbers) if numbers else run for run, numbers in zip(runs, shed_members, strict=True))
    return Shed(remaining, tuple(members), tally.share)


def order_of(runs: Sequence[Run], method: Method) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield the members to shed: run, member, the length of its fragment, and the lengths of the fragments that remain."""
    if method.static:
        yield from _static(runs, method)
        return
    queue: list[tuple[Rank, int, int]] = []

    def push(run: int, first: int, last: int) -> None:
        best = min(candidates(runs, method, run, first, last), default=None)
        if best is not None:
            heapq.heappush(queue, (best, first, last))

    for number, run in enumerate(runs):
        for fragment in run.fragments:
            push(number, fragment.first, fragment.last)
    while queue:
        (_, _, _, run_number, number), first, last = heapq.heappop(queue)
        run = runs[run_number]
        yield run_number, number, *_cut(run, first, last, number)
        if number > first:
            push(run_number, first, number - 1)
        if number < last:
            push(run_number, number + 1, last)


def candidates(runs: Sequence[Run], method: Method, number: int, first: int, last: int) -> Iterator[Rank]:
    """Yield the ranks of the members of a fragment that may be shed next; never the open member."""
    run = runs[number]
    members = range(first, last + 1) if not method.ends_only else (first,) if first == last else (first, last)
    for member in members:
        if member in run.closed:
            yield method.score(run, first, last, member), run.stamps[member], repr(run.group), number, member


def _cut(run: Run, first: int, last: int, number: int) -> tuple[int, tuple[int, ...]]:
    """Return the length of a fragment, and the lengths of the fragments that remain without one of its members."""
    before = run.end_of(last) - run.stamps[first]
    lengths = []
    if number > first:
        lengths.append(run.stamps[number] - run.stamps[first])
    if number < last:
        lengths.append(run.end_of(last) - run.stamps[number + 1])
    return before, tuple(lengths)


def _static(runs: Sequence[Run], method: Method) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
    """Yield all members in an order that is computed at once, for methods whose scores never change."""
    ranks = sorted(
        (method.score(run, 0, len(run.stamps) - 1, member), run.stamps[member], repr(run.group), number, member)
        for number, run in enumerate(runs)
        for member in run.closed
        if member not in run.shed
    )
    shed_of = [set(run.shed) for run in runs]
    for _, _, _, number, member in ranks:
        run, shed_members = runs[number], shed_of[number]
        first, last = member, member
        while first > 0 and first - 1 not in shed_members:
            first -= 1
        while last + 1 < len(run.stamps) and last + 1 not in shed_members:
            last += 1
        shed_members.add(member)
        yield number, member, *_cut(run, first, last, member)
