"""Warm probes of a warehouse in a store beside the same one on a disk: ``python -m tests.objects.warm ROWS_PER_UPDATE``.

Both are made here, of the same files. Medians of milliseconds are printed, and what the store costs when nothing is copied yet.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import SMALL_AND_SHORT
from tests.objects.server import StoreProject, made_bucket, running_server
from tests.operations.projects import Project, stream, text
from warehouse.project import Warehouse
from warehouse.serving import Reader
from warehouse.storage.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable

UPDATES, DIFFERENT, KEYS, ROUNDS = 8, 50_000, 60, 3


def main(rows: int, work: Path) -> None:
    """Make both, probe both in turn, and print."""
    chosen = random.Random(1)  # noqa: S311 - data, not secrets
    bucket = made_bucket("warm")
    streams = {"a": stream(max_lifetime="12h")}
    spark = spark_session(SMALL_AND_SHORT, root=bucket)
    local = Project(work / "local", spark, dict(streams))
    both = {"disk": local, "store": StoreProject(work / "store", spark, dict(streams), place=bucket / "house")}
    for hour in range(1, UPDATES + 1):
        lines = [_line(chosen, hour) for _ in range(rows)]
        for project in both.values():
            project.land(f"{hour}.csv", "k,b,e\n" + "".join(lines))
    for name, project in both.items():
        seconds = [_seconds(lambda hour=hour, project=project: project.update(hour)) for hour in range(1, UPDATES + 1)]
        _tell(f"{name}: updates took {[round(duration, 1) for duration in seconds]} s")
    spark.stop()
    state = local.epoch.table("a")
    assert state is not None
    _tell(f"{sum(part.files for part in state.partitions)} files, {sum(part.bytes for part in state.partitions)} bytes")
    keys = [f"key{chosen.randrange(DIFFERENT):06}" for _ in range(KEYS)]
    readers = {name: Reader.open(project.root) for name, project in both.items()}
    first = _seconds(lambda: readers["store"].probe("a", [keys[0]]).all())
    average = _each(readers["store"], keys, 1)
    _tell(f"store, nothing copied yet: first probe {first * 1000:.0f} ms, then {KEYS} keys {average:.1f} ms each")
    for name, reader in readers.items():
        _each(reader, keys, 1)
        absent = [f"none{key}" for key in keys]
        _tell(f"{name}: warm probe {_each(reader, keys):.2f} ms, of an absent key {_each(reader, absent):.2f} ms")
    for name, project in both.items():
        with Warehouse.open(project.directory) as house:
            _each(house, keys, 1)
            _tell(f"{name}: warm probe that looks for a newer epoch {_each(house, keys):.2f} ms")
    for name, project in both.items():
        command = [sys.executable, "-m", "warehouse.cli.main", "-C", str(project.directory), "probe", "a", keys[0]]
        done = [_seconds(lambda command=command: subprocess.run(command, capture_output=True, check=True)) for _ in range(7)]
        _tell(f"{name}: the command {statistics.median(done) * 1000:.0f} ms")


def _tell(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _line(chosen: random.Random, hour: int) -> str:
    key, begins = chosen.randrange(DIFFERENT), hour - 1 + chosen.random()
    return f"key{key:06},{text(begins)},{text(hour + chosen.random() * (UPDATES + 3))}\n"


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _each(reader: Reader | Warehouse, keys: list[str], rounds: int = ROUNDS) -> float:
    """Return the median milliseconds of a probe."""
    took = [_seconds(lambda key=key: reader.probe("a", [key]).all()) for _ in range(rounds) for key in keys]
    return statistics.median(took) * 1000


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch, running_server(Path(scratch)) as found:
        os.environ.update(found, STREAM_WH_READ_LOG="off")
        main(int(sys.argv[1]), Path(scratch))
