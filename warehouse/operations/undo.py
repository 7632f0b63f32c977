"""Undoes outsiders' commits to tables: by a following commit, or if that is impossible by removing their log entries.

A following commit restores the content of the version before the first foreign commit: it adds the files that outsiders removed
and removes the files that they added. Entries of the log are removed only if a commit cannot undo them (a torn entry, a gap in
the log, a changed protocol), with their checkpoints, sums and sidecars, and never at or below a version that an epoch names.

Commits that change no row stay if the next epoch can adopt them. Among the commits of an unfinished plan they are undone, too,
also in the tables that the plan creates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.epochs.journal import newest_epoch
from warehouse.errors import RESTORE_TABLE, MissingPartError, NoEpochError, UnknownNameError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.damaged_epoch import set_aside_damaged
from warehouse.operations.execution import recorded_plan, settle_foreign
from warehouse.planning.steps import CreateTable
from warehouse.steps.foreign import named_directories, prove
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import entry_at, raw_commits
from warehouse.storage.foreign import absent_files, judged
from warehouse.storage.leftover import commits_beyond, drop_above, left_above, remove_commits
from warehouse.storage.replay import replay, replayed
from warehouse.storage.reversal import counting, reverse
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.plan_record import Plan
    from warehouse.steps.foreign import NamedDirectory
    from warehouse.storage.deltalog import Commit
    from warehouse.storage.foreign import Change

__all__ = ["Undone", "undo_foreign"]

_SHOWN = 5


@dataclass(frozen=True)
class Undone:
    """The change of a table's directory, made or planned; ``to_version`` is the version whose content it has afterwards."""

    path: str
    how: Literal["kept", "followed", "removed", "left over", "not possible"]
    to_version: int
    detail: str

    @property
    def open(self) -> bool:
        """Whether outsiders' commits are still in effect, and stop the table."""
        return self.how == "not possible"

    @property
    def message(self) -> str:
        """The same in words."""
        words = {
            "kept": "stays, since it changes no row; the update adopts it",
            "followed": f"is taken back by a following commit, to the content of version {self.to_version}",
            "removed": f"is removed from the log, down to version {self.to_version}, with its checkpoints and sums",
            "left over": "sums up commits that are not there, and is removed from the log",
        }
        if self.open:
            return self.detail
        return f"{self.path}: {self.detail} {words[self.how]}"


@dataclass(frozen=True)
class _Directory:
    """A table's directory (relative to the root), at the version that the newest epoch names, and the names of its tables.

    ``named`` is the epoch's entry for the directory; None if the unfinished plan creates it, so that no version is named.
    ``steps`` are the numbers of the plan's steps in the directory.
    """

    path: str
    version: int
    names: tuple[str, ...]
    steps: frozenset[int]
    named: NamedDirectory | None = None


def _directories(epoch: Epoch | None, plan: Plan | None) -> Iterator[_Directory]:
    """Yield the directories of an epoch, and the directories that a plan above it creates."""
    steps: dict[str, set[int]] = {}
    for number, step in enumerate(plan.steps if plan else ()):
        steps.setdefault(step.path, set()).add(number)
    paths = set()
    for named in named_directories(epoch) if epoch else ():
        paths.add(named.path)
        names = (named.state.name, named.state.owner)
        yield _Directory(named.path, named.version, names, frozenset(steps.get(named.path, ())), named)
    views = {node.name: node.view for node in plan.nodes} if plan else {}
    for step in plan.steps if plan else ():
        if isinstance(step, CreateTable) and step.path not in paths:
            yield _Directory(step.path, -1, (step.stream, views.get(step.stream, step.stream)), frozenset(steps[step.path]))


def undo_foreign(context: WriteContext, table: str | None = None, *, dry_run: bool = False) -> tuple[Undone, ...]:
    """Undo outsiders' commits to a table (None: all); commits that changed no row are adopted.

    A dry run needs no lock and writes nothing. For all tables, a table whose commits cannot be undone does not stop the others:
    it is reported as ``not possible``.

    Raises
    ------
    NoEpochError, UnknownNameError
        When there is no epoch, or no such table.
    MissingPartError
        When files that must come back no longer exist, or the table's log was replaced; that table is unchanged.

    """
    root = context.root
    if dry_run:
        last = newest_epoch(root)
        return _undo(root, last, _plan_above(root, last), table, at=context.clock(), dry_run=True)
    with locked(context):
        set_aside_damaged(root)
        last = newest_epoch(root)
        plan = _plan_above(root, last)
        done = _undo(root, last, plan, table, at=context.clock(), dry_run=False)
        if plan is None:
            settle_foreign(context, last)
        return done


