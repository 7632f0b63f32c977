"""Aggregates of every kind against brute force, while updates skip slots, rows come late, and verbs go back and load again."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.operations.migration import MigrationRequest
from warehouse.time import HOUR, to_micros

from .drawn_aggregates import WINDOWS, Drawn, declare, require_equal, require_sound
from .projects import Project, at

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STOPS = (Point.STEP_READY, Point.STEP_COMMITTED)


def test_a_catch_up_over_more_slots_than_rows_live(tmp_path: Path, spark: SparkSession) -> None:
    """Answers include rows of all passed slots, also late rows and rows that are dead on arrival."""
    drawn = Drawn(declare(Project(tmp_path, spark)), random.Random(1))  # noqa: S311 - rows of a test
    drawn.update(1)
    drawn.update(12)
    require_equal(drawn)
    drawn.update(14)
    require_equal(drawn)
    assert list(check(drawn.project.root).findings) == []


@pytest.mark.parametrize("part", [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(6)])
def test_a_stop_at_each_step_leaves_every_answer_once(part: int, tmp_path: Path, spark: SparkSession) -> None:
    """Before and after the commit of a stream, synopses and answers; the next update finishes the stopped one."""
    drawn = Drawn(declare(Project(tmp_path, spark)), random.Random(part))  # noqa: S311 - rows of a test
    drawn.update(1)
    for number in range(3):
        drawn.killed(drawn.draw.randrange(1, 6), STOPS[(part + number) % 2], (part + 6 * number) / 18)
        require_equal(drawn)
    assert list(check(drawn.project.root).findings) == []


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(8)])
def test_every_kind_equals_brute_force(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """After updates, catch-ups in one go and slot by slot, rollbacks and restatements in a drawn order."""
    draw = random.Random(seed)  # noqa: S311 - rows of a test
    drawn = Drawn(declare(Project(tmp_path, spark)), draw)
    drawn.update(draw.randrange(1, 3))
    ways = ["one", "gap", "each", "back", "again", "gap"]
    draw.shuffle(ways)
    for way in ways:
        match way:
            case "one":
                drawn.update(1)
            case "gap":
                drawn.update(draw.randrange(4, 11))
            case "each":
                drawn.update(draw.randrange(2, 4), each=True)
            case "back" if len(drawn.loaded) > 1:
                drawn.back()
            case "again":
                drawn.again()
            case _:
                continue
        require_equal(drawn)
    drawn.update(2)
    require_equal(drawn)
    assert list(check(drawn.project.root).findings) == []


def test_a_coarser_grid_of_times_keeps_what_synopses_know(tmp_path: Path, spark: SparkSession) -> None:
    """Later answers count all earlier rows, complete windows are full, and lists of slots that merge stay separate."""
    windows = {"2h": (2, 2), "4h": (4, 2), "12h": (12, 4)}
    project = Project(tmp_path, spark)
    project.views = {"busy": {"search_key": "k", "sql": "SELECT k, window_end, n FROM arrived WHERE window_length = '2h'"}}
    declare(project, windows, without=("arrived_spark", "living"))
    drawn = Drawn(project, random.Random(11), windows=windows)  # noqa: S311 - rows of a test
    for slots in (1, 6, 5):
        drawn.update(slots)
    assert list(check(project.root).findings) == []
    before = {table: project.stored(table) for table in project.aggregates}
    project.warehouse["update_interval"] = "2h"
    project.declare()
    project.updater().migrate(None, MigrationRequest())
    drawn.note(frozenset(drawn.files))
    assert {table: len(rows) for table, rows in before.items()} == {table: len(project.stored(table)) for table in before}
    assert list(check(project.root).findings) == []
    for slots in (2, 10):
        drawn.update(slots)
        require_equal(drawn)
    answers = [row for row in project.stored("arrived") if row["window_length"] == "2h"]
    shown = [sorted((row["k"], row["window_end"], row["n"]) for row in rows) for rows in (answers, project.live("busy"))]
    assert shown[0] == shown[1]
    last = [row for row in project.stored("arrived") if to_micros(row["window_end"]) == at(drawn.now)]
    assert {row["full"] for row in last} == {True}
    assert list(check(project.root).findings) == []
    other_grids(drawn)


def other_grids(drawn: Drawn) -> None:
    """Change the grid from 2 to 3 hours, and back to 1: windows that reach back are not full, live rows are known at once."""
    project = drawn.project
    drawn.windows = {**drawn.windows, "6h": (6, 3)}
    project.aggregates = {name: {**keys, "windows": ["6h"], "every": "3h"} for name, keys in project.aggregates.items()}
    for interval, moves in (("3h", (9,)), ("1h", (3, 6))):
        project.warehouse["update_interval"] = interval
        project.declare()
        project.updater().migrate(None, MigrationRequest())
        begun, number = drawn.now, project.epoch.number
        drawn.note(frozenset(drawn.files))
        assert list(check(project.root).findings) == []
        for slots in moves:
            drawn.update(slots)
            assert require_sound(drawn) > 20
        for table in project.aggregates:
            new = [row for row in project.stored(table) if row["epoch"] > number]
            full = {(to_micros(row["window_end"]) - at(begun)) // HOUR: row["full"] for row in new}
            assert full == {3: "living" in table, 6: True, 9: True}, table
        assert list(check(project.root).findings) == []


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(3)])
def test_what_is_said_to_be_full_is(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """Also late answers for which there was no time, and windows that are declared later, shorter, and longer again."""
    draw = random.Random(seed)  # noqa: S311 - rows of a test
    longer = {**WINDOWS, "14h": (14, 2)}
    project = Project(tmp_path, spark)
    without = ("arrived_spark", "often")
    drawn = Drawn(declare(project, without=without), draw, windows=longer)
    drawn.update(2)
    project.warehouse["aggregate_time"] = "1us"
    project.declare()
    drawn.update(draw.randrange(3, 7))
    declare(project, longer, without=without)
    drawn.update(draw.randrange(2, 5))
    drawn.back()
    del project.warehouse["aggregate_time"]
    declare(project, longer if draw.random() < 1 / 2 else WINDOWS, without=without)
    drawn.update(draw.randrange(1, 6))
    declare(project)
    drawn.update(draw.randrange(1, 3))
    assert {state.synopsis.slots for state in project.epoch.tables if state.synopsis} == {9}
    declare(project, longer)
    drawn.update(draw.randrange(5, 9))
    assert require_sound(drawn) > 20
    assert list(check(project.root).findings) == []
