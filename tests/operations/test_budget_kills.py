"""A view under a budget, and views above it; an update or a completion stops at each of its moments in turn.

::

    move 1 is stopped at moment A, move 2 completes it and is stopped at moment B, move 3 completes that and is stopped at C, ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.epochs.points import Point, nobody

from .budgets import bag, declared, land, ledger, require_sound
from .projects import Project, StoppedError, stop_at
from .test_budget import mock_chunk

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment, Observer

CHUNK = 2


class Moved:
    """A project that is completed chunk by chunk, or updated slot by slot."""

    def __init__(self, project: Project, verb: str) -> None:
        self.project, self.verb, self.now = project, verb, 1
        land(project, "1", "p" * 16 + "q", "p" * 12 + "q", 0.5, 4.4)
        project.update(1)

    def move(self, observer: Observer = nobody) -> None:
        """Make a chunk, or an update by a slot with new rows."""
        if self.verb == "complete":
            with mock_chunk(CHUNK):
                self.project.updater(observer).complete("some", out_of_time=lambda: True)
            return
        self.now += 1
        land(self.project, str(self.now), "pq", "pq", self.now - 0.5, self.now + 2)
        self.project.update(self.now, observer=observer)


@pytest.mark.long
@pytest.mark.parametrize("verb", ["complete", "update"])
def test_each_moment(verb: str, tmp_path: Path, spark: SparkSession) -> None:
    """Readers have a part without duplicates, and the next move continues; completed, the view equals its query."""
    moved = Moved(declared(Project(tmp_path, spark), 2), verb)
    seen: list[Moment] = []
    moved.move(seen.append)
    moments = {(moment.point, moment.step) for moment in seen if moment.point != Point.SUMMED_UP}  # only now and then
    assert {point for point, _ in moments} >= {Point.LOCKED, Point.PLAN_WRITTEN, Point.STEP_COMMITTED, Point.EPOCH_WRITTEN}
    assert len({step for point, step in moments if point == Point.STEP_READY}) > 3, "the view, and those above it"
    missed = [moment for moment in sorted(moments, key=str) if not _stopped_at(moved, *moment)]
    most = len(moments) // 4 if verb == "update" else 0  # not every update has the same steps
    assert len(missed) <= most, missed
    moved.move()
    require_sound(moved.project)
    moved.project.updater().complete("some")
    require_sound(moved.project)
    assert bag(moved.project, "some") == bag(moved.project, "exact")


def _stopped_at(moved: Moved, point: Point, step: int) -> bool:
    """Return whether one of three moves reaches a moment, at which it is stopped."""
    for _ in range(3):
        before, stopped = moved.project.epoch.number, False
        try:
            moved.move(stop_at(point, step))
        except StoppedError:
            stopped = True
        require_sound(moved.project)
        assert moved.project.epoch.number - before in (0, 1, 2)
        assert ledger(moved.project).ranges, "there is still something to stop"
        if stopped:
            return True
    return False
