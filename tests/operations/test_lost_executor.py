"""An executor that dies in the middle of an update: Spark does its work again, and nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.soak.arrivals import soaked
from tests.soak.witness import Witness

from .projects import at

ROOT = Path(__file__).parent.parent.parent
SCRIPT = """
import json, os, signal, sys
from pathlib import Path
from tests.conftest import SMALL_AND_SHORT
from warehouse.catalog.load import load_catalog
from warehouse.storage.session import spark_session
from warehouse.epochs.points import Point
from warehouse.operations.context import WriteContext
from warehouse.operations.update import UpdateOptions, update

directory, now = Path(sys.argv[1]), int(sys.argv[2])
cluster = {**dict(SMALL_AND_SHORT), "spark.master": "local-cluster[2,1,1024]", "spark.executor.memory": "512m"}
session = spark_session(cluster.items(), small=True)
killed, application = [], session.sparkContext.applicationId.encode()

def executors():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue
        if b"java" in text[:200] and b"CoarseGrainedExecutorBackend" in text and application in text:
            yield int(path.parent.name)

def observe(moment):
    if moment.point in (Point.STEP_STARTED, Point.STEP_READY) and len(killed) < int(sys.argv[3]):
        victims = sorted(executors())
        if victims:
            os.kill(victims[0], signal.SIGKILL)
            killed.append(str(moment.point))

update(WriteContext(load_catalog(directory), lambda _: session, lambda: now, observe), UpdateOptions(at=now))
print(json.dumps(killed))
"""


def test_a_lost_executor(tmp_path: Path) -> None:
    """Two executors of their own processes; one is killed before a step and one before a commit, with its kept rows."""
    witness = Witness(soaked(tmp_path / "project"))
    slot = witness.land()
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(witness.project.directory), str(at(slot)), "3"],
        cwd=ROOT,
        env={**os.environ, "STREAM_WH_CLASS_ARCHIVE": "read", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert len(json.loads(run.stdout.splitlines()[-1])) == 3
    epoch = witness.check()
    assert epoch is not None
    assert epoch.slot == slot
