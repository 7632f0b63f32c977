"""Landing objects in a store as files: their identity, and the local copies that are read.

An object is known by its name, size and tag: the time of its :class:`LandingFile` is computed from the tag. A copy has this
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

__all__ = ["copy_objects", "drop_copies", "object_time", "objects_at"]

_THREADS = 8
_MOST_TIME = (1 << 31) * 1_000_000_000
"""Nanoseconds that every file system can give a file as its time."""
_NAME_ERRORS = (errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ENOTEMPTY)


def object_time(tag: str) -> int:
    """Return the number that an object has instead of a modification time.

    >>> object_time('"d41d8"') == object_time('"d41d9"')
    False
    """
    return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:8], "big") % _MOST_TIME


def objects_at(store: ObjectPath, paths: Iterable[str]) -> list[LandingFile]:
    """Return the objects of these names that exist, by a request for each name."""

    def tagged_file(path: str) -> LandingFile | None:
        try:
            size, tag = (store / path).tag()
        except FileNotFoundError:
            return None
        return LandingFile(path, size, object_time(tag))

    with ThreadPoolExecutor(_THREADS) as pool:
        return [file for file in pool.map(tagged_file, paths) if file is not None]


def copy_objects(stream: Stream, files: Sequence[LandingFile]) -> list[FileProblem]:
    """Copy the objects that are not copied yet, and return a problem for each object that cannot be copied.

    A local landing needs no copies.

    Raises
    ------
    PlatformError
        When the cache directory has no space, or its file system truncates times.
    StoreBusyError, StorageFailedError
        When the store does not answer, or refuses the request.

    """
    store = stream.store
    if store is None:
        return []
    absent = [file for file in files if not _is_copied(stream.landing / file.path, file)]
    if not absent:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(absent))) as pool:
        problems = list(pool.map(lambda file: _copy_object(store, stream.landing, file), absent))
    return [problem for problem in problems if problem]


def drop_copies(stream: Stream) -> None:
    """Remove all copies of a stream's objects; the caller holds the writer lock."""
    if stream.store is not None:
        shutil.rmtree(stream.landing, ignore_errors=True)


def _is_copied(copy: Path, file: LandingFile) -> bool:
    try:
        file_stat = copy.stat()
    except OSError:
        return False
    return (file_stat.st_size, file_stat.st_mtime_ns) == (file.size, file.mtime_ns)


def _copy_object(store: ObjectPath, landing: Path, file: LandingFile) -> FileProblem | None:
    target = landing / file.path
    try:
        landing.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
        temporary.touch()
    except OSError as error:
        return _copy_problem(target, file, error)
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
        return _copy_problem(target, file, error)
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    if not _is_copied(target, file):
        raise PlatformError(f"{target.parent}: its file system cuts times of files; name another place by $STREAM_WH_CACHE")
    return None


def _copy_problem(target: Path, file: LandingFile, error: OSError) -> FileProblem:
    """Return the problem of an object whose name no file can have beside the others, such as ``a`` beside ``a/b``."""
    if error.errno in _NAME_ERRORS:
        return FileProblem(file.path, "name", f"no file can have its name here ({error.strerror}); give the object another name")
    raise PlatformError(
        f"{target}: {error.strerror}; copies of landing objects need room there: name another place by $STREAM_WH_CACHE"
    ) from error
