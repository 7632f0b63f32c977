"""The loaded landing files, in sorted shards; only shards that differ from the listing are read.

Files are sorted as a listing of the landing directory yields them: by the names on their path (:func:`order`). A shard has a run
of neighbours; its content is their JSON, and its name the SHA-256 of the content. A second sum is computed of the files as a
listing has them, as JSON arrays. So a listing is compared by hashing as many files as the shard has: if the sums are equal, all
these files are known, without reading the shard or making an object for each file. Changes since the shards were written take
precedence over them.

Invariant: shards are in order, none is empty, ``first`` is the path of a shard's first file, and each file of it sorts before the
next one's ``first``.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

from warehouse.ingest.files import LandingFile, ListedFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import msgspec

__all__ = [
    "Listing",
    "LoadedFiles",
    "PathRange",
    "Shard",
    "cut_into_shards",
    "differing_files",
    "files_of_shard",
    "is_intact_shard",
    "is_shard_name",
    "order",
    "paths_in",
    "ranges_of",
]

SHARD = 2048
"""Files of a new shard; a shard that is written again may have from a quarter to twice as many."""
_DIGITS = 40
_SHARD_NAME = re.compile(rf"[0-9a-f]{{{_DIGITS}}}")
_CHUNK = 512


@dataclass(frozen=True)
class Shard:
    """A run of neighbouring files: the path of the first, their number, and the name, which is the sum of the content.

    ``listed`` is the sum of the files as a listing has them; ledgers of older builds do not have it.
    """

    first: str
    count: int
    name: str
    listed: str = ""

    def holds(self, files: Sequence[ListedFile]) -> bool:
        """Whether files of a listing are exactly the files of the shard, unchanged."""
        if len(files) != self.count:
            return False
        if self.listed:
            return _listing_sum(files) == self.listed
        return _content_name(_encoded([LandingFile(*file) for file in files])) == self.name


Load = Callable[[Shard], tuple[LandingFile, ...]]


def order(path: str) -> str:
    """Return the sort key of a path, as in a listing: by the names on the path, directory by directory.

    >>> sorted(["a.csv", "a/x.csv", "a"], key=order)
    ['a', 'a/x.csv', 'a.csv']
    """
    return path.replace("/", "\0")


@cache
def _decoder() -> msgspec.json.Decoder[tuple[LandingFile, ...]]:
    import msgspec  # noqa: PLC0415 - as below

    return msgspec.json.Decoder(tuple[LandingFile, ...])


def _encoded(files: Sequence[LandingFile | ListedFile]) -> bytes:
    import msgspec  # noqa: PLC0415 - the Airflow provider lists landing directories without it

    return msgspec.json.encode(files)


def _listing_sum(files: Sequence[ListedFile]) -> str:
    return _content_name(_encoded(files))


def _listing_sum_of_files(files: Iterable[LandingFile]) -> str:
    return _listing_sum([(file.path, file.size, file.mtime_ns) for file in files])


def _content_name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def is_shard_name(name: str) -> bool:
    """Whether a file of this name can be a shard."""
    return _SHARD_NAME.fullmatch(name) is not None


def is_intact_shard(name: str, packed: bytes) -> bool:
    """Whether the bytes of a shard's file have the sum in its name."""
    try:
        return _content_name(zlib.decompress(packed)) == name
    except zlib.error:
        return False


def files_of_shard(shard: Shard, packed: bytes) -> tuple[LandingFile, ...] | None:
    """Return the files in a shard's bytes; None if the bytes changed since they were written."""
    try:
        content = zlib.decompress(packed)
    except zlib.error:
        return None
    return _decoder().decode(content) if _content_name(content) == shard.name else None


def paths_in(packed: bytes) -> tuple[str, ...]:
    """Return the paths of the files in the bytes of any shard.

    Raises
    ------
    ValueError
        When the bytes are no shard.

    """
    import msgspec  # noqa: PLC0415 - as above

    try:
        return tuple(file.path for file in _decoder().decode(zlib.decompress(packed)))
    except (zlib.error, msgspec.MsgspecError) as error:
        raise ValueError(str(error)) from error


@dataclass(frozen=True)
class PathRange:
    """A range of paths up to the next one: its shard, and the files that were loaded or forgotten since."""

    end: str | None
    shard: Shard | None
    changes: Mapping[str, LandingFile | None]
    load: Load | None = None

    def files(self) -> dict[str, LandingFile]:
        """Return the loaded files by path."""
        files = {file.path: file for file in (self.load(self.shard) if self.shard and self.load else ())}
        for path, file in self.changes.items():
            if file is None:
                files.pop(path, None)
            else:
                files[path] = file
        return files


