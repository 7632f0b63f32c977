"""Coalesced tables and verbs that stop at a moment: once finished, each leaves what it would have left undisturbed.

Closed rows lie in cells of their own; a file waits for the next update.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.checking.check import check
from warehouse.limits import limited
from warehouse.operations.migrate import MigrationRequest

from .projects import StoppedError
from .test_coalesced import begun, in_cells, table  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from warehouse.epochs.points import Moment, Observer

    from .projects import Project

    Verb = Callable[[Project, Observer], Any]

VERBS: dict[str, Verb] = {
    "erase": lambda project, observer: project.updater(observer).erase("a", ["p"]),
    "migrate": lambda project, observer: project.updater(observer).migrate(None, MigrationRequest()),
    "restate": lambda project, observer: project.updater(observer).restate("a", since="first"),
    "rollback": lambda project, observer: project.updater(observer).rollback(1),
    "update": lambda project, observer: project.update(5, observer=observer),
}
TABLES = ("by_value", "newest")


class Moments:
    """Counts moments, and stops at one of them."""

    def __init__(self, stop: int = 0) -> None:
        self.stop, self.seen = stop, 0

    def __call__(self, _: Moment) -> None:
        """See a moment."""
        self.seen += 1
        if self.seen == self.stop:
            raise StoppedError


def copied(begun: Project, directory: Path, verb: str) -> Project:  # noqa: F811 - the fixture
    """A project in which a verb is about to run."""
    project = begun.copy(directory)
    assert in_cells(project, "by_value")
    if verb == "migrate":
        project.warehouse["update_interval"] = "30m"
        project.declare()
    return project


def left(project: Project) -> list[object]:
    """The rows and stamps of the tables; then the rows after the next update."""
    found: list[object] = [table(project, name) for name in TABLES]
    found += [sorted(repr((row["k"], row["_stamps"])) for row in project.live(name)) for name in TABLES]
    assert list(check(project.root).findings) == []
    project.update(5)
    assert list(check(project.root).findings) == []
    return [*found, *(table(project, name) for name in TABLES)]


@pytest.mark.parametrize("verb", [verb if verb == "migrate" else pytest.param(verb, marks=pytest.mark.long) for verb in VERBS])
def test_a_drawn_moment(verb: str, begun: Project, tmp_path: Path) -> None:  # noqa: F811 - the fixture
    """The verb is finished by what repairs, or else done again."""
    stopped_at_each(verb, begun, tmp_path, most=1)


@pytest.mark.long
@pytest.mark.parametrize("verb", VERBS)
def test_every_moment(verb: str, begun: Project, tmp_path: Path) -> None:  # noqa: F811 - the fixture
    """The same at all of them."""
    stopped_at_each(verb, begun, tmp_path)


def stopped_at_each(verb: str, begun: Project, directory: Path, most: int | None = None) -> None:  # noqa: F811 - the fixture
    """Stop the verb at so many of its moments, each time in another copy."""
    with limited(driver_rows=0, apart_rows=0):
        counted, project = Moments(), copied(begun, directory / "undisturbed", verb)
        VERBS[verb](project, counted)
        wanted = left(project)
        numbers = range(1, counted.seen + 1)
        drawn = random.Random(verb).sample(numbers, most or len(numbers))  # noqa: S311 - moments of a test
        for number in sorted(drawn):
            project = copied(begun, directory / str(number), verb)
            before = project.epoch.number
            with pytest.raises(StoppedError):
                VERBS[verb](project, Moments(number))
            project.updater().repair()
            if verb == "erase" or project.epoch.number == before:
                VERBS[verb](project, Moments())
            assert left(project) == wanted, number
