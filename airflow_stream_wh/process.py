"""``stream-wh`` as a process: started, listened to, stopped; its JVM never lives in an Airflow worker."""

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

__all__ = ["Ended", "RunningCommand", "default_executable", "started"]

NAME = "stream-wh"
KEPT_LINES = 1000
"""Lines of standard error that are kept after they were handed on; the error, if there is one, is the last."""
_PAUSE_SECONDS = 0.1
STOP_SECONDS = 20.0
"""How long an interrupted command has to end by itself: less than Airflow gives a task that it kills (60 s)."""
DRAIN_SECONDS = 30.0
"""How long a dead command's JVM has to end by itself."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: exit code (negative: the signal that killed it), standard output, the last lines of standard error."""

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
    beside = Path(sys.executable).with_name(NAME)
    found = str(beside) if beside.exists() else shutil.which(NAME)
    if found is None:
        raise PlatformError(
            f"{NAME} is neither beside {sys.executable} nor on the path; install stream-wh there, or give `executable`, "
            f"the {NAME} of the environment that has it"
        )
    return found


class RunningCommand:
    """A command at work, in a process group of its own.

    Parameters
    ----------
    line
        The program and its arguments.
    environment
        Variables on top of those of this process.

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

    def wait(self, tell: Callable[[str], None], drain: float = DRAIN_SECONDS) -> Ended:
        """Wait for the end, handing on each line of standard error when it comes.

        What the command leaves behind when it dies, such as its JVM, has ``drain`` seconds to end by itself, as it does
        when its parent is gone; then it is killed.
        """
        output: list[str] = []
        errors: deque[str] = deque(maxlen=KEPT_LINES)

        def listen(line: str) -> None:
            errors.append(line)
            tell(line)

        readers = (
            _reader(self._process.stdout, output.append),
            _reader(self._process.stderr, lambda line: listen(line.rstrip("\n"))),
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
        return Ended(self._process.returncode, "".join(output), tuple(errors))

    def stop(self, patience: float = STOP_SECONDS) -> None:
        """Interrupt the command as Ctrl-C does, and kill it with all that it started when it does not end in time.

        ``patience`` is in seconds. It may be called in a signal handler while this thread waits. An update that is stopped,
        either way, is completed by the next one.
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
def started(line: Sequence[str], environment: Mapping[str, str]) -> Iterator[RunningCommand]:
    """Start a command, and stop it when whoever waits for it is interrupted."""
    running = RunningCommand(line, environment)
    try:
        yield running
    except BaseException:
        running.stop()
        raise


def _reader(stream: IO[str] | None, take: Callable[[str], None]) -> threading.Thread:
    def read() -> None:
        with suppress(ValueError):  # the pipe was closed
            for line in stream or ():
                take(line)

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread
