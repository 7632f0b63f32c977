"""The ledger of shed members (temporal-load-shedding sheet, section 7).

A ledger has one entry for each exact run that lost a member. The ledger and the stored rows together give the exact accuracy,
also for the run that the window's edge cuts. The ledger must balance: ``arrived = stored + shed + late + expired + repeated`` and
``length shed = exact length - length kept``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.coalescing.runs import Run

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Balance", "Entry", "entries_of", "run_of"]


@dataclass(frozen=True)
class Entry:
    """An exact run that lost members; instants and lengths in microseconds.

    ``stamps`` has the stamps of all its members, ``shed_stamps`` the stamps of the shed members.
    """

    group: object
    value: object
    run_start: int
    run_end: int
    open: bool
    stamps: tuple[int, ...]
    shed_stamps: tuple[int, ...]
    kept_length: int
    fragments: int

    @property
    def exact_length(self) -> int:
        """The length of the run."""
        return self.run_end - self.run_start


@dataclass(frozen=True)
class Balance:
    """Where the points of a batch went."""

    arrived: int
    stored: int
    shed: int
    late: int
    expired: int
    repeated: int

    @property
    def even(self) -> bool:
        """Whether each point is counted exactly once."""
        return self.arrived == self.stored + self.shed + self.late + self.expired + self.repeated


def entries_of(runs: Iterable[Run]) -> tuple[Entry, ...]:
    """Return the entries of the runs that lost members, in order of their starts."""
    found = [
        Entry(
            run.group,
            run.value,
            run.stamps[0],
            run.end,
            run.open,
            run.stamps,
            tuple(run.stamps[number] for number in sorted(run.shed)),
            sum(each.length for each in run.fragments),
            len(run.fragments),
        )
        for run in runs
        if run.shed
    ]
    return tuple(sorted(found, key=lambda each: (each.run_start, repr(each.group))))


def run_of(entry: Entry) -> Run:
    """Return the run of an entry, so that shedding can continue."""
    gone = set(entry.shed_stamps)
    shed = frozenset(number for number, stamp in enumerate(entry.stamps) if stamp in gone)
    return Run(entry.group, entry.value, entry.stamps, entry.run_end, shed, entry.open)