@dataclass(frozen=True, eq=False)
class LoadedFiles(Mapping[str, LandingFile]):
    """The loaded files by path: shards, and ``changes`` since then (None: the file was forgotten)."""

    shards: tuple[Shard, ...] = ()
    load: Load | None = None
    changes: Mapping[str, LandingFile | None] = field(default_factory=dict)

    @cached_property
    def _ends(self) -> list[str]:
        return [order(shard.first) for shard in self.shards[1:]]

    @cached_property
    def ranges(self) -> tuple[PathRange, ...]:
        """All ranges of paths in order, also ranges without a file."""
        if not self.shards:
            return (PathRange(None, None, self.changes),)
        parts: list[dict[str, LandingFile | None]] = [{} for _ in self.shards]
        for path, file in self.changes.items():
            parts[bisect_right(self._ends, order(path))][path] = file
        return tuple(
            PathRange(end, shard, part, self.load)
            for end, shard, part in zip((*self._ends, None), self.shards, parts, strict=True)
        )

    @cached_property
    def _last(self) -> dict[int, dict[str, LandingFile]]:
        return {}

    def _files_of_range(self, index: int) -> dict[str, LandingFile]:
        """Return the files of a range; the files of the last range are cached."""
        if index not in self._last:
            self._last.clear()
            self._last[index] = self.ranges[index].files()
        return self._last[index]

    def __getitem__(self, path: str) -> LandingFile:
        """Return a file, reading at most one shard."""
        if path in self.changes:
            file = self.changes[path]
            if file is None:
                raise KeyError(path)
            return file
        return self._files_of_range(bisect_right(self._ends, order(path)))[path]

    def __iter__(self) -> Iterator[str]:
        """Yield the paths, shard by shard."""
        return chain.from_iterable(path_range.files() for path_range in self.ranges)

    def __len__(self) -> int:
        """Return the number of files; only shards with changes are read."""
        return sum(len(part.files()) if part.changes or part.shard is None else part.shard.count for part in self.ranges)


def ranges_of(loaded: Mapping[str, LandingFile]) -> tuple[PathRange, ...]:
    """Return the ranges of the loaded files; a plain mapping is one range."""
    return loaded.ranges if isinstance(loaded, LoadedFiles) else (PathRange(None, None, loaded),)


class Listing:
    """The files of a landing directory in order, taken range by range."""

    def __init__(self, files: Iterable[ListedFile]) -> None:
        self._rest = iter(files)
        self._surplus: list[ListedFile] = []
        self.empty = True

    def _next(self, count: int) -> list[ListedFile]:
        files = self._surplus[:count]
        del self._surplus[:count]
        files.extend(islice(self._rest, count - len(files)))
        self.empty = self.empty and not files
        return files

    def take(self, path_range: PathRange) -> list[LandingFile] | None:
        """Return the files up to the end of a range; None if they are exactly the files of its shard, unchanged."""
        files = self._next(path_range.shard.count if path_range.shard and not path_range.changes else 1)
        if path_range.shard and not path_range.changes and path_range.shard.holds(files):
            return None
        end = path_range.end
        while files and (end is None or order(files[-1][0]) < end):
            more = self._next(_CHUNK)
            if not more:
                break
            files.extend(more)
        if end is not None:
            past = bisect_left(files, end, key=lambda file: order(file[0]))
            self._surplus = files[past:] + self._surplus
            del files[past:]
        return [LandingFile(*file) for file in files]

    def rest(self) -> list[LandingFile]:
        """Return the files after all ranges: the listing's last ones, if the last shard did not change."""
        files = [LandingFile(*file) for file in (*self._surplus, *self._rest)]
        self._surplus = []
        self.empty = self.empty and not files
        return files


def cut_into_shards(loaded: LoadedFiles, *, size: int = SHARD) -> tuple[tuple[Shard, ...], dict[str, bytes]]:
    """Return the shards of all files, and the bytes of new shards by name; unchanged shards are reused.

    Small neighbouring shards are joined. Shards of older versions have no sum of their listing and are read once to compute it.
    """
    shards: list[Shard] = []
    written: dict[str, bytes] = {}
    pending: list[LandingFile] = []

    def write_shards(*, keep: int) -> None:
        while len(pending) > keep:
            count = size if len(pending) > 2 * size else len(pending)
            content = _encoded(pending[:count])
            shard = Shard(pending[0].path, count, _content_name(content), _listing_sum_of_files(pending[:count]))
            shards.append(shard)
            written[shard.name] = zlib.compress(content, 1)
            del pending[:count]

    for path_range in loaded.ranges:
        shard = path_range.shard
        is_small = shard is not None and shard.count < size // 4
        if shard is not None and not path_range.changes and not (pending and (is_small or len(pending) < size // 4)):
            write_shards(keep=0)
            if path_range.load and not shard.listed:
                shard = replace(shard, listed=_listing_sum_of_files(path_range.load(shard)))
            shards.append(shard)
            continue
        pending.extend(sorted(path_range.files().values(), key=lambda file: order(file.path)))
        write_shards(keep=2 * size)
    write_shards(keep=0)
    former_names = {shard.name for shard in loaded.shards}
    return tuple(shards), {name: content for name, content in written.items() if name not in former_names}


def differing_files(
    one: Mapping[str, LandingFile], other: Mapping[str, LandingFile], also: Sequence[str]
) -> tuple[dict[str, LandingFile], dict[str, LandingFile]]:
    """Return the files of two states without the files of shared shards, but always with the files at the paths ``also``."""
    sides = (ranges_of(one), ranges_of(other))
    shards = [{part.shard.name for part in ranges if part.shard and not part.changes} for ranges in sides]
    shared_shards = shards[0] & shards[1]
    differing = []
    for mapping, ranges in zip((one, other), sides, strict=True):
        files: dict[str, LandingFile] = {}
        for path_range in ranges:
            if path_range.changes or path_range.shard is None or path_range.shard.name not in shared_shards:
                files.update(path_range.files())
        files.update({path: mapping[path] for path in also if path in mapping})
        differing.append(files)
    return differing[0], differing[1]
