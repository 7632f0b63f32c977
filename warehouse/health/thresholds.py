"""From where on a fact is a concern: ``[health]`` of ``warehouse.toml``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

__all__ = ["KINDS", "LEVELS", "Kind", "Level", "Thresholds"]

Level = Literal["ok", "attention", "broken"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From well to ill. ``broken``: an answer is wrong or missing, or updates cannot go on; ``attention``: a person should look."""

Kind = Literal[
    "ahead",
    "answers_late",
    "changed",
    "dead_on_arrival",
    "differs",
    "disk",
    "erasure_overdue",
    "landing",
    "late",
    "layout",
    "lost",
    "outsiders",
    "overdue",
    "rejected",
    "stale",
    "standing_still",
    "undeclared",
    "unfinished",
    "unreadable",
    "vanished",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Thresholds:
    """What is still well.

    Attributes
    ----------
    rejected, dead_on_arrival, late
        Shares of the rows that arrived, from 0 to 1, of the last update or of the last day; more is a concern.
    overdue
        Microseconds that the next update may be late; None: one update interval.
    disk_free
        Bytes that must be free where the root is; None: twice what the last update wrote, and at least 1 GB.
    ignore
        Kinds of concerns that do not count.

    """

    rejected: float = 0.01
    dead_on_arrival: float = 0.05
    late: float = 0.5
    overdue: int | None = None
    disk_free: int | None = None
    ignore: tuple[Kind, ...] = ()
