"""What an executed plan came to: its commits in the tables' logs, and what its batches counted and left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.steps.batch_commits import first_batch_commit
from warehouse.steps.registry import kind_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.batch_counts import BatchCounts
    from warehouse.ingest.files import LeftOut
    from warehouse.planning.plan_record import Plan
    from warehouse.storage.deltalog import Commit
    from warehouse.storage.own_commits import TableProgress

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """A plan, the epoch from which it started, the commits in its tables' logs, and the counts and unread files of its batches.

    ``last`` is the plan's base, if it has one. ``logged`` are all commits, ``done`` the commits after the base. ``lacking`` says
    whether results of views lack files that can no longer be read.
    """

    plan: Plan
    last: Epoch | None
    done: Mapping[str, TableProgress]
    counted: Mapping[str, BatchCounts]
    left_out: Mapping[str, tuple[LeftOut, ...]]
    failed_views: Mapping[str, str] = field(default_factory=dict)
    logged: Mapping[str, TableProgress] = field(default_factory=dict)
    lacking: bool = False

    def main_commit(self, name: str) -> Commit | None:
        """Return the commit of a stream's main step; None if it changed no row."""
        for number, step in enumerate(self.plan.steps):
            if kind_of(step).writes_rows and step.stream == name:
                return self.done[step.path].commits.get(number)
        return None

    def first_commit(self, name: str) -> Commit | None:
        """Return the first commit with rows of a stream's batch; its metadata has the counts of the batch."""
        return first_batch_commit(self.plan, self.done, name)

    def before(self, name: str) -> TableState | None:
        """Return a table's state at the last epoch."""
        return self.last.table(name) if self.last else None
