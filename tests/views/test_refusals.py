from __future__ import annotations

import pytest

from warehouse.catalog.model import View

from .catalogs import problems

REFUSED: list[tuple[str, str, str, str | None]] = [
    # the query, with ^ before the place; how what was found begins; part of what is allowed; the nearest
    # --- names
    ("SELECT ^tial FROM flights", 'the unknown column "tial"', "columns of the inputs (tail, origin,", "tail"),
    ("SELECT ^f.tial FROM flights f", 'the unknown column "f.tial"', "tail, origin", "f.tail"),
    ("SELECT ^g.x AS x FROM flights f", 'the unknown column "g.x"', "columns of f", None),
    ("SELECT ^k FROM calls c JOIN events e ON c.k = e.k", 'the ambiguous column "k"', "one of c.k, e.k", "c.k"),
    ("SELECT c.k FROM calls c JOIN events e ON c.k = ^v", 'the ambiguous column "v"', "one of c.v, e.v", "c.v"),
    ("SELECT k FROM ^call", 'the unknown table "call"', "flights, weather, calls", "calls"),
    ("SELECT k FROM ^lake.calls", "a qualified table name", "by name alone", None),
    ("SELECT ^x.* FROM calls c", "x.* of an unknown input", "c.*", None),
    ("SELECT c.k FROM calls c JOIN ^calls c ON c.k = c.k", 'two inputs called "c"', "an alias for each", "calls AS c_2"),
    ("SELECT ^e._ts FROM events e", 'the system column "e._ts"', "_ts is the time a row arrived", None),
    ("SELECT airport FROM weather WHERE ^_exp > seen", 'the system column "_exp"', "_exp is a row's end", None),
    ("SELECT ^_load_slot AS x FROM events", 'the name "_load_slot"', "names that begin with _ are the system's", None),
    ("SELECT ^k.x AS x FROM events", 'the unknown field "x" of k', "k is string and has no fields", None),
    # --- output columns
    ("SELECT ^count(*) FROM events", "count(*) without a name", "a name", "count(*) AS count"),
    ("SELECT ^v + 1 FROM events", "v + 1 without a name", "a name", "v + 1 AS value"),
    ("SELECT k, ^K FROM events", 'the output column "K" twice', "unique ignoring case", "K_2"),
    ("SELECT ^* FROM flights f JOIN planes p ON f.tail = p.tail", 'the output column "tail" twice', "unique", "tail_2"),
    ("SELECT ^k AS _x FROM events", 'the reserved name "_x"', "names other than", "x"),
    ("SELECT ^k AS sub_index FROM events", 'the reserved name "sub_index"', "names other than", "sub_index"),
    ("SELECT ^k AS `a b` FROM events", "the character ' ' in the name \"a b\"", "letters, digits and underscores", None),
    ("SELECT ^* EXCEPT (v) FROM events", "* EXCEPT (v)", "by name", None),
    # --- joins
    ("SELECT f.tail FROM flights f CROSS JOIN ^weather w", "f and w joined without a condition", "an equality", None),
    ("SELECT c.k FROM calls c, ^events e", "c and e joined without a condition", "an equality", "c.k = e.k"),
    ("SELECT c.k FROM calls c JOIN ^events e ON c.v < e.v", "the join of c and e on c.v < e.v alone", "an equality", "c.k = e.k"),
    ("SELECT c.k FROM calls c JOIN ^events e ON c.k = 'a'", "c and e joined without a condition", "an equality", "c.k = e.k"),
    (
        "SELECT a.k FROM calls a JOIN calls b ON a.k = b.k JOIN ^events c ON c.v > a.v",
        "the join of a and c on c.v > a.v alone",
        "an equality",
        "a.k = c.k",
    ),
    ("SELECT c.k FROM calls c NATURAL JOIN ^events e", "NATURAL JOIN", "USING", "JOIN events AS e USING (k, v)"),
    (
        "SELECT c.k FROM calls c LEFT SEMI JOIN ^events e ON c.k = e.k",
        "LEFT SEMI JOIN",
        "EXISTS in WHERE",
        "WHERE EXISTS (SELECT 1 FROM events AS e WHERE c.k = e.k)",
    ),
    (
        "SELECT c.k FROM calls c ANTI JOIN ^events e ON c.k = e.k",
        "LEFT ANTI JOIN",
        "NOT EXISTS in WHERE",
        "WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE c.k = e.k)",
    ),
    (
        "SELECT c.k FROM calls c LEFT JOIN ^events e ON c.v < e.v",
        "an outer join of c and e without an equality",
        "an eq",
        "c.k = e.k",
    ),
    (
        "SELECT c.k FROM calls c, calls d FULL JOIN ^events e ON c.k = e.k WHERE c.k = d.k",
        "a FULL JOIN after a comma",
        "ON",
        None,
    ),
    ("SELECT c.k FROM calls c JOIN events e USING (^w)", 'the unknown column "w" of e', "columns of both sides", None),
    # --- relations
    (
        "SELECT f.tail FROM flights f JOIN ^planes p ON f.origin = p.model",
        "the relation planes joined without an equality for each column of its key",
        "ON p.tail = ...",
        "ON p.tail = f.tail",
    ),
    (
        "SELECT f.tail FROM ^planes p LEFT JOIN flights f ON p.tail = f.tail",
        "the relation planes on the side of an outer join whose rows are all kept",
        "LEFT JOIN the relation",
        None,
    ),
    (
        "SELECT f.tail FROM flights f FULL JOIN ^planes p ON p.tail = f.tail",
        "the relation planes on the side of an outer join whose rows are all kept",
        "retroactive = true",
        None,
    ),
    (
        "SELECT f.tail FROM flights f JOIN cities c ON f.origin = c.code JOIN ^mayors m ON c.name = m.name",
        "a second retroactive relation, mayors, joined with rows that cities can change already",
        "combine them in a sub-query",
        "(SELECT ... FROM cities c JOIN mayors m ON ...)",
    ),
    (
        "SELECT g.tail FROM (SELECT tail, count(*) AS n FROM flights GROUP BY tail) g JOIN ^planes p ON g.tail = p.tail",
        "the relation planes joined with g, whose rows can leave before their own end",
        "join it below the negation",
        None,
    ),
    (
        "SELECT g.origin FROM row_window(flights, 5) g JOIN ^cities c ON g.origin = c.code",
        "the relation cities joined with g, whose rows can leave before their own end",
        "row window",
        None,
    ),
    (
        "SELECT g.origin FROM row_window(flights, 5) g LEFT JOIN ^cities c ON g.origin = c.code",
        "the relation cities joined with g, whose rows can leave before their own end",
        "row window",
        None,
    ),
    ("SELECT k FROM ^time_window(planes, INTERVAL 1 HOUR)", "a window over the relation planes", "itself", "planes"),
    # --- functions and values
    (
        "SELECT ^rand() AS x FROM events",
        "rand(), whose result depends on the clock, chance or the session",
        "deterministic",
        None,
    ),
    ("SELECT k FROM events WHERE seen > ^now()", "now(), whose result depends on the clock", "deterministic", None),
    ("SELECT ^current_date AS x FROM events", "current_date, which depends on the clock or the session", "deterministic", None),
    ("SELECT CAST(^'now' AS timestamp) AS x FROM events", "the literal 'now', which reads the clock", "deterministic", None),
    ("SELECT ^unix_timestamp() AS x FROM events", "unix_timestamp(), which reads the clock", "unix_timestamp(column)", None),
    ("SELECT ^lowr(k) AS x FROM events", "the unknown function lowr()", "Spark SQL", "lower"),
    ("SELECT ^explode(parts) AS x FROM events", "explode(), which makes several rows of one", "one row for each", None),
    ("SELECT ^time_window(k, 1) AS x FROM events", "time_window(...) as a value", "in FROM", None),
    ("SELECT k FROM events WHERE ^k = :p", "the parameter :p", "a constant", None),
    ("SELECT k FROM events WHERE ^count(*) > 1", "the aggregate count() where rows are looked at one by one", "HAVING", None),
    ("SELECT sum(^count(*)) AS x FROM events GROUP BY k", "the aggregate count() inside another", "groups first", None),
    (
        "SELECT k, ^first(v) AS x FROM events GROUP BY k",
        "first(), whose result depends on the order",
        "count, sum",
        "min(column) or max(column)",
    ),
    ("SELECT k, ^collect_list(v) AS x FROM events GROUP BY k", "collect_list(), whose result depends on the order", "avg", None),
    (
        "SELECT k, ^count(*) FILTER (WHERE v > 1) AS x FROM events GROUP BY k",
        "count(*) with a FILTER clause",
        "inside the aggregate",
        "count(CASE WHEN v > 1 THEN 1 END)",
    ),
    ("SELECT k, ^percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS x FROM events GROUP BY k", "WITHIN GROUP", "median", None),
    # --- sub-queries
    ("SELECT (^SELECT max(v) FROM calls) AS x FROM events", "a sub-query as a value", "a join with the sub-query in FROM", None),
    ("SELECT k FROM events WHERE v > ALL (^SELECT v FROM calls)", "a sub-query as a value", "EXISTS, IN", None),
    (
        "SELECT k FROM events e WHERE v > 1 OR ^EXISTS (SELECT 1 FROM calls c WHERE c.k = e.k)",
        "EXISTS or IN inside another",
        "AND",
        None,
    ),
    (
        "SELECT k FROM events e WHERE EXISTS (SELECT 1 FROM calls c WHERE ^c.v < e.v)",
        "c.v < e.v, which relates a sub-query to the outer query by more than an equality",
        "equalities",
        None,
    ),
    (
        "SELECT k FROM events e WHERE ^EXISTS (SELECT 1 FROM calls c)",
        "EXISTS with a sub-query that no equality relates",
        "WHERE",
        None,
    ),
    (
        "SELECT k FROM events e WHERE NOT ^EXISTS (SELECT 1 FROM calls c)",
        "NOT EXISTS with a sub-query that no equality",
        "WHERE",
        None,
    ),
    (
        "SELECT k FROM events WHERE ^k IN (SELECT k, v FROM calls)",
        "IN with 1 on the left and 2 in the sub-query",
        "as many",
        None,
    ),
    ("SELECT k FROM events WHERE ^k IN (SELECT * FROM calls)", "IN with 1 on the left and * in the sub-query", "as many", None),
    ("SELECT k FROM events WHERE ^1 IN (SELECT v FROM calls)", "1 IN (SELECT v FROM calls)", "a column of the outer query", None),
    (
        "SELECT k FROM events WHERE ^k NOT IN (SELECT k FROM calls WHERE k IS NOT NULL)",
        "k on the left of NOT IN, where a null would empty the answer",
        "k IS NOT NULL in that WHERE",
        "NOT EXISTS (SELECT 1 FROM calls WHERE NOT k IS NULL AND calls.k = events.k)",
    ),
    (
        "SELECT k FROM events WHERE k > '' AND ^k NOT IN (SELECT upper(k) FROM calls)",
        "upper(k) in the sub-query of NOT IN, where a null would empty the answer",
        "NOT EXISTS",
        "NOT EXISTS (SELECT 1 FROM calls WHERE upper(calls.k) = events.k)",
    ),
    # --- windows
    (
        "SELECT tail FROM ^time_window(flights, INTERVAL 25 HOURS)",
        "a window of 1d1h over flights, whose rows live 1d at most",
        "a longer one ends nothing",
        "flights",
    ),
    (
        "SELECT k FROM ^time_window(calls, INTERVAL 31 MINUTES) c",
        "a window of 31m over calls, whose rows live 30m",
        "30m",
        "calls",
    ),
    ("SELECT k FROM ^time_window(events, INTERVAL 1 MONTH)", "the window length INTERVAL '1' MONTH", "days", None),
    ("SELECT k FROM time_window(events, ^'1h')", "the window length '1h'", "INTERVAL 1 HOUR", None),
    ("SELECT k FROM ^time_window(events, INTERVAL 0 HOURS)", "the window length INTERVAL '0' HOURS", "longer than zero", None),
    ("SELECT k FROM ^time_window(events)", "time_window with 1 arguments", "time_window(table, INTERVAL 1 HOUR)", None),
    ("SELECT k FROM row_window(events, ^1.5)", "the window size 1.5", "a whole number of rows from 1", None),
    ("SELECT k FROM row_window(events, ^0)", "the window size 0", "from 1", None),
    ("SELECT k FROM row_window(events, 5, ^w)", 'the unknown column "w"', "k, v, parts", None),
    ("SELECT k FROM row_window(events, 5, ^upper(k))", "upper(k) as the third", "a column", None),
    (
        "SELECT k FROM ^time_window(events, INTERVAL 1 HOUR, intern => true)",
        'the argument "intern"',
        "internal => true",
        "internal",
    ),
    ("SELECT k FROM time_window(events, INTERVAL 1 HOUR, internal => ^1)", "internal => 1", "true or false", None),
    (
        "SELECT k FROM ^time_windw(events, INTERVAL 1 HOUR)",
        "the unknown table function time_windw()",
        "row_window(table, n)",
        "time_window",
    ),
    ("SELECT k FROM ^range(10)", "range() in FROM", "streams, relations, views", None),
    # --- internal windows
    (
        "SELECT DISTINCT k FROM ^time_window(events, INTERVAL 1 HOUR, internal => true)",
        "DISTINCT over an internal window",
        "a selection, an inner join or GROUP BY",
        "SELECT DISTINCT k FROM time_window(events, INTERVAL '1' HOUR)",
    ),
    (
        "SELECT k FROM ^time_window(events, INTERVAL 1 HOUR, internal => true) e WHERE k IN (SELECT k FROM calls)",
        "EXISTS, IN or a negation of them over an internal window",
        "external",
        "SELECT k FROM time_window(events, INTERVAL '1' HOUR) AS e WHERE k IN (SELECT k FROM calls)",
    ),
    (
        "SELECT e.k FROM ^time_window(events, INTERVAL 1 HOUR, internal => true) e LEFT JOIN calls c ON c.k = e.k",
        "an outer join over an internal window",
        "external",
        "SELECT e.k FROM time_window(events, INTERVAL '1' HOUR) AS e LEFT JOIN calls AS c ON c.k = e.k",
    ),
    (
        "SELECT k FROM (SELECT k FROM ^time_window(events, INTERVAL 1 HOUR, internal => true))",
        "an internal window inside a sub-query",
        "the view's own FROM",
        "time_window(events, INTERVAL '1' HOUR)",
    ),
    (
        "SELECT k FROM ^row_window(events, 5, internal => true)",
        "an internal row_window that nothing aggregates",
        "events itself",
        None,
    ),
    (
        (
            "SELECT k, count(*) AS n FROM time_window(calls, INTERVAL 5 MINUTES, internal => true) c"
            " JOIN ^flights f ON f.tail = c.k GROUP BY k"
        ),
        "f, whose rows expire, grouped together with the internal window c",
        "over all inputs of a GROUP BY, or over none",
        None,
    ),
    (
        "SELECT c.k FROM time_window(calls, INTERVAL 5 MINUTES, internal => true) c JOIN ^cities t ON t.code = c.k",
        "t, whose rows can leave before their own end, beside the internal window c",
        "external windows",
        None,
    ),
    # --- other clauses
    ("SELECT k FROM events ^ORDER BY v", "ORDER BY without LIMIT", "ORDER BY ... LIMIT k", "SELECT k FROM events"),
    ("SELECT k FROM events ^LIMIT 5", "LIMIT without ORDER BY", "QUALIFY", "ORDER BY ... LIMIT 5"),
    ("SELECT k FROM events ORDER BY v ^LIMIT 0", "LIMIT 0", "from 1", None),
    ("SELECT k FROM events ORDER BY v LIMIT 5 OFFSET ^3", "OFFSET", "LIMIT k", None),
    ("SELECT DISTINCT k FROM events ORDER BY ^v LIMIT 3", "ORDER BY v of SELECT DISTINCT", "output columns (k)", None),
    ("SELECT k FROM events UNION SELECT k FROM calls ORDER BY ^v LIMIT 3", "ORDER BY v", "output columns (k)", None),
    (
        "SELECT k, ^rank() OVER (PARTITION BY k ORDER BY v) AS r FROM events",
        "rank() OVER (...)",
        "QUALIFY row_number()",
        "QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 1",
    ),
    (
        "SELECT k, ^sum(v) OVER (PARTITION BY k) AS r FROM events",
        "sum() OVER (...), an aggregate over the rows",
        "groups",
        "GROUP BY k",
    ),
    (
        "SELECT k FROM events ^QUALIFY rank() OVER (PARTITION BY k ORDER BY v) <= 2",
        "QUALIFY with rank() OVER (PARTITION BY k ORDER BY v)",
        "row_number() OVER",
        "QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 2",
    ),
    ("SELECT k FROM events ^QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) > 2", "QUALIFY row_number()", "<= k", None),
    ("SELECT k FROM events ^QUALIFY v = 2", "QUALIFY v = 2", "row_number()", None),
    (
        "SELECT k, ^v FROM events GROUP BY k",
        'the column "v", which is neither grouped nor aggregated',
        "aggregates",
        "GROUP BY ..., v",
    ),
    ("SELECT k FROM events ^GROUP BY ROLLUP(k)", "GROUP BY ROLLUP (k)", "views of their own, or UNION ALL", None),
    ("SELECT k FROM events ^GROUP BY k WITH CUBE", "GROUP BY k WITH CUBE", "UNION ALL", None),
    ("SELECT k, count(*) AS n FROM events GROUP BY k, ^2", "GROUP BY 2, an aggregate", "columns", None),
    ("SELECT k FROM events GROUP BY ^3", "GROUP BY 3", "a number from 1 to 1", None),
    ("SELECT k FROM events ^HAVING k > 'a'", "HAVING without GROUP BY or an aggregate", "WHERE", "WHERE k > 'a'"),
    ("SELECT k FROM events TABLESAMPLE (^10 PERCENT)", "TABLESAMPLE, which picks rows by chance", "WHERE", None),
    ("SELECT k FROM events LATERAL VIEW ^explode(parts) t AS y", "LATERAL VIEW, which makes several rows of one", "stream", None),
    ("SELECT k FROM events PIVOT (^sum(v) FOR k IN ('a'))", "PIVOT or UNPIVOT", "sum(CASE WHEN", None),
    ("SELECT k FROM (^VALUES ('a')) AS t(k)", "VALUES ('a') AS t(k)", "streams, relations, views", None),
    ("SELECT k FROM events SORT BY ^k", "SORT BY, CLUSTER BY or DISTRIBUTE BY", "search_key", None),
    (
        "^WITH RECURSIVE t AS (SELECT k FROM events UNION ALL SELECT k FROM t) SELECT k FROM t",
        "WITH RECURSIVE",
        "do not name themselves",
        None,
    ),
    ("^SELECT 1 AS x", "a query without FROM", "SELECT ... FROM", None),
    # --- set operations
    (
        "SELECT k FROM events ^INTERSECT ALL SELECT k FROM calls",
        "INTERSECT ALL",
        "INTERSECT",
        "SELECT k FROM events INTERSECT SELECT k FROM calls",
    ),
    (
        "SELECT k FROM events ^EXCEPT SELECT k FROM calls",
        "EXCEPT, which keeps each row once",
        "EXCEPT ALL",
        (
            "SELECT DISTINCT * FROM (SELECT k FROM events) AS a"
            " WHERE NOT EXISTS (SELECT 1 FROM (SELECT k FROM calls) AS b WHERE b.k = a.k)"
        ),
    ),
    ("SELECT k FROM events ^UNION ALL SELECT k, v FROM calls", "UNION of 1 columns (k) and 2 (k, v)", "as many", None),
    # --- no query
    ("SELECT k ^FROM", '"FROM", where the query stops to parse', "Spark SQL", None),
    ("SELECT k k2 ^k3 FROM events", '"k3", where the query stops to parse', "Spark SQL", None),
    ("^DELETE FROM events", "no query", "one query", None),
    ("SELECT k FROM events; ^SELECT k FROM calls", "several statements", "one query", None),
]


