"""A run goes on where it stopped, survives contenders that fail, and lets no wrong answer pass."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks.field.alone import BusyError, alone
from benchmarks.field.hosts import Here, Worker
from benchmarks.field.job import Job
from benchmarks.field.results import OtherJobError, Results
from benchmarks.field.run import Run

from .fakes import BAD_SLOT, fake

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.field.hosts import Host
    from benchmarks.field.roster import Entry

JOB = Job(rows=200, keys=100, updates=3, periods=4)
SLOTS = {5, 6, 7}


def played(
    place: Path, *entries: Entry, job: Job = JOB, host_for: Callable[[Entry], Host] | None = None
) -> Results:
    """Run contenders in this process, or in the given hosts, and return the recorded results."""
    results = Results(place / "field.jsonl", job, {})
    Run(job, entries, place / "work", results, host_for or (lambda _: Here()), lambda _: None).play()
    return results


def events(place: Path, contender: str) -> list[tuple[str, int | None]]:
    """Return the recorded events of a contender, in order."""
    lines = [json.loads(line) for line in (place / "field.jsonl").read_text().splitlines()]
    return [(line["event"], line.get("slot")) for line in lines[1:] if line["contender"] == contender]


def test_every_update_is_measured(tmp_path: Path) -> None:
    """Each update has times, bytes, files and the oracle's number of live rows."""
    standing = played(tmp_path, fake("Plain")).of("plain")
    assert standing.failed is None
    assert set(standing.done) == SLOTS
    for line in standing.done.values():
        assert line["live"] == line["stored"] > 0
        assert line["files"] == 1
        assert line["bytes"] > 0
        assert {kind: len(times) for kind, times in line["probes"].items()} == {"few": 5, "many": 2, "absent": 1}


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        pytest.param("Forgetful", "scan answered|probe of", id="serves expired rows"),
        pytest.param("Lossy", "scan answered|probe of", id="loses a row"),
        pytest.param("Doubling", "probe of", id="gives a row twice"),
    ],
)
def test_the_oracle_catches_a_wrong_answer(tmp_path: Path, kind: str, what: str) -> None:
    """A contender that answers wrongly is out at that update, whatever its times; the others are measured."""
    results = played(tmp_path, fake(kind), fake("Plain"))
    failed = results.of(kind.lower()).failed
    assert failed is not None
    assert any(words in failed["reason"] for words in what.split("|"))
    assert results.of(kind.lower()).done == {}
    assert set(results.of("plain").done) == SLOTS


def test_a_failure_loses_nothing_of_the_others(tmp_path: Path) -> None:
    """A contender that raises keeps what it had measured, its reason is recorded, the others go on."""
    results = played(tmp_path, fake("Failing"), fake("Plain"), fake("Absent"))
    failing, absent = results.of("failing"), results.of("absent")
    assert failing.failed is not None
    assert failing.failed["reason"] == "ValueError: the disk is full of eels"
    assert failing.failed["slot"] == BAD_SLOT
    assert set(failing.done) == {5}
    assert absent.failed is not None
    assert absent.failed["missing"]
    assert "install them" in absent.failed["reason"]
    assert set(results.of("plain").done) == SLOTS


def test_a_worker_that_dies_takes_only_its_contender_along(tmp_path: Path) -> None:
    """When a process ends, the other contender of its group goes on in a new one, with what it had stored."""
    workers: list[Worker] = []

    def worker(_: Entry) -> Worker:
        workers.append(Worker(sys.executable, tmp_path / "log", 60))
        return workers[-1]

    results = played(tmp_path, fake("Dying", group="g"), fake("Plain", group="g"), host_for=worker)
    failed = results.of("dying").failed
    assert failed is not None
    assert "code 7" in failed["reason"]
    assert set(results.of("dying").done) == {5}
    assert set(results.of("plain").done) == SLOTS
    assert len(workers) == 2


def test_nothing_begins_while_a_worker_is_left(tmp_path: Path) -> None:
    """The lock of a run that was killed is held until its workers have ended."""
    with alone(tmp_path / "work") as lock:
        worker = Worker(sys.executable, tmp_path / "log", 60, lock)
    with pytest.raises(BusyError, match="wait for its end"), alone(tmp_path / "work"):
        pass
    worker.close()
    with alone(tmp_path / "work"):
        pass


