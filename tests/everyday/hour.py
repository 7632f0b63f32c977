"""A stranger's first hour with a file, by the real command line: ``init --from``, then the update and the probe that it prints.

A walk is good if ``init`` declares what is right for the file, the probe shows rows of one key, and all of it takes at most three
commands, one question (an option that answers it) and three minutes.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.load import load_catalog

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .test_everyday import Road

__all__ = ["Walk", "as_row", "commands_of", "walked"]

MOST_COMMANDS, MOST_QUESTIONS, MOST_SECONDS = 3, 1, 180.0
_OWN = {"cd", "validate"}
"""What ``init`` prints besides, which nobody has to run."""


@dataclass(frozen=True)
class Walk:
    """What a walk came to: the questions that were answered, the seconds of each command, the rows found, what was wrong."""

    questions: int
    seconds: tuple[float, ...]
    rows: int
    wrong: str = ""

    @property
    def verdict(self) -> str:
        """What was wrong, or that it reached what it should."""
        if self.wrong or not self.rows:
            return self.wrong or "the probe found nothing"
        within = len(self.seconds) <= MOST_COMMANDS and self.questions <= MOST_QUESTIONS and sum(self.seconds) <= MOST_SECONDS
        return "reached" if within else "too much"


def commands_of(printed: str) -> list[list[str]]:
    """Return the commands that ``init`` prints at its end and that a user must run, as words without the program's name."""
    _, _, rest = printed.partition("\nnext:\n")
    words = [shlex.split(line) for line in rest.splitlines() if line.startswith("  ")]
    return [command[1:] for command in words if command[0] not in _OWN and command[1] not in _OWN]


def walked(file: Path, road: Road, place: Path) -> Walk:
    """Go from a file to its first probe in a new directory."""
    asked = ["--key", road.key] if road.said else []
    seconds: list[float] = []
    (_, printed), wrong = _run(["init", str(place), "--from", str(file), *asked], file.parent, seconds)
    if wrong:
        return Walk(len(asked) // 2, tuple(seconds), 0, wrong)
    (stream,) = load_catalog(place).streams
    if (stream.search_key, stream.arrival, stream.expires) != ((road.key,), road.arrival, road.expires):
        wrong = f"key {', '.join(stream.search_key)}, arrival {stream.arrival}, end {stream.expires}"
        return Walk(len(asked) // 2, tuple(seconds), 0, wrong)
    rows = 0
    for words in commands_of(printed):
        probe = words[0] == "probe"
        (printed, _), wrong = _run([*words, "-o", "jsonl"] if probe else words, place, seconds)
        if wrong:
            return Walk(len(asked) // 2, tuple(seconds), 0, wrong)
        if probe:
            printed_rows = [json.loads(line) for line in printed.splitlines()]
            rows = len(printed_rows)
            wrong = "rows of several keys" if len({str(row[road.key]) for row in printed_rows}) > 1 else ""
    return Walk(len(asked) // 2, tuple(seconds), rows, wrong)


def _run(words: Sequence[str], directory: Path, seconds: list[float]) -> tuple[tuple[str, str], str]:
    """Run a command as a process; return its output, its messages and the problem that it reports."""
    began = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "warehouse.cli", *words], cwd=directory, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    seconds.append(time.perf_counter() - began)
    last = (process.stderr.strip().splitlines() or ["it says nothing"])[-1]
    wrong = f"{words[0]} ended with {process.returncode}: {last[:80]}" if process.returncode else ""
    return (process.stdout, process.stderr), wrong


def as_row(name: str, walk: Walk) -> list[str]:
    """Return a line of the table: name, commands, questions, seconds of each and in all, rows, verdict."""
    parts = [f"{seconds:.1f}" for seconds in walk.seconds]
    whole = f"{sum(walk.seconds):.1f}"
    return [name, str(len(parts)), str(walk.questions), " + ".join(parts), whole, str(walk.rows), walk.verdict]
