"""Readers beside updates and vacuum: each answer is the whole answer of some epoch, and no reader goes back in time.

Between two moments of an update its files, logs and records do not change, so reads while a moment is held are reads at
any time in between; other processes read freely meanwhile.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.soak.arrivals import soaked
from tests.soak.reads import digest
from tests.soak.witness import Following, Witness, expected, require_reads
from warehouse.epochs.points import Moment, Point
from warehouse.time import MINUTE

from .projects import at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent
@pytest.mark.parametrize(
    ("total", "updates", "held", "free"),
    [(400, 3, 1, 180), pytest.param(10_000, 9, 12, 3_400, marks=pytest.mark.long)],
    ids=["hundreds", "ten-thousand"],
)
def test_reads_beside_updates_and_vacuum(
    tmp_path: Path, spark: SparkSession, total: int, updates: int, held: int, free: int
) -> None:
    """At every moment of every update, by following (in memory), staying and new readers; and freely meanwhile.

    ``held`` is the number of reads of each kind at each moment, ``free`` the number of reads of each other process.
    """
    witness = Witness(soaked(tmp_path / "project", spark, viewed=False))
    _move(witness)
    seen = [tmp_path / f"seen-{seed}.txt" for seed in range(2)]  # files: a pipe that nobody empties would stop its writer
    processes = [_reading(witness.project.directory, seed, output, free) for seed, output in enumerate(seen)]
    counts: Counter[str] = Counter()
    stayed = Following(witness.project)
    follower = Following(witness.project, hot=["rows"])
    states = witness.model.states
    for _ in range(updates):
        written = [len(states) - 1]

        def read(moment: Moment, written: list[int] = written) -> None:
            if moment.point == Point.EPOCH_WRITTEN:
                witness.check()
                written[0] = moment.epoch
            for _ in range(held):
                counts["held"] += require_reads(witness, follower, stayed, written[0], moment)

        _move(witness, read)
        if witness.slot % 3 == 0:
            witness.project.clock = at(witness.slot) + 30 * MINUTE
            counts["vacuumed"] += witness.project.updater().vacuum().files
            number, rows = stayed.read(refresh=False)
            assert rows == expected(states[number].live)
    while any(process.poll() is None for process in processes):
        _move(witness)
    for process, output in zip(processes, seen, strict=True):
        lines = output.read_text().splitlines()
        assert process.returncode == 0, lines[-1:]
        last = -1
        for line in lines:
            kind, number, answer_digest = line.split()
            assert answer_digest == digest(kind, witness.model.states[int(number)].live), line
            assert int(number) >= last
            last = int(number)
            counts["free"] += 1
        assert last > 1, "the epochs went by while it read"
    stayed.close()
    follower.close()
    assert counts["free"] + counts["held"] >= total, counts


def _reading(directory: Path, seed: int, output: Path, reads: int) -> subprocess.Popen[bytes]:
    until = ["--reads", str(reads), "--until", "2"]
    command = [sys.executable, "-m", "tests.soak.reads", str(directory), *until, "--seed", str(seed)]
    with output.open("wb") as file:
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=file)


def _move(witness: Witness, observer: object = None) -> None:
    slot = witness.land()
    witness.project.clock = at(slot)
    witness.project.update(slot, **({} if observer is None else {"observer": observer}))
    witness.check()
