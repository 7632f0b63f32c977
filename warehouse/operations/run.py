"""An update at every grid point, in one process whose Spark session stays warm."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from warehouse.errors import SparkLostError, Transient, WarehouseError
from warehouse.time import SECOND

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from warehouse.operations.update import UpdateReport

__all__ = ["Grid", "RunClock", "Turn", "WallClock", "following", "keep_up_to_date"]

FIRST_PAUSE = 2 * SECOND
LONGEST_PAUSE = 60 * SECOND
_SLICE = 10 * SECOND
"""A wait reads the clock again after this time: the clock may be set, and the machine may have slept."""


@dataclass(frozen=True)
class Grid:
    """The grid points at which windows move: an anchor and a period, in microseconds."""

    anchor: int
    interval: int


@dataclass(frozen=True)
class Turn:
    """One update of a run: its result or its error, its duration, and the time of the next one.

    Attributes
    ----------
    began, ended, following
        Instants in microseconds since 1970. ``following`` is in the past if the update took longer than the interval.
    report
        The result of the update; None if it failed.
    error
        The error; None if it succeeded.

    """

    began: int
    ended: int
    following: int
    report: UpdateReport | None = None
    error: WarehouseError | None = None


class RunClock(Protocol):
    """The clock of a run."""

    def now(self) -> int:
        """Return the instant in microseconds since 1970."""

    def wait(self, microseconds: int) -> bool:
        """Wait so long, and return whether the run must end."""


class WallClock:
    """The machine's clock, and an event that ends the run."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def now(self) -> int:
        """Return the instant."""
        return time.time_ns() // 1000

    def wait(self, microseconds: int) -> bool:
        """Wait, at most until the event is set."""
        return self._stop.wait(max(0, microseconds) / SECOND)


def following(instant: int, grid: Grid, delay: int) -> int:
    """Return the first instant after the given one that is ``delay`` after a grid point.

    >>> following(100, Grid(0, 60), 5), following(125, Grid(0, 60), 5), following(124, Grid(0, 60), 5)
    (125, 185, 125)
    """
    points = (instant - delay - grid.anchor) // grid.interval + 1
    return grid.anchor + points * grid.interval + delay


def keep_up_to_date(
    update: Callable[[], UpdateReport], grid: Callable[[], Grid], delay: int, clock: RunClock, report_turn: Callable[[Turn], None]
) -> int:
    """Update now and ``delay`` after every grid point, until the clock ends the run; return how many updates succeeded.

    An update that fails is retried: soon if the failure is transient, with pauses that double from two seconds to a minute, else
    at the next grid point. One update directly after a long one catches up with the grid points that passed meanwhile.

    Parameters
    ----------
    update
        Moves the windows to the last grid point.
    grid
        The grid as it is declared now; if the declarations cannot be read, the last grid stays valid.
    delay
        Microseconds.
    clock
        Returns the time, and ends the run.
    report_turn
        Called with each turn after its update.

    Raises
    ------
    WarehouseError
        When the very first update fails with an error that is not transient: a person is still watching then.
    SparkLostError
        When the Spark process ended: a new one needs a new process.

    """
    points, pause, succeeded, first = grid(), FIRST_PAUSE, 0, True
    while True:
        began, report, error = clock.now(), None, None
        try:
            points = grid()
            report = update()
        except SparkLostError:
            raise
        except WarehouseError as failure:
            if first and not isinstance(failure, Transient):
                raise
            error = failure
        first = False
        next_turn, ended = following(began, points, delay), clock.now()
        if isinstance(error, Transient):
            next_turn, pause = min(next_turn, ended + pause), min(2 * pause, LONGEST_PAUSE)
        else:
            pause = FIRST_PAUSE
        succeeded += report is not None
        report_turn(Turn(began, ended, next_turn, report, error))
        if _over(clock, began, next_turn):
            return succeeded


def _over(clock: RunClock, began: int, until: int) -> bool:
    """Wait until an instant; return whether the run must end. A clock that was set back ends the wait too."""
    if clock.wait(0):
        return True
    while began <= (now := clock.now()) < until:
        if clock.wait(min(until - now, _SLICE)):
            return True
    return False
