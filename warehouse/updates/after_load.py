"""What becomes of landing files once they are loaded: they stay, are put aside, or are deleted.

A file goes only when every readable epoch has its rows: the epoch that loaded it is the oldest readable one, or older. So a
return to any epoch that can still be read finds the files that came after it. It is known as loaded until an update has
seen that it is gone, and it is moved or deleted by one system call: whenever a crash comes, it is in one place or the
other, and is never loaded twice. Across file systems it is copied, made durable under its name and then deleted.
"""

from __future__ import annotations

import errno
import filecmp
import os
import shutil
from typing import TYPE_CHECKING

from warehouse.storage.durable import sync_directory, sync_file
from warehouse.updates.journal import epoch_numbers, newest_epoch, read_epoch
from warehouse.updates.known import known_files, known_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["put_away"]


def put_away(catalog: Catalog, *, dry_run: bool = False) -> int:
    """Move or delete the loaded landing files of which no readable epoch may have need, and return how many.

    The caller holds the writer lock and has finished any open plan.
    """
    wanted = [source for source in catalog.sources if source.after_load != "keep"]
    if not wanted:
        return 0
    count = 0
    for stream, files in _loaded_for_good(catalog, wanted):
        for file in files:
            path = stream.landing / file.path
            if _is_as_loaded(path, file):
                count += 1
                if not dry_run:
                    _put_away(stream, path, file.path)
    return count


def _loaded_for_good(catalog: Catalog, streams: list[Stream]) -> Iterator[tuple[Stream, list[LandingFile]]]:
    root = catalog.root
    newest, readable = newest_epoch(root), epoch_numbers(root)
    known = known_files(root, newest)
    later: dict[str, set[str]] = {}
    for number in readable[1:]:
        for entry in read_epoch(root, number).files:
            later.setdefault(entry.stream, set()).update(file.path for file in entry.loaded)
    for stream in streams:
        own = known_of(known, stream.name)
        kept = later.get(stream.name, set()) | own.reload
        yield stream, [file for path, file in own.loaded.items() if path not in kept]


def _is_as_loaded(path: Path, file: LandingFile) -> bool:
    """Whether the file is there, no link, and the one that was loaded: another one waits for `reload`."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    return not path.is_symlink() and (facts.st_size, facts.st_mtime_ns) == (file.size, file.mtime_ns)


def _put_away(stream: Stream, path: Path, relative: str) -> None:
    if stream.move_to is None:
        path.unlink()
        return
    target = _free_name(stream.move_to / relative, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copied(path, target)
        path.unlink()
    sync_directory(target.parent)
    sync_directory(path.parent)


def _free_name(wanted: Path, source: Path) -> Path:
    """The name, or with a number when another file has it: ``a.csv.gz``, ``a~1.csv.gz``."""
    stem, dot, ending = wanted.name.partition(".")
    target, number = wanted, 0
    while target.exists() and not filecmp.cmp(source, target, shallow=False):
        number += 1
        target = wanted.with_name(f"{stem}~{number}{dot}{ending}")
    return target


def _copied(path: Path, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.copy2(path, temporary)
    sync_file(temporary)
    temporary.replace(target)
    sync_directory(target.parent)
