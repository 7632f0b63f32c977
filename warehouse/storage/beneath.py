"""Files below a directory, opened one directory after the other, so that no symbolic link on the way is ever followed.

Anybody who can write to a landing directory can replace a directory by a link. Every system call looks a path up again, but not
a directory that is held open (openat(2), ``O_NOFOLLOW``). A file that is moved keeps one of its two names if power is lost;
between file systems it is copied, made durable under its new name and then deleted.
"""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
import stat
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from warehouse.storage.local_disk import sync_handle

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["facts_beneath", "move_beneath", "remove_beneath", "restore_beneath"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY


def facts_beneath(top: Path, relative: str) -> os.stat_result | None:
    """Return the facts of a regular file below a directory; None if there is no such file, or a link on the way."""
    try:
        with _parent(top, relative) as (directory, name):
            facts = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return None
    return facts if stat.S_ISREG(facts.st_mode) else None


def remove_beneath(top: Path, relative: str) -> None:
    """Delete a file below a directory.

    Raises
    ------
    OSError
        When it is not there, or a link is on the way.

    """
    with _parent(top, relative) as (directory, name):
        os.unlink(name, dir_fd=directory)
        sync_handle(directory, f"{top}/{relative}")


def move_beneath(top: Path, relative: str, into: Path, target: str) -> None:
    """Move a file from below one directory to below another, whose directories are made; a file of that name is replaced.

    Raises
    ------
    OSError
        When it is not there, or a link is on either way.

    """
    into.mkdir(parents=True, exist_ok=True)
    with _parent(top, relative) as (directory, name), _parent(into, target, make=True) as (other, new):
        try:
            os.rename(name, new, src_dir_fd=directory, dst_dir_fd=other)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(directory, name, other, new)
            os.unlink(name, dir_fd=directory)
        sync_handle(other, f"{into}/{target}")
        sync_handle(directory, f"{top}/{relative}")


def restore_beneath(source: Path, into: Path, target: str) -> None:
    """Move a file back to below a directory, or finish such a move; a file that does not exist is skipped."""
    if facts_beneath(source.parent, source.name) is None:
        return
    if facts_beneath(into, target) is None:
        move_beneath(source.parent, source.name, into, target)
    elif filecmp.cmp(source, into / target, shallow=False):
        source.unlink()  # it was copied from another file system, and the copy not ended


@contextmanager
def _parent(top: Path, relative: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the directory of a file, and yield its handle with the file's name."""
    *names, last = PurePosixPath(relative).parts
    handle = os.open(top, _DIRECTORY)
    try:
        for name in names:
            if make and not _is_there(name, handle):
                os.mkdir(name, dir_fd=handle)
            inner = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle, last
    finally:
        os.close(handle)


def _is_there(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _copy(directory: int, name: str, other: int, new: str) -> None:
    temporary = f".{new[:200]}.moving.tmp"  # one that was left is written over when the move is tried again
    with (
        open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory), "rb") as source,  # noqa: PTH123 - a handle
        open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666, dir_fd=other), "wb") as copy,  # noqa: PTH123 - same
    ):
        facts = os.fstat(source.fileno())
        shutil.copyfileobj(source, copy)
        copy.flush()
        os.fchmod(copy.fileno(), stat.S_IMODE(facts.st_mode))
        os.utime(copy.fileno(), ns=(facts.st_atime_ns, facts.st_mtime_ns))
        sync_handle(copy.fileno(), new)
    os.replace(temporary, new, src_dir_fd=other, dst_dir_fd=other)
    sync_handle(other, new)
