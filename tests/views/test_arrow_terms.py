"""What Arrow computes of rows in the driver is what DuckDB computes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from tests.views.test_driver_sql import _ALIKE, _lines, _rows
from warehouse.layout import keyed_layout
from warehouse.storage.arrow_keys import equal_rows
from warehouse.views.language.driver_sql import LeftToSparkError
from warehouse.views.maintenance import driver_buckets
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.keys import anti_joined, semi_joined

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMES = pa.timestamp("us", "UTC")
_NOW = 1_709_209_815_000_001
_MORE = [
    "b", "s", "x", "p", "1", "-1", "7L", "'a'", "true", "false", f"timestamp_micros({_NOW}L)", f"timestamp_micros(-{_NOW}L)",
    f"unix_micros(b) > {_NOW}L", f"NOT (unix_micros(b) <= {_NOW}L) AND i >= -1", f"unix_micros(b) < {_NOW}L OR l > {2**62}L",
    "b < timestamp_micros(0L)", "p AND i > 0 OR q", "NOT (s > o)", "l IN (3, -1L)", "NOT (l IN (3, -1L))", "b IS NULL",
]  # fmt: skip


def test_expressions_have_the_value_and_type_that_duckdb_gives_them() -> None:
    """Values at the edges of each type and nulls; what Arrow does not compute, DuckDB does."""
    by_arrow = 0
    for sql in [*_ALIKE, *_MORE]:
        try:
            made = DriverRows.of(_rows()).selectExpr("row", f"{sql} AS value")
            theirs = replace(made, computed=None).toArrow()
        except LeftToSparkError:
            continue
        found = made.toArrow()
        by_arrow += made.computed is not None
        assert found.schema == theirs.schema, sql
        assert _lines(found.sort_by("row")) == _lines(theirs.sort_by("row")), sql
        if found.schema.field("value").type == pa.bool_():
            kept = DriverRows.of(_rows()).where(sql)
            assert sorted(kept.toArrow()["row"].to_pylist()) == sorted(replace(kept, computed=None).toArrow()["row"].to_pylist())
    assert by_arrow >= len(_MORE)
    assert all(DriverRows.of(_rows()).selectExpr(f"{sql} AS value").computed for sql in _MORE)


@pytest.mark.parametrize("columns", [["s"], ["i"], ["y"], ["b"], ["p"], ["d"], ["s", "i"], ["p", "q", "b"], ["x"], ["s", "x"]])
def test_rows_of_keys_and_distinct_keys_are_those_of_duckdb(columns: Sequence[str]) -> None:
    """Nulls equal nulls; floats are DuckDB's to compare."""
    rows = pa.concat_tables([_rows(), _rows().slice(1, 4)])
    keys = DriverRows.of(_rows().slice(2, 4).select([*dict.fromkeys(columns)]))
    for joined in (semi_joined, anti_joined):
        found = joined(DriverRows.of(rows).selectExpr("row", *columns), keys, columns)
        assert (found.computed is None) == ("x" in columns)
        theirs = replace(found, computed=None).toArrow()
        assert sorted(map(repr, _lines(found.toArrow()))) == sorted(map(repr, _lines(theirs)))
    if "x" not in columns:
        values = DriverRows.of(rows).unionByName(DriverRows.of(_rows())).grouped(columns, [])
        assert sorted(map(repr, _lines(values.toArrow()))) == sorted(map(repr, _lines(replace(values, computed=None).toArrow())))


def test_pairs_of_equal_rows_are_those_of_two_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bounded number at a time; with and without nulls that equal each other."""
    monkeypatch.setattr("warehouse.storage.arrow_keys._AT_ONCE", 7)
    drawn = np.random.default_rng(4)
    tables = [
        pa.table({"a": pa.array([[None, "x", "y"][place] for place in drawn.integers(0, 3, count)], pa.string()),
                  "b": pa.array(drawn.integers(0, 2, count), pa.int32())})
        for count in (20, 15, 0)
    ]  # fmt: skip
    for left, right in ((0, 1), (0, 2), (2, 1)):
        one, other = (list(zip(*tables[which].to_pydict().values(), strict=True)) for which in (left, right))
        for nulls in (False, True):
            found = equal_rows(tables[left].columns, tables[right].columns, nulls=nulls)
            pairs = [pair for rows, others in found.parts() for pair in zip(rows.tolist(), others.tolist(), strict=True)]
            expected = [
                (row, place) for row, mine in enumerate(one) for place, theirs in enumerate(other)
                if mine == theirs and (nulls or None not in mine)
            ]  # fmt: skip
            assert sorted(pairs) == expected
            assert found.pairs == len(expected)


@pytest.mark.parametrize("state", [[], ["n"]])
def test_rows_before_and_now_are_matched_as_duckdb_matches_them(monkeypatch: pytest.MonkeyPatch, state: list[str]) -> None:
    """Equal rows in order of their times; with columns of state equal rows are DuckDB's to order."""
    drawn = np.random.default_rng(8)

    def rows(count: int, keys: int) -> pa.Table:
        picked = drawn.permutation(keys)[:count] if state else drawn.integers(0, keys, count)
        return pa.table(
            {
                "k": pa.array([None if place == 0 else f"k{place}" for place in picked]),
                "n": pa.array([None if each == 1 else each for each in drawn.integers(0, 3, count).tolist()], pa.int64()),
                "_ts": pa.array(drawn.integers(0, 5, count), pa.int64()).cast(_TIMES),
                "_exp": pa.array(drawn.integers(9, 11, count), pa.int64()).cast(_TIMES),
                "_load_slot": pa.array(drawn.integers(0, 3, count), pa.int64()),
                "sub_index": pa.array([int(place) % 4 + 1 for place in picked], pa.int32()),
            }
        )

    held, answer = rows(40, 60), rows(50, 60)
    columns = ["k"] if state else ["k", "n"]
    layout = keyed_layout(9)
    found = driver_buckets.matched_rows(held, answer, columns, state, ["k"], layout)
    monkeypatch.setattr(driver_buckets, "_matched_by_arrow", lambda *_: None)
    theirs = driver_buckets.matched_rows(held, answer, columns, state, ["k"], layout)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, theirs.select(found.column_names).to_pylist()))
    assert [each.type.value_type.num_fields for each in found.select(["_was", "_came"]).schema] == [3, 3]
