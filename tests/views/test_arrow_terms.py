"""What Arrow computes of rows in the driver is what DuckDB computes of them."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from tests.views.test_driver_sql import _ALIKE, _lines, _rows
from warehouse.layout import keyed_layout
from warehouse.storage.arrow_keys import equal_rows
from warehouse.views.language.driver_types import LeftToSparkError
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
    """Values at the edges of each type, and nulls; DuckDB computes the terms that Arrow does not."""
    by_arrow = 0
    for sql in [*_ALIKE, *_MORE]:
        try:
            terms = DriverRows.of(_rows()).selectExpr("row", f"{sql} AS value")
            duckdb_rows = replace(terms, computed=None).toArrow()
        except LeftToSparkError:
            continue
        by_arrow_rows = terms.toArrow()
        by_arrow += terms.computed is not None
        assert by_arrow_rows.schema == duckdb_rows.schema, sql
        assert _lines(by_arrow_rows.sort_by("row")) == _lines(duckdb_rows.sort_by("row")), sql
        if by_arrow_rows.schema.field("value").type == pa.bool_():
            rows = DriverRows.of(_rows()).where(sql)
            assert sorted(rows.toArrow()["row"].to_pylist()) == sorted(replace(rows, computed=None).toArrow()["row"].to_pylist())
    assert by_arrow >= len(_MORE)
    assert all(DriverRows.of(_rows()).selectExpr(f"{sql} AS value").computed for sql in _MORE)


def test_digits_in_texts_and_names_are_no_instants() -> None:
    """Digits in a text or a name stay as they are; the same digits stand for an instant elsewhere."""
    rows = pa.table(
        {"s": ["12345678901234L", "8999999999999990000L", None], "12345678901234L": [8_999_999_999_999_990_000, 2, 3]}
    )
    expected = {
        "s = '12345678901234L'": [0],
        "s = '12345678901234L' OR `12345678901234L` < 12345678901234L": [0, 1, 2],
        "s = '8999999999999990000L'": [1],
        "`12345678901234L` = 8999999999999990000L": [0],
        "`12345678901234L` > 12345678901234L AND s <> 'it''s 12345678901234L'": [0],
    }
    for condition, positions in expected.items():
        filtered = DriverRows.of(rows).where(condition)
        assert filtered.toArrow() == rows.take(positions), condition
        assert replace(filtered, computed=None).toArrow() == rows.take(positions), condition
    terms = DriverRows.of(rows).selectExpr("'12345678901234L' AS text", "s AS `98765432109876L`", "12345678901234L AS number")
    assert terms.toArrow().to_pylist()[0] == {
        "text": "12345678901234L", "98765432109876L": "12345678901234L", "number": 12_345_678_901_234,
    }  # fmt: skip


def test_drawn_conditions_hold_of_the_rows_that_duckdb_finds() -> None:
    """Nested conditions over columns of several chunks, some without rows."""
    drawn = random.Random(6)  # noqa: S311 - no secret
    rows, by_arrow = _in_chunks(_rows(), drawn), 0
    for _ in range(40):
        condition = _drawn_condition(drawn, 3)
        filtered = DriverRows.of(rows).where(condition).selectExpr("row", f"{condition} AS held", "s AS text")
        by_arrow += filtered.computed is not None
        duckdb_rows = replace(filtered, computed=None).toArrow()
        assert _lines(filtered.toArrow().sort_by("row")) == _lines(duckdb_rows.sort_by("row")), condition
        terms = DriverRows.of(rows).selectExpr("row", f"{condition} AS held")
        assert _lines(terms.toArrow().sort_by("row")) == _lines(replace(terms, computed=None).toArrow().sort_by("row")), condition
    assert by_arrow == 40


def _in_chunks(rows: pa.Table, drawn: random.Random) -> pa.Table:
    """Return the rows with columns in different chunks, some of them empty."""
    columns = []
    for column in rows.columns:
        whole, ends = column.combine_chunks(), sorted(drawn.choices(range(len(column) + 1), k=4))
        starts = [0, *ends]
        columns.append(
            pa.chunked_array([whole[start:end] for start, end in zip(starts, [*ends, len(column)], strict=True)], whole.type)
        )
    return pa.table(columns, rows.column_names)


def _drawn_condition(drawn: random.Random, depth: int) -> str:
    kind = drawn.choice([
        ["s", "o", "'a'", "''", "'a '", "'12345678901234L'"],
        ["t", "i", "l", "0", "-1", "5L", str(2**63 - 1) + "L", f"{_NOW}L", "unix_micros(b)", "CAST(i AS BIGINT)"],
        ["b", f"timestamp_micros({_NOW}L)", "timestamp_micros(-1L)"],
    ])  # fmt: skip
    first, second, third = drawn.choices(kind, k=3)
    below = [_drawn_condition(drawn, depth - 1) if depth else drawn.choice(["p", "q", "true", "x IS NULL"]) for _ in range(2)]
    return drawn.choice([
        f"{first} {drawn.choice(['=', '<>', '<', '<=', '>', '>='])} {second}", f"{first} NOT IN ({second}, {third})",
        f"{first} BETWEEN {second} AND {third}", f"{first} IS NOT NULL", f"({first} = {second}) IS NULL",
        f"({below[0]} AND {below[1]})", f"({below[0]} OR {below[1]})", f"(NOT ({below[0]}))",
    ])  # fmt: skip


@pytest.mark.parametrize("columns", [["s"], ["i"], ["y"], ["b"], ["p"], ["d"], ["s", "i"], ["p", "q", "b"], ["x"], ["s", "x"]])
def test_rows_of_keys_and_distinct_keys_are_those_of_duckdb(columns: Sequence[str]) -> None:
    """Nulls equal nulls; DuckDB compares floats."""
    rows = pa.concat_tables([_rows(), _rows().slice(1, 4)])
    keys = DriverRows.of(_rows().slice(2, 4).select([*dict.fromkeys(columns)]))
    for joined in (semi_joined, anti_joined):
        result = joined(DriverRows.of(rows).selectExpr("row", *columns), keys, columns)
        assert (result.computed is None) == ("x" in columns)
        duckdb_rows = replace(result, computed=None).toArrow()
        assert sorted(map(repr, _lines(result.toArrow()))) == sorted(map(repr, _lines(duckdb_rows)))
    if "x" not in columns:
        values = DriverRows.of(rows).unionByName(DriverRows.of(_rows())).grouped(columns, [])
        assert sorted(map(repr, _lines(values.toArrow()))) == sorted(map(repr, _lines(replace(values, computed=None).toArrow())))


def test_pairs_of_equal_rows_are_those_of_two_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pairs come in bounded parts, with and without nulls that equal each other."""
    monkeypatch.setattr("warehouse.storage.arrow_keys._AT_ONCE", 7)
    drawn = np.random.default_rng(4)
    tables = [
        pa.table({"a": pa.array([[None, "x", "y"][number] for number in drawn.integers(0, 3, count)], pa.string()),
                  "b": pa.array(drawn.integers(0, 2, count), pa.int32())})
        for count in (20, 15, 0)
    ]  # fmt: skip
    for left, right in ((0, 1), (0, 2), (2, 1)):
        left_rows, right_rows = (list(zip(*tables[which].to_pydict().values(), strict=True)) for which in (left, right))
        for nulls in (False, True):
            equal = equal_rows(tables[left].columns, tables[right].columns, nulls=nulls)
            pairs = [
                pair
                for left_positions, right_positions in equal.parts()
                for pair in zip(left_positions.tolist(), right_positions.tolist(), strict=True)
            ]
            expected = [
                (row, position) for row, left_row in enumerate(left_rows) for position, right_row in enumerate(right_rows)
                if left_row == right_row and (nulls or None not in left_row)
            ]  # fmt: skip
            assert sorted(pairs) == expected
            assert equal.pairs == len(expected)


