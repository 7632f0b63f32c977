"""Queries in which a name could be taken for another, each with a query that says the same and leaves no doubt."""

from __future__ import annotations

from typing import NamedTuple

TABLES = {
    "a": {
        "k": "string", "n": "int", "f": "double", "st": "struct<x:int,y:string>", "l": "bigint", "z": "decimal(38,0)",
        "ar": "array<int>",
    },
    "c": {"k": "string", "q": "int"},
}  # fmt: skip
"""The user's columns of two streams, beside ``b`` and ``e``."""


class Case(NamedTuple):
    """A view's SQL; the plain query (the same where none is given); the view's key."""

    sql: str
    plain: str = ""
    key: str = "k"


_T = "(SELECT k, st, ar, n AS x FROM a) t"
_FIRST = "row_number() OVER (PARTITION BY k ORDER BY n) AS r"

FIELDS = {
    "field": Case(f"SELECT k, st.x AS v FROM {_T}", "SELECT k, struct_extract(st, 'x') AS v FROM a"),
    "field of an alias": Case(
        "SELECT s.k, s.ss.y AS v FROM (SELECT k, st AS ss FROM a) s", "SELECT k, struct_extract(st, 'y') AS v FROM a"
    ),
    "field in ON": Case(
        f"SELECT t.k, c.q FROM {_T} JOIN c ON c.q = t.st.x", "SELECT a.k, c.q FROM a JOIN c ON c.q = struct_extract(a.st, 'x')"
    ),
    "field in the rest of ON": Case(
        f"SELECT t.k, c.q FROM {_T} LEFT JOIN c ON c.k = t.k AND c.q > t.st.x",
        "SELECT a.k, c.q FROM a LEFT JOIN c ON c.k = a.k AND c.q > struct_extract(a.st, 'x')",
    ),
    "field in a sum": Case(
        f"SELECT k, sum(st.x) AS v FROM {_T} GROUP BY k", "SELECT k, sum(struct_extract(st, 'x')) AS v FROM a GROUP BY k"
    ),
    "field of an aggregate": Case(
        "SELECT k, max(named_struct('n', n, 'k', f)).k AS v FROM a GROUP BY k", "SELECT k, max_by(f, n) AS v FROM a GROUP BY k"
    ),
    "field of a recommended aggregate": Case(
        "SELECT k, max(struct(n, f)).f AS v FROM a GROUP BY k", "SELECT k, max_by(f, n) AS v FROM a GROUP BY k"
    ),
    "field in NOT EXISTS": Case(
        "SELECT a.k, a.n FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.q = a.st.x)",
        "SELECT k, n FROM a WHERE struct_extract(st, 'x') NOT IN (SELECT q FROM c WHERE q IS NOT NULL)",
    ),
    "field in IN": Case(
        "SELECT a.k, a.n FROM a WHERE a.st.x IN (SELECT q FROM c)",
        "SELECT k, n FROM a WHERE struct_extract(st, 'x') IN (SELECT q FROM c)",
    ),
    "a structure called as the other input": Case(
        "SELECT t.st.x AS k FROM a t JOIN (SELECT q AS c1 FROM c) st ON st.c1 = t.st.x",
        "SELECT struct_extract(a.st, 'x') AS k FROM a JOIN c ON c.q = struct_extract(a.st, 'x')",
    ),
    "an input called as its structure": Case(
        "SELECT st.st.y AS k FROM a st JOIN (SELECT n.st.x AS c1 FROM a n) v ON st.st.x = v.c1",
        "SELECT struct_extract(a.st, 'y') AS k FROM a JOIN a b ON struct_extract(a.st, 'x') = struct_extract(b.st, 'x')",
    ),
}
"""Fields of structures, and columns that are called as they are."""

