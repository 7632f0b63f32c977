from __future__ import annotations

import pytest

from warehouse.catalog.model import LayoutSpec, View
from warehouse.errors import ConfigurationError
from warehouse.time import HOUR
from warehouse.views.plans import compile_views

from .catalogs import catalog, compiled, plan, problems

KEYS: list[tuple[View, str, str, str, str | None]] = [
    (View("v", "SELECT k FROM calls", ("key",)), "search_key", 'the unknown column "key"', "that the view gives (k)", None),
    (View("v", "SELECT tail FROM flights", ("tial",)), "search_key", 'the unknown column "tial"', "(tail)", "tail"),
    (View("v", "SELECT wind FROM weather", ("wind",)), "search_key", 'the column "wind" of type double', "strings", None),
    (View("v", "SELECT k, parts AS p FROM events", ("p",)), "search_key", 'the column "p" of type array<int>', "strings", None),
    (
        View("v", "SELECT count(*) AS n FROM calls", ("n",), layout=LayoutSpec(grid=(2, 2))),
        "layout.grid",
        "grid for a view whose rows can leave before their own end (STR)",
        "cut by the search key",
        None,
    ),
    (View("v", "SELECT k FROM calls", ("k",), layout=LayoutSpec(grid=(4, 1))), "layout.grid", "[4, 1]", "G from 1 to 3", None),
    (
        View("v", "SELECT k FROM calls", ("k",), short_lived="report", output_length=HOUR),
        "short_lived",
        '"report" with an output window',
        '"drop"',
        None,
    ),
]


@pytest.mark.parametrize(("view", "key", "found", "allowed", "nearest"), KEYS)
def test_keys_beside_the_sql(*, view: View, key: str, found: str, allowed: str, nearest: str | None) -> None:
    """The search key, the layout and what becomes of short-lived results are checked against the plan."""
    (problem,) = problems(view)
    assert (problem.key, problem.found, problem.nearest) == (f"views.v.{key}", found, nearest)
    assert allowed in problem.allowed


OUTPUT_WINDOWS = [
    ("SELECT DISTINCT k FROM calls", "a duplicate elimination"),
    ("SELECT k FROM calls UNION SELECT k FROM events", "a duplicate elimination"),
    ("SELECT k FROM calls WHERE k IN (SELECT k FROM events)", "a duplicate elimination"),
    ("SELECT k FROM calls EXCEPT ALL SELECT k FROM events", "a negation"),
    ("SELECT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)", "a negation"),
    ("SELECT c.k FROM calls c LEFT JOIN events e ON e.k = c.k", "an outer join"),
    ("SELECT k, count(*) AS n FROM calls GROUP BY k", "an aggregate over external windows"),
    ("SELECT k FROM row_window(events, 5)", "rows that others push out"),
    ("SELECT tail AS k FROM planes", "planes, whose rows can leave before their own end"),
]


@pytest.mark.parametrize(("sql", "found"), OUTPUT_WINDOWS)
def test_output_windows_are_refused(sql: str, found: str) -> None:
    """An output window is refused over what does not come and stay (section 4.2)."""
    (problem,) = problems(View("v", sql, ("k",), output_length=HOUR))
    assert problem.key == "views.v.sql"
    assert problem.found.startswith(f"output_window over {found}")
    assert "a selection, a join or an aggregate over internal windows" in problem.allowed


def test_an_output_window_over_internal_aggregates() -> None:
    """Over an aggregate of internal windows an output window keeps its last values."""
    sql = "SELECT sum(v) AS s FROM time_window(calls, INTERVAL 10 MINUTES, internal => true)"
    assert str(plan(sql, output_length=HOUR).label) == "WKS(1h)"


def test_cycles() -> None:
    """Views that read themselves, also through others, are reported with the cycle; a view that only reads them is not."""
    views = (
        View("a", "SELECT k FROM b", ("k",)),
        View("b", "SELECT e.k FROM calls e JOIN time_window(c, INTERVAL 1 HOUR) d ON e.k = d.k", ("k",)),
        View("c", "SELECT a.k FROM events e, a WHERE a.k = e.k", ("k",)),
        View("d", "SELECT k FROM d", ("k",)),
        View("e", "SELECT k FROM a", ("k",)),
    )
    cycles = {problem.key: problem.found for problem in problems(*views)}
    assert cycles == {
        "views.a.sql": "a cycle: a reads b reads c reads a (line 1, column 15)",
        "views.b.sql": "a cycle: b reads c reads a reads b (line 1, column 42)",
        "views.c.sql": "a cycle: c reads a reads b reads c (line 1, column 27)",
        "views.d.sql": "a cycle: d reads d (line 1, column 15)",
    }


