"""How many modules a row crosses: a developer who follows it should read few."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.way_of_a_row import followed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FEW_MODULES = 10


def test_a_row_crosses_few_modules(tmp_path: Path, spark: SparkSession) -> None:
    """In the steps of its stream and of a join view, fewer than ten, without the modules that read and write all tables."""
    steps = followed(tmp_path, spark)
    crossed = {step: [module for module in modules if "/storage/" not in module] for step, modules in steps.items()}
    assert 0 < len(crossed["append to a"]) < FEW_MODULES, crossed["append to a"]
    assert 0 < len(crossed["append to joined"]) < FEW_MODULES, crossed["append to joined"]
    assert "warehouse/steps/kind.py" not in crossed["append to joined"], "a task has no rows"
