"""Work of the driver for a large coalesced table while Spark loads the rows of its stream.

The driver reads the stored rows while Spark reads and counts the arrived rows. It makes new rows, and encodes them as files,
while Spark writes the stream's files. The stored rows are rows of the last epoch, and the points are the rows that Spark counted.
Before the stream's commit the landing files are checked again: if one changed since it was planned, the batch and everything made
from it are dropped. Nothing is written ahead of the table's step, so a process that ends meanwhile leaves no trace of it.

An update works ahead for one table at a time, since the rows of each may take much memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["Follower", "WorkAhead"]


class Follower(Protocol):
    """The source of a table that follows a stream."""

    def read_ahead(self) -> tuple[str, ...]:
        """Begin to read stored rows, and return the columns that are needed from the batch; empty: no reading was begun."""

    def make_ahead(self) -> None:
        """Begin to make new rows, if reading was begun and the batch has the columns."""


@dataclass(eq=False)
class WorkAhead:
    """The work ahead of a plan; ``followers`` gives the coalesced tables of a stream whose steps are still to be done."""

    followers: Callable[[str], Iterable[Follower]]
    _stream: str | None = None

    def read(self, stream: str) -> tuple[str, ...]:
        """Begin to read a table's stored rows, and return the columns that are needed from the batch of its stream."""
        if self._stream not in (None, stream):
            return ()
        for follower in self.followers(stream):
            columns = follower.read_ahead()
            if columns:
                self._stream = stream
                return columns
        return ()

    def make(self, stream: str) -> None:
        """Begin to make the new rows of that table, now that the batch is there."""
        if self._stream == stream:
            for follower in self.followers(stream):
                follower.make_ahead()
