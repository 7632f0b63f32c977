"""The columns of a view are those that Spark's analyser gives its text, or the view is refused with both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.catalog.declaration import ColumnRecord
from warehouse.errors import ConfigurationError
from warehouse.views.language.window_calls import without_windows
from warehouse.views.maintenance.analysis import Shape
from warehouse.views.verification.analyser import Analyser

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {"a": (ColumnRecord("k", "string"), ColumnRecord("n", "int"), ColumnRecord("st", "struct<x:int,y:string>"))}


def _shape(*columns: str, never_null: str = "") -> Shape:
    pairs = (column.split(" ", maxsplit=1) for column in columns)
    return Shape(tuple(ColumnRecord(*pair) for pair in pairs), never_null=frozenset(never_null.split()))


AGREE = {
    "SELECT k, st.x AS v FROM (SELECT k, st, n AS x FROM a) t": _shape("k string", "v int"),
    "SELECT k, count(*) AS n FROM time_window(a, INTERVAL 1 HOUR, internal => true) GROUP BY k": _shape(
        "k string", "n bigint", never_null="n"
    ),
    "SELECT K, max(struct(n, k)).n FROM a GROUP BY k": _shape("k string", "n int"),
    "SELECT k, n FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY n) <= 2": _shape("k string", "n int"),
}
DIFFER = {
    "SELECT k, st.y AS v FROM a": (_shape("k string", "v int"), "v int where Spark has v string"),
    "SELECT k, n FROM a": (_shape("n int", "k string"), "n int where Spark has k string; k string where Spark has n int"),
    "SELECT k, n AS m FROM a": (_shape("k string"), "no column where Spark has m int"),
    "SELECT k, max(n) AS m FROM a GROUP BY k": (_shape("k string", "m int", never_null="m"), "no nulls in m"),
    "SELECT k, nowhere FROM a": (_shape("k string", "nowhere int"), "a query that Spark refuses"),
}


def test_columns_are_compared_with_what_spark_analyses(spark: SparkSession) -> None:
    """Names, order and types must be the same; a node may exclude more nulls than Spark does."""
    analyser = Analyser(spark.newSession())
    for sql, shape in AGREE.items():
        analyser.check("v", sql, TABLES, shape)
    for sql, (shape, message) in DIFFER.items():
        with pytest.raises(ConfigurationError) as error:
            analyser.check("v", sql, TABLES, shape)
        assert message in error.value.problems[0].found


@pytest.mark.parametrize(
    ("sql", "spark_has"),
    [
        ("SELECT ' time_window(a, 1) ' AS k FROM row_window(a, 3)", "SELECT ' time_window(a, 1) ' AS k FROM a"),
        ("SELECT k FROM time_window(a, INTERVAL '2' HOUR), b", "SELECT k FROM a, b"),
        ("SELECT w.k FROM Time_Window(row_window(a, 3), INTERVAL 2 HOURS) AS w", "SELECT w.k FROM a AS w"),
        ("SELECT k FROM row_window((SELECT k FROM b), 3) date", "SELECT k FROM (SELECT k FROM b) date"),
        ("SELECT k FROM row_window((SELECT k FROM b), 3);", "SELECT k FROM (SELECT k FROM b) AS row_window;"),
        ("SELECT k FROM row_window((SELECT k FROM b), 3) MINUS SELECT k FROM time_window(a, INTERVAL 1 DAY)",
         "SELECT k FROM (SELECT k FROM b) AS row_window MINUS SELECT k FROM a"),
        ("SELECT k FROM time_window((SELECT k, (1 + 2) AS n FROM a), INTERVAL 1 DAY) WHERE k > 'a'",
         "SELECT k FROM (SELECT k, (1 + 2) AS n FROM a) AS time_window WHERE k > 'a'"),
    ],
)  # fmt: skip
def test_windows_of_ours_are_taken_out_of_the_text(sql: str, spark_has: str) -> None:
    """What they are over stays under the name that it had; the rest of the text is not touched."""
    assert without_windows(sql) == spark_has
