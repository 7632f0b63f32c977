"""What a plan's tables say has been done: the commits above the last epoch, checked and summed up.

Invariant: the log has the entry that the last epoch names, recognised by its sum, and every commit above it that counts names
the plan's epoch and a step of the plan for that table, in order. Anything else is a change from outside, which is taken back
if it changed no row (:mod:`warehouse.steps.foreign_within`).

Nothing sums up commits above the last epoch: checkpoints of outsiders may be those of commits that somebody removed since.

A commit whose files did not survive a power loss is given up, with those after it: a commit that follows takes them back
(:mod:`warehouse.storage.reversal`), and none of them counts. Only what cannot be read is removed.

In an object store a process that was held up can go on when another one has taken its work over. What it commits then is of
the same plan, and counts; or of one that is finished (a *straggler*): no epoch names it, so it is given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.epochs.records import Partition, SideTable, WaitingSlot
from warehouse.errors import ForeignChangeError, LockHeldError, MissingPartError
from warehouse.planning.steps import CreateTable, RestoreTable
from warehouse.steps.foreign_within import TakenBack, take_back, taken_back
from warehouse.steps.pinned import base_entry
from warehouse.storage.checkpoints import drop_torn_checkpoints
from warehouse.storage.deltalog import commits_after, undo_commits, void_commit, whole
from warehouse.storage.leftover import drop_above
from warehouse.storage.replay import replay
from warehouse.storage.reversal import counting, reverse
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.steps import Plan
    from warehouse.storage.deltalog import Commit
    from warehouse.storage.entries import LogEntry

__all__ = [
    "TableProgress",
    "after_restoring",
    "moved_partitions",
    "moved_side",
    "progress",
    "removed_files",
    "table_progress",
]

_LOOKS = 5
"""How often commits of outsiders are looked at, while they go on."""


@dataclass(frozen=True)
class TableProgress:
    """The commits of a plan in one table (directory relative to the root), by step number.

    ``head`` is the table's newest entry, which may be one that took others back; ``given_up`` are the files that only these
    have added, relative to the table. ``foreign`` is what became of outsiders' commits among them, ``reversals`` are the commits
    that took others back.
    """

    path: str
    base_version: int
    commits: Mapping[int, Commit]
    head: LogEntry
    given_up: frozenset[str] = frozenset()
    foreign: tuple[TakenBack, ...] = ()
    reversals: tuple[Commit, ...] = ()

    @property
    def version(self) -> int:
        """The table's version once these commits count."""
        return self.head.version


def progress(root: Path, plan: Plan, last: Epoch | None, made: Collection[int] = ()) -> dict[str, TableProgress]:
    """Return what is done in each table of the plan, which starts from the epoch ``last``.

    ``made`` are the steps that this process committed: it hashed their files when it wrote them, and does not read them again.

    A commit whose files did not survive a power loss is taken back with those after it: no epoch names them. So is what an
    outsider committed, if it changed no row.

    Raises
    ------
    ForeignChangeError
        When a table has another commit that is not of this plan.
    MissingPartError
        When a table is not there at the version that the plan starts from.

    """
    return {path: table_progress(root, plan, last, path, made) for path in _steps_by_table(plan)}


def table_progress(
    root: Path, plan: Plan, last: Epoch | None, path: str, made: Collection[int] = ()
) -> TableProgress:
    """Return what is done in one table of the plan (directory relative to the root), as :func:`progress` does."""
    numbers = _steps_by_table(plan)[path]
    # The first step starts from the last epoch, those after one that restores the table from what it leaves.
    created = any(isinstance(plan.steps[number], CreateTable) for number in numbers)
    version = -1 if created else min(_base(plan, number) for number in numbers)
    base = base_entry(root, path, version, last)
    drop_torn_checkpoints(root / path, version)
    return _progress(root / path, path, plan, numbers, base, made)


