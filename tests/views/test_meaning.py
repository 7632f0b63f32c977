from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import pytest

from warehouse.views.rewrite import alternatives

from .catalogs import TABLES, plan
from .evaluate import query_of, sql_of

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERIES = [
    # selections and projections
    "SELECT k, v + 1 AS w FROM calls WHERE v > 1 AND (k = 'a' OR k = 'b')",
    "SELECT * FROM calls WHERE v IS NULL OR NOT v IN (1, 2)",
    "SELECT c.*, upper(c.k) AS up FROM calls AS c WHERE v BETWEEN 1 AND 2",
    "SELECT x, y FROM (SELECT k AS x, v AS y FROM calls WHERE v > 0) AS s WHERE x <> 'c'",
    "WITH a AS (SELECT k, v FROM calls), b(x) AS (SELECT k FROM a WHERE v = 1) SELECT x FROM b",
    # inner joins
    "SELECT c.k, c.v, e.v AS w FROM calls c JOIN events e ON c.k = e.k",
    "SELECT c.k, e.v AS w FROM calls c JOIN events e USING (k) WHERE c.v > 0 AND e.v < 3",
    "SELECT * FROM calls c JOIN (SELECT k, v AS w FROM events) e USING (k)",
    "SELECT c.k, e.v FROM calls c, events e WHERE c.k = e.k AND c.v < e.v",
    "SELECT c.v, e.v AS w FROM calls c JOIN events e ON upper(c.k) = upper(e.k) AND c.v + 1 = e.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM calls a JOIN calls b ON a.k = b.k JOIN events c ON c.k = b.k AND a.v <= c.v + b.v",
    "SELECT a.v, b.v AS w, c.v AS x FROM calls a JOIN calls b ON a.k = b.k JOIN events c ON c.v = a.v",
    "SELECT c.k FROM calls c JOIN events e ON c.k = e.k AND c.k = 'a' AND 1 = 1",
    "SELECT f.tail, p.model FROM flights f JOIN planes p ON p.tail = f.tail",
    "SELECT f.tail, p.model, w.wind FROM flights f JOIN planes p ON p.tail = f.tail JOIN weather w ON w.airport = f.origin",
    "SELECT f.tail, p.model FROM flights f JOIN planes p ON p.tail = f.tail AND p.seats > f.delay WHERE p.seats > 1",
    "SELECT f.tail, c.name FROM flights f JOIN cities c ON c.code = f.origin",
    "SELECT c.code, m.mayor FROM cities c JOIN mayors m ON c.name = m.name",
    # outer joins
    "SELECT f.tail, p.model FROM flights f LEFT JOIN planes p ON p.tail = f.tail",
    "SELECT f.tail, p.model, p.seats FROM flights f LEFT JOIN planes p ON p.tail = f.tail AND p.seats > f.delay",
    "SELECT f.tail, p.model FROM planes p RIGHT JOIN flights f ON p.tail = f.tail WHERE f.delay > 0",
    "SELECT f.tail, p.model FROM flights f LEFT JOIN planes p ON p.tail = f.tail WHERE p.model IS NULL",
    "SELECT c.k, c.v, e.v AS w FROM calls c LEFT JOIN events e ON c.k = e.k AND e.v > 1 AND c.v > 0",
    "SELECT c.k, c.v, e.v AS w FROM calls c RIGHT JOIN events e ON c.k = e.k AND e.v > 1 AND c.v > 0 WHERE e.v > 0",
    "SELECT c.v, e.v AS w FROM calls c FULL JOIN events e ON c.k = e.k AND e.v > 1 AND c.v > 0",
    "SELECT k, c.v, e.v AS w FROM calls c FULL JOIN (SELECT k, v FROM events) e USING (k)",
    "SELECT k, c.v, e.v AS w FROM calls c RIGHT JOIN (SELECT k, v FROM events) e USING (k)",
    "SELECT a.k, b.v, c.v AS w FROM calls a JOIN calls b ON a.k = b.k LEFT JOIN events c ON c.v = b.v WHERE a.v > 0",
    "SELECT a.k, b.v, c.v AS w FROM calls a LEFT JOIN calls b ON a.k = b.k JOIN events c ON c.v = b.v",
    "SELECT a.k, b.v FROM calls a LEFT JOIN calls b ON a.v = b.v WHERE b.k IS NULL OR b.k = a.k",
    (
        "SELECT f.tail, p.seats, w.wind FROM flights f LEFT JOIN planes p USING (tail)"
        " LEFT JOIN weather w ON w.airport = f.origin AND w.wind > p.seats"
    ),
    # sub-queries in WHERE
    "SELECT k, v FROM calls c WHERE EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)",
    "SELECT k, v FROM calls c WHERE EXISTS (SELECT * FROM events e WHERE e.k = c.k AND e.v = c.v + 1 AND e.v > 0)",
    "SELECT k, v FROM calls WHERE k IN (SELECT k FROM events WHERE v > 1) AND v > 0",
    "SELECT k, v FROM calls WHERE (k, v) IN (SELECT k, v FROM events)",
    "SELECT k FROM calls WHERE k IN (SELECT k FROM events GROUP BY k HAVING count(*) > 1)",
    "SELECT k FROM calls WHERE v IN (SELECT v FROM events UNION ALL SELECT v FROM calls)",
    "SELECT c.k, e.v FROM calls c JOIN events e ON c.k = e.k WHERE EXISTS (SELECT 1 FROM flights f WHERE f.delay = e.v)",
    "SELECT k, v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)",
    "SELECT k, v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k AND e.v = c.v) AND v > 0",
    "SELECT k, v FROM calls WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM events WHERE k IS NOT NULL)",
    "SELECT k, v FROM calls WHERE coalesce(v, 0) NOT IN (SELECT v FROM events WHERE v > 1)",
    "SELECT k FROM calls c WHERE v > 0 AND v NOT IN (SELECT v FROM events e WHERE v > 0 AND e.k = c.k)",
    (
        "SELECT k FROM calls c WHERE EXISTS (SELECT 1 FROM events e WHERE e.k = c.k) AND"
        " NOT EXISTS (SELECT 1 FROM flights f WHERE f.delay = c.v)"
    ),
    (
        "SELECT c.k FROM calls c WHERE EXISTS (SELECT 1 FROM events e WHERE e.k = c.k AND"
        " NOT EXISTS (SELECT 1 FROM flights f WHERE f.delay = e.v))"
    ),
    "SELECT c.v, e.v AS w FROM calls c JOIN events e ON c.k = e.k WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.delay = e.v)",
    # DISTINCT and set operations
    "SELECT DISTINCT k FROM calls",
    "SELECT DISTINCT * FROM calls",
    "SELECT DISTINCT c.k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)",
    "SELECT k FROM calls UNION ALL SELECT tail FROM flights UNION ALL SELECT k FROM events",
    "SELECT k, v FROM calls UNION SELECT k, v FROM events",
    "SELECT k, v FROM calls INTERSECT SELECT k, v FROM events",
    "SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events",
    "SELECT upper(k) AS u FROM calls EXCEPT ALL SELECT k FROM events WHERE v > 0",
    "(SELECT k FROM calls UNION ALL SELECT k FROM events) EXCEPT ALL SELECT k FROM events WHERE v = 1",
    # GROUP BY
    "SELECT k, count(*) AS n, sum(v) AS s, min(v) AS low, max(v) AS high FROM calls GROUP BY k",
    "SELECT count(*) AS n, max(v) AS high, count(v) AS w FROM calls",
    "SELECT k, count(DISTINCT v) AS n FROM calls GROUP BY k",
    "SELECT upper(k) AS u, sum(v) + count(*) AS s FROM calls GROUP BY upper(k)",
    "SELECT upper(k) AS u, 2 * sum(v + 1) AS s FROM calls GROUP BY 1 HAVING count(*) > 1 AND max(v) < 5",
    "SELECT upper(k) AS u, upper(k) || 'x' AS x, sum(v) AS k FROM calls GROUP BY u",
    "SELECT UPPER(k) AS u, COUNT(*) + count(*) AS s FROM calls GROUP BY upper(k) HAVING Count(*) > 1 ORDER BY Upper(k) LIMIT 1",
    "SELECT count(*) AS n FROM calls GROUP BY k",
    "SELECT k FROM calls GROUP BY k",
    "SELECT k, v FROM calls GROUP BY ALL",
    "SELECT c.k, count(*) AS n FROM calls c JOIN events e ON c.k = e.k GROUP BY c.k",
    "SELECT count(*) AS n FROM calls c JOIN events e ON c.k = e.k",
    "SELECT DISTINCT count(*) AS n FROM calls GROUP BY k",
    "SELECT a AS v, n FROM (SELECT k AS a, count(v) AS n FROM calls GROUP BY k) AS s",
    "SELECT s.k, s.n, e.v FROM (SELECT k, count(*) AS n FROM calls GROUP BY k) AS s JOIN events e ON e.k = s.k WHERE s.n > 1",
    "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM calls GROUP BY k) AS s GROUP BY n",
    "SELECT k, count(CASE WHEN v > 1 THEN 1 END) AS n FROM calls GROUP BY k HAVING n > 0",
    # first rows
    "SELECT gone, tail FROM flights ORDER BY gone LIMIT 3",
    "SELECT tail, gone FROM flights ORDER BY 2 DESC LIMIT 3",
    "SELECT tail FROM flights ORDER BY gone DESC NULLS LAST LIMIT 3",
    "SELECT tail, gone FROM flights QUALIFY row_number() OVER (PARTITION BY origin ORDER BY gone) <= 2",
    "SELECT origin, tail FROM flights WHERE delay > 0 QUALIFY 1 >= row_number() OVER (PARTITION BY origin ORDER BY gone DESC)",
    "SELECT origin, count(*) AS n FROM flights GROUP BY origin ORDER BY count(*) DESC, origin LIMIT 2",
    "SELECT DISTINCT origin FROM flights ORDER BY origin LIMIT 2",
    "SELECT k FROM calls UNION SELECT k FROM events ORDER BY k DESC LIMIT 2",
    # plans with another order of operators
    (
        "SELECT s.k, e.v FROM (SELECT k, v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.delay = c.v)) AS s"
        " JOIN events e ON e.k = s.k"
    ),
    (
        "SELECT s.x, e.v FROM (SELECT k AS x, v + 1 AS v FROM calls c WHERE c.k IS NOT NULL AND"
        " NOT EXISTS (SELECT 1 FROM flights f WHERE f.delay = c.v)) AS s JOIN events e ON e.k = s.x AND e.v < s.v"
    ),
    (
        "SELECT a.v, b.k FROM (SELECT v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.delay = c.v)) a"
        " JOIN (SELECT k, v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events f WHERE f.k = c.k)) b ON b.v = a.v"
    ),
    (
        "SELECT DISTINCT v FROM (SELECT v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.delay = c.v)) AS s"
        " WHERE v > 2"
    ),
]


