"""Landing objects in a store as files: their identity, and their local copies, which are read instead.

An object is known by its name, size and tag: the time of its :class:`LandingFile` is a number made from the tag. A copy has this
number as its modification time, so landing files and copies are checked in the same way. Copies are in the cache directory, in a
folder for each warehouse and landing directory. The process that holds the writer lock removes them once they are loaded.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from warehouse.errors import FileProblem, PlatformError
from warehouse.ingest.files import LandingFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Stream
    from warehouse.objects.path import ObjectPath

__all__ = ["copied", "drop_copies", "object_time", "objects_at"]

_AT_ONCE = 8
_MOST_TIME = (1 << 31) * 1_000_000_000
"""Nanoseconds that every file system can give a file as its time."""
_OF_THE_NAME = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ENOTEMPTY)


def object_time(tag: str) -> int:
    """Return the number that replaces an object's time in its identity.

    >>> object_time('"d41d8"') == object_time('"d41d9"')
    False
    """
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:8], "big") % _MOST_TIME


def objects_at(store: ObjectPath, paths: Iterable[str]) -> list[LandingFile]:
    """Return the objects that exist, with a request for each name."""

    def look(path: str) -> LandingFile | None:
        try:
            size, tag = (store / path).tag()
        except FileNotFoundError:
            return None
        return LandingFile(path, size, object_time(tag))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [file for file in pool.map(look, paths) if file is not None]


def copied(stream: Stream, files: Sequence[LandingFile]) -> list[FileProblem]:
    """Copy the objects that are not copied yet, and return a problem for each that cannot be; nothing to do for local landings.

    Raises
    ------
    PlatformError
        When the cache directory has no room, or cuts times.
    StoreBusyError, StorageFailedError
        When the store does not answer, or refuses.

    """
    store = stream.store
    if store is None:
        return []
    absent = [file for file in files if not _is_there(stream.landing / file.path, file)]
    if not absent:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(absent))) as pool:
        found = list(pool.map(lambda file: _copied(store, stream.landing, file), absent))
    return [problem for problem in found if problem]


def drop_copies(stream: Stream) -> None:
    """Remove all copies of a stream's objects; the caller holds the writer lock."""
    if stream.store is not None:
        shutil.rmtree(stream.landing, ignore_errors=True)


def _is_there(copy: Path, file: LandingFile) -> bool:
    try:
        facts = copy.stat()
    except OSError:
        return False
    return (facts.st_size, facts.st_mtime_ns) == (file.size, file.mtime_ns)


def _copied(store: ObjectPath, landing: Path, file: LandingFile) -> FileProblem | None:
    target = landing / file.path
    try:
        landing.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.touch()
    except OSError as error:
        return _no_copy(target, file, error)
    try:
        try:
            tag = (store / file.path).download(temporary)
        except FileNotFoundError:
            return FileProblem(file.path, "vanished", "it is not in the store any more")
        if (temporary.stat().st_size, object_time(tag)) != (file.size, file.mtime_ns):
            return FileProblem(file.path, "changed", "it changed while it was being loaded")
        os.utime(temporary, ns=(file.mtime_ns, file.mtime_ns))
        temporary.replace(target)
    except OSError as error:
        return _no_copy(target, file, error)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    if not _is_there(target, file):
        raise PlatformError(f"{target.parent}: its file system cuts times of files; name another place by $STREAM_WH_CACHE")
    return None


def _no_copy(target: Path, file: LandingFile, error: OSError) -> FileProblem:
    """Return the problem of a name that no file can have together with the others, such as ``a`` with ``a/b``."""
    if error.errno in _OF_THE_NAME:
        return FileProblem(file.path, "name", f"no file can have its name here ({error.strerror}); give the object another name")
    raise PlatformError(
        f"{target}: {error.strerror}; copies of landing objects need room there: name another place by $STREAM_WH_CACHE"
    ) from error
