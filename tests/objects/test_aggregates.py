"""Aggregates in a store: answers and synopses equal those under a local root."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.operations.drawn_aggregates import Drawn, declare, require_equal
from warehouse.checking.check import check

if TYPE_CHECKING:
    from tests.objects.server import StoreProject

WINDOWS = {"1h": (1, 1), "3h": (3, 2)}


def test_answers_are_those_of_all_rows_that_arrived(project: StoreProject) -> None:
    """By DuckDB and Spark, after a catch-up and late rows, also estimates and lists; each erased key leaves."""
    declare(project, WINDOWS, without=("living", "often"))
    drawn = Drawn(project, random.Random(5), windows=WINDOWS)  # noqa: S311 - rows of a test
    estimated = {**project.aggregates["arrived"], "select": {"kinds": "count(DISTINCT v)"}, "error": 0.1}
    drawn.update(1)
    drawn.update(5)
    require_equal(drawn)
    project.aggregates["estimated"] = estimated
    project.declare()
    drawn.update(1)
    del project.aggregates["estimated"]
    require_equal(drawn)
    exact = {(row["k"], row["window_length"], row["window_end"]): row["kinds"] for row in project.stored("arrived")}
    rows = project.stored("estimated")
    assert rows
    for row in rows:
        assert row["kinds_low"] <= exact[row["k"], row["window_length"], row["window_end"]] <= row["kinds_high"]
    assert list(check(project.root).findings) == []
    project.declare()
    _, receipt = project.updater().erase("a", ["a"])
    assert receipt is not None
    assert "a" not in {row["k"] for row in project.stored("arrived")}
