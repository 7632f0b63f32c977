"""Rollbacks: a new epoch with the contents of an earlier one; landing files that came since can be loaded again."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.replayed import replayed
from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.errors import MissingPartError, RollbackError
from warehouse.time import HOUR

from .histories import counts
from .projects import Project, StoppedError, at, csv, row, stop_at, stream

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def copy(history: Project, tmp_path: Path) -> Project:
    """Return a copy of the project, to be rolled back from epoch 2 to epoch 0."""
    return history.copy(tmp_path / "project")


def rolled_back(project: Project) -> None:
    """Check the result of every rollback to epoch 0 at slot 3."""
    epoch = project.epoch
    assert (epoch.number, epoch.slot, epoch.window_time, epoch.cause, epoch.starts_from) == (3, 3, at(3), "rollback", 0)
    assert (project.keys(), project.keys("once"), counts(project)) == ("w x", "w x", {"w": 1, "x": 1})
    assert (project.keys("named"), project.keys("b"), len(project.live("r"))) == ("x", "q", 2)
    assert [row["k"] for row in project.deferred()] == []
    assert len(project.rejected()) == 1
    assert project.keys(number=2) == "bad w x x"  # still readable as it was
    assert check(project.root).findings == ()


def test_a_rollback_is_a_new_epoch_with_the_old_contents_at_the_same_window_time(copy: Project) -> None:
    """All tables go back, the time stays; the next update loads the files that came since, views included."""
    report = copy.updater().rollback(0)
    assert [(file.stream, file.path, file.there) for file in report.forgotten] == [("a", "2.csv", True), ("b", "2.csv", True)]
    rolled_back(copy)
    copy.land("2.csv", csv(row("good", 1.5, 5), row("x", 1.2, 5), row("w2", 4.5, 6)))
    copy.update(4)
    assert [(entry.stream, file.path) for entry in copy.epoch.files for file in entry.loaded] == [("a", "2.csv"), ("b", "2.csv")]
    assert (copy.keys(), copy.keys("once")) == ("good w x x", "good w x")
    assert counts(copy) == {"good": 1, "w": 1, "x": 2}
    assert [row["k"] for row in copy.deferred()] == ["w2"]
    assert check(copy.root).findings == ()


def test_what_was_gone_back_on_left_and_comes_again(copy: Project) -> None:
    """Changes across a rollback list removed rows as deleted, and rows that a later rollback restored as inserted."""
    changes = replayed(copy.root)
    assert {kind: count for (table, kind), count in changes.items() if table == "counts"} == {
        "insert": 2, "update_preimage": 2, "update_postimage": 2, "delete": 1,
    }  # fmt: skip
    copy.updater().rollback(0)
    copy.updater().rollback(2)
    changes = replayed(copy.root)
    assert (changes["a", "delete"], changes["b", "delete"]) == (2, 1)
    assert changes["a", "insert"] == 5


def test_going_back_twice_and_vacuuming_keeps_what_epochs_name(copy: Project) -> None:
    """A file that left a table and came back is not deleted with the epochs that it left with."""
    copy.updater().rollback(0)
    copy.updater().rollback(2)
    assert (copy.keys(), counts(copy)) == ("bad w x x", {"bad": 1, "w": 1, "x": 2})
    copy.warehouse["retain"] = "0s"
    copy.declare()
    copy.updater().vacuum()
    assert copy.numbers == [4]
    assert (copy.keys(), counts(copy), copy.keys("once")) == ("bad w x x", {"bad": 1, "w": 1, "x": 2}, "bad w x")
    assert check(copy.root).findings == ()


def test_a_rollback_that_was_interrupted_is_completed(copy: Project) -> None:
    """Any next verb finishes it from its plan; until then readers see the epoch before."""
    with pytest.raises(StoppedError):
        copy.updater(stop_at(Point.STEP_COMMITTED, 1)).rollback(0)
    assert copy.keys() == "bad w x x"
    assert not check(copy.root).faults
    report = copy.update(3)
    assert len(report.finished) == 1
    rolled_back(copy)


def test_a_table_declared_since_is_empty_afterwards(copy: Project) -> None:
    """Its views as well; its files wait for the next update."""
    copy.streams["c"] = stream(landing="landing/c")
    copy.views["later"] = {"sql": "SELECT k, count(*) AS n FROM c GROUP BY k", "search_key": "k"}
    copy.declare()
    copy.land("1.csv", csv(row("q", 3.5, 6)), landing="landing/c")
    copy.update(4)
    assert (copy.keys("c"), copy.keys("later")) == ("q", "q")
    report = copy.updater().rollback(2)
    assert [file.path for file in report.forgotten if file.stream == "c"] == ["1.csv"]
    assert any('"c" did not exist in epoch 2' in text for text in report.warnings)
    assert (copy.keys("c"), copy.keys("later"), copy.keys()) == ("", "", "bad w x x")
    assert check(copy.root).findings == ()


@pytest.mark.parametrize(("number", "reason"), [(3, "the newest is epoch 2"), (2, "it is the newest"), (-1, "there is none")])
def test_an_epoch_that_is_none_is_refused(copy: Project, number: int, reason: str) -> None:
    """The error gives the reason; nothing is written."""
    copy.spark = None
    with pytest.raises(RollbackError, match=reason):
        copy.updater().rollback(number)
    assert copy.numbers == [0, 1, 2]


def test_a_retired_epoch_is_refused(copy: Project) -> None:
    """Its files are deleted."""
    copy.warehouse["retain"] = "0s"
    copy.declare()
    copy.spark = None
    copy.updater().vacuum()
    with pytest.raises(RollbackError, match=r"fell out of `retain`.*oldest epoch to go back to is 2"):
        copy.updater().rollback(0)


def test_an_epoch_with_missing_files_is_refused(copy: Project) -> None:
    """Nothing is written, so the newest epoch stays as good as it was."""
    copy.spark = None
    state = copy.epoch.table("once")
    assert state is not None
    for cell in (copy.root / state.path).glob("sub_index=*"):
        shutil.rmtree(cell)
    with pytest.raises(MissingPartError, match="not there or damaged"):
        copy.updater().rollback(1)
    assert copy.numbers == [0, 1, 2]


def test_ledgers_sum_up_retired_epochs_only(copy: Project) -> None:
    """The loaded files of each readable epoch stay separate, however many epochs were retired."""
    copy.spark = None
    copy.warehouse["retain"] = "1h"
    copy.declare()
    copy.clock += HOUR
    for _ in range(70):
        copy.updater().reload("landing/a/2.csv")
    copy.clock += HOUR
    copy.updater().reload("landing/a/2.csv")
    last = copy.epoch.number
    copy.updater().vacuum()
    assert copy.numbers == [last - 1, last]
    assert [path.name for path in (copy.root / "epochs").glob("*.ledger.json")] == [f"{last - 2:020d}.ledger.json"]
    report = copy.updater().rollback(last - 1)
    assert report.forgotten == ()
    assert check(copy.root).findings == ()