STRUCTURES = {
    "fields as written": Case("SELECT k, struct(a.N, st.x, ar[0], n + 1, (f), 'c' AS c) AS v FROM a"),
    "fields of renamed columns": Case("SELECT k, to_json(struct(x, y)) AS v FROM (SELECT k, n AS x, f AS y FROM a) t"),
    "fields of a join": Case("SELECT a.k, struct(a.n, c.q) AS v FROM a JOIN c ON a.k = c.k"),
    "fields without a function": Case("SELECT a.k, to_json((a.n, c.q)) AS v FROM a JOIN c ON a.k = c.k"),
    "fields of variables": Case("SELECT k, transform(ar, X -> struct(x, n, X AS z)) AS v FROM a"),
    "fields of aggregates": Case("SELECT k, struct(k, sum(n), max(st).x, min(n) AS least) AS v FROM a GROUP BY k"),
    "fields of a grouped structure": Case("SELECT struct(k, n) AS v, count(*) AS k FROM a GROUP BY struct(k, n)"),
    "a field of an aggregate over a join": Case("SELECT a.k, max((a.n, c.q)).q AS v FROM a JOIN c ON a.k = c.k GROUP BY a.k"),
    "zipped arrays": Case("SELECT t.k, to_json(arrays_zip(t.ar, array(c.q), t.ar)) AS v FROM a t JOIN c ON t.k = c.k"),
    "zipped arrays of variables": Case("SELECT k, transform(array(ar), x -> arrays_zip(x, ar)) AS v FROM a"),
    "zipped aggregates": Case("SELECT k, to_json(arrays_zip(max(ar), array(1))) AS v FROM a GROUP BY k"),
}
"""Fields that are called as what they are computed by; only Spark tells how."""

LAMBDAS = {
    "variable": Case("SELECT k, transform(ar, x -> x + a.n) AS v FROM a", "SELECT k, [ar[1] + n] AS v FROM a"),
    "variable called as a column": Case("SELECT k, transform(ar, n -> n * 2) AS v FROM a", "SELECT k, [ar[1] * 2] AS v FROM a"),
    "variable beside the column": Case(
        "SELECT k, transform(ar, n -> n * 1000 + t.n) AS v FROM a t", "SELECT k, [ar[1] * 1000 + n] AS v FROM a"
    ),
    "variable of the column's new name": Case(
        f"SELECT k, transform(ar, n -> n * 1000 + x) AS v FROM {_T}", "SELECT k, [ar[1] * 1000 + n] AS v FROM a"
    ),
    "variable in other letters": Case(
        "SELECT k, transform(ar, N -> n * 1000) AS v FROM a", "SELECT k, [ar[1] * 1000] AS v FROM a"
    ),
}
"""Variables of lambda functions, and columns that are called as they are."""

CLAUSES = {
    "order by an expression of an alias": Case(
        "SELECT k, -n AS n FROM a ORDER BY n + 0 LIMIT 1", "SELECT k, -n AS n FROM a ORDER BY a.n DESC LIMIT 1"
    ),
    "order by a function of an alias": Case(
        "SELECT k, -n AS n FROM a ORDER BY n * 2, k LIMIT 2", "SELECT k, -n AS n FROM a ORDER BY a.n DESC LIMIT 2"
    ),
    "order by an input": Case(
        "SELECT k, -n AS n FROM a ORDER BY a.n LIMIT 1", "SELECT k, -n AS n FROM a WHERE a.n = (SELECT min(n) FROM a)"
    ),
    "order by an input called as an output": Case(
        "SELECT a.k, c.q AS a FROM a JOIN c ON a.k = c.k ORDER BY a.n LIMIT 1",
        "SELECT t.k, c.q AS a FROM a t JOIN c ON t.k = c.k ORDER BY t.n LIMIT 1",
    ),
    "order by an input called as an expression": Case(
        "SELECT k, upper(k) AS a FROM a ORDER BY a.n LIMIT 2", "SELECT k, upper(k) AS a FROM a t ORDER BY t.n LIMIT 2"
    ),
    "order by an input called as a structure": Case(
        "SELECT k, st AS a FROM a ORDER BY a.n LIMIT 2", "SELECT k, st AS a FROM a t ORDER BY t.n LIMIT 2"
    ),
    "order by a field of a structure called as the input": Case(
        "SELECT k, st AS a FROM a ORDER BY a.x DESC, a.y, k LIMIT 2",
        "SELECT k, st AS a FROM a t ORDER BY struct_extract(t.st, 'x') DESC, struct_extract(t.st, 'y'), k LIMIT 2",
    ),
    "having an input called as an output": Case(
        "SELECT a.k, count(*) AS a FROM a GROUP BY a.k HAVING a.k > 'p'",
        "SELECT t.k, count(*) AS a FROM a t WHERE t.k > 'p' GROUP BY t.k",
    ),
    "order by an expression of a group's alias": Case(
        "SELECT k, sum(n) AS n FROM a GROUP BY k ORDER BY -n, k LIMIT 2",
        "SELECT * FROM (SELECT k, sum(n) AS m FROM a GROUP BY k) t(k, n) ORDER BY n DESC, k LIMIT 2",
    ),
    "order distinct rows by an expression": Case(
        "SELECT DISTINCT k, -n AS n FROM a ORDER BY n + 0, k LIMIT 2",
        "SELECT * FROM (SELECT DISTINCT k, -n AS m FROM a) t(k, n) ORDER BY n, k LIMIT 2",
    ),
    "order a union by an expression": Case(
        "SELECT k, n FROM a UNION ALL SELECT k, q FROM c ORDER BY n + 0, k LIMIT 2",
        "SELECT * FROM (SELECT k, n FROM a UNION ALL SELECT k, q FROM c) ORDER BY n NULLS FIRST, k LIMIT 2",
    ),
    "having an alias of an input's name": Case(
        "SELECT k, count(*) AS n FROM a GROUP BY k HAVING n > 1", "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > 1"
    ),
    "having a grouped column": Case(
        "SELECT n AS m, count(*) AS k FROM a GROUP BY n HAVING n > 2",
        "SELECT n AS m, count(*) AS k FROM a WHERE n > 2 GROUP BY n",
    ),
    "having an aggregate of an input": Case(
        "SELECT k, count(*) AS n FROM a GROUP BY k HAVING sum(n) > 150",
        "SELECT k, m AS n FROM (SELECT k, count(*) AS m, sum(n) AS s FROM a GROUP BY k) WHERE s > 150",
    ),
    "a bound on row_number": Case(
        f"SELECT k, n FROM (SELECT k, n, {_FIRST} FROM a) t WHERE r <= 2",
        "SELECT k, n FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY n) <= 2",
    ),
    "the first by row_number": Case(
        f"SELECT * FROM (SELECT k, n, {_FIRST} FROM a) t WHERE r = 1 AND n > 1",
        "SELECT * FROM (SELECT k, min(n) AS n, 1 AS r FROM a GROUP BY k) WHERE n > 1",
    ),
    "row_number in WITH": Case(
        "WITH a AS (SELECT k, n, row_number() OVER (ORDER BY n DESC, k) AS r FROM a) SELECT a.k, a.n FROM a WHERE a.r < 3",
        "SELECT k, n FROM a ORDER BY n DESC, k LIMIT 2",
    ),
}
"""Clauses above WHERE, which also see the output columns."""

