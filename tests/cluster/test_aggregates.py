"""Aggregates of each kind on a cluster: executors compute states, merge sketches and count items; answers equal brute force."""

from __future__ import annotations

import random
import statistics
from typing import TYPE_CHECKING

from benchmarks.event_log import tasks
from tests.operations.drawn_aggregates import WINDOWS, Drawn, declare, in_window, require_equal
from tests.operations.projects import ANCHOR, HOUR, Project
from warehouse.checking.check import check
from warehouse.limits import limited
from warehouse.time import to_micros

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MIDDLE = {"n": "count(*)", "middle": "median(v)", "kinds": "count(DISTINCT v)"}
BOUNDED = {"item": "v", "top": 2, "exact": True}


def test_answers_of_each_kind_are_those_of_brute_force(on_cluster: SparkSession, place: Path, events: Path) -> None:
    """All kinds of aggregates have the values of brute force after a catch-up, late rows and a rollback."""
    project = declare(Project(place / "counted", on_cluster, warehouse={"root": "data"}))
    declaration = {key: project.aggregates["arrived"][key] for key in ("from", "group_by", "windows", "every", "keep")}
    added: dict[str, dict[str, object]] = {
        "exact": {**declaration, "select": MIDDLE},
        "estimated": {**declaration, "select": MIDDLE, "error": 0.02},
        "top": {"from": "a", "over": "live", "frequent": BOUNDED, "windows": ["9h"], "keep": "200h"},
    }
    kinds, drawn = dict(project.aggregates), Drawn(project, random.Random(17))  # noqa: S311 - rows of a test
    project.aggregates = kinds | added
    project.declare()
    before = len(tasks(events))
    with limited(driver_rows=0):  # however few, the executors read and write them
        drawn.update(1)
        drawn.update(5)
        drawn.back()
        drawn.update(2)
    project.aggregates = kinds
    require_equal(drawn)
    require_middle(drawn)
    require_top(drawn)
    assert len({task.executor for task in tasks(events)[before:]}) > 1
    assert check(project.root).findings == ()


def require_middle(drawn: Drawn) -> None:
    """Compare exact values with a query, and the bounds of estimates with exact values."""
    exact = {(row["k"], row["window_length"], row["window_end"]): row for row in drawn.project.stored("exact")}
    estimated = {(row["k"], row["window_length"], row["window_end"]): row for row in drawn.project.stored("estimated")}
    assert exact.keys() == estimated.keys()
    assert len(exact) > 20
    for (key, length, instant), row in exact.items():
        end = (to_micros(instant) - ANCHOR) // HOUR
        rows = [drawn_row for name in drawn.loaded[row["epoch"]] for drawn_row in drawn.files[name] if drawn_row[0] == key]
        values = [drawn_row[1] for drawn_row in in_window(rows, WINDOWS[length][0], end, live=False)]
        assert (row["n"], row["middle"], row["kinds"]) == (len(values), statistics.median(values), len(set(values)))
        other = estimated[key, length, instant]
        for name in ("middle", "kinds"):
            assert other[f"{name}_low"] <= row[name] <= other[f"{name}_high"], (key, length, end, name)


def require_top(drawn: Drawn) -> None:
    """Compare the items that were counted in the stored rows with a query, at the newest end."""
    newest = [row for row in drawn.project.stored("top") if to_micros(row["window_end"]) == ANCHOR + drawn.now * HOUR]
    rows = [row for name in drawn.loaded[drawn.project.epoch.number] for row in drawn.files[name]]
    values = [row[1] for row in in_window(rows, WINDOWS["9h"][0], drawn.now, live=True)]
    least = sorted(map(values.count, set(values)), reverse=True)[:2][-1]
    expected = {value: values.count(value) for value in set(values) if values.count(value) >= least}
    assert newest
    assert all(row["complete"] for row in newest)
    assert {row["item"]: (row["at_least"], row["at_most"]) for row in newest} == {
        value: (count, count) for value, count in expected.items()
    }
