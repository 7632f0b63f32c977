"""A view is judged by Spark's answer to its query: what floats and orders leave open is no fault, and everything else is one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from warehouse.catalog.model import Column, View
from warehouse.time import DAY
from warehouse.views.plans import compile_views
from warehouse.views.verification.comparison import Difference
from warehouse.views.verification.judgement import Doubt, judged
from warehouse.views.verification.verifying_query import VerifyingQuery, verifying_query

from .catalogs import catalog, stream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.views.algebra import Node

COLUMNS = {"k": "string", "n": "bigint", "f": "double", "g": "float", "st": "struct<f:double,y:string>", "fs": "array<double>"}
ROWS = """
SELECT * FROM VALUES
    ('p', 1L, 0.5D, 0.25F, named_struct('f', 1.5D, 'y', 'u'), array(1.5D, NULL)),
    ('p', 2L, 1e9D, 0.5F, named_struct('f', 2.5D, 'y', 'u'), array(2.5D)),
    ('q', 3L, -1e9D, NULL, NULL, NULL),
    ('q', 4L, 1e9D, 1.5F, named_struct('f', NULL, 'y', 'v'), array()),
    ('r', 5L, NULL, double('NaN'), named_struct('f', double('NaN'), 'y', 'v'), array(double('Infinity')))
AS t (k, n, f, g, st, fs)
"""
_SUM = "SELECT k, sum(f) AS v, count(*) AS n FROM a GROUP BY k"


def _nodes(sql: str) -> Sequence[Node]:
    columns = tuple(Column(*name_and_type) for name_and_type in COLUMNS.items())
    a = replace(stream("flights", expires="landed", lifetime=DAY, key="k"), name="a", columns=columns)
    key = "n" if "AS n FROM a ORDER" in sql else "k"
    (view,) = compile_views(replace(catalog(View("v", sql, (key,))), streams=(a,), relations=()))
    return view.nodes


class _Judge:
    """Judges views that hold an answer of the test's."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session.newSession()
        self.session.conf.set("spark.sql.shuffle.partitions", "1")
        self.a = self.session.sql(ROWS).cache()
        self.a.createOrReplaceTempView("a")

    def __call__(self, sql: str, held: str) -> Difference | Doubt | None:
        nodes, query = _nodes(sql), verifying_query(sql, [])
        assert isinstance(query, VerifyingQuery)
        tables = {"a": self.a, **{node.table: self._stored(node) for node in nodes}, "v": self.session.sql(held)}

        def rows(table: str) -> DataFrame:
            return tables[table].selectExpr("*", "timestamp_micros(0) AS _ts", "timestamp_micros(9) AS _exp")

        verdict = judged(self.session, query, nodes, rows, 5, {"a": "a", "v": "v"})
        self.a.createOrReplaceTempView("a")  # it was dropped with the query
        return verdict

    def _stored(self, node: Node) -> DataFrame:
        """A hidden table; only its types are looked at."""
        kinds = {"k": "string", "n": "bigint"}
        columns = ", ".join(f"CAST(NULL AS {kinds.get(name, 'double')}) AS `{name}`" for name in node.columns)
        return self.session.sql(f"SELECT {columns}").limit(0)


@pytest.fixture(scope="module")
def judge(spark: SparkSession) -> _Judge:
    """Return what judges views over the rows above."""
    return _Judge(spark)


OWN = [
    "SELECT k, n, f, g, st, fs FROM a",
    "SELECT k, sum(f) AS v, avg(g) AS w, stddev(f) AS x FROM a GROUP BY k",
    "SELECT k, array(st.f, NULL) AS v, named_struct('a', array(named_struct('b', f))) AS w FROM a",
]


@pytest.mark.parametrize("sql", OWN)
def test_an_answer_is_itself(judge: _Judge, sql: str) -> None:
    """Whatever nulls, NaN and infinities it has, also inside structures and arrays."""
    assert judge(sql, sql) is None


