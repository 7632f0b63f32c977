"""Finds the commits of a plan's steps in a table's log, and reverts commits of outsiders that changed no row.

Invariant: the log has the entry that the last epoch names, identified by its sum. Every commit above it that counts names the
epoch and one of its steps for that table, in order. Any other commit is a change by outsiders.

Commits of outsiders between commits of steps are never adopted, since each step follows the one before it. A further commit
reverts them if they change nothing, or if they claim that the same rows are in other files and all files that they removed still
exist. Other commits stop the plan, until ``repair --undo-foreign`` has reverted them in the same way.

No checkpoint above the last epoch is used: a checkpoint of outsiders may contain commits that were removed since.

If files of a commit did not survive a power loss, a further commit reverts it with all later ones
(:mod:`warehouse.storage.reversal`), and none of them counts. Only commits that cannot be read are removed.

In an object store a delayed process can continue after another one has taken over its work. If its commits belong to the same
plan, they count. If they belong to a finished plan (a *straggler*), no epoch names them, so they are reverted.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.errors import ForeignChangeError, LockHeldError, MissingPartError
from warehouse.storage.checkpoints import drop_torn_checkpoints
from warehouse.storage.deltalog import commits_after, undo_commits, void_commit, whole
from warehouse.storage.entries import NO_ENTRY, LogEntry, entry_at, raw_commits, require_entry
from warehouse.storage.foreign import absent_files, judged
from warehouse.storage.leftover import drop_above
from warehouse.storage.replay import replay
from warehouse.storage.reversal import counting, reverse
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.storage.deltalog import Commit

__all__ = ["Expected", "TableProgress", "TakenBack", "own_commits"]

_LOOKS = 5
"""How often the log is read again while outsiders keep committing."""


@dataclass(frozen=True)
class Expected:
    """The allowed commits of a table's log above an entry: the commits of an epoch's steps.

    Parameters
    ----------
    path
        The table's directory, relative to the root.
    base
        The entry that the first step was made on; without a sum where no epoch recorded it.
    epoch, steps
        The epoch, and the numbers of its steps for this table.
    at
        The instant of a commit that takes others back, in microseconds.
    hashed
        The steps whose files this process wrote and hashed: they are not read again.

    """

    path: str
    base: LogEntry
    epoch: int
    steps: Sequence[int]
    at: int
    hashed: Collection[int] = ()

    def has(self, commit: Commit) -> bool:
        """Whether a commit says that it is one of the steps."""
        return commit.metadata.get("epoch") == self.epoch and commit.metadata.get("step") in self.steps

    def foreign(self, commit: Commit) -> ForeignChangeError:
        """Return the error that says that a commit is not one of the epoch."""
        return ForeignChangeError(
            self.path, commit.version, f"({commit.operation or 'unknown'}) is not of epoch {self.epoch}"
        )


@dataclass(frozen=True)
class TakenBack:
    """The commits ``first`` to ``last`` of outsiders, and the commit that reverted them; ``harmless`` commits changed nothing."""

    first: int
    last: int
    operations: tuple[str, ...]
    message: str
    harmless: bool


@dataclass(frozen=True)
class TableProgress:
    """The commits of a plan in one table (directory relative to the root), by step number.

    ``head`` is the table's newest entry, which may be a reversal; ``given_up`` are the files that only commits which do not count
    added, relative to the table. ``foreign`` is the outcome of outsiders' commits between them, ``reversals`` are the commits
    that reverted others.
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


def own_commits(table: Path, expected: Expected) -> TableProgress:
    """Return the expected commits that the log of a table (a directory) has.

    Raises
    ------
    ForeignChangeError
        When the base is not the entry that the last epoch names, or a commit above it is not one of the steps.
    MissingPartError
        When the table is not there at the version that the plan starts from.
    LockHeldError
        When another process has begun a later plan.

    """
    base = _base_entry(table, expected)
    drop_torn_checkpoints(table, base.version)
    commits = _without_harmless(table, expected, base)
    done: dict[int, Commit] = {}
    counted = counting(commits)
    head = commits[-1].entry if commits else base
    for number, commit in enumerate(counted):
        late = store_of(table).late_commits and _of_another(commit, expected)
        if late and commit.version == 0:
            void_commit(table, commit)
            return TableProgress(expected.path, base.version, {}, next(commits_after(table, -1)).entry)
        step = -1 if late else _own_step(commit, expected, done)
        if late or not whole(table, commit, hashed=step in expected.hashed):
            if store_of(table).late_commits and not late:
                missing = f"{table}: files of version {commit.version} are not there"
                raise MissingPartError(f"{missing}; restore them from a copy")
            for other in counted[number + 1 :]:
                _require_own(other, expected)
            head = reverse(table, commit.version - 1, head, metadata={"epoch": expected.epoch}, at=expected.at)
            counted = counted[:number]
            break
        done[step] = commit
    counted_versions = {commit.version for commit in counted}
    given_up = {file.path for commit in commits if commit.version not in counted_versions for file in commit.added}
    if given_up:  # a file that came back under its name stays
        given_up -= replay(table, head.version).files.keys()
    foreign = tuple(_taken_back(table, commits, counted_versions))
    reversals = tuple(commit for commit in commits if commit.reverses is not None)
    return TableProgress(expected.path, base.version, done, head, frozenset(given_up), foreign, reversals)


