"""What a plan's tables say has been done: the commits above the last epoch, checked and summed up.

Invariant: every commit above a table's version at the last epoch names the plan's epoch and a step of the plan for that
table, in order. Anything else is a change from outside.

In an object store a process that was held up can go on when another one has taken its work over. What it commits then is of
the same plan, and counts; or of one that is finished (a *straggler*): no epoch names it, so it is made void. Void commits
change nothing and are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.errors import ForeignChangeError, LockHeldError, MissingPartError
from warehouse.objects.path import ObjectPath
from warehouse.storage.deltalog import (
    commit_path,
    commits_after,
    drop_torn_checkpoints,
    undo_commits,
    void_commit,
    whole,
)
from warehouse.updates.records import Partition, SideTable, WaitingSlot
from warehouse.updates.steps import CreateTable, RestoreTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from warehouse.storage.deltalog import Commit
    from warehouse.updates.steps import Plan

__all__ = ["TableProgress", "after_restoring", "moved_partitions", "moved_side", "progress"]


@dataclass(frozen=True)
class TableProgress:
    """The commits of a plan in one table (directory relative to the root), by step number."""

    path: str
    base_version: int
    commits: Mapping[int, Commit]

    @property
    def version(self) -> int:
        """The table's version once these commits count."""
        return max([self.base_version, *(commit.version for commit in self.commits.values())])


def progress(root: Path, plan: Plan) -> dict[str, TableProgress]:
    """Return what is done in each table of the plan.

    A commit whose files did not survive a power loss is undone with those after it: no epoch names them.

    Raises
    ------
    ForeignChangeError
        When a table has a commit that is not of this plan.
    MissingPartError
        When a table is not there at the version that the plan starts from.

    """
    created = {step.path for step in plan.steps if isinstance(step, CreateTable)}
    found: dict[str, TableProgress] = {}
    for path, numbers in _steps_by_table(plan).items():
        # The first step starts from the last epoch, those after one that restores the table from what it leaves.
        base = -1 if path in created else min(_base(plan, number) for number in numbers)
        if base >= 0 and not commit_path(root / path, base).exists():
            raise MissingPartError(
                f"{root / path}: version {base} of the table is not there, though the last epoch names it; nothing was "
                f"written. Restore the directory from a copy, then update again"
            )
        drop_torn_checkpoints(root / path, base)
        done: dict[int, Commit] = {}
        for commit in commits_after(root / path, base):
            if commit.void:
                continue
            if isinstance(root, ObjectPath) and _of_another(commit, plan):
                void_commit(root / path, commit)
                continue
            step = _own_step(commit, plan, numbers, done, path) if commit.readable else -1
            if not whole(root / path, commit):
                if isinstance(root, ObjectPath):
                    missing = f"{root / path}: files of version {commit.version} are not there"
                    raise MissingPartError(f"{missing}; restore them from a copy")
                undo_commits(root / path, commit.version)
                break
            done[step] = commit
        found[path] = TableProgress(path, base, done)
    return found


def _of_another(commit: Commit, plan: Plan) -> bool:
    """Whether a commit is a straggler.

    Raises
    ------
    LockHeldError
        When it is of a later plan: this process is the one that was held up.

    """
    epoch = commit.metadata.get("epoch")
    if not isinstance(epoch, int) or epoch == plan.epoch:
        return False
    if epoch > plan.epoch:
        raise LockHeldError(f"another process, which has begun epoch {epoch}")
    return True


def after_restoring(plan: Plan, done: Mapping[str, TableProgress]) -> dict[str, TableProgress]:
    """Return what is done above the plan's base: the commits that restored tables lead to it, and do not count."""
    restoring = {number for number, step in enumerate(plan.steps) if isinstance(step, RestoreTable)}
    return {
        path: TableProgress(
            path,
            max([table.base_version, *(table.commits[number].version for number in restoring & table.commits.keys())]),
            {number: commit for number, commit in table.commits.items() if number not in restoring},
        )
        for path, table in done.items()
    }


