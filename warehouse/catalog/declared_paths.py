"""Where a declaration's directories are, and which of them may not meet."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.spelling import FaultError, as_written
from warehouse.objects.client import cache_directory
from warehouse.objects.path import ObjectPath, is_uri, path_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from warehouse.catalog.problem_report import ProblemReport

__all__ = [
    "Landing",
    "landing_at",
    "landing_faults",
    "local_path",
    "moved_faults",
    "place_of",
    "recorded_place",
    "root_path",
]


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/|file:")


def local_path(text: str, base: Path, key: str, report: ProblemReport) -> Path | None:
    """Return the absolute path that ``text`` means in a file of the directory ``base``, or report its fault."""
    if _URI.match(text):
        allowed = "a local path; `root` and `landing` alone may be in an object store (s3://BUCKET/PREFIX)"
        report.add(key, FaultError(as_written(text), allowed))
        return None
    if not text.strip() or "\0" in text:
        report.add(key, FaultError(as_written(text), "a local path, relative to this file or absolute"))
        return None
    return Path(os.path.normpath(base / text))


def root_path(text: str, base: Path, key: str, report: ProblemReport) -> Path | None:
    """Return the root or landing that ``text`` means: a place in an object store, or as :func:`local_path`."""
    if is_uri(text) and ("\0" in text or "%" in text or "?" in text or "#" in text or ".." in text.split("/")):
        report.add(key, FaultError(as_written(text), "s3://BUCKET or s3://BUCKET/PREFIX, of plain names"))
        return None
    return path_of(text) if is_uri(text) else local_path(text, base, key, report)


def recorded_place(place: Path, root: Path) -> str:
    """Return a directory as it is recorded: relative to the root, so that a copied root works; absolute when that is a store."""
    if isinstance(place, ObjectPath):
        return str(place)
    return place.as_posix() if isinstance(root, ObjectPath) else Path(os.path.relpath(place, root)).as_posix()


def place_of(recorded: str, root: Path) -> Path:
    """Return the place that was recorded."""
    if is_uri(recorded):
        return ObjectPath(recorded)
    return Path(os.path.normpath(recorded if isinstance(root, ObjectPath) else root / recorded))


@dataclass(frozen=True)
class Landing:
    """Where files land: a local directory, or a store and the directory of its copies; ``files`` is the pattern in `landing`."""

    near: Path
    store: ObjectPath | None = None
    files: str | None = None


def landing_at(place: Path, root: Path, files: str | None = None) -> Landing:
    """Return the landing at a place; copies of a store's objects are for one warehouse, so that its lock guards them."""
    if not isinstance(place, ObjectPath):
        return Landing(place, files=files)
    name = hashlib.sha256(f"{root}\0{place}".encode()).hexdigest()[:16]
    return Landing(cache_directory() / "landing" / name, place, files)


def landing_faults(
    landings: Mapping[str, Path], root: Path | None, shared: Container[str] = ()
) -> Iterator[tuple[str, FaultError]]:
    """Yield (section, fault) for every landing that shares files with the root or with another landing.

    Parameters
    ----------
    landings
        Absolute paths by the section that declares them, ``streams.NAME`` or ``relations.NAME``. Symbolic links are
        followed: two names of one place are one place.
    root
        Where the tables are.
    shared
        Sections that name the files of theirs by a pattern and leave them there: such may share a directory.

    """
    real = {section: _real(path) for section, path in landings.items()}
    home = root if isinstance(root, ObjectPath) else _home(root)
    for section, place in real.items():
        if home and place.is_relative_to(home):
            yield section, FaultError("a directory inside root", "a directory apart from root, where the tables are")
        elif home and home.is_relative_to(place):
            yield section, FaultError("a directory that holds root", "a directory apart from root, where the tables are")
    for (one, first), (other, second) in combinations(real.items(), 2):
        if one in shared and other in shared:
            continue
        if first == second:
            yield other, FaultError(f"the landing of {_named(one)}", _OWN)
        elif first.is_relative_to(second) or second.is_relative_to(first):
            inner, outer = (one, other) if first.is_relative_to(second) else (other, one)
            yield inner, FaultError(f"a directory inside the landing of {_named(outer)}, which is searched recursively", _OWN)


def moved_faults(moved: Mapping[str, Path], landings: Mapping[str, Path], root: Path | None) -> Iterator[tuple[str, FaultError]]:
    """Yield (section, fault) for every place of loaded files that shares files with the root, a landing or another such place.

    Files that were moved into a landing would be loaded again.
    """
    real = {section: _real(path) for section, path in landings.items()}
    home = _home(root)
    own = {section: Path(os.path.realpath(path)) for section, path in moved.items()}
    for section, place in own.items():
        others = [("root", home)] if home else []
        others += [(f"the landing of {_named(other)}", path) for other, path in real.items()]
        others += [(f"the loaded files of {_named(other)}", path) for other, path in own.items() if other != section]
        for name, path in others:
            if place.is_relative_to(path) or (path.is_relative_to(place) and name != "root"):
                yield section, FaultError(f"{place}, which meets {name} ({path})", "a directory apart from root and all landings")
                break


def _real(place: Path) -> Path:
    """A directory with its links resolved; object stores have no links."""
    return place if isinstance(place, ObjectPath) else Path(os.path.realpath(place))


def _home(root: Path | None) -> Path | None:
    """The root with links followed; None in an object store, which has no directory on this machine."""
    return None if root is None or isinstance(root, ObjectPath) else Path(os.path.realpath(root))


_OWN = (
    'a directory of its own for each stream and relation; or a pattern in each `landing`, such as "in/**/dns.*.log", '
    'and after_load = "keep"'
)


def _named(section: str) -> str:
    kind, name = section.split(".", 1)
    return f'the {kind.removesuffix("s")} "{name}"'