def test_a_with_query_may_be_called_as_a_view() -> None:
    """The name of a WITH query hides the view of that name, so there is no cycle."""
    assert problems(View("a", "WITH a AS (SELECT k FROM calls) SELECT k FROM a", ("k",))) == []


def test_the_key_is_spelled_as_the_column() -> None:
    """The search key is matched ignoring case and kept as the column is called."""
    assert plan("SELECT k AS Key FROM calls", "KEY").nodes[-1].search_key == ("Key",)


def test_reads() -> None:
    """A view reads each table once, relations that it looks up among them."""
    sql = (
        "SELECT f.tail FROM flights f JOIN planes p ON p.tail = f.tail JOIN weather w ON w.airport = f.origin"
        " WHERE f.origin IN (SELECT airport FROM weather)"
    )
    assert plan(sql).reads == ("flights", "weather", "planes")


TYPES = [
    ("k", "string"),
    ("v + 1", "int"),
    ("v / 2", "double"),
    ("v > 1 AND k IS NULL", "boolean"),
    ("CAST(v AS decimal(10,2))", "decimal(10,2)"),
    ("CAST(v AS decimal(10,2)) * 2", None),
    ("CASE WHEN v > 1 THEN 'a' ELSE 'b' END", "string"),
    ("if(v > 1, 1, 2)", "int"),
    ("if(v > 1, 1, 2.5)", None),
    ("coalesce(k, '')", "string"),
    ("3000000000", "bigint"),
    ("timestampdiff(HOUR, TIMESTAMP '2020-01-01', TIMESTAMP '2020-01-02')", "bigint"),
    ("year(DATE '2020-01-01')", "int"),
    ("parts", "array<int>"),
    ("parts[0]", None),
    ("make_dt_interval(v)", None),
]


@pytest.mark.parametrize(("sql", "expected"), TYPES)
def test_types(sql: str, expected: str | None) -> None:
    """The types of a view's columns are told where they are certain without Spark."""
    assert plan(f"SELECT v AS first, {sql} AS x FROM events").columns["x"] == expected


def test_types_through_operators() -> None:
    """Types pass through joins, groups, unions and lookups."""
    sql = """
        SELECT g.k, g.n, g.total, p.seats FROM
          (SELECT k, count(*) AS n, sum(v) AS total, max(v) AS most FROM calls GROUP BY k) g LEFT JOIN events p0 ON p0.k = g.k
          LEFT JOIN (SELECT tail, max(seats) AS seats FROM planes GROUP BY tail) p ON p.tail = g.k"""
    assert plan(sql).columns == {"k": "string", "n": "bigint", "total": "bigint", "seats": "int"}
    assert plan("SELECT k, v FROM calls UNION ALL SELECT k, v / 2 FROM events").columns == {"k": "string", "v": None}
    assert plan("SELECT f.tail, p.seats FROM flights f JOIN planes p ON p.tail = f.tail").columns["seats"] == "int"


@pytest.mark.parametrize(
    ("sql", "keys", "expected"),
    [
        ("SELECT k FROM calls", {}, []),
        ("SELECT k FROM events", {}, []),
        ("SELECT c.k FROM calls c JOIN events e ON c.k = e.k", {}, []),
        (
            "SELECT k FROM time_window(calls, INTERVAL 5 MINUTES)",
            {},
            ["sql: a window of 5m is shorter than the update interval (10m)"],
        ),
        (
            "SELECT tail FROM flights f WHERE EXISTS (SELECT 1 FROM planes p WHERE p.tail = f.tail)",
            {},
            ["sql: planes is read as it is now"],
        ),
        ("SELECT f.tail FROM flights f JOIN planes p ON p.tail = f.tail", {"short_lived": "report"}, []),
        ("SELECT tail FROM planes", {}, []),
    ],
)
def test_warnings(sql: str, keys: dict[str, object], expected: list[str]) -> None:
    """What a view does that its owner may not expect is told with the key that it is about."""
    warnings = plan(sql, **keys).warnings
    assert [text[: len(start)] for text, start in zip(warnings, expected, strict=True)] == expected


def test_one_warning_for_all_views_that_lose_results() -> None:
    """Those that could keep them and were not told; neither where the declaration says so itself, nor where nothing is lost."""
    joined, alone = "SELECT c.k FROM calls c JOIN events e ON c.k = e.k", ALONE
    views = (
        View("a", joined, ("k",)),
        View("b", alone, ("v",)),
        View("meant", joined, ("k",), short_lived_declared=True),
        View("kept", joined, ("k",), short_lived="report", short_lived_declared=True),
        View("counted", "SELECT count(*) AS n FROM calls", ("n",)),
        View("steady", "SELECT k FROM calls", ("k",)),
        View("wide", "SELECT k FROM time_window(calls, INTERVAL 5 MINUTES)", ("k",)),
    )
    window, lost = compiled(*views).warnings()
    assert window.startswith("views.wide.sql: a window of 5m")
    assert lost.startswith("views.*.short_lived: of a, b, results that come and go between two updates (10m) are not kept")


