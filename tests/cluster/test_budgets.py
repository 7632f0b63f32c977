"""A view under a budget on a cluster: executors count its units and make its pairs, and `complete` makes the rest."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from benchmarks.event_log import tasks
from tests.operations.budgets import SQL, bag, ledger, require_sound
from tests.operations.projects import Project, csv, stream, text
from warehouse.checking.check import check
from warehouse.limits import limited

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

PAIRS = 1_000
COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp"}


def landed(project: Project, hour: int, rows: int) -> None:
    """Let rows of both streams arrive in an hour; half of them end within an hour."""
    drawn = random.Random(hour)  # noqa: S311 - test data
    for name, column, share in (("a", "x", 1), ("c", "y", 3)):
        lines = []
        for number in range(rows // share):
            begins = hour - 0.01 - 0.9 * drawn.random()
            key = int(200 * drawn.random() ** 3)
            lines.append(f"k{key:03d},{text(begins)},{text(begins + drawn.choice([1, 8]))},{number % 7}")
        project.land(f"{hour}.csv", csv(*lines, header=f"k,b,e,{column}"), landing=f"landing/{name}")


def test_on_time_and_completed_are_the_whole_answer(on_cluster: SparkSession, place: Path, events: Path) -> None:
    """Each update makes its budget, rows end while they are owed, and completing leaves the view equal to its query."""
    streams = {
        "a": stream(columns={**COLUMNS, "x": "int"}),
        "c": stream(columns={**COLUMNS, "y": "int"}, landing="landing/c"),
    }
    budget = {"pairs": PAIRS, "prefer": "desc"}
    views = {"exact": {"sql": SQL, "search_key": "k"}, "some": {"sql": SQL, "search_key": "k", "budget": budget}}
    project = Project(place / "owing", on_cluster, streams, warehouse={"root": "data"}, views=views)
    before = len(tasks(events))
    with limited(driver_rows=0):  # however few, the executors read and write them
        for hour in (1, 2):
            landed(project, hour, 600)
            project.update(hour)
            require_sound(project)
            assert ledger(project).made == PAIRS
        completed = project.updater().complete("some")
    assert completed.made > 0
    assert ledger(project).complete
    assert bag(project, "some") == bag(project, "exact")
    assert len({task.executor for task in tasks(events)[before:]}) > 1
    assert check(project.root).findings == ()
