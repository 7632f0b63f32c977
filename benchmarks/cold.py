"""Cold: whole processes, from start to end, beside the least that such a process can do."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.csv as pa_csv

from benchmarks import data
from benchmarks.project import FIRST_SLOT, LIFETIME, TABLE, Project, instant, shape_of
from benchmarks.ratio import Ratio, Sample, ratio
from benchmarks.turns import in_turn
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bench import Bench

__all__ = ["EMPTY_SESSION", "command", "measure_probe", "measure_update", "seconds_of"]

_IMPORTS = "import duckdb, deltalake"
EMPTY_SESSION = "from pyspark.sql import SparkSession; SparkSession.builder.getOrCreate().stop()"
_FILES = 10
_ROWS = 100
TARGET_PROBE = 3
TARGET_UPDATE = 2


def measure_probe(bench: Bench) -> list[Ratio]:
    """Return how long `stream-wh probe` takes beside the imports that it needs."""
    directory = str(bench.project.directory)
    bench.say("cold probes")
    probe = [*command(), "-C", directory, "probe", TABLE, data.key(1), "-o", "csv"]
    imports = [sys.executable, "-c", _IMPORTS]
    ours, least = in_turn([lambda: seconds_of(probe), lambda: seconds_of(imports)], bench.settings.repeat)
    text = f'`stream-wh probe` / `python -c "{_IMPORTS}"`'
    to = Sample("imports", "s", least)
    return [ratio("cold-probe", text, Sample("process", "s", ours), to, target=TARGET_PROBE)]


def measure_update(bench: Bench) -> list[Ratio]:
    """Return how long `stream-wh update` takes with ten small files beside an empty default Spark session."""
    project = Project(bench.scratch / "cold", replace(bench.settings, batch=_FILES * _ROWS), format="csv")
    bench.say("cold updates")
    slots = iter(range(FIRST_SLOT, FIRST_SLOT + bench.settings.repeat + 2))

    def update() -> float:
        slot = next(slots)
        _land(project, slot)
        return seconds_of([*command(), "-C", str(project.directory), "update", "--at", format_instant(instant(slot))])

    first = update()
    session = [sys.executable, "-c", EMPTY_SESSION]
    ours, least = in_turn([update, lambda: seconds_of(session)], bench.settings.repeat)
    bench.details["seconds of the first cold update, which creates the table"] = first
    text = f"`stream-wh update` with {_FILES} small files / start and stop of an empty Spark session"
    to = Sample("empty session", "s", least)
    return [ratio("cold-update", text, Sample("process", "s", ours), to, target=TARGET_UPDATE)]


def _land(project: Project, slot: int) -> None:
    directory = project.landing / f"{slot:06d}"
    directory.mkdir()
    for number in range(_FILES):
        rows = data.arriving(
            shape_of(project.settings),
            _ROWS,
            part=(slot, number),
            after=instant(slot - 1),
            until=instant(slot),
            lifetime=LIFETIME,
        )
        pa_csv.write_csv(rows, directory / f"{number}.csv")


def command() -> list[str]:
    """Return the installed entry point, or what it stands for."""
    beside = Path(sys.executable).with_name("stream-wh")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "warehouse.cli"]


def seconds_of(command: Sequence[str]) -> float:
    """Return the seconds from a process's start to its end; then wait for the JVM that it may leave behind."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    assert process.stderr is not None
    seconds, errors = 0.0, b""
    with process:
        process.wait()
        seconds = time.perf_counter() - start
        errors = process.stderr.read()  # ends when every process that writes to it has ended
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=errors)
    return seconds
