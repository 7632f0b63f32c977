"""Coalesced tables over drawn points: at every epoch those of the model, whatever stopped the updates."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from warehouse.epochs.points import Point

from .drawn_coalesced import DrawnPoints, Way, declare
from .projects import Project

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

POINTS = (Point.STEP_STARTED, Point.STAGED, Point.STEP_READY, Point.STEP_COMMITTED)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 12))])
def test_stopped_updates_are_those_of_the_model(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """By the driver and by Spark, of one slot or several, with late points; stopped at a step, they go on as if never stopped."""
    drawn = DrawnPoints(declare(Project(tmp_path, spark)), random.Random(seed))  # noqa: S311 - points of a test
    for number in range(5):
        stopped = (drawn.draw.choice(POINTS), drawn.draw.random()) if number else None
        way: Way = "spark" if number == 2 else "arrays" if number > 2 else "driver"
        drawn.update(drawn.draw.choice([1, 1, 2, 5]), way=way, stopped=stopped)
        drawn.require_equal()
