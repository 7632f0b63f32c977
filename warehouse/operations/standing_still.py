"""Finds the tables and views that are stopped because outsiders changed them or their inputs; the others move on.

Invariant: later epochs name the same version of a stopped table, and its state has the slot from which it continues
(:class:`warehouse.epochs.records.Stopped`). No landing file of it is loaded until then. The first update after the change was
undone moves it from this slot to the window time, like a late table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.epochs.journal import record_path
from warehouse.steps.foreign import StoppedTable, change_above, foreign_changes, named_directories, prove, stopped_by
from warehouse.views.algebra import tables_read

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.node_plans import NodeInput
    from warehouse.storage.foreign import Change

__all__ = ["ForeignNote", "StandingStill", "behind", "foreign_notes", "standing_still", "stopped_of", "stopping"]


@dataclass(frozen=True)
class StandingStill:
    """The reasons why tables of streams, relations and archives stand still, and views, by name."""

    tables: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)

    def moving(self, nodes: Sequence[NodeInput]) -> list[NodeInput]:
        """Return the nodes of the views that do not stand still."""
        return [node_input for node_input in nodes if node_input.view not in self.views]


@dataclass(frozen=True)
class ForeignNote:
    """The message about a table that outsiders changed; whether the change ``stops`` the table."""

    message: str
    stops: bool


def stopping(root: Path, epoch: Epoch) -> dict[str, StoppedTable]:
    """Return the directories that an update would stop because outsiders changed them after an epoch.

    Nothing is written. If a commit claims to keep the rows, this is verified.
    """
    stopped_tables = {}
    for directory in named_directories(epoch):
        change = change_above(root, directory)
        if change is None or change.kind == "none":
            continue
        objection = ""
        if change.kind == "layout":
            same_rows, objection, _ = prove(root, directory, change)
            if same_rows:
                continue
        stopped_tables[directory.path] = stopped_by(directory.path, change, objection)
    return stopped_tables


def stopped_of(epoch: Epoch) -> dict[str, str]:
    """Return the tables that stood still in an epoch, and why."""
    return {state.name: state.stopped.reason for state in epoch.tables if state.stopped is not None}


def foreign_notes(root: Path, epoch: Epoch) -> tuple[ForeignNote, ...]:
    """Return the messages about tables that stand still, and about foreign commits since an epoch, without proofs."""
    if record_path(root, epoch.number + 1, "plan").exists():  # commits above the epoch may belong to a running update
        return tuple(
            ForeignNote(f'table "{name}" stands still: {reason}', stops=True) for name, reason in stopped_of(epoch).items()
        )
    return tuple(_notes(epoch, foreign_changes(root, epoch)))


def _notes(epoch: Epoch, changes: Mapping[str, Change]) -> Iterator[ForeignNote]:
    reported: set[str] = set()
    for state in epoch.tables:
        if state.stopped is None:
            continue
        names = {state.archive_of, *(table.name for table in epoch.tables if table.archive_of == state.name)}
        joined_tables = [table for table in epoch.tables if table.name in names] + [state]
        paths = [path for table in joined_tables for path in table.paths]
        reported.update(paths)
        if any(changes[path].kind != "none" for path in paths if path in changes):
            yield ForeignNote(f'table "{state.name}" stands still: {state.stopped.reason}', stops=True)
        else:
            yield ForeignNote(f'table "{state.name}" stood still, and can go on: `stream-wh update` moves it', stops=True)
    for path, change in changes.items():
        if path in reported:
            continue
        if change.kind in ("none", "layout"):
            text = f'table "{path}" was changed from outside: {change.message}; the next update adopts it if rows are the same'
            yield ForeignNote(text, stops=False)
        else:
            yield ForeignNote(f'table "{path}": {stopped_by(path, change).message}', stops=True)


def behind(epoch: Epoch | None, nodes: Sequence[NodeInput]) -> StandingStill:
    """Return the tables that an epoch holds as of an earlier slot, for any reason, and the views that read them.

    Only an update may use their rows.
    """
    return StandingStill() if epoch is None else _with_views(stopped_of(epoch), {}, nodes)


def standing_still(
    epoch: Epoch | None, changed: Mapping[str, StoppedTable], nodes: Sequence[NodeInput], declared: Collection[str]
) -> StandingStill:
    """Return the tables and views that an update leaves unchanged after an epoch.

    Parameters
    ----------
    epoch
        The newest epoch; None before the first.
    changed
        The directories that outsiders changed.
    nodes
        The nodes of the declared views.
    declared
        The names of all declared tables except views, with archives. A table that is not declared never moves.

    """
    if epoch is None or not changed:
        return StandingStill()
    tables: dict[str, str] = {}
    views: dict[str, str] = {}
    declared_names = {*declared, *(node_input.view for node_input in nodes)}
    for state in epoch.tables:
        stopped_table = next((changed[path] for path in state.paths if path in changed), None)
        if stopped_table is not None and state.owner in declared_names:
            of_view = state.view is not None or any(node_input.view == state.owner for node_input in nodes)
            (views if of_view else tables).setdefault(state.owner, stopped_table.message)
    for state in epoch.tables:  # points that a coalesced table misses would be lost
        source = state.followed
        if state.coalesced is not None and state.name in tables and source in declared_names:
            tables.setdefault(source, f'"{state.name}", which goes with it, stands still: {tables[state.name]}')
    for state in epoch.tables:
        if state.archive_of is None or not {state.name, state.archive_of} <= declared_names:
            continue
        for name, joined_name in ((state.name, state.archive_of), (state.archive_of, state.name)):
            if name in tables:
                tables.setdefault(joined_name, f'"{name}", which goes with it, stands still: {tables[name]}')
    return _with_views(tables, views, nodes)


def _with_views(tables: Mapping[str, str], views: Mapping[str, str], nodes: Sequence[NodeInput]) -> StandingStill:
    """Add the declared views that read a table that stands still, directly or not."""
    stopped_views = dict(views)
    stopped_tables = dict(tables)
    count_before = -1
    while len(stopped_tables) + len(stopped_views) != count_before:
        count_before = len(stopped_tables) + len(stopped_views)
        for node_input in nodes:
            stopped_input = next((table for table in tables_read(node_input.node.operator) if table in stopped_tables), None)
            if node_input.view not in stopped_views and stopped_input is not None:
                stopped_views[node_input.view] = f"it reads {stopped_input}, which stands still: {stopped_tables[stopped_input]}"
            if node_input.view in stopped_views:
                stopped_tables.setdefault(node_input.node.table, stopped_views[node_input.view])
    return StandingStill(tables, stopped_views)