@pytest.mark.parametrize(("marked", "found", "allowed", "nearest"), REFUSED)
def test_what_cannot_be_maintained(marked: str, found: str, allowed: str, nearest: str | None) -> None:
    """A query is refused once, with its place, what stands there, what may stand there, and the nearest query."""
    column = marked.index("^") + 1
    sql = marked.replace("^", "")
    (problem,) = problems(View("v", sql, ("k",)))
    assert problem.key == "views.v.sql"
    assert problem.file.endswith("warehouse.toml")
    assert problem.found.endswith(f"(line 1, column {column})"), problem.found
    assert problem.found.startswith(found)
    assert allowed in problem.allowed
    assert problem.nearest == nearest


WHOLE = [nearest for _, _, _, nearest in REFUSED if nearest and nearest.startswith("SELECT ")]


@pytest.mark.parametrize("sql", WHOLE)
def test_a_nearest_query_is_one(sql: str) -> None:
    """Where a whole query is offered instead, it can be maintained."""
    assert problems(View("v", sql, ("k",))) == []


def test_faults_of_one_query_together() -> None:
    """All faults of names and expressions are told at once, each with its line and column."""
    sql = """SELECT f.tial, rand() AS r, count(*)
FROM flights f
  JOIN weather w ON w.airport = f.origen
WHERE now() > gone"""
    assert [problem.found for problem in problems(View("v", sql, ("tial",)))] == [
        "now(), whose result depends on the clock, chance or the session (line 4, column 7)",
        'the unknown column "f.origen" (line 3, column 33)',
        'the unknown column "f.tial" (line 1, column 8)',
        "rand(), whose result depends on the clock, chance or the session (line 1, column 16)",
        "count(*) without a name (line 1, column 29)",
    ]


def test_faults_of_several_views_together() -> None:
    """Each faulty view is told; a view over a faulty one is not looked at."""
    views = (
        View("a", "SELECT nothing FROM events", ("k",)),
        View("b", "SELECT k FROM a WHERE nowhere = 1", ("k",)),
        View("c", "SELECT k FROM nowhere", ("k",)),
    )
    assert [problem.key for problem in problems(*views)] == ["views.a.sql", "views.c.sql"]
