"""The landing directory: which files it has, and which of them are new, changed or gone.

A file's identity is its relative path, size and modification time while it exists. Files whose names begin with ``.`` or ``_`` or
end in ``.tmp`` are still being written and are ignored, and so are names that end in ``._COPYING_``, which Spark silently skips;
``k=v`` directories are just directories; links that lead out of the landing directory are not followed.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import CODECS
from warehouse.catalog.patterns import matches, may_contain_match
from warehouse.errors import FileProblem, LandingError, StorageFailedError, StoreBusyError
from warehouse.ingest.files import LandingFile, LeftOut, ListedFile
from warehouse.ingest.loaded_files import Listing, order, ranges_of
from warehouse.ingest.object_copies import object_time
from warehouse.objects.path import ObjectPath, object_path
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path


__all__ = [
    "KnownFiles",
    "LandingStatus",
    "changed_file_problems",
    "landing_status",
    "list_landing",
    "listed_files",
    "name_problem",
    "open_regular",
    "partial_landing_status",
]

_OTHER_CODECS = (".7z", ".deflate", ".lz4", ".snappy", ".xz", ".zip")
"""Endings of files that Spark decompresses without the bounds on expansion, or that nothing decompresses."""


@dataclass(frozen=True)
class KnownFiles:
    """The files of a landing directory that earlier epochs know: loaded and left-out files by path, and paths to load again."""

    loaded: Mapping[str, LandingFile]
    left_out: Mapping[str, LeftOut]
    reload: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LandingStatus:
    """The files of a landing directory by their state.

    ``new`` files will be loaded; ``changed`` ones were loaded with another size or time and wait for ``reload``; ``unreadable``
    ones failed earlier and have not changed; ``gone`` ones were known and no longer exist; ``settling`` files are younger than
    ``landing_settle``. ``empty``: the directory has no file at all.
    """

    new: tuple[LandingFile, ...]
    changed: tuple[LandingFile, ...]
    unreadable: tuple[LeftOut, ...]
    gone: tuple[str, ...]
    settling: int
    empty: bool = False


def list_landing(landing: Path, pattern: str, *, after: str | None = None) -> Iterator[LandingFile]:
    """Yield the files of :func:`listed_files` as objects."""
    return (LandingFile(*file) for file in listed_files(landing, pattern, after=after))


def listed_files(landing: Path, pattern: str, *, after: str | None = None) -> Iterator[ListedFile]:
    """Yield the files of a landing directory or place in a store, sorted by the names on their paths.

    :mod:`warehouse.catalog.patterns` explains ``pattern``; folders that cannot have such a file are skipped. In a store only
    objects with names after ``after`` are listed.

    Raises
    ------
    LandingError
        When it does not exist or cannot be listed.

    """
    if not store_of(landing).local_paths:
        yield from sorted(_objects(object_path(landing), pattern, after), key=lambda file: order(file[0]))
        return
    if not landing.is_dir():
        raise LandingError(f"the landing directory {landing} does not exist; create it or correct `landing`")
    yield from _walk(landing, "", pattern, os.path.realpath(landing))


def _objects(landing: ObjectPath, pattern: str, after: str | None) -> Iterator[ListedFile]:
    try:
        for path, size, tag in landing.tagged(after):
            if matches(path, pattern) and not any(map(_is_ignored, path.split("/"))):
                yield path, size, object_time(tag)
    except FileNotFoundError:
        raise LandingError(f"{landing} does not exist; make the bucket or correct `landing`") from None
    except (StorageFailedError, StoreBusyError) as error:
        raise LandingError(f"{landing} cannot be listed ({error.reason}); check `landing` and the credentials") from error


def _is_ignored(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith((".tmp", "._COPYING_"))


def name_problem(path: str) -> tuple[str, str] | None:
    """Return (reason, message) if Spark cannot read a file's relative path, or would expand it; None otherwise."""
    if path.endswith(_OTHER_CODECS):
        return "name", f"it is compressed, and of that only {', '.join(CODECS)} are read: deliver it as one of these, or plain"
    if "\\" not in path and path.isprintable() and ":" not in path.rsplit("/", 1)[-1]:
        return None
    return "name", "its name has a colon, a backslash, a control character, or bytes that are not UTF-8; rename it"


def _walk(directory: Path, prefix: str, pattern: str, real_landing: str) -> Iterator[ListedFile]:
    try:
        names = os.listdir(directory)  # noqa: PTH208 - names alone: a million paths, or entries of `scandir`, take a gigabyte
    except FileNotFoundError:
        return
    except OSError as error:
        raise LandingError(f"the directory {directory} cannot be listed ({error.strerror}); check its rights") from error
    names.sort(key=_readable_name)
    for listed_name in names:
        name = _readable_name(listed_name)
        if _is_ignored(name):
            continue
        relative, path = prefix + name, f"{directory}/{listed_name}"
        try:
            file_stat = os.lstat(path)
            if stat.S_ISDIR(file_stat.st_mode):
                if may_contain_match(relative, pattern):
                    yield from _walk(directory / listed_name, relative + "/", pattern, real_landing)
                continue
            if stat.S_ISLNK(file_stat.st_mode):
                if not _leads_inside(path, real_landing):
                    continue
                file_stat = os.stat(path)  # noqa: PTH116 - no `Path` is made for each of a million names
            if stat.S_ISREG(file_stat.st_mode) and matches(relative, pattern):
                yield relative, file_stat.st_size, file_stat.st_mtime_ns
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ELOOP):  # gone meanwhile, or a link in a circle
                continue
            raise LandingError(f"{path} cannot be looked at ({error.strerror}); check its rights") from error


