"""A store on a disk of this machine: files that survive a power loss.

A file is written completely under a temporary name, linked to its name, and synced. A data file and the directories above it
reach the disk before the log entry that names the file, and the entry before the record of the epoch. :func:`_force` makes every
sync and :func:`_named` every new name; both call the functions registered with :func:`watching`, so that a test can record the
order and make any one fail.

After a failed sync no file of the attempt is trusted: the kernel may have dropped the pages and marked them clean, and a second
sync would succeed. So the writer removes its files, and the retry writes them again from the source.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Literal

from warehouse.errors import NotDurableError
from warehouse.storage.companion_files import companions
from warehouse.storage.side_by_side import each

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import PurePath

__all__ = ["STAGED", "LocalDisk", "Watcher", "file_identity", "sync_handle", "undone_on_failure", "watching"]

Watcher = Callable[[Literal["sync", "name"], Path], None]
"""Called before a file or directory is synced, and after a file got its final name; an ``OSError`` it raises is the disk's."""

STAGED = "_staged"
"""The directory of a table into which its next data files are written."""

_SCRATCH = "_checkpoint"
"""The directory of a table in which files are made that get their names when they are finished."""

_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Call a function at each sync and each new name, in all threads."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


@contextmanager
def undone_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call ``undo`` when the block raises; the block's error is raised, even if ``undo`` fails on a failing disk.

    A process that is stopped undoes nothing; the next one handles its leftovers.
    """
    try:
        yield
    except Exception:
        with suppress(OSError):
            undo()
        raise


def file_identity(path: str | Path) -> tuple[int, int, int] | None:
    """Return facts that change when a file is written again: inode, time of the last change in nanoseconds, bytes.

    None if the file does not exist, or is not on a disk of this machine.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - a path object costs more than the call
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def sync_handle(handle: int, name: str) -> None:
    """Sync the file of a handle to the disk; errors call it ``name``."""
    _force(handle, Path(name))


def _force(handle: int, path: Path) -> None:
    """Sync the file of a handle to the disk.

    Raises
    ------
    NotDurableError
        When the disk does not confirm it.

    """
    try:
        for watcher in _watchers:
            watcher("sync", path)
        os.fsync(handle)
    except OSError as error:
        raise NotDurableError(str(path), error.strerror or str(error)) from error


def _named(path: Path) -> None:
    for watcher in _watchers:
        watcher("name", path)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        _force(stream.fileno(), path)


def _has_entries(directory: Path) -> bool:
    try:
        with os.scandir(directory) as entries:
            return any(True for _ in entries)
    except FileNotFoundError:
        return False