def test_a_worker_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    """Patience is bounded."""
    results = played(tmp_path, fake("Stuck"), host_for=lambda _: Worker(sys.executable, tmp_path / "log", 3))
    failed = results.of("stuck").failed
    assert failed is not None
    assert failed["reason"] == "no answer within 3 s"


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    """What was measured is not measured again; a contender that was stopped in an update is brought back to where it was."""
    entries = [fake("Stopped"), fake("Plain")]
    with pytest.raises(KeyboardInterrupt):
        played(tmp_path, *entries)
    before = events(tmp_path, "plain")
    results = played(tmp_path, *entries)
    assert events(tmp_path, "plain")[: len(before)] == before
    for name in ("stopped", "plain"):
        assert results.of(name).failed is None
        assert [slot for event, slot in events(tmp_path, name) if event == "done"] == sorted(SLOTS)
        assert [event for event, _ in events(tmp_path, name)].count("built") == 1
    assert [slot for event, slot in events(tmp_path, "stopped") if event == "begun"] == [5, BAD_SLOT, BAD_SLOT, 7]


def test_updates_that_settle_are_not_asked_after(tmp_path: Path) -> None:
    """They come before the measured updates, once, also where a run goes on after the stored rows were deleted."""
    settling = replace(JOB, settling=2, updates=1)
    played(tmp_path, fake("Plain"), job=settling)
    (tmp_path / "work" / "plain" / "rows.parquet").unlink()
    (tmp_path / "work" / "plain").rmdir()
    results = played(tmp_path, fake("Plain"), job=replace(settling, updates=2))
    assert [event for event in events(tmp_path, "plain") if event[0] in ("settled", "done")] == [
        ("settled", 5), ("settled", 6), ("done", 7), ("done", 8),
    ]  # fmt: skip
    assert results.of("plain").failed is None


def test_more_updates_go_on_with_a_run(tmp_path: Path) -> None:
    """A run with more updates measures only these, also after the stored rows were deleted."""
    played(tmp_path, fake("Plain"))
    longer = replace(JOB, updates=4)
    (tmp_path / "work" / "plain" / "rows.parquet").unlink()
    (tmp_path / "work" / "plain").rmdir()
    results = played(tmp_path, fake("Plain"), job=longer)
    assert set(results.of("plain").done) == {*SLOTS, 8}
    assert results.of("plain").failed is None


def test_a_line_that_was_cut_short_is_taken_off(tmp_path: Path) -> None:
    """A kill in the middle of a line leaves the lines before it."""
    played(tmp_path, fake("Plain"))
    path = tmp_path / "field.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event": "do')
    assert set(Results(path, JOB, {}).of("plain").done) == SLOTS
    assert path.read_bytes() == whole


def test_results_of_another_job_are_left_alone(tmp_path: Path) -> None:
    """Numbers of two jobs are never mixed."""
    played(tmp_path, fake("Plain"))
    with pytest.raises(OtherJobError, match="rows was 200, is 300"):
        Results(tmp_path / "field.jsonl", replace(JOB, rows=300), {})


def test_again_measures_anew(tmp_path: Path) -> None:
    """A contender that failed can be given another chance."""
    results = played(tmp_path, fake("Failing"))
    results.add("again", "failing")
    assert results.of("failing").failed is None
    assert results.of("failing").done == {}


def in_turn(place: Path, names: Sequence[str]) -> list[str]:
    """Return the names of the contenders in the order of their updates."""
    lines = [json.loads(line) for line in (place / "field.jsonl").read_text().splitlines()[1:]]
    return [line["contender"] for line in lines if line["event"] == "done" and line["contender"] in names]


def test_contenders_take_turns(tmp_path: Path) -> None:
    """Each update is made by all before the next; who begins changes."""
    names = ["plain", "failing"]
    played(tmp_path, fake("Plain"), fake("Failing"))
    order = in_turn(tmp_path, names)
    assert set(order[:2]) == set(names)
    assert order[2:] == ["plain", "plain"]  # the other one failed
