"""``keep``: rejected rows and reported short-lived results leave in whole files after their time."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.frozen.test_frozen import HERE, thawed
from warehouse.checking.check import check
from warehouse.epochs.journal import read_epoch
from warehouse.epochs.points import Moment, Point
from warehouse.operations.update import UpdateOptions
from warehouse.planning.keeping import SHARES
from warehouse.project import Warehouse
from warehouse.steps.registry import explain
from warehouse.storage.snapshot import stored_files
from warehouse.time import HOUR

from .projects import Project, StoppedError, at, csv, row, stop_at, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import SideTable


def later(project: Project, hours: float) -> None:
    """Advance the wall clock."""
    project.clock += round(hours * HOUR)


def reject(project: Project, hour: int, *names: str) -> None:
    """Land a file with one usable row; all other lines are rejected."""
    project.land(f"{hour}.csv", csv(row("fine", hour - 0.5, hour + 2), *(f"{name},," for name in names)))


def raws(project: Project, number: int | None = None) -> set[str]:
    """Return the names of the rejected rows."""
    return {str(record["raw"]).split(",")[0] for record in project.rejected(number=number)}


def side(project: Project, role: str = "rejected", table: str = "a") -> SideTable:
    """Return a side table of a table, at the newest epoch."""
    side_table = getattr(project.epoch.table(table), role)
    assert side_table is not None
    return side_table  # type: ignore[no-any-return]


def data_files(directory: Path) -> set[str]:
    """Return the data files in a table's directory."""
    return {path.name for path in directory.rglob("*.parquet") if "_delta_log" not in path.parts}


def named(project: Project) -> set[str]:
    """Return the files of rejected rows that readable epochs name."""
    sides = [state.rejected for number in project.numbers for state in read_epoch(project.root, number).tables]
    return {
        file.path
        for side_table in sides
        if side_table is not None
        for file in stored_files(project.root / side_table.path, side_table.version)
    }


