from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.catalog.expression import expression_faults
from warehouse.catalog.types import parse_type

if TYPE_CHECKING:
    from warehouse.catalog.spelling import FaultError

COLUMNS = {
    "departed_at": parse_type("timestamp"),
    "landed_at": parse_type("timestamp"),
    "ttl": parse_type("int"),
    "name": parse_type("string"),
    "day": parse_type("date"),
    "order": parse_type("bigint"),
    "parts": parse_type("array<struct<until:timestamp,n:int>>"),
    "lease": parse_type("struct<starts:timestamp,ends:timestamp>"),
}


def faults(text: str, *, ts: bool = True) -> list[FaultError]:
    """Return the faults of an expression over the columns above."""
    return list(expression_faults(text, COLUMNS, allows_ts=ts))


@pytest.mark.parametrize(
    "text",
    [
        "landed_at",
        "LANDED_AT",
        "`landed_at`",
        "lease.ends",
        "timestampadd(SECOND, ttl, ts)",
        "ts + INTERVAL 1 HOUR",
        "ts + INTERVAL '1 2:03:04' DAY TO SECOND",
        "ts + ttl * INTERVAL '1' SECOND",
        "ts + make_interval(0, 0, 0, 0, 0, 0, ttl)",
        "least(landed_at, TS + INTERVAL 1 DAY)",
        "coalesce(landed_at, departed_at)",
        "if(ttl IS NULL, NULL, dateadd(SECOND, ttl, ts))",
        "CASE WHEN (ttl > 0) AND (name LIKE 'a%') THEN landed_at ELSE ts END",
        "CASE WHEN name LIKE ANY ('a%', 'b%') THEN landed_at END",
        "CASE WHEN name IN ('a', 'b') THEN landed_at END",
        "timestamp_seconds(CAST(`order` AS DECIMAL(10, 2)))",
        "to_timestamp(name, 'yyyy-MM-dd HH:mm')",
        "try_to_timestamp(name)",
        "name::timestamp",
        "date_trunc('HOUR', landed_at)",
        "TIMESTAMP '2013-01-01 00:00:00'",
        "element_at(transform(parts, p -> p.until), 1)",
        "parts[0].until",
        "aggregate(parts, ts, (latest, p) -> greatest(latest, p.until))",
        "timestampadd(SECOND, extract(HOUR FROM landed_at), ts)",
        "to_timestamp(trim(BOTH ' ' FROM name))",
        "timestamp_seconds(unix_timestamp(landed_at) + 60)",
        "'rand() is only text' || name",
    ],
)
def test_row_wise_expressions(text: str) -> None:
    """What depends on the row alone is accepted, in any spelling of Spark SQL."""
    assert [str(fault) for fault in faults(text)] == []


@pytest.mark.parametrize(
    ("text", "found", "allowed", "nearest"),
    [
        ("now()", "now(), whose result depends on", "deterministic", None),
        ("current_timestamp", "current_timestamp, whose result", "`current_timestamp`", None),
        ("current_timestamp()", "current_timestamp(), whose result", "deterministic", None),
        ("localtimestamp", "localtimestamp, whose result", "deterministic", None),
        ("CAST(current_date AS TIMESTAMP)", "current_date, whose result", "deterministic", None),
        ("date_add(current_date(), 1)", "current_date(), whose", "deterministic", None),
        ("TIMESTAMP 'now'", "the literal 'now'", "deterministic", None),
        (
            "timestamp_seconds(unix_timestamp())",
            "unix_timestamp(), which reads the clock",
            "unix_timestamp(column)",
            None,
        ),
        ("timestampadd(SECOND, RAND() * 10, ts)", "rand(), whose result", "deterministic", None),
        ("uuid()", "uuid(), whose", "deterministic", None),
        ("random(1)", "random(), whose", "deterministic", None),
        ("to_timestamp(input_file_name())", "input_file_name(), whose", "deterministic", None),
        ("timestamp_seconds(monotonically_increasing_id())", "monotonically_increasing_id()", "deterministic", None),
        ("if(current_user() = 'x', ts, ts)", "current_user(), whose", "deterministic", None),
        ("max(landed_at)", "max(), an aggregate", "row-wise", None),
        ("any(name)", "any(), an aggregate", "row-wise", None),
        ("max(landed_at) OVER (PARTITION BY name)", "max(), an aggregate", "row-wise", None),
        ("lag(landed_at) OVER (ORDER BY ts)", "lag(), which looks at other rows", "row-wise", None),
        ("explode(parts)", "explode(), which makes several rows", "row-wise", None),
        ("(SELECT max_time FROM t)", "a sub-query", "row-wise", None),
        ("CASE WHEN name IN (SELECT n FROM t) THEN ts END", "a sub-query", "row-wise", None),
        ("landed", 'the unknown column "landed"', "departed_at, landed_at", "landed_at"),
        ("t.landed_at", 'the unknown column "t"', "declared columns", "ts"),
        ("lease.end", 'the unknown field "lease.end"', "starts, ends", "ends"),
        ("ttl.x", 'the unknown field "ttl.x"', "ttl is int and has no fields", None),
        ("timestampad(SECOND, ttl, ts)", "the unknown function timestampad()", "Spark SQL's functions", "timestampadd"),
        ("x.f(ts)", "the function .f()", "without a qualifier", None),
        ("landed_at -- until then", '"landed_at -- until then" with an SQL comment', "no comment", None),
        ("landed_at +", '"landed_at +", which does not parse', "Spark SQL", None),
        ("", '""', "one expression", None),
        ("ts, landed_at", '"ts, landed_at"', "one expression", None),
        ("ts AS x", '"ts AS x"', "one expression", None),
        ("ts FROM t", '"ts FROM t"', "one expression", None),
        ("ts; DROP TABLE t", '"ts; DROP TABLE t"', "one expression", None),
        ("*", '"*"', "one expression", None),
        ("name", 'the column "name" of type string', "to_timestamp(name)", None),
        ("day", 'the column "day" of type date', "CAST(day AS TIMESTAMP)", None),
        ("`order`", 'the column "order" of type bigint', "timestamp_millis(order)", None),
        ("lease", 'the column "lease" of type struct', "gives a timestamp", None),
    ],
)
def test_faults(text: str, found: str, allowed: str, nearest: str | None) -> None:
    """An expression that is not row-wise, deterministic and of declared columns is reported with the reason."""
    (fault,) = [fault for fault in faults(text) if fault.found.startswith(found)]
    assert allowed in fault.allowed
    assert fault.suggestion == nearest


def test_ts_is_what_arrival_gives() -> None:
    """`arrival` cannot use ts; `expires` can."""
    assert faults("ts") == []
    (fault,) = faults("ts", ts=False)
    assert "exists in `expires` only" in fault.allowed


def test_several_faults_of_one_expression() -> None:
    """All faults of an expression are reported."""
    assert len(faults("coalesce(landed, now(), max(ts), expld(parts))")) == 4


def test_a_column_whose_type_is_at_fault() -> None:
    """A column of unknown type can be named without a second complaint."""
    assert list(expression_faults("x", {"x": None}, allows_ts=False)) == []
    assert list(expression_faults("x.y", {"x": None}, allows_ts=False)) == []
