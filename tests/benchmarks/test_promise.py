"""The expected answers of the benchmark of key summaries agree with the landed rows."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import duckdb
import pytest

from benchmarks.promise import Answered, Query, Summed, Truth
from warehouse.serving.clock import Coverage

if TYPE_CHECKING:
    from pathlib import Path


def test_the_truth_is_that_of_the_landed_rows(tmp_path: Path) -> None:
    """For each kind of query, whatever its condition, also where no row meets it."""
    project = Summed(tmp_path, 400, 0.0)
    project.declare()
    for slot in (1, 2):
        project.land(slot)
    truth, random = Truth(tmp_path / "landing"), Random(1)  # noqa: S311 - a test draws its data
    queries = [*(Query.drawn(random) for _ in range(60)), Query(("count(*)", "sum(w)"), below=0), Query(("median(v)",), below=0)]
    with duckdb.connect() as engine:
        engine.execute(f"CREATE VIEW s AS FROM '{tmp_path}/landing/*.parquet'")
        for query in queries:
            (expected,) = engine.execute(query.text).fetchall()
            assert truth.of(query) == pytest.approx(expected), query.text


class _Answer:
    """An answer of half of the rows."""

    within = Coverage(exact=False, files=2, files_read=1, rows=10, rows_read=5, groups_complete=True)

    def __init__(self, *values: float | None) -> None:
        self.values = values

    def all(self) -> list[tuple[float | None, ...]]:
        """Return its only row."""
        return [self.values]


def test_bounds_are_wrong_or_wide_if_they_are() -> None:
    """The width is held against the unread rows and the column's range; a bound that is open is no narrow one."""
    truth = Truth.__new__(Truth)
    truth.groups = [(500, "a", 10, 1.0)]
    done, query = Answered(), Query(("sum(v)",))
    for low, high in ((2500, 7495), (2500, 7496), (None, 9000), (5001, 6000)):
        done.add(query, truth, _Answer(5000, low, high), 0.5)  # type: ignore[arg-type]
    assert (done.wrong, done.wide, done.sums, done.exact) == (1, 2, 4, 0)