@pytest.mark.parametrize("seed", [3, pytest.param(8, marks=pytest.mark.long)])
def test_rows_leave_when_they_are_old_enough(tmp_path: Path, spark: SparkSession, seed: int) -> None:
    """At random ages: no younger row leaves, no older row stays, earlier epochs still have their rows, and files come back."""
    chance, keep = random.Random(seed), 8 * HOUR  # noqa: S311 - test data
    project = Project(tmp_path / "project", spark, warehouse={"keep": "8h", "retain": "3h", "vacuum": "manual"})
    rejected_at: dict[str, int] = {}
    seen: dict[int, set[str]] = {}
    for hour in range(1, 13):
        later(project, chance.choice([0.1, 0.4, 1, 2.5, 6]))
        if chance.random() < 0.6:
            reject(project, hour, f"bad{hour}")
            rejected_at[f"bad{hour}"] = project.clock
        project.update(hour)
        remaining = raws(project)
        assert all(instant + keep <= project.clock for name, instant in rejected_at.items() if name not in remaining)
        assert all(instant > project.clock - keep - keep // SHARES for name, instant in rejected_at.items() if name in remaining)
        seen[project.epoch.number] = remaining
        project.updater().vacuum()
        assert data_files(project.root / "rejected" / "a") == named(project)
        assert all(raws(project, number) == seen[number] for number in project.numbers)
    assert set.union(*seen.values()) == rejected_at.keys() != seen[project.epoch.number]
    assert check(project.root).findings == ()


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Three epochs, an hour of the clock apart, each with a rejected row; `keep` is over for none."""
    streams = {"a": stream(layout={"seal": False})}
    project = Project(tmp_path_factory.mktemp("keep") / "project", spark, streams, warehouse={"keep": "10h", "retain": "2h"})
    for hour in (1, 2, 3):
        later(project, 1)
        reject(project, hour, f"bad{hour}")
        project.update(hour)
    return project


def test_it_is_planned_and_counts_no_times_of_files(three: Project, tmp_path: Path) -> None:
    """The step is planned and explained; the age counts from the update that found a row, whatever the times of files."""
    project = three.copy(tmp_path / "project")
    for path in (project.root / "rejected").rglob("*"):
        os.utime(path, (2**31, 2**31))
    later(project, 8.5)  # the first row was found 10.5 hours ago, the second 9.5
    plan, _ = project.updater().plan(UpdateOptions(at=at(4)))
    assert plan is not None
    (explanation,) = [step for step in explain(plan, three.epoch, three.root) if step.action == "drop"]
    assert (explanation.table, "epoch 0 or before" in explanation.detail) == ("rejected/a", True)
    project.update(4)
    assert raws(project) == {"bad2", "bad3"}
    assert raws(project, 2) == {"bad1", "bad2", "bad3"}
    assert (side(project).rows, len(side(project).found)) == (2, 2)
    project.updater().rollback(2)
    assert raws(project) == {"bad2", "bad3"}, "what goes back does not bring back what is over"
    assert check(project.root).findings == ()


@pytest.mark.parametrize("mixed", [False, True], ids=["whole files", "a file of several updates"])
def test_a_kill_anywhere_changes_nothing(three: Project, tmp_path: Path, *, mixed: bool) -> None:
    """Stopped at any moment and finished by the next update, it makes the same epoch as an undisturbed update."""
    base = three.copy(tmp_path / "base")
    if mixed:
        DeltaTable(str(base.root / "rejected" / "a")).optimize.compact()
        base.updater().repair()
    later(base, 9.5)
    whole = base.copy(tmp_path / "whole")
    moments: list[Moment] = []
    whole.update(4, observer=moments.append)
    assert raws(whole) == {"bad3"}
    (step,) = {moment.step for moment in moments if moment.text == "drop old rows of rejected rows of a"}
    inside = (Point.STEP_STARTED, Point.STEP_READY, Point.STAGED, Point.STEP_COMMITTED)
    for point in (Point.PLAN_WRITTEN, *inside, Point.STEPS_DONE, Point.DURABLE, Point.EPOCH_WRITTEN):
        project = base.copy(tmp_path / point.name)
        with pytest.raises(StoppedError):
            project.update(4, observer=stop_at(point, step if point in inside else -1))
        project.update(4)
        assert (raws(project), side(project)) == (raws(whole), side(whole)), point
        assert project.picture() == whole.picture()
        assert check(project.root).findings == ()


def test_vacuum_tells_before_what_it_frees(three: Project, tmp_path: Path) -> None:
    """Files are deleted when the epochs that name them fall out of `retain`, and a dry run reports their number."""
    project = three.copy(tmp_path / "project")
    project.warehouse["vacuum"] = "manual"
    project.declare()
    files = data_files(project.root / "rejected" / "a")
    later(project, 10.5)
    project.update(4)
    assert raws(project) == set()
    project.updater().vacuum()
    assert data_files(project.root / "rejected" / "a") == files, "an epoch that can be read names them"
    later(project, 2.5)
    project.update(5)
    would = project.updater().vacuum(dry_run=True)
    assert data_files(project.root / "rejected" / "a") == files
    freed = project.updater().vacuum()
    assert (would.epochs, freed.epochs) == (1, 1)
    assert would.files >= len(files)
    assert data_files(project.root / "rejected" / "a") == set()


def test_forever_and_back(three: Project, tmp_path: Path) -> None:
    """With `forever` nothing leaves and no age is recorded; a stream's own limit counts from its first update on."""
    project = three.copy(tmp_path / "project")
    project.warehouse["keep"] = "forever"
    project.declare()
    later(project, 10_000)
    project.update(4)
    assert (raws(project), side(project).found) == ({"bad1", "bad2", "bad3"}, ())
    project.change(keep="2h")
    for hours, remain in ((1, True), (1.9, True), (0.2, False)):
        later(project, hours)
        project.update(round(project.epoch.slot) + 1)
        assert (raws(project) == {"bad1", "bad2", "bad3"}) == remain


@pytest.mark.parametrize("verb", ["restate", "erase", "optimize"])
def test_what_writes_rows_again_makes_none_younger(three: Project, tmp_path: Path, spark: SparkSession, verb: str) -> None:
    """`restate --rejected`, `erase` and an outsider's OPTIMIZE put rows of several updates into one file: old rows leave it."""
    project = three.copy(tmp_path / "project")
    project.spark = spark
    later(project, 8.5)
    if verb == "restate":
        for file in ("1.csv", "2.csv"):
            (project.directory / "landing" / "a" / file).unlink()
        project.updater().restate("a", rejected=True, allow_lost=True)
    elif verb == "erase":
        project.updater().erase("a", ["bad2"])
    else:
        DeltaTable(str(project.root / "rejected" / "a")).optimize.compact()
    last = {"bad3"} if verb == "erase" else {"bad2", "bad3"}
    project.update(4)
    assert raws(project) == last
    assert len(stored_files(project.root / "rejected" / "a", side(project).version)) == 1
    later(project, 1)
    project.update(5)
    assert raws(project) == {"bad3"}
    assert check(project.root).findings == ()
    later(project, 9)  # restating found the last one once more
    project.update(6)
    assert (raws(project), side(project).rows) == (set(), 0)


PAIRS = {
    "sql": "SELECT a.k, b.e FROM a JOIN b ON a.k = b.k",
    "search_key": "k",
    "short_lived": "report",
    "keep": "3h",
}


def test_short_lived_results_leave_too(tmp_path: Path, spark: SparkSession) -> None:
    """A view's own `keep` applies; results leave also if it reports no more, and `restored` returns the remaining ones."""
    streams = {"a": stream(), "b": stream(landing="landing/b")}
    project = Project(tmp_path / "project", spark, streams, views={"pairs": dict(PAIRS)}, warehouse={"keep": "100d"})
    project.update(0)
    for hour, key in ((1, "x"), (2, "y")):
        project.land(f"{hour}.csv", csv(row(key, hour - 0.9, hour + 2)))
        project.land(f"{hour}.csv", csv(row(key, hour - 1.0, hour - 0.3)), landing="landing/b")
        later(project, 1)
        project.update(hour)

    def restored() -> Iterator[str]:
        with Warehouse.open(project.directory) as warehouse:
            yield from sorted(str(record["k"]) for record in warehouse.restored("pairs").arrow().to_pylist())

    assert (list(restored()), side(project, "restored", "pairs").rows) == (["x", "y"], 2)
    later(project, 2.5)
    project.update(3)
    assert (list(restored()), side(project, "restored", "pairs").rows) == (["y"], 1)
    project.views["pairs"]["short_lived"] = "drop"
    project.declare()
    later(project, 2.5)
    project.update(4)
    assert (list(restored()), side(project, "restored", "pairs").rows) == ([], 0)
    assert check(project.root).findings == ()


def test_a_warehouse_of_an_earlier_build(tmp_path: Path, spark: SparkSession) -> None:
    """Its rows have no recorded age and its files no bounds in the log: they stay for `keep` from the first update on."""
    frozen = thawed(HERE / "61b4f80" / "wave", tmp_path / "project", spark)
    hour = frozen.expected["hour"]

    def rejected() -> int:
        with Warehouse.open(frozen.directory) as warehouse:
            return int(warehouse.sql("SELECT count(*) FROM _rejected").all()[0][0])

    before = rejected()
    frozen.update(hour + 1)
    assert before
    assert rejected() >= before
    frozen.clock += 91 * 24 * HOUR
    frozen.update(hour + 2)
    assert rejected() == 0
    assert frozen.faults() == []


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """A stream with a rejected row, and a view with a short-lived result, of the same update; `keep` is over for neither."""
    streams = {"a": stream(), "b": stream(landing="landing/b")}
    sql = "SELECT a.k, b.e, 1 / (length(a.k) - 3) AS part FROM a JOIN b ON a.k = b.k"
    views: dict[str, dict[str, object]] = {"pairs": {**PAIRS, "sql": sql}, "over": {"sql": "SELECT k, part FROM pairs"}}
    views["over"] |= {"search_key": "k", "short_lived": "report"}
    project = Project(tmp_path_factory.mktemp("still") / "project", spark, streams, views=views, warehouse={"keep": "3h"})
    project.update(0)
    project.land("1.csv", csv(row("x", 0.1, 3), "no,,"))
    project.land("1.csv", csv(row("x", 0.0, 0.7)), landing="landing/b")
    later(project, 1)
    project.update(1)
    assert [side(project, *arguments).rows for arguments in BESIDE] == [1, 1, 1]
    return project


BESIDE = (("rejected", "a"), ("restored", "pairs"), ("restored", "over"))


@pytest.mark.parametrize("why", ["source changed", "side changed", "refused", "fails"])
def test_they_leave_a_table_or_view_that_stands_still(kept: Project, tmp_path: Path, why: str) -> None:
    """Whatever stops the table, rows leave in time; only a directory that outsiders changed is not touched."""
    project = kept.copy(tmp_path / "project")
    if why == "source changed":
        DeltaTable(str(project.root / "tables" / "a")).delete("k = 'x'")
    elif why == "side changed":
        DeltaTable(str(project.root / "restored" / "pairs")).delete("k = 'x'")
    elif why == "refused":
        project.views["pairs"]["sql"] = "SELECT nothing FROM a"
        project.declare()
    else:
        for landing in ("landing/a", "landing/b"):
            project.land("2.csv", csv(row("bad", 1, 5)), landing=landing)
    still = {"a", "pairs", "over"} if why == "source changed" else {"pairs", "over"}
    left = [0, 1, 0] if why == "side changed" else [0, 0, 0]
    pinned = {name: project.stored(name) for name in still}
    for hours, expected in ((1, [1, 1, 1]), (2.5, left)):
        later(project, hours)
        report = project.update(project.epoch.slot + 1)
        assert {name for name, _ in (*report.stopped, *report.failed_views)} == still
        assert [side(project, *arguments).rows for arguments in BESIDE] == expected
    assert {name: project.stored(name) for name in still} == pinned
    project.updater().undo_foreign()
    project.views["pairs"]["sql"] = kept.views["pairs"]["sql"]
    project.declare()
    later(project, 1)
    project.update(project.epoch.slot + 3)
    assert [side(project, *arguments).rows for arguments in BESIDE] == [0, 0, 0]
    assert check(project.root).findings == ()
