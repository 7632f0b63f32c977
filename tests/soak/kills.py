"""Updates that are killed at random times, and the check of the warehouse after each kill.

    python -m tests.soak.kills DIRECTORY --kills 200 --seconds 330

A process moves the windows slot by slot until it is killed (SIGKILL): every second time at a time drawn between nothing and
a little more than an update takes, else within a third of a second after a drawn number of its moments, so that the short
phases get their share. One kill in eight takes Spark's JVM with it; after the others the next process uses the same JVM,
brought to rest (:mod:`tests.soak.worker`). After each kill the newest epoch is the one before the update or one it makes, and
every table of it, and of an older readable epoch, has the rows of the model (:mod:`warehouse.testing`): live, waiting and
rejected; the view is its query over the live rows.

``DIRECTORY/kills.jsonl`` has a line for each kill. Run again with the same directory, it goes on after the last line;
``--seconds`` bounds one run. A line ``{"error": ...}`` is a fault found, and ends the run with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING

from .arrivals import soaked
from .witness import Witness

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Soak", "main"]

ROOT = Path(__file__).parent.parent.parent
_START_SECONDS = 300.0
_UPDATE_SECONDS = 240.0
_MOMENTS = 21
"""About as many as an update of these tables has."""
_WHOLE = 8
"""One kill in so many takes the JVM too."""


class Worker:
    """A warm Spark with an updating process, in a group of its own, and the lines that they have written."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.worker", str(directory)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lines: Queue[str] = Queue()
        self._errors: list[str] = []
        self._readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for thread in self._readers:
            thread.start()
        self._updating = 0

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line.strip())
        self._lines.put("end")

    def _read_errors(self) -> None:
        self._errors.extend(self.process.stderr or ())

    def begin(self, slot: int, fatal: tuple[str, int] | None = None, way: str = "") -> list[str]:
        """Let a process update to a slot; return the moments that it printed before its number.

        ``fatal`` is a point, and which time it is reached, at which the process kills itself; ``way`` makes it a migration.
        """
        assert self.process.stdin is not None
        request = f"{slot}:{way}" if way else f"{slot}"
        self.process.stdin.write(f"{request}\n" if fatal is None else f"{request} {fatal[1]} {fatal[0]}\n")
        self.process.stdin.flush()
        early: list[str] = []
        while not (line := self.heard(_START_SECONDS) or "").startswith("pid "):
            assert line, "no update begins"
            early.append(line)
        self._updating = int(line.removeprefix("pid "))
        return early

    def heard(self, seconds: float) -> str | None:
        """Return the next line, or None if no line comes in time."""
        try:
            line = self._lines.get(timeout=max(0.0, seconds))
        except Empty:
            return None
        assert line not in ("end", "ended 1"), "the update failed: " + "".join(self._errors[-30:])
        return line

    def kill_update(self) -> list[str] | None:
        """Kill the updating process, wait until Spark is at rest, and return the lines that were still on their way.

        None: it had ended by itself.
        """
        with suppress(ProcessLookupError):
            os.kill(self._updating, signal.SIGKILL)
        return self.ended()

    def ended(self) -> list[str] | None:
        """Wait until the updating process was killed and Spark is at rest; None: the process ended by itself."""
        lines: list[str] = []
        while not (line := self.heard(_START_SECONDS) or "").startswith("ended"):
            assert line, "Spark does not come to rest"
            lines.append(line)
        return None if line == "ended 0" else lines

    def kill(self) -> list[str]:
        """Kill the whole group, and return the lines that were still on their way."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)
        for thread in self._readers:
            thread.join(timeout=60)
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return [line for line in lines if line.startswith("moment")]


@dataclass
class Soak(Witness):
    """One project under kills."""

    directory: Path = field(kw_only=True)

    def __post_init__(self) -> None:
        for entry in self._lines("history.jsonl"):
            kind, slot = entry["event"], int(str(entry["slot"]))
            if kind == "landed":
                self.arrived(slot)
                self.slot = slot
            elif kind == "planned":
                self.model.begin(slot)
            else:
                self.model.finish()

    def recorded(self) -> list[dict[str, object]]:
        """Return the lines that are written."""
        return self._lines("kills.jsonl")

    def _lines(self, name: str) -> list[dict[str, object]]:
        path = self.directory / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def note(self, event: str, slot: int) -> None:
        """Write down what happened to the model; a later run begins by repeating it."""
        self._append("history.jsonl", {"event": event, "slot": slot})

    def _append(self, name: str, line: dict[str, object]) -> None:
        with (self.directory / name).open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    # --- the kills ---

    def run(self, kills: int, seconds: float) -> dict[str, object]:
        """Kill until the number of kills or the time is reached, and return a summary."""
        self.check()  # an earlier run may have ended in the middle of an update
        typical = 4.0
        worker = self._worker()
        deadline = time.monotonic() + seconds  # a JVM that is slow to start does not leave a run without a kill
        finished = 0
        try:
            while (number := len(self.recorded())) < kills and time.monotonic() < deadline:
                chance = random.Random(f"{self.seed}/{number}/{self.slot}")  # noqa: S311 - a time of a test
                delay, moment = chance.uniform(0, 1.15) * typical, None
                if number % 2:
                    delay, moment = chance.uniform(0, 0.33), chance.randrange(1, _MOMENTS)
                moments, done, lasted = self._update(worker, delay, moment)
                if done:
                    typical = 0.7 * typical + 0.3 * lasted
                    finished += 1
                    self.check()
                    continue
                whole = number % _WHOLE == _WHOLE - 1
                late = worker.kill() if whole else worker.kill_update()
                if late is None:
                    finished += 1
                    self.check()
                    continue
                moments += late
                typical = max(typical, 1.02 * lasted)
                before = len(self.model.states) - 1
                epoch = self.check()
                self._write(
                    {
                        "kill": number + 1,
                        "with_jvm": whole,
                        "seconds": round(lasted, 3),
                        "reached": _last_moment(moments),
                        "slot": self.slot,
                        "epoch_before": before,
                        "epoch_after": -1 if epoch is None else epoch.number,
                        "planned": self.model.begun is not None,
                        "live": len(self.model.states[-1].live) if self.model.states else 0,
                    },
                )
                if whole:
                    worker = self._worker()
            self._complete(worker)
        except AssertionError as error:
            self._write({"error": str(error), "slot": self.slot})
            raise
        finally:
            if worker.process.poll() is None:
                worker.kill()
        lines = self.recorded()
        return {
            "kills": len(lines),
            "with_jvm": sum(bool(line.get("with_jvm")) for line in lines),
            "wanted": kills,
            "cut_short": len(lines) < kills,
            "completed_between": finished,
            "reached": dict(Counter(str(line.get("reached", "error")) for line in lines).most_common()),
            "kept_epoch": sum(line.get("epoch_after") == line.get("epoch_before", "") for line in lines),
            "made_epoch": sum(line.get("epoch_after", -2) > line.get("epoch_before", -2) for line in lines),
        }

    def kill_at_each(self, moments: Sequence[tuple[str, int]], migrations: Mapping[str, Sequence[tuple[str, int]]]) -> None:
        """Kill one update after the other at a moment, each completing the update before; check each result.

        Then each migration, begun again after each kill until it is done; ``""`` is the update that moves what one has left.
        """
        worker = self._worker()
        try:
            for moment in moments:
                before = len(self.model.states)
                worker.begin(self.land(), moment)
                assert worker.ended() is not None, f"{moment} is never reached"
                self.check()
                assert len(self.model.states) - before <= 2
            self._complete(worker)
            for way, fatal in migrations.items():
                slot = self.slot if way else self.land()
                for moment in fatal:
                    worker.begin(slot, moment, way)
                    assert worker.ended() is not None, f"{way}: {moment} is never reached"
                    self.check()
                worker.begin(slot, None, way)
                assert worker.ended() is None
                self.check()
            self._complete(worker)
        finally:
            worker.kill()

    def _worker(self) -> Worker:
        worker = Worker(self.project.directory)
        assert worker.heard(_START_SECONDS) == "ready"
        return worker

    def _update(self, worker: Worker, delay: float, moment: int | None = None) -> tuple[list[str], bool, float]:
        """Let a worker move the windows for so long, after its start or after a moment.

        Return its moments, whether it was done, and the seconds it had.
        """
        self.land()
        started = time.monotonic()
        moments = worker.begin(self.slot)
        end = started + (delay if moment is None else _UPDATE_SECONDS)
        while (line := worker.heard(end - time.monotonic())) is not None:
            if line == "ended 0":
                return moments, True, time.monotonic() - started
            moments.append(line)
            if moment is not None and len(moments) >= moment and end - started >= _UPDATE_SECONDS:
                end = time.monotonic() + delay
        return moments, False, time.monotonic() - started

    def _complete(self, worker: Worker) -> None:
        moments, done, _ = self._update(worker, _UPDATE_SECONDS)
        assert done, f"no end after {moments[-1:]}"
        epoch = self.check()
        assert epoch is not None
        assert (epoch.slot, self.model.begun) == (self.slot, None), "the last update completes"

    def _write(self, line: dict[str, object]) -> None:
        self._append("kills.jsonl", line)


def _last_moment(moments: Sequence[str]) -> str:
    return moments[-1].split(" ", 3)[3] if moments else "started"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module says."""
    parser = argparse.ArgumentParser(description="Kill updates at random times and check what is left.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kills", type=int, default=200, help="in all, those of earlier runs included")
    parser.add_argument("--seconds", type=float, default=3600.0, help="after which this run stops")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    options.directory.mkdir(parents=True, exist_ok=True)
    try:
        soak = Soak(soaked(options.directory / "project"), options.seed, directory=options.directory)
        summary = soak.run(options.kills, options.seconds)
    except AssertionError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
