from __future__ import annotations

import pytest

from warehouse.views.language.columns import never_null

from .catalogs import TABLES, tree

NOTHING: dict[str, frozenset[str]] = {name: frozenset() for name in TABLES}

PROOFS: list[tuple[str, set[str]]] = [
    ("SELECT k, v FROM calls", set()),
    ("SELECT k, v FROM calls WHERE k IS NOT NULL", {"k"}),
    ("SELECT k, v FROM calls WHERE isnotnull(v) AND k LIKE 'a%'", {"k", "v"}),
    ("SELECT k, v FROM calls WHERE k = 'a' AND v <> 2", {"k", "v"}),
    ("SELECT k, v FROM calls WHERE k IN ('a', 'b') AND v BETWEEN 1 AND 2", {"k", "v"}),
    ("SELECT k, v FROM calls WHERE k = 'a' OR v = 1", set()),
    ("SELECT k, v FROM calls WHERE NOT k = 'a' AND v IS NULL", set()),
    ("SELECT k, v FROM calls WHERE k <=> 'a' AND upper(v) = 'a'", set()),
    ("SELECT k AS x, coalesce(v, 0) AS y, 1 AS z, nvl(k, k) AS w, upper('a') AS u FROM calls WHERE k > ''", {"x", "y", "z", "w"}),
    ("SELECT c.k, c.v, e.v AS w FROM calls c JOIN events e ON c.k = e.k AND e.v > c.v", {"k", "v", "w"}),
    ("SELECT c.k FROM calls c JOIN events e ON c.k <=> e.k", set()),
    ("SELECT c.k, c.v, e.v AS w FROM calls c LEFT JOIN events e ON c.k = e.k AND e.v > 1 WHERE c.v > 1", {"v"}),
    ("SELECT c.k, c.v, e.v AS w FROM calls c RIGHT JOIN events e ON c.k = e.k AND c.v > 1 WHERE e.v > 1", {"w"}),
    ("SELECT c.k, c.v FROM (SELECT k, v FROM calls WHERE v > 1) c FULL JOIN events e ON c.k = e.k", set()),
    ("SELECT f.tail, p.model FROM flights f JOIN planes p ON p.tail = f.tail", {"tail"}),
    ("SELECT f.tail, p.model FROM flights f LEFT JOIN planes p ON p.tail = f.tail", set()),
    ("SELECT k, count(*) AS n, sum(v) AS s, count_if(v > 1) AS m FROM calls WHERE k > '' GROUP BY k", {"k", "n", "m"}),
    ("SELECT k FROM calls WHERE k > '' UNION ALL SELECT k FROM events WHERE k > ''", {"k"}),
    ("SELECT k FROM calls WHERE k > '' UNION ALL SELECT k FROM events", set()),
    ("SELECT k FROM calls WHERE k > '' EXCEPT ALL SELECT k FROM events", {"k"}),
    ("SELECT DISTINCT k FROM calls WHERE k > ''", {"k"}),
    ("SELECT k FROM row_window((SELECT k FROM calls WHERE k > ''), 5)", {"k"}),
    ("SELECT k FROM calls c WHERE k > '' AND NOT EXISTS (SELECT 1 FROM events e WHERE e.v = c.v)", {"k"}),
    ("SELECT k, v FROM calls WHERE k > '' ORDER BY v LIMIT 3", {"k"}),
]


@pytest.mark.parametrize(("sql", "expected"), PROOFS)
def test_columns_that_never_are_null(sql: str, expected: set[str]) -> None:
    """A column is proved not null by a literal, a count, a condition that null does not pass, a join, or its source."""
    assert never_null(tree(sql), NOTHING) == expected


def test_tables_pass_on_what_they_know() -> None:
    """What is known of a stored table holds for its columns."""
    assert never_null(tree("SELECT v AS x, k FROM calls"), {"calls": frozenset({"v"})}) == {"x"}