CONSTANTS = {
    "right, nothing": Case("SELECT c.k, a.n FROM a RIGHT JOIN c ON a.k = c.k WHERE 1 = 0"),
    "full, nothing": Case("SELECT c.k, a.n FROM a FULL JOIN c ON a.k = c.k WHERE 1 = 0"),
    "left, nothing": Case("SELECT a.k, c.q FROM a LEFT JOIN c ON a.k = c.k WHERE 1 = 0"),
    "left, nothing matches": Case("SELECT a.k, c.q FROM a LEFT JOIN c ON a.k = c.k AND 1 = 0"),
    "full, nothing matches": Case("SELECT a.k, c.q FROM a FULL JOIN c ON a.k = c.k AND 1 = 0"),
    "right, nothing matches": Case("SELECT c.k, c.q FROM a RIGHT JOIN c ON a.k = c.k AND 1 = 0"),
    "inner and right, nothing": Case("SELECT a.k, d.q FROM a JOIN c ON a.k = c.k RIGHT JOIN c d ON d.k = a.k WHERE 1 = 0"),
    "right and inner, nothing": Case("SELECT a.k, d.q FROM a RIGHT JOIN c ON a.k = c.k JOIN c d ON d.k = c.k WHERE 1 = 0"),
    "all rows of nothing": Case("SELECT count(*) AS k FROM a RIGHT JOIN c ON a.k = c.k WHERE 1 = 0"),
}
"""Conditions without columns."""

_SAFE = "IS NOT DISTINCT FROM"
NULL_SAFE = {
    "beside an equality": Case(
        "SELECT a.k, c.q FROM a JOIN c ON a.k = c.k AND a.n <=> c.q",
        f"SELECT a.k, c.q FROM a JOIN c ON a.k = c.k AND a.n {_SAFE} c.q",
    ),
    "beside EXISTS": Case(
        "SELECT c.k, o.q FROM c JOIN c o ON o.q <=> c.q WHERE EXISTS (SELECT 1 FROM c AS d WHERE d.k = o.k)",
        f"SELECT c.k, o.q FROM c JOIN c o ON o.q {_SAFE} c.q WHERE o.k IN (SELECT k FROM c)",
    ),
    "beside another join": Case(
        "SELECT c.k, d.q FROM c JOIN c d ON c.q <=> d.q JOIN a ON a.k = c.k",
        f"SELECT c.k, d.q FROM c JOIN c d ON c.q {_SAFE} d.q JOIN a ON a.k = c.k",
    ),
    "outer": Case(
        "SELECT c.k, d.q FROM c LEFT JOIN c d ON c.k <=> d.k", f"SELECT c.k, d.q FROM c LEFT JOIN c d ON c.k {_SAFE} d.k"
    ),
    "exists": Case("SELECT k, q FROM c WHERE EXISTS (SELECT 1 FROM c AS d WHERE d.k <=> c.k)", "SELECT k, q FROM c"),
    "not exists": Case(
        "SELECT k, q FROM c WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k <=> c.k)",
        "SELECT k, q FROM c WHERE k IS NULL OR k NOT IN (SELECT k FROM a)",
    ),
}
"""Equalities in which null equals null, beside others."""

