"""Archives loaded landing files: they stay, are moved to an archive directory, or are deleted.

A file is archived only when every readable epoch has its rows: the epoch that loaded it is the oldest readable one, or older. So
after a rollback to any readable epoch the later files are still there. A file counts as loaded until an update has seen that it
is gone, and one system call moves or deletes it: after a crash it is in one place or the other, and it is never loaded twice. A
restatement moves it back (:mod:`warehouse.steps.relanding`).
"""

from __future__ import annotations

import filecmp
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, newest_epoch
from warehouse.epochs.known import known_files, known_of, loaded_after
from warehouse.ingest.files import numbered_name
from warehouse.ingest.loaded_files import ranges_of
from warehouse.storage.beneath import facts_beneath, move_beneath, remove_beneath

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["archive_loaded"]

_MANY, _RARELY = 320, 32
_CLOCK_SECONDS = 2.0
"""To which other file systems may cut a modification time."""


def archive_loaded(catalog: Catalog, *, rarely: bool = False, dry_run: bool = False) -> int:
    """Move or delete the loaded landing files that no readable epoch may need, and return their number.

    The caller holds the writer lock and has finished any open plan. This reads all readable epochs: if they are many, an update
    does it ``rarely``, at every 32nd epoch, so that its time does not grow with ``retain``.
    """
    sources = [source for source in catalog.sources if source.after_load != "keep"]
    readable = epoch_numbers(catalog.root) if sources else []
    if not readable or (rarely and len(readable) > _MANY and readable[-1] % _RARELY):
        return 0
    count = 0
    for stream, files in _loaded_for_good(catalog, sources, readable):
        for file in files:
            if _is_as_loaded(stream, file):
                count += 1
                if not dry_run:
                    _archive(stream, file.path)
    return count


def _loaded_for_good(
    catalog: Catalog, streams: list[Stream], readable: list[int]
) -> Iterator[tuple[Stream, list[LandingFile]]]:
    files_by_stream = known_files(catalog.root, newest_epoch(catalog.root))
    later = loaded_after(catalog.root, readable[0], readable[-1])
    for stream in streams:
        table_files = known_of(files_by_stream, stream.name)
        needed = later.get(stream.name, set()) | table_files.reload
        runs = (run.files() for run in ranges_of(table_files.loaded))
        yield stream, [file for files in runs for path, file in files.items() if path not in needed]


def _is_as_loaded(stream: Stream, file: LandingFile) -> bool:
    """Whether the file exists, is no link, and is the file that was loaded: any other file waits for `reload`."""
    facts = facts_beneath(stream.landing, file.path)
    return facts is not None and (facts.st_size, facts.st_mtime_ns) == (file.size, file.mtime_ns)


def _archive(stream: Stream, relative: str) -> None:
    if stream.move_to is None:
        remove_beneath(stream.landing, relative)
        return
    target = stream.move_to / _free_name(stream.move_to, relative, stream.landing / relative)
    move_beneath(stream.landing, relative, target.parent, target.name)


def _free_name(into: Path, relative: str, source: Path) -> str:
    """Return the name, with a number if another file has it: ``a.csv.gz``, ``a~1.csv.gz``."""
    number = 0
    while (into / (target := numbered_name(relative, number))).exists() and not _is_copy(source, into / target):
        number += 1
    return target


def _is_copy(source: Path, target: Path) -> bool:
    """Whether a file is the leftover of a stopped move: it has the same time, too, unlike a file that was delivered twice."""
    seconds_apart = abs(source.stat().st_mtime - target.stat().st_mtime)
    return seconds_apart <= _CLOCK_SECONDS and filecmp.cmp(source, target, shallow=False)
