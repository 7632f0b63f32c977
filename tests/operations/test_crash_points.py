"""An update that stops at any of its points leaves epoch n or n+1, and the next update completes it.

The script, four slots deep; k is the slot that an update ends::

    k = 0        1        2        3
        a0.......a0.......a0.......a0.......   a0, a1 lie in one sub-index and block: sealed at 2
        x........x.......|                     expires, and its block is past at 2
                 w.......|w                    waits at 1, loaded at 2
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from warehouse.epochs.points import Moment, Point
from warehouse.publishing.difference import database_difference

from .projects import Project, StoppedError, csv, row, stop_at, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

FIRST = csv(row("a0", 0.5, 4.5), row("x", 0.5, 1.5), row("w", 1.5, 3.5), row("gone", 0.2, 0.9), row("bad", 0.5, "?"))
SECOND = csv(
    row("a1", 1.5, 4.5), row("late", 0.5, 3), row("w2", 2.5, 4), row("gone", 0.2, 1.9), row("bad", 9e5, "?"), "short"
)
THIRD = csv(row("a2", 2.5, 4.5), row("late", 0.5, 6))
LAYOUTS = {"norebuild": None, "rebuild": {"technique": "rebuild"}}
STEP_POINTS = (Point.STEP_STARTED, Point.STEP_READY, Point.STEP_COMMITTED)
SECOND_STEPS = ("main", "deferred", "rejected")
BEFORE = (Point.LOCKED, Point.PLANNED, Point.PLAN_WRITTEN)
WRITTEN = (Point.EPOCH_WRITTEN, Point.DATABASE_READY, Point.DATABASE_REPLACED, Point.VACUUMED)
AFTER = (Point.STEPS_DONE, Point.DURABLE, *WRITTEN)
MOMENTS = [
    *((point, -1) for point in BEFORE),
    *((point, step) for step in range(3) for point in STEP_POINTS),
    *((point, -1) for point in AFTER),
]


@pytest.fixture(scope="module", params=LAYOUTS)
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """A project after its first update, with the files of the second waiting."""
    return _begun(str(request.param), tmp_path_factory.mktemp("begun") / "project", spark)


def _begun(layout: str, directory: Path, spark: SparkSession) -> Project:
    project = Project(directory, spark, {"a": stream(layout=LAYOUTS[layout])})
    project.land("1.csv", FIRST)
    project.update(1)
    project.land("2.csv", SECOND)
    return project


@pytest.fixture(scope="module")
def undisturbed(begun: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same project after a second update that nothing stopped."""
    project = begun.copy(tmp_path_factory.mktemp("undisturbed") / "project")
    project.update(2)
    picture = project.picture()
    assert project.keys() == "a0 a1 late w"
    counts = project.counts()
    assert (counts.rows, counts.taken, counts.inserted, counts.late) == (6, 1, 3, 1)
    assert (counts.deferred, counts.dead, counts.rejected, counts.expired, counts.lost) == (1, 1, 2, 1, 0)
    if begun.streams["a"].get("layout") is None:
        assert (counts.sealed, counts.rewritten) == (1, 1)
    else:
        assert (counts.sealed, counts.rewritten) == (0, 1)
    return picture


def _name(moment: tuple[Point, int]) -> str:
    point, step = moment
    return point.replace(" ", "-") + (f"-{SECOND_STEPS[step]}" if step >= 0 else "")


@pytest.mark.parametrize("begun", ["norebuild"], indirect=True)
@pytest.mark.parametrize("moment", MOMENTS, ids=_name)
def test_an_update_stopped_at_a_point_is_completed_by_the_next(
    begun: Project, undisturbed: dict[str, Any], tmp_path: Path, moment: tuple[Point, int]
) -> None:
    """Readers see epoch n or n+1 and nothing in between; the next update makes exactly the planned epoch."""
    point, step = moment
    project = begun.copy(tmp_path / "project")
    before = project.picture()
    with pytest.raises(StoppedError):
        project.update(2, observer=stop_at(point, step))
    written = point in WRITTEN
    assert project.picture() == (undisturbed if written else before)
    report = project.update(2)
    planned = point not in (Point.LOCKED, Point.PLANNED)
    assert [epoch.number for epoch in report.finished] == ([1] if planned and not written else [])
    assert [epoch.number for epoch in report.epochs] == ([] if planned else [1])
    assert project.picture() == undisturbed
    assert database_difference(project.root, project.epoch) is None
    assert project.update(2).epochs == ()


def test_an_update_stopped_again_and_again_makes_what_an_undisturbed_one_makes(
    begun: Project, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """Each attempt stops one point later, by an error or Ctrl-C; the last attempt finds all steps done."""
    project = begun.copy(tmp_path / "project")
    before = project.picture()
    for number, (point, step) in enumerate(MOMENTS):
        error = KeyboardInterrupt if number % 2 else StoppedError
        with pytest.raises(error):
            project.update(2, observer=stop_at(point, step, error))
        written = point in WRITTEN
        assert project.picture() == (undisturbed if written else before), (point, step)
    assert project.update(2).epochs == ()
    assert database_difference(project.root, project.epoch) is None
    project.land("3.csv", THIRD)
    project.update(3)
    assert project.keys() == "a0 a1 a2 late w w2"
    assert project.counts().taken == 1
    assert [record["raw"] for record in project.rejected() if record["epoch"] == 1] == [
        record["raw"] for record in undisturbed["rejected"] if record["epoch"] == 1
    ]


def test_a_first_update_stopped_again_and_again_makes_what_an_undisturbed_one_makes(
    begun: Project, tmp_path: Path, spark: SparkSession
) -> None:
    """Nothing can be read before its epoch is written; tables are created once, also tables created on demand."""
    project = Project(tmp_path / "project", spark, begun.streams)
    project.land("1.csv", FIRST)
    seen = list(_stopped_everywhere(project, lambda: 0 if project.numbers else None))
    steps = [step for point, step in seen if point == Point.STEP_COMMITTED]
    assert steps == [0, 1, 2, 3, 4, 5]
    assert [project.numbers, project.update(1).epochs] == [[0], ()]
    expected = begun.picture(number=0)
    picture = project.picture()
    assert picture == {**expected, "files": picture["files"]}
    assert picture["files"] == [("a", ["1.csv"])]


def _stopped_everywhere(project: Project, epoch: Callable[[], int | None]) -> Iterator[tuple[Point, int]]:
    """Update to slot 1 in a loop, each time stopped at the first new point."""
    seen: list[tuple[Point, int]] = []

    def observe(moment: Moment) -> None:
        if (moment.point, moment.step) not in seen:
            seen.append((moment.point, moment.step))
            raise StoppedError

    while True:
        count = len(seen)
        try:
            project.update(1, observer=observe)
        except StoppedError:
            written = Point.EPOCH_WRITTEN in [point for point, _ in seen]
            assert epoch() == (0 if written else None)
        if len(seen) == count:
            break
        yield seen[-1]
