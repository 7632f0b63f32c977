"""Distinct values and percentiles from sketches, beside the exact values of the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.checking.check import check

from .projects import Project, csv, stream, text

if TYPE_CHECKING:

    from pyspark.sql import SparkSession

SELECT = {
    "n": "count(*)", "kinds": "count(DISTINCT host)", "amounts": "count(DISTINCT v)", "middle": "median(v)",
    "p99": "percentile(v, 0.99)",
}  # fmt: skip
ERROR = 0.02
ROWS = 6_000


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Three updates: two with many rows, and one with a group without a value."""
    columns = {"k": "string", "host": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
    common = {"from": "a", "group_by": ["k"], "select": SELECT, "windows": ["1h", "2h"], "keep": "8h"}
    aggregates = {"exact": common, "estimated": {**common, "error": ERROR}}
    directory = tmp_path_factory.mktemp("estimates")
    made = Project(directory, spark, {"a": stream(columns=columns)}, aggregates=aggregates)
    for hour in (1, 2):
        lines = (
            f"{'ab'[i % 2]},{'' if i % 50 == 0 else f'h{i * hour}'},{i * i % 9_973},{text(hour - 0.5)},{text(hour + 1)}"
            for i in range(ROWS)
        )
        made.land(f"{hour}.csv", csv(*lines, header="k,host,v,b,e"))
        made.update(hour)
    made.land("3.csv", csv(f"c,,,{text(2.5)},{text(4)}", header="k,host,v,b,e"))
    made.update(3)
    return made


def test_bounds_hold_and_are_close(project: Project) -> None:
    """For each group and window; exact values are the same."""
    exact = {(row["k"], row["window_length"], row["window_end"]): row for row in project.stored("exact")}
    estimates = {(row["k"], row["window_length"], row["window_end"]): row for row in project.stored("estimated")}
    assert estimates.keys() == exact.keys()
    for key, row in estimates.items():
        assert (row["n"], row["full"]) == (exact[key]["n"], exact[key]["full"])
        for name in ("kinds", "amounts", "middle", "p99"):
            if exact[key][name] is None:
                assert (row[name], row[name + "_low"], row[name + "_high"]) == (None, None, None)
                continue
            assert row[name + "_low"] <= exact[key][name] <= row[name + "_high"], (key, name)
            assert row[name + "_low"] <= row[name] <= row[name + "_high"], (key, name)
        if row["n"] > 1:
            assert row["kinds_high"] - row["kinds_low"] <= 2.1 * ERROR * row["kinds"] + 2
            assert row["middle_high"] - row["middle_low"] < 3 * ERROR * 9_973
    assert {key[0] for key in estimates} == {"a", "b", "c"}


def test_synopses_hold_a_sketch_for_each_slot_and_group(project: Project) -> None:
    """And no row for each value, as exact synopses do; check finds nothing."""
    rows = {
        state.name: len(project.stored(state.name))
        for state in project.epoch.tables
        if state.synopsis is not None and state.synopsis.synopsis.counted is None
    }
    assert sum(rows.values()) <= 2 * 5
    assert list(check(project.root).findings) == []
