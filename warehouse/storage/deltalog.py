"""Reads Delta's log as files: the commits of a table one by one; and undoes commits that no epoch names.

The log's commit ``v`` is ``_delta_log/<20 digits>.json``, one JSON action a line (the Delta protocol). The single commits show
how far an unfinished update has come; :mod:`warehouse.storage.snapshot` reads snapshots of tables.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from warehouse.errors import LockHeldError, MissingPartError
from warehouse.objects.path import object_path
from warehouse.storage.entries import LogEntry, RawCommit, decoded, entry_path, iterate_raw_commits
from warehouse.storage.fingerprint import damage
from warehouse.storage.local_disk import undone_on_failure
from warehouse.storage.store import store_of
from warehouse.storage.table_commit import ENGINE
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "AddedFile",
    "Commit",
    "commits_after",
    "make_durable",
    "undo_commits",
    "void_commit",
    "whole",
    "whole_parquet",
]

_PARQUET_MAGIC = b"PAR1"
_VOID = "VOID"


@dataclass(frozen=True)
class AddedFile:
    """A data file of a commit: its path relative to the table, partition values, bytes and statistics.

    ``max_ts`` is the largest ``_ts`` in microseconds, as Delta records it: cut to the millisecond.
    """

    path: str
    size: int
    partition: Mapping[str, str | None]
    rows: int
    max_exp_slot: int | None
    max_ts: int | None = None
    min_exp_slot: int | None = None


@dataclass(frozen=True)
class Commit:
    """One commit of a table's log; ``metadata`` is its decoded ``userMetadata``, empty if the warehouse did not write it.

    If it is not ``readable``, a power loss truncated it, and no engine can read the table with it.
    """

    version: int
    metadata: Mapping[str, Any]
    added: tuple[AddedFile, ...]
    removed: tuple[str, ...]
    removed_partitions: frozenset[tuple[tuple[str, str | None], ...]]
    table_id: str | None = None
    operation: str = ""
    transactions: Mapping[str, int] = field(default_factory=dict)
    readable: bool = True
    sha256: str | None = None
    engine: str = ""

    @property
    def void(self) -> bool:
        """Whether it changes nothing and only takes the place of a commit that was undone, since a log has no gaps."""
        return self.operation == _VOID

    @property
    def ours(self) -> bool:
        """Whether its metadata says that this warehouse made it."""
        return self.engine == ENGINE

    @property
    def reverses(self) -> int | None:
        """The version whose content this commit of ours brings back; None if it takes no commit back."""
        version = self.metadata.get("reverses")
        return version if isinstance(version, int) and self.ours else None

    @property
    def entry(self) -> LogEntry:
        """The entry of the log that it is."""
        return LogEntry(self.version, self.sha256)


def commits_after(table: Path, version: int) -> Iterator[Commit]:
    """Yield the commits above ``version`` (-1: all), in order."""
    return map(_commit, iterate_raw_commits(table, version))


def _commit(raw: RawCommit) -> Commit:
    try:
        return _understood(raw)
    except (ValueError, TypeError, KeyError, AttributeError):
        return Commit(raw.version, {}, (), (), frozenset(), readable=False, sha256=raw.sha256)


def _understood(raw: RawCommit) -> Commit:
    if raw.actions is None:
        raise ValueError(raw.problem)
    added: list[AddedFile] = []
    removed: list[str] = []
    partitions: set[tuple[tuple[str, str | None], ...]] = set()
    table_id = None
    transactions: dict[str, int] = {}
    for action in raw.actions:
        if "add" in action:
            added.append(_added(action["add"]))
        elif "remove" in action:
            removed.append(unquote(action["remove"]["path"]))
            partitions.add(tuple(sorted((action["remove"].get("partitionValues") or {}).items())))
        elif "metaData" in action:
            table_id = action["metaData"]["id"]
        elif "txn" in action:
            transactions[action["txn"]["appId"]] = action["txn"]["version"]
    return Commit(
        raw.version,
        raw.said,
        tuple(added),
        tuple(removed),
        frozenset(partitions),
        table_id,
        str(raw.info.get("operation", "")),
        transactions,
        sha256=raw.sha256,
        engine=str(raw.info.get("engineInfo", "")),
    )


def _added(action: Mapping[str, Any]) -> AddedFile:
    stats = json.loads(action.get("stats") or "{}")
    largest = stats.get("maxValues") or {}
    return AddedFile(
        path=unquote(action["path"]),
        size=action["size"],
        partition=action.get("partitionValues") or {},
        rows=stats.get("numRecords", 0),
        max_exp_slot=largest.get("_exp_slot"),
        max_ts=parse_instant(largest["_ts"]) if "_ts" in largest else None,
        min_exp_slot=(stats.get("minValues") or {}).get("_exp_slot"),
    )


def whole(table: Path, commit: Commit, *, hashed: bool = False) -> bool:
    """Whether a commit can be read, and each file that it adds exists with the bytes that were written.

    After a power loss that may not be so. The bytes are not read where this process wrote and ``hashed`` them just before.
    """
    files = ((table / file.path, file.size) for file in commit.added)
    return commit.readable and all(
        _has_size(path, size) and whole_parquet(path) and (hashed or _undamaged(path)) for path, size in files
    )


def _undamaged(path: Path) -> bool:
    try:
        return not store_of(path).cheap_requests or damage(path) is None
    except OSError:
        return False


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def whole_parquet(path: Path) -> bool:
    """Whether a file exists and ends as Parquet files do; a file that was cut short does not."""
    try:
        with path.open("rb") as stream:
            stream.seek(-len(_PARQUET_MAGIC), os.SEEK_END)
            return stream.read() == _PARQUET_MAGIC
    except (OSError, ValueError):
        return False


def undo_commits(table: Path, from_version: int, *, pinned: int) -> None:
    """Remove the commits from ``from_version`` on, newest first; the first of them is unreadable or not durable.

    A durable commit is reverted by a later one (:mod:`warehouse.storage.reversal`). No engine can read beyond a commit that a
    power loss truncated.

    Raises
    ------
    MissingPartError
        When version ``pinned``, which an epoch names, would be removed.

    """
    log = table / "_delta_log"
    if from_version <= pinned:
        raise MissingPartError(f"{log}: version {from_version} cannot be read, and an epoch names it; restore it from a copy")
    for name in sorted(store_of(log).entry_names(log), key=_version_of, reverse=True):
        if _version_of(name) >= from_version:
            (log / name).unlink()
    (log / "_last_checkpoint").unlink(missing_ok=True)
    store_of(log).sync_directory(log)


def void_commit(table: Path, commit: Commit) -> None:
    """Replace a commit that no epoch names by a commit that changes nothing: its number stays taken, as a log has no gaps.

    This undoes a commit in an object store. The object is replaced only if it is the object that was judged
    (``If-Match``): a process that was delayed between reading and writing changes nothing.

    Raises
    ------
    LockHeldError
        When another object has replaced it.

    """
    path = object_path(entry_path(table, commit.version))
    lock_error = LockHeldError(f"another process, which replaced {path} first")
    info = {"timestamp": 0, "operation": _VOID, "operationParameters": {}, "engineInfo": ENGINE}
    content, tag = path.read_with_tag()
    if _commit(decoded(commit.version, content)) != commit:
        raise lock_error
    try:
        path.put((json.dumps({"commitInfo": info}) + "\n").encode(), {"e_tag": tag})
    except FileExistsError:
        raise lock_error from None


def _version_of(name: str) -> int:
    digits = name.lstrip(".").split(".", 1)[0]
    return int(digits) if digits.isdigit() else -1


def make_durable(table: Path, commits: Sequence[Commit]) -> None:
    """Sync the commits of an earlier process, the files that they add, and their directories to the disk.

    That process may have ended after it named an entry and before it synced it. Hadoop's checksum files of the log are deleted,
    since after a power loss one might not match its file. Objects in a store are durable already.

    Raises
    ------
    NotDurableError
        When the disk does not confirm it; then these commits and later ones are undone.

    """
    if not store_of(table).local_paths or not commits:
        return
    for commit in commits:
        log_file = entry_path(table, commit.version)
        for name in (log_file.name, log_file.with_suffix(".crc").name):
            log_file.with_name(f".{name}.crc").unlink(missing_ok=True)
    first = min(commit.version for commit in commits)
    with undone_on_failure(lambda: undo_commits(table, first, pinned=first - 1)):
        store_of(table).sync_tree(table, [PurePosixPath(file.path) for commit in commits for file in commit.added])
        store_of(table).sync_tree(table, [entry_path(table, commit.version).relative_to(table) for commit in commits])
