"""Files that survive a power loss: written whole under a temporary name, linked into place, made durable."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["sync_directory", "sync_file", "write_exclusive"]


def write_exclusive(path: Path, content: bytes) -> None:
    """Write a file durably; readers see the whole file or none.

    Raises
    ------
    FileExistsError
        When the name is taken.

    """
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


def sync_file(path: Path) -> None:
    """Force a file's content to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_directory(directory: Path) -> None:
    """Force a directory's entries to the disk."""
    sync_file(directory)
