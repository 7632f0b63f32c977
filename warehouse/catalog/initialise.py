"""Writes a new project: a commented ``warehouse.toml`` and landing files, from an example or from a user's file."""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.load import FILE_NAME
from warehouse.catalog.spelling import nearest
from warehouse.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.resources.abc import Traversable

    from warehouse.catalog.init_options import InitOptions

__all__ = ["DEFAULT_EXAMPLE", "examples", "write_files", "write_project"]

DEFAULT_EXAMPLE = "answers"
"""The example whose file shows every key."""

_PACKAGE = "warehouse.sample_data"


def examples() -> tuple[str, ...]:
    """Return the names of the examples that are installed with the program."""
    return tuple(sorted(example.name for example in files(_PACKAGE).iterdir() if (example / FILE_NAME).is_file()))


def write_project(
    directory: Path, example: str | None = None, source: Path | None = None, choices: InitOptions | None = None
) -> list[Path]:
    """Write a project and return the files written, ``warehouse.toml`` first.

    Parameters
    ----------
    directory
        The directory of the project; it is created if it does not exist, and may have other files.
    example
        The name of one of :func:`examples`; by default the one that shows every key.
    source
        A file to declare a stream for, instead of an example: CSV, JSON lines, Parquet, a log. It is copied into the landing
        directory.
    choices
        Values that replace guesses from the source.

    Raises
    ------
    UsageError
        When a file exists already; then nothing is written. Also when both an example and a source are given, or the source is
        not usable.
    UnknownNameError
        When there is no such example.

    """
    if example is not None and source is not None:
        raise UsageError("an example and a file were given; choose one of --example and --from")
    content: Mapping[str, Traversable | Path | bytes]
    if source is None:
        content = dict(_example(example or DEFAULT_EXAMPLE))
    else:
        from warehouse.catalog.proposal import propose  # noqa: PLC0415 - it needs DuckDB, the examples do not

        content = propose(source, choices)
    return write_files(directory, content)


def _example(name: str) -> Iterator[tuple[str, Traversable]]:
    if name not in examples():
        raise UnknownNameError("example", name, examples(), nearest(name, examples()))
    folder = files(_PACKAGE) / name
    yield FILE_NAME, folder / FILE_NAME
    yield from _landing_files(folder / "landing", "landing")


def _landing_files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _landing_files(entry, f"{path}/{entry.name}")
        else:
            yield f"{path}/{entry.name}", entry


def write_files(directory: Path, content: Mapping[str, Traversable | Path | bytes]) -> list[Path]:
    """Write the files of a project, and return their paths; ``content`` has them by their paths below the directory.

    Raises
    ------
    UsageError
        When one of the files exists (then nothing is written), or cannot be written.

    """
    targets = {directory / path: source for path, source in content.items()}
    if present := [str(path) for path in targets if path.exists()]:
        raise UsageError(f"{present[0]} exists and nothing is ever overwritten; choose another directory")
    try:
        for path, source in targets.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                if isinstance(source, bytes):
                    file.write(source)
                else:
                    with source.open("rb") as original:
                        shutil.copyfileobj(original, file)
            if isinstance(source, Path):  # its lines without a year get the year of this time
                os.utime(path, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    except OSError as error:
        raise UsageError(f"cannot write {error.filename} ({error.strerror}); choose another directory") from error
    return list(targets)
