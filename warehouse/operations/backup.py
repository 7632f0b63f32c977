"""Makes backups: copies of the newest epoch with all that an update needs to continue; updates may run at the same time.

A backup has the files of ``root/`` that this epoch alone needs, ``warehouse.toml``, and ``backup.json``, which is written last,
with the size and SHA-256 of every file. It holds neither lock nor pin. Data files, schema files, shards and log entries are never
changed, only deleted, so a file that was linked or copied is whole; if one was deleted, or the epoch is no longer readable at the
end (because of an erasure or `retain`), the backup starts again with the newest epoch.

Checksums are computed from verified bytes: data files by their names or pages, records and shards by their checksums, logs by a
replay. So a damaged warehouse never gives a backup that seems complete.

Invariant: a directory with a ``backup.json`` is a complete backup; a directory with ``backup.begun`` is an incomplete one.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import PurePosixPath
from shlex import quote
from typing import TYPE_CHECKING

from warehouse.epochs.journal import encode_record, newest_epoch, nothing_loaded, numbers, read_record, record_path
from warehouse.epochs.known import DIRECTORY, ledger_shards
from warehouse.epochs.view_findings import finding_files
from warehouse.errors import (
    BackupError,
    EpochVacuumedError,
    MissingPartError,
    RecordDamagedError,
    StorageFailedError,
    StoreBusyError,
)
from warehouse.ingest.loaded_files import is_intact_shard
from warehouse.storage.entries import LogEntry, entry_path, require_entry
from warehouse.storage.fingerprint import damage
from warehouse.storage.key_summaries import summary_path
from warehouse.storage.replay import sources_of
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from warehouse.epochs.records import Epoch

__all__ = ["Backup", "BackupFile", "back_up", "read_backup", "verify"]

_CHUNK = 1 << 20
_ATTEMPTS = 10
_ARCHIVES = (".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip", ".zst")
"""Suffixes of archive files: a backup is a directory, so its name must not have one."""
_RECORD, _BEGUN = "backup.json", "backup.begun"


@dataclass(frozen=True)
class BackupFile:
    """A file of a backup: its path in the backup, size in bytes, SHA-256 of its content."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Backup:
    """The contents of a backup; instants are microseconds. ``linked`` files share their bytes with the warehouse."""

    epoch: int
    window_time: int
    made_at: int
    files: tuple[BackupFile, ...]
    linked: int = 0

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class _Record:
    """The body of any record."""


@dataclass(frozen=True)
class _Source:
    """A file to copy: its path, and its path in the backup. ``fixed`` files are never changed, so they may be linked."""

    path: Path
    into: str
    fixed: bool = True


def back_up(
    root: Path,
    configuration: Path,
    target: Path,
    *,
    now: int,
    copy: bool = False,
    after: Callable[[str], None] = lambda _: None,
) -> Backup:
    """Copy the newest epoch of a root to an empty directory.

    Parameters
    ----------
    root, configuration
        The warehouse's directory and its ``warehouse.toml``.
    target
        A directory that does not exist, is empty, or has an incomplete backup.
    now
        The clock, in microseconds.
    copy
        Whether to copy every file, instead of linking data files where the file system can.
    after
        Called with the path of each file that was copied or linked.

    Raises
    ------
    BackupError
        When the root is in an object store, the directory is not empty, or its name ends like that of an archive.
        Or when a file of the newest epoch is missing or damaged.
    StoreBusyError
        When new epochs came faster than one could be copied.
    StorageFailedError
        When the disk cannot store the backup.

    """
    if not store_of(root).local_paths:
        raise BackupError(f"{root} is in an object store; copy its objects with the store's own tools, or keep versions there")
    if target.suffix.lower() in _ARCHIVES:
        remedy = f"name it without {target.suffix}, and pack it when it is made"
        raise BackupError(f"{target}: a backup is a directory, no archive; {remedy}")
    target = target.resolve()
    if target.is_relative_to(root.resolve()):
        raise BackupError(f"{target} is inside the warehouse; name a directory elsewhere, best on another disk")
    _begin(target)
    seen: set[tuple[int, str]] = set()
    for _ in range(_ATTEMPTS):
        newest = newest_epoch(root)
        if newest is None:
            raise nothing_loaded(root, "there is nothing to back up")
        _clear(target)
        try:
            files, linked = _copy_epoch(root, configuration, newest, target, copy=copy, after=after)
        except (FileNotFoundError, EpochVacuumedError, MissingPartError) as error:
            fault = f"{error.filename} is missing" if isinstance(error, FileNotFoundError) else str(error)
            if (newest.number, fault) in seen and newest.number in numbers(root, "epoch"):  # no other process retired the epoch
                raise BackupError(f"{fault}; `stream-wh check` says what to do") from error
            seen.add((newest.number, fault))
            continue
        except OSError as error:
            raise StorageFailedError(f"{error.filename or target}: {error.strerror or error}") from error
        if newest.number not in numbers(root, "epoch"):  # erased or retired meanwhile: its files may have been deleted
            continue
        backup = Backup(newest.number, newest.window_time, now, files, linked)
        store_of(target / _RECORD).write_exclusive(target / _RECORD, encode_record(backup))
        (target / _BEGUN).unlink()
        store_of(target).sync_directory(target)
        return backup
    raise StoreBusyError("epochs were retired faster than they could be copied; raise `retain`, or back up between updates")


def _begin(target: Path) -> None:
    if (target / _RECORD).exists():
        raise BackupError(f"{target} holds a backup already; name another directory")
    if target.exists() and any(target.iterdir()) and not (target / _BEGUN).exists():
        raise BackupError(f"{target} is not empty; name another directory")
    target.mkdir(parents=True, exist_ok=True)
    (target / _BEGUN).touch()


