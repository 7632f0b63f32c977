"""One rule per type, the same in every text format."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import duckdb
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.cli.output.values import converter, csv_field, encode_json, plain, text


def shown(value: object, sql_type: str) -> object:
    """Return a value as it is written."""
    convert = converter(sql_type)
    return value if value is None or convert is None else convert(value)


@pytest.mark.parametrize(
    ("value", "sql_type", "expected"),
    [
        (True, "BOOLEAN", True),
        (7, "INTEGER", 7),
        (-(2**63), "BIGINT", -(2**63)),
        (2**64 - 1, "UBIGINT", 2**64 - 1),
        (2**64, "HUGEINT", "18446744073709551616"),
        (-(2**63) - 1, "HUGEINT", "-9223372036854775809"),
        (5, "HUGEINT", 5),
        (0.1, "DOUBLE", 0.1),
        (1e22, "DOUBLE", 1e22),
        (float("nan"), "DOUBLE", None),
        (float("inf"), "DOUBLE", None),
        (float("-inf"), "FLOAT", None),
        (float("nan"), "FLOAT", None),
        (0.10000000149011612, "FLOAT", 0.1),
        (16777216.0, "FLOAT", 16777216.0),
        (Decimal("1.50"), "DECIMAL(10,2)", "1.50"),
        (Decimal("0E-10"), "DECIMAL(20,10)", "0.0000000000"),
        (Decimal("-12345678901234567890.12"), "DECIMAL(38,2)", "-12345678901234567890.12"),
        (datetime(2013, 1, 1, 10, tzinfo=UTC), "TIMESTAMP WITH TIME ZONE", "2013-01-01T10:00:00Z"),
        (datetime(2013, 1, 1, 10, 0, 0, 5, tzinfo=UTC), "TIMESTAMP WITH TIME ZONE", "2013-01-01T10:00:00.000005Z"),
        (datetime(2013, 1, 1, 10, 0, 0, 500_000), "TIMESTAMP", "2013-01-01T10:00:00.500000Z"),  # noqa: DTZ001 - DuckDB's TIMESTAMP
        (
            datetime(2013, 1, 1, 10, tzinfo=timezone(timedelta(hours=2))),
            "TIMESTAMP WITH TIME ZONE",
            "2013-01-01T08:00:00Z",
        ),
        ("20000-01-01 00:00:00+00", "TIMESTAMP WITH TIME ZONE", "+20000-01-01T00:00:00Z"),
        ("0044-03-15 (BC) 12:00:00", "TIMESTAMP", "-0043-03-15T12:00:00Z"),
        ("0001-03-15 (BC) 12:00:00+00", "TIMESTAMP WITH TIME ZONE", "0000-03-15T12:00:00Z"),
        ("20000-01-01", "DATE", "+20000-01-01"),
        (date(2013, 1, 1), "DATE", "2013-01-01"),
        (time(10, 0, 0, 500_000), "TIME", "10:00:00.500000"),
        (timedelta(days=2, seconds=3), "INTERVAL", "P2DT3S"),
        (b"\xaa\x00", "BLOB", "qgA="),
        (bytearray(b"a"), "BLOB", "YQ=="),
        (UUID(int=1), "UUID", "00000000-0000-0000-0000-000000000001"),
        ("", "VARCHAR", ""),
        ("a\x1b", "VARCHAR", "a\x1b"),
        ([Decimal("1.0"), None, float("nan")], "DECIMAL(2,1)[]", ["1.0", None, None]),
        ({"a": date(2013, 1, 1), "b": [2**70]}, "STRUCT(...)", {"a": "2013-01-01", "b": [str(2**70)]}),
        ({1: b"a", None: 1}, "MAP(INTEGER, BLOB)", {"1": "YQ==", "null": 1}),
        (None, "DECIMAL(10,2)", None),
    ],
)
def test_a_value_is_written_by_the_rule_of_its_type(value: object, sql_type: str, expected: object) -> None:
    """Timestamps, decimals, big integers, NaN, binary and nested values follow DESIGN 8."""
    result = shown(value, sql_type)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("timestamptz '2013-01-01 10:00:00.25+00'", "2013-01-01T10:00:00.250000Z"),
        ("timestamp '2013-01-01 10:00:00'", "2013-01-01T10:00:00Z"),
        ("timestamp_s '2013-01-01 10:00:00'", "2013-01-01T10:00:00Z"),
        ("timestamptz '20000-01-01 00:00:00+00'", "+20000-01-01T00:00:00Z"),
        ("timestamptz '0044-01-01 (BC) 00:00:00+00'", "-0043-01-01T00:00:00Z"),
        ("date '2013-01-01'", "2013-01-01"),
        ("0.1::float", 0.1),
        ("'nan'::float", None),
        ("1::hugeint << 100", str(1 << 100)),
        ("sum(1)", 1),
        ("1.50::decimal(10,2)", "1.50"),
        ("'\\xAA'::blob", "qg=="),
        ("{'a': 1.5::decimal(3,1), 'b': ['\\xAA'::blob]}", {"a": "1.5", "b": ["qg=="]}),
        ("map {1: 'nan'::double}", {"1": None}),
        ("'a'::enum('a', 'b')", "a"),
    ],
)
def test_what_duckdb_returns_is_written_by_the_rules(expression: str, expected: object) -> None:
    """The rules meet the values and type names that DuckDB really hands over."""
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    result = connection.execute(f"select {expression}")
    sql_type = str(result.description[0][1])
    assert shown(result.fetchall()[0][0], sql_type) == expected


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, ""),
        ("", '""'),
        ("a", "a"),
        (" a ", " a "),
        ('a"b', '"a""b"'),
        ("a,b", '"a,b"'),
        ("a\nb", '"a\nb"'),
        ("a\rb", '"a\rb"'),
        (True, "true"),
        (False, "false"),
        (1.0, "1.0"),
        (7, "7"),
        ([1, None], '"[1,null]"'),
        ({"a": "x"}, '"{""a"":""x""}"'),
    ],
)
def test_a_csv_field_follows_rfc_4180(value: object, field: str) -> None:
    """Null is empty, the empty string is quoted, quotes are doubled."""
    assert csv_field(value) == field


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=4))
def test_csv_reads_back(values: list[str]) -> None:
    """What is written as CSV reads back as the same strings."""
    line = ",".join(map(csv_field, values)) + "\r\n"
    assert next(csv.reader(io.StringIO(line, newline=""))) == values


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.decimals() | st.dates(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=8,
    ),
)
def test_any_value_becomes_json(value: object) -> None:
    """A plain value is JSON that reads back equal."""
    result = plain(value)
    try:
        data = encode_json(result)
    except UnicodeEncodeError:
        return  # a lone surrogate is no text of a database
    assert msgspec.json.decode(data) == result


def test_text_of_a_float_reads_back() -> None:
    """Text of a number is the shortest that reads back."""
    assert text(0.1) == "0.1"