KINDS = {"string": "VARCHAR", "int": "INTEGER", "double": "DOUBLE", "timestamp": "TIMESTAMP", "array<int>": "INTEGER[]"}
VALUES = {"string": [None, "a", "b", "c", "A"], "int": [None, 0, 1, 2, 3, 4], "double": [0.5, 2.5], "array<int>": [[1]]}
FEWER = {("flights", "int"): [None, 0, 1], ("events", "string"): [None, "a", "b", "A"]}


def _value(chance: random.Random, table: str, kind: str, number: int, *, key: bool) -> object:
    if key:
        return "abcA"[number]
    if kind == "timestamp":
        return f"2020-01-01 00:{number:02d}:00"
    return chance.choice(FEWER.get((table, kind), VALUES[kind]))


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return small tables with duplicates, nulls and matches; each instant occurs once, so that it gives one order."""
    chance = random.Random(5)  # noqa: S311 - test data
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first_on_asc_last_on_desc'")  # as Spark
        for table, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({', '.join(f'{name} {KINDS[kind]}' for name, kind in columns)})")
            unique = table in {"planes", "cities", "mayors"}
            for number in range(4 if unique else 25):
                row = [_value(chance, table, kind, number, key=unique and not index) for index, (_, kind) in enumerate(columns)]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        yield connection


def _rows(duck: duckdb.DuckDBPyConnection, sql: str) -> Counter[tuple[object, ...]]:
    return Counter(duck.execute(sql).fetchall())


@pytest.mark.parametrize("sql", QUERIES)
def test_a_plan_means_its_query(duck: duckdb.DuckDBPyConnection, sql: str) -> None:
    """While nothing expires, a plan, its nodes and its rewritings give the rows that DuckDB gives for the SQL."""
    expected = _rows(duck, sql)
    assert expected
    view_plan = plan(sql)
    columns = ", ".join(f'"{name}"' for name in view_plan.columns)
    assert _rows(duck, f"SELECT {columns} FROM ({sql_of(view_plan.tree)})") == expected
    assert _rows(duck, query_of(view_plan.nodes)) == expected
    for other in alternatives(
        view_plan.tree, {name: tuple(column for column, _ in typed_columns) for name, typed_columns in TABLES.items()}
    ):
        assert _rows(duck, f"SELECT {columns} FROM ({sql_of(other.tree)})") == expected
