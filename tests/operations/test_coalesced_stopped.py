"""Coalesced tables and verbs that stop at a moment: once finished, each equals an undisturbed verb.

Closed rows lie in cells of their own; a file waits for the next update.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.checking.check import check
from warehouse.limits import limited
from warehouse.operations.migrate import MigrationRequest

from .drawn_coalesced import DrawnPoints, declare
from .projects import Project, StoppedError, csv, stream, text
from .test_coalesced import begun, in_cells, table  # noqa: F401 - a fixture
from .test_shed import verify

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment, Observer

    Verb = Callable[[Project, Observer], Any]

VERBS: dict[str, Verb] = {
    "erase": lambda project, observer: project.updater(observer).erase("a", ["p"]),
    "migrate": lambda project, observer: project.updater(observer).migrate(None, MigrationRequest()),
    "restate": lambda project, observer: project.updater(observer).restate("a", since="first"),
    "rollback": lambda project, observer: project.updater(observer).rollback(1),
    "update": lambda project, observer: project.update(5, observer=observer),
}


class Moments:
    """Counts moments, and stops at one of them."""

    def __init__(self, stop: int = 0) -> None:
        self.stop, self.seen = stop, 0

    def __call__(self, _: Moment) -> None:
        """See a moment."""
        self.seen += 1
        if self.seen == self.stop:
            raise StoppedError


def left(project: Project) -> list[object]:
    """Return the rows and stamps of the tables, and the rows after the next update."""
    names = sorted(project.coalesced)
    stored = [name for name in names if project.epoch.table(name) is not None]
    content: list[object] = [table(project, name) for name in names]
    content += [sorted(repr((row["k"], row["_stamps"])) for row in project.live(name)) for name in stored]
    assert list(check(project.root).findings) == []
    project.update(5)
    assert list(check(project.root).findings) == []
    return [*content, *(table(project, name) for name in names)]


def test_a_drawn_moment_of_a_migration(begun: Project, tmp_path: Path) -> None:  # noqa: F811 - the fixture
    """A repair finishes it, or it is done again."""
    stopped_at_each(VERBS["migrate"], about_to("migrate", begun), tmp_path, most=1)


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
def test_every_moment(verb: str, begun: Project, tmp_path: Path) -> None:  # noqa: F811 - the fixture
    """The moments of each verb."""
    stopped_at_each(VERBS[verb], about_to(verb, begun), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("how", ["eager", "lazy"])
def test_every_moment_of_a_switch(how: str, spark: SparkSession, tmp_path: Path) -> None:
    """The table becomes stored, or lazy."""
    lives = {"columns": {"k": "string", "v": "int", "b": "timestamp"}, "expires": "ts + INTERVAL 9 HOURS", "max_lifetime": "9h"}
    own = {"from": "a", "group_by": "k", "values": "v", "window": "4h", "how": "lazy" if how == "eager" else "eager"}
    project = Project(tmp_path / "first", spark, {"a": stream(**lives)}, coalesced={"c": own})
    for hour in (1, 3, 5):
        lines = [f"{key},{value},{text(hour - late)}" for key, value, late in (("p", 1, 0.5), ("p", hour, 0.2), ("q", 2, 1.5))]
        project.land(f"{hour}.csv", csv(*lines, header="k,v,b"))
        if hour < 5:
            project.update(hour)

    def switched(directory: Path) -> Project:
        copy = project.copy(directory)
        copy.coalesced["c"]["how"] = how
        copy.declare()
        return copy

    stopped_at_each(lambda project, observer: project.updater(observer).migrate("c", MigrationRequest()), switched, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("verb", ["erase", "restate", "rollback"])
def test_drawn_moments_with_ledgers(verb: str, spark: SparkSession, tmp_path: Path) -> None:
    """Tables with a budget follow, and their ledgers account for all rows of the tables without a budget."""
    drawn = DrawnPoints(declare(Project(tmp_path / "first", spark)), random.Random(7))  # noqa: S311 - points of a test
    for slots in (1, 2, 1):
        drawn.update(slots)
    drawn.now += 1
    drawn.land()

    def shed(project: Project) -> list[object]:
        verify(project)
        return left(project)

    stopped_at_each(VERBS[verb], drawn.project.copy, tmp_path, most=3, found=shed)


def about_to(verb: str, begun: Project) -> Callable[[Path], Project]:  # noqa: F811 - the fixture
    """Return a function that copies the project into a directory, for a verb to run there."""
    assert in_cells(begun, "by_value")

    def copied(directory: Path) -> Project:
        project = begun.copy(directory)
        if verb == "migrate":
            project.warehouse["update_interval"] = "30m"
            project.declare()
        return project

    return copied


def stopped_at_each(
    verb: Verb,
    copied: Callable[[Path], Project],
    directory: Path,
    most: int | None = None,
    found: Callable[[Project], list[object]] = left,
) -> None:
    """Stop the verb at so many of its moments, each time in another copy; ``found`` says what is there when it is finished."""
    with limited(driver_rows=0, apart_rows=0):
        counted, project = Moments(), copied(directory / "undisturbed")
        verb(project, counted)
        undisturbed = found(project)
        numbers = range(1, counted.seen + 1)
        drawn = random.Random(counted.seen).sample(numbers, most or len(numbers))  # noqa: S311 - moments of a test
        for number in sorted(drawn):
            project = copied(directory / str(number))
            before = project.epoch.number
            with pytest.raises(StoppedError):
                verb(project, Moments(number))
            project.updater().repair()
            if verb is VERBS["erase"] or project.epoch.number == before:
                verb(project, Moments())
            assert found(project) == undisturbed, number
