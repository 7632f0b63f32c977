from __future__ import annotations

import pytest
import sqlglot.parser

from warehouse.errors import PlatformError
from warehouse.time import HOUR, MINUTE
from warehouse.views.algebra import (
    AggregateCall,
    AntiJoin,
    AsOf,
    BagDifference,
    Changes,
    Distinct,
    Equality,
    Filter,
    Group,
    Join,
    Named,
    Operator,
    Order,
    OuterJoin,
    OutputWindow,
    Scan,
    TimeWindow,
    Top,
    UnionAll,
)
from warehouse.views.language.dialect import as_written, parse_query

from .catalogs import plan, project, qualified, tree

CALLS, EVENTS, FLIGHTS, WEATHER = Scan("calls"), Scan("events"), Scan("flights"), Scan("weather")
HOURLY = TimeWindow(EVENTS, HOUR)
COUNT = AggregateCall("n", "count", None, "count(*)")


def on(left: str, right: str) -> tuple[Equality, ...]:
    """Return the equality of the first two inputs."""
    return (Equality(0, left, 1, right),)


TREES: list[tuple[str, Operator]] = [
    # selection, projection, windows
    ("SELECT * FROM calls", CALLS),
    ("SELECT v, k AS key FROM calls", project(CALLS, "v", "key = `k`")),
    ("SELECT K FROM Calls AS c WHERE C.V > 1", project(Filter(CALLS, "`v` > 1"), "K = `k`")),
    ("SELECT k FROM calls WHERE (v > 1 OR v < 0) AND k = 'a'", project(Filter(CALLS, "(`v` > 1 OR `v` < 0) AND `k` = 'a'"), "k")),
    ("SELECT k FROM time_window(events, INTERVAL 1 HOUR)", project(HOURLY, "k")),
    ("SELECT e.k FROM time_window(events, INTERVAL '60' MINUTES) e", project(HOURLY, "k")),
    ("SELECT k FROM time_window(calls, INTERVAL 30 MINUTES)", project(TimeWindow(CALLS, 30 * MINUTE), "k")),
    ("SELECT k FROM row_window(events, 100)", project(Top(EVENTS, (), (), 100), "k")),
    ("SELECT k FROM row_window(events, 2, K)", project(Top(EVENTS, ("k",), (), 2), "k")),
    (
        "SELECT k FROM time_window(events, INTERVAL 1 HOUR, internal => true)",
        project(TimeWindow(EVENTS, HOUR, internal=True), "k"),
    ),
    ("SELECT k FROM time_window(events, INTERVAL 1 HOUR, internal => false)", project(HOURLY, "k")),
    ("WITH e AS (SELECT k FROM events) SELECT k FROM time_window(e, INTERVAL 1 HOUR)", TimeWindow(project(EVENTS, "k"), HOUR)),
    ("SELECT tail FROM planes p WHERE seats > 1", project(Filter(Scan("planes"), "`seats` > 1"), "tail")),
    # inner joins
    (
        "SELECT c.k, e.v FROM calls c JOIN events e ON c.k = e.k",
        project(
            Join((qualified("c", CALLS, ["k"]), qualified("e", EVENTS, ["k", "v"])), on("c.k", "e.k")),
            "k = `c.k`",
            "v = `e.v`",
        ),
    ),
    (
        "SELECT k, c.v FROM calls c JOIN time_window(events, INTERVAL 1 HOUR) e USING (k) WHERE c.v > 0 AND e.v > c.v",
        project(
            Join(
                (qualified("c", Filter(CALLS, "`v` > 0"), ["k", "v"]), qualified("e", HOURLY, ["k", "v"])),
                on("c.k", "e.k"),
                "`e.v` > `c.v`",
            ),
            "k = `c.k`",
            "v = `c.v`",
        ),
    ),
    (
        "SELECT c.v FROM calls c, events e WHERE upper(c.k) = e.k AND e.parts IS NULL",
        project(
            Join(
                (
                    qualified("c", CALLS, ["k", "v"], "c.#1 = upper(`k`)"),
                    qualified("e", Filter(EVENTS, "`parts` IS NULL"), ["k", "parts"]),
                ),
                on("c.#1", "e.k"),
            ),
            "v = `c.v`",
        ),
    ),
    (
        "SELECT a.v FROM calls a JOIN calls b ON a.k = b.k JOIN events c ON b.v = c.v AND a.k = c.k",
        project(
            Join(
                (qualified("a", CALLS, ["k", "v"]), qualified("b", CALLS, ["k", "v"]), qualified("c", EVENTS, ["k", "v"])),
                (Equality(0, "a.k", 1, "b.k"), Equality(1, "b.v", 2, "c.v"), Equality(0, "a.k", 2, "c.k")),
            ),
            "v = `a.v`",
        ),
    ),
    (
        "SELECT a.v FROM calls a JOIN events b ON a.k <=> b.k",
        project(
            Join((qualified("a", CALLS, ["k", "v"]), qualified("b", EVENTS, ["k"])), on("a.k", "b.k"), None, null_safe=True),
            "v = `a.v`",
        ),
    ),
    # relations
    (
        "SELECT f.tail, p.model FROM flights f JOIN planes p ON p.tail = f.tail",
        project(
            AsOf(
                qualified("f", FLIGHTS, ["tail"]),
                "planes",
                (("f.tail", "tail"),),
                (Named("p.tail", "`tail`"), Named("p.model", "`model`")),
            ),
            "tail = `f.tail`",
            "model = `p.model`",
        ),
    ),
    (
        "SELECT f.origin, model FROM flights f LEFT JOIN planes p USING (tail) WHERE f.delay > 0",
        project(
            AsOf(
                qualified("f", Filter(FLIGHTS, "`delay` > 0"), ["tail", "origin", "delay"]),
                "planes",
                (("f.tail", "tail"),),
                (Named("p.tail", "`tail`"), Named("p.model", "`model`")),
                outer=True,
            ),
            "origin = `f.origin`",
            "model = `p.model`",
        ),
    ),
    (
        "SELECT p.seats, w.wind FROM flights f JOIN planes p ON p.tail = f.tail JOIN weather w ON w.airport = f.origin",
        project(
            Join(
                (
                    AsOf(
                        qualified("f", FLIGHTS, ["tail", "origin"]),
                        "planes",
                        (("f.tail", "tail"),),
                        (Named("p.tail", "`tail`"), Named("p.seats", "`seats`")),
                    ),
                    qualified("w", WEATHER, ["airport", "wind"]),
                ),
                (Equality(1, "w.airport", 0, "f.origin"),),
            ),
            "seats = `p.seats`",
            "wind = `w.wind`",
        ),
    ),
    (
        "SELECT f.tail, c.name FROM flights f JOIN cities c ON c.code = f.origin",
        project(
            Join(
                (qualified("f", FLIGHTS, ["tail", "origin"]), qualified("c", "cities", ["code", "name"])),
                (Equality(1, "c.code", 0, "f.origin"),),
            ),
            "tail = `f.tail`",
            "name = `c.name`",
        ),
    ),
    # outer joins
    (
        "SELECT c.k, e.v FROM calls c LEFT JOIN events e ON c.k = e.k AND e.v > 1 AND c.v < e.v WHERE c.v > 0",
        project(
            OuterJoin(
                qualified("c", Filter(CALLS, "`v` > 0"), ["k", "v"]),
                qualified("e", Filter(EVENTS, "`v` > 1"), ["k", "v"]),
                "left",
                (("c.k", "e.k"),),
                "`c.v` < `e.v`",
            ),
            "k = `c.k`",
            "v = `e.v`",
        ),
    ),
    (
        "SELECT k FROM calls FULL JOIN events USING (k)",
        project(
            OuterJoin(qualified("calls", CALLS, ["k"]), qualified("events", EVENTS, ["k"]), "full", (("calls.k", "events.k"),)),
            "k = coalesce(`calls.k`, `events.k`)",
        ),
    ),
    # sub-queries in WHERE
    (
        "SELECT k FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.k = c.k AND e.v > 1)",
        project(
            AntiJoin(qualified("c", CALLS, ["k"]), project(Filter(EVENTS, "`v` > 1"), "e.k = `k`"), (("c.k", "e.k"),)),
            "k = `c.k`",
        ),
    ),
    (
        "SELECT v FROM calls WHERE k IN (SELECT k FROM events)",
        project(
            Join(
                (qualified("calls", CALLS, ["k", "v"]), Distinct(project(EVENTS, "events.k = `k`"))),
                on("calls.k", "events.k"),
            ),
            "v = `calls.v`",
        ),
    ),
    (
        "SELECT v FROM calls WHERE coalesce(v + 1, 0) NOT IN (SELECT v FROM calls WHERE v > 0) AND v > 0",
        project(
            AntiJoin(
                qualified("calls", Filter(CALLS, "`v` > 0"), ["v"], "calls.#1 = coalesce(`v` + 1, 0)"),
                project(Filter(CALLS, "`v` > 0"), "calls#1.v = `v`"),
                (("calls.#1", "calls#1.v"),),
            ),
            "v = `calls.v`",
        ),
    ),
    # DISTINCT and set operations
    ("SELECT DISTINCT k FROM calls", Distinct(project(CALLS, "k"))),
    ("SELECT k FROM calls UNION ALL SELECT tail FROM flights", UnionAll((project(CALLS, "k"), project(FLIGHTS, "k = `tail`")))),
    ("SELECT k FROM calls UNION SELECT k FROM events", Distinct(UnionAll((project(CALLS, "k"), project(EVENTS, "k"))))),
    ("SELECT k, v FROM calls EXCEPT ALL SELECT k, v FROM events", BagDifference(CALLS, project(EVENTS, "k", "v"))),
    (
        "SELECT k, size(array(v)) AS n FROM calls EXCEPT ALL SELECT k, CAST(v AS BIGINT) AS n FROM events",
        BagDifference(
            project(project(CALLS, "k", "n = size(array(`v`))"), "k", "n = CAST(`n` AS bigint)"),
            project(EVENTS, "k", "n = CAST(`v` AS BIGINT)"),
        ),
    ),
    (
        "SELECT named_struct('n', length(k)).n AS n FROM calls EXCEPT ALL SELECT CAST(v AS BIGINT) AS n FROM events",
        BagDifference(
            project(project(CALLS, "n = named_struct('n', length(`k`)).n"), "n = CAST(`n` AS bigint)"),
            project(EVENTS, "n = CAST(`v` AS BIGINT)"),
        ),
    ),
    (
        "SELECT k FROM calls INTERSECT SELECT k FROM events",
        project(
            Join((Distinct(project(CALLS, "k")), Distinct(project(EVENTS, "#2.k = `k`"))), on("k", "#2.k"), None, null_safe=True),
            "k",
        ),
    ),
    # GROUP BY
    ("SELECT k, count(*) AS n FROM calls GROUP BY k", Group(project(CALLS, "k"), ("k",), (COUNT,))),
    ("SELECT count(1) AS n FROM calls", Group(project(CALLS), (), (COUNT,))),
    (
        "SELECT upper(k) AS u, sum(v + 1) AS s, mean(v) AS m, count(DISTINCT k, v) AS d FROM calls GROUP BY upper(k)",
        Group(
            project(CALLS, "u = upper(`k`)", "#1 = `v` + 1", "v", "k"),
            ("u",),
            (
                AggregateCall("s", "sum", "#1", "sum(`#1`)"),
                AggregateCall("m", "avg", "v", "avg(`v`)"),
                AggregateCall("d", "count", "k", "count(DISTINCT `k`, `v`)", distinct=True),
            ),
        ),
    ),
    (
        "SELECT max(v) - min(v) AS spread FROM calls GROUP BY k HAVING count(v) > 1",
        project(
            Filter(
                Group(
                    CALLS,
                    ("k",),
                    (
                        AggregateCall("#1", "max", "v", "max(`v`)"),
                        AggregateCall("#2", "min", "v", "min(`v`)"),
                        AggregateCall("#3", "count", "v", "count(`v`)"),
                    ),
                ),
                "`#3` > 1",
            ),
            "spread = `#1` - `#2`",
        ),
    ),
    (
        "SELECT count(k, v) AS n, percentile(v, 0.5) AS p FROM calls",
        Group(
            project(CALLS, "#1 = CASE WHEN NOT `k` IS NULL AND NOT `v` IS NULL THEN 1 END", "v"),
            (),
            (AggregateCall("n", "count", "#1", "count(`#1`)"), AggregateCall("p", "percentile", "v", "percentile(`v`, 0.5)")),
        ),
    ),
    ("SELECT k FROM calls GROUP BY k", Distinct(project(CALLS, "k"))),
    (
        "SELECT k, count(*) AS n FROM time_window(events, INTERVAL 1 HOUR, internal => true) GROUP BY k",
        Changes(Group(project(TimeWindow(EVENTS, HOUR, internal=True), "k"), ("k",), (COUNT,))),
    ),
    (
        "SELECT count(*) AS n FROM row_window(events, 10, internal => true)",
        Changes(Group(project(Top(EVENTS, (), (), 10)), (), (COUNT,))),
    ),
    # first rows
    (
        "SELECT tail FROM flights ORDER BY delay DESC, 1 LIMIT 3",
        project(
            Top(
                project(FLIGHTS, "tail", "delay"),
                (),
                (Order("delay", descending=True, nulls_first=False), Order("tail")),
                3,
            ),
            "tail",
        ),
    ),
    (
        "SELECT tail, origin, delay FROM flights QUALIFY row_number() OVER (PARTITION BY origin ORDER BY delay NULLS LAST) < 3",
        Top(project(FLIGHTS, "tail", "origin", "delay"), ("origin",), (Order("delay", nulls_first=False),), 2),
    ),
]


