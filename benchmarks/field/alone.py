"""One run at a time in a directory, and no run while workers of a killed run still work in it."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["BusyError", "alone"]


class BusyError(Exception):
    """Another run is at work in the directory; the text says what to do."""


@contextmanager
def alone(work: Path) -> Iterator[int]:
    """Hold the lock of a directory; yields the descriptor, which workers inherit.

    Raises
    ------
    BusyError
        When another process holds it.

    """
    work.parent.mkdir(parents=True, exist_ok=True)
    with work.with_name(f"{work.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"another run, or a worker of one that was stopped, is at work in {work}; wait for its end"
            raise BusyError(message) from error
        yield file.fileno()
