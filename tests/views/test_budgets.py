"""Which views may have a budget, and what may read one of which a part is owed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from warehouse.catalog.model import View
from warehouse.promise.units import ViewBudget

from .catalogs import compiled, problems

BUDGET = ViewBudget(pairs=10)
RELATION = "a budget for a join with the relation"
PAIRS = View("pairs", "SELECT c.k, c.v, e.v AS w FROM calls c JOIN events e ON c.k = e.k WHERE c.v > e.v", ("k",), budget=BUDGET)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT k, v FROM calls", "a budget for a query without a join"),
        ("SELECT k, count(*) AS n FROM calls GROUP BY k", "a budget for GROUP BY or aggregates"),
        ("SELECT DISTINCT k FROM calls", "a budget for DISTINCT"),
        ("SELECT c.k FROM calls c LEFT JOIN events e ON c.k = e.k", "a budget for an outer join"),
        ("SELECT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE c.k = e.k)", "a budget for NOT EXISTS"),
        ("SELECT a.k FROM calls a JOIN calls b ON a.k = b.k JOIN events e ON a.k = e.k", "a budget for a join of 3 inputs"),
        ("SELECT c.k FROM calls c JOIN events e ON c.k <=> e.k", "a budget for a join over queries that keep state"),
        ("SELECT c.k, n FROM calls c JOIN (SELECT k, count(*) AS n FROM events GROUP BY k) e ON c.k = e.k", "a budget for"),
        ("SELECT f.tail AS k FROM flights f JOIN cities c ON f.origin = c.code", f'{RELATION} "cities", whose changes take'),
        ("SELECT f.tail AS k FROM flights f JOIN planes p ON f.tail = p.tail", f'{RELATION} "planes", of which each row'),
        ("SELECT f.tail AS k FROM flights f JOIN flights g ON f.tail = g.tail JOIN planes p ON f.tail = p.tail", RELATION),
    ],
)
def test_shapes_that_have_no_budget(sql: str, found: str) -> None:
    """Each is refused at the key of the budget, with the shape that is allowed."""
    (problem,) = problems(View("some", sql, ("k",), budget=BUDGET))
    assert problem.key == "views.some.budget"
    assert problem.found.startswith(found)
    assert problem.allowed.startswith("a join of two streams or views on equal columns")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT k, count(*) AS n FROM pairs GROUP BY k", "GROUP BY or aggregates over"),
        ("SELECT DISTINCT k FROM pairs", "DISTINCT over"),
        ("SELECT c.k FROM calls c LEFT JOIN pairs p ON c.k = p.k", "an outer join over"),
        ("SELECT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM pairs p WHERE c.k = p.k)", "NOT EXISTS, NOT IN or EXCEPT over"),
        ("SELECT k FROM pairs ORDER BY v LIMIT 3", "first rows (LIMIT"),
        ("SELECT c.k FROM calls c JOIN (SELECT k, max(v) AS v FROM pairs GROUP BY k) p ON c.k = p.k", "GROUP BY or aggregates"),
    ],
)
def test_what_would_be_wrong_above_a_part(sql: str, found: str) -> None:
    """What counts, picks or negates rows of which some are owed is refused, through other views too."""
    chosen = View("chosen", "SELECT * FROM pairs WHERE v > 1", ("k",))
    for name in ("pairs", "chosen"):
        (problem,) = problems(PAIRS, chosen, View("above", sql.replace("pairs", name), ("k",)))
        assert problem.key == "views.above.sql"
        assert problem.found.startswith(found)
        assert '"pairs"' in problem.found


def test_what_may_be_above_a_part() -> None:
    """Selections, joins, also with relations, and unions miss what is owed, and have nothing that is wrong."""
    above = [
        View("chosen", "SELECT k, v + 1 AS v FROM pairs WHERE w > 2", ("k",)),
        View("joined", "SELECT p.k, c.v FROM pairs p JOIN calls c ON p.k = c.k JOIN events e ON e.k = c.k", ("k",)),
        View("united", "SELECT k, v FROM chosen UNION ALL SELECT k, v FROM calls", ("k",)),
        View("named", "SELECT p.k, c.name FROM pairs p JOIN cities c ON p.k = c.code", ("k",)),
        View("built", "SELECT p.k, a.model FROM pairs p JOIN planes a ON p.k = a.tail", ("k",)),
    ]
    assert not problems(PAIRS, *above)
    tables = compiled(PAIRS, *above).view("united").tables  # type: ignore[union-attr]
    assert tables["chosen"].partial == "pairs"
    assert tables["calls"].partial is None


@pytest.mark.parametrize(
    ("prefer", "found", "nearest"),
    [
        ("dsc", 'the unknown column "dsc"', "desc"),
        ("left_count * v", 'the unknown column "v"', None),
        ("k", '"k", which gives a string', None),
        ("rand()", "rand(), whose result depends on more than its arguments (the clock, chance or the session)", None),
        ("sum(left_count)", "sum(), an aggregate", None),
    ],
)
def test_preferences_that_are_none(prefer: str, found: str, nearest: str | None) -> None:
    """An expression names key columns, counts and the age, and gives a number."""
    (problem,) = problems(replace(PAIRS, budget=ViewBudget(10, prefer)))
    assert (problem.key, problem.found, problem.nearest) == ("views.pairs.budget.prefer", found, nearest)
    assert problem.allowed == '"desc", "asc", "weighted", or an expression over left_count, right_count, age, k'


@pytest.mark.parametrize("prefer", ["weighted", "left_count", "CASE k WHEN 'x' THEN 1 END", "pow(0.8, AGE) / right_count"])
def test_preferences(prefer: str) -> None:
    """A word, or a number that is computed for each key."""
    assert not problems(replace(PAIRS, budget=ViewBudget(10, prefer)))


def test_one_budget_and_reports_of_what_is_completed() -> None:
    """A budget over a budget is refused, and short-lived results of what is never completed, with the way on."""
    second = View("second", "SELECT p.k, c.v FROM pairs p JOIN calls c ON p.k = c.k", ("k",), budget=BUDGET)
    (problem,) = problems(PAIRS, second)
    assert (problem.key, problem.allowed) == ("views.second.budget", "one budget: of pairs, or of this view")
    reporting = View("above", "SELECT k FROM pairs", ("k",), short_lived="report", short_lived_declared=True)
    (problem,) = problems(PAIRS, reporting)
    assert problem.key == "views.above.short_lived"
    assert problem.found == '"report" over pairs, which has a budget'
    assert not problems(replace(PAIRS, short_lived="report", short_lived_declared=True))
    never = replace(PAIRS, short_lived="report", short_lived_declared=True, budget=ViewBudget(10, complete="never"))
    (problem,) = problems(never)
    assert (problem.key, problem.allowed) == ("views.pairs.short_lived", '"drop", or budget.complete = "later"')
