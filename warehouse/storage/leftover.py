"""Files in a table's log above its newest commit: checkpoints, checksums and sidecars of commits that do not exist (any more).

A reader starts from the newest checkpoint at or before the version that it reads. It uses a checkpoint above the newest commit
only when another commit takes that number; then the checkpoint would be wrong.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from warehouse.errors import MissingPartError
from warehouse.storage.deltalog import commits_after, void_commit
from warehouse.storage.entries import entry_path, iterate_raw_commits
from warehouse.storage.foreign import same_statistics
from warehouse.storage.replay import UNREADABLE, LogState, advanced, checkpointed, checkpoints, replay
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "WrongCheckpoint",
    "commits_beyond",
    "drop_above",
    "drop_wrong",
    "left_above",
    "log_names",
    "remove_commits",
    "went_on",
    "wrong_checkpoints",
]

_NUMBERED = re.compile(r"\.?(\d{20})\.(.+)")
_COMPACTED = re.compile(r"(\d{20})\.compacted\.json(?:\.crc)?")
_COMMIT = re.compile(r"\.?\d{20}\.json(?:\.crc)?")
_ENTRY = re.compile(r"\d{20}\.json")
_SIDECARS = "_sidecars"
_POINTER = "_last_checkpoint"
_UNREADABLE = (MissingPartError, *UNREADABLE)


def log_names(table: Path) -> tuple[str, ...]:
    """Return the names in a table's log, which the functions below take so that the log is listed once."""
    log = table / "_delta_log"
    return tuple(store_of(log).entry_names(log)) if log.is_dir() else ()


def left_above(table: Path, top: int, names: Collection[str] | None = None) -> list[str]:
    """Return the names of the files in a table's log that sum up commits above version ``top``, without the commits."""
    return [name for name, version in _summing(table, log_names(table) if names is None else names) if version > top]


def commits_beyond(table: Path, top: int, names: Collection[str] | None = None) -> list[int]:
    """Return the versions of the log's entries above a gap; ``top`` is the last version below the gap.

    If the log has grown since it was read, there is no gap.
    """
    numbers = [int(name[:20]) for name in (log_names(table) if names is None else names) if _ENTRY.fullmatch(name)]
    beyond = sorted(number for number in numbers if number > top + 1)
    return [] if beyond and went_on(table, top) else beyond


def went_on(table: Path, top: int) -> bool:
    """Whether a log has grown since it was read up to version ``top``."""
    return entry_path(table, top + 1).exists()


def drop_above(table: Path, top: int, names: Collection[str] | None = None) -> list[str]:
    """Remove files that contain commits above version ``top``, and return their names; the caller holds the writer lock."""
    log, removed = table / "_delta_log", left_above(table, top, names)
    for name in removed:
        (log / name).unlink(missing_ok=True)
    if removed and store_of(table).local_paths:
        if (log / _SIDECARS).is_dir() and not any(_is_v2(name) for name in store_of(log).entry_names(log)):
            store_of(log / _SIDECARS).remove_tree(log / _SIDECARS)
            removed.append(_SIDECARS)
        store_of(log).sync_directory(log)
    return removed


def remove_commits(table: Path, top: int) -> None:
    """Remove the commits above version ``top``, newest first, after the checkpoints that contain them.

    No epoch may name one of them. In an object store they become commits that change nothing.
    """
    drop_above(table, top)
    if store_of(table).late_commits:
        for commit in sorted(commits_after(table, top), key=lambda entry: entry.version, reverse=True):
            void_commit(table, commit)
        return
    log = table / "_delta_log"
    numbered = [(int(match[1]), name) for name in store_of(log).entry_names(log) if (match := _NUMBERED.fullmatch(name))]
    for version, name in sorted(numbered, reverse=True):
        if version > top:
            (log / name).unlink(missing_ok=True)
    store_of(log).sync_directory(log)


@dataclass(frozen=True)
class WrongCheckpoint:
    """A checkpoint that differs from the state after the commits up to its version; ``name`` is that of its first part.

    If it is gone, ``name`` is the name of the file that still says it is there; then deltalake may not open the table.
    """

    version: int
    name: str
    message: str