ALONE = "SELECT v FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)"
TELLING = [
    ("SELECT k FROM calls", True),
    ("SELECT c.k FROM calls c JOIN events e ON c.k = e.k", True),
    ("SELECT DISTINCT k FROM calls", True),
    ("SELECT k FROM calls UNION ALL SELECT tail FROM flights", True),
    ("SELECT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k)", True),
    (ALONE, True),  # its key is kept in a table below it
    ("SELECT k FROM calls WHERE k IS NOT NULL AND k NOT IN (SELECT k FROM events WHERE k IS NOT NULL)", True),
    ("SELECT k, count(*) AS n FROM calls GROUP BY k", False),
    ("SELECT c.k FROM calls c LEFT JOIN events e ON c.k = e.k", False),
    ("SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events", False),
    ("SELECT k, v FROM calls ORDER BY v LIMIT 3", False),
    ("SELECT k FROM row_window(calls, 3)", False),
    (f"SELECT s.v FROM ({ALONE}) s JOIN events f ON f.v = s.v", False),
    ("SELECT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM row_window(events, 3) e WHERE e.k = c.k)", False),
    ("SELECT tail FROM planes", False),
]


@pytest.mark.parametrize(("sql", "tells"), TELLING)
def test_report_where_short_lived_results_are_known(*, sql: str, tells: bool) -> None:
    """For other views "report" is refused: it would never report a result."""
    refusals = problems(View("v", sql, (next(iter(plan(sql).columns)),), short_lived="report"))
    assert [problem.key for problem in refusals] == ([] if tells else ["views.v.short_lived"])
    assert tells or "recomputed where its inputs changed" in refusals[0].found


def test_views_over_views_that_tell() -> None:
    """A selection from a view knows what that knows."""
    views = (
        View("alone", ALONE, ("v",), short_lived="report"),
        View("chosen", "SELECT v FROM alone WHERE v > 3", ("v",), short_lived="report"),
        View("grouped", "SELECT k, count(*) AS n FROM calls GROUP BY k", ("k",)),
        View("large", "SELECT k FROM grouped WHERE n > 3", ("k",), short_lived="report"),
    )
    assert [problem.key for problem in problems(*views)] == ["views.large.short_lived"]


def test_not_null_through_views() -> None:
    """What a view proves not null, views over it know."""
    names = View("names", "SELECT k FROM calls WHERE k IS NOT NULL", ("k",))
    counts = View("counts", "SELECT k, count(*) AS n FROM calls GROUP BY k", ("k",))
    over = "SELECT n.k FROM names n WHERE n.k NOT IN (SELECT k FROM names WHERE k > 'a')"
    assert problems(names, View("v", over, ("k",))) == []
    numbers = "SELECT n FROM counts WHERE n NOT IN (SELECT n FROM counts WHERE k = 'a')"
    assert problems(counts, View("v", numbers, ("n",))) == []
    (problem,) = problems(counts, View("v", "SELECT k FROM counts WHERE k NOT IN (SELECT 'a' AS k FROM counts)", ("k",)))
    assert problem.found.startswith("k on the left of NOT IN")


def test_a_dozen_views() -> None:
    """A dozen views over each other compile in the order of their reads, whatever the order of declaration."""
    views = [View("v0", "SELECT c.k, c.v FROM calls c JOIN events e ON c.k = e.k WHERE NOT e.v IS NULL", ("k",))]
    views += [
        View(f"v{number}", f"SELECT a.k, b.v FROM v{number - 1} a JOIN calls b ON a.k = b.k AND a.v < b.v", ("k",))
        for number in range(1, 12)
    ]
    plans = compiled(*reversed(views))
    assert [view_plan.name for view_plan in plans] == [f"v{number}" for number in range(12)]
    assert plans.view("v3") is plans.views[3]
    assert plans.view("v12") is None


def test_nothing_declared() -> None:
    """A catalog without views has no plans."""
    assert list(compile_views(catalog())) == []


def test_the_error_lists_all() -> None:
    """The problems are raised as one configuration error with exit code 2."""
    with pytest.raises(ConfigurationError, match="2 configuration errors") as caught:
        compiled(View("a", "SELECT x FROM calls", ("x",)), View("b", "SELECT k FROM calls LIMIT 1", ("k",)))
    assert caught.value.exit_code == 2
    assert 'views.a.sql: found the unknown column "x" (line 1, column 8); allowed: columns' in str(caught.value)
