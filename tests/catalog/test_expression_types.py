"""Types of expressions without Spark: a sure fault is an error, and nothing that Spark accepts is refused."""

from __future__ import annotations

import pytest

from tests.catalog.test_expression import COLUMNS
from warehouse.catalog.expression import expression_faults
from warehouse.catalog.types import parse_type

SCOPE = {**COLUMNS, "TTLs": parse_type("array<double>"), "d": parse_type("double"), "flag": parse_type("boolean")}


def told(text: str, gives: str = "timestamp", what: str = "declared columns") -> list[str]:
    """Return the faults of an expression as text."""
    return [
        str(fault) for fault in expression_faults(text, SCOPE, allows_ts=True, result_type=parse_type(gives), description=what)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ts + TTLs", ["calculates with an array", "array_min"]),
        ("ts + ttl", ["adds a number to a timestamp", "timestampadd(SECOND"]),
        ("ttl + ts", ["adds a number to a timestamp"]),
        ("landed_at + d / 2", ["adds a number"]),
        ("ts + departed_at", ["adds a timestamp to a timestamp"]),
        ("coalesce(ts + flag, landed_at)", ["adds a boolean"]),
        ("timestampadd(SECOND, TTLs, ts)", ["adds an array to a time"]),
        ("ttl * TTLs", ["calculates with an array"]),
        ("ttl + 1", ["gives a number", "timestamp_seconds"]),
        ("ttl > 3", ["gives a boolean"]),
        ("upper(name)", ["gives a string", "to_timestamp"]),
        ("'2024-01-01'", ["gives a string"]),
        ("CAST(name AS DATE)", ["gives a date", "AS TIMESTAMP"]),
        ("split(name, ',')", ["gives an array"]),
    ],
)
def test_what_is_surely_wrong(text: str, words: list[str]) -> None:
    """Each is one fault, in the words of the expression, with a replacement."""
    faults = told(text)
    assert len(faults) == 1, faults
    assert all(word in faults[0] for word in words), faults


@pytest.mark.parametrize(
    "text",
    [
        "ts + (landed_at - departed_at)",
        "ts + make_dt_interval(0, 0, 0, ttl)",
        "ts + 2 * (landed_at - departed_at)",
        "coalesce(landed_at, '9999-12-31')",
        "if(flag, landed_at, '9999-12-31')",
        "timestampadd(MICROSECOND, CAST(array_min(TTLs) * 1000000 AS bigint), ts)",
        "timestampadd(SECOND, name, ts)",
        "from_utc_timestamp(to_timestamp(name), 'Europe/Berlin')",
        "aggregate(TTLs, ts, (t, x) -> t + make_dt_interval(0, 0, 0, x))",
        "element_at(map('a', landed_at), name)",
        "NULL",
    ],
)
def test_what_spark_may_take(text: str) -> None:
    """Intervals, branches that Spark converts, functions that are not understood here: Spark has the last word."""
    assert told(text) == []


def test_columns_of_their_own_type() -> None:
    """An ``expr`` gives the family of the declared type; only Spark knows the exact number type."""
    source = "source columns"
    assert told("d / 2", "int", source) == []
    assert told("array_min(TTLs)", "double", source) == []
    assert told("split(name, ',')", "array<string>", source) == []
    (fault,) = told("upper(name)", "int", source)
    assert fault == '"UPPER(name)", which gives a string; allowed: an expression that gives int'


def test_an_expression_of_thousands_of_parts_takes_no_time() -> None:
    """It is left to Spark."""
    assert told("timestampadd(SECOND, " + " + ".join(["ttl"] * 3_000) + ", ts)") == []
