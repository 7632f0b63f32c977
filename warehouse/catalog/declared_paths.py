"""The directories of declarations: their paths, how they are recorded, and which of them must not overlap."""

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
    "move_to_faults",
    "path_from_record",
    "recorded_path",
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
    """Return the root or landing that ``text`` means: a path in an object store, or as :func:`local_path`."""
    if is_uri(text) and ("\0" in text or "%" in text or "?" in text or "#" in text or ".." in text.split("/")):
        report.add(key, FaultError(as_written(text), "s3://BUCKET or s3://BUCKET/PREFIX, of plain names"))
        return None
    return path_of(text) if is_uri(text) else local_path(text, base, key, report)


def recorded_path(path: Path, root: Path) -> str:
    """Return a directory as it is recorded: relative to the root, so that a copied root works.

    It is absolute if the root is in an object store.
    """
    if isinstance(path, ObjectPath):
        return str(path)
    return path.as_posix() if isinstance(root, ObjectPath) else Path(os.path.relpath(path, root)).as_posix()


def path_from_record(recorded: str, root: Path) -> Path:
    """Return the directory that :func:`recorded_path` recorded."""
    if is_uri(recorded):
        return ObjectPath(recorded)
    return Path(os.path.normpath(recorded if isinstance(root, ObjectPath) else root / recorded))


@dataclass(frozen=True)
class Landing:
    """Where files land: a local directory, or a place in a store and the local directory of its copies.

    ``files`` is the pattern in `landing`.
    """

    local: Path
    store: ObjectPath | None = None
    files: str | None = None


def landing_at(path: Path, root: Path, files: str | None = None) -> Landing:
    """Return the landing at a path; copies of a store's objects are for one warehouse, so that its lock guards them."""
    if not isinstance(path, ObjectPath):
        return Landing(path, files=files)
    name = hashlib.sha256(f"{root}\0{path}".encode()).hexdigest()[:16]
    return Landing(cache_directory() / "landing" / name, path, files)


def landing_faults(
    landings: Mapping[str, Path], root: Path | None, shared: Container[str] = ()
) -> Iterator[tuple[str, FaultError]]:
    """Yield (section, fault) for every landing that shares files with the root or with another landing.

    Parameters
    ----------
    landings
        Absolute paths by the section that declares them, ``streams.NAME`` or ``relations.NAME``. Symbolic links are
        followed: two names of one directory are the same directory.
    root
        Where the tables are.
    shared
        Sections that name their files by a pattern and do not move them: these may share a directory.

    """
    real = {section: _real_path(path) for section, path in landings.items()}
    real_root = root if isinstance(root, ObjectPath) else _real_root(root)
    for section, path in real.items():
        if real_root and path.is_relative_to(real_root):
            yield section, FaultError("a directory inside root", "a directory apart from root, where the tables are")
        elif real_root and real_root.is_relative_to(path):
            yield section, FaultError("a directory that holds root", "a directory apart from root, where the tables are")
    for (first_section, first_path), (second_section, second_path) in combinations(real.items(), 2):
        if first_section in shared and second_section in shared:
            continue
        if first_path == second_path:
            yield second_section, FaultError(f"the landing of {_described(first_section)}", _OWN_DIRECTORY)
        elif first_path.is_relative_to(second_path) or second_path.is_relative_to(first_path):
            inner, outer = (
                (first_section, second_section) if first_path.is_relative_to(second_path) else (second_section, first_section)
            )
            yield (
                inner,
                FaultError(
                    f"a directory inside the landing of {_described(outer)}, which is searched recursively", _OWN_DIRECTORY
                ),
            )


def move_to_faults(
    move_to: Mapping[str, Path], landings: Mapping[str, Path], root: Path | None
) -> Iterator[tuple[str, FaultError]]:
    """Yield (section, fault) for every ``move_to`` directory that overlaps the root, a landing or another ``move_to`` directory.

    Files that were moved into a landing would be loaded again.
    """
    real = {section: _real_path(path) for section, path in landings.items()}
    real_root = _real_root(root)
    real_move_to = {section: Path(os.path.realpath(path)) for section, path in move_to.items()}
    for section, path in real_move_to.items():
        directories = [("root", real_root)] if real_root else []
        directories += [(f"the landing of {_described(other)}", landing) for other, landing in real.items()]
        directories += [
            (f"the loaded files of {_described(name)}", other) for name, other in real_move_to.items() if name != section
        ]
        for name, other in directories:
            if path.is_relative_to(other) or (other.is_relative_to(path) and name != "root"):
                yield section, FaultError(f"{path}, which meets {name} ({other})", "a directory apart from root and all landings")
                break


def _real_path(path: Path) -> Path:
    """Return a directory with its links resolved; object stores have no links."""
    return path if isinstance(path, ObjectPath) else Path(os.path.realpath(path))


def _real_root(root: Path | None) -> Path | None:
    """Return the root with its links resolved; None if it is in an object store, which has no directory on this machine."""
    return None if root is None or isinstance(root, ObjectPath) else Path(os.path.realpath(root))


_OWN_DIRECTORY = (
    'a directory of its own for each stream and relation; or a pattern in each `landing`, such as "in/**/dns.*.log", '
    'and after_load = "keep"'
)


def _described(section: str) -> str:
    kind, name = section.split(".", 1)
    return f'the {kind.removesuffix("s")} "{name}"'
