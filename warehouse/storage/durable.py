"""Files that survive a power loss: written whole under a temporary name, linked into place, made durable.

In an object store a put is all of that at once: it is durable when it is answered, whole or not there, and a conditional
one (``If-None-Match: *``) fails when the name is taken. What stands for a whole file there is one object.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["remove_tree", "sync_directory", "sync_file", "write_exclusive", "write_replacing"]


def write_exclusive(path: Path, content: bytes) -> None:
    """Write a file durably; readers see the whole file or none.

    Raises
    ------
    FileExistsError
        When the name is taken.

    """
    if isinstance(path, ObjectPath):
        path.put(content, "create")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, path)
    finally:
        if temporary.is_file():
            temporary.unlink()
    sync_directory(path.parent)


def write_replacing(path: Path, content: bytes) -> None:
    """Write a file durably, in place of one of that name; readers see the whole former or the whole new one."""
    if isinstance(path, ObjectPath):
        path.put(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    sync_file(temporary)
    temporary.replace(path)
    sync_directory(path.parent)


def remove_tree(directory: Path, *, ignore_errors: bool = False) -> None:
    """Delete a directory with all that is in it; with ``ignore_errors``, as much of it as can be."""
    if isinstance(directory, ObjectPath):
        directory.unlink_below()
    else:
        shutil.rmtree(directory, ignore_errors=ignore_errors)


def sync_file(path: Path) -> None:
    """Force a file's content to the disk."""
    if isinstance(path, ObjectPath):
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Force a directory's entries to the disk."""
    sync_file(directory)
