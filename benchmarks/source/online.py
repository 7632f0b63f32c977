"""Shedding members as they arrive, in order (temporal-load-shedding sheet, section 5): the algorithm as the source states it.

An update sheds batches (:mod:`warehouse.coalescing.shedding`); tests and the experiment compare them with this module.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.coalescing.runs import Run
from warehouse.coalescing.scoring import CALS
from warehouse.coalescing.shedding import candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from warehouse.coalescing.scoring import Method

__all__ = ["OnLine"]


class OnLine:
    """Keeps at most ``capacity`` members of a window; the open member of each group always stays.

    Parameters
    ----------
    capacity
        M; it must be greater than the number of groups.
    rows, length
        The window: the newest arrivals, including shed arrivals, or microseconds; None: without this bound.
    method
        How to choose.
    tie
        A function that gives a number in [0, 1), for example at random, to choose between equal scores. None: the member with the
        least stamp is shed.

    """

    def __init__(
        self,
        capacity: int,
        *,
        rows: int | None = None,
        length: int | None = None,
        method: Method = CALS,
        tie: Callable[[], float] | None = None,
    ) -> None:
        self.capacity, self.rows, self.length, self.method, self._tie = capacity, rows, length, method, tie
        self._runs: dict[int, Run] = {}
        self._versions: dict[int, int] = {}
        self._last: dict[Hashable, int] = {}
        self._arrived: deque[tuple[int, int]] = deque()
        self._queue: list[tuple[tuple[float, int, str, int, int], int]] = []
        self._kept = 0
        self._next = 0

    @property
    def runs(self) -> tuple[Run, ...]:
        """The exact runs of the window with their remaining members, in order of the first stamp."""
        return tuple(sorted(self._runs.values(), key=lambda run: (run.stamps[0], repr(run.group))))

    def arrive(self, group: Hashable, stamp: int, value: object) -> int | None:
        """Add a member, the newest of its group, and return the stamp of the member that is shed for it.

        Raises
        ------
        ValueError
            When it is not the newest of its group, or only open members are left to shed.

        """
        self._expire(stamp)
        number = self._last.get(group)
        previous = None if number is None else self._runs[number]
        if previous is not None and stamp <= previous.stamps[-1]:
            raise ValueError(f"the stamp {stamp} is not after {previous.stamps[-1]}")
        if number is not None and previous is not None and previous.value == value:
            self._put(number, replace(previous, stamps=(*previous.stamps, stamp), end=stamp))
        else:
            self._close(group, stamp)
            number, self._next = self._next, self._next + 1
            self._put(number, Run(group, value, (stamp,), stamp, open=True))
            self._last[group] = number
        self._arrived.append((number, stamp))
        self._kept += 1
        return self._shed() if self._kept > self.capacity else None

    def close(self, group: Hashable, stamp: int) -> None:
        """Let a group's last member end at a stamp; the next that arrives begins a run."""
        self._close(group, stamp)
        self._last.pop(group, None)

    def _close(self, group: Hashable, stamp: int) -> None:
        number = self._last.get(group)
        if number is not None:
            self._put(number, replace(self._runs[number], end=stamp, open=False))

    def _expire(self, stamp: int) -> None:
        while self._arrived and (
            (self.rows is not None and len(self._arrived) >= self.rows)
            or (self.length is not None and self._arrived[0][1] < stamp - self.length)
        ):
            number, oldest = self._arrived.popleft()
            run = self._runs[number]
            self._kept -= 0 not in run.shed
            remaining = run.within(oldest + 1)
            if remaining is not None:
                self._put(number, remaining)
                continue
            del self._runs[number], self._versions[number]
            if self._last.get(run.group) == number:
                del self._last[run.group]

    def _put(self, number: int, run: Run) -> None:
        """Store a run, and queue the best candidate of each of its fragments; earlier entries of the run are stale."""
        self._runs[number] = run
        version = self._versions[number] = self._versions.get(number, 0) + 1
        for fragment in run.fragments:
            ranks = sorted(candidates((run,), self.method, 0, fragment.first, fragment.last))
            for score, at, group, _, member in ranks if self._tie else ranks[:1]:
                if score == ranks[0][0]:
                    heapq.heappush(self._queue, ((score, at, group, number, member), version))

    def _shed(self) -> int:
        first = self._pop()
        if first is None:
            raise ValueError(f"{self.capacity} members are not more than the groups: there is none to shed")
        if self._tie is not None:
            equal = [first]
            while (other := self._pop()) is not None and other[0][0] == first[0][0]:
                equal.append(other)
            first = equal.pop(int(self._tie() * len(equal)))
            equal += [other] if other is not None else []
            for other in equal:
                heapq.heappush(self._queue, other)
        _, _, _, number, member = first[0]
        run = self._runs[number]
        self._kept -= 1
        self._put(number, run.without([member]))
        return run.stamps[member]

    def _pop(self) -> tuple[tuple[float, int, str, int, int], int] | None:
        """Remove and return the first entry of the queue that is not stale."""
        while self._queue:
            entry = heapq.heappop(self._queue)
            if self._versions.get(entry[0][3]) == entry[1]:
                return entry
        return None
