"""What the benchmark of coalesced tables draws, and the query that it compares them with."""

from __future__ import annotations

from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

from benchmarks.coalesced import Drawn
from benchmarks.source.coalescing import islands_query
from tests.coalescing.model import Model


def drawn(cp: float) -> pa.Table:
    """Points of three slots, drawn in two calls."""
    points = Drawn(groups=40, cp=cp, seed=1)
    return pa.concat_tables([points.points(2, 1000, span=2), points.points(3, 500)])


@pytest.mark.parametrize(("cp", "low", "high"), [(0.0, 0, 0), (0.9, 0.87, 0.93), (1.0, 1, 1)])
def test_a_value_repeats_the_one_before_it_as_often_as_asked(cp: float, low: float, high: float) -> None:
    """Also over the border of two calls."""
    rows = drawn(cp).sort_by([("g", "ascending"), ("seen", "ascending")]).to_pylist()
    pairs = [(row["v"], next_row["v"]) for row, next_row in pairwise(rows) if row["g"] == next_row["g"]]
    assert low <= sum(value == next_value for value, next_value in pairs) / len(pairs) <= high


def test_the_query_over_points_gives_the_rows_of_the_model() -> None:
    """Gaps-and-islands, as somebody writes it by hand."""
    table = drawn(0.7)
    points = table.set_column(1, "ts", table["seen"].cast(pa.int64()))
    model = Model()
    model.arrive([(row["g"], row["ts"], row["v"]) for row in points.to_pylist()], 0)
    with duckdb.connect() as connection:
        connection.register("points", points)
        rows = connection.sql(islands_query("points")).fetchall()
    assert sorted(rows) == sorted(run[:4] for run in model.table())
