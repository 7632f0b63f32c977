"""Files that survive a power loss: written whole under a temporary name, linked into place, made durable.

The order: a data file and the directories above it reach the disk before the entry of a log that names the file, the entry
before the record of the epoch. Every sync goes through :func:`_force`, every new name through :func:`_named`, and both tell
those who watch (:func:`watching`), so that a test records the order, and lets any one of them fail.

After a sync that failed nothing of the attempt is trusted: the kernel may have dropped the pages and call them clean, and a
second sync would succeed. So who writes removes what it wrote, and the retry writes it again from its source.

In an object store a put is all of that at once: it is durable when it is answered, whole or not there, and a conditional
one (``If-None-Match: *``) fails when the name is taken. What stands for a whole file there is one object.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from warehouse.errors import NotDurableError
from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import PurePath

__all__ = [
    "Watcher",
    "link_or_copy",
    "make_directory",
    "remove_tree",
    "sync_directory",
    "sync_file",
    "sync_handle",
    "sync_tree",
    "undone_on_failure",
    "watching",
    "write_exclusive",
    "write_replacing",
]

Watcher = Callable[[Literal["sync", "name"], Path], None]
"""Is told before a file or directory is synced, and after a file got its final name; an ``OSError`` it raises is the disk's."""

_WORKERS = 8
_watchers: list[Watcher] = []


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Tell a function of each sync and each new name, in all threads."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def _force(handle: int, path: Path) -> None:
    """Force what a handle is open on to the disk.

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


def write_exclusive(path: Path, content: bytes) -> None:
    """Write a file durably; readers see the whole file or none.

    Raises
    ------
    FileExistsError
        When the name is taken.
    NotDurableError
        When the disk does not confirm it; the name is free again then.

    """
    if isinstance(path, ObjectPath):
        path.put(content, "create")
        return
    make_directory(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write(temporary, content)
        os.link(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    _named(path)
    with undone_on_failure(lambda: path.unlink(missing_ok=True)):
        sync_directory(path.parent)


def write_replacing(path: Path, content: bytes) -> None:
    """Write a file durably, in place of one of that name; readers see the whole former or the whole new one.

    Raises
    ------
    NotDurableError
        When the disk does not confirm it; the former one is there, or the new one: write it again.

    """
    if isinstance(path, ObjectPath):
        path.put(content)
        return
    make_directory(path.parent)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with undone_on_failure(lambda: temporary.unlink(missing_ok=True)):
        _write(temporary, content)
        temporary.replace(path)
    _named(path)
    sync_directory(path.parent)


def link_or_copy(source: Path, target: Path) -> bool:
    """Give a file that nobody changes a further name, and return whether it is a link.

    Without links (another file system, one that has none, too many of one file) it is a copy, forced to the disk.

    Raises
    ------
    FileExistsError, FileNotFoundError
        When the name is taken, or the file is not there.

    """
    try:
        os.link(source, target)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:
        with undone_on_failure(lambda: target.unlink(missing_ok=True)):
            shutil.copyfile(source, target)
            sync_file(target)
        return False
    return True


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        _force(stream.fileno(), path)


@contextmanager
def undone_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call ``undo`` when the block raises; the error stays that of the block, whatever ``undo`` can do on a failing disk.

    A process that is stopped undoes nothing: the next one judges what it left.
    """
    try:
        yield
    except Exception:
        with suppress(OSError):
            undo()
        raise


def make_directory(directory: Path) -> None:
    """Make a directory and those above it that are not there, so that they survive a power loss.

    An empty one is synced as if it were new: a process that made it may have ended before it did that.
    """
    if isinstance(directory, ObjectPath):
        return
    unsure: list[Path] = []
    while not _has_entries(directory):
        unsure.append(directory)
        directory = directory.parent
    for each in reversed(unsure):
        each.mkdir(exist_ok=True)
        sync_directory(each.parent)


def _has_entries(directory: Path) -> bool:
    try:
        with os.scandir(directory) as entries:
            return any(True for _ in entries)
    except FileNotFoundError:
        return False


def remove_tree(directory: Path, *, ignore_errors: bool = False) -> None:
    """Delete a directory with all that is in it; with ``ignore_errors``, as much of it as can be."""
    if isinstance(directory, ObjectPath):
        directory.unlink_below()
    else:
        shutil.rmtree(directory, ignore_errors=ignore_errors)


def sync_tree(top: Path, files: Iterable[PurePath]) -> None:
    """Force files (relative to ``top``) and all directories from them up to ``top`` to the disk, several at a time.

    Raises
    ------
    NotDurableError
        When the disk does not confirm one of them: none is to be trusted.

    """
    if isinstance(top, ObjectPath):
        return
    files = list(files)
    if not files:
        return
    directories = {top / parent for file in files for parent in file.parents}
    _sync_all([top / file for file in files])
    _sync_all(sorted(directories, key=lambda path: len(path.parts), reverse=True))


def _sync_all(paths: list[Path]) -> None:
    if len(paths) == 1:
        sync_file(paths[0])
        return
    with ThreadPoolExecutor(min(_WORKERS, len(paths)), thread_name_prefix="sync") as pool:
        for _ in pool.map(sync_file, paths):
            pass


def sync_file(path: Path) -> None:
    """Force a file's content to the disk."""
    if isinstance(path, ObjectPath):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        _force(handle, path)
    finally:
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Force a directory's entries to the disk."""
    sync_file(directory)


def sync_handle(handle: int, name: str) -> None:
    """Force what a handle is open on to the disk; ``name`` is what errors call it."""
    _force(handle, Path(name))