def _plan_above(root: Path, last: Epoch | None) -> Plan | None:
    """Return the plan that was begun above an epoch; None: there is an epoch, and no plan above it."""
    plan = recorded_plan(root, last)
    if plan is None and last is None:
        raise NoEpochError("nothing has been loaded yet, so there is nothing to take back; run `stream-wh update` first")
    return plan


def _undo(
    root: Path, epoch: Epoch | None, plan: Plan | None, table: str | None, *, at: int, dry_run: bool
) -> tuple[Undone, ...]:
    directories = list(_directories(epoch, plan))
    names = sorted({name for directory in directories for name in directory.names})
    if table is not None and table not in names:
        raise UnknownNameError("table", table, names)
    number = plan.epoch if plan else epoch.number if epoch else 0
    undone: list[Undone] = []
    for directory in directories:
        if table is not None and table not in directory.names:
            continue
        try:
            undone += _undone(root, directory, number, at=at, dry_run=dry_run)
        except MissingPartError as error:
            if table is not None:
                raise
            undone.append(Undone(directory.path, "not possible", directory.version, str(error)))
    return tuple(undone)


def _undone(root: Path, directory: _Directory, epoch: int, *, at: int, dry_run: bool) -> Iterator[Undone]:
    table = root / directory.path
    if directory.named is not None and directory.named.is_replaced(root):
        raise MissingPartError(
            f"{table}: its log is not the one that the warehouse wrote: the table was replaced by another one or an older copy, "
            f"or is not there, so it is unknown which changes to take back. {RESTORE_TABLE}"
        )
    commits = list(commits_after(table, directory.version))
    top = directory.version + len(commits)
    leftovers = left_above(table, top)
    if leftovers:
        if not dry_run:
            drop_above(table, top)
        yield Undone(directory.path, "left over", top, ", ".join(leftovers[:_SHOWN]))
    to_version = _before_outsiders(commits, directory, epoch)
    beyond = [] if store_of(root).late_commits else commits_beyond(table, top)
    if to_version == top and not beyond:
        return
    if beyond:
        yield Undone(directory.path, "removed", to_version, f"commit {beyond[-1]}, above a gap in the log,")
        if not dry_run:
            remove_commits(table, to_version)
        return
    if directory.steps and not dry_run and not store_of(root).late_commits:
        drop_above(table, directory.version)  # as :mod:`warehouse.storage.own_commits` does
    _, base = (
        replayed(table, (directory.version, to_version))
        if to_version > directory.version
        else (None, replay(table, to_version))
    )
    change = judged(base, raw_commits(table, to_version))
    harmless = change.kind == "none" or (change.kind == "layout" and _proven(root, directory, change))
    if harmless and not directory.steps:
        yield Undone(
            directory.path, "kept", top, change.message + ";" if change.kind == "none" else f"{change.message}, rightly;"
        )
        return
    _require_files(table, base.files, change)
    if to_version < 0 or change.kind == "unreadable" or not _same_protocol(table, to_version, change.last):
        yield Undone(directory.path, "removed", to_version, change.message + ";")
        if not dry_run:
            remove_commits(table, to_version)
        return
    yield Undone(directory.path, "followed", to_version, change.message + ";")
    if not dry_run:
        newest = entry_at(table, change.last)
        reverse(table, to_version, newest, metadata={"epoch": epoch}, at=at, data_change=not harmless)


def _proven(root: Path, directory: _Directory, change: Change) -> bool:
    """Whether the rows are proven to be the same; False for a table that the plan creates, since its files have no record."""
    return directory.named is not None and prove(root, directory.named, change)[0]


def _same_protocol(table: Path, to_version: int, last: int) -> bool:
    base, current = replayed(table, (to_version, last))
    return base.protocol == current.protocol


def _before_outsiders(commits: list[Commit], directory: _Directory, epoch: int) -> int:
    """Return the version before the first commit that is not a step of the plan and is not undone already."""
    for commit in counting(commits):
        if commit.metadata.get("epoch") != epoch or commit.metadata.get("step") not in directory.steps:
            return commit.version - 1
    return commits[-1].version if commits else directory.version


def _require_files(table: Path, files: Mapping[str, Mapping[str, object]], change: Change) -> None:
    lost = absent_files(table, files)
    if lost:
        shown = ", ".join(lost[:_SHOWN]) + (", ..." if len(lost) > _SHOWN else "")
        raise MissingPartError(
            f"{table}: {len(lost)} file(s) that {change.message.split(' (')[0]} left behind are not there as they were, a VACUUM "
            f"from outside must have deleted them: {shown}. Nothing was written. Restore them from a copy, then run it again"
        )
