"""Marks a loaded landing file, so that the next update that moves the window loads it once more."""

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
    from warehouse.ingest.landing import KnownFiles

__all__ = ["reload"]


def reload(context: WriteContext, path: str) -> Epoch:
    """Mark a loaded landing file for the next update that moves the window, in an epoch at the same window time.

    ``path`` is absolute (for an object: its URI), or relative to the working directory, the project or a landing.

    Raises
    ------
    UsageError
        When no landing directory has the file, or it was not loaded.

    """
    with locked(context):
        last = finish(context).last
        if last is None:
            raise UsageError("nothing has been loaded yet; run `stream-wh update`, which loads every landing file")
        landing_paths = _landing_paths(context.catalog, path)
        known_by_stream = known_files(context.root, last)
        loaded = [
            (stream, relative)
            for stream, relative in landing_paths
            if _is_known(known_of(known_by_stream, stream.name), relative)
        ]
        if not loaded:
            stream, relative = landing_paths[0]
            raise UsageError(
                f'"{relative}" was not loaded by stream "{stream.name}"; run `stream-wh update`, which loads new files, or '
                "correct the path"
            )
        if len({stream.landing_path / relative for stream, relative in loaded}) > 1:
            calls = " or ".join(stream.displayed_path(relative, context.catalog.file.parent) for stream, relative in loaded)
            raise UsageError(f'several landings have a file "{path}"; say which one: {calls}')
        return write_epoch(context, last, tuple(Loaded(stream.name, reload=(file,)) for stream, file in loaded), cause="reload")


def _is_known(known: KnownFiles, relative: str) -> bool:
    return relative in known.loaded or relative in known.left_out


def _landing_paths(catalog: Catalog, path: str) -> list[tuple[Stream, str]]:
    """Return the streams that may have a file, each with the file's path in its landing directory."""
    landing_paths = [
        (stream, inner) for stream in catalog.sources if (inner := _within(stream, catalog.file.parent, path)) is not None
    ]
    if not landing_paths:
        raise UsageError(f'"{path}" is in no landing directory; give a path relative to the project or to a landing')
    return landing_paths


def _within(stream: Stream, project: Path, path: str) -> str | None:
    """Return the path of a file in the landing of a stream; None if it does not exist."""
    if stream.store is not None:
        inner = path.removeprefix(f"{stream.store}/")
        return inner if (stream.store / inner).is_file() else None
    landing = stream.landing.resolve()
    for candidate in (Path(path).absolute(), project / path, stream.landing / path):
        if candidate.resolve().is_relative_to(landing) and candidate.is_file():
            return candidate.resolve().relative_to(landing).as_posix()
    return None
