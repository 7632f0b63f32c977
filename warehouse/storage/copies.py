"""Copies of an object store's data files on the local disk, which are read like the files of a local root.

Data files never change under their names, so a copy stays valid. A file is copied whole when a read opens it. If a read only
needs to know whether a file can hold a key, only its *tail* is copied, into a sparse file of the same size: footer, page indexes
and Bloom filters, which Parquet's writers put at the end. When the copies exceed a bound, the least recently used are
deleted; all copies of one read stay, however large.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from warehouse.errors import EpochVacuumedError, PlatformError
from warehouse.objects.client import cache_directory
from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["BOUND", "VARIABLE", "Copies", "copied_again", "copies_of", "forget_copies", "fresh_copies"]

VARIABLE = "STREAM_WH_COPIES"
BOUND = 20 * 1024**3
"""Bytes of whole copies by default."""
_GRACE = 600.0
"""Seconds for which a copy that was used stays."""
_TAIL = 64 * 1024
_AT_ONCE = 8
_TAILS, _WHOLE, _COLUMNS = "tails", "whole", "columns"
_FOOTER = struct.Struct("<I4s")
_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


def copies_of(root: Path) -> Copies | None:
    """Return the copies of a root's files; None if it is local, since files are read where they are.

    Raises
    ------
    PlatformError
        When ``$STREAM_WH_COPIES`` is no number of bytes.

    """
    if not isinstance(root, ObjectPath):
        return None
    bound = os.environ.get(VARIABLE, str(BOUND))
    if not bound.isdigit():
        raise PlatformError(f'{VARIABLE} is "{bound}"; allowed: how many bytes of copies are kept, such as {BOUND}')
    return Copies(root, _directory(root), int(bound))


def _directory(root: Path) -> Path:
    return cache_directory() / "objects" / hashlib.sha256(str(root).encode()).hexdigest()[:16]


def forget_copies(root: Path) -> int:
    """Delete the copies that this user has of a root's files, and return how many there were."""
    directory = _directory(root)
    count = sum(path.is_file() for path in directory.rglob("*"))
    shutil.rmtree(directory, ignore_errors=True)
    return count


