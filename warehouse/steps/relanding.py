"""Restores landing files that ``after_load = "move"`` has archived, so that they are read again.

A restatement needs the files that gave a table its rows. Archived files are moved back to their old place and name. The plan
lists them, and they are moved when the plan is executed, never before: once an update has seen that a file is gone, the file
counts as new when it reappears, and an update in between would load it twice. The process that completes the plan moves the rest.
After they are loaded, the files are archived again.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.declared_paths import path_from_record
from warehouse.catalog.patterns import matches
from warehouse.ingest.files import InputFiles, LandingFile, name_without_number, numbered_name
from warehouse.ingest.landing import list_landing
from warehouse.planning.inputs import grouped
from warehouse.planning.plan_record import RestoredFile
from warehouse.storage.beneath import restore_beneath

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LeftOut
    from warehouse.planning.plan_record import Plan

__all__ = ["ArchivedFiles", "grouped_with", "restore_archived", "restored_files"]


@dataclass
class ArchivedFiles:
    """The archived files of a stream; ``back`` maps the landing path of each wanted file to its place in the archive.

    Places are relative to ``move_to``, paths to the landing directory. ``here`` are the files in the landing directory.
    """

    stream: Stream
    here: frozenset[LandingFile]
    back: dict[str, str] = field(default_factory=dict)
    _places: dict[tuple[int, int], list[LandingFile]] = field(init=False)
    _occupied: set[str] = field(init=False)

    def __post_init__(self) -> None:
        """List the archived files. A file that is also in the landing directory does not count: its move has not ended."""
        archive = self.stream.move_to
        archived = list_landing(archive, "*") if archive is not None and archive.is_dir() else ()
        self._places = {}
        for file in archived:
            if not self.here & {file, replace(file, path=name_without_number(file.path))}:
                self._places.setdefault((file.size, file.mtime_ns), []).append(file)
        self._occupied = {file.path for file in self.here}

    def wanted(self, path: str, file: LandingFile, *, renamed: bool = True) -> LandingFile | None:
        """Return the file that was loaded from a path, as it will be when it is restored; None if it is not in the archive.

        If another file has its path by now, it gets a number, provided that it may be ``renamed``.
        """
        for archived in self._places.get((file.size, file.mtime_ns), ()):
            if path in (archived.path, name_without_number(archived.path)):
                return self._taken(archived, path, renamed=renamed)
        return None

    def others(self) -> list[LandingFile]:
        """Return all other files that may be this stream's, as they will be when they are restored."""
        places = sorted(
            (archived for candidates in self._places.values() for archived in candidates), key=lambda archived: archived.path
        )
        restored = (self._taken(archived, name_without_number(archived.path), renamed=True) for archived in places)
        return [file for file in restored if file is not None]

    def _taken(self, archived: LandingFile, path: str, *, renamed: bool) -> LandingFile | None:
        target, number = path, 0
        while target in self._occupied and renamed:
            number += 1
            target = numbered_name(path, number)
        if target in self._occupied or not matches(target, self.stream.files):
            return None
        self._places[archived.size, archived.mtime_ns].remove(archived)
        self._occupied.add(target)
        self.back[target] = archived.path
        return LandingFile(target, archived.size, archived.mtime_ns)


def grouped_with(
    stream: Stream, files: Sequence[LandingFile], back: Mapping[str, str]
) -> tuple[Stream, tuple[InputFiles, ...], list[LeftOut]]:
    """Return files by their CSV header, as :func:`grouped` does; archived files are read in the archive."""
    waiting = [file for file in files if file.path not in back]
    stream, groups, problems = grouped(stream, stream.landing, waiting)
    if stream.move_to is None or not back:
        return stream, groups, problems
    paths = {back[file.path]: file for file in files if file.path in back}
    stream, away, unread = grouped(
        stream, stream.move_to, [replace(file, path=archived_path) for archived_path, file in paths.items()]
    )
    by_header = {group.header: list(group.files) for group in groups}
    for group in away:
        by_header.setdefault(group.header, []).extend(paths[file.path] for file in group.files)
    problems += [type(problem)(paths[problem.file.path], problem.reason, problem.message) for problem in unread]
    return stream, tuple(InputFiles(header, tuple(members)) for header, members in by_header.items()), problems


def restored_files(stream: Stream, back: Mapping[str, str]) -> tuple[RestoredFile, ...]:
    """Return the plan's entries of the files to restore, without absolute paths, so that a copied project works."""
    if stream.move_to is None:
        return ()
    archive = Path(os.path.relpath(stream.move_to, stream.landing))
    return tuple(RestoredFile((archive / archived_path).as_posix(), path) for path, archived_path in back.items())


def restore_archived(plan: Plan, root: Path) -> None:
    """Restore the files of a plan that are not back yet; if a file is in neither place, reading it is an error."""
    for planned in plan.streams:
        landing = path_from_record(planned.declaration.landing, root)
        for entry in planned.restored_files:
            restore_beneath(Path(os.path.normpath(landing / entry.source)), landing, entry.path)
