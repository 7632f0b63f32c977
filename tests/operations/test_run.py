"""``stream-wh run``: an update at every grid point, one run for each warehouse, and an end that loses nothing."""

from __future__ import annotations

import configparser
import json
import os
import shlex
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.docs.blocks import blocks_of
from warehouse import Warehouse
from warehouse.cli.main import run as command
from warehouse.cli.main import stream_wh
from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.lock import run_lock, writer_lock
from warehouse.errors import ConfigurationError, EmptyFirstRunError, LockHeldError, RunHeldError, SparkLostError, WarehouseError
from warehouse.operations.run import Grid, Turn, following, keep_up_to_date
from warehouse.operations.update import UpdateReport
from warehouse.time import HOUR, MINUTE, SECOND

from .projects import Project, at, csv, row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

GRID = Grid(0, MINUTE)
DONE = UpdateReport(())


@dataclass
class Replayed:
    """A clock that only waits advance, and that ends the run at an instant."""

    instant: int
    end: int
    set_back: dict[int, int] = field(default_factory=dict)
    """How far the clock is set back when a wait takes it to an instant or past it."""

    def now(self) -> int:
        """Return the instant."""
        return self.instant

    def wait(self, microseconds: int) -> bool:
        """Let the time pass."""
        self.instant += microseconds
        for mark in [mark for mark in self.set_back if self.instant >= mark]:
            self.instant -= self.set_back.pop(mark)
        return self.instant >= self.end


def played(update: Callable[[], UpdateReport], clock: Replayed, delay: int = 0) -> list[Turn]:
    """Return the turns of a run."""
    turns: list[Turn] = []
    count = keep_up_to_date(update, lambda: GRID, delay, clock, turns.append)
    assert count == sum(turn.report is not None for turn in turns)
    return turns


@given(st.integers(-(10**9), 10**9), st.integers(-1000, 1000), st.integers(1, 1000), st.integers(0, 5000))
def test_the_next_instant_follows_a_grid_point(instant: int, anchor: int, interval: int, delay: int) -> None:
    """It is the first instant in the future."""
    next_instant = following(instant, Grid(anchor, interval), delay)
    assert instant < next_instant <= instant + interval
    assert (next_instant - delay - anchor) % interval == 0