def _base_entry(table: Path, expected: Expected) -> LogEntry:
    """Return the entry that the first step was made on, as the log has it."""
    base = expected.base
    if base.version < 0:
        return NO_ENTRY
    try:
        entry = require_entry(table, base)
    except MissingPartError:
        raise MissingPartError(
            f"{table}: version {base.version} of the table is not there, though the last epoch names it; nothing was "
            f"written. Restore the directory from a copy, then update again"
        ) from None
    if base.sha256 is None:
        commit = next(commits_after(table, base.version - 1))
        if not commit.ours:
            detail = f"({commit.operation or 'unknown'}) is not of the last epoch"
            raise ForeignChangeError(expected.path, base.version, detail)
    return entry


def _without_harmless(table: Path, expected: Expected, base: LogEntry) -> list[Commit]:
    """Return the commits above the base, after outsiders' commits that changed no row were reverted.

    An object store has a straggler's commits too, which are judged one by one.
    """
    commits = _readable(table, expected, base)
    if store_of(table).late_commits:
        return commits
    for _ in range(_LOOKS):
        drop_above(table, base.version)
        first = next((commit for commit in counting(commits) if not expected.has(commit)), None)
        if first is None or not _take_back(table, first.version, expected):
            return commits
        commits = _readable(table, expected, base)
    return commits


def _readable(table: Path, expected: Expected, base: LogEntry) -> list[Commit]:
    """Return the commits above the base. Remove a truncated one and all after it, unless one is an outsider's."""
    commits = list(commits_after(table, base.version))
    torn = next((number for number, commit in enumerate(commits) if not commit.readable), None)
    if torn is None:
        return commits
    if store_of(table).late_commits:
        missing = f"{table}: version {commits[torn].version} cannot be read"
        raise MissingPartError(f"{missing}; restore it from a copy")
    for commit in commits[torn:]:
        if commit.readable:
            _require_own(commit, expected)
    undo_commits(table, commits[torn].version, pinned=base.version)
    return commits[:torn]


def _require_own(commit: Commit, expected: Expected) -> None:
    """Refuse to take back, or to remove, an outsider's commit on top of a commit that is given up."""
    if not isinstance(commit.metadata.get("epoch"), int) or not commit.ours:
        raise expected.foreign(commit)


def _of_another(commit: Commit, expected: Expected) -> bool:
    """Whether a commit is a straggler.

    Raises
    ------
    LockHeldError
        When it is of a later plan: then this process was delayed.

    """
    epoch = commit.metadata.get("epoch")
    if not isinstance(epoch, int) or epoch == expected.epoch:
        return False
    if epoch > expected.epoch:
        raise LockHeldError(f"another process, which has begun epoch {epoch}")
    return True


def _own_step(commit: Commit, expected: Expected, done: Mapping[int, Commit]) -> int:
    step = commit.metadata.get("step")
    if not expected.has(commit) or not isinstance(step, int):
        raise expected.foreign(commit)
    if done and step <= max(done):
        raise ForeignChangeError(expected.path, commit.version, f"repeats step {step} of epoch {expected.epoch}")
    return step


def _take_back(table: Path, version: int, expected: Expected) -> bool:
    """Take the commits from an outsider's on back if they change no row, and return whether there is something new to read.

    No checkpoint of the log is above the version.
    """
    change = judged(replay(table, version - 1), raw_commits(table, version - 1))
    if change.kind not in ("none", "layout") or absent_files(table, change.removed):
        return False
    with suppress(ForeignChangeError):  # they keep committing: read the log again
        newest = entry_at(table, change.last)
        reverse(table, version - 1, newest, metadata={"epoch": expected.epoch}, at=expected.at, data_change=False)
    return True


def _taken_back(table: Path, commits: Sequence[Commit], counted: Collection[int]) -> Iterator[TakenBack]:
    """Yield the reverted commits of outsiders; ``counted`` are the versions that count."""
    open_: list[Commit] = []
    for commit in commits:
        if commit.reverses is None:
            if commit.version not in counted and not commit.ours:
                open_.append(commit)
            continue
        reverted = [outsider for outsider in open_ if outsider.version > commit.reverses]
        open_ = [outsider for outsider in open_ if outsider.version <= commit.reverses]
        if reverted:
            first = reverted[0].version
            change = judged(replay(table, first - 1), raw_commits(table, first - 1)[: commit.version - first])
            yield TakenBack(first, commit.version, change.operations, change.message, change.kind == "none")