def _clear(target: Path) -> None:
    for path in target.iterdir():
        if path.name == _BEGUN:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _copy_epoch(
    root: Path, configuration: Path, epoch: Epoch, target: Path, *, copy: bool, after: Callable[[str], None]
) -> tuple[tuple[BackupFile, ...], int]:
    backup_files, linked = [], 0
    directories: set[Path] = set()
    sources = {source.into: source for source in _sources(root, epoch)}
    sources["warehouse.toml"] = _Source(configuration, "warehouse.toml", fixed=False)
    for source in sources.values():
        copied = target / source.into
        copied.parent.mkdir(parents=True, exist_ok=True)
        if source.fixed and not copy:
            linked += store_of(source.path).link_or_copy(source.path, copied)
        else:
            shutil.copyfile(source.path, copied)
        if (problem := _problem(copied, source.into)) is not None:
            raise BackupError(f"{source.path} is damaged: {problem}; `stream-wh check` says what to do")
        digest = _digest(copied)
        store_of(copied).sync_file(copied)
        directories.update((copied.parent, *copied.parent.relative_to(target).parents))
        backup_files.append(BackupFile(source.into, copied.stat().st_size, digest))
        after(source.into)
    for directory in {target / relative for relative in directories}:
        store_of(directory).sync_directory(directory)
    return tuple(backup_files), linked


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _problem(path: Path, into: str) -> str | None:
    """Return the damage of a file, as far as the file itself shows it, or None."""
    if into.endswith(".parquet"):
        return damage(path)
    if into.startswith(f"root/{DIRECTORY}/"):
        return None if is_intact_shard(path.name, path.read_bytes()) else "its bytes changed after it was written"
    if into.startswith("root/epochs/"):
        try:
            read_record(path, _Record)
        except RecordDamagedError as error:
            return error.reason
    return None


def _sources(root: Path, epoch: Epoch) -> Iterator[_Source]:
    yield from _record_sources(root, epoch)
    for state in epoch.tables:
        yield _Source(root / state.schema_file, f"root/{state.schema_file}")
        for path, version in ((state.path, state.version), *((side.path, side.version) for side in state.sides)):
            if version >= 0:
                yield from _table_sources(root, epoch, path, version)
    for receipt in sorted((root / "erasures").glob("*.json")):
        yield _Source(receipt, f"root/erasures/{receipt.name}", fixed=False)
    for finding in finding_files(root, epoch):
        yield _Source(finding, f"root/findings/{finding.name}", fixed=False)


def _record_sources(root: Path, epoch: Epoch) -> Iterator[_Source]:
    """Yield the epoch, its plan (an unfinished erasure needs it), and the records of earlier landing files."""
    ledgers = [number for number in numbers(root, "ledger") if number <= epoch.number]
    base = max(ledgers, default=-1)
    for kind in ("epoch", "plan"):
        path = record_path(root, epoch.number, "epoch" if kind == "epoch" else "plan")
        if kind == "epoch" or path.exists():
            yield _Source(path, f"root/epochs/{path.name}")
    if ledgers:
        path = record_path(root, base, "ledger")
        yield _Source(path, f"root/epochs/{path.name}")
        for name in ledger_shards(root, base):
            yield _Source(root / DIRECTORY / name, f"root/{DIRECTORY}/{name}")
    for number in range(base + 1, epoch.number):
        past = record_path(root, number, "past")
        path = past if past.exists() else record_path(root, number, "epoch")
        yield _Source(path, f"root/epochs/{past.name}")  # nobody reads it: its files are not here


def _table_sources(root: Path, epoch: Epoch, table: str, version: int) -> Iterator[_Source]:
    """Yield the data files of a table at a version, and the files of its log up to this version."""
    pinned = epoch.entry(table)
    if pinned is not None and entry_path(root / table, pinned.version).exists():
        require_entry(root / table, LogEntry(pinned.version, pinned.sha256))
    state, log = sources_of(root / table, version)
    for path in log:
        yield _Source(path, f"root/{table}/_delta_log/{path.name}")
    for name in state.files:
        yield _Source(root / table / name, f"root/{table}/{name}")
        summary = summary_path(root / table / name)
        if summary.exists():
            yield _Source(summary, f"root/{summary.relative_to(root).as_posix()}")


def read_backup(directory: Path) -> Backup:
    """Return the contents of a backup.

    Raises
    ------
    BackupError
        When there is no backup, it is incomplete, or it names files outside itself.

    """
    try:
        backup = read_record(directory / _RECORD, Backup)
    except FileNotFoundError:
        if (directory / _BEGUN).exists():
            reason = f"holds a backup that was stopped before it was whole; run `stream-wh backup {quote(str(directory))}` again"
        else:
            reason = "holds no backup"
        raise BackupError(f"{directory} {reason}") from None
    for file in backup.files:
        if PurePosixPath(file.path).is_absolute() or ".." in PurePosixPath(file.path).parts:
            raise BackupError(
                f"{directory} names {file.path}, which is not in it: no backup of stream-wh does; restore another backup"
            )
    return backup


def verify(directory: Path) -> Backup:
    """Read every file of a backup and compare it with its size and sum.

    Raises
    ------
    BackupError
        When a file is missing or damaged; all of them are counted, the first is named.

    """
    backup = read_backup(directory)
    damaged = [
        file.path
        for file in backup.files
        if not (path := directory / file.path).is_file() or path.stat().st_size != file.size or _digest(path) != file.sha256
    ]
    if damaged:
        raise BackupError(f"{directory}: {len(damaged)} file(s) are missing or damaged, first {damaged[0]}; take another backup")
    return backup
