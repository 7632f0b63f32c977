"""Handles commits of outsiders to the tables of a warehouse without an open plan: they are adopted, or they stop the table.

An epoch names a version of each table. Later commits that belong to no plan are judged by their changes
(:mod:`warehouse.storage.foreign`). Commits that change no row are adopted by a new epoch at the same window time, which names
their version, so the next plan starts from there. Any other commit stops the verbs that write, until somebody reverts it
(:mod:`warehouse.operations.undo`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from warehouse.epochs.records import ForeignCommits, Partition, Removed
from warehouse.errors import RESTORE_TABLE, ForeignChangeError, undo_foreign
from warehouse.layout.columns import cell_of
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import LogEntry, entry_at, is_replaced, raw_commits
from warehouse.storage.foreign import Change, judged
from warehouse.storage.leftover import commits_beyond, drop_above, log_names
from warehouse.storage.proof import proven
from warehouse.storage.replay import replay
from warehouse.storage.reversal import reverse
from warehouse.storage.store import store_of
from warehouse.storage.table_commit import ENGINE
from warehouse.storage.tables import key_types, statistics_columns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.storage.entries import RawCommit

__all__ = [
    "NamedDirectory",
    "Settled",
    "StoppedTable",
    "change_above",
    "foreign_changes",
    "harmless_commits",
    "named_directories",
    "prove",
    "settle",
    "stopped_by",
]


@dataclass(frozen=True)
class NamedDirectory:
    """A table's directory that an epoch names (``path``, relative to the root), at a version; ``role`` of the table it is.

    ``entry`` is the log entry of the version, or None in epochs of older builds.
    """

    path: str
    version: int
    role: Literal["rows", "side"]
    state: TableState
    entry: LogEntry | None = None

    def is_replaced(self, root: Path) -> bool:
        """Whether another log replaced the log that the epoch names."""
        return self.entry is not None and is_replaced(root / self.path, self.entry)


@dataclass(frozen=True)
class StoppedTable:
    """A table's directory that outsiders changed: their first commit, and a text about their changes.

    It is ``replaced`` if the log has no version of the warehouse, so that their commits cannot be reverted.
    """

    path: str
    version: int
    detail: str
    replaced: bool = False

    @property
    def error(self) -> ForeignChangeError:
        """The error to raise when the verb needs the table."""
        return ForeignChangeError(self.path, self.version, self.detail[self.detail.index("(") :], replaced=self.replaced)

    @property
    def message(self) -> str:
        """A sentence about the change, and what to do."""
        remedy = RESTORE_TABLE if self.replaced else undo_foreign(self.path)
        return f"it was changed from outside: {self.detail}. {remedy}, then update again"


def stopped_by(path: str, change: Change, reason: str = "") -> StoppedTable:
    """Return the table that a change stops; ``reason`` says why a claim is not believed."""
    message = f"{change.message}, but {reason}" if reason else change.message
    return StoppedTable(path, change.first, message, change.kind == "replaced")


@dataclass(frozen=True)
class Settled:
    """The result of judging outsiders' commits since an epoch.

    ``tables`` are all tables for the next epoch (None: nothing was adopted, so there is none), ``removed`` the files that no
    epoch will name. ``stopped`` are directories that stay unchanged.
    """

    tables: tuple[TableState, ...] | None
    foreign: tuple[ForeignCommits, ...]
    removed: tuple[Removed, ...]
    warnings: tuple[str, ...]
    stopped: tuple[StoppedTable, ...]


def named_directories(epoch: Epoch) -> Iterator[NamedDirectory]:
    """Yield the directories that an epoch names."""
    pinned = {(entry.path, entry.version): LogEntry(entry.version, entry.sha256) for entry in epoch.entries}
    for state in epoch.tables:
        yield NamedDirectory(state.path, state.version, "rows", state, pinned.get((state.path, state.version)))
        for side in state.sides:
            yield NamedDirectory(side.path, side.version, "side", state, pinned.get((side.path, side.version)))


def change_above(root: Path, named: NamedDirectory) -> Change | None:
    """Return the change by a table's commits above the version that an epoch names; None if no outsider made one."""
    return _change(root, named, raw_commits(root / named.path, named.version))


