"""Reloading: a landing file that was loaded is marked, and the next update that moves the window loads it once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.epochs.known import known_files, known_of
from warehouse.epochs.records import Epoch, Loaded
from warehouse.errors import UsageError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import finish, write_epoch

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Stream

__all__ = ["reload"]


def reload(context: WriteContext, path: str) -> Epoch:
    """Mark a loaded landing file for the next update that moves the window, in an epoch at the same window time.

    ``path`` is absolute (of an object its URI), or relative to the working directory, the project or a landing.

    Raises
    ------
    UsageError
        When no landing directory has the file, or it was not loaded.

    """
    with locked(context):
        last = finish(context).last
        if last is None:
            raise UsageError("nothing has been loaded yet; the next update loads every landing file")
        stream, relative = _landing_path(context.catalog, path)
        known = known_of(known_files(context.root, last), stream.name)
        if relative not in known.loaded and relative not in known.left_out:
            raise UsageError(f'"{relative}" was not loaded by stream "{stream.name}"; the next update loads new files')
        return write_epoch(context, last, (Loaded(stream.name, reload=(relative,)),), cause="reload")


def _landing_path(catalog: Catalog, path: str) -> tuple[Stream, str]:
    """Return the stream that has a file, and the file's path in its landing directory."""
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
