"""The writer lock between processes, and between what looks like hosts: one holds it, the others are told who."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, at
from warehouse.epochs.lock import writer_lock
from warehouse.errors import LockHeldError

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
HOLD = """
import sys
from pathlib import Path
from warehouse.epochs.lock import writer_lock
with writer_lock(Path(sys.argv[1]), int(sys.argv[2])):
    print("held", flush=True)
    sys.stdin.readline()
"""
RACE = """
import sys
from pathlib import Path
from warehouse.errors import LockHeldError
from warehouse.epochs.lock import writer_lock
root, counter, wins, told = Path(sys.argv[1]), Path(sys.argv[2]), 0, set()
while wins < 25:
    try:
        with writer_lock(root, 0):
            number = int(counter.read_text())
            counter.write_text(str(number + 1))
            wins += 1
    except LockHeldError as error:
        told.add(str(error).split(" since ")[0])
print(sorted(told))
"""
OTHER_HOST = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", 'hostname elsewhere && exec "$0" "$@"']


def _can_be_another_host() -> bool:
    try:
        return subprocess.run([*OTHER_HOST, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _started(*command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _update(project: Project, *before: str) -> subprocess.CompletedProcess[str]:
    """Run the command, as on another host with ``before``."""
    arguments = ["-C", str(project.directory), "update", "--at", "2024-01-01T01:00:00Z"]
    command = [*before, sys.executable, "-m", "warehouse.cli", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(params=["here", "elsewhere"])
def holder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Project, subprocess.Popen[str], str]]:
    """A process that holds the lock since 1970-01-02, on this host or in name and process spaces of its own."""
    if request.param == "elsewhere" and not _can_be_another_host():
        pytest.skip("name and process spaces are not permitted here; records of other hosts are tested below")
    project = Project(tmp_path / "project", None)
    before = OTHER_HOST if request.param == "elsewhere" else []
    process = _started(*before, sys.executable, "-c", HOLD, str(project.root), "86400000000")
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield project, process, request.param
    process.kill()
    process.communicate(timeout=60)


def test_one_wins_and_the_other_is_told(holder: tuple[Project, subprocess.Popen[str], str]) -> None:
    """The loser gets exit code 3 and a message with the holder and the time, for each writing verb; nothing changes."""
    project, process, where = holder
    host = "elsewhere" if where == "elsewhere" else re.escape(os.uname().nodename)
    refusal = rf"being updated by process \d+ on {host} since 1970-01-02T00:00:00Z; run again"
    for before in ([], OTHER_HOST) if _can_be_another_host() else ([],):
        loser = _update(project, *before)
        assert loser.returncode == 3, loser.stderr
        assert re.search(refusal, loser.stderr), loser.stderr
    updater = project.updater()
    for verb in (lambda: updater.reload("x"), lambda: updater.drop("a"), updater.vacuum, lambda: project.update(1)):
        with pytest.raises(LockHeldError, match=refusal):
            verb()
    assert not (project.root / "epochs").exists()
    process.communicate("go\n", timeout=60)
    assert project.update(1).epochs[0].window_time == at(1)


def test_a_dead_holder_never_blocks(holder: tuple[Project, subprocess.Popen[str], str]) -> None:
    """Whatever record it left, killed here or elsewhere, the lock died with it."""
    project, process, _ = holder
    process.kill()
    process.wait(timeout=60)  # before its standard input ends, which would let it end in order
    process.communicate(timeout=60)
    assert json.loads((project.root / ".update.holder.json").read_text())["since"] == "1970-01-02T00:00:00Z"
    assert project.update(1).epochs[0].window_time == at(1)
    assert not (project.root / ".update.holder.json").exists()


@pytest.mark.parametrize(
    "record",
    ["", "{", "[]", '{"pid": 1}', '{"host": "elsewhere", "pid": 1, "since": "now"}', '{"pid": null, "host": 7, "since": {}}'],
    ids=range(6),
)
def test_a_record_without_its_holder_says_nothing(tmp_path: Path, record: str) -> None:
    """A torn record, or one of a host that is gone, holds nothing up; a live holder with no record is told without names."""
    project = Project(tmp_path / "project", None)
    project.root.mkdir()
    path = project.root / ".update.holder.json"
    path.write_text(record)
    project.update(1)
    with writer_lock(project.root, at(1)):
        path.write_text(record)
        with pytest.raises(LockHeldError, match=r"being updated by (another process|process .* on .* since)"):
            project.update(2)


def test_many_at_once_exclude_each_other(tmp_path: Path) -> None:
    """Six processes take the lock 25 times each: never two at once, and each refusal names one of the six."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    racers = [_started(sys.executable, "-c", RACE, str(tmp_path / "root"), str(counter)) for _ in range(6)]
    outputs = [racer.communicate(timeout=120) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 6, outputs
    assert counter.read_text() == "150"
    pids = {racer.pid for racer in racers}
    named = {int(pid) for output, _ in outputs for pid in re.findall(r"by process (\d+)", output)}
    assert named
    assert named <= pids