def _change(
    root: Path, named: NamedDirectory, commits: Sequence[RawCommit], names: Collection[str] | None = None
) -> Change | None:
    """Return the change of some commits; ``names`` are the file names in the table's log."""
    version, late = named.version, store_of(root).late_commits
    table, top = root / named.path, version + len(commits)
    if (commits or not late) and named.is_replaced(root):  # in a store commits look at it anyhow
        return Change("replaced", version, version, ("another log",))
    if not late:
        beyond = commits_beyond(table, top, names)
        if beyond:
            return Change("unreadable", top + 1, beyond[-1], ("a gap in the log",))
    elif any(_of_a_plan(commit) for commit in commits):
        return None  # a straggler's: the process that finishes a plan reports it
    return judged(replay(table, version), commits) if commits else None


def _of_a_plan(commit: RawCommit) -> bool:
    if commit.info.get("engineInfo") != ENGINE:
        return False
    text = str(commit.info.get("userMetadata") or "")
    return '"epoch"' in text and '"reverses"' not in text


def foreign_changes(root: Path, epoch: Epoch) -> dict[str, Change]:
    """Return outsiders' changes since an epoch, by directory; nothing is written, and claims are not proven."""
    changes = {}
    for directory in named_directories(epoch):
        change = change_above(root, directory)
        if change is not None:
            changes[directory.path] = change
    return changes


def prove(root: Path, named: NamedDirectory, change: Change) -> tuple[bool, str, str]:
    """Return whether a change of layout keeps the rows, why not, and why readers cannot use its files (empty: they can)."""
    rows = named.role == "rows"
    proof = proven(
        root,
        named.path,
        change,
        schema_file=named.state.schema_file if rows else None,
        bounded=_bounded(named.state) if rows else (),
    )
    return proof.same_rows, proof.reason, proof.unfit


def _bounded(state: TableState) -> list[str]:
    columns = state.stored_columns
    return statistics_columns(key_types(state.declaration.search_key, columns))


def harmless_commits(path: str, change: Change, became: Literal["passed", "adopted", "reversed"]) -> tuple[ForeignCommits, str]:
    """Return the record of commits that changed no row, and the notice about them."""
    words = {
        "passed": "it was passed over",
        "adopted": "its files hold the same rows, as was proven, and were adopted; they are sorted and get filters when sealed",
        "reversed": "its files hold the same rows, but do not suit readers or the update at work: a commit took them out",
    }
    record = ForeignCommits(path, change.first, change.last, change.operations, became)
    return record, f'table "{path}": {change.message} from outside: {words[became]}'


