"""A real shell whose `stream-wh` runs in this process, so that all snippets share one Spark session and start no interpreter.

In the script `stream-wh` is a function of the shell that hands its words to a socket of this process and prints what comes
back: the exit code, then what the command wrote. Pipes, redirections, variables and comments are the shell's own.
"""

from __future__ import annotations

import contextlib
import io
import os
import selectors
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Ended", "shell"]

_PRELUDE = r"""
set -e
export NO_COLOR=1 COLUMNS=130
stream-wh() {
    local code
    exec 7<>"/dev/tcp/127.0.0.1/$STREAM_WH_TEST_PORT"
    printf '%s\0' "$#" "$PWD" "$@" >&7
    IFS= read -r code <&7
    cat <&7
    exec 7>&-
    return "$code"
}
"""


@dataclass(frozen=True)
class Ended:
    """How a script ended: its exit code, what it printed, what its commands told on standard error."""

    code: int
    out: str
    told: str


class _Stream(io.TextIOWrapper):
    """Where a command writes; a person looks at it where a snippet shows what is seen."""

    def __init__(self, *, terminal: bool) -> None:
        self._written = io.BytesIO()
        self._terminal = terminal
        super().__init__(self._written, encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return self._terminal

    @property
    def written(self) -> bytes:
        self.flush()
        return self._written.getvalue()


def shell(script: str, place: Path, *, terminal: bool = False) -> Ended:
    """Run a script in a directory; with ``terminal`` commands write tables, and messages stand among the output."""
    messages = b""
    with socket.create_server(("127.0.0.1", 0)) as server, selectors.DefaultSelector() as waiting:
        bash = subprocess.Popen(
            ["bash", "-c", _PRELUDE + script],
            cwd=place,
            env={**os.environ, "STREAM_WH_TEST_PORT": str(server.getsockname()[1])},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert bash.stdout is not None
        waiting.register(server, selectors.EVENT_READ)
        waiting.register(bash.stdout, selectors.EVENT_READ)
        printed = b""
        with bash, bash.stdout:
            while True:
                ready = {key.fileobj for key, _ in waiting.select(timeout=60)}
                assert ready, f"nothing happened for a minute in:\n{script}"
                if server in ready:
                    messages += _answer(server.accept()[0], terminal=terminal)
                elif text := os.read(bash.stdout.fileno(), 1 << 16):
                    printed += text
                else:
                    break
        return Ended(bash.returncode, printed.decode(), messages.decode())


def _answer(connection: socket.socket, *, terminal: bool) -> bytes:
    """Run the command that a connection asks for, in the directory that it names, and return its messages."""
    out, err = _Stream(terminal=terminal), _Stream(terminal=False)
    with connection, connection.makefile("rb") as request:
        count = int(_word(request))
        directory, *arguments = [_word(request) for _ in range(count + 1)]
        with contextlib.chdir(directory), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(arguments)
        answer = out.written + (err.written if terminal else b"")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `| head` has seen enough
            connection.sendall(f"{code}\n".encode() + answer)
    return err.written


def _word(request: io.BufferedReader) -> str:
    word = bytearray()
    while (letter := request.read(1)) not in (b"\0", b""):
        word += letter
    return word.decode()
