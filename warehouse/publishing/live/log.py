"""The log of a live table: its current files, their writer, and the commit that moves it to the next epoch.

Each commit is one file, made exclusively, at protocol reader 1, writer 2. Its ``userMetadata`` names the epoch, its window
time, the oldest version whose files are kept, and a digest of the files that the table has from then on. If the newest commit of
a table does not have these, another writer made it: none of the files is trusted, and all are replaced.

The tag ``stream_wh`` of a file names the sources of its rows (:class:`warehouse.publishing.live.move.LiveFile`).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from warehouse.errors import MissingPartError
from warehouse.publishing.live.move import LiveFile
from warehouse.storage.entries import entry_path, entry_text, raw_commit
from warehouse.storage.replay import UNREADABLE, replay
from warehouse.storage.store import store_of
from warehouse.storage.table_commit import TableCommit, metadata_action
from warehouse.storage.tables import table_properties
from warehouse.time import format_instant, superseded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.epochs.records import Epoch

__all__ = [
    "LIVE",
    "TAG",
    "LiveState",
    "WrittenFile",
    "commit_version",
    "commits",
    "delete_superseded",
    "leftover_files",
    "live_directory",
    "named_files",
    "newest_state",
    "oldest_kept",
    "superseded_files",
    "tag_of",
]


LIVE = "live"
"""The directory of all live tables under the root."""
TAG = "stream_wh"
_COMMIT = re.compile(r"(\d{20})\.json")
_NO_FILE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_PROTOCOL = {"minReaderVersion": 1, "minWriterVersion": 2}


@dataclass(frozen=True)
class LiveState:
    """The newest version of a live table.

    ``epoch`` and ``committed_at`` belong to the epoch to which it was moved (-1: another writer made the newest version).
    ``oldest`` is the oldest version whose files are kept. ``files`` are ``add`` actions by path.
    """

    version: int
    epoch: int
    committed_at: int
    oldest: int
    moved_at: int
    metadata: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]

    @property
    def trusted(self) -> bool:
        """Whether this module made the table's newest commit, and the table's files are the commit's files."""
        return self.epoch >= 0

    def is_of(self, epoch: Epoch) -> bool:
        """Whether the table holds the rows of an epoch."""
        return (self.epoch, self.committed_at) == (epoch.number, epoch.committed_at)

    def live_files(self) -> list[LiveFile]:
        """Return the table's files with the sources of their rows; an empty list if another writer made the newest version."""
        return [_live_file(path, action) for path, action in self.files.items()] if self.trusted else []


@dataclass(frozen=True)
class WrittenFile:
    """A file to add to a live table: its path relative to the table, size in bytes, time of change in milliseconds, and content.

    ``stats`` are its statistics as JSON, as in the log; ``live_file`` names the sources of its rows.
    """

    path: str
    size: int
    modified: int
    stats: str
    live_file: LiveFile


@dataclass(frozen=True)
class LoggedCommit:
    """A commit of a live table: its time (microseconds), the files that it removed, and its ``userMetadata``."""

    version: int
    at: int
    removed: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


def newest_state(table: Path) -> LiveState | None:
    """Return the newest state of a live table; None if there is no table, or its log cannot be continued.

    Raises
    ------
    OSError, StoreBusyError
        When the disk or the store cannot read the log; the table need not be damaged, and a later attempt may succeed.

    """
    try:
        names = store_of(table).entry_names(table / "_delta_log")
        versions = {int(match[1]) for match in map(_COMMIT.fullmatch, names) if match}
        if not versions:
            return None
        newest = max(versions)
        state, last = replay(table, newest), _commit(table, newest)
    except (MissingPartError, *UNREADABLE, *_NO_FILE):
        return None
    if dict(state.protocol) != _PROTOCOL:
        return None
    facts, files = last.facts, state.files
    ours = facts.get("digest") == _digest(state.metadata, files) and all(TAG in (add.get("tags") or {}) for add in files.values())
    epoch, committed_at = (facts.get("epoch", -1), facts.get("committed_at", -1)) if ours else (-1, -1)
    first = newest
    while first - 1 in versions:
        first -= 1
    oldest = max(first, facts.get("oldest", first)) if ours else first
    return LiveState(newest, epoch, committed_at, oldest, last.at, state.metadata, files)


