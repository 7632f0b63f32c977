"""``run``: an update at every grid point, until it is stopped."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from warehouse.cli import writing
from warehouse.cli.logs import write_message
from warehouse.cli.options import DURATION, command, project, report_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.cli.outcome import Report

__all__ = ["run"]


@command("run", "Update at every grid point, until stopped.", "stream-wh run", "stream-wh run --delay 10s")
@click.option("--delay", type=DURATION, default="0s", help="So long after each grid point [0s]: files may still be landing.")
@click.option("--each", is_flag=True, help="One epoch for each slot that was missed instead of one for all.")
@report_command
@project
def run(directory: Path, *, delay: int, each: bool) -> Report:
    """Keep the warehouse up to date: one update now and one at every grid point, in a process that stays warm.

    Each update is a line on standard error. One that fails is tried again. SIGTERM or Ctrl-C ends the run when the update
    at work has ended; a second one interrupts that update, which the next one completes. Exit code 3 if another `run` keeps
    this warehouse up to date, or if the Spark process ended: start it again.
    """
    with _stoppable() as stop:
        return writing.run(directory, delay=delay, each=each, stop=stop)


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """Yield an event that the first SIGTERM or SIGINT sets; the second one interrupts."""
    stop = threading.Event()

    def end(number: int, frame: Any) -> None:  # noqa: ANN401, ARG001 - the signature of handlers
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        write_message("stopping when the update at work has ended; once more interrupts it")

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