CLOSE = {
    "sums": (_SUM, _SUM.replace("sum(f)", "sum(f) * (1 + 1e-14D)")),
    "sums near zero": (_SUM, _SUM.replace("sum(f)", "sum(f) + 3e-7D")),
    "differences of sums": (
        "SELECT k, sum(f) - sum(g) AS v FROM a GROUP BY k", "SELECT k, sum(f) - sum(g) + 1e-6D AS v FROM a GROUP BY k"
    ),
    "sums in structures": (
        "SELECT k, named_struct('s', sum(f)) AS v FROM a GROUP BY k",
        "SELECT k, named_struct('s', sum(f) * (1 + 1e-14D)) AS v FROM a GROUP BY k",
    ),
    "sums in arrays": (
        "SELECT k, array(named_struct('s', avg(f), 'n', 1)) AS v FROM a GROUP BY k",
        "SELECT k, array(named_struct('s', avg(f) * (1 + 1e-12D), 'n', 1)) AS v FROM a GROUP BY k",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOSE.values(), ids=CLOSE)
def test_last_digits_are_no_difference(judge: _Judge, case: tuple[str, str]) -> None:
    """Sums that are added in another order are the same, wherever they stand and however near to zero they are."""
    assert judge(*case) is None


def test_last_digits_of_many_rows_are_no_difference(judge: _Judge) -> None:
    """More than are looked at one by one."""
    many = "(SELECT CAST(id AS string) AS k, id / 7D AS f FROM range(3000))"
    judge.session.sql(f"SELECT t.k, 1L AS n, t.f, 0F AS g, NULL AS st, NULL AS fs FROM {many} t").createOrReplaceTempView("a")
    sql = "SELECT k, array(sum(f)) AS v FROM a GROUP BY k"
    rows = judge.a
    judge.a = judge.session.table("a")
    try:
        assert judge(sql, sql.replace("sum(f)", "sum(f) * (1 + 1e-14D)")) is None
        assert isinstance(judge(sql, sql.replace("sum(f)", "sum(f) * (1 + 1e-3D)")), Difference)
    finally:
        judge.a = rows
        rows.createOrReplaceTempView("a")


OPEN = {
    "text": ("SELECT k, CAST(sum(f) AS string) AS v FROM a GROUP BY k", "'0.30000000000000004'"),
    "decimal": ("SELECT k, CAST(sum(f) AS decimal(20,2)) AS v FROM a GROUP BY k", "CAST(sum(f) AS decimal(20,2)) + 0.01"),
    "rounded": ("SELECT k, round(avg(f), 1) AS v FROM a GROUP BY k", "round(avg(f), 1) + 0.1"),
    "compared": ("SELECT k, sum(f) > 1.5 AS v FROM a GROUP BY k", "NOT sum(f) > 1.5"),
}


@pytest.mark.parametrize("case", OPEN.values(), ids=OPEN)
def test_what_is_computed_from_sums_is_open(judge: _Judge, case: tuple[str, str]) -> None:
    """Texts, decimals and comparisons of sums are open; other columns beside them are not."""
    sql, other = case
    value = sql[len("SELECT k, ") : sql.index(" AS v FROM")]
    verdict = judge(sql, sql.replace(value, f"CAST({other} AS {_kind(judge, sql)})"))
    assert isinstance(verdict, Doubt), verdict
    assert verdict.reason.startswith("only v differs, computed from a sum of floats")
    wrong = judge(sql, sql.replace("SELECT k", "SELECT upper(k) AS k"))
    assert isinstance(wrong, Difference)


def _kind(judge: _Judge, sql: str) -> str:
    return dict(judge.session.sql(sql).dtypes)["v"]


CHOSEN = (
    "SELECT k, count(*) AS n FROM a GROUP BY k HAVING sum(f) > 1.5",
    "SELECT k, sum(f) AS v FROM a GROUP BY k ORDER BY sum(f) DESC LIMIT 2",
    "SELECT v, count(*) AS k FROM (SELECT k, avg(f) AS v FROM a GROUP BY k) t GROUP BY v",
    "SELECT DISTINCT v AS k FROM (SELECT k, CAST(avg(f) AS string) AS v FROM a GROUP BY k) t",
    "SELECT a.k, a.n FROM a JOIN (SELECT k, sum(f) AS v FROM a GROUP BY k) t ON a.f = t.v",
)


@pytest.mark.parametrize("sql", CHOSEN)
def test_rows_that_a_sum_chooses_are_open(judge: _Judge, sql: str) -> None:
    """A condition, an order, a group or a join chooses rows by a sum."""
    verdict = judge(sql, f"SELECT * FROM ({sql}) WHERE false")
    if judge.session.sql(sql).count():
        assert isinstance(verdict, Doubt)
        assert verdict.reason.startswith("it chooses rows by a sum of floats")


WRONG = {
    "a row more": (_SUM, f"{_SUM} UNION ALL SELECT 's', 1D, 1L"),
    "another sum": (_SUM, _SUM.replace("sum(f)", "sum(f) * 1.001D")),
    "another count beside a sum": (_SUM, _SUM.replace("count(*)", "count(*) + 1")),
    "a null for a sum": (_SUM, _SUM.replace("sum(f)", "CAST(NULL AS double)")),
    "an exact sum": ("SELECT k, sum(n) AS v FROM a GROUP BY k", "SELECT k, sum(n) + 1 AS v FROM a GROUP BY k"),
    "an exact text": (
        "SELECT k, CAST(sum(n) AS string) AS v FROM a GROUP BY k", "SELECT k, CAST(sum(n) + 1 AS string) AS v FROM a GROUP BY k"
    ),
    "exact rows": (
        "SELECT k, sum(n) AS v FROM a GROUP BY k HAVING sum(n) > 4", "SELECT k, sum(n) AS v FROM a GROUP BY k HAVING sum(n) > 5"
    ),
    "a float inside a structure": ("SELECT k, st FROM a", "SELECT k, named_struct('f', st.f + 1, 'y', st.y) AS st FROM a"),
    "a null inside an array": ("SELECT k, fs FROM a", "SELECT k, transform(fs, e -> coalesce(e, 0D)) AS fs FROM a"),
    "no structure": ("SELECT k, st FROM a", "SELECT k, coalesce(st, named_struct('f', NULL, 'y', NULL)) AS st FROM a"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_everything_else_is_a_difference(judge: _Judge, case: tuple[str, str]) -> None:
    """Also beside sums of floats."""
    assert isinstance(judge(*case), Difference)