_WINDOW = "window(CASE WHEN q IS NOT NULL THEN b END, '1 hour')"
VALUES = {
    "distinct zeros": Case("SELECT DISTINCT k, f FROM a"),
    "zeros of first rows": Case("SELECT k, f, n FROM a ORDER BY n LIMIT 3"),
    "zeros of an outer join": Case("SELECT a.k, a.f, c.q FROM a LEFT JOIN c ON a.k = c.k"),
    "a zero as maximum": Case("SELECT k, max(f) AS f FROM a GROUP BY k"),
    "grouped zeros": Case("SELECT f, count(*) AS k FROM a GROUP BY f"),
    "zeros of NOT EXISTS": Case("SELECT k, f FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.q = a.n)"),
    "zeros of EXCEPT ALL": Case("SELECT k, f FROM a EXCEPT ALL SELECT k, q FROM c"),
    "zeros inside others": Case("SELECT k, named_struct('f', f) AS s, array(f) AS fs FROM a ORDER BY n LIMIT 3"),
    "average of extremes": Case("SELECT k, avg(l) AS v, count(l) AS n FROM a GROUP BY k"),
    "sum of extremes": Case("SELECT n AS k, sum(l) AS v FROM a GROUP BY n"),
    "sum of large decimals": Case("SELECT count(*) AS k, sum(z) AS v FROM a"),
    "int and text": Case("SELECT n AS k FROM a UNION ALL SELECT '5' FROM c"),
    "int and text in a column": Case("SELECT k, n FROM a UNION SELECT k, '5' FROM c"),
    "int and bigint of INTERSECT": Case("SELECT k, n FROM a INTERSECT SELECT k, CAST(q AS bigint) FROM c"),
    "int and decimal of INTERSECT": Case("SELECT n AS k FROM a INTERSECT SELECT CAST(q AS decimal(12,2)) FROM c"),
    "int and decimal": Case("SELECT k, n FROM a UNION ALL SELECT k, 1.5 FROM c"),
    "int and bigint": Case("SELECT k, n FROM a EXCEPT ALL SELECT k, CAST(q AS bigint) FROM c"),
    "tumbling windows": Case("SELECT window.start AS s, window.end AS t, count(*) AS k FROM a GROUP BY window(b, '1 hour')"),
    "a window of each row": Case("SELECT k, window(b, '30 minutes').end AS t FROM a"),
    "windows of null times": Case(f"SELECT k, q, {_WINDOW}.start AS s FROM c"),
    "windows that are not used": Case(f"SELECT k, q FROM (SELECT k, q, {_WINDOW} AS w FROM c) t"),
    "groups of null times": Case(f"SELECT k, count(*) AS n FROM c GROUP BY k, {_WINDOW}"),
    "windows in a condition": Case(f"SELECT k, q FROM c WHERE q = 2 OR {_WINDOW}.start > '1970-01-01'"),
    "windows in an order": Case(f"SELECT k, q FROM c ORDER BY {_WINDOW}.start, q LIMIT 9"),
    "windows in QUALIFY": Case(f"SELECT k, q FROM c QUALIFY row_number() OVER (PARTITION BY {_WINDOW} ORDER BY q) = 1"),
    "windows in QUALIFY over groups": Case(
        f"SELECT k, min(q) AS n FROM c GROUP BY k, {_WINDOW} QUALIFY row_number() OVER (PARTITION BY window.start ORDER BY k) = 1"
    ),
    "windows inside an aggregate": Case(f"SELECT count(*) AS k, max({_WINDOW}.start) AS s FROM c"),
}
"""Values that are lost where they are handled by other rules than Spark's; only Spark tells what they must be."""

CASES = {**FIELDS, **LAMBDAS, **CLAUSES, **CONSTANTS, **NULL_SAFE}