class LocalDisk:
    """The file system of this machine; see :class:`warehouse.storage.store.Store`."""

    local_paths = True
    cheap_requests = True
    late_commits = False
    keeps_deleted = False

    def entry_names(self, directory: Path) -> list[str]:
        """Return the names in a directory."""
        try:
            return [entry.name for entry in os.scandir(directory)]
        except FileNotFoundError:
            return []

    # --- writing ---

    def write_exclusive(self, path: Path, content: bytes) -> None:
        """Write a file durably under a name that must be free."""
        self.make_directory(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            _write(temporary, content)
            os.link(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        _named(path)
        with undone_on_failure(lambda: path.unlink(missing_ok=True)):
            self.sync_directory(path.parent)

    def write_replacing(self, path: Path, content: bytes) -> None:
        """Write a file durably, in place of one of that name."""
        self.make_directory(path.parent)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        with undone_on_failure(lambda: temporary.unlink(missing_ok=True)):
            _write(temporary, content)
            temporary.replace(path)
        _named(path)
        self.sync_directory(path.parent)

    def link_or_copy(self, source: Path, target: Path) -> bool:
        """Give a file a further name; where there are no links, or too many of one file, it is a copy, forced to the disk."""
        try:
            os.link(source, target)
        except (FileExistsError, FileNotFoundError):
            raise
        except OSError:
            with undone_on_failure(lambda: target.unlink(missing_ok=True)):
                shutil.copyfile(source, target)
                self.sync_file(target)
            return False
        return True

    @contextmanager
    def writing_into(self, directory: Path) -> Iterator[Path]:
        """Yield the directory itself, which is made."""
        self.make_directory(directory)
        yield directory

    @contextmanager
    def scratch_directory(self, table: Path) -> Iterator[Path]:
        """Yield a directory of the table's own, so that links lead from its files and to them."""
        scratch = table / _SCRATCH
        self.remove_tree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        try:
            yield scratch
        finally:
            self.remove_tree(scratch, ignore_errors=True)

    def bring(self, files: Iterable[Path], scratch: Path) -> None:
        """Link the files."""
        for file in files:
            os.link(file, scratch / file.name)

    def publish(self, scratch: Path, names: Iterable[str], directory: Path) -> None:
        """Force the files to the disk, and link them then."""
        names = list(names)
        self.sync_tree(scratch, [PurePosixPath(name) for name in names])
        for name in names:
            with suppress(FileExistsError):
                os.link(scratch / name, directory / name)
        self.sync_directory(directory)

    def present(self, top: Path, files: Iterable[str]) -> set[str]:
        """Look at each file."""
        return {file for file in files if os.path.lexists(top / file)}

    def make_directory(self, directory: Path) -> None:
        """Make a directory and those above it that are not there, so that they survive a power loss.

        An empty one is synced as if it were new: a process that made it may have ended before it did that.
        """
        unsure: list[Path] = []
        while not _has_entries(directory):
            unsure.append(directory)
            directory = directory.parent
        for missing in reversed(unsure):
            missing.mkdir(exist_ok=True)
            self.sync_directory(missing.parent)

    # --- a table's new files ---

    def staging_directory(self, table: Path) -> Path:
        """Return the one directory of the table from which files are moved to their partitions."""
        return table / STAGED

    def take_back(self, table: Path, files: Iterable[PurePath]) -> None:
        """Remove files that the disk did not confirm, since their bytes may be wrong; the next attempt writes them again."""
        for file in files:
            (table / file).unlink(missing_ok=True)
            for other in companions(table / file):
                other.unlink(missing_ok=True)

    # --- removing ---

    def remove_tree(self, directory: Path, *, ignore_errors: bool = False) -> None:
        """Delete a directory with all that is in it."""
        shutil.rmtree(directory, ignore_errors=ignore_errors)

    def remove_file(self, path: Path) -> None:
        """Delete a file with its companions, and the partition directories that are empty then."""
        path.unlink(missing_ok=True)
        for other in companions(path):
            other.unlink(missing_ok=True)
        for parent in (path.parent, path.parent.parent):
            if "=" not in parent.name or not parent.is_dir() or any(parent.iterdir()):
                return
            parent.rmdir()

    # --- making durable ---

    def sync_tree(self, top: Path, files: Iterable[PurePath]) -> None:
        """Force files (relative to ``top``) and all directories from them up to ``top`` to the disk, several at a time."""
        files = list(files)
        if not files:
            return
        directories = {parent for file in files for parent in file.parents}
        self._sync_all([top / file for file in files])
        self._sync_all([top / parent for parent in sorted(directories, key=lambda path: len(path.parts), reverse=True)])

    def _sync_all(self, paths: list[Path]) -> None:
        each(self.sync_file, paths)

    def sync_file(self, path: Path) -> None:
        """Force a file's content to the disk."""
        handle = os.open(path, os.O_RDONLY)
        try:
            _force(handle, path)
        finally:
            os.close(handle)

    def sync_directory(self, directory: Path) -> None:
        """Force a directory's entries to the disk."""
        self.sync_file(directory)

    # --- facts ---

    def named_since(self, path: Path) -> int:
        """Return the later time of its modification and its change of status: a new link has an old time of modification."""
        facts = path.stat()
        return max(facts.st_mtime_ns, facts.st_ctime_ns) // 1000

    def free_bytes(self, directory: Path) -> int | None:
        """Return how many bytes the disk has left."""
        return shutil.disk_usage(directory).free

    def overtaken(self, error: OSError) -> bool:  # noqa: ARG002 - as the protocol has it
        """Return False: the writer lock keeps other processes out."""
        return False
