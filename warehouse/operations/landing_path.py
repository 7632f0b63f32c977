"""Which stream a path of a landing file is of, as a person writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.errors import UsageError

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Stream

__all__ = ["landing_path"]


def landing_path(catalog: Catalog, path: str) -> tuple[Stream, str]:
    """Return the stream that has a file, and the file's path in its landing.

    ``path`` is absolute (of an object its URI), or relative to the working directory, the project or a landing.

    Raises
    ------
    UsageError
        When no landing has it.

    """
    given = Path(path)
    for stream in catalog.sources:
        if stream.store is not None:
            inner = path.removeprefix(f"{stream.store}/")
            if (stream.store / inner).is_file():
                return stream, inner
            continue
        for candidate in (given.absolute(), catalog.file.parent / given, stream.landing / given):
            if candidate.resolve().is_relative_to(stream.landing.resolve()) and candidate.is_file():
                return stream, candidate.resolve().relative_to(stream.landing.resolve()).as_posix()
    raise UsageError(f'"{path}" is in no landing directory; give a path relative to the project or to a landing')
