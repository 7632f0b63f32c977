"""What a view under a budget delivers in tables: all of it without a bound, and most for the work when guided."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.source.promising_tables import delivered
from benchmarks.source.promising_units import drawn_batches, units_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_without_a_bound_everything_is_made(tmp_path: Path, spark: SparkSession) -> None:
    """All results, for the work of all units that have results."""
    outcome = delivered(tmp_path / "all", spark, 0, 100.0, guided=True, batches=2)
    units = [unit for now in range(2) for unit in units_of(drawn_batches(0)[:2], now)]
    assert outcome.results == 1.0
    assert outcome.work == sum(unit.cost for unit in units if unit.pairs) / sum(unit.cost for unit in units)


def test_guided_the_same_results_take_less_work(tmp_path: Path, spark: SparkSession) -> None:
    """Never more than the budget; and the units of most results need fewer looks for as many of them."""
    guided, free = (delivered(tmp_path / str(guided), spark, 0, 0.3, guided=guided, batches=2) for guided in (True, False))
    for outcome in (guided, free):
        assert 0 < outcome.results <= 0.31, "0.3, rounded to whole results"
    assert guided.work < free.work
