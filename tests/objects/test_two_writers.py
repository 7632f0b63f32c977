"""Two writers of one warehouse in a store: one is held up, and continues after the other has finished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tests.operations import budgets
from tests.operations.projects import StoppedError, csv, row, stop_at
from warehouse.checking.check import check
from warehouse.epochs.claim import CLAIM
from warehouse.epochs.journal import numbers, plan_path
from warehouse.epochs.points import Moment, Point
from warehouse.errors import LockHeldError
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import entry_path
from warehouse.storage.replay import replay
from warehouse.storage.store import store_of
from warehouse.storage.table_commit import remove_action

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.objects.server import StoreProject
    from warehouse.objects.path import ObjectPath

SECONDS = 120


class Held:
    """An update, or a completion, in a thread of its own that is held at a point until the test releases it."""

    def __init__(self, project: StoreProject, hours: float | None, point: Point) -> None:
        self._at, self._on = threading.Event(), threading.Event()
        self.error: BaseException | None = None

        def observe(moment: Moment) -> None:
            if moment.point == point and not self._at.is_set():
                self._at.set()
                assert self._on.wait(SECONDS)

        def run() -> None:
            try:
                if hours is None:
                    project.updater(observe).complete("some")
                else:
                    project.update(hours, observer=observe)
            except BaseException as error:  # noqa: BLE001 - what it ended with is what is asked
                self.error = error
            finally:
                self._at.set()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert self._at.wait(SECONDS)

    def go_on(self) -> BaseException | None:
        """Release the writer, wait for its end, and return its result."""
        self._on.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        return self.error


def land(project: StoreProject, hour: int) -> None:
    """Land a file for an update: one row lives for three hours and one row for two."""
    project.land(f"{hour}.csv", csv(row(f"x{hour}", hour - 0.5, hour + 2.5), row(f"y{hour}", hour - 0.5, hour + 1.5)))


def landed(project: StoreProject) -> None:
    """Land a file for each of three updates."""
    for hour in (1, 2, 3):
        land(project, hour)


@pytest.fixture
def impatient(set_limits: Callable[..., object]) -> None:
    """Treat every holder of the claim as dead, even if it is alive."""
    set_limits(claim_seconds=-1.0)


def clean(project: StoreProject) -> None:
    """Check everything, each row included."""
    assert [finding for finding in check(project.root).findings if finding.severity == "fault"] == []


def test_while_one_updates_the_other_is_told_to_come_again(project: StoreProject) -> None:
    """The second ends with exit code 3 and writes nothing; the first ends as if it had been alone."""
    landed(project)
    first = Held(project, 1, Point.STEP_READY)
    with pytest.raises(LockHeldError) as error:
        project.update(1)
    assert error.value.exit_code == 3
    assert first.go_on() is None
    assert (project.keys(), project.numbers) == ("x1 y1", [0])
    assert not (project.root / CLAIM).exists()


@pytest.mark.usefixtures("impatient")
def test_an_old_writer_that_goes_on_changes_nothing(project: StoreProject) -> None:
    """Held at any point, it continues one or two epochs later: it doubles and loses no row, and ends with exit code 3."""
    points = (Point.PLAN_WRITTEN, Point.STEP_READY, Point.STEP_COMMITTED)
    land(project, 1)
    project.update(1)
    hour = 2
    for point in points:
        land(project, hour)
        old = Held(project, hour, point)
        project.update(hour)
        later = hour + (point == Point.STEP_READY)
        if later > hour:
            land(project, later)
            project.update(later)
        epochs, rows = project.numbers, project.live()
        error = old.go_on()
        assert isinstance(error, LockHeldError), (point, error)
        assert (project.numbers, project.live()) == (epochs, rows), point
        expected = {f"x{number}" for number in range(later - 2, later + 1)} | {f"y{number}" for number in (later - 1, later)}
        assert set(project.keys().split()) == {key for key in expected if int(key[1:]) > 0}, point
        hour = later + 1
    clean(project)


@pytest.mark.usefixtures("impatient")
def test_both_may_carry_out_one_plan(project: StoreProject) -> None:
    """The old writer commits its step first, so the other writer gives way; the next update completes the plan."""
    landed(project)
    old = Held(project, 1, Point.STEP_READY)
    other = Held(project, 1, Point.STEP_READY)
    assert old.go_on() is None
    assert isinstance(other.go_on(), LockHeldError)
    assert (project.keys(), project.numbers) == ("x1 y1", [0])
    project.update(2)
    assert project.keys() == "x1 x2 y1 y2"
    clean(project)


@pytest.mark.usefixtures("impatient")
def test_results_under_a_budget_come_once(project: StoreProject) -> None:
    """An update and a completion may make them, and may stop anywhere; erased keys leave both made and owed results."""
    budgets.declared(project, 5)
    budgets.land(project, "1", "ppppqq", "pppqr", 0.5, 4.5)
    project.update(1)
    old = Held(project, 2, Point.STEP_COMMITTED)
    project.update(2)
    assert isinstance(old.go_on(), LockHeldError)
    budgets.require_sound(project)
    assert budgets.bag(project, "some").total() == 10
    _, receipt = project.updater().erase("a", ["q"])
    assert receipt is not None
    budgets.require_sound(project)
    with pytest.raises(StoppedError):
        project.updater(stop_at(Point.STEP_COMMITTED, 0)).complete("some")
    old = Held(project, None, Point.STEP_READY)
    project.updater().complete("some")
    assert isinstance(old.go_on(), LockHeldError)
    budgets.require_sound(project)
    assert budgets.bag(project, "some") == budgets.bag(project, "exact")
    clean(project)


def straggler(project: StoreProject, epoch: int) -> Path:
    """Commit the rows of an epoch once more, as a late writer of its plan would."""
    table = project.root / "tables" / "a"
    last = list(commits_after(table, -1))[-1].version
    lines = entry_path(table, last).read_text().splitlines()
    actions = [json.loads(line) for line in lines if '"add"' in line]
    commit_info = {"operation": "WRITE", "userMetadata": json.dumps({"epoch": epoch, "step": 0}), "engineInfo": "stream-wh"}
    info = {"commitInfo": commit_info}
    path = entry_path(table, last + 1)
    store_of(path).write_exclusive(path, "".join(json.dumps(action) + "\n" for action in (info, *actions)).encode())
    return path


def test_a_commit_that_came_too_late_is_taken_back(project: StoreProject) -> None:
    """Readers never see it, since no epoch names it; the next update takes it back by a commit and continues above.

    What does not name an epoch is a change from outside: its table stands still while others move, and it is not undone.
    """
    landed(project)
    project.update(1)
    late = straggler(project, project.epoch.number)
    assert project.keys() == "x1 y1"
    content = late.read_text()
    project.update(2)
    table = project.root / "tables" / "a"
    assert late.read_text() == content
    version = int(late.stem)
    assert [commit.reverses for commit in commits_after(table, version - 1)][:2] == [None, version - 1]
    assert project.keys() == "x1 x2 y1 y2"
    clean(project)
    path = entry_path(table, list(commits_after(table, -1))[-1].version + 1)
    file = next(iter(replay(table, int(path.stem) - 1).files.values()))
    outside = ({"commitInfo": {"operation": "DELETE"}}, remove_action(file, 0))
    store_of(path).write_exclusive(path, "".join(json.dumps(action) + "\n" for action in outside).encode())
    assert [name for name, _ in project.update(3).stopped] == ["a"]
    assert (path.read_text().count('"DELETE"'), project.keys()) == (1, "x1 x2 y2")


def killed(project: StoreProject, until: ObjectPath) -> None:
    """Run an update as a process and kill it, its JVM too, once an object is there."""
    command = [sys.executable, "-m", "warehouse.cli.main", "-C", str(project.directory), "update", "--at", "2024-01-01T02:00:00Z"]
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + SECONDS
        while not until.is_file():
            assert process.poll() is None
            assert time.monotonic() < deadline
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_killed_update_is_completed_by_the_next(project: StoreProject) -> None:
    """Its claim belongs to a dead process, so nobody waits; its plan is finished as recorded."""
    landed(project)
    project.update(1)
    killed(project, plan_path(project.root, 1))
    assert (project.root / CLAIM).is_file()
    assert (numbers(project.root, "plan"), project.numbers) == ([0, 1], [0])
    report = project.update(3)
    assert ([epoch.number for epoch in report.finished], project.numbers) == ([1], [0, 1, 2])
    assert project.keys() == "x1 x2 x3 y2 y3"
    clean(project)
