"""What Spark's event log tells of an application: which executor ran what, and for how long."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Task", "event_log_settings", "tasks"]


@dataclass(frozen=True)
class Task:
    """One finished attempt: its executor, its stage, seconds that it ran, rows that it wrote to files."""

    executor: str
    stage: int
    seconds: float
    written: int
    succeeded: bool


def event_log_settings(directory: Path) -> dict[str, str]:
    """Return the settings of a session that writes its log into an existing directory."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": directory.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


def tasks(directory: Path) -> list[Task]:
    """Return the tasks of all applications whose logs are in a directory."""
    return [task for file in sorted(directory.iterdir()) if file.is_file() for task in _tasks(file)]


def _tasks(file: Path) -> Iterator[Task]:
    for line in file.read_text().split("\n"):
        if '"SparkListenerTaskEnd"' not in line:
            continue
        event = json.loads(line)
        metrics = event.get("Task Metrics") or {}
        yield Task(
            event["Task Info"]["Executor ID"],
            event["Stage ID"],
            metrics.get("Executor Run Time", 0) / 1000,
            metrics.get("Output Metrics", {}).get("Records Written", 0),
            event["Task End Reason"]["Reason"] == "Success",
        )