@pytest.mark.parametrize("state", [[], ["n"]])
def test_rows_before_and_now_are_matched_as_duckdb_matches_them(monkeypatch: pytest.MonkeyPatch, state: list[str]) -> None:
    """Equal rows are matched in the order of their times; with columns of state DuckDB orders equal rows."""
    drawn = np.random.default_rng(8)

    def rows(count: int, keys: int) -> pa.Table:
        picked = drawn.permutation(keys)[:count] if state else drawn.integers(0, keys, count)
        return pa.table(
            {
                "k": pa.array([None if number == 0 else f"k{number}" for number in picked]),
                "n": pa.array([None if number == 1 else number for number in drawn.integers(0, 3, count).tolist()], pa.int64()),
                "_ts": pa.array(drawn.integers(0, 5, count), pa.int64()).cast(_TIMES),
                "_exp": pa.array(drawn.integers(9, 11, count), pa.int64()).cast(_TIMES),
                "_load_slot": pa.array(drawn.integers(0, 3, count), pa.int64()),
                "sub_index": pa.array([int(number) % 4 + 1 for number in picked], pa.int32()),
            }
        )

    stored, answer = rows(40, 60), rows(50, 60)
    columns = ["k"] if state else ["k", "n"]
    layout = keyed_layout(9)
    matched = driver_buckets.matched_rows(stored, answer, columns, state, ["k"], layout)
    monkeypatch.setattr(driver_buckets, "_matched_by_arrow", lambda *_: None)
    duckdb_rows = driver_buckets.matched_rows(stored, answer, columns, state, ["k"], layout)
    assert sorted(map(str, matched.to_pylist())) == sorted(map(str, duckdb_rows.select(matched.column_names).to_pylist()))
    assert [column.type.value_type.num_fields for column in matched.select(["_was", "_came"]).schema] == [3, 3]
