"""The time that an answer may take: how much is left, and which files can be read in it.

Nothing is interrupted. The time for the next files is predicted from the files before, and a read that does not fit is not begun.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.storage.snapshot import DataFile

__all__ = ["Clock", "Coverage", "clock_of"]

_PART_OF_THE_REST = 0.5
"""Several files read at once may take this share of the remaining time: the prediction comes from other files."""
_MARGIN = 1.3


@dataclass(frozen=True)
class Coverage:
    """The known part of an answer: whether it is exact, its files and stored rows, and how many of each were read.

    ``groups_complete``: the answer certainly has all groups.
    """

    exact: bool
    files: int
    files_read: int
    rows: int
    rows_read: int
    groups_complete: bool

    @property
    def facts(self) -> dict[str, str]:
        """The coverage as metadata of an answer."""
        return {"stream_wh.exact": str(self.exact).lower(), "stream_wh.files_read": f"{self.files_read} of {self.files}"}

    def __str__(self) -> str:
        """The line that is printed with the answer."""
        if self.exact:
            return "exact: everything was read in time"
        groups = "" if self.groups_complete else "; there may be further groups"
        rows = f"{self.rows_read} of {self.rows} stored rows in {self.files_read} of {self.files} files"
        return f"an estimate with certain bounds: {rows} were read{groups}"


@dataclass
class Clock:
    """The remaining time, and how long the next bytes take, predicted from the bytes before."""

    seconds: float
    begun: float
    now: Callable[[], float] = time.monotonic
    rate: float | None = None

    @property
    def left(self) -> float:
        """Seconds."""
        return self.begun + self.seconds - self.now()

    def measured(self, size: int, seconds: float) -> None:
        """Record how long some bytes took."""
        self.rate = seconds / max(size, 1)

    def suffices(self, files: Sequence[DataFile]) -> bool:
        """Whether all files can probably be read in the time that is left."""
        return self.rate is not None and sum(file.size for file in files) * self.rate * _MARGIN <= self.left

    def next_files(self, files: list[DataFile], reserve: float) -> list[DataFile]:
        """Remove the files to read next from a list, and return them; empty if no file fits in the remaining time."""
        seconds = self.left - reserve
        if not files or seconds <= 0:
            return []
        if self.rate is None:
            smallest = min(files, key=lambda file: file.size)
            files.remove(smallest)
            return [smallest]
        chosen: list[DataFile] = []
        size = 0
        for file in files:
            fits_alone = not chosen and file.size * self.rate * _MARGIN <= seconds
            if fits_alone or (chosen and (size + file.size) * self.rate <= seconds * _PART_OF_THE_REST):
                chosen.append(file)
                size += file.size
        for file in chosen:
            files.remove(file)
        return chosen


def clock_of(within: int) -> Clock:
    """Return the clock of an answer that may take this number of microseconds from now on.

    Raises
    ------
    UsageError
        When the number is not positive.

    """
    if isinstance(within, bool) or not isinstance(within, int) or within <= 0:
        raise UsageError(f"within: found {within!r} microseconds; give a time above 0, such as 200ms (in Python 200_000)")
    return Clock(within / 1e6, time.monotonic())
