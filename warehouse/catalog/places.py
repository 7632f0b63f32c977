"""Where a declaration's directories are, and which of them may not meet."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from warehouse.catalog.spelling import FaultError, as_written
from warehouse.errors import Problem
from warehouse.objects.client import cache_directory
from warehouse.objects.path import ObjectPath, is_uri, path_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "NULL_FOLDER",
    "Landing",
    "ProblemReport",
    "folder_problem",
    "folder_values",
    "landing_at",
    "landing_faults",
    "local_path",
    "moved_faults",
    "place_of",
    "recorded_place",
    "root_path",
]


# --- the faults of one file, collected so that they are reported together ---


class ProblemReport:
    """Problems of ``file`` in the order they are found."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, key: str, fault: FaultError) -> None:
        """Add the fault of a dotted key."""
        self.problems.append(Problem(self.file, key, fault.found, fault.allowed, fault.suggestion))

    def add_each(self, prefix: str, faults: Iterable[tuple[str, FaultError]]) -> None:
        """Add the faults of keys within a section."""
        for key, fault in faults:
            self.add(f"{prefix}.{key}", fault)

    def add_section(self, prefix: str, faults: Mapping[str, FaultError]) -> None:
        """Add the faults of a section's keys."""
        for key, fault in faults.items():
            self.add(f"{prefix}.{key}", fault)


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


# Folders on the path of a landing file whose names are values of columns: ``day=2026-01-01``, or plain
# ``2026-01-01``.
#
# Where a path has a folder ``NAME=VALUE`` for one of the partitions, it is of Hive's form: each partition is looked
# for by its name, wherever its folder stands. Else the first folder below the landing directory is the first
# partition, and so on. Further folders say nothing.

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of Hive and Spark for null."""


def folder_values(path: str, partitions: Sequence[str]) -> tuple[str | None, ...] | None:
    """Return the text of each partition of a file's relative path; None if a folder is missing.

    >>> folder_values("day=2026-01-01/host=a%2Fb/x.csv", ["day", "host"])
    ('2026-01-01', 'a/b')
    >>> folder_values("2026-01-01/x.csv", ["day"]), folder_values("x.csv", ["day"])
    (('2026-01-01',), None)
    """
    folders = path.split("/")[:-1]
    if not any(folder.startswith(f"{name}=") for folder in folders for name in partitions):
        return tuple(folders[: len(partitions)]) if len(folders) >= len(partitions) else None
    named = [[folder for folder in folders if folder.startswith(f"{name}=")] for name in partitions]
    if not all(named):
        return None
    given = (unquote(found[-1].partition("=")[2]) for found in named)
    return tuple(None if value == NULL_FOLDER else value for value in given)


def folder_problem(path: str, partitions: Sequence[str]) -> tuple[str, str] | None:
    """Return (reason, message) if a path lacks a folder for a partition; None otherwise."""
    if not partitions or folder_values(path, partitions) is not None:
        return None
    hive = "/".join(f"{name}=..." for name in partitions)
    listed = ", ".join(partitions)
    return "name", f"its path has no folder for each of partitions ({listed}); move it to {hive}/, or correct the key"