@contextmanager
def copied_again(root: Path, files: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield where files can be read on this machine, each with its own name: under a local root, where they are.

    Files of an object store are copied for as long as the context lasts: the copies of readers do not prove that a file exists.
    """
    with fresh_copies(root) as copies:
        yield {file: file for file in files} if copies is None else dict(zip(copies.whole(files), files, strict=True))


@contextmanager
def fresh_copies(root: Path) -> Iterator[Copies | None]:
    """Yield copies of a root's files that are made for this block alone; None if it is local."""
    if not isinstance(root, ObjectPath):
        yield None
        return
    with TemporaryDirectory(prefix="stream-wh-") as scratch:
        yield Copies(root, Path(scratch), 0)


@dataclass
class Copies:
    """The copies of one root's files under a directory, ``bound`` bytes of whole copies."""

    root: ObjectPath
    directory: Path
    bound: int
    _held: dict[str, str] = field(default_factory=dict)

    def whole(self, files: Iterable[str]) -> list[str]:
        """Return where copies of files (absolute names in the store) are, in the same order.

        Raises
        ------
        EpochVacuumedError
            When one of them is gone from the store.

        """
        names = list(files)
        absent = [file for file in dict.fromkeys(names) if not self._is_held(file)]
        if absent:
            _at_once(self._fetch, absent)
            self._bounded(names)
        return [self._held[file] for file in names]

    def current(self, file: str) -> str:
        """Return the copy of a file that may be replaced under its name: the store is asked for its tag."""
        path = ObjectPath(file)
        try:
            content, tag = path.read_with_tag()
        except FileNotFoundError as error:
            raise _vacuumed_error(file) from error
        copy = self._place(_COLUMNS, f"{file}.{hashlib.sha256(tag.encode()).hexdigest()[:16]}{path.suffix}")
        if not copy.exists():
            with self._new_copy(copy) as temporary:
                temporary.write_bytes(content)
        return str(copy)

    def tails(self, files: Sequence[tuple[str, int]], needed: Callable[[list[str]], dict[str, int]]) -> list[str]:
        """Return the copies of the tails of files, or of the whole files if these are copied already.

        Parameters
        ----------
        files
            Names and bytes.
        needed
            Gets the copies, with their footers; returns for each the first byte that is needed.

        """
        self.whole(file for file, size in files if size <= _TAIL)  # which is no more than their tails
        copies = {file: self._held[file] if self._is_held(file) else str(self._place(_TAILS, file)) for file, _ in files}
        absent = [(file, size) for file, size in files if not os.path.exists(copies[file])]  # noqa: PTH110 - asked of many
        if absent:
            with ExitStack() as making:
                tails = [
                    _Tail(ObjectPath(file), size, making.enter_context(self._new_copy(Path(copies[file]))))
                    for file, size in absent
                ]
                starts = dict(zip(tails, _at_once(_Tail.fetch, tails), strict=True))
                begins = needed([str(tail.place) for tail in tails])
                _at_once(lambda tail: tail.fill(begins.get(str(tail.place), starts[tail]), starts[tail]), tails)
        return [copies[file] for file, _ in files]

    def _is_held(self, file: str) -> bool:
        cached = self._held.get(file)
        copy = cached or str(self._place(_WHOLE, file))
        if not os.path.exists(copy):  # noqa: PTH110 - a path object costs more than the look
            self._held.pop(file, None)
            return False
        if cached is None:
            os.utime(copy)
            self._held[file] = copy
        return True

    @contextmanager
    def _new_copy(self, copy: Path) -> Iterator[Path]:
        """Yield a temporary path for a copy, which is renamed when it is complete; only this user may read it."""
        temporary = copy.with_name(f".{uuid.uuid4().hex}")
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            copy.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            temporary.replace(copy)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise PlatformError(
                f"{copy}: {error.strerror}; copies of the store's files need room there: name another place by $STREAM_WH_CACHE"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _place(self, kind: str, file: str) -> Path:
        return self.directory / kind / file.removeprefix(f"{self.root}/")

    def _fetch(self, file: str) -> None:
        copy = self._place(_WHOLE, file)
        try:
            with self._new_copy(copy) as temporary:
                ObjectPath(file).download(temporary)
        except FileNotFoundError as error:
            raise _vacuumed_error(file) from error
        self._held[file] = str(copy)

    def _bounded(self, kept: Iterable[str]) -> None:
        """Delete complete copies, the least recently used first, until the rest is within the bound.

        Copies that are ``kept`` stay, and copies that another process may be reading.
        """
        kept_copies = {self._held[file] for file in kept}
        young = time.time() - _GRACE
        facts = []
        for path in (self.directory / _WHOLE).rglob("*"):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # another process did the same
            if path.is_file():
                facts.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in facts)
        for used, size, path in sorted(facts):
            if total <= self.bound:
                return
            if str(path) not in kept_copies and used < young:
                path.unlink(missing_ok=True)
                total -= size


@dataclass(frozen=True)
class _Tail:
    """The tail of a file of some size, and where it is copied to."""

    path: ObjectPath
    size: int
    place: Path

    def fetch(self) -> int:
        """Copy the footer and some bytes before it, and return the position of the first copied byte."""
        start = max(0, self.size - _TAIL)
        try:
            data = self.path.read_range(start, self.size)
            length = _FOOTER.unpack(data[-_FOOTER.size :])[0] + _FOOTER.size
            if length > len(data):
                start = max(0, self.size - length)
                data = self.path.read_range(start, self.size)
        except FileNotFoundError as error:
            raise _vacuumed_error(str(self.path)) from error
        with self.place.open("wb") as stream:
            stream.truncate(self.size)
            stream.seek(start)
            stream.write(data)
        return start

    def fill(self, begin: int, start: int) -> None:
        """Also copy the bytes between two positions."""
        if begin < start:
            with self.place.open("r+b") as stream:
                stream.seek(begin)
                stream.write(self.path.read_range(begin, start))


def _at_once(work: Callable[[_Given], _Made], arguments: Sequence[_Given]) -> list[_Made]:
    if not arguments:
        return []
    with ThreadPoolExecutor(min(_AT_ONCE, len(arguments))) as pool:
        return list(pool.map(work, arguments))


def _vacuumed_error(file: str) -> EpochVacuumedError:
    return EpochVacuumedError(f"{file}: a file of the epoch is gone; run again to read the newest epoch")
