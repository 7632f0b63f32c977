"""What a view's nodes refer to is what Spark finds in its text, or the view is refused with both: planted faults are found."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import pytest
from pyspark.errors import PySparkException
from sqlglot import exp

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.model import Column, View
from warehouse.errors import ConfigurationError
from warehouse.views.algebra import Node
from warehouse.views.language.scope import Scope
from warehouse.views.language.temporal_text import for_spark
from warehouse.views.language.window_calls import without_windows
from warehouse.views.maintenance.analysis import Shape
from warehouse.views.plans import judged_views
from warehouse.views.verification.analyser import Analyser
from warehouse.views.verification.plan_query import outer_lookups, query_of
from warehouse.views.verification.plan_references import UnknownPlanError, references
from warehouse.views.verification.references import ColumnSource, References, agree

from .named_cases import CASES, STRUCTURES, VALUES
from .named_cases import TABLES as NAMED
from .test_accepted_before import accepted, catalog_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.views.plans import ViewPlan

Tables = dict[str, tuple[ColumnRecord, ...]]


def _catalog(tables: Mapping[str, Mapping[str, str]], views: Sequence[View] = ()) -> Catalog:
    """Return the catalog of the recorded queries with other streams; ``r`` stays a relation."""
    base = catalog_with()
    streams = tuple(
        replace(base.streams[0], name=name, columns=tuple(Column(*name_and_type) for name_and_type in kinds.items()))
        for name, kinds in tables.items() if name != "r"
    )  # fmt: skip
    return replace(base, streams=streams, views=tuple(views))


def _planned(catalog: Catalog) -> tuple[list[ViewPlan], Tables]:
    """Return the plans of a catalog's views, and the columns of the tables that they can read."""
    plans, _ = judged_views(catalog)
    tables: Tables = {
        source.name: tuple(ColumnRecord(column.name, column.type) for column in source.columns) for source in catalog.sources
    }
    for plan in plans:
        if plan.name in {"v1", "v2"}:
            tables[plan.name] = tuple(ColumnRecord(name, kind or "bigint") for name, kind in plan.columns.items())
    return list(plans), tables


class _Both:
    """Analyses texts and plans over the same empty tables."""

    def __init__(self, spark: SparkSession, tables: Tables) -> None:
        self.analyser = Analyser(spark.newSession())
        self.analyser._declare(tables)
        self.tables = {name: tuple(column.name for column in columns) for name, columns in tables.items()}

    def of(self, sql: str, lookups: Mapping[str, tuple[str, ...]] | None = None) -> References:
        """Return what a query refers to."""
        rows = self.analyser.session.sql(without_windows(for_spark(sql)))
        return references(str(rows._jdf.queryExecution().analyzed().toJSON()), lookups)

    def agree(self, sql: str, nodes: Sequence[Node]) -> bool:
        """Whether nodes refer to what a text refers to."""
        lookups = outer_lookups(nodes)
        return agree(self.of(query_of(nodes, self.tables), lookups), self.of(sql, lookups))


def _views(queries: Mapping[str, tuple[str, str]]) -> list[View]:
    return [View(name, sql, (key,)) for name, (sql, key) in queries.items()]


def _unlike(spark: SparkSession, catalog: Catalog) -> tuple[list[str], int]:
    """Return the views whose nodes have other references or cannot be judged, and the number of views that Spark reads."""
    plans, tables = _planned(catalog)
    both = _Both(spark, tables)
    unlike, count = [], 0
    for plan in plans:
        try:
            same = both.agree(plan.view.sql, plan.nodes)
        except UnknownPlanError as error:
            unlike.append(f"{plan.view.sql}: {error}")
        except PySparkException:  # the view is refused for that
            continue
        else:
            unlike += [] if same else [plan.view.sql]
        count += 1
    return unlike, count


def test_nodes_refer_to_what_their_text_refers_to(spark: SparkSession) -> None:
    """Queries in which a name could be taken for another, of every clause; none is left out of the comparison."""
    cases = {**CASES, **VALUES, **STRUCTURES}
    views = _views({f"q{number}": (case.sql, case.key) for number, case in enumerate(cases.values())})
    kinds = {name: {**columns, "b": "timestamp", "e": "timestamp"} for name, columns in NAMED.items()}
    assert _unlike(spark, _catalog(kinds, views)) == ([], len(cases))


