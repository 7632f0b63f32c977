"""Where a declaration's directories are, and which of them may not meet."""

from __future__ import annotations

import os
import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.spelling import FaultError, as_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.catalog.report import Report

__all__ = ["landing_faults", "local_path", "moved_faults"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/|file:")


def local_path(text: str, base: Path, key: str, report: Report) -> Path | None:
    """Return the absolute path that ``text`` means in a file of the directory ``base``, or report its fault."""
    if _URI.match(text):
        allowed = "a local path; URIs are refused until object storage is supported"
        report.add(key, FaultError(as_written(text), allowed))
        return None
    if not text.strip() or "\0" in text:
        report.add(key, FaultError(as_written(text), "a local path, relative to this file or absolute"))
        return None
    return Path(os.path.normpath(base / text))


def landing_faults(landings: Mapping[str, Path], root: Path | None) -> Iterator[tuple[str, FaultError]]:
    """Yield (section, fault) for every landing that shares files with the root or with another landing.

    Parameters
    ----------
    landings
        Absolute paths by the section that declares them, ``streams.NAME`` or ``relations.NAME``. Symbolic links are
        followed: two names of one place are one place.
    root
        Where the tables are.

    """
    real = {section: Path(os.path.realpath(path)) for section, path in landings.items()}
    home = Path(os.path.realpath(root)) if root else None
    for section, place in real.items():
        if home and place.is_relative_to(home):
            yield section, FaultError("a directory inside root", "a directory apart from root, where the tables are")
        elif home and home.is_relative_to(place):
            yield section, FaultError("a directory that holds root", "a directory apart from root, where the tables are")
    for (one, first), (other, second) in combinations(real.items(), 2):
        if first == second:
            yield other, FaultError(f"the landing of {_named(one)}", _OWN)
        elif first.is_relative_to(second) or second.is_relative_to(first):
            inner, outer = (one, other) if first.is_relative_to(second) else (other, one)
            yield inner, FaultError(f"a directory inside the landing of {_named(outer)}, which is searched recursively", _OWN)


def moved_faults(moved: Mapping[str, Path], landings: Mapping[str, Path], root: Path | None) -> Iterator[tuple[str, FaultError]]:
    """Yield (section, fault) for every place of loaded files that shares files with the root, a landing or another such place.

    Files that were moved into a landing would be loaded again.
    """
    real = {section: Path(os.path.realpath(path)) for section, path in landings.items()}
    home = Path(os.path.realpath(root)) if root else None
    own = {section: Path(os.path.realpath(path)) for section, path in moved.items()}
    for section, place in own.items():
        others = [("root", home)] if home else []
        others += [(f"the landing of {_named(other)}", path) for other, path in real.items()]
        others += [(f"the loaded files of {_named(other)}", path) for other, path in own.items() if other != section]
        for name, path in others:
            if place.is_relative_to(path) or (path.is_relative_to(place) and name != "root"):
                yield section, FaultError(f"{place}, which meets {name} ({path})", "a directory apart from root and all landings")
                break


_OWN = "a directory of its own for each stream and relation"


def _named(section: str) -> str:
    kind, name = section.split(".", 1)
    return f'the {kind.removesuffix("s")} "{name}"'
