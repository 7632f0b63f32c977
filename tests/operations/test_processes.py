"""Updates as processes that meet each other or are interrupted; :mod:`tests.soak.test_kills` kills them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from warehouse.epochs.journal import FORMAT
from warehouse.epochs.points import Point
from warehouse.errors import LockHeldError

from .projects import Project, at, csv, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent.parent
SCRIPT = """
import sys
from pathlib import Path
from tests.operations.projects import LATER, at
from warehouse.catalog.load import load_catalog
from warehouse.storage.session import spark_session
from warehouse.epochs.points import Point
from warehouse.operations.context import WriteContext
from warehouse.operations.update import UpdateOptions, update

directory, hours, point, step = sys.argv[1], float(sys.argv[2]), Point(sys.argv[3]), int(sys.argv[4])

def observe(moment):
    if moment.point == point and moment.step == step:
        print("held", flush=True)
        sys.stdin.readline()

catalog = load_catalog(Path(directory))
context = WriteContext(catalog, lambda _: spark_session(catalog.spark, small=True), lambda: LATER, observe)
update(context, UpdateOptions(at=at(hours)))
print("done", flush=True)
"""


def started(project: Project, hours: float, point: Point, step: int) -> subprocess.Popen[str]:
    """Start an update in its own process; at a point it prints "held" and waits for a line."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(project.directory), str(hours), point.value, str(step)],
        cwd=ROOT,
        env={**os.environ, "STREAM_WH_CLASS_ARCHIVE": "read"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextmanager
def holding(project: Project, hours: float) -> Iterator[subprocess.Popen[str]]:
    """Let another process begin an update; it holds the lock, its plan written, until it reads a line."""
    process = started(project, hours, Point.PLAN_WRITTEN, -1)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "held"
        yield process
    finally:
        process.kill()
        process.wait(timeout=60)


def test_a_second_update_is_told_who_holds_the_lock(expiring: Project, tmp_path: Path) -> None:
    """It fails at once with a transient error that names process, host and start time; nothing changes."""
    project = expiring.copy(tmp_path / "project")
    before = project.epoch
    with holding(project, 3) as holder:
        with pytest.raises(LockHeldError, match=f"process {holder.pid} on .* since 20"):
            project.update(3)
        assert LockHeldError.exit_code == 3
        assert project.epoch == before
        output, errors = holder.communicate("go\n", timeout=300)
    assert "done" in output, errors
    assert project.keys() == "x y"
    assert project.update(3).epochs == ()


def test_a_dead_holder_never_blocks(project: Project) -> None:
    """The lock ends with its process and the JVM of the process, and the plan of the process is finished."""
    project.land("1.csv", csv(row("a", 0.5, 4)))
    with holding(project, 1) as holder, pytest.raises(LockHeldError, match=f"process {holder.pid} on .* since 20"):
        project.update(1)
    report = project.update(1)
    assert [len(report.finished), len(report.epochs)] == [1, 0]
    assert project.keys() == "a"


def _interrupted(project: Project) -> tuple[int, str]:
    """Return the exit code and standard error of an update that gets Ctrl-C once its plan is written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "warehouse.cli", "-C", str(project.directory), "update", "--at", "2024-01-01T01:00:00Z"],
        cwd=ROOT,
        env={**os.environ, "STREAM_WH_CLASS_ARCHIVE": "read"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    plan = project.root / "epochs" / f"{0:020d}.plan.json"
    while process.poll() is None and not plan.exists():
        time.sleep(0.02)  # polling a file of another process; nothing depends on how long
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def test_ctrl_c_leaves_a_warehouse_that_the_next_update_completes(tmp_path: Path, spark: SparkSession) -> None:
    """The command exits with 130 and one line of text, without a traceback.

    Python drops an interrupt that comes inside a weak reference's callback ("Exception ignored"); then the update just ends,
    and another one is interrupted.
    """
    for attempt in range(3):
        project = Project(tmp_path / f"project{attempt}", spark, clock=at(2))
        project.land("1.csv", csv(row("a", 0.5, 4)))
        code, errors = _interrupted(project)
        if code or "Exception ignored" not in errors:
            break
    plan = project.root / "epochs" / f"{0:020d}.plan.json"
    assert code == 130, errors
    assert "Traceback" not in errors
    assert "completes what was begun" in errors
    project.update(1)
    assert project.keys() == "a"
    assert json.loads(plan.read_text())["format"] == FORMAT
