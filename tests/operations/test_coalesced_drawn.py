"""Coalesced tables over drawn points: at every epoch they equal the model, whatever stopped the updates."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from warehouse.epochs.points import Point
from warehouse.steps import coalesced_source
from warehouse.storage.writer import encoded_runs

from .drawn_coalesced import DrawnPoints, Way, declare, in_parquet
from .projects import Project

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment
    from warehouse.storage.driver_writer import EncodedRuns

POINTS = (Point.STEP_STARTED, Point.STAGED, Point.STEP_READY, Point.STEP_COMMITTED)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_stopped_updates_are_those_of_the_model(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """By the driver and Spark, over one slot or several, with late points; stopped updates continue as if undisturbed."""
    drawn = DrawnPoints(declare(Project(tmp_path, spark)), random.Random(seed))  # noqa: S311 - points of a test
    for number in range(5):
        stopped = (drawn.draw.choice(POINTS), drawn.draw.random()) if number else None
        way: Way = "spark" if number == 2 else "arrays" if number > 2 else "driver"
        drawn.update(drawn.draw.choice([1, 1, 2, 5]), way=way, stopped=stopped)
        drawn.require_equal()


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_rows_made_while_points_are_written_are_those_of_the_model(
    seed: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped update makes them again, and so does one whose landing file changes meanwhile: its points come with the next."""
    project = declare(Project(tmp_path, spark), "parquet")
    project.coalesced = {"by_value": project.coalesced["by_value"]}
    project.declare()
    made: list[EncodedRuns] = []
    monkeypatch.setattr(coalesced_source, "encoded_runs", lambda *arguments: made.append(encoded_runs(*arguments)) or made[-1])
    drawn = DrawnPoints(project, random.Random(seed))  # noqa: S311 - points of a test
    drawn.update(2)
    drawn.update(drawn.draw.choice([1, 2]), way="arrays", stopped=(drawn.draw.choice(POINTS), drawn.draw.random()))
    drawn.require_equal()
    late = ("q", 3, drawn.now - 0.3, drawn.now + 9)
    path = project.land("late.parquet", in_parquet([late]))
    staged: list[Moment] = []

    def changed(moment: Moment) -> None:
        if moment.point is Point.STAGED and not staged:
            os.utime(path, (1, 1))
        staged.extend([moment] if moment.point is Point.STAGED else [])

    drawn.update(1, way="arrays", observer=changed)
    assert len(staged) > len(project.coalesced) + 1, "the stream's rows were not written again"
    assert made
    drawn.require_equal()
    drawn.waiting.append(late)
    drawn.update(1, way="arrays")
    drawn.require_equal()