@pytest.mark.long
def test_nodes_of_recorded_queries_refer_to_what_their_text_refers_to(spark: SparkSession) -> None:
    """Eight hundred queries of every construct."""
    views = _views({f"q{number}": (sql, key) for number, (sql, key, *_) in enumerate(accepted())})
    unlike, compared = _unlike(spark, catalog_with(*views))
    assert unlike == []
    assert compared > 800


_TIMES = {"b": "timestamp", "e": "timestamp"}
SWAPPED = {
    "a": {"k": "string", "o": "string", "n": "int", "m": "int", "st": "struct<x:int,y:int>", **_TIMES},
    "c": {"k": "string", "o": "string", "q": "int", "u": "int", **_TIMES},
}
"""Columns in pairs of one type, so that no type tells them apart."""
PLANTED = {
    "a column": ("SELECT k, n FROM a", '"sql":"`n`"', '"sql":"`m`"'),
    "a column inside an expression": ("SELECT k, n * 2 + m AS v FROM a", "`n`", "`m`"),
    "a field": ("SELECT k, st.x AS v FROM a", "`x`", "`y`"),
    "a field for a column": ("SELECT k, st.x AS v FROM a", "(`st`).`x`", "`n`"),
    "a column of a sub-query": ("SELECT k, v FROM (SELECT k, n AS v, m AS w FROM a) t WHERE w > 1", "`m`", "`n`"),
    "a condition": ("SELECT k, n FROM a WHERE n > 1", "`n` > 1", "`m` > 1"),
    "an equality": ("SELECT a.k, c.q FROM a JOIN c ON a.k = c.k", '"sql":"`k`"},{"name":"c.q"', '"sql":"`o`"},{"name":"c.q"'),
    "the rest of ON": ("SELECT a.k, c.q FROM a JOIN c ON a.k = c.k AND a.n < c.q + a.m", "`a.n` <", "`a.m` <"),
    "an outer join": ("SELECT a.k, c.q FROM a LEFT JOIN c ON a.k = c.k", '"on":[["a.k","c.k"]]', '"on":[["a.k","c.q"]]'),
    "the rest of an outer join": (
        "SELECT a.k, c.q FROM a LEFT JOIN c ON a.k = c.k AND c.q + c.u > a.n + a.m AND c.q > a.n",
        "`c.q` > `a.n`", "`c.q` > `a.m`",
    ),
    "NOT EXISTS": ("SELECT k, n FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = a.k)", '"c.k","sql":"`k', '"c.k","sql":"`o'),
    "NOT IN": ("SELECT k, n FROM a WHERE coalesce(n, 0) NOT IN (SELECT coalesce(q, 0) FROM c)", "coalesce(`n`", "coalesce(`m`"),
    "IN": ("SELECT k, n FROM a WHERE n IN (SELECT q FROM c)", '"sql":"`q`"', '"sql":"`u`"'),
    "a group": ("SELECT upper(k) AS k, o, sum(n) AS s FROM a GROUP BY upper(k), o", "upper(`k`)", "upper(`o`)"),
    "a group of counts": ("SELECT count(*) AS k, max(k) AS l FROM a GROUP BY n", '"sql":"`n`"', '"sql":"`m`"'),
    "an aggregate": ("SELECT k, sum(n) AS s, sum(m) AS t FROM a GROUP BY k", "sum(`n`)", "sum(`m`)"),
    "HAVING": ("SELECT k, sum(n) AS s, sum(m) AS t FROM a GROUP BY k HAVING sum(n) > 1", "`s` > 1", "`t` > 1"),
    "an order": ("SELECT k, n, m FROM a ORDER BY n LIMIT 2", '"column":"n"', '"column":"m"'),
    "a partition": (
        "SELECT k, o, n FROM (SELECT k, o, n, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM a) WHERE r <= 2",
        '"partition":["k"]', '"partition":["o"]',
    ),
    "a side of a union": ("SELECT k, n FROM a UNION ALL SELECT k, q FROM c", '"sql":"`q`"', '"sql":"`u`"'),
    "a side of EXCEPT ALL": ("SELECT k, n FROM a EXCEPT ALL SELECT k, q FROM c", '"sql":"`q`"', '"sql":"`u`"'),
    "INTERSECT": ("SELECT k, n FROM a INTERSECT SELECT k, q FROM c", '"sql":"`q`"', '"sql":"`u`"'),
    "the other scan of a table": (
        "SELECT x.k, x.n AS v, y.n AS w FROM a x JOIN a y ON x.k = y.o WHERE y.m > 1", '"v","sql":"`x.n`"', '"v","sql":"`y.n`"'
    ),
    "a lookup's key": (
        "SELECT a.k, a.o, rn.model AS v FROM a JOIN rn ON rn.k = a.k", '"on":[["a.k","k"]]', '"on":[["a.o","k"]]'
    ),
    "the key of a lookup that keeps all rows": (
        "SELECT a.k, a.o, rn.q FROM a LEFT JOIN rn ON rn.k = a.k AND rn.q > a.n", '"on":[["a.k","k"]]', '"on":[["a.o","k"]]'
    ),
    "the rest of a lookup that keeps all rows": (
        "SELECT a.k, rn.q, a.m FROM a LEFT JOIN rn ON rn.k = a.k AND rn.q > a.n", "> `a.n`", "> `a.m`"
    ),
    "a column of a lookup that keeps all rows": (
        "SELECT a.k, rn.model AS v FROM a LEFT JOIN rn ON rn.k = a.k AND rn.q > a.n", "THEN `rn.model`", "THEN `rn.k`"
    ),
}  # fmt: skip
"""A query; what its plan has, as JSON; what a fault makes of that."""


