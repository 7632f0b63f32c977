"""Finds the steps of a plan that are done, from the commits above the last epoch in its tables' logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.records import Partition, SideTable, WaitingSlot
from warehouse.planning.steps import CreateTable, RestoreTable
from warehouse.storage.entries import LogEntry
from warehouse.storage.own_commits import Expected, TableProgress, own_commits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.plan_record import Plan
    from warehouse.storage.deltalog import Commit

__all__ = ["after_restoring", "expected_commits", "moved_partitions", "moved_side", "progress", "removed_files"]


def progress(root: Path, expected: Iterable[Expected]) -> dict[str, TableProgress]:
    """Return the progress of each table of a plan, by its directory relative to the root.

    If files of a commit did not survive a power loss, it is reverted together with the commits after it: no epoch names them.
    Outsiders' commits that changed no row are reverted, too.

    Raises
    ------
    ForeignChangeError
        When a table has another commit that does not belong to this plan.
    MissingPartError
        When a table does not exist at the version from which the plan starts.

    """
    return {table.path: own_commits(root / table.path, table) for table in expected}


def expected_commits(plan: Plan, last: Epoch | None) -> list[Expected]:
    """Return the commits that a plan makes in each of its tables, and the entries on which the first commits are made.

    Parameters
    ----------
    plan
        The plan. Its first step in a table starts from the epoch ``last``; steps after a restoring step start from the restored
        version.
    last
        The newest epoch; None before the first.

    """
    pinned = {entry.path: entry for entry in last.entries} if last else {}
    numbers: dict[str, list[int]] = {}
    for number, step in enumerate(plan.steps):
        numbers.setdefault(step.path, []).append(number)
    expected = []
    for path, steps in numbers.items():
        version = min(_base(plan, number) for number in steps)
        entry = pinned.get(path)
        sum_ = entry.sha256 if entry is not None and entry.version == version else None
        expected.append(Expected(path, LogEntry(version, sum_), plan.epoch, steps, plan.clock))
    return expected


def after_restoring(plan: Plan, done: Mapping[str, TableProgress]) -> dict[str, TableProgress]:
    """Return the progress above the plan's base, without the commits that restored tables to it."""
    restoring = {number for number, step in enumerate(plan.steps) if isinstance(step, RestoreTable)}
    return {
        path: TableProgress(
            path,
            max([table.base_version, *(table.commits[number].version for number in restoring & table.commits.keys())]),
            {number: commit for number, commit in table.commits.items() if number not in restoring},
            table.head,
            table.given_up,
        )
        for path, table in done.items()
    }


def _base(plan: Plan, number: int) -> int:
    step = plan.steps[number]
    return -1 if isinstance(step, CreateTable) else step.base_version


def removed_files(table: TableProgress) -> tuple[str, ...]:
    """Return the files that a plan's commits removed from a table, and the files of commits that were given up."""
    return tuple(sorted(table.given_up.union(*(commit.removed for commit in table.commits.values()))))


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
    """Return a deferred or rejected table after the plan's commits; None while it does not exist."""
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
        rows = int(commit.metadata.get("remaining", rows))
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
        found=before.found if before else (),
    )
