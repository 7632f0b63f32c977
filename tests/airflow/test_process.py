"""The command as a process: what it writes, how it is stopped, what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_stream_wh.process import RunningCommand, default_executable, running_command
from warehouse.errors import PlatformError

if TYPE_CHECKING:
    from .fake import Fake


def _hold(fake: Fake, how: str) -> RunningCommand:
    fake.answers("update", holds=how)
    running = RunningCommand([fake.executable, "-C", str(fake.project), "update"], {})
    while not fake.holding.exists():
        time.sleep(0.01)  # polling a file of another process; nothing depends on how long
    return running


def test_lines_come_as_they_are_written_and_output_at_the_end(fake: Fake) -> None:
    """Standard error is the log and standard output the record; a large record blocks nothing."""
    fake.answers("update", "x" * 1_000_000, code=4, err="first\nsecond")
    lines: list[str] = []
    with running_command([fake.executable, "-C", str(fake.project), "update"], {}) as running:
        ended = running.wait(lines.append)
    assert (ended.code, ended.errors, lines) == (4, ("first", "second"), ["first", "second"])
    assert ended.output.strip() == "x" * 1_000_000


def test_variables_are_handed_on() -> None:
    """On top of those of the worker."""
    show = [sys.executable, "-c", "import os; print(os.environ['A'], os.environ['PATH'])"]
    with running_command(show, {"A": "b"}) as running:
        assert running.wait(print).output.strip() == f"b {os.environ['PATH']}"


def test_a_stopped_command_is_interrupted_first(fake: Fake) -> None:
    """As by Ctrl-C, so that an update ends as it does there: exit code 130."""
    running = _hold(fake, "holds")
    running.stop()
    assert running.wait(print).code == 130


def test_it_can_be_stopped_by_a_signal_handler_of_the_thread_that_waits(fake: Fake) -> None:
    """Which is how Airflow kills a task; the end is seen there, not only after all patience."""
    running = _hold(fake, "holds")
    seen: list[int | None] = []

    def on_signal(*_: object) -> None:
        running.stop()
        seen.append(running._process.returncode)

    before = signal.signal(signal.SIGALRM, on_signal)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert running.wait(print).code == 130
    finally:
        signal.signal(signal.SIGALRM, before)
    assert seen == [130]


def test_a_command_that_does_not_listen_is_killed(fake: Fake) -> None:
    """After the patience for it."""
    running = _hold(fake, "deaf")
    running.stop(patience=0.1)
    assert running.wait(print).code == -9


def test_whoever_waits_and_is_interrupted_leaves_nothing_behind() -> None:
    """A time limit of the task, for instance, raises in the middle of the wait."""
    with pytest.raises(TimeoutError), running_command([sys.executable, "-c", "import time; time.sleep(600)"], {}) as running:
        raise TimeoutError
    assert running.wait(print).code in (-2, 1, 130)


def test_what_a_dead_command_leaves_behind_ends_too(tmp_path: Path) -> None:
    """Its JVM, say, which holds its standard error: the wait ends all the same, and nothing goes on running."""
    orphan = tmp_path / "orphan"
    line = f"sleep 600 & echo $! > {orphan}; kill -9 $$"
    running = RunningCommand(["bash", "-c", line], {})
    waiter = threading.Thread(target=running.wait, args=(print, 0.2))
    waiter.start()
    waiter.join(30)
    assert not waiter.is_alive()
    state = subprocess.run(["ps", "-o", "stat=", "-p", orphan.read_text().strip()], capture_output=True, text=True, check=False)
    assert state.stdout[:1] in ("", "Z")  # gone, or a zombie that nobody has asked for yet


def test_a_program_that_is_not_there_is_told_by_name() -> None:
    """And what to correct."""
    with pytest.raises(PlatformError, match=r"/nowhere/stream-wh cannot be started .*correct `executable`"):
        RunningCommand(["/nowhere/stream-wh"], {})


def test_the_default_is_this_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The default is the command beside this Python, else the command on the path, else an error."""
    python = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    with pytest.raises(PlatformError, match="give `executable`"):
        default_executable()
    for directory in (tmp_path / "path", tmp_path):
        directory.mkdir(exist_ok=True)
        program = directory / "stream-wh"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        assert Path(default_executable()) == program
