"""Patterns of landing files: on their names, or folder by folder on their paths.

A pattern that begins with ``/`` is matched folder by folder from the landing directory: ``*`` and ``?`` match within a name,
``**`` matches any number of folders. A pattern with a slash elsewhere is matched with the whole relative path, and ``*`` matches
slashes, too. A pattern without a slash is matched with the file's name.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["matches", "may_hold", "split_landing"]

_ANY = "**"


def split_landing(text: str) -> tuple[str, str | None]:
    """Return the directory and the pattern of a `landing`; no pattern where it is a directory.

    >>> split_landing("in/**/dns.*.log"), split_landing("s3://bucket/in"), split_landing("*.csv")
    (('in', '/**/dns.*.log'), ('s3://bucket/in', None), ('.', '/*.csv'))
    """
    parts = text.split("/")
    first = next((place for place, part in enumerate(parts) if "*" in part or "?" in part), None)
    if first is None:
        return text, None
    before = "/".join(parts[:first])
    return before or ("/" if first else "."), "/" + "/".join(parts[first:])


def matches(path: str, pattern: str) -> bool:
    """Whether a relative path is one that a pattern names.

    >>> [matches("a/b/x.csv", each) for each in ("*.csv", "a/*.csv", "/a/*.csv", "/**/b/*.csv", "/**")]
    [True, True, False, True, True]
    """
    if pattern.startswith("/"):
        wanted = _parts(pattern)
        return len(wanted) in _places(wanted, path.split("/"))
    return fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)


def may_hold(folder: str, pattern: str) -> bool:
    """Whether a file below a folder can match; always where a pattern is not matched folder by folder.

    >>> may_hold("2025-12-31", "/2026-*/*.csv"), may_hold("2026-01-01/old", "/2026-*/*.csv"), may_hold("a", "a/*.csv")
    (False, False, True)
    """
    if not pattern.startswith("/"):
        return True
    wanted = _parts(pattern)
    return any(place < len(wanted) for place in _places(wanted, folder.split("/")))


@lru_cache(maxsize=64)
def _parts(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Return the pattern of each name on the path; None is any number of names."""
    names = [name for name in pattern.split("/") if name]
    if names[-1:] == [_ANY]:
        names.append("*")
    return tuple(None if name == _ANY else re.compile(translate(name)) for name in names)


def _places(wanted: tuple[re.Pattern[str] | None, ...], names: Iterable[str]) -> frozenset[int]:
    """Return how far into the pattern the names may have come."""
    places = _passing(wanted, {0})
    for name in names:
        reached: set[int] = set()
        for place in places:
            if place < len(wanted):
                part = wanted[place]
                reached |= {place} if part is None else {place + 1} if part.match(name) else set()
        places = _passing(wanted, reached)
    return places


def _passing(wanted: tuple[re.Pattern[str] | None, ...], places: set[int]) -> frozenset[int]:
    """Return the places with those behind them that need no name."""
    for place in sorted(places):
        while place < len(wanted) and wanted[place] is None:
            place += 1  # noqa: PLW2901 - a walk from each
            places.add(place)
    return frozenset(places)