def live_directory(root: Path, name: str, epoch: Epoch) -> Path | None:
    """Return the directory of a table's live table; None if there is no live table of this epoch or a later one."""
    table = root / LIVE / name
    state = newest_state(table)
    return table if state is not None and state.epoch >= epoch.number else None


def commits(table: Path, after: int) -> Iterator[LoggedCommit]:
    """Yield the commits above a version, in order, up to the first missing one.

    A commit that cannot be read has the time of its file and no removed files: no reader can open its version.
    """
    version = after + 1
    while True:
        try:
            commit = _commit(table, version)
        except FileNotFoundError:
            return
        except UNREADABLE:
            commit = LoggedCommit(version, entry_path(table, version).stat().st_mtime_ns // 1000, ())
        yield commit
        version += 1


def _commit(table: Path, version: int) -> LoggedCommit:
    commit = raw_commit(table, version)
    if commit.actions is None:
        raise ValueError(commit.problem)
    stamp = commit.info.get("timestamp")
    time = entry_path(table, version).stat().st_mtime_ns // 1000 if stamp is None else int(stamp) * 1000
    removed = tuple(unquote(action["remove"]["path"]) for action in commit.actions if "remove" in action)
    return LoggedCommit(version, time, removed, commit.said)


def commit_version(
    table: Path,
    before: LiveState | None,
    epoch: Epoch,
    *,
    table_id: str,
    schema: Mapping[str, Any],
    statistics: Sequence[str],
    kept: Iterable[LiveFile],
    written: Sequence[WrittenFile],
    oldest: int,
    retain: int,
    now: int,
) -> int:
    """Commit, exclusively, the version of an epoch and return its number.

    Parameters
    ----------
    table
        The live table's directory.
    before
        The live table's newest state; None: the table is new.
    epoch
        The epoch whose live rows it holds after the commit.
    table_id
        The identity of a new table.
    schema
        The table's columns, a Spark struct type as JSON.
    statistics
        The columns with bounds in the log.
    kept
        Files that stay in the table; it loses all others.
    written
        Files that are added.
    oldest
        The oldest version whose files are kept.
    retain
        How long a superseded version stays, in microseconds.
    now
        The clock's instant in microseconds.

    Raises
    ------
    FileExistsError
        When another writer made this version.

    """
    files = {} if before is None else before.files
    kept_paths = {file.path for file in kept}
    removed = {path: add for path, add in files.items() if path not in kept_paths}
    added = {file.path: _add(file) for file in written}
    metadata = _metadata(before, table_id, schema, statistics, retain, now)
    files_after = {path: files[path] for path in kept_paths} | added
    version = 0 if before is None else before.version + 1
    facts = {
        "epoch": epoch.number,
        "window_time": format_instant(epoch.window_time),
        "committed_at": epoch.committed_at,
        "oldest": oldest,
        "digest": _digest(metadata, files_after),
    }
    definitions: list[dict[str, Any]] = [] if before is not None else [{"protocol": _PROTOCOL}]
    if before is None or metadata != before.metadata:
        definitions.append({"metaData": metadata})
    commit = TableCommit(
        "WRITE",
        now // 1000,
        facts,
        parameters={"mode": "Overwrite"},
        facts={
            **({"readVersion": version - 1} if version else {}),
            "isolationLevel": "Serializable",
            "operationMetrics": {"numFiles": str(len(added)), "numRemovedFiles": str(len(removed))},
        },
        definitions=definitions,
        added=list(added.values()),
        removed=list(removed.values()),
    )
    store_of(table).write_exclusive(entry_path(table, version), entry_text(commit.actions()).encode())
    return version


def _metadata(
    before: LiveState | None, table_id: str, schema: Mapping[str, Any], statistics: Sequence[str], retain: int, now: int
) -> Mapping[str, Any]:
    """Return the ``metaData`` action of the table: the former action, if nothing changed."""
    properties = {**table_properties(statistics, retain), "delta.enableExpiredLogCleanup": "false"}
    identity = table_id if before is None else before.metadata["id"]
    metadata: dict[str, Any] = metadata_action(identity, schema, (), properties, now)["metaData"]
    if before is None:
        return metadata
    compared_fields = ("schemaString", "partitionColumns", "configuration")
    return before.metadata if all(before.metadata.get(name) == metadata[name] for name in compared_fields) else metadata


def _add(written: WrittenFile) -> dict[str, Any]:
    return {
        "path": written.path,
        "partitionValues": {},
        "size": written.size,
        "modificationTime": written.modified,
        "dataChange": True,
        "stats": written.stats,
        "tags": {TAG: tag_of(written.live_file)},
    }


def tag_of(live_file: LiveFile) -> str:
    """Return the tag of a file: its group and sources, and of a piece the slots of its cut."""
    parts: list[object] = [live_file.group, sorted(live_file.sources)]
    if live_file.cut_slot is not None:
        parts += [live_file.cut_slot, live_file.min_exp_slot, live_file.max_exp_slot]
    return json.dumps(parts, separators=(",", ":"))


def _live_file(path: str, action: Mapping[str, Any]) -> LiveFile:
    group, sources, *cut = json.loads(action["tags"][TAG])
    return LiveFile(path, frozenset(sources), group, *cut)


def _digest(metadata: Mapping[str, Any], files: Mapping[str, Mapping[str, Any]]) -> str:
    content = [[metadata["id"], metadata["schemaString"]], *sorted([path, add["size"]] for path, add in files.items())]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


# --- superseded versions of a live table: readable for ``retain`` after the next version, then their files are deleted ---

# The next version's ``remove`` actions name the files that only the superseded version had, so no directory is listed.
# :func:`leftover_files` lists the directory for files that crashes left.


def oldest_kept(table: Path, state: LiveState, retain: int, now: int) -> int:
    """Return the oldest version of a live table that may still be read: the next one was made less than ``retain`` ago.

    ``retain`` and ``now`` are microseconds.
    """
    return state.oldest + superseded((commit.at for commit in commits(table, state.oldest)), retain, now)


def delete_superseded(table: Path, state: LiveState, oldest: int) -> None:
    """Delete the files that versions below ``oldest`` had and no later one has."""
    for name in superseded_files(table, state, oldest):
        (table / name).unlink(missing_ok=True)


def superseded_files(table: Path, state: LiveState, oldest: int) -> set[str]:
    """Return the files that versions below ``oldest`` had and later ones do not have; no name is used for two files.

    Only another writer can add a removed file again. The next version replaces all files of such a writer, so they are not kept.
    """
    superseding = islice(commits(table, state.oldest), oldest - state.oldest)
    return {name for commit in superseding for name in commit.removed} - set(state.files)


def named_files(table: Path, state: LiveState, oldest: int) -> set[str]:
    """Return the data files of a live table's versions from ``oldest`` on: the newest has them, or a later one removed them."""
    return set(state.files).union(*(commit.removed for commit in commits(table, oldest)))


def leftover_files(table: Path, named: set[str], *, before: int) -> list[Path]:
    """Return the files in a live table's directory that are not named, and got their names before an instant (microseconds)."""
    store, log = store_of(table), table / "_delta_log"
    unnamed = [table / name for name in store.entry_names(table) if name != "_delta_log" and name not in named]
    unnamed += [log / name for name in store.entry_names(log) if name.endswith(".tmp")]
    return [path for path in unnamed if path.is_file() and store.named_since(path) < before]