def wrong_checkpoints(table: Path, version: int) -> Iterator[WrongCheckpoint]:
    """Yield the checkpoints at or before a version that the log's commits contradict.

    Commits are replayed from the first one; if the log was cut, from the oldest checkpoint, which is then trusted.
    """
    log = table / "_delta_log"
    all_checkpoints = checkpoints(log)
    checked = {number: names for number, names in all_checkpoints.items() if number <= version}
    hinted = _pointed_to(log / _POINTER)
    if hinted >= 0 and hinted not in all_checkpoints and _reaches(table, version):
        yield WrongCheckpoint(hinted, _POINTER, "it is gone")
    if not checked:
        return
    start = -1 if entry_path(table, 0).exists() else min(checked)
    try:
        state = LogState(-1) if start < 0 else checkpointed(table, start)
        commits = iterate_raw_commits(table, start)
        for number in sorted(candidate for candidate in checked if candidate > start):
            passed = list(islice(commits, number - state.version))
            if len(passed) < number - state.version or any(commit.actions is None for commit in passed):
                return  # the check of the log reports unreadable files
            state = advanced(state, number, (action for commit in passed for action in commit.actions or ()))
            contradiction = _contradiction(table, state)
            if contradiction:
                yield WrongCheckpoint(number, checked[number][0], contradiction)
    except _UNREADABLE:
        return


def _reaches(table: Path, version: int) -> bool:
    """Whether the commits and checkpoints in the log lead to a version."""
    try:
        return replay(table, version).version == version
    except MissingPartError:
        return False


def _contradiction(table: Path, state: LogState) -> str:
    """How the checkpoint of a state's version differs from it; empty: not at all."""
    try:
        return _difference(state, checkpointed(table, state.version))
    except _UNREADABLE as error:
        return f"it cannot be read ({error})"


def drop_wrong(table: Path, version: int) -> list[str]:
    """Remove the checkpoints that the log's commits contradict, and return their names; the caller holds the writer lock."""
    log, removed = table / "_delta_log", []
    for wrong in list(wrong_checkpoints(table, version)):
        (log / _POINTER).unlink(missing_ok=True)
        for name in checkpoints(log).get(wrong.version, ()):
            (log / name).unlink(missing_ok=True)
            removed.append(name)
        removed += [wrong.name] if wrong.name == _POINTER else []
    if removed and store_of(table).local_paths:
        store_of(log).sync_directory(log)
    return removed


def _difference(commits: LogState, summed: LogState) -> str:
    """How the table's content differs in a checkpoint; empty: not at all."""
    missing = commits.files.keys() - summed.files.keys()
    strange = summed.files.keys() - commits.files.keys()
    if missing or strange:
        return f"it lacks {len(missing)} file(s), and has {len(strange)} that are not there"
    if any(summed.files[path].get("size") != add.get("size") for path, add in commits.files.items()):
        return "its files have other sizes"
    if any(_places(summed.files[path]) != _places(add) for path, add in commits.files.items()):
        return "its files are in other partitions"
    stated = {path: add for path, add in summed.files.items() if add.get("stats")}  # some writers give them as columns alone
    if any(not same_statistics(commits.files[path], add) for path, add in stated.items()):
        return "its files have other statistics"
    names = ("id", "schemaString", "partitionColumns")
    if any(commits.metadata.get(name) != summed.metadata.get(name) for name in names):
        return "its table has another identity or other columns"
    if dict(commits.metadata.get("configuration") or {}) != dict(summed.metadata.get("configuration") or {}):
        return "its table has other properties"
    versions = ("minReaderVersion", "minWriterVersion")
    if any(commits.protocol.get(name) != summed.protocol.get(name) for name in versions):
        return "it has another protocol"
    return ""


def _places(add: Mapping[str, Any]) -> dict[str, Any]:
    return dict(add.get("partitionValues") or {})


def _summing(table: Path, names: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield each file that sums up commits, with the last version that it sums up."""
    log = table / "_delta_log"
    for name in sorted(names):
        match = _NUMBERED.fullmatch(name)
        if name in (_POINTER, f".{_POINTER}.crc"):
            yield name, _pointed_to(log / _POINTER)
        elif match and _COMPACTED.fullmatch(match[2]):
            yield name, int(match[2][:20])
        elif match and not _COMMIT.fullmatch(name):
            yield name, int(match[1])


def _pointed_to(path: Path) -> int:
    try:
        version = json.loads(path.read_text(encoding="utf-8")).get("version")
    except (OSError, ValueError, AttributeError):
        return -1
    return version if isinstance(version, int) else -1


def _is_v2(name: str) -> bool:
    """Whether a file is a checkpoint that names sidecars: its name has a UUID."""
    return re.fullmatch(r"\d{20}\.checkpoint\.[0-9a-f-]{36}\.(?:json|parquet)", name) is not None
