"""Where messages to contenders go: a station in this process, or a worker process with a Python of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from benchmarks.field.station import Station

__all__ = ["DiedError", "Here", "Host", "Worker"]

_ROOT = Path(__file__).parents[2]
_GRACE = 60


class DiedError(Exception):
    """A worker ended, or did not answer in time; the text says which."""


class Host(Protocol):
    """Something that runs contenders."""

    def do(self, message: dict[str, Any]) -> dict[str, Any]:
        """Carry out a message."""
        ...

    def close(self) -> None:
        """End."""
        ...


class Here(Station):
    """A station in this process."""


@dataclass
class Worker:
    """A worker process; it is ended when it does not answer within ``patience`` seconds. What it prints goes to ``log``.

    It keeps a descriptor ``lock`` open, so that a lock on it is held until the worker, too, has ended.
    """

    python: str
    log: Path
    patience: float
    lock: int | None = None
    _process: subprocess.Popen[bytes] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Start it, in a process group of its own."""
        paths = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.python, "-m", "benchmarks.field.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,
                pass_fds=() if self.lock is None else (self.lock,),
            )

    def do(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and wait for the reply.

        Raises
        ------
        DiedError
            When the worker ended or did not answer in time.

        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], self.patience)
            if not ready:
                self._kill()
                raise DiedError(f"no answer within {self.patience:g} s")
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            raise DiedError(f"its process ended with code {self._process.wait()}; see {self.log.name}")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def close(self) -> None:
        """Let it end by itself, as its input does; end it if it does not."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
