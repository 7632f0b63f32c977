"""What a contender can do. Each is set up as its own documentation advises for this job; its docstring says how.

An update is ``load`` and then ``expire``; when each returns, what it did is on the disk for good (:meth:`force` helps those
that do not see to it themselves). ``tidy`` is the housekeeping that the documentation wants done now and then; it is timed by
itself. No answer may hold a row with ``until <= now``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.field.digest import Answer
    from benchmarks.field.job import Job

__all__ = ["Contender", "NotHereError"]


class NotHereError(Exception):
    """A contender cannot run on this machine; the text says what is missing and how to get it."""


@dataclass
class Contender(ABC):
    """One system, with a directory of its own.

    ``place`` is where everything it stores lies; ``job`` the job; ``place`` may hold what an earlier process stored.
    """

    place: Path
    job: Job
    _forced: dict[Path, tuple[int, int]] = field(default_factory=dict, repr=False)

    @abstractmethod
    def open(self) -> None:
        """Start, or start again over what is stored. Raises :class:`NotHereError` when something is missing."""

    @abstractmethod
    def build(self, files: Sequence[Path], now: int) -> None:
        """Store the rows of Parquet files that are live at ``now`` (microseconds), as before any update."""

    def ready(self, now: int) -> None:
        """Wait for whatever an update at ``now`` must wait for; not timed."""
        del now

    @abstractmethod
    def load(self, file: Path, now: int) -> None:
        """Store one update's rows."""

    def expire(self, now: int) -> None:
        """Remove the rows that expired by ``now``; do nothing where loading removes them, or reads filter them."""
        del now

    def tidy(self, now: int) -> None:
        """Do the housekeeping that is due."""
        del now

    @abstractmethod
    def probe(self, key: str, now: int) -> Answer:
        """Return the live rows of a key, all columns."""

    @abstractmethod
    def scan(self, now: int) -> Answer:
        """Return all live rows, all columns."""

    @abstractmethod
    def aggregate(self, now: int) -> tuple[int, float]:
        """Return sum(a) and max(b) of the live rows."""

    @abstractmethod
    def stored(self) -> int:
        """Return how many rows the files of its newest state hold, including dead rows and rows marked deleted."""

    @abstractmethod
    def close(self) -> None:
        """Let everything go."""

    def counted(self) -> dict[str, float]:
        """Return its own counts of its last update; empty if it does not count."""
        return {}

    def footprint(self) -> tuple[int, int]:
        """Return files and bytes on the disk."""
        sizes = [path.stat().st_size for path in self.place.rglob("*") if path.is_file()]
        return len(sizes), sum(sizes)

    def force(self) -> None:
        """Force files that are new or other than at the last call, and their directories, to the disk."""
        seen: dict[Path, tuple[int, int]] = {}
        directories: set[Path] = set()
        for path in self.place.rglob("*"):
            if not path.is_file():
                continue
            status = path.stat()
            seen[path] = (status.st_size, status.st_mtime_ns)
            if self._forced.get(path) != seen[path]:
                store_of(path).sync_file(path)
                directories |= {path.parent, path.parent.parent}
        for directory in directories:
            store_of(directory).sync_directory(directory)
        self._forced = seen
