"""Projects that run a script once; the tests of a module read the results, epoch by epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .script import Run, run_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def run(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return the script's warehouse and its model, after the last update."""
    return run_script(tmp_path_factory.mktemp("layouts"), spark)
