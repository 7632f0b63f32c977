"""Plans the base of a rollback or a restatement: tables are restored to their contents at an earlier epoch.

A plan that goes back has a *base*: an epoch that is never read, with the tables as its first steps, :class:`RestoreTable`, leave
them. All other steps start from the base, as the steps of an update start from the last epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.planning.steps import CreateTable, ReplaceTable, RestoreTable
from warehouse.storage.tables import schema_file

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from warehouse.catalog.declaration import Declaration
    from warehouse.epochs.records import Epoch, SideTable, TableState
    from warehouse.layout import Layout
    from warehouse.planning.plan_record import Plan

__all__ = ["REBUILT", "Restoring", "missing_files_of", "with_restored_versions"]

_EMPTY = -1
REBUILT = "what it reads went back to an earlier epoch"
"""The reason why views are rebuilt: a base has it in the place of an epoch's reason why a view failed."""


@dataclass
class Restoring:
    """Collects the steps that restore tables, and the tables' states after them."""

    steps: list[RestoreTable | ReplaceTable] = field(default_factory=list)

    def restored(self, state: TableState, old: TableState) -> TableState:
        """Return a table with the rows of ``old``, its waiting, rejected and short-lived rows included."""
        version = self._version(state.name, state.path, state.version, old.version)
        return replace(
            old,
            version=version,
            declared=state.declared,
            deferred=self._side(state.name, state.deferred, old.deferred),
            rejected=self._side(state.name, state.rejected, old.rejected),
            restored=self._side(state.name, state.restored, old.restored),
        )

    def emptied(self, state: TableState) -> TableState:
        """Return a table that did not exist then, without rows."""
        version = self._version(state.name, state.path, state.version, _EMPTY) if state.partitions else state.version
        return replace(
            state,
            version=version,
            partitions=(),
            deferred=self._side(state.name, state.deferred, None),
            rejected=self._side(state.name, state.rejected, None),
            restored=self._side(state.name, state.restored, None),
            newest=None,
            former=(),
            stopped=None,
            synopsis=None if state.synopsis is None else replace(state.synopsis, emptied=True),
            coalesced=None if state.coalesced is None else replace(state.coalesced, emptied=True),
        )

    def replaced(self, state: TableState, declaration: Declaration, layout: Layout, epoch: int) -> TableState:
        """Return a table without rows and with other columns; ``epoch`` is the epoch that replaces it."""
        self.steps.append(ReplaceTable(state.name, state.path, state.table_id, state.version))
        waiting = state.deferred
        if waiting is not None:
            self.steps.append(ReplaceTable(state.name, waiting.path, waiting.table_id, waiting.version, "deferred"))
        return replace(
            state,
            declaration=declaration,
            layout=layout,
            schema_file=schema_file(state.path, epoch),
            partitions=(),
            deferred=None if waiting is None else replace(waiting, rows=0, waiting=()),
            rejected=self._side(state.name, state.rejected, None),
            newest=None,
            former=(),
        )

    def emptied_side(self, name: str, side: SideTable) -> SideTable | None:
        """Return a side table without rows."""
        return self._side(name, side, None)

    def rebuilt(self, state: TableState) -> TableState:
        """Return a view's table as it is, marked so that the plan rebuilds it."""
        if state.view is None:
            raise TypeError(f"{state.name} is no view's")
        return replace(state, view=replace(state.view, failed=REBUILT))

    def _side(self, name: str, now: SideTable | None, old: SideTable | None) -> SideTable | None:
        if now is None:
            return old
        if old is None:
            version = self._version(name, now.path, now.version, _EMPTY) if now.rows else now.version
            return replace(now, version=version, rows=0, waiting=())
        return replace(old, version=self._version(name, now.path, now.version, old.version))

    def _version(self, name: str, path: str, now: int, then: int) -> int:
        """The version after the step, which is left out when there is nothing to restore."""
        if now == then:
            return now
        self.steps.append(RestoreTable(name, path, now, then))
        return now + 1


def with_restored_versions(plan: Plan, restored: Mapping[str, int]) -> Plan:
    """Return a plan whose steps and base start from the versions that its restoring steps have made.

    ``restored`` are these versions by directory. A plan takes each for the one after the last epoch's; it is a later one when
    commits above that epoch were taken back. The plan itself is returned when all are as planned.
    """
    planned = {step.path: step.base_version + 1 for step in plan.steps if isinstance(step, RestoreTable)}
    moved = {path: version for path, version in restored.items() if version != planned[path]}
    if not moved or plan.base is None:
        return plan

    def side(table: SideTable | None) -> SideTable | None:
        return table if table is None or table.path not in moved else replace(table, version=moved[table.path])

    tables = tuple(
        replace(
            state,
            version=moved.get(state.path, state.version),
            deferred=side(state.deferred),
            rejected=side(state.rejected),
            restored=side(state.restored),
        )
        for state in plan.base.tables
    )
    steps = tuple(
        step
        if isinstance(step, RestoreTable | CreateTable) or step.path not in moved
        else msgspec.structs.replace(step, base_version=moved[step.path])
        for step in plan.steps
    )
    return msgspec.structs.replace(plan, steps=steps, base=replace(plan.base, tables=tables))


def missing_files_of(root: Path, epoch: Epoch) -> list[str]:
    """Return the files of an epoch that are not there, relative to the root.

    Raises
    ------
    MissingPartError
        When a table's log does not reach the epoch's version.

    """
    from warehouse.storage.restore import lost_files  # noqa: PLC0415 - going back alone needs it

    versions = {state.path: state.version for state in epoch.tables}
    versions |= {side.path: side.version for state in epoch.tables for side in state.sides}
    return [f"{path}/{name}" for path, version in versions.items() for name in lost_files(root / path, version)]
