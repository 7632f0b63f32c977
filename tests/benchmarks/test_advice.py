"""The benchmark of advice: its workloads, that it goes on where it was stopped, and one tiny run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks import workloads
from benchmarks.advice import compared, main, measure
from benchmarks.workloads import KINDS, Generated, generated
from warehouse.serving.read_log import VARIABLE
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TINY = Generated(number=0, periods=2, batch=600, kind="uniform", row_bytes=80, keys=2000, probes=10, seed=1)


def test_workloads_are_drawn_from_the_seed() -> None:
    """Equal seeds give equal workloads, of every kind, with few and with many probes."""
    loads = generated(10, seed=5)
    assert loads == generated(10, seed=5) != generated(10, seed=6)
    assert {load.kind for load in loads} == set(KINDS)
    assert len({load.probes for load in loads}) == 3
    assert {load.periods for load in generated(20, seed=5, longest=8)} == {8}


@pytest.mark.parametrize(
    ("kind", "shortest", "longest", "mean"),
    [("uniform", 0, 36, 18), ("short", 0, 9, 4.5), ("exponential", 0, 36, 6), ("equal", 34.2, 36, 35.1), ("bimodal", 0, 36, 8.3)],
)
def test_rows_live_as_their_kind_says(kind: str, shortest: float, longest: float, mean: float) -> None:
    """Bounds hold for every row, and the mean is about what it should be."""
    load = Generated(0, 36, 5000, kind, 80, 2000, 0, 7)
    rows = workloads._rows(load, 50)
    lives = (rows["until"].cast("int64").to_numpy() - rows["at"].cast("int64").to_numpy()) / HOUR
    assert shortest <= lives.min()
    assert lives.max() <= longest
    assert lives.mean() == pytest.approx(mean, rel=0.1)
    assert rows.equals(workloads._rows(load, 50))


def test_finished_workloads_are_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All are there, so no Spark is started; the table tells how many recommendations are good."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    cost = {"update": 1.0, "probe": 0.0, "files": 1}
    for load, ratio in zip(generated(2, seed=3), (1.05, 1.2), strict=True):
        result = {
            "workload": vars(load),
            "recommended": "one",
            "best": "other",
            "ratio": ratio,
            "costs": [{**cost, "layout": "one", "interval": ratio}, {**cost, "layout": "other", "interval": 1.0}],
            "work": [((1.0, 1.0, 100.0, 1.0, 4.0, 0.0, 0.0, 100.0, 700.0), 0.5)] * 3,
            "probed": [((1.0, 0.0, 5.0, 0.0, 1.0, 3.0), 0.01)] * 3,
        }
        (tmp_path / f"3-{load.number:02d}.json").write_text(json.dumps(result))
    options = ["--work", str(tmp_path), "--count", "2", "--seed", "3", "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(main, options, catch_exceptions=False)
    assert done.exit_code == 0
    assert "1 of 2 recommendations within 10% of the best measured layout." in done.output
    (saved,) = (tmp_path / "results").glob("*.json")
    prices = json.loads(saved.read_text())["prices"]
    assert (prices["update"]["samples"], prices["probe"]["samples"]) == (6, 6)


def test_a_tiny_workload_is_measured_from_end_to_end(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recommended layout is among the measured layouts, and each has measured and predicted figures."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "reads"))
    layouts_beside = compared(2)[-1:]
    result = measure(TINY, layouts_beside, tmp_path / "scratch", spark, "1g", lambda _: None)
    layouts = [cost["layout"] for cost in result["costs"]]
    assert result["recommended"] in layouts
    assert result["best"] in layouts
    assert result["ratio"] >= 1
    assert len(layouts) in (1, 2)
    assert all(cost["update"] >= cost["step"] > 0 and cost["predicted_interval"] > 0 for cost in result["costs"])
    assert len(result["work"]) == 2 * (len(layouts) + 1)
    assert json.loads(json.dumps(result))