def _steps_by_table(plan: Plan) -> dict[str, list[int]]:
    tables: dict[str, list[int]] = {}
    for number, step in enumerate(plan.steps):
        tables.setdefault(step.path, []).append(number)
    return tables


def _base(plan: Plan, number: int) -> int:
    step = plan.steps[number]
    return -1 if isinstance(step, CreateTable) else step.base_version


def _own_step(commit: Commit, plan: Plan, numbers: Sequence[int], done: Mapping[int, Commit], path: str) -> int:
    step = commit.metadata.get("step")
    if commit.metadata.get("epoch") != plan.epoch or not isinstance(step, int) or step not in numbers:
        raise ForeignChangeError(path, commit.version, f"({commit.operation or 'unknown'}) is not of epoch {plan.epoch}")
    if done and step <= max(done):
        raise ForeignChangeError(path, commit.version, f"repeats step {step} of epoch {plan.epoch}")
    return step


def moved_partitions(before: Iterable[Partition], commits: Iterable[Commit]) -> tuple[Partition, ...]:
    """Return a table's partitions after commits; files that one commit adds to a partition are one run."""
    parts = {(part.sub_index, part.exp_block): part for part in before}
    for commit in commits:
        for values in commit.removed_partitions:
            named = dict(values)
            parts.pop((int(named["sub_index"] or 0), int(named["exp_block"] or 0)), None)
        arrived: dict[tuple[int, int], Partition] = {}
        for file in commit.added:
            cell = (int(file.partition["sub_index"] or 0), int(file.partition["exp_block"] or 0))
            sofar = arrived.get(cell, Partition(*cell, 1, 0, 0, 0, file.max_exp_slot or 0, file.min_exp_slot))
            arrived[cell] = Partition(
                *cell,
                runs=1,
                files=sofar.files + 1,
                rows=sofar.rows + file.rows,
                bytes=sofar.bytes + file.size,
                max_exp_slot=max(sofar.max_exp_slot, file.max_exp_slot or 0),
                min_exp_slot=_least(sofar.min_exp_slot, file.min_exp_slot),
            )
        for cell, run in arrived.items():
            old = parts.get(cell)
            parts[cell] = run if old is None else _joined(old, run)
    return tuple(parts[cell] for cell in sorted(parts))


def _joined(old: Partition, run: Partition) -> Partition:
    return Partition(
        old.sub_index,
        old.exp_block,
        runs=old.runs + run.runs,
        files=old.files + run.files,
        rows=old.rows + run.rows,
        bytes=old.bytes + run.bytes,
        max_exp_slot=max(old.max_exp_slot, run.max_exp_slot),
        min_exp_slot=_least(old.min_exp_slot, run.min_exp_slot),
    )


def _least(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)


def moved_side(before: SideTable | None, done: TableProgress, table_id: str) -> SideTable | None:
    """Return a deferred or rejected table after the plan's commits; none while it does not exist."""
    if before is None and not done.commits:
        return None
    waiting = {entry.slot: entry.rows for entry in before.waiting} if before else {}
    rows = before.rows if before else 0
    slotted = False
    for number in sorted(done.commits):
        commit = done.commits[number]
        for values in commit.removed_partitions:
            for name, value in values:
                if name == "_slot":
                    waiting.pop(int(value or 0), None)
        for file in commit.added:
            rows += file.rows
            if "_slot" in file.partition:
                slotted = True
                slot = int(file.partition["_slot"] or 0)
                waiting[slot] = waiting.get(slot, 0) + file.rows
    if slotted or waiting or (before and before.waiting):
        rows = sum(waiting.values())
    return SideTable(
        path=done.path,
        table_id=table_id,
        version=done.version,
        rows=rows,
        waiting=tuple(WaitingSlot(slot, waiting[slot]) for slot in sorted(waiting)),
    )
