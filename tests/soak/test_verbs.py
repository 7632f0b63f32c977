"""All verbs in any order, as `python -m tests.soak.verbs` does them by the hundred."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .verbs import Walk

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

STEPS = 12


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_whatever_the_order_of_verbs_the_rows_are_those_of_the_model(tmp_path: Path, spark: SparkSession, seed: int) -> None:
    """With stops, outsiders' commits, copies and backups in between; at every readable epoch."""
    walk = Walk(tmp_path, spark, seed)
    for _ in range(STEPS):
        walk.step()
    assert walk.done.total() >= STEPS
