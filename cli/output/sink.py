"""The destination of rendered bytes: standard output, or a file that appears only when it is complete."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from warehouse.cli.output.visible import is_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ClosedPipeError", "Sink", "open_sink"]


class ClosedPipeError(Exception):
    """Nobody reads standard output any more (``| head``): the command ends silently."""


class Sink:
    """A binary stream that distinguishes a closed pipe from other failures; ``terminal`` says whether a person reads it."""

    def __init__(self, stream: BinaryIO, *, terminal: bool = False) -> None:
        self._stream = stream
        self.written = False
        self.terminal = terminal
        self.closed = False  # pyarrow asks

    def write(self, data: bytes | memoryview) -> int:
        """Write all of the data."""
        self.written = True
        try:
            return self._stream.write(data)
        except BrokenPipeError as error:
            raise ClosedPipeError from error

    def flush(self) -> None:
        """Write the buffer to the operating system."""
        try:
            self._stream.flush()
        except BrokenPipeError as error:
            raise ClosedPipeError from error

    def writable(self) -> bool:
        """Return whether it can be written to, which pyarrow asks."""
        return not self.closed

    def close(self) -> None:
        """Keep the stream open: its owner closes it."""
        self.flush()


@contextmanager
def open_sink(file: Path | None) -> Iterator[Sink]:
    """Open a file, or standard output without one.

    A regular file is written under a temporary name and renamed when it is whole, so that a failed command leaves the
    former one as it was.
    """
    if file is None:
        sys.stdout.flush()
        sink = Sink(sys.stdout.buffer, terminal=is_terminal(sys.stdout))
        try:
            yield sink
            sink.flush()
        except ClosedPipeError:
            _abandon_stdout()
            raise
    elif file.exists() and not file.is_file():
        with file.open("wb") as stream:  # a pipe or a device
            sink = Sink(stream)
            yield sink
            sink.flush()
    else:
        temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as stream:
                yield Sink(stream)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)


def _abandon_stdout() -> None:
    """Redirect standard output to nowhere: Python flushes it once more at exit and would report an error."""
    with suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
