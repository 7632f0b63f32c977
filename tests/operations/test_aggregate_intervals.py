"""Estimates of long windows from intervals of several slots, beside brute force, through every verb that moves a synopsis.

Of so few values the sketches are exact, so each answer is that of a query.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.aggregates import intervals
from warehouse.aggregates.synopses import LEVEL
from warehouse.checking.check import check
from warehouse.cli.aggregate_explanation import aggregate_report
from warehouse.epochs.points import Point
from warehouse.ingest.batch import placed_batch
from warehouse.operations.migration import MigrationRequest
from warehouse.planning import aggregate_plans
from warehouse.serving.aggregate_explanation import explained_aggregate
from warehouse.steps import synopsis_source

from .drawn_aggregates import VALUES, Drawn, declare, require_equal, require_sound
from .projects import Project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pytest
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.ingest.batch import Batch

LONG = {"2h": (2, 2), "6h": (6, 2), "24h": (24, 2)}
SHORT = {"2h": (2, 2), "6h": (6, 2)}


def estimating(project: Project, windows: Mapping[str, tuple[int, int]]) -> Project:
    """Declare one aggregate with an error."""
    declare(project, windows)
    project.aggregates = {"arrived": {**project.aggregates["arrived"], "select": VALUES, "error": 0.02}}
    project.declare()
    return project


def kept(project: Project) -> tuple[int, set[int | None]]:
    """Return the level of the longest intervals of the synopsis with sketches, and the levels of its rows."""
    (state,) = (table for table in project.epoch.tables if table.synopsis is not None)
    assert state.synopsis is not None
    assert (state.synopsis.merged is None) == (state.synopsis.synopsis.levels == 0)
    return state.synopsis.synopsis.levels, {row.get(LEVEL) for row in project.stored(state.name)}


def told(project: Project) -> str:
    """Return the text of `explain`."""
    explanation = explained_aggregate(project.updater().catalog, "arrived", project.epoch)
    assert explanation is not None
    return "\n".join(aggregate_report(explanation).lines)


def test_long_windows_of_estimates_are_made_of_intervals(tmp_path: Path, spark: SparkSession) -> None:
    """After catch-ups, late rows, a kill, a rollback and a restatement; a short window needs none, a long one gets them again."""
    draw = random.Random(5)  # noqa: S311 - rows of a test
    drawn = Drawn(estimating(Project(tmp_path, spark), LONG), draw, windows=LONG)
    project = drawn.project
    drawn.update(1)
    drawn.update(12)
    drawn.update(3, each=True)
    require_equal(drawn)
    assert kept(project) == (4, {0, 1, 2, 3, 4})
    assert "also merged for up to 16 update intervals" in told(project)
    assert "24h, every 2h: reads 24 update intervals, in 4 parts where longer ones are kept" in told(project)
    drawn.killed(6, Point.STEP_COMMITTED, 0.6)
    drawn.back()
    drawn.update(5)
    drawn.again()
    drawn.update(7)
    require_equal(drawn)
    assert list(check(project.root).findings) == []
    estimating(project, SHORT)
    drawn.update(2)
    assert kept(project) == (0, {None})
    estimating(project, LONG)
    drawn.update(2)
    assert kept(project)[0] == 4
    assert {1, 2, 3} <= kept(project)[1]
    drawn.update(3)
    assert require_sound(drawn) > 30
    number = project.epoch.number - 1
    last = [row for row in project.stored("arrived") if row["epoch"] >= number]
    full = {length: {row["full"] for row in last if row["window_length"] == length} for length in LONG}
    assert full == {"2h": {True}, "6h": {True}, "24h": {False}}, "what the short windows reached is kept, and no more"
    assert list(check(project.root).findings) == []


def test_intervals_of_a_coarser_grid_are_made_again_and_erased_groups_leave_them(tmp_path: Path, spark: SparkSession) -> None:
    """A migration omits them, the next update makes them on its grid; an erased key is in no interval."""
    draw = random.Random(6)  # noqa: S311 - rows of a test
    drawn = Drawn(estimating(Project(tmp_path, spark), LONG), draw, windows=LONG)
    project = drawn.project
    for slots in (2, 10, 4):
        drawn.update(slots)
    project.warehouse["update_interval"] = "2h"
    project.declare()
    project.updater().migrate(None, MigrationRequest())
    drawn.note(frozenset(drawn.files))
    (state,) = (table for table in project.epoch.tables if table.synopsis is not None)
    assert {row[LEVEL] for row in project.stored(state.name)} == {0}
    for slots in (2, 6):
        drawn.update(slots)
        assert require_sound(drawn) > 5
    assert kept(project) == (3, {0, 1, 2, 3})
    assert list(check(project.root).findings) == []
    project.updater().erase("a", ["b"])
    rows = project.stored(state.name)
    assert {row["k"] for row in rows if row[LEVEL]} == {"a", "c"}
    assert "b" not in {row["k"] for row in [*rows, *project.stored("arrived")]}
    assert list(check(project.root).findings) == []


def test_numbers_of_very_many_groups_have_intervals_too(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By DuckDB and Spark, if the states of a slot exceed a number of bytes; counts of values have no intervals.

    A rollback empties the synopsis that had none, so it is filled again as one that has them.
    """
    draw = random.Random(7)  # noqa: S311 - rows of a test
    project = declare(Project(tmp_path, spark), LONG)
    both = {name: project.aggregates[name] for name in ("arrived", "arrived_spark")}
    project.aggregates = {"arrived_spark": both["arrived_spark"]}
    project.declare()
    drawn = Drawn(project, draw, windows=LONG)
    drawn.update(1)
    project.aggregates = both
    project.declare()
    drawn.update(12)
    monkeypatch.setattr(intervals, "MANY", 1)
    drawn.back()
    for slots in (1, 3):
        drawn.update(slots)
    drawn.again()
    drawn.update(2)
    assert require_sound(drawn) > 10
    synopses = [state.synopsis.synopsis for state in project.epoch.tables if state.synopsis is not None]
    assert {(synopsis.counted is None, synopsis.levels) for synopsis in synopses} == {(True, 4), (False, 0)}
    assert list(check(project.root).findings) == []


def test_a_large_synopsis_is_written_again_outside_the_driver(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By Spark, with the states of slots alone; it gets no longer intervals, and keeps those that it has while it may."""
    draw = random.Random(8)  # noqa: S311 - rows of a test
    drawn = Drawn(estimating(Project(tmp_path, spark), LONG), draw, windows=LONG)
    project = drawn.project
    drawn.update(5)
    monkeypatch.setattr(intervals, "WRITTEN_AGAIN", 0)
    monkeypatch.setattr(aggregate_plans, "longest_levels", lambda *_: 0)
    drawn.update(1)
    assert kept(project)[0] == 4, "what it has is no reason to write it again"
    monkeypatch.undo()
    monkeypatch.setattr(intervals, "WRITTEN_AGAIN", 0)

    def by_spark(rows: DataFrame | pa.Table, opened: Callable[[], SparkSession]) -> Batch:
        assert not isinstance(rows, pa.Table)
        return placed_batch(rows, opened)

    for windows in (SHORT, LONG):
        estimating(project, windows)
        with monkeypatch.context() as context:
            context.setattr(synopsis_source, "placed_batch", by_spark)
            drawn.update(2)
        assert kept(project) == (0, {None})
    assert require_sound(drawn) > 5
    assert list(check(project.root).findings) == []