def _plan_of(sql: str) -> tuple[ViewPlan, Tables]:
    plans, tables = _planned(_catalog(SWAPPED, [View("v", sql, ("k",))]))
    (plan,) = plans
    return plan, tables


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name: str, spark: SparkSession) -> None:
    """In each faulty plan one name is replaced by another column of the same type."""
    sql, own, other = PLANTED[name]
    plan, tables = _plan_of(sql)
    both = _Both(spark, tables)
    assert both.agree(sql, plan.nodes)
    encoded = msgspec.json.encode(plan.nodes).decode()
    assert own in encoded, encoded
    for count in range(1, encoded.count(own) + 1):
        before, after = own.join(encoded.split(own)[:count]), own.join(encoded.split(own)[count:])
        wrong = msgspec.json.decode(before + other + after, type=tuple[Node, ...])
        assert not both.agree(sql, wrong), query_of(wrong, both.tables)


def test_a_view_whose_name_is_resolved_to_another_column_is_refused_with_both(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The structure's field was once taken for the column of that name."""
    sql = "SELECT k, st.x AS v FROM (SELECT k, st, n AS x FROM a) t"
    right, tables = _plan_of(sql)
    shape = Shape((ColumnRecord("k", "string"), ColumnRecord("v", "int")))
    analyser = Analyser(spark.newSession())
    analyser.check("v", sql, tables, shape, right.nodes)
    own = Scope.resolve

    def wrong(scope: Scope, column: exp.Column) -> exp.Expr:
        return own(scope, exp.Column(this=column.parts[-1].copy()) if column.table == "st" else column)

    monkeypatch.setattr(Scope, "resolve", wrong)
    plan, _ = _plan_of(sql)
    with pytest.raises(ConfigurationError) as error:
        analyser.check("v", sql, tables, shape, plan.nodes)
    assert error.value.problems[0].found.endswith("column v from a.n where Spark has it from a.st.x")


def test_columns_are_compared_in_the_order_of_the_table(spark: SparkSession) -> None:
    """A group has its keys first, whatever the order of the query's columns."""
    for sql in ("SELECT count(*) AS s, k FROM a GROUP BY k", "SELECT sum(n) AS s, o, k FROM a GROUP BY k, o HAVING sum(m) > 1"):
        plan, tables = _plan_of(sql)
        assert _Both(spark, tables).agree(sql, plan.nodes), sql


_KEPT = "SELECT a.k, rn.q FROM a LEFT JOIN rn ON rn.k = a.k"
KEPT = (
    _KEPT,
    f"{_KEPT} AND rn.q > a.n",
    f"{_KEPT} AND 1 = 0",
    f"{_KEPT} AND rn.k = a.o AND rn.model <> a.o WHERE rn.q IS NULL",
    "SELECT a.k, rn.q FROM a LEFT JOIN rn ON rn.k = 'x' AND 'y' = rn.k AND rn.k = a.k",
    "SELECT a.k, a.m FROM rn RIGHT JOIN a ON a.k = rn.k AND a.n < 5",
    "SELECT k, coalesce(rn.q, a.n) AS v, rn.model FROM a LEFT JOIN rn USING (k) WHERE a.m > 1",
    "SELECT a.k, max(rn.q) AS v FROM a LEFT JOIN rn ON rn.k = upper(a.k) AND rn.q > a.st.x GROUP BY a.k",
    "SELECT rn.model AS k, count(*) AS v FROM a LEFT JOIN rn ON a.n = rn.k AND a.m > 0 GROUP BY rn.model",
    "SELECT a.k, x.q, y.q AS v FROM a LEFT JOIN rn x ON x.k = a.k AND x.q > a.n LEFT JOIN rn y ON y.k = x.model AND y.q < x.q",
    "SELECT a.k, c.q, rn.model FROM a JOIN c ON a.k = c.k LEFT JOIN rn ON rn.k = c.o AND rn.q > a.n + c.u",
    "SELECT a.k, x.q, y.q AS v FROM a LEFT JOIN rn x ON x.k = a.k LEFT JOIN rn y ON y.k = x.k AND y.q = x.q",
    "SELECT a.k, rn.q FROM a JOIN c ON a.k = c.k LEFT JOIN rn ON rn.k = rn.model AND rn.k = c.o AND rn.k = a.k",
    "SELECT k, CASE WHEN q > n THEN q END AS v FROM (SELECT a.k, a.n, rn.q FROM a LEFT JOIN rn ON rn.k = a.k AND rn.q > a.m) t",
)  # fmt: skip


@pytest.mark.parametrize("sql", KEPT)
def test_lookups_that_keep_all_rows_are_compared(sql: str, spark: SparkSession) -> None:
    """The other conditions of ON decide which columns are null: their columns are among the sources."""
    plan, tables = _plan_of(sql)
    both = _Both(spark, tables)
    assert both.agree(sql, plan.nodes)
    assert {source.table for _, sources in both.of(sql, outer_lookups(plan.nodes)).others for source in sources} >= {"a", "rn"}


def test_wide_tables_are_compared_to_the_last_column(spark: SparkSession) -> None:
    """Spark cuts long lists where it prints a plan for people."""
    kinds = {"a": {"k": "string", **{f"n{number}": "int" for number in range(90)}, "b": "timestamp", "e": "timestamp"}}
    plans, tables = _planned(_catalog(kinds, [View("v", "SELECT * FROM a WHERE n89 > n88", ("k",))]))
    both = _Both(spark, tables)
    assert both.agree("SELECT * FROM a WHERE n89 > n88", plans[0].nodes)
    assert not both.agree("SELECT * FROM a WHERE n89 > n87", plans[0].nodes)
    condition = frozenset({ColumnSource("a", 0, "n88"), ColumnSource("a", 0, "n89")})
    assert both.of("SELECT * FROM a WHERE n89 > n88").others == {("condition", condition)}


def test_of_a_plan_that_is_not_known_nothing_is_said(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """A node or a form that another version of Spark has is no reason to refuse a view."""
    for plan in ("[]", "{}", '[{"class":"x.Generate","num-children":0}]', '[{"class":"x.Project","num-children":1}]'):
        with pytest.raises(UnknownPlanError):
            references(plan)
    analyser = Analyser(spark.newSession())
    sql = "SELECT k, n FROM a"
    plan, tables = _plan_of(sql)
    unreadable = [msgspec.structs.replace(plan.nodes[-1], table="v.1"), plan.nodes[-1]]
    with caplog.at_level("DEBUG", "warehouse"):
        analyser.check("v", sql, tables, Shape((ColumnRecord("k", "string"), ColumnRecord("n", "int"))), unreadable)
    assert caplog.text == ""
