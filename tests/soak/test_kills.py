"""Updates and migrations killed at each of their moments, and at random times as in `python -m tests.soak.kills`."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.operations.test_crash_matrix import MOMENTS, OF_VIEW
from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.points import Point

from .arrivals import soaked
from .kills import Soak, main

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
KILLS = 2
BUDGET = 40.0
"""Seconds after which no further update is killed at random; pytest's summary of warnings says so."""


OF_STEPS = [(Point.PLAN_WRITTEN, 1), (Point.STEP_READY, 1), (Point.STEP_COMMITTED, 1), (Point.DURABLE, 1)]
MIGRATIONS = {
    "rebuild": [(Point.PLANNED, 1), *OF_STEPS, (Point.EPOCH_WRITTEN, 1)],
    "beside": [(Point.LOCKED, 1), (Point.DATABASE_READY, 1)],  # it writes its epoch and nothing else
    "": OF_STEPS,
}
"""The moments at which migrations are killed: written again, side by side, and the update that moves what the latter left."""


@pytest.mark.long
def test_updates_and_migrations_killed_at_each_moment(tmp_path: Path) -> None:
    """Each is killed at another named moment, the next completes it; after each kill no row is lost or doubled."""
    soak = Soak(soaked(tmp_path / "project"), directory=tmp_path)
    for _ in range(2):  # rows that expire, and epochs that fall out of `retain`, from the beginning
        soak.land()
    last = MOMENTS[-1]
    soak.kill_at_each([*MOMENTS[:-1], *OF_VIEW, last], MIGRATIONS)
    epoch = newest_epoch(soak.project.root)
    assert epoch is not None
    layout, former = next((table.layout, table.former) for table in epoch.tables if table.name == "rows")
    assert (layout.technique, layout.version, former) == ("norebuild", 2, ())


@pytest.fixture
def one_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the runs of a test use one warm Spark, which is killed at the end."""
    worker = Soak(soaked(tmp_path / "project"), directory=tmp_path)._worker()
    with monkeypatch.context() as patch:
        patch.setattr(Soak, "_worker", lambda _: worker)
        patch.setattr(worker, "kill", list)
        yield
    worker.kill()


@pytest.mark.usefixtures("one_jvm")
def test_updates_killed_at_random_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After each kill no row is lost or doubled; a second run continues the first; the last update completes."""
    assert main([str(tmp_path), "--kills", str(KILLS - 1), "--seconds", str(BUDGET / 2)]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([str(tmp_path), "--kills", str(KILLS), "--seconds", str(BUDGET / 2)]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert first["kills"] >= 1
    assert summary["kills"] > first["kills"] or summary["cut_short"]
    assert summary["cut_short"] == (summary["kills"] < KILLS)
    if summary["cut_short"]:
        warnings.warn(f"CUT SHORT after {BUDGET:.0f} s: {summary['kills']} of {KILLS} kills at random times", stacklevel=1)
    lines = [json.loads(line) for line in (tmp_path / "kills.jsonl").read_text().splitlines()]
    assert [line["kill"] for line in lines] == list(range(1, summary["kills"] + 1))


def test_records_killed_at_random_times(tmp_path: Path) -> None:
    """After each of a hundred kills an update leaves its plan, its epoch or nothing, and the next update continues."""
    command = [sys.executable, "-m", "tests.soak.records", str(tmp_path), "--kills", "100"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert summary["kills"] >= 100
    assert set(summary["reached"]) == {"nothing", "plan", "epoch"}