@pytest.mark.parametrize(("sql", "expected"), TREES, ids=[sql for sql, _ in TREES])
def test_trees(sql: str, expected: Operator) -> None:
    """A query becomes exactly this plan."""
    assert tree(sql) == expected


def test_output_windows() -> None:
    """An output window is the root of a plan, over results that come and stay."""
    sql = "SELECT c.k FROM calls c JOIN events e ON c.k = e.k"
    view_plan = plan(sql, output_length=HOUR)
    assert view_plan.tree == OutputWindow(tree(sql), HOUR, None)
    assert str(view_plan.label) == "WKS(1h)"
    assert plan(sql, output_rows=10).tree == OutputWindow(tree(sql), None, 10)


VERBATIM = [
    "to_date(k, 'yyyyMMdd')",
    "nvl(k, 'x')",
    "timestampadd(SECOND, v, gone)",
    "date_trunc('HOUR', gone)",
    "regexp_extract(k, '\\\\d+', 0)",
    "'it''s' || \"a\"",
    "gone + INTERVAL '1' DAY",
    "transform(parts, x -> x + v)",
    "CASE WHEN v > 1 THEN 'a' ELSE 'b' END",
    "CAST(v AS DECIMAL(10, 2))",
    "log(2, v)",
    "left(k, 2)",
    "k LIKE 'a%' ESCAPE '/'",
    "parts[0] + element_at(parts, 1)",
    "named_struct('k', k, 'w', v).w",
    "v DIV 2 + v % 2 - -v",
]


@pytest.mark.parametrize("sql", VERBATIM)
def test_expressions_stay_as_written(sql: str) -> None:
    """What Spark evaluates is the user's text, but for the names of columns."""
    table = "flights f" if "gone" in sql else "events e"
    sql = sql.replace("k", "tail").replace("v,", "delay,") if "gone" in sql else sql
    (column,) = tree(f"SELECT {sql} AS x FROM {table}").columns  # type: ignore[union-attr]
    assert as_written(column.sql) == sql


def test_intervals_of_several_units_stay_one_operand() -> None:
    """INTERVAL 2 HOURS 3 MINUTES is subtracted whole."""
    (column,) = tree("SELECT gone - INTERVAL 2 HOURS 3 MINUTES AS x FROM flights").columns  # type: ignore[union-attr]
    assert column.sql == "`gone` - (INTERVAL '2' HOURS + INTERVAL '3' MINUTES)"


def test_a_compiled_sqlglot_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another tool may have installed it in the same environment; its parser cannot be extended."""
    monkeypatch.setattr(sqlglot.parser, "__file__", "/python/sqlglot/parser.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(PlatformError, match="pip uninstall sqlglotc"):
        parse_query("SELECT k FROM calls")
