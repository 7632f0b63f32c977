"""Which expected landing files are missing; none are missing once the windows are at T."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_stream_wh.project_file import LandingFolder, ProjectFile, read_project
from airflow_stream_wh.state import TableSummary, current_tables, newest_epoch
from warehouse.catalog.patterns import matches
from warehouse.errors import UnknownNameError
from warehouse.ingest.landing import list_landing
from warehouse.time import grid_slot

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ExpectedFiles", "expected_files", "missing_tables"]


@dataclass(frozen=True)
class ExpectedFiles:
    """The files that a run expects, and the command and project to ask; all fields can be written as JSON.

    ``files`` maps a table to a glob on the names of its landing files (on the relative path if it has a slash); None means any
    file that is not loaded yet. ``at`` is T in microseconds.
    """

    executable: str
    project: str
    environment: Mapping[str, str]
    files: Mapping[str, str | None]
    at: int

    def to_json(self) -> dict[str, object]:
        """Return the fields as plain values."""
        return {**vars(self), "environment": dict(self.environment), "files": dict(self.files)}

    @classmethod
    def of_json(cls, fields: Mapping[str, object]) -> Self:
        """Return the value of which :meth:`to_json` returned the fields."""
        return cls(**fields)  # type: ignore[arg-type]


def expected_files(files: Mapping[str, str | None] | Sequence[str]) -> dict[str, str | None]:
    """Return the expected files of a task by table, each a glob or None; a list of tables has no globs."""
    return dict(files) if isinstance(files, Mapping) else dict.fromkeys(files)


def missing_tables(expected: ExpectedFiles, clock: int) -> tuple[str, ...]:
    """Return the tables without an expected file; an empty tuple if the windows are already at T.

    Parameters
    ----------
    expected
        The expected files.
    clock
        The wall clock in microseconds, by which files are older than ``landing_settle``.

    Raises
    ------
    UnknownNameError
        When a table is named that has no landing directory.
    LandingError
        When a landing directory is not there.

    """
    project = read_project(expected.project)
    unknown = [name for name in expected.files if name not in project.landings]
    if unknown:
        raise UnknownNameError("stream or relation", unknown[0], tuple(project.landings))
    line = (expected.executable, "-C", expected.project)
    state = newest_epoch(line, expected.environment)
    if state is not None and _reached(project, state.window_time, expected.at):
        return ()
    tables: Mapping[str, TableSummary] = {}
    if state is not None and None in expected.files.values():
        tables = current_tables(line, expected.environment)
    return tuple(
        name
        for name, pattern in expected.files.items()
        if not _landed(project.landings[name], pattern, tables.get(name), clock)
    )


def _reached(project: ProjectFile, window_time: int, at: int) -> bool:
    return grid_slot(at, project.anchor, project.update_interval) <= grid_slot(
        window_time, project.anchor, project.update_interval
    )


def _landed(landing: LandingFolder, pattern: str | None, table: TableSummary | None, clock: int) -> bool:
    """Return whether there is a file that an update would load; before the first epoch it would load every file."""
    if pattern is None and table is not None and table.waiting_files is not None:
        return table.waiting_files > 0
    return any(
        not landing.settle or clock - file.mtime_ns // 1000 >= landing.settle  # the time of an object is none
        for file in list_landing(landing.directory, landing.files)
        if pattern is None or matches(file.path, pattern)
    )
