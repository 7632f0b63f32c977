"""What a table's log holds above its newest commit: checkpoints, sums and sidecars of commits that are not there.

A reader starts from the newest checkpoint at or before the version that it wants. A checkpoint above the newest commit is read
by nobody, until somebody else takes its number: then it would stand for a commit that it does not sum up.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.errors import MissingPartError
from warehouse.objects.path import ObjectPath, entry_names
from warehouse.storage.deltalog import commits_after, void_commit
from warehouse.storage.durable import remove_tree, sync_directory
from warehouse.storage.entries import entry_path
from warehouse.storage.foreign import raw_commits
from warehouse.storage.replay import LogState, advanced, checkpointed, checkpoints

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["WrongCheckpoint", "commits_beyond", "drop_above", "drop_wrong", "left_above", "remove_commits", "wrong_checkpoints"]

_NUMBERED = re.compile(r"\.?(\d{20})\.(.+)")
_COMPACTED = re.compile(r"(\d{20})\.compacted\.json(?:\.crc)?")
_COMMIT = re.compile(r"\.?\d{20}\.json(?:\.crc)?")
_SIDECARS = "_sidecars"
_POINTER = "_last_checkpoint"


def left_above(table: Path, top: int) -> list[str]:
    """Return the names of the files in a table's log that sum up commits above version ``top``; no commits."""
    return [name for name, version in _summing(table) if version > top]


def commits_beyond(table: Path, top: int) -> list[int]:
    """Return the versions above ``top`` of which the log has an entry."""
    log = table / "_delta_log"
    names = entry_names(log) if log.is_dir() else ()
    return sorted(int(name[:20]) for name in names if _COMMIT.fullmatch(name) and name.endswith(".json") and int(name[:20]) > top)


def drop_above(table: Path, top: int) -> list[str]:
    """Remove what sums up commits above version ``top``, and return the names; the caller holds the writer lock."""
    log, gone = table / "_delta_log", left_above(table, top)
    for name in gone:
        (log / name).unlink(missing_ok=True)
    if gone and not isinstance(table, ObjectPath):
        if (log / _SIDECARS).is_dir() and not any(_is_v2(name) for name in entry_names(log)):
            remove_tree(log / _SIDECARS)
            gone.append(_SIDECARS)
        sync_directory(log)
    return gone


def remove_commits(table: Path, top: int) -> None:
    """Remove the commits above version ``top``, newest first, and before them all that sums them up.

    No epoch may name one of them. In an object store they become commits that change nothing.
    """
    drop_above(table, top)
    if isinstance(table, ObjectPath):
        for commit in sorted(commits_after(table, top), key=lambda each: each.version, reverse=True):
            void_commit(table, commit)
        return
    log = table / "_delta_log"
    numbered = [(int(match[1]), name) for name in entry_names(log) if (match := _NUMBERED.fullmatch(name))]
    for version, name in sorted(numbered, reverse=True):
        if version > top:
            (log / name).unlink(missing_ok=True)
    sync_directory(log)


@dataclass(frozen=True)
class WrongCheckpoint:
    """A checkpoint that does not say what the commits up to its version lead to; ``name`` is that of its first part."""

    version: int
    name: str
    told: str


def wrong_checkpoints(table: Path, version: int) -> Iterator[WrongCheckpoint]:
    """Yield the checkpoints at or before a version that the log's commits contradict.

    Commits are followed from the first one, or where the log was cut from the oldest checkpoint, which is then believed.
    """
    log = table / "_delta_log"
    held = {number: names for number, names in checkpoints(log).items() if number <= version}
    if not held:
        return
    start = -1 if entry_path(table, 0).exists() else min(held)
    try:
        state = LogState(-1) if start < 0 else checkpointed(table, start)
        for number in sorted(each for each in held if each > start):
            for commit in raw_commits(table, state.version)[: number - state.version]:
                state = advanced(state, commit.version, commit.actions or ())
            if state.version < number:
                return
            told = _difference(state, checkpointed(table, number))
            if told:
                yield WrongCheckpoint(number, held[number][0], told)
    except (MissingPartError, KeyError, TypeError, AttributeError):
        return  # the log's own check tells what cannot be read


def drop_wrong(table: Path, version: int) -> list[str]:
    """Remove the checkpoints that the log's commits contradict, and return their names; the caller holds the writer lock."""
    log, gone = table / "_delta_log", []
    for wrong in list(wrong_checkpoints(table, version)):
        (log / _POINTER).unlink(missing_ok=True)
        for name in checkpoints(log)[wrong.version]:
            (log / name).unlink(missing_ok=True)
            gone.append(name)
    if gone and not isinstance(table, ObjectPath):
        sync_directory(log)
    return gone


def _difference(commits: LogState, summed: LogState) -> str:
    """What of a table's content a checkpoint says otherwise; empty: nothing."""
    missing = commits.files.keys() - summed.files.keys()
    strange = summed.files.keys() - commits.files.keys()
    if missing or strange:
        return f"it lacks {len(missing)} file(s), and has {len(strange)} that are not there"
    if any(summed.files[path].get("size") != add.get("size") for path, add in commits.files.items()):
        return "its files have other sizes"
    names = ("id", "schemaString", "partitionColumns")
    if any(commits.metadata.get(name) != summed.metadata.get(name) for name in names):
        return "its table has another identity or other columns"
    if dict(commits.metadata.get("configuration") or {}) != dict(summed.metadata.get("configuration") or {}):
        return "its table has other properties"
    versions = ("minReaderVersion", "minWriterVersion")
    if any(commits.protocol.get(name) != summed.protocol.get(name) for name in versions):
        return "it has another protocol"
    return ""


def _summing(table: Path) -> Iterator[tuple[str, int]]:
    """Yield each file that sums up commits, with the last version that it sums up."""
    log = table / "_delta_log"
    for name in sorted(entry_names(log)) if log.is_dir() else ():
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
