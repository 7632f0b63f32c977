"""Readers beside migrations: each answer is the whole answer of some epoch, in whichever layouts its rows lie."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.soak.arrivals import soaked
from tests.soak.reads import digest
from tests.soak.witness import Following, Witness, require_reads
from warehouse.catalog.model import LayoutSpec
from warehouse.checking.check import check
from warehouse.epochs.points import Moment, Point
from warehouse.operations.migrate import MigrationRequest

from .projects import at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Observer

ROOT = Path(__file__).parent.parent.parent
MIGRATIONS = (
    MigrationRequest(LayoutSpec(technique="rebuild")),
    MigrationRequest(LayoutSpec(technique="norebuild"), side_by_side=True, move_below=0.3),
    MigrationRequest(LayoutSpec(grid=(3, 3)), side_by_side=True),
    MigrationRequest(LayoutSpec(technique="rebuild", insertion="permuted", seed=5)),
)
FREE = 120
"""Reads by another process."""


def test_reads_beside_migrations_and_the_updates_between_them(tmp_path: Path, spark: SparkSession) -> None:
    """At every moment by following, staying and new readers, and freely meanwhile; a view is on top."""
    witness = Witness(soaked(tmp_path / "project", spark))
    for _ in range(3):
        _move(witness)
    seen = tmp_path / "seen.txt"
    process = _reading(witness.project.directory, seen)
    follower, stayed = Following(witness.project), Following(witness.project)
    states, counts = witness.model.states, Counter[str]()
    written = [len(states) - 1]

    def read(moment: Moment) -> None:
        recorded = moment.point == Point.DATABASE_READY and moment.epoch > written[0]  # an epoch that nothing was read for
        if moment.point == Point.EPOCH_WRITTEN or recorded:
            witness.check()
            written[0] = moment.epoch
        counts["held"] += require_reads(witness, follower, stayed, written[0], moment)

    for request in MIGRATIONS:
        witness.project.updater(read).migrate("rows", request)
        witness.check()
        written[0] = witness.project.epoch.number  # side by side an epoch is written without steps
        for _ in range(2):
            _move(witness, read)
            assert check(witness.project.root).findings == ()
    witness.project.updater().vacuum()
    _move(witness)
    while process.poll() is None:
        _move(witness)
    assert process.returncode == 0, seen.read_text().splitlines()[-1:]
    last = -1
    for line in seen.read_text().splitlines():
        kind, epoch, rows = line.split()
        assert (rows, int(epoch) >= last) == (digest(kind, states[int(epoch)].live), True), line
        last = int(epoch)
        counts["free"] += 1
    assert counts["free"] >= FREE
    assert last >= 4, "epochs went by while it read"
    assert counts["held"] > 75, counts
    follower.close()
    stayed.close()


def _reading(directory: Path, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.soak.reads", str(directory), "--reads", str(FREE), "--until", "4"]
    with output.open("wb") as file:
        return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=file)


def _move(witness: Witness, observer: Observer | None = None) -> None:
    slot = witness.land()
    witness.project.clock = at(slot)
    witness.project.update(slot, **({} if observer is None else {"observer": observer}))
    witness.check()
