"""Taking back what outsiders did to tables, and no more: by a following commit, or where that cannot be by removing theirs.

A commit that follows brings back the content of the version before the first foreign one: it adds the files that outsiders
removed and removes those that they added. Entries of the log are removed only where a commit cannot take them back (one is torn,
the log has a gap, or the protocol was changed), with their checkpoints, sums and sidecars, and never at or below a version that
an epoch names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.errors import MissingPartError, UnknownNameError
from warehouse.objects.path import ObjectPath
from warehouse.steps.foreign import named_directories, prove
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import entry_at
from warehouse.storage.foreign import judged, raw_commits
from warehouse.storage.leftover import commits_beyond, drop_above, left_above, remove_commits
from warehouse.storage.replay import replay
from warehouse.storage.reversal import counting, reverse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.steps import Plan
    from warehouse.steps.foreign import NamedDirectory
    from warehouse.storage.deltalog import Commit
    from warehouse.storage.foreign import Change

__all__ = ["Undone", "undo"]

_SHOWN = 5


@dataclass(frozen=True)
class Undone:
    """What is, or would be, done about a table's directory; ``to_version`` is the version whose content it then has."""

    path: str
    how: Literal["kept", "followed", "removed", "left over"]
    to_version: int
    detail: str

    @property
    def told(self) -> str:
        """The same in words."""
        words = {
            "kept": "stays, since it changes no row; the update adopts it",
            "followed": f"is taken back by a following commit, to the content of version {self.to_version}",
            "removed": f"is removed from the log, down to version {self.to_version}, with its checkpoints and sums",
            "left over": "sums up commits that are not there, and is removed from the log",
        }
        return f"{self.path}: {self.detail} {words[self.how]}"


def undo(root: Path, epoch: Epoch, plan: Plan | None, table: str | None, *, at: int, dry_run: bool) -> tuple[Undone, ...]:
    """Take back what outsiders committed above an epoch, and return what was done, or would be.

    Parameters
    ----------
    root
        The warehouse's directory; the caller holds the writer lock, unless it is a dry run.
    epoch
        The newest epoch.
    plan
        A plan that is above it, unfinished.
    table
        A table's name, of which all directories are looked at, or None for all.
    at
        The instant in microseconds.
    dry_run
        Only tell.

    Raises
    ------
    UnknownNameError
        When there is no such table.
    MissingPartError
        When files that would come back are not there any more: nothing was done to that table then.

    """
    names = sorted({name for state in epoch.tables for name in (state.name, state.owner)})
    if table is not None and table not in names:
        raise UnknownNameError("table", table, names)
    done: list[Undone] = []
    for named in named_directories(epoch):
        if table in (None, named.state.name, named.state.owner):
            done += _undone(root, named, epoch, plan, at=at, dry_run=dry_run)
    return tuple(done)


def _undone(root: Path, named: NamedDirectory, epoch: Epoch, plan: Plan | None, *, at: int, dry_run: bool) -> Iterator[Undone]:
    table = root / named.path
    commits = list(commits_after(table, named.version))
    top = named.version + len(commits)
    left = left_above(table, top)
    if left:
        if not dry_run:
            drop_above(table, top)
        yield Undone(named.path, "left over", top, ", ".join(left[:_SHOWN]))
    to_version = _before_outsiders(commits, named, plan)
    beyond = [] if isinstance(root, ObjectPath) else commits_beyond(table, top)
    if to_version == top and not beyond:
        return
    if beyond:
        yield Undone(named.path, "removed", to_version, f"commit {beyond[-1]}, above a gap in the log,")
        if not dry_run:
            remove_commits(table, to_version)
        return
    base = replay(table, to_version)
    change = judged(base, raw_commits(table, to_version))
    if change.kind == "none" or (change.kind == "layout" and prove(root, named, change)[0]):
        yield Undone(named.path, "kept", top, change.told + ";" if change.kind == "none" else f"{change.told}, rightly;")
        return
    _require_files(root, named, base.files, change)
    epoch_of = epoch.number if plan is None else plan.epoch
    if change.kind == "unreadable" or base.protocol != replay(table, top).protocol:
        yield Undone(named.path, "removed", to_version, change.told + ";")
        if not dry_run:
            remove_commits(table, to_version)
        return
    yield Undone(named.path, "followed", to_version, change.told + ";")
    if not dry_run:
        reverse(table, to_version, entry_at(table, top), metadata={"epoch": epoch_of}, at=at)


def _before_outsiders(commits: list[Commit], named: NamedDirectory, plan: Plan | None) -> int:
    """Return the version before the first commit that is no step of the plan, and was not taken back already."""
    steps = {number for number, step in enumerate(plan.steps) if step.path == named.path} if plan else set()
    for commit in counting(commits):
        own = plan is not None and commit.metadata.get("epoch") == plan.epoch and commit.metadata.get("step") in steps
        if not own:
            return commit.version - 1
    return commits[-1].version if commits else named.version


def _require_files(root: Path, named: NamedDirectory, files: Mapping[str, Mapping[str, object]], change: Change) -> None:
    table = root / named.path
    gone = [name for name, add in files.items() if not (table / name).is_file() or (table / name).stat().st_size != add["size"]]
    if gone:
        shown = ", ".join(gone[:_SHOWN]) + (", ..." if len(gone) > _SHOWN else "")
        raise MissingPartError(
            f"{table}: {len(gone)} file(s) that {change.told.split(' (')[0]} left behind are not there as they were, a VACUUM "
            f"from outside must have deleted them: {shown}. Nothing was written. Restore them from a copy, then run it again"
        )
