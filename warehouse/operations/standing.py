"""Which tables and views stand still because outsiders changed them, or what they read; the others go on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.epochs.journal import record_path
from warehouse.steps.foreign import StoppedTable, foreign_changes
from warehouse.views.algebra import scanned

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.node_plans import NodeInput

__all__ = ["StandingStill", "foreign_told", "standing_still", "stopped_of", "stopping", "with_archives"]


@dataclass(frozen=True)
class StandingStill:
    """Why tables of streams, relations and archives stand still, and why views do, by name."""

    tables: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)

    def moving(self, nodes: Sequence[NodeInput]) -> list[NodeInput]:
        """Return the nodes of the views that go on."""
        return [given for given in nodes if given.view not in self.views]


def stopping(root: Path, epoch: Epoch) -> dict[str, StoppedTable]:
    """Return the directories that outsiders changed since an epoch, as far as that is seen without proofs."""
    return {
        path: StoppedTable(path, change.first, change.told)
        for path, change in foreign_changes(root, epoch).items()
        if change.kind not in ("none", "layout")
    }


def stopped_of(epoch: Epoch) -> dict[str, str]:
    """Return the tables that stood still in an epoch, and why."""
    return {state.name: state.stopped.reason for state in epoch.tables if state.stopped is not None}


def foreign_told(root: Path, epoch: Epoch) -> tuple[str, ...]:
    """Return what to tell of tables that stand still, and of what outsiders committed since an epoch."""
    told = [f'table "{name}" stands still: {reason}' for name, reason in stopped_of(epoch).items()]
    if record_path(root, epoch.number + 1, "plan").exists():
        return tuple(told)  # an update is at work, or to be finished: what is above the epoch may be its own
    for path, change in foreign_changes(root, epoch).items():
        if change.kind in ("none", "layout"):
            told.append(f'table "{path}" was changed from outside: {change.told}; the next update adopts it if rows are the same')
        else:
            told.append(f'table "{path}": {StoppedTable(path, change.first, change.told).told}')
    return tuple(told)


def with_archives(tables: Mapping[str, str], states: Iterable[TableState]) -> dict[str, str]:
    """Return tables that stand still with their archives, or the streams of which they are archives: these go together."""
    found = dict(tables)
    for state in states:
        if state.archive_of is None:
            continue
        for one, other in ((state.name, state.archive_of), (state.archive_of, state.name)):
            if one in found:
                found.setdefault(other, f'"{one}", which goes with it, stands still: {found[one]}')
    return found


def standing_still(epoch: Epoch | None, changed: Mapping[str, StoppedTable], nodes: Sequence[NodeInput]) -> StandingStill:
    """Return what stands still after an epoch: the tables of ``changed`` directories, and the views that read them.

    ``nodes`` are those of the declared views.
    """
    if epoch is None or not changed:
        return StandingStill()
    tables: dict[str, str] = {}
    views: dict[str, str] = {}
    for state in epoch.tables:
        found = next((changed[path] for path in state.paths if path in changed), None)
        if found is not None:
            (tables if state.view is None else views).setdefault(state.owner, found.told)
    tables = with_archives(tables, epoch.tables)
    still = dict(tables)
    before = -1
    while len(still) + len(views) != before:
        before = len(still) + len(views)
        for given in nodes:
            below = next((table for table in scanned(given.node.operator) if table in still), None)
            if given.view not in views and below is not None:
                views[given.view] = f"it reads {below}, which stands still: {still[below]}"
            if given.view in views:
                still.setdefault(given.node.table, views[given.view])
    return StandingStill(tables, views)
