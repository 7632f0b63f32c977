"""Counted costs equal the formulas, to the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.source.exact import GRIDS, Counted, Grid, count, predicted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PERIODS = 12


@pytest.fixture(scope="module")
def counted(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Counted]]:
    """Count two updates of all grids in one warehouse."""
    return count(tmp_path_factory.mktemp("exact"), spark, periods=PERIODS, updates=2)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.label)
def test_counted_costs_equal_the_formulas(counted: dict[str, list[Counted]], grid: Grid) -> None:
    """Sub-indices touched, rows read and rows rewritten are as in section 5 at every update, in every grid."""
    assert counted[grid.label] == [predicted(grid, PERIODS)] * 2


def test_the_formulas_say_different_things() -> None:
    """Rows read run from all live rows down to 7/16 of them."""
    live = PERIODS * PERIODS
    read = {grid.label: predicted(grid, PERIODS).read for grid in GRIDS}
    assert read["Single"] == read["R-ins4"] == read["R-exp4"] == live
    assert read["Rebuild4x4"] == live * 7 // 16
    assert read["Rebuild2x6"] == read["Rebuild6x2"] == live * 7 // 12
