"""Outsiders commit to a table during an update or before it is finished: the plan continues, or its error says what to do.

Each change comes at each moment of an update; afterwards all tables and views are as in a warehouse with which nobody meddled::

    base ── step ── step ──────── epoch          the plan's commits in a table
         ^       ^       ^                       moments at which an outsider commits
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from warehouse.epochs.journal import plan_path, read_record
from warehouse.epochs.points import Moment, Point
from warehouse.errors import ForeignChangeError, NoEpochError
from warehouse.planning.plan_record import Plan
from warehouse.planning.steps import MoveWindow
from warehouse.storage.entries import entry_path
from warehouse.storage.reversal import reverse

from .outsiders import CHANGES, HARMLESS, split
from .projects import Project, StoppedError, csv, row
from .test_foreign import VIEWS, faults, keys, table_of, to_nine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.epochs.points import Observer
    from warehouse.operations.update import UpdateReport
    from warehouse.storage.entries import LogEntry

ALL = {**HARMLESS, "split": split, **CHANGES}
MOMENTS = [Point.PLAN_WRITTEN, Point.STEP_STARTED, Point.STAGED, Point.STEP_COMMITTED, Point.STEPS_DONE]
QUICK = [
    ("split", Point.PLAN_WRITTEN, "update"),
    ("delete", Point.STEP_COMMITTED, "undo"),
    ("taken back", Point.STEPS_DONE, "repair"),
]


@pytest.fixture(scope="module")
def model(followed: Project) -> dict[str, list[str]]:
    """Return the rows of the tables and views after an undisturbed update."""
    return keys(followed)


def _at(project: Project, point: Point, action: Callable[[], None]) -> Observer:
    """Return an observer that acts once, at a point; at a point of a step, in the step that writes the table's rows."""
    done: list[Moment] = []

    def observe(moment: Moment) -> None:
        if done or moment.point != point:
            return
        if moment.step >= 0:
            plan = read_record(plan_path(project.root, moment.epoch), Plan)
            step = plan.steps[moment.step]
            if not isinstance(step, MoveWindow) or step.path != "tables/a":
                return
        done.append(moment)
        action()

    return observe


def _begun(history: Project, directory: Path, point: Point) -> Project:
    """Return a copy whose next update was killed at a point."""
    project = history.copy(directory)
    project.land("4.csv", csv(row("n", 3.5, 7)))

    def stop() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        project.update(4, observer=_at(project, point, stop))
    return project


@pytest.fixture(scope="module")
def killed(history: Project, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Point], Project]:
    """Return warehouses whose update was killed at a point, each made once; tests take copies."""
    return cache(lambda point: _begun(history, tmp_path_factory.mktemp("killed") / "project", point))


def _cases() -> list[object]:
    cases = [
        (name, point, verb)
        for name in ALL
        for point in MOMENTS
        for verb in (("undo",) if name in CHANGES and name != "lying optimize" else ("update", "repair", "undo"))
    ]
    assert set(QUICK) <= set(cases)
    return [pytest.param(*case, marks=() if case in QUICK else pytest.mark.long) for case in cases]


@pytest.mark.parametrize(("name", "point", "verb"), _cases())
def test_an_unfinished_update_is_finished_whatever_outsiders_committed(
    killed: Callable[[Point], Project], tmp_path: Path, model: dict[str, list[str]], name: str, point: Point, verb: str
) -> None:
    """A change without row changes is taken back; any other stops the table alone, until its command takes it back."""
    project = killed(point).copy(tmp_path / "project")
    ALL[name](table_of(project))
    if verb == "undo":
        if name in CHANGES and name not in ("lying optimize", "torn"):
            _only_a_stands_still(project, project.update(4), model)
        reversals = project.updater().undo_foreign("a", dry_run=True)
        assert all(reversal.how in ("followed", "removed") for reversal in reversals), reversals
        assert project.updater().undo_foreign("a") == reversals
    if verb == "repair":
        project.updater().repair()
    project.update(4)
    assert keys(project) == model
    assert not faults(project)
    for record in project.epoch.foreign:
        assert (record.path, record.became) in {("tables/a", "passed"), ("tables/a", "reversed")}


def test_an_update_at_work_passes_what_slips_in(history: Project, tmp_path: Path, model: dict[str, list[str]]) -> None:
    """At each moment an outsider commits without changing rows; the update completes, and reports it."""
    project = history.copy(tmp_path / "project")
    project.land("4.csv", csv(row("n", 3.5, 7)))
    table = table_of(project)
    names = dict(zip(MOMENTS, ("split", "vacuum", "empty", "taken back", "vacuum"), strict=True))
    observers = [_at(project, point, lambda name=name: ALL[name](table)) for point, name in names.items()]  # type: ignore[misc]

    def observe(moment: Moment) -> None:
        for observer in observers:
            observer(moment)

    report = project.update(4, observer=observe)
    assert keys(project) == model
    assert not faults(project)
    (epoch,) = report.epochs
    assert [record.became for record in epoch.foreign] == ["reversed", "passed", "passed"]
    assert all("while an update was at work" in text for text in epoch.warnings)
    assert project.update(4).epochs == ()