@dataclass
class _Settling:
    root: Path
    epoch: Epoch
    at: int
    versions: dict[str, int] = field(default_factory=dict)
    layouts: dict[str, Change] = field(default_factory=dict)
    foreign: list[ForeignCommits] = field(default_factory=list)
    removed: list[Removed] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    stopped: list[StoppedTable] = field(default_factory=list)

    def take(self, named: NamedDirectory) -> None:
        table = self.root / named.path
        commits = raw_commits(table, named.version)
        names = None
        if not store_of(self.root).late_commits and not named.is_replaced(self.root):
            names = log_names(table)
            removed = drop_above(table, named.version + len(commits), names)
            if removed:
                count = f"{len(removed)} file(s) of the log above its newest commit were removed ({', '.join(removed[:3])})"
                self.warnings.append(f'table "{named.path}": {count}')
        change = _change(self.root, named, commits, names)
        if change is None:
            return
        if change.kind == "none":
            self._pass(named, change, "passed")
        elif change.kind == "layout":
            self._layout(named, change)
        else:
            self.stopped.append(stopped_by(named.path, change))

    def _pass(self, named: NamedDirectory, change: Change, became: Literal["passed", "adopted", "reversed"]) -> None:
        record, warning = harmless_commits(named.path, change, became)
        judged = [commit for commit in raw_commits(self.root / named.path, named.version) if commit.version <= record.last]
        if all(commit.info.get("engineInfo") == ENGINE for commit in judged):
            warning = f'table "{named.path}": what an update had committed was taken back, since outsiders changed another table'
        self.foreign.append(record)
        self.warnings.append(warning)
        self.versions[named.path] = record.last
        remaining = replay(self.root / named.path, record.last).files.keys()
        commits = commits_after(self.root / named.path, named.version)
        # One that landed since is not judged yet: its files may be adopted, and must not go.
        added = {file.path for commit in commits if commit.version <= record.last for file in commit.added}
        files = tuple(sorted((added | change.removed.keys()) - remaining))
        if files:
            self.removed.append(Removed(named.path, files))

    def _layout(self, named: NamedDirectory, change: Change) -> None:
        same_rows, reason, unfit = prove(self.root, named, change)
        if not same_rows:
            self.stopped.append(stopped_by(named.path, change, reason))
        elif unfit:
            following = reversed_layout(self.root, named, change, self.epoch.number, self.at)
            self._pass(named, replace(change, last=following, operations=(*change.operations, unfit)), "reversed")
        else:
            self.layouts[named.path] = change
            self._pass(named, change, "adopted")

    def tables(self) -> tuple[TableState, ...]:
        return tuple(self._state(state) for state in self.epoch.tables)

    def _state(self, state: TableState) -> TableState:
        sides: dict[str, Any] = {}
        for name in ("deferred", "rejected", "restored"):
            side = getattr(state, name)
            if side is not None and side.path in self.versions:
                sides[name] = replace(side, version=self.versions[side.path])
        change = self.layouts.get(state.path)
        if change is not None:
            still_adopted = [name for name in state.adopted if name not in change.removed]
            sides["partitions"] = adopted_partitions(state.partitions, change)
            sides["adopted"] = tuple(sorted({*still_adopted, *change.added}))
        return replace(state, version=self.versions.get(state.path, state.version), **sides)


def reversed_layout(root: Path, named: NamedDirectory, change: Change, epoch: int, at: int) -> int:
    """Take back the commits of a change that changed no row, and no others, and return the version that this makes.

    Raises
    ------
    ForeignChangeError
        When another commit was made since the change was judged.

    """
    table = root / named.path
    newest = entry_at(table, change.last)
    return reverse(table, named.version, newest, metadata={"epoch": epoch}, at=at, data_change=False).version


def adopted_partitions(before: Sequence[Partition], change: Change) -> tuple[Partition, ...]:
    """Return a table's partitions after an OPTIMIZE: the same rows in other files, which count as one more run.

    So the next seal merges a partition even if it has only one file, which restores its order and filters.
    """
    files: dict[tuple[int, int], list[int]] = {}
    for sign, adds in ((1, change.added), (-1, change.removed)):
        for add in adds.values():
            counted = files.setdefault(_cell(add), [0, 0])
            counted[0] += sign
            counted[1] += sign * int(add["size"])
    return tuple(
        part
        if (cell := (part.sub_index, part.exp_block)) not in files
        else replace(
            part,
            files=part.files + files[cell][0],
            bytes=part.bytes + files[cell][1],
            runs=part.files + files[cell][0] + 1,
        )
        for part in before
    )


def _cell(add: Mapping[str, Any]) -> tuple[int, int]:
    return cell_of(add.get("partitionValues") or {})


def settle(root: Path, epoch: Epoch, *, at: int) -> Settled:
    """Judge outsiders' commits since an epoch without an open plan; ``at`` is in microseconds.

    The caller holds the writer lock. Checkpoints of commits that do not exist are removed, and a layout that readers cannot use
    is reverted.
    """
    work = _Settling(root, epoch, at)
    for named in named_directories(epoch):
        work.take(named)
    tables = work.tables() if work.versions else None
    return Settled(tables, tuple(work.foreign), tuple(work.removed), tuple(work.warnings), tuple(work.stopped))