def _readable_name(name: str) -> str:
    """Return a name as text, bytes of it that are not UTF-8 as escapes."""
    return name if name.isascii() else os.fsencode(name).decode(errors="backslashreplace")


def _leads_inside(path: str, real_landing: str) -> bool:
    return os.path.realpath(path).startswith(real_landing + os.sep)


def landing_status(
    files: Iterable[ListedFile], known: KnownFiles, *, settle: int, clock: int, reading: str = ""
) -> LandingStatus:
    """Return the files by their state; ``settle`` and ``clock`` are microseconds.

    ``reading`` is the digest of the current declaration's reading keys: a file that was left out under another digest is new.
    ``files`` are in the order of :func:`listed_files`. A shard of known files is read only if one of its files changed or is
    missing.
    """
    sorter = _FileSorter(known, settle, clock, reading)
    listing = Listing(files)
    reload_keys = sorted(map(order, known.reload))
    begin = ""
    for path_range in ranges_of(known.loaded):
        end = len(reload_keys) if path_range.end is None else bisect_left(reload_keys, path_range.end)
        has_reload = bisect_left(reload_keys, begin) < end
        begin = path_range.end or ""
        files_of_range = listing.take(replace(path_range, shard=None) if has_reload else path_range)
        if files_of_range is not None:
            sorter.sort(files_of_range, path_range.files())
    sorter.sort(listing.rest(), {})
    return sorter.result(empty=listing.empty)


def partial_landing_status(files: Iterable[LandingFile], known: KnownFiles, *, clock: int, reading: str = "") -> LandingStatus:
    """Return the state of a part of the directory's files; it says nothing about the other files."""
    sorter = _FileSorter(known, 0, clock, reading)
    part = list(files)
    sorter.sort(part, {file.path: known.loaded[file.path] for file in part if file.path in known.loaded})
    return replace(sorter.result(empty=False), gone=())


class _FileSorter:
    """Sorts files by their state, range by range of the listing."""

    def __init__(self, known: KnownFiles, settle: int, clock: int, reading: str) -> None:
        self._known, self._settle, self._clock, self._reading = known, settle, clock, reading
        self._new: list[LandingFile] = []
        self._changed: list[LandingFile] = []
        self._unreadable: list[LeftOut] = []
        self._gone: set[str] = set()
        self._failed_listed: set[str] = set()
        self._settling = 0

    def sort(self, files: Sequence[LandingFile], loaded: Mapping[str, LandingFile]) -> None:
        """Sort the files of a range of the listing; ``loaded`` are all loaded files of that range."""
        known = self._known
        for file in files:
            loaded_file = loaded.get(file.path)
            failed = known.left_out.get(file.path)
            if failed is not None:
                self._failed_listed.add(file.path)
            if file.path in known.reload:
                self._new.append(file)
            elif loaded_file is not None:
                if loaded_file != file:
                    self._changed.append(file)
            elif failed is not None and failed.file == file and failed.reading in ("", self._reading):
                self._unreadable.append(failed)
            elif self._settle and self._clock - file.mtime_ns // 1000 < self._settle:
                self._settling += 1
            else:
                self._new.append(file)
        self._gone.update(loaded.keys() - {file.path for file in files})

    def result(self, *, empty: bool) -> LandingStatus:
        known = self._known
        failed = {path for path in known.left_out.keys() - self._failed_listed if path not in known.loaded}
        gone = tuple(sorted(self._gone | failed))
        return LandingStatus(tuple(self._new), tuple(self._changed), tuple(self._unreadable), gone, self._settling, empty)


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file to read bytes; if a pipe or device has replaced it, raise an error instead of waiting.

    Raises
    ------
    OSError
        When it is not a regular file, or cannot be opened.

    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    stream = os.fdopen(handle, "rb")
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is no regular file")
    return stream


def changed_file_problems(landing: Path, files: Sequence[LandingFile]) -> list[FileProblem]:
    """Return a problem for every file that is deleted, or has another size or time than in the plan.

    A file that has become a link out of the landing directory, itself or through a directory above it, counts as deleted.
    """
    problems = []
    real_landing = os.path.realpath(landing)
    for file in files:
        path = landing / file.path
        try:
            file_stat = path.stat()
            outside = not _leads_inside(str(path), real_landing) or not stat.S_ISREG(file_stat.st_mode)
        except OSError as error:
            problems.append(FileProblem(file.path, "vanished", f"it cannot be opened any more: {error.strerror}"))
            continue
        if outside:
            problems.append(FileProblem(file.path, "vanished", "it leads out of the landing directory now"))
        elif (file_stat.st_size, file_stat.st_mtime_ns) != (file.size, file.mtime_ns):
            problems.append(FileProblem(file.path, "changed", "it changed while it was being loaded"))
    return problems
