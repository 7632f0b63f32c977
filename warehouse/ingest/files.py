"""The facts about a landing file, as frozen values that plans and epochs persist."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["InputFiles", "LandingFile", "LeftOut", "ListedFile", "name_without_number", "numbered_name"]

ListedFile = tuple[str, int, int]
"""A :class:`LandingFile` as a listing yields it: most of a million files are known, and no object is made for them."""

_NUMBERED = re.compile(r"([^.]*)~[1-9]\d*(?=\.|$)")


@dataclass(frozen=True)
class LandingFile:
    """A landing file's identity: relative path, size in bytes, modification time in nanoseconds."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class LeftOut:
    """A landing file that an update did not load, and why.

    ``reading`` is the digest of how the stream was read then (:func:`warehouse.catalog.declaration.reading_digest`), empty in
    older records. When the digest of the declaration is another one, the next update tries the file again.
    """

    file: LandingFile
    reason: str
    message: str
    reading: str = ""


@dataclass(frozen=True)
class InputFiles:
    """Landing files that have the same CSV header (``header`` is empty for other formats)."""

    header: tuple[str, ...]
    files: tuple[LandingFile, ...]


def numbered_name(path: str, number: int) -> str:
    """Return the name of a file in the archive if ``number`` other files have its own name; 0 gives its own name.

    >>> numbered_name("sub/a.csv.gz", 1)
    'sub/a~1.csv.gz'
    """
    directory, slash, name = path.rpartition("/")
    stem, dot, ending = name.partition(".")
    return f"{directory}{slash}{stem}~{number}{dot}{ending}" if number else path


def name_without_number(path: str) -> str:
    """Return the name that an archived file had before it got a number.

    >>> name_without_number("sub/a~1.csv.gz")
    'sub/a.csv.gz'
    """
    directory, slash, name = path.rpartition("/")
    match = _NUMBERED.match(name)
    return f"{directory}{slash}{match[1]}{name[match.end():]}" if match and match[1] else path
