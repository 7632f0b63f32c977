"""Paths in an object store, with the methods of ``pathlib`` that the warehouse uses.

Code reaches all files from the path of the root, so a root in a store needs only another kind of path.
:mod:`warehouse.storage.store` has the operations that stores do differently: write a name that must be free, replace a file, make
it durable. Directories are prefixes: a directory exists as long as it has an object.

A path has no ``__fspath__``, so that ``os`` and ``open`` refuse it and never take it for a local path.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import uuid
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath
from typing import IO, TYPE_CHECKING, Any, Literal, NoReturn, Self, cast

from warehouse.objects.client import asking, client, library

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping
    from datetime import datetime

__all__ = ["ObjectPath", "directories_in", "is_uri", "object_path", "parquet_source", "path_of"]

_URI = re.compile(r"(s3|gs|az)://[^/]+")
_BUFFER = 64 * 1024
_PIECE = 4 * 1024 * 1024
_ATTRIBUTE = "stream-wh-put"


def is_uri(text: str) -> bool:
    """Whether a text is the URI of an object store.

    >>> is_uri("s3://bucket/warehouse"), is_uri("data")
    (True, False)
    """
    return _URI.match(text) is not None


def path_of(place: str | Path) -> Path:
    """Return the path of a text: a path in a store, or an absolute one on the local disk."""
    if isinstance(place, ObjectPath):
        return place
    text = str(place)
    return ObjectPath(text) if is_uri(text) else Path(text).absolute()


def object_path(path: Path) -> ObjectPath:
    """Return a path that is known to be in an object store.

    Raises
    ------
    TypeError
        When the path is on a disk.

    """
    if not isinstance(path, ObjectPath):
        raise TypeError(f"{path} is in no object store")
    return path


def directories_in(place: Path) -> list[Path]:
    """Return the directories directly below a path, in order, without files; empty if the path is no directory."""
    try:
        return sorted(entry for entry in place.iterdir() if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def parquet_source(file: Path) -> Any:  # noqa: ANN401 - what pyarrow takes
    """Return the source from which pyarrow reads a file: its path, or in a store a stream of ranges."""
    return file.open("rb") if isinstance(file, ObjectPath) else file


class ObjectPath(PosixPath):
    """A path in an object store.

    >>> place = ObjectPath("s3://bucket/warehouse") / "epochs"
    >>> str(place), place.name, str(place.parent)
    ('s3://bucket/warehouse/epochs', 'epochs', 's3://bucket/warehouse')
    """

    _listed: Mapping[str, Any] | None

    # --- names ---

    def __str__(self) -> str:
        parts = self.parts
        if parts and parts[0].endswith(":"):
            return f"{parts[0]}//{'/'.join(parts[1:])}"
        return "/".join(parts)

    def __fspath__(self) -> NoReturn:
        raise TypeError(f"{self}: a place in an object store is no path of the file system")

    def is_absolute(self) -> bool:
        """Whether the path names its store."""
        return bool(self.parts) and self.parts[0].endswith(":")

    def absolute(self) -> Self:
        """Return itself."""
        return self

    def resolve(self, strict: bool = False) -> Self:  # noqa: ARG002 - as pathlib has it
        """Return itself: a store has no links."""
        return self

    @property
    def store(self) -> Any:  # noqa: ANN401 - obstore is an extra: not installed where types are checked
        """The client of its bucket."""
        scheme, bucket = self.parts[:2]
        return client(scheme.removesuffix(":"), bucket)

    @property
    def key(self) -> str:
        """Its name in the bucket."""
        return "/".join(self.parts[2:])

    # --- contents ---

    def _head(self) -> Mapping[str, Any]:
        facts: Mapping[str, Any] | None = getattr(self, "_listed", None)
        if facts is not None:
            return facts
        with asking(self):
            return cast("Mapping[str, Any]", library().head(self.store, self.key))

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002 - as pathlib has it
        """Return the size and the time of modification of an object."""
        facts = self._head()
        modified: datetime = facts["last_modified"]
        seconds = int(modified.timestamp())
        nanoseconds = seconds * 1_000_000_000 + modified.microsecond * 1000
        fields = (stat.S_IFREG | 0o644, 0, 0, 1, 0, 0, int(facts["size"]), seconds, seconds, seconds)
        return os.stat_result(fields, {"st_mtime": nanoseconds / 1e9, "st_mtime_ns": nanoseconds})

    def exists(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - as pathlib has it
        """Whether there is an object of that name, or an object below it."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Whether there is an object of that name."""
        try:
            self._head()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Whether there are objects below the path."""
        if getattr(self, "_listed", None) is not None:
            return False
        return next(self._below(chunk=1), None) is not None

    def is_symlink(self) -> bool:
        """Return False: a store has no links."""
        return False

    def _below(self, chunk: int = 1000) -> Iterator[ObjectPath]:
        with asking(self):
            for page in library().list(self.store, prefix=self.key, chunk_size=chunk):
                yield from map(self._of, filter(_is_no_mark, page))

    def tagged(self, after: str | None = None) -> Iterator[tuple[str, int, str]]:
        """Yield the objects below the path as (name below the path, bytes, tag), in the order of their names' bytes.

        ``after`` is a name below the path: only later names are requested.
        """
        prefix = f"{self.key}/" if self.key else ""
        offset = None if after is None else prefix + after
        with asking(self):
            for page in library().list(self.store, prefix=self.key, offset=offset):
                for facts in filter(_is_no_mark, page):
                    yield facts["path"].removeprefix(prefix), int(facts["size"]), str(facts["e_tag"])

    def tag(self) -> tuple[int, str]:
        """Return the bytes and the tag of an object."""
        facts = self._head()
        return int(facts["size"]), str(facts["e_tag"])

    def _of(self, facts: Mapping[str, Any]) -> ObjectPath:
        path = ObjectPath(*self.parts[:2], facts["path"])
        path._listed = facts
        return path

    def iterdir(self) -> Generator[Self, None, None]:
        """Yield the objects and prefixes directly below the path.

        Raises
        ------
        FileNotFoundError
            When there are none.

        """
        with asking(self):
            listing = library().list_with_delimiter(self.store, prefix=self.key)
        inner = [ObjectPath(*self.parts[:2], prefix) for prefix in listing["common_prefixes"]]
        entries = [*inner, *map(self._of, filter(_is_no_mark, listing["objects"]))]
        if not entries:
            raise FileNotFoundError(errno.ENOENT, "nothing is there", str(self))
        yield from cast("list[Self]", entries)

    def rglob(self, pattern: str, **_: Any) -> Iterator[Self]:  # type: ignore[override]  # noqa: ANN401 - as pathlib has it
        """Yield the objects at any depth whose names match; a store has no directories to yield."""
        for path in self._below():
            if fnmatchcase(path.name, pattern):
                yield cast("Self", path)

    def glob(self, pattern: str, **_: Any) -> Iterator[Self]:  # type: ignore[override]  # noqa: ANN401 - as pathlib has it
        """Yield the paths directly below this path whose names match a pattern."""
        if self.is_dir():
            yield from (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    # --- reading ---

    def read_bytes(self) -> bytes:
        """Return an object's content."""
        return self.read_with_tag()[0]

    def read_with_tag(self) -> tuple[bytes, str]:
        """Return an object's content and the tag that changes with it."""
        with asking(self):
            answer = library().get(self.store, self.key)
            return bytes(answer.bytes()), str(answer.meta["e_tag"])

    def read_text(self, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> str:  # noqa: ARG002
        """Return an object's text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def read_range(self, start: int, end: int) -> bytes:
        """Return the bytes ``[start, end)`` of an object."""
        if end <= start:
            return b""
        with asking(self):
            return bytes(library().get_range(self.store, self.key, start=start, end=end))

    def download(self, target: Path) -> str:
        """Write an object's content to a local file, piece by piece, and return its tag."""
        with asking(self):
            answer = library().get(self.store, self.key)
            with target.open("wb") as stream:
                for piece in answer.stream(min_chunk_size=_PIECE):
                    stream.write(piece)
            return str(answer.meta["e_tag"])

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open an object for reading: as text, which is read completely, or as bytes, whose ranges are fetched when needed."""
        if mode == "rb":
            return io.BufferedReader(_Ranges(self), _BUFFER if buffering < 0 else max(buffering, 1))
        if mode == "r":
            return io.StringIO(self.read_text(encoding, errors), newline)
        raise io.UnsupportedOperation(f"{self}: an object is written at once, not opened to write ({mode})")

    # --- writing ---

    def put(self, content: bytes, mode: Literal["create", "overwrite"] | Mapping[str, str] = "overwrite") -> str:
        """Write a complete object, and return its tag.

        Parameters
        ----------
        content
            Its bytes.
        mode
            ``create``: the name must be free (``If-None-Match: *``); ``{"e_tag": T}``: the object must have that tag
            (``If-Match``).

        Raises
        ------
        FileExistsError
            When the condition does not hold. If the answer to a put was lost, the retry finds the object of the first attempt; an
            attribute identifies it, and no error is raised.

        """
        token = uuid.uuid4().hex
        try:
            with asking(self):
                answer = library().put(
                    self.store, self.key, content, mode=mode, attributes={_ATTRIBUTE: token}, use_multipart=False
                )  # fmt: skip
                return str(answer["e_tag"])
        except FileExistsError:
            with asking(self):
                existing = library().get(self.store, self.key)
            if existing.attributes.get(_ATTRIBUTE) != token:
                raise
            return str(existing.meta["e_tag"])

    def write_bytes(self, data: Any) -> int:  # noqa: ANN401 - as pathlib has it
        """Write an object, in place of one of that name."""
        self.put(bytes(data))
        return len(data)

    def write_text(
        self, data: str, encoding: str | None = None, errors: str | None = None, newline: str | None = None  # noqa: ARG002 - same
    ) -> int:
        """Write an object, in place of one of that name."""
        return self.write_bytes(data.encode(encoding or "utf-8", errors or "strict"))

    def upload(self, source: Path) -> None:
        """Write a local file's content as an object, in parts if it is large."""
        with asking(self):
            library().put(self.store, self.key, source)

    def copy_to(self, target: ObjectPath) -> None:
        """Give an object's content a further name, in the store."""
        with asking(self):
            library().copy(self.store, self.key, target.key)

    def replace(self, target: Any) -> Self:  # noqa: ANN401 - as pathlib has it
        """Rename an object, in two steps: a crash between them leaves it under both names."""
        self.copy_to(target)
        self.unlink()
        return cast("Self", target)

    def rename(self, target: Any) -> Self:  # noqa: ANN401 - as pathlib has it
        """Rename an object, in two steps as :meth:`replace`."""
        return self.replace(target)

    def unlink(self, missing_ok: bool = False) -> None:  # noqa: ARG002 - as pathlib has it
        """Delete an object; stores do not report whether it existed."""
        try:
            with asking(self):
                library().delete(self.store, self.key)
        except FileNotFoundError:
            return

    def unlink_below(self) -> None:
        """Delete every object below the path."""
        keys = [path.key for path in self._below()]
        if keys:
            with asking(self):
                library().delete(self.store, keys)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Do nothing: a prefix is there with its first object."""

    def rmdir(self) -> None:
        """Do nothing: a prefix is gone with its last object."""


def _is_no_mark(facts: Mapping[str, Any]) -> bool:
    """Whether an object is more than the empty one with which Hadoop marks a directory; the warehouse writes no empty one."""
    return bool(facts["size"])


class _Ranges(io.RawIOBase):
    """An object as a file that is read by ranges."""

    def __init__(self, path: ObjectPath) -> None:
        super().__init__()
        self._path = path
        self._size = path.stat().st_size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, start + offset)
        return self._position

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any writable buffer
        end = min(self._position + len(buffer), self._size)
        data = self._path.read_range(self._position, end)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)
