"""A name means what it means to Spark: whatever other columns, fields, variables and inputs are called."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pytest

from warehouse.catalog.model import Column, View
from warehouse.errors import ConfigurationError
from warehouse.time import DAY
from warehouse.views.plans import compile_views

from .catalogs import catalog, stream
from .evaluate import query_of
from .named_cases import CASES, TABLES, Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.views.plans import ViewPlan

ROWS = """
SET lambda_syntax = 'ENABLE_SINGLE_ARROW';
CREATE TABLE a
    (k VARCHAR, n INT, f DOUBLE, st STRUCT(x INT, y VARCHAR), l BIGINT, z DECIMAL(38,0), ar INT[], b TIMESTAMPTZ, e TIMESTAMPTZ);
INSERT INTO a VALUES
    ('p', 100, 1.5, {x: 1, y: 'u'}, 1, 1, [11], NULL, NULL), ('q', 200, 2.5, {x: 2, y: 'w'}, 1, 1, [22], NULL, NULL),
    ('q', 1, 0.5, {x: 3, y: 'w'}, 1, 1, [33], NULL, NULL), ('r', 3, 9.5, {x: 4, y: 'w'}, 1, 1, [44], NULL, NULL);
CREATE TABLE c (k VARCHAR, q INT);
INSERT INTO c VALUES ('p', 100), ('q', 2), (NULL, NULL), ('s', 3);
CREATE MACRO named_struct(one, first) AS {v: first}, (one, first, other, second) AS {n: first, k: second, f: second};
"""


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the rows, and Spark's functions by their names."""
    with duckdb.connect() as made:
        made.execute(ROWS)
        yield made


def compiled(sql: str, *key: str) -> ViewPlan:
    """Return a view over the two streams, compiled."""
    kinds = {**TABLES["a"], "b": "timestamp", "e": "timestamp"}
    a = replace(stream("flights", expires="landed", lifetime=DAY, key="k"), name="a", columns=_columns(kinds))
    c = replace(a, name="c", columns=_columns(TABLES["c"]))
    (view,) = compile_views(replace(catalog(View("v", sql, key)), streams=(a, c), relations=()))
    return view


def _columns(kinds: dict[str, str]) -> tuple[Column, ...]:
    return tuple(Column(name, kind) for name, kind in kinds.items())


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> Counter[str]:
    """Return how often each row of an answer occurs."""
    return Counter(map(repr, connection.sql(query).fetchall()))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_names_are_taken_as_spark_takes_them(connection: duckdb.DuckDBPyConnection, case: Case) -> None:
    """A plan gives what the plain query gives (Spark's own answer is compared in test_named_as_spark)."""
    plan = compiled(case.sql, case.key)
    planned = query_of(plan.nodes).replace("transform(", "list_transform(")
    assert rows_of(connection, planned) == rows_of(connection, case.plain or case.sql)


REFUSED = {
    "SELECT k, -sum(n) AS n FROM a GROUP BY k ORDER BY sum(n) LIMIT 1": "n inside an aggregate in ORDER BY",
    "SELECT k, map('v', n) AS m FROM a": "map('v', n), a map",
    "SELECT k, e - b AS d FROM a": "e - b, an interval",
    "SELECT k, duration(valid(b, e)) AS d FROM a": "duration(valid(b, e)) without a unit, an interval",
    "SELECT k, max(e - b) AS d FROM a GROUP BY k": "an interval",
    "SELECT k, CASE WHEN n > 1 THEN map_concat(map('v', n), map('w', n)) END AS m FROM a": "CASE WHEN n > 1 THEN map_concat",
    "SELECT k, max(k COLLATE UTF8_LCASE) AS m FROM a GROUP BY k": "a text with a collation",
    "SELECT k COLLATE UTF8_LCASE AS k, count(*) AS n FROM a GROUP BY 1": "a text with a collation",
    "SELECT count(*) AS k FROM a GROUP BY k COLLATE UTF8_LCASE": "a text with a collation",
    "SELECT a.k FROM a LEFT JOIN c ON a.k = c.k COLLATE UTF8_LCASE": "a text with a collation",
    "SELECT a.k FROM a JOIN c ON a.k = upper(c.k COLLATE UTF8_LCASE)": "a text with a collation",
    "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k COLLATE UTF8_LCASE = a.k)": "a text with a collation",
    "SELECT k, n FROM a ORDER BY k COLLATE UTF8_LCASE LIMIT 3": "a text with a collation",
    "SELECT k, count(*) AS n FROM a GROUP BY k, window(b, '1 hour', '5 minutes')": "window(b, '1 hour', '5 minutes')",
    "SELECT k, r FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM a) t WHERE r <= 2": "row_number() OVER",
    "SELECT k, count(*) AS n FROM a GROUP BY k HAVING max(m) > 2": 'the unknown column "m"',
}
"""What `validate` tells, though only an update found it once."""


@pytest.mark.parametrize("sql", REFUSED)
def test_what_no_update_could_do_is_told_by_validate(sql: str) -> None:
    """The message has the refused name, and the names that are possible."""
    with pytest.raises(ConfigurationError) as error:
        compiled(sql, "k")
    assert REFUSED[sql] in error.value.problems[0].found


ALLOWED = [
    "SELECT k, duration(valid(b, e), 'seconds') AS d FROM a",
    "SELECT k, e - INTERVAL 1 HOUR AS d FROM a WHERE e - b > INTERVAL 2 HOURS",
    "SELECT k FROM a WHERE k COLLATE UTF8_LCASE = 'Q'",
    "SELECT k, k COLLATE UTF8_LCASE = 'Q' AS same FROM a",
    "SELECT k, map('v', n)['v'] AS m FROM a",
    "SELECT k, map_entries(map('v', n)) AS m FROM a",
    "SELECT window(b, '1 hour').start AS s, count(*) AS k FROM a GROUP BY window(b, '1 hour')",
    "SELECT window.start, window.end AS t, count(*) AS k FROM a GROUP BY window(b, '1 hour')",
    "SELECT k, window(b, '1 hour').end AS t FROM a",
]


@pytest.mark.parametrize("sql", ALLOWED)
def test_what_can_be_maintained_is_not_refused(sql: str) -> None:
    """Collations and maps inside an expression, and tumbling windows."""
    assert compiled(sql, "k").nodes
