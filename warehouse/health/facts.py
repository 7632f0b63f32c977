"""The facts behind the verdict: plain values from the newest epochs, the landing directories, the clock and the disk."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal, get_args

__all__ = ["KINDS", "LEVELS", "Arrivals", "Facts", "Kind", "Level", "Running", "Shares", "TableFacts", "Thresholds"]


@dataclass(frozen=True)
class Arrivals:
    """Counts of the rows that arrived for a table in ``updates`` updates.

    ``late`` and ``dead`` leave out updates that build a table or catch up over several slots: their rows are late, or dead on
    arrival, because of the past and not because of the interval. ``on_time`` counts the rows of the other updates.
    """

    updates: int = 0
    rows: int = 0
    rejected: int = 0
    lost: int = 0
    on_time: int = 0
    dead: int = 0
    late: int = 0


@dataclass(frozen=True)
class TableFacts:
    """A declared table, or a table that the newest epoch still has; each reason is a sentence, or None.

    ``unreadable`` has landing files by path with the reason. ``changed`` are the paths, as in commands, of files that changed
    after they were loaded. ``vanished`` is the number of loaded files that are missing from an empty landing directory.
    ``answers_waiting`` counts due windows of an aggregate that were not answered, the first of them since ``answers_late``
    updates. A coalesced table has ``over_budget`` more members than its budget. ``lapsed`` units of a view under a budget ended
    before they were made, since the epoch before. ``declared`` is False for a table whose declaration was removed.
    """

    name: str
    kind: str
    declared: bool = True
    standing_still: str | None = None
    differs: str | None = None
    stale: str | None = None
    erasure_overdue: str | None = None
    unreadable: tuple[tuple[str, str], ...] = ()
    changed: tuple[str, ...] = ()
    vanished: int = 0
    answers_waiting: int = 0
    answers_late: int = 0
    over_budget: int = 0
    lapsed: int = 0
    last: Arrivals = Arrivals()
    day: Arrivals = Arrivals()


@dataclass(frozen=True)
class Running:
    """A running update: its process, its start (microseconds), and its current step; None if unknown."""

    by: str
    since: int | None = None
    doing: str | None = None


@dataclass(frozen=True)
class Facts:
    """A warehouse at an instant ``now``; instants and durations in microseconds, sizes in bytes.

    ``planned`` is the start of an update that has not written its epoch yet, if there is one. ``listing`` says why landing
    directories cannot be listed. ``replayed`` says that the past is replayed, so that nobody waits for the next update.
    ``outsiders`` are texts about commits of others, which the next update will judge. ``layouts`` has a text for each table whose
    layout no longer fits. ``disk_free`` is None if it is unknown, as in an object store. The last update wrote ``written`` bytes.
    """

    now: int
    epoch: int
    window_time: int
    committed_at: int
    update_interval: int
    tables: tuple[TableFacts, ...] = ()
    running: Running | None = None
    planned: int | None = None
    listing: str | None = None
    outsiders: tuple[str, ...] = ()
    layouts: tuple[tuple[str, str], ...] = ()
    disk_free: int | None = None
    written: int = 0
    replayed: bool = False


# --- thresholds from which a fact is a concern: ``[health]`` of ``warehouse.toml`` ---

Level = Literal["ok", "attention", "broken"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The levels, best first. ``attention``: a person should look; ``broken``: an answer is wrong or missing, or updates fail."""

Kind = Literal[
    "ahead",
    "answers_late",
    "changed",
    "dead_on_arrival",
    "differs",
    "disk",
    "erasure_overdue",
    "landing",
    "lapsed",
    "late",
    "layout",
    "lost",
    "outsiders",
    "over_budget",
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
class Shares:
    """The greatest shares of one table's rows that are no concern, from 0 to 1; None: as for the other tables."""

    rejected: float | None = None
    dead_on_arrival: float | None = None
    late: float | None = None


@dataclass(frozen=True)
class Thresholds:
    """The thresholds of concerns.

    Attributes
    ----------
    rejected, dead_on_arrival, late
        Shares of the rows that arrived in the last update or on the last day, from 0 to 1; a larger share is a concern.
    overdue
        Microseconds that the next update may be late; None: one update interval.
    disk_free
        Bytes that must be free on the root's disk; None: twice the bytes that the last update wrote, and at least 1 GB.
    ignore
        Kinds of concerns that do not count.
    tables
        The shares of tables that have their own, by name.

    """

    rejected: float = 0.01
    dead_on_arrival: float = 0.05
    late: float = 0.5
    overdue: int | None = None
    disk_free: int | None = None
    ignore: tuple[Kind, ...] = ()
    tables: tuple[tuple[str, Shares], ...] = ()

    def of_table(self, name: str) -> Thresholds:
        """Return the thresholds of one table.

        >>> Thresholds(tables=(("cars", Shares(late=1.0)),)).of_table("cars").late
        1.0
        """
        shares = asdict(dict(self.tables).get(name, Shares()))
        return replace(self, **{share: bound for share, bound in shares.items() if bound is not None})