def _progress(
    table: Path, path: str, plan: Plan, numbers: Sequence[int], base: LogEntry, made: Collection[int]
) -> TableProgress:
    commits = _without_harmless(table, path, plan, numbers, base)
    done: dict[int, Commit] = {}
    counted = counting(commits)
    head = commits[-1].entry if commits else base
    for place, commit in enumerate(counted):
        late = store_of(table).late_commits and _of_another(commit, plan)
        if late and commit.version == 0:
            void_commit(table, commit)
            return TableProgress(path, base.version, {}, next(commits_after(table, -1)).entry)
        step = -1 if late else _own_step(commit, plan, numbers, done, path)
        if late or not whole(table, commit, hashed=step in made):
            if store_of(table).late_commits and not late:
                missing = f"{table}: files of version {commit.version} are not there"
                raise MissingPartError(f"{missing}; restore them from a copy")
            for other in counted[place + 1 :]:
                _require_own(other, plan, path)
            head = reverse(table, commit.version - 1, head, metadata={"epoch": plan.epoch}, at=plan.clock)
            counted = counted[:place]
            break
        done[step] = commit
    kept = {commit.version for commit in counted}
    given_up = {file.path for commit in commits if commit.version not in kept for file in commit.added}
    if given_up:  # a file that came back under its name stays
        given_up -= replay(table, head.version).files.keys()
    foreign = tuple(taken_back(table, path, commits, kept))
    reversals = tuple(commit for commit in commits if commit.reverses is not None)
    return TableProgress(path, base.version, done, head, frozenset(given_up), foreign, reversals)


def _without_harmless(table: Path, path: str, plan: Plan, numbers: Sequence[int], base: LogEntry) -> list[Commit]:
    """Return the commits above the base, after what outsiders did was taken back if it changed no row.

    An object store has a straggler's commits too, which are judged one by one.
    """
    commits = _readable(table, path, plan, base)
    if store_of(table).late_commits:
        return commits
    for _ in range(_LOOKS):
        drop_above(table, base.version)
        others = (commit for commit in counting(commits) if not _is_step(commit, plan, numbers))
        first = next(others, None)
        if first is None or not take_back(table, first.version, epoch=plan.epoch, at=plan.clock):
            return commits
        commits = _readable(table, path, plan, base)
    return commits


def _readable(table: Path, path: str, plan: Plan, base: LogEntry) -> list[Commit]:
    """Return the commits above the base; from one on that was cut short they are removed, if nobody else's is among them."""
    commits = list(commits_after(table, base.version))
    torn = next((place for place, commit in enumerate(commits) if not commit.readable), None)
    if torn is None:
        return commits
    if store_of(table).late_commits:
        missing = f"{table}: version {commits[torn].version} cannot be read"
        raise MissingPartError(f"{missing}; restore it from a copy")
    for commit in commits[torn:]:
        if commit.readable:
            _require_own(commit, plan, path)
    undo_commits(table, commits[torn].version, pinned=base.version)
    return commits[:torn]


def _require_own(commit: Commit, plan: Plan, path: str) -> None:
    """Never take back, or remove, what somebody else has built on a commit that is given up."""
    if not isinstance(commit.metadata.get("epoch"), int) or not commit.ours:
        raise ForeignChangeError(path, commit.version, f"({commit.operation or 'unknown'}) is not of epoch {plan.epoch}")


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
            table.head,
            table.given_up,
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


def _is_step(commit: Commit, plan: Plan, numbers: Sequence[int]) -> bool:
    return commit.metadata.get("epoch") == plan.epoch and commit.metadata.get("step") in numbers


def _own_step(commit: Commit, plan: Plan, numbers: Sequence[int], done: Mapping[int, Commit], path: str) -> int:
    step = commit.metadata.get("step")
    if not _is_step(commit, plan, numbers) or not isinstance(step, int):
        raise ForeignChangeError(path, commit.version, f"({commit.operation or 'unknown'}) is not of epoch {plan.epoch}")
    if done and step <= max(done):
        raise ForeignChangeError(path, commit.version, f"repeats step {step} of epoch {plan.epoch}")
    return step


def removed_files(table: TableProgress) -> tuple[str, ...]:
    """Return the files that left a table by a plan's commits, and those of commits that were given up."""
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