def test_updates_follow_the_grid() -> None:
    """At once, then after each grid point; an update longer than the interval is followed by another at once."""
    clock = Replayed(90 * SECOND, 600 * SECOND)
    takes = iter([SECOND, SECOND, 150 * SECOND, SECOND])

    def update() -> UpdateReport:
        clock.instant += next(takes, SECOND)
        return DONE

    began = [turn.began // SECOND for turn in played(update, clock, 5 * SECOND)]
    assert began == [90, 125, 185, 335, 365, 425, 485, 545]


def test_what_passes_is_tried_again_soon_and_the_rest_at_the_next_grid_point() -> None:
    """Pauses double up to a minute, and restart after a success; faults that need a person wait for the grid."""
    busy, wrong = LockHeldError("x"), ConfigurationError([])
    failures: list[WarehouseError | None] = [None, busy, busy, busy, None, busy, wrong, None]
    clock, pending = Replayed(0, 241 * SECOND), iter(failures)

    def update() -> UpdateReport:
        error = next(pending, None)
        if error is not None:
            raise error
        return DONE

    turns = played(update, clock)
    assert [turn.began // SECOND for turn in turns] == [0, 60, 62, 66, 74, 120, 122, 180, 240]
    assert [type(turn.error) for turn in turns] == [type(error) for error in failures] + [type(None)]


def test_the_first_update_shows_what_is_wrong_at_once() -> None:
    """The person who starts a run is present to see it; a busy warehouse is waited for."""

    def update() -> UpdateReport:
        raise pending.pop(0) if pending else StopIteration

    pending: list[WarehouseError] = [ConfigurationError([])]
    with pytest.raises(ConfigurationError):
        played(update, Replayed(0, MINUTE))
    pending = [LockHeldError("x"), SparkLostError("gone")]
    with pytest.raises(SparkLostError):  # only another process has another Spark
        played(update, Replayed(0, MINUTE))
    assert pending == []


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    """The run follows the new time, instead of waiting for the old time."""
    clock = Replayed(10 * HOUR, 8 * HOUR + 5 * MINUTE, {10 * HOUR + 30 * SECOND: 2 * HOUR})
    clock.wait = lambda microseconds: Replayed.wait(clock, microseconds) and not clock.set_back  # type: ignore[method-assign]
    began = [turn.began for turn in played(lambda: DONE, clock)]
    assert began[0] == 10 * HOUR
    assert 8 * HOUR < began[1] < 8 * HOUR + MINUTE
    assert began[2:] == [8 * HOUR + minute * MINUTE for minute in range(1, 5)]


def test_there_is_one_run_and_updates_by_hand_beside_it(tmp_path: Path) -> None:
    """The error of a second run names the first; a writer's lock is separate; a dead run's lock blocks nothing."""
    with run_lock(tmp_path, 0):
        with pytest.raises(RunHeldError, match=rf"process {os.getpid()} on .* since 1970-01-01T00:00:00Z"), run_lock(tmp_path, 1):
            pass
        with writer_lock(tmp_path, 2):
            pass
    (tmp_path / ".run.holder.json").write_text('{"host": "elsewhere", "pid": 1, "since": "1970-01-01T00:00:00Z"}')
    with run_lock(tmp_path, 3):
        pass
    assert not (tmp_path / ".run.holder.json").exists()


def test_a_warehouse_is_kept_up_to_date(project: Project) -> None:
    """Epochs at the grid points, with the files landed meanwhile; temporarily unreadable declarations stop nothing."""
    project.land("1.csv", csv(row("x", 0.5, 3)))
    turns: list[Turn] = []

    def report_turn(turn: Turn) -> None:
        turns.append(turn)
        if len(turns) == 1:
            project.land("2.csv", csv(row("y", 1.5, 9)))
        broken = len(turns) == 2
        text = (project.directory / "warehouse.toml").read_text().removeprefix("oh")
        (project.directory / "warehouse.toml").write_text("oh" * broken + text)

    with Warehouse.open(project.directory) as warehouse:
        done = warehouse.run(clock=Replayed(at(1.5), at(4.5)), report_turn=report_turn, spark=project.spark)
    assert done == 3
    assert [turn.error is None for turn in turns] == [True, True, False, True]
    assert isinstance(turns[2].error, ConfigurationError)
    last = newest_epoch(project.root)
    assert last is not None
    assert last.window_time == at(4)
    assert project.keys() == "y"


def test_the_command_ends_in_order(project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM ends it after the running update with exit code 0; each update prints a line with the time of the next."""
    project.land("1.csv", csv(row("x", 0.5, 3)))
    assert command(["-C", str(project.directory), "run"]) == EmptyFirstRunError.exit_code
    assert "--allow-dead" in capfd.readouterr().err
    project.update(1)
    ended = Warehouse.update

    def update(self: Warehouse, *arguments: object, **options: object) -> UpdateReport:
        os.kill(os.getpid(), signal.SIGTERM)
        return ended(self, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Warehouse, "update", update)
    before = signal.getsignal(signal.SIGTERM)
    assert command(["-C", str(project.directory), "run", "--delay", "1s"]) == 0
    assert signal.getsignal(signal.SIGTERM) is before
    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == "stopping when the update at work has ended; once more interrupts it"
    assert "next update 20" in lines[1]
    assert lines[-1].startswith("stopped after 1 update in ")
    assert project.numbers == [0, 1]


def test_recipes() -> None:
    """The unit restarts after failures that a restart mends, and signals only the command; both start the existing command."""
    texts = {block.comment: block.text for block in blocks_of("schedulers.md")}
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(texts["systemd run"])
    words = shlex.split(unit["Service"]["ExecStart"])
    service = unit["Service"]
    assert (service["Restart"], service["RestartPreventExitStatus"], service["KillMode"]) == ("on-failure", "2", "mixed")
    assert ConfigurationError.exit_code == 2
    assert SparkLostError.exit_code == 3
    lines = [line.split(maxsplit=1) for line in texts["container file"].splitlines()]
    started = [word for name, words in lines if name in ("ENTRYPOINT", "CMD") for word in json.loads(words)]
    for arguments in (words[3:], started[3:]):
        context = stream_wh.make_context("stream-wh", arguments, resilient_parsing=True)
        name, chosen, rest = stream_wh.resolve_command(context, arguments)
        assert chosen is not None
        assert (name, chosen.make_context("run", rest).params["delay"]) == ("run", 10 * SECOND)
