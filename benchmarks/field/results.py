"""What a run found, as JSON lines: each is forced to disk when it is written, so a run that is stopped goes on where it was.

The first line is the job with the machine; then, for each contender, ``built``, and for each of its updates ``begun`` and
``done``, or ``settled`` where nothing was asked after it. ``failed`` ends a contender (``missing``: it could not run here),
``again`` lets it begin again.
"""

from __future__ import annotations

import json
import lzma
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.field.job import Job

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OtherJobError", "Results", "Standing", "pack", "recorded"]


class OtherJobError(Exception):
    """The results are of another job; the text says which values differ."""


@dataclass
class Standing:
    """How far a contender is: its build, the finished updates by slot, the started update, why it failed.

    ``settled``: the slots of the updates after which nothing was asked.
    """

    built: dict[str, Any] | None = None
    done: dict[int, dict[str, Any]] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    begun: int | None = None
    failed: dict[str, Any] | None = None


class Results:
    """The lines of one file."""

    def __init__(self, path: Path, job: Job, facts: dict[str, Any]) -> None:
        self.path = path
        self.standings: dict[str, Standing] = {}
        self.facts = facts
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = _whole_lines(path)
        if not lines:
            self._write({"event": "job", "job": job.digest(), "facts": facts})
            return
        first = lines[0]
        if first["job"] != job.digest():
            differ = {name: (first["job"].get(name), value) for name, value in job.digest().items()}
            told = ", ".join(f"{name} was {was}, is {now}" for name, (was, now) in differ.items() if was != now)
            raise OtherJobError(f"{path} has results of another job ({told}); choose another --results, or remove it")
        self.facts = first["facts"]
        for line in lines[1:]:
            self._take(line)

    def of(self, contender: str) -> Standing:
        """Return how far a contender is."""
        return self.standings.setdefault(contender, Standing())

    def add(self, event: str, contender: str, **more: Any) -> None:  # noqa: ANN401 - what an event tells
        """Write a line for good."""
        line = {"event": event, "contender": contender, **more}
        self._write(line)
        self._take(line)

    def _take(self, line: dict[str, Any]) -> None:
        standing = self.of(line["contender"])
        match line["event"]:
            case "built":
                standing.built = line
            case "begun":
                standing.begun = line["slot"]
            case "done":
                standing.begun = None
                standing.done[line["slot"]] = line
            case "settled":
                standing.begun = None
                standing.settled.add(line["slot"])
            case "failed":
                standing.begun = None
                standing.failed = line
            case "again":
                self.standings[line["contender"]] = Standing()

    def _write(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines; one that was cut short when a run was killed is taken off the file."""
    if not path.exists():
        return []
    text = path.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    if len(whole) < len(text):
        os.truncate(path, len(whole))
    return [json.loads(line) for line in whole.splitlines()]


def pack(path: Path) -> Path:
    """Compress the lines of a run, to be published beside its page, and return where they are."""
    packed = path.with_name(f"{path.name}.xz")
    packed.write_bytes(lzma.compress(path.read_bytes()))
    return packed


def recorded(packed: Path, scratch: Path) -> tuple[Job, Results]:
    """Return the job and the results of compressed lines; they are unpacked into a directory."""
    path = scratch / packed.stem
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    first, *lines = _whole_lines(path)
    updates = len({line["slot"] for line in lines if line["event"] == "done"})
    job = Job(**{**first["job"], "updates": max(1, updates)})
    return job, Results(path, job, first["facts"])
