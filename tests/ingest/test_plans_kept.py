"""A process plans the reading and the classification of few rows once for a stream, and the reading of JSON once for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import Project, csv, row, stream, text
from warehouse.storage import prepared, prepared_scans
from warehouse.storage.prepared import PlanCache

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp"}


def json_row(key: str, begins: float, ends: float) -> str:
    """Return a line of JSON."""
    return f'{{"k": "{key}", "b": "{text(begins)}", "e": "{text(ends)}"}}\n'


def test_later_updates_plan_nothing_again(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the second update nor one with late rows; streams that differ in columns share the plan that reads lines."""
    plans, scans = PlanCache[object](), PlanCache[object]()
    monkeypatch.setattr(prepared, "_kept", plans)
    monkeypatch.setattr(prepared_scans, "_kept", scans)
    other = {**COLUMNS, "n": "int"}
    streams = {
        "a": stream(),
        "j": stream(landing="landing/j", format="json", search_key="k", columns=COLUMNS),
        "n": stream(landing="landing/n", format="json", search_key="k", columns=other),
    }
    project = Project(tmp_path, spark, streams)
    made = []
    for hour in (1, 2, 3):
        late = hour - 1.5  # of the slot before, except in the first build
        project.land(f"{hour}.csv", csv(row(f"a{hour}", hour - 0.5, hour + 4), row(f"late{hour}", late, hour + 4)))
        for name in ("j", "n"):
            lines = json_row(f"{name}{hour}", hour - 0.5, hour + 4) + json_row(f"late{hour}", late, hour + 4)
            project.land(f"{hour}.json", lines, landing=f"landing/{name}")
        project.update(hour)
        made.append((len(plans), len(scans)))
        late_rows = {counts.stream: counts.late for counts in project.epoch.counts}
        assert late_rows == dict.fromkeys(streams, 0 if hour == 1 else 1)
    # one plan for each stream; from the second update on, one more collects the rows of all
    assert made == [(3, 2), (4, 2), (4, 2)]
