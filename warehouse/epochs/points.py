"""The named moments of an update, before and after each durable write.

An observer is called at each moment: commands show progress by them, and tests stop, hold or kill an update at one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Moment", "Observer", "Point", "nobody"]


class Point(StrEnum):
    """A moment of an update."""

    LOCKED = "locked"
    PLANNED = "planned"
    PLAN_WRITTEN = "plan written"
    STEP_STARTED = "step started"
    STEP_READY = "step ready to commit"
    STAGED = "rows staged"
    STEP_COMMITTED = "step committed"
    STEPS_DONE = "steps done"
    DURABLE = "commits durable"
    EPOCH_WRITTEN = "epoch written"
    SUMMED_UP = "logs summed up"
    DATABASE_READY = "database ready to replace"
    DATABASE_REPLACED = "database replaced"
    LIVE_READY = "live table ready to move"
    LIVE_MOVED = "live table moved"
    RETIRED = "epochs retired"
    VACUUMED = "vacuumed"
    SWEPT = "erased files removed"
    LOGS_CUT = "logs cut"
    PROVED = "erasure proved"
    RECEIPT_WRITTEN = "receipt written"


@dataclass(frozen=True)
class Moment:
    """Which point was reached, in which epoch and step (-1 outside steps), in words."""

    point: Point
    epoch: int
    step: int = -1
    text: str = ""


Observer = Callable[[Moment], None]


def nobody(moment: Moment) -> None:
    """Observe nothing."""
