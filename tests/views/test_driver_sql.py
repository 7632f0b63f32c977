"""What the driver computes itself of few rows is what Spark computes; the rest is left to Spark."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from warehouse.storage.arrow_types import frame_of
from warehouse.views.language.driver_types import LeftToSparkError
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.keys import grouped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_INSTANT = pa.timestamp("us", tz="UTC")
_COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "t": (pa.int8(), [0, 1, -1, 127, -128, None, 7]),
    "i": (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31), None, 7]),
    "l": (pa.int64(), [0, 3, -1, 2**63 - 1, -(2**63), None, 2**53 + 1]),
    "x": (pa.float64(), [0.0, -0.0, float("nan"), float("inf"), 5e-324, None, 0.1]),
    "f": (pa.float32(), [0.0, -0.0, float("nan"), float("-inf"), 0.5, None, 3.0]),
    "s": (pa.string(), ["", "a", "A b", "ß", "it's\n\\", None, "\U0001f600z"]),
    "o": (pa.string(), ["a", "a", "a ", "ss", "", "b", "\uffff"]),
    "d": (pa.decimal128(9, 2), [Decimal(text) if text else None for text in ("0", "1.5", "-1.5", "9999999.99", "", "", "7")]),
    "p": (pa.bool_(), [True, False, None, True, False, None, True]),
    "q": (pa.bool_(), [None, False, None, False, True, True, True]),
    "y": (pa.date32(), [date(1970, 1, 1), date(1, 1, 1), date(1582, 10, 5), date(2024, 2, 29), None, date.max, date(1900, 3, 1)]),
    "b": (
        _INSTANT,
        [
            datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
            datetime(1582, 10, 10, 1, 2, 3, tzinfo=UTC), datetime(2024, 2, 29, 12, 30, 15, 1, tzinfo=UTC), None,
            datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), datetime(1900, 3, 1, tzinfo=UTC),
        ],
    ),
    "z": (pa.binary(), [b"", b"\x00", b"\xff", b"a", None, b"ab", b"\x7f"]),
}  # fmt: skip
_ALIKE = [
    *[pair.format(sign) for sign in ("+", "-", "*", "/", "%") for pair in ("t {} t", "t {} i", "i {} l", "l {} i")],
    *[pair.format(sign) for sign in ("+", "-", "*", "/") for pair in ("x {} x", "x {} i", "l {} x", "x {} 1.5")],
    *[
        pair.format(sign)
        for sign in ("=", "<>", "<", "<=", ">", ">=", "<=>")
        for pair in ("i {} l", "x {} x", "x {} l", "f {} f", "s {} o", "d {} d", "d {} i", "y {} y", "z {} z")
    ],
    "-i", "-l", "-x", "- 5", "abs(l)", "abs(x)", "i * 2 + 1L", "x > 0.1", "d >= 1.5", "i < 0.5", "-2147483647 - i",
    "p AND q", "p OR q", "NOT p", "p IS TRUE", "q IS NOT FALSE", "s IS NULL", "x IS NOT NULL", "p = q", "true OR p",
    "i BETWEEN -1 AND 7", "s IN ('a', 'it''s')", "i NOT IN (1, 2L)", "s BETWEEN '' AND 'a'", "s NOT BETWEEN 'a' AND 'b'",
    "CASE WHEN i > 0 THEN 'more' WHEN i = 0 THEN NULL ELSE 'less' END", "CASE i WHEN 1 THEN t ELSE l END",
    "CASE WHEN p THEN d END", "i + 1 > 5", "i - 1 < 5", "2 - l >= 5L", "-i > 3", "(i * 2) = 4", "i + 1 IN (5, 8)", "-l <=> 5L",
    "if(p, i, l)", "coalesce(t, i, 3)", "coalesce(s, o)", "greatest(i, l)", "least(t, i, NULL)", "greatest(s, o)", "least(b, b)",
    "least(y, y)", "greatest(d, d)", "CAST(i AS bigint)", "CAST(l AS double)", "CAST(l AS string)", "CAST(NULL AS decimal(9,2))",
    "-d", "CAST(l AS decimal(38,0))", "CAST(t AS decimal(5,2))", "CAST(d AS decimal(38,2))", "CAST(d AS decimal(8,2))",
    "CAST(CAST(l AS decimal(38,0)) AS bigint)", "CAST(CAST(l AS decimal(38,0)) AS double)",
    "coalesce(CASE WHEN i > 0 THEN CAST(l AS decimal(38,0)) ELSE -CAST(l AS decimal(38,0)) END, 0)",
    "coalesce(CAST(d AS decimal(38,2)), i)",
    "s LIKE 'a%'", "s LIKE '%s'", "s LIKE '%b%'", "s NOT LIKE 'a'", "s LIKE '%'", "s LIKE ''", "s LIKE '%%'",
    "upper(s)", "lower(s)", "length(s)", "concat(s, o, '-')", "s || o", "concat(s)", "upper(concat(o, 'x'))",
    *[f"date_trunc('{unit}', b)" for unit in ("year", "MONTH", "day", "hour", "minute", "second")],
    "unix_micros(b)", "timestamp_micros(unix_micros(b) + 1L)", "l % 10", "i / 0", "x / 0", "1.50", "0.5", "12L", "'a' = s",
]  # fmt: skip
_REFUSED = [
    "CAST(x AS int)", "CAST(x AS string)", "CAST(s AS int)", "CAST(d AS double)", "CAST(l AS decimal(18,0))", "round(x)",
    "s LIKE 'a_%'", "s LIKE o", "s LIKE 'a%b'", "CAST(d AS decimal(9,1))", "CAST(d AS bigint)", "coalesce(d, i)",
    "i = s", "s = 1",
    "x % 2", "d + d", "d * 2", "f + 1", "x > d", "greatest(x, x)", "s = 'a\\n'", "'1' + 1", "b > '2024'",
    "CAST('2024-01-01' AS date)",
    "-2147483648", "i DIV 2", "substring(s, 1, 2)", "b + INTERVAL 1 DAY", "if(p, i, s)", "NULL", "missing", "i & 1", "!i",
    "coalesce(i, x)", "date_trunc('week', b)", "1e3", "CASE WHEN i THEN 1 END", "concat(s, i)", "abs(d)", "sum(i)",
]  # fmt: skip


def _rows() -> pa.Table:
    columns = {name: pa.array(values, kind) for name, (kind, values) in _COLUMNS.items()}
    return pa.table({"row": pa.array(range(len(next(iter(columns.values())))), pa.int32()), **columns})


def _bits(scalar: pa.Scalar) -> object:
    if pa.types.is_timestamp(scalar.type):  # Python's end with the year 9999
        return scalar.value
    value = scalar.as_py()
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else struct.pack("d", value)
    return value


def _in_driver(row: pa.Table, sql: str) -> pa.ChunkedArray | None:
    try:
        return DriverRows.of(row).selectExpr(f"{sql} AS value").toArrow()["value"]
    except LeftToSparkError:
        return None


def test_what_the_driver_computes_spark_computes_too(spark: SparkSession) -> None:
    """Driver and Spark compute the same value of the same type at the edges of each type; else the driver leaves it to Spark."""
    rows = _rows()
    single = [rows.slice(position, 1) for position in range(rows.num_rows)]
    computed = {sql: [_in_driver(row, sql) for row in single] for sql in _ALIKE}
    chosen = []
    for n, (sql, values) in enumerate(computed.items()):
        computed_rows = ", ".join(str(position) for position, value in enumerate(values) if value is not None)
        chosen += [f"CASE WHEN row IN ({computed_rows}) THEN {sql} END AS e{n}"] if computed_rows else []
    never = [sql for sql, values in computed.items() if all(value is None for value in values)]
    assert never == ["i / 0", "x / 0"]
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    spark_rows = frame_of(session, rows).selectExpr("row", *chosen).toArrow().sort_by("row")
    for n, (sql, values) in enumerate(computed.items()):
        for position, value in enumerate(values):
            if value is not None:
                spark_values = spark_rows[f"e{n}"]
                assert value.type == spark_values.type, sql
                assert _bits(value[0]) == _bits(spark_values[position]), (sql, position)


@pytest.mark.parametrize("sql", _REFUSED)
def test_what_is_not_known_to_be_alike_is_left_to_spark(sql: str) -> None:
    """Casts that round, functions nobody has compared, types that Spark would make alike."""
    with pytest.raises(LeftToSparkError):
        DriverRows.of(_rows()).selectExpr(f"{sql} AS value")


def test_groups_in_the_driver_are_those_of_spark(spark: SparkSession) -> None:
    """Keys have nulls and all types but floats and nested types; aggregates do not depend on the order of rows."""
    rows = pa.concat_tables([_rows(), _rows().slice(2, 3)])
    values = [("count(*)", "n"), ("coalesce(sum(t), 0)", "total"), ("count(s)", "texts")]
    values += [("sum(d)", "decimals"), ("avg(i)", "mean")]
    values += [(f"{word}({name})", f"{word}_{name}") for word in ("min", "max") for name in "tilsdpybz"]
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for keys in (["s"], ["p", "q"], ["i"], ["d", "y"], ["b", "z"], []):
        in_driver, by_spark = (grouped(table, keys, values).toArrow() for table in (DriverRows.of(rows), frame_of(session, rows)))
        assert in_driver.schema.types == by_spark.schema.types
        assert sorted(map(repr, _lines(in_driver))) == sorted(map(repr, _lines(by_spark)))
    for name, sql in (("x", "count(*)"), ("i", "max(x)"), ("i", "sum(x)"), ("i", "count(DISTINCT t)"), ("i", "avg(x)")):
        with pytest.raises(LeftToSparkError):
            DriverRows.of(rows).grouped([name], [(sql, "value")])


def _lines(rows: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*([_bits(value) for value in column] for column in rows.columns), strict=True))


def test_rows_in_the_driver_are_joined_united_and_filtered_as_frames_are() -> None:
    """A column of a nested type is passed on as it is; columns of one name, or of two types under one name, are Spark's."""
    rows = pa.table({"k": ["a", "b"], "n": pa.array([{"v": 1}, None])})
    own = DriverRows.of(rows)
    other = DriverRows.of(pa.table({"K": ["c"], "N": pa.array([{"v": 2}])}))
    assert own.unionByName(other).where("`k` <> 'b'").toArrow().sort_by("k").to_pylist() == [
        {"k": "a", "n": {"v": 1}}, {"k": "c", "n": {"v": 2}},
    ]  # fmt: skip
    right = DriverRows.of(pa.table({"r": ["b"], "m": [1]}))
    assert own.selectExpr("`k`").join(right, "`k` = `r`", "left").toArrow().sort_by("k").to_pylist() == [
        {"k": "a", "r": None, "m": None}, {"k": "b", "r": "b", "m": 1},
    ]  # fmt: skip
    for fails in (
        lambda: own.unionByName(right),
        lambda: own.join(other, "true", "inner"),
        lambda: own.selectExpr("`k`", "`n` AS K"),
        lambda: own.selectExpr("`n`.v + 1 AS w"),
        lambda: own.where("`k`"),
    ):
        with pytest.raises(LeftToSparkError):
            fails()
