"""Runs ``stream-wh`` as a process of its own, so that its JVM is never in an Airflow worker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from warehouse.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

__all__ = ["CommandResult", "RunningCommand", "default_executable", "running_command"]

NAME = "stream-wh"
MAX_ERROR_LINES = 1000
"""How many of the last lines of standard error a result has; an error is the last line."""
_PAUSE_SECONDS = 0.1
STOP_SECONDS = 20.0
"""Seconds in which an interrupted command may end by itself: less than Airflow gives a task that it kills (60 s)."""
DRAIN_SECONDS = 30.0
"""Seconds in which the JVM of a dead command may end by itself."""


@dataclass(frozen=True)
class CommandResult:
    """The exit code of a command (negative: the signal that killed it), its standard output, its last lines of standard error."""

    code: int
    output: str
    errors: tuple[str, ...]


def default_executable() -> str:
    """Return ``stream-wh`` of this Python's environment, else the one on the path.

    Raises
    ------
    PlatformError
        When there is neither.

    """
    own = Path(sys.executable).with_name(NAME)
    executable = str(own) if own.exists() else shutil.which(NAME)
    if executable is None:
        raise PlatformError(
            f"{NAME} is neither beside {sys.executable} nor on the path; install stream-wh there, or give `executable`, "
            f"the {NAME} of the environment that has it"
        )
    return executable


class RunningCommand:
    """A running command, in a process group of its own.

    Parameters
    ----------
    line
        The program and its arguments.
    environment
        Environment variables in addition to this process's own.

    Raises
    ------
    PlatformError
        When the program cannot be started.

    """

    def __init__(self, line: Sequence[str], environment: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the executable is the author's of the DAG
                list(line),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env={**os.environ, **environment},
                start_new_session=True,
            )
        except OSError as error:
            raise PlatformError(f"{line[0]} cannot be started ({error.strerror}); correct `executable`") from error

    def wait(self, on_line: Callable[[str], None], drain: float = DRAIN_SECONDS) -> CommandResult:
        """Wait for the end and return the result; ``on_line`` is called with each line of standard error when it arrives.

        Processes that the command leaves behind when it dies, such as its JVM, may end by themselves within ``drain`` seconds,
        as they do when their parent is gone; then they are killed.
        """
        output: list[str] = []
        errors: deque[str] = deque(maxlen=MAX_ERROR_LINES)

        def take_error_line(line: str) -> None:
            errors.append(line)
            on_line(line)

        readers = (
            _start_reader(self._process.stdout, output.append),
            _start_reader(self._process.stderr, lambda line: take_error_line(line.rstrip("\n"))),
        )
        while self._process.poll() is None:  # a blocking wait would hold a lock that `stop` needs in a signal handler
            time.sleep(_PAUSE_SECONDS)
        deadline = time.monotonic() + drain
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        if any(reader.is_alive() for reader in readers):  # the pipes are still held
            self._signal_group(signal.SIGKILL)
            for reader in readers:
                reader.join(drain)
        return CommandResult(self._process.returncode, "".join(output), tuple(errors))

    def stop(self, patience: float = STOP_SECONDS) -> None:
        """Interrupt the command as Ctrl-C does; after ``patience`` seconds kill it and all processes that it started.

        A signal handler may call it while this thread waits. The next update completes a stopped update.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


@contextmanager
def running_command(line: Sequence[str], environment: Mapping[str, str]) -> Iterator[RunningCommand]:
    """Start a command and yield it; an exception, such as an interrupt, stops it."""
    running = RunningCommand(line, environment)
    try:
        yield running
    except BaseException:
        running.stop()
        raise


def _start_reader(stream: IO[str] | None, take: Callable[[str], None]) -> threading.Thread:
    def read() -> None:
        with suppress(ValueError):  # the pipe was closed
            for line in stream or ():
                take(line)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread
