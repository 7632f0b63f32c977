"""A commit is made on the base entry of its plan and on no other; a given-up commit is taken back, not removed.

Somebody else commits while an update is held, between the steps and between a step's rows and its commit::

    base        staged                 committed
    N ----------- | -------------------- N+1        the update's
                      N+1                           somebody else's: the update is refused, and N+1 stays as it is
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.checking.check import check
from warehouse.epochs.journal import plan_path, read_record
from warehouse.epochs.points import Moment, Point
from warehouse.errors import ForeignChangeError
from warehouse.operations.execution import finish
from warehouse.planning.plan_record import Plan
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import append_entry, entry_at, entry_path
from warehouse.storage.replay import replay
from warehouse.storage.reversal import counting
from warehouse.time import DAY

from .projects import Project, StoppedError, csv, row, stop_at

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.storage.entries import LogEntry


@pytest.fixture
def begun(project: Project) -> Project:
    """A project with an epoch, and a file for the next: of rows, a waiting one, an invalid one."""
    project.land("1.csv", csv(row("x", 0.5, 4), row("w", 2.5, 6), "short"))
    project.update(1)
    project.land("2.csv", csv(row("y", 1.5, 5), row("w2", 3.5, 6), "small"))
    return project


def foreign(table: Path) -> LogEntry:
    """Commit on a table as another writer that changes no row would."""
    newest = DeltaTable(str(table)).version()
    return append_entry(table, entry_at(table, newest), [{"commitInfo": {"operation": "VACUUM END", "engineInfo": "other"}}])


@pytest.mark.parametrize("point", [Point.STEP_STARTED, Point.STEP_READY, Point.STAGED])
@pytest.mark.parametrize("table", ["tables/a", "deferred/a", "rejected/a"])
def test_who_commits_meanwhile_is_not_built_upon(begun: Project, point: Point, table: str) -> None:
    """In any table, however late: the commit is made above the other commit, which stays and was taken back."""
    made: list[LogEntry] = []

    def other(moment: Moment) -> None:
        if moment.point == point and not made:
            plan = read_record(plan_path(begun.root, moment.epoch), Plan)
            if plan.steps[moment.step].path == table:
                made.append(foreign(begun.root / table))

    begun.update(2, observer=other)
    assert entry_at(begun.root / table, made[0].version) == made[0]
    theirs, following = list(commits_after(begun.root / table, made[0].version - 1))[:2]
    assert (theirs.ours, following.reverses) == (False, made[0].version - 1)
    assert [(record.path, record.became) for record in begun.epoch.foreign] == [(table, "passed")]
    assert begun.keys() == "x y"
    assert [len(begun.deferred()), len(begun.rejected())] == [2, 2]
    assert check(begun.root).faults == ()


@pytest.mark.parametrize("recorded", [True, False], ids=["with its sum", "of an older build"])
def test_a_base_of_the_same_number_is_no_base(begun: Project, recorded: bool) -> None:
    """The epoch's base is known by its content, and only the table stands still; an older record names the writer."""
    table = begun.root / "tables/a"
    entry = begun.epoch.entry("tables/a")
    assert entry is not None
    assert entry_at(table, entry.version).sha256 == entry.sha256
    path = entry_path(table, entry.version)
    ours = path.read_text()
    if recorded:
        path.write_text(ours + "\n")
        assert [name for name, _ in begun.update(2).stopped] == ["a"]
    else:
        from dataclasses import replace  # noqa: PLC0415 - here alone

        from warehouse.epochs.journal import epoch_path, write_record  # noqa: PLC0415 - same

        older = replace(begun.epoch, entries=())
        epoch_path(begun.root, 0).unlink()
        write_record(epoch_path(begun.root, 0), older)
        path.write_text(ours.replace('"engineInfo":"stream-wh"', '"engineInfo":"other"'))
        with pytest.raises(ForeignChangeError, match=f"commit {entry.version}"):
            begun.update(2)
        assert begun.numbers == [0]
    assert not entry_path(table, entry.version + 1).exists()
    path.write_text(ours)
    begun.update(2)
    assert begun.keys() == "x y"


def _lose(table: Path, version: int) -> None:
    """Remove a data file of a commit, as a power loss may."""
    commit = next(commits_after(table, version - 1))
    (table / commit.added[0].path).unlink()


def test_a_commit_that_is_given_up_is_taken_back_by_another(begun: Project) -> None:
    """No entry of a log goes or changes: who has seen it sees it taken back. What only it has added is freed with its epoch."""
    before = begun.keys()
    with pytest.raises(StoppedError):
        begun.update(2, observer=stop_at(Point.STEPS_DONE))
    table = begun.root / "tables/a"
    base = begun.epoch.entry("tables/a")
    assert base is not None
    lost_commit = next(commits_after(table, base.version))
    entry = entry_path(table, lost_commit.version).read_bytes()
    _lose(table, lost_commit.version)
    begun.update(2)
    assert entry_path(table, lost_commit.version).read_bytes() == entry
    log = list(commits_after(table, base.version))
    assert [commit.reverses for commit in log] == [None, base.version, None]
    assert [commit.version for commit in counting(log)] == [base.version + 3]
    assert replay(table, lost_commit.version + 1).files.keys() == replay(table, base.version).files.keys()
    newest = begun.epoch.entry("tables/a")
    assert newest is not None
    assert newest.version == log[-1].version
    assert (before, begun.keys()) == ("x", "x y")
    assert check(begun.root).faults == ()
    begun.update(3)
    begun.clock += 30 * DAY
    begun.updater().vacuum()
    named = set(replay(table, DeltaTable(str(table)).version()).files)
    assert {path.relative_to(table).as_posix() for path in table.rglob("*.parquet") if "=" in path.parent.name} == named
    assert check(begun.root).faults == ()


def test_given_up_again_and_again(begun: Project) -> None:
    """Each attempt is taken back, and the last one counts."""
    table = begun.root / "tables/a"
    for _ in range(3):
        with pytest.raises(StoppedError):
            begun.update(2, observer=stop_at(Point.STEPS_DONE))
        _lose(table, DeltaTable(str(table)).version())
    begun.update(2)
    assert begun.keys() == "x y"
    assert [len(begun.deferred()), len(begun.rejected())] == [2, 2]
    assert check(begun.root).faults == ()


def test_what_somebody_else_has_built_on_a_lost_commit_is_not_taken_back(begun: Project) -> None:
    """The error names it, whether the commit below has lost its files or cannot be read."""
    with pytest.raises(StoppedError):
        begun.update(2, observer=stop_at(Point.STEPS_DONE))
    table = begun.root / "tables/a"
    version = DeltaTable(str(table)).version()
    _lose(table, version)
    write_deltalake(str(table), DeltaTable(str(table), version=version - 1).to_pyarrow_table(), mode="append")
    other = entry_at(table, version + 1)
    assert [name for name, _ in begun.update(2).stopped] == ["a"]
    entry_path(table, version).write_bytes(b"")
    assert [name for name, _ in begun.update(2).stopped] == ["a"]
    assert entry_at(table, other.version) == other
    begun.updater().undo_foreign("a")
    assert begun.update(2).stopped == ()
    assert begun.keys() == "x y"
    assert check(begun.root).faults == ()


def test_going_back_starts_from_what_was_put_back_after_a_commit_was_given_up(
    history: Project, tmp_path: Path
) -> None:
    """The restored version is later than the plan expected; the next steps read that version."""
    project = history.copy(tmp_path / "project")
    undisturbed = project.copy(tmp_path / "undisturbed")
    undisturbed.updater().rollback(0)
    table = project.root / "tables/a"
    version = DeltaTable(str(table)).version()

    def lost(moment: Moment) -> None:
        if moment.point == Point.STEP_COMMITTED and entry_path(table, version + 1).exists():
            raise StoppedError

    with pytest.raises(StoppedError):
        project.updater(lost).rollback(0)
    _lose(table, version + 1)
    (epoch,) = finish(project.updater().context).finished
    assert epoch.cause == "rollback"
    assert [commit.reverses for commit in commits_after(table, version)][:2] == [None, version]
    for name in ("a", "counts", "once", "named", "b"):
        assert project.live(name) == undisturbed.live(name), name
    assert json.dumps(project.deferred(), default=str) == json.dumps(undisturbed.deferred(), default=str)
    assert check(project.root).faults == ()
