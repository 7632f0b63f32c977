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

__all__ = ["matches", "may_contain_match", "split_landing"]

_ANY = "**"


def split_landing(text: str) -> tuple[str, str | None]:
    """Return the directory and the pattern of a `landing`; no pattern where it is a directory.

    >>> split_landing("in/**/dns.*.log"), split_landing("s3://bucket/in"), split_landing("*.csv")
    (('in', '/**/dns.*.log'), ('s3://bucket/in', None), ('.', '/*.csv'))
    """
    parts = text.split("/")
    first = next((position for position, part in enumerate(parts) if "*" in part or "?" in part), None)
    if first is None:
        return text, None
    before = "/".join(parts[:first])
    return before or ("/" if first else "."), "/" + "/".join(parts[first:])


def matches(path: str, pattern: str) -> bool:
    """Whether a relative path is one that a pattern names.

    >>> [matches("a/b/x.csv", pattern) for pattern in ("*.csv", "a/*.csv", "/a/*.csv", "/**/b/*.csv", "/**")]
    [True, True, False, True, True]
    """
    if pattern.startswith("/"):
        parts = _parts(pattern)
        return len(parts) in _positions(parts, path.split("/"))
    return fnmatchcase(path if "/" in pattern else path.rpartition("/")[2], pattern)


def may_contain_match(folder: str, pattern: str) -> bool:
    """Whether a file below a folder can match; True for a pattern that is not matched folder by folder.

    >>> [may_contain_match(folder, "/2026-*/*.csv") for folder in ("2025-12-31", "2026-01-01/old")]
    [False, False]
    >>> may_contain_match("a", "a/*.csv")
    True
    """
    if not pattern.startswith("/"):
        return True
    parts = _parts(pattern)
    return any(position < len(parts) for position in _positions(parts, folder.split("/")))


@lru_cache(maxsize=64)
def _parts(pattern: str) -> tuple[re.Pattern[str] | None, ...]:
    """Return the pattern of each name on the path; None is any number of names."""
    names = [name for name in pattern.split("/") if name]
    if names[-1:] == [_ANY]:
        names.append("*")
    return tuple(None if name == _ANY else re.compile(translate(name)) for name in names)


def _positions(parts: tuple[re.Pattern[str] | None, ...], names: Iterable[str]) -> frozenset[int]:
    """Return the positions in a pattern that a path with these names may have reached."""
    positions = _skipping_any(parts, {0})
    for name in names:
        reached: set[int] = set()
        for position in positions:
            if position < len(parts):
                part = parts[position]
                reached |= {position} if part is None else {position + 1} if part.match(name) else set()
        positions = _skipping_any(parts, reached)
    return positions


def _skipping_any(parts: tuple[re.Pattern[str] | None, ...], positions: set[int]) -> frozenset[int]:
    """Return the positions, and those after them that are reached without a name, since ``**`` matches no folder, too."""
    for position in sorted(positions):
        while position < len(parts) and parts[position] is None:
            position += 1  # noqa: PLW2901 - a walk from each
            positions.add(position)
    return frozenset(positions)
