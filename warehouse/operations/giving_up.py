"""Gives up the plan of an update if outsiders changed a table that it writes, so that only this table is stopped.

A plan is executed as a whole: a table that cannot be moved would stop all others until the change is undone. So the plan is
undone instead. Each table that no outsider changed gets a commit that restores its former content, tables that the plan created
are removed, and then the plan itself. The remaining commits changed no row, and belong to the next epoch; the update makes
another plan, in which the changed tables are stopped. The former plan's commits in these tables stay: the command that undoes the
outsiders' commits undoes them, too.

A crash in between leaves the plan. The process that finishes it gives up the rest, or executes the plan if the change was undone
by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_path, plan_path
from warehouse.errors import ForeignChangeError
from warehouse.steps.foreign import named_directories
from warehouse.steps.progress import expected_commits
from warehouse.storage.deltalog import commits_after
from warehouse.storage.leftover import remove_commits
from warehouse.storage.own_commits import own_commits
from warehouse.storage.reversal import counting, reverse
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.plan_record import Plan
    from warehouse.storage.own_commits import TableProgress

__all__ = ["give_up"]


def give_up(root: Path, plan: Plan, last: Epoch | None, *, at: int) -> bool:
    """Undo the commits of a plan, and the plan, if outsiders changed tables that the epoch before it names.

    Parameters
    ----------
    root
        The warehouse's directory; the caller holds the writer lock.
    plan
        The recorded plan, which could not be executed.
    last
        The newest epoch; None before the first.
    at
        The instant of the commits in microseconds.

    Returns
    -------
    bool
        Whether the plan was given up. Only plans of updates are given up, before their epoch is written, and not in an object
        store, where another process may work on them. A plan is not given up if it creates a changed table, since no epoch names
        that table's content.

    Raises
    ------
    ForeignChangeError
        When outsiders commit meanwhile; the plan stays.

    """
    if last is None or store_of(root).late_commits or epoch_path(root, plan.epoch).exists():
        return False
    if plan.cause != "update" or plan.base is not None or plan.erasure is not None:
        return False
    versions = {directory.path: directory.version for directory in named_directories(last)}
    moved: dict[str, TableProgress] = {}
    changed: list[str] = []
    for expected in expected_commits(plan, last):
        try:
            moved[expected.path] = own_commits(root / expected.path, expected)
        except ForeignChangeError:
            changed.append(expected.path)
    if not changed or not all(path in versions and _outsiders(root, plan, path, versions[path]) for path in changed):
        return False
    for path, table in moved.items():
        if path not in versions:
            if (root / path / "_delta_log").is_dir():  # the log goes first, so that a crash leaves no half table
                remove_commits(root / path, -1)
            store_of(root / path).remove_tree(root / path, ignore_errors=True)
        elif table.commits:
            reverse(root / path, table.base_version, table.head, metadata={"epoch": plan.epoch}, at=at)
    plan_path(root, plan.epoch).unlink()
    store_of(plan_path(root, plan.epoch).parent).sync_directory(plan_path(root, plan.epoch).parent)
    return True


def _outsiders(root: Path, plan: Plan, path: str, version: int) -> bool:
    """Whether outsiders committed above a version; a plan cannot leave out a table whose base was changed itself."""
    steps = {number for number, step in enumerate(plan.steps) if step.path == path}
    for commit in counting(commits_after(root / path, version)):
        if commit.metadata.get("epoch") != plan.epoch or commit.metadata.get("step") not in steps:
            return True
    return False
