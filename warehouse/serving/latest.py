"""Answers of the newest epoch at the moment they are given (window-concurrency sheet: latest-window-serializable).

A pinned answer is of the epoch that was newest when it was asked. If a newer epoch exists when the answer is ready, the answer is
computed again, a bounded number of times; the last answer is returned with its staleness.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from warehouse.epochs.journal import epoch_numbers
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.serving.answer import Answer

__all__ = ["Isolation", "MovedError", "latest", "unless_moved"]

Isolation = Literal["pinned", "latest"]
_ROUNDS = 3


class Refreshed(Protocol):
    """The part of a reader that follows epochs."""

    root: Path

    @property
    def epoch(self) -> Epoch:
        """The epoch that it reads."""

    @property
    def as_of(self) -> int | None:
        """The instant of its epoch; None: it may be refreshed."""

    def refresh(self) -> bool:
        """Move to the newest epoch, and return whether it is another one."""


class MovedError(Exception):
    """There is a newer epoch than the epoch that is being read."""


def unless_moved(reader: Refreshed) -> None:
    """Raise MovedError if there is a newer epoch than a reader's."""
    numbers = epoch_numbers(reader.root)
    if numbers and numbers[-1] > reader.epoch.number:
        raise MovedError


def latest(reader: Refreshed, isolation: Isolation, make: Callable[[Callable[[], None] | None], Answer]) -> Answer:
    """Return the answer that ``make`` gives of a reader's epoch; it is computed again if that epoch is no longer the newest.

    Parameters
    ----------
    reader
        The reader, without ``as_of``; it is refreshed as often as necessary.
    isolation
        ``"pinned"``: the answer of the reader's epoch.
    make
        Makes an answer; it gets a function to call between two readings of files, None if nothing ends them.

    Raises
    ------
    UsageError
        For any other isolation, and for the newest epoch of a reader of the past.

    """
    if isolation == "pinned":
        return make(None)
    if isolation != "latest":
        raise UsageError(f'isolation is "{isolation}"; allowed: "pinned", "latest"')
    if reader.as_of is not None:
        raise UsageError('as_of names an epoch of the past, isolation "latest" the newest one; leave one of them out')
    reader.refresh()
    return _answer_of_newest(reader, make).renewed_by(lambda: _answer_of_newest(reader, make) if reader.refresh() else None)


def _answer_of_newest(reader: Refreshed, make: Callable[[Callable[[], None] | None], Answer]) -> Answer:
    for _ in range(_ROUNDS):
        try:
            return make(lambda: unless_moved(reader))
        except MovedError:
            reader.refresh()
    return make(lambda: None)