def _only_a_stands_still(project: Project, report: UpdateReport, model: dict[str, list[str]]) -> None:
    """Check that the update reports it, has moved all tables that do not depend on it, and `check` finds nothing else."""
    assert [table for table, why in report.stopped if "repair --undo-foreign a" in why] == ["a"]
    assert {view for view, _ in report.failed_views} == set(VIEWS)
    assert keys(project)["b"] == model["b"]
    assert project.epoch.slot == 4
    assert {fault.split(":")[0] for fault in faults(project)} == {"foreign_commit"}


@pytest.mark.parametrize(("name", "point"), [("append", Point.STAGED), ("delete", Point.STEPS_DONE)])
def test_rows_that_slip_in_stop_their_table_alone(
    history: Project, tmp_path: Path, model: dict[str, list[str]], name: str, point: Point
) -> None:
    """The running update takes back its commits, also new tables, and makes another plan."""
    project = history.copy(tmp_path / "project")
    project.land("4.csv", csv(row("n", 3.5, 7)))
    project.views["fresh"] = {"sql": "SELECT k, count(*) AS n FROM b GROUP BY k", "search_key": "k"}
    project.declare()
    table = table_of(project)
    report = project.update(4, observer=_at(project, point, lambda: CHANGES[name](table)))
    _only_a_stands_still(project, report, model)
    fresh = project.keys("fresh")
    assert fresh == project.keys("b")
    project.updater().undo_foreign("a")
    assert project.update(4).stopped == ()
    assert (keys(project), project.keys("fresh")) == (model, fresh)
    assert not faults(project)


@pytest.mark.long
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_giving_a_plan_up_can_be_killed(
    history: Project, tmp_path: Path, model: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """The next update continues giving up; or it finishes the plan if the change was taken back meanwhile."""
    for undone in (False, True):
        project = _begun(history, tmp_path / str(undone), Point.STEPS_DONE)
        CHANGES["delete"](table_of(project))
        left = [nth]

        def killed(*arguments: Any, left: list[int] = left, **options: Any) -> LogEntry:  # noqa: ANN401 - as they are
            left[0] -= 1
            if left[0] == 0:
                raise StoppedError
            return reverse(*arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr("warehouse.operations.giving_up.reverse", killed)
            with pytest.raises(StoppedError):
                project.update(4)
        if undone:
            project.updater().undo_foreign("a")
        else:
            _only_a_stands_still(project, project.update(4), model)
            project.updater().undo_foreign("a")
        project.update(4)
        assert keys(project) == model
        assert not faults(project)


# --- tables that the plan creates ---


@pytest.mark.parametrize("name", ["append", "empty", pytest.param("properties", marks=pytest.mark.long)])
def test_a_first_update_goes_on(project: Project, name: str) -> None:
    """No epoch names the table yet: outsiders' commits above its first commit are still taken back."""
    project.land("1.csv", csv(row("x", 0.5, 4), row("y", 0.5, 5)))

    def stop() -> None:
        raise StoppedError

    with pytest.raises(NoEpochError, match="nothing to take back"):
        project.updater().undo_foreign("a", dry_run=True)
    with pytest.raises(StoppedError):
        project.update(1, observer=_at(project, Point.STEP_COMMITTED, stop))
    ALL[name](project.root / "tables/a")
    if name in CHANGES:
        with pytest.raises(ForeignChangeError, match="repair --undo-foreign a"):
            project.update(1)
        assert [reversal.how for reversal in project.updater().undo_foreign("a", dry_run=True)] == ["followed"]
        assert [reversal.how for reversal in project.updater().undo_foreign("a")] == ["followed"]
    project.update(1)
    assert project.keys() == "x y"
    assert not faults(project)


def test_a_table_that_stands_where_the_plan_creates_one_is_removed(project: Project) -> None:
    """Before the plan's first commit there is no version to go back to."""
    project.land("1.csv", csv(row("x", 0.5, 4)))

    def stop() -> None:
        raise StoppedError

    with pytest.raises(StoppedError):
        project.update(1, observer=_at(project, Point.PLAN_WRITTEN, stop))
    import pyarrow as pa  # noqa: PLC0415 - one use
    from deltalake import write_deltalake  # noqa: PLC0415 - same

    write_deltalake(str(project.root / "tables/a"), pa.table({"other": [1]}))
    with pytest.raises(ForeignChangeError, match="repair --undo-foreign a"):
        project.update(1)
    assert [reversal.how for reversal in project.updater().undo_foreign("a")] == ["removed"]
    project.update(1)
    assert project.keys() == "x"


# --- checkpoints ---


@pytest.mark.parametrize("point", [Point.PLAN_WRITTEN, Point.STAGED])
def test_a_checkpoint_of_a_commit_that_somebody_removed_is_no_base(
    history: Project, model: dict[str, list[str]], tmp_path: Path, point: Point
) -> None:
    """The plan's commit takes the number of a removed foreign commit whose checkpoint still exists."""
    before = history.copy(tmp_path / "nine")
    to_nine(before)
    before.land("4.csv", csv(row("n", 3.5, 7)))
    table = table_of(before)

    def come_and_go() -> None:
        CHANGES["delete"](table)
        DeltaTable(str(table)).create_checkpoint()
        entry_path(table, 10).unlink()
        if point == Point.PLAN_WRITTEN:
            raise StoppedError

    if point == Point.PLAN_WRITTEN:
        with pytest.raises(StoppedError):
            before.update(4, observer=_at(before, point, come_and_go))
        before.update(4)
    else:
        before.update(4, observer=_at(before, point, come_and_go))
    assert not faults(before)
    assert keys(before) == model
