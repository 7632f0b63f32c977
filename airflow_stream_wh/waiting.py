"""Which tables an update at T would still wait for: a file that has landed ends the wait, and so does T in the past."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from airflow_stream_wh.declared import Declared, LandingFolder, declared
from airflow_stream_wh.state import StandingTable, newest_epoch, tables_now
from warehouse.catalog.patterns import matches
from warehouse.errors import UnknownNameError
from warehouse.ingest.landing import list_landing
from warehouse.time import grid_slot

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ExpectedFiles", "expected_of", "missing"]


@dataclass(frozen=True)
class ExpectedFiles:
    """What is waited for, and how to ask; all of it can be written as JSON.

    ``files`` maps a table to a glob on the names of its landing files (on the relative path when it has a slash), or to
    None means "any file that is not loaded yet". ``at`` is T in microseconds.
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
        """Return what :meth:`to_json` was of."""
        return cls(**fields)  # type: ignore[arg-type]


def expected_of(files: Mapping[str, str | None] | Sequence[str]) -> dict[str, str | None]:
    """Return what a task was told to wait for, by table; a list of tables names no globs."""
    return dict(files) if isinstance(files, Mapping) else dict.fromkeys(files)


def missing(expected: ExpectedFiles, clock: int) -> tuple[str, ...]:
    """Return the tables for which no file is there yet; no table if the windows are already at T.

    Parameters
    ----------
    expected
        What is waited for.
    clock
        The wall clock in microseconds, against which ``landing_settle`` is measured.

    Raises
    ------
    UnknownNameError
        When a table is named that has no landing directory.
    LandingError
        When a landing directory is not there.

    """
    project = declared(expected.project)
    unknown = [name for name in expected.files if name not in project.landings]
    if unknown:
        raise UnknownNameError("stream or relation", unknown[0], tuple(project.landings))
    line = (expected.executable, "-C", expected.project)
    state = newest_epoch(line, expected.environment)
    if state is not None and _reached(project, state.window_time, expected.at):
        return ()
    standing: Mapping[str, StandingTable] = {}
    if state is not None and None in expected.files.values():
        standing = tables_now(line, expected.environment)
    return tuple(
        name
        for name, pattern in expected.files.items()
        if not _landed(project.landings[name], pattern, standing.get(name), clock)
    )


def _reached(project: Declared, window_time: int, at: int) -> bool:
    return grid_slot(at, project.anchor, project.update_interval) <= grid_slot(
        window_time, project.anchor, project.update_interval
    )


def _landed(landing: LandingFolder, pattern: str | None, table: StandingTable | None, clock: int) -> bool:
    """Tell whether a file is there that an update would load; before the first epoch every file is."""
    if pattern is None and table is not None and table.waiting_files is not None:
        return table.waiting_files > 0
    return any(
        not landing.settle or clock - file.mtime_ns // 1000 >= landing.settle  # the time of an object is none
        for file in list_landing(landing.directory, landing.files)
        if pattern is None or matches(file.path, pattern)
    )
