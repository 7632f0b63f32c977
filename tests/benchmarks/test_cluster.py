"""The benchmark of executors: the facts that it reads from Spark's event log, and the table that it prints."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.cluster import _table
from benchmarks.event_log import Task, tasks

if TYPE_CHECKING:
    from pathlib import Path


def test_tasks_are_read_from_the_event_log(tmp_path: Path) -> None:
    """Each finished attempt with its executor; other events, and attempts that were lost without metrics, do no harm."""

    def ended(executor: str, reason: str, metrics: dict[str, object]) -> str:
        return json.dumps({
            "Event": "SparkListenerTaskEnd", "Stage ID": 3, "Task Info": {"Executor ID": executor},
            "Task End Reason": {"Reason": reason}, "Task Metrics": metrics,
        }, separators=(",", ":"))  # fmt: skip

    metrics = {"Executor Run Time": 1500, "Output Metrics": {"Records Written": 7}}
    lines = ['{"Event":"SparkListenerApplicationStart"}', ended("0", "Success", metrics), ended("1", "ExecutorLostFailure", {})]
    (tmp_path / "app-1").write_text("\n".join(lines))
    assert tasks(tmp_path) == [Task("0", 3, 1.5, 7, succeeded=True), Task("1", 3, 0.0, 0, succeeded=False)]


def test_the_table_has_the_median_of_what_was_measured() -> None:
    """Updates that warm up are not counted."""
    moves = [{"whole": seconds, "warm_up": seconds > 5} for seconds in (9.0, 1.0, 2.0, 3.0)]
    results = [{"executors": 2, "build": 12.34, "updates": moves, "task_seconds": {"0": 5.0, "1": 4.0}}]
    assert _table(results).splitlines()[-1] == "| 2 | 12.3 | 2.00 | 5.0, 4.0 |"
