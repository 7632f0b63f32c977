"""Timing several pieces of work in turn, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["in_turn", "timed"]


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """Return work that tells its seconds."""

    def run() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return run


def in_turn(works: Sequence[Callable[[], float]], repeat: int) -> list[tuple[float, ...]]:
    """Return the seconds that each piece of work reports, done in turn; the first turn is not counted.

    Every second turn goes backwards, so that nothing always comes after the same other.
    """
    seconds: list[list[float]] = [[] for _ in works]
    for number in range(repeat + 1):
        numbered = list(enumerate(works))
        for position, work in numbered if number % 2 else reversed(numbered):
            elapsed = work()
            if number:
                seconds[position].append(elapsed)
    return [tuple(times) for times in seconds]
