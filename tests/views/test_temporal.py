"""Temporal functions mean the same to every engine, in views and at prompts (temporal-coalescing sheet, section 9)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.operations.projects import Project, stream, text
from warehouse import Warehouse
from warehouse.errors import QueryError
from warehouse.serving.guard import query_error
from warehouse.time import HOUR
from warehouse.views.describe import describe
from warehouse.views.language.dialect import parse_query
from warehouse.views.language.driver_sql import translated
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.temporal import with_plain_intervals
from warehouse.views.language.temporal_text import for_duckdb, for_spark

from .catalogs import plan
from .warehouses import asked, stored, view

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

PREDICATES = ("interval_overlaps", "interval_contains", "interval_before", "interval_after")
VECTORS = [
    ((1, 4), (4, 6), "meets", False, None), ((1, 4), (3, 6), "overlaps", True, (3, 4)),
    ((1, 6), (2, 3), "contains", True, (2, 3)), ((1, 4), (1, 6), "starts", True, (1, 4)),
    ((3, 6), (1, 6), "finishes", True, (3, 6)), ((2, 5), (2, 5), "equals", True, (2, 5)),
    ((5, 9), (1, 5), "met-by", False, None), ((1, 3), (5, 6), "before", False, None),
]  # fmt: skip
"""V11: x, y, Allen's relation, whether they overlap, their intersection."""
OPERATIONS = (
    *(f"{name}(x, y)" for name in PREDICATES), "interval_relation(x, y)", "interval_intersect(x, y).valid_from",
    "interval_intersect(x, y).valid_to", "duration(x, microsecond)", "duration(interval_intersect(x, y), 'microseconds')",
    "duration(x) >= INTERVAL 2 MICROSECONDS", "duration(y, millisecond) > 0.0015",
    "interval_overlaps(interval_intersect(x, y), valid(x.valid_from, y.valid_to))",
)  # fmt: skip


@dataclass(frozen=True)
class Model:
    """The functions of two intervals of whole numbers, by the sheet's words and nothing clever."""

    x: tuple[int, int]
    y: tuple[int, int]

    def row(self) -> tuple[object, ...]:
        """What each of `OPERATIONS` gives."""
        x, y, both = set(range(*self.x)), set(range(*self.y)), bool(range(*self.x)) and bool(range(*self.y))
        shared = sorted(x & y)
        bounds = (shared[0], shared[-1] + 1) if shared else (None, None)
        return (
            bool(shared),
            both and y <= x,
            both and max(x) < min(y),
            both and max(y) < min(x),
            relation(self.x, self.y) if both else None,
            *bounds,
            len(x),
            len(shared) or None,
            len(x) >= 2,
            len(y) > 1.5,
            bool(set(shared) & set(range(self.x[0], self.y[1]))),
        )


def relation(x: tuple[int, int], y: tuple[int, int]) -> str:
    """Return the name of the one of Allen's relations that holds, spelled as in the sheet."""
    (a, b), (c, d) = x, y
    holds_of = {
        "before": b < c, "meets": b == c, "overlaps": a < c < b < d, "starts": a == c and b < d, "during": a > c and b < d,
        "finishes": a > c and b == d, "equals": a == c and b == d, "after": a > d, "met-by": a == d,
        "overlapped-by": c < a < d < b, "started-by": a == c and b > d, "contains": a < c and b > d,
        "finished-by": a < c and b == d,
    }  # fmt: skip
    (name,) = [name for name, holds in holds_of.items() if holds]
    return name


PAIRS = [Model(x, y) for x, y in product(product(range(5), repeat=2), repeat=2)]
"""All pairs of intervals within five points, empty and reversed ones too."""


def _values(pairs: Sequence[Model], instant: str) -> str:
    rows = ", ".join(f"({', '.join(map(str, (number, *pair.x, *pair.y)))})" for number, pair in enumerate(pairs))
    columns = ", ".join(f"{instant}({bound}) AS {bound}" for bound in "abcd")
    return f"(SELECT n, {columns} FROM (VALUES {rows}) AS v (n, a, b, c, d))"


def _tables(pairs: Sequence[Model], instant: str) -> str:
    values = _values(pairs, instant)
    return (
        f"(SELECT n, a AS valid_from, b AS valid_to FROM {values} p) x JOIN "
        f"(SELECT n, c AS valid_from, d AS valid_to FROM {values} q) y ON x.n = y.n"
    )


@cache
def _duck() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _at_the_prompt(pairs: Sequence[Model], expressions: Sequence[str]) -> list[tuple[Any, ...]]:
    instants = [
        f"epoch_us({expression})" if ".valid_" in expression and "(interval" not in expression else expression
        for expression in expressions
    ]
    sql = for_duckdb(f"SELECT {', '.join(instants)} FROM {_tables(pairs, 'make_timestamptz')} ORDER BY x.n")
    return _duck().execute(sql).fetchall()


def _in_the_driver(pairs: Sequence[Model], expressions: Sequence[str]) -> list[tuple[Any, ...]]:
    columns = dict.fromkeys(("xf", "xt", "yf", "yt"), "timestamp")
    terms = []
    for expression in expressions:
        named = expression.replace("x.valid_from", "xf").replace("y.valid_to", "yt")
        named = named.replace("x, y)", "valid(xf, xt), valid(yf, yt))").replace("duration(x", "duration(valid(xf, xt)")
        named = named.replace("duration(y", "duration(valid(yf, yt)")
        node = with_plain_intervals(parse_query(f"SELECT {named}")).selects[0]
        duckdb_sql = translated(node, columns).sql
        terms.append(f"epoch_us({duckdb_sql})" if ".valid_" in expression and "(interval" not in expression else duckdb_sql)
    values = _values(pairs, "make_timestamptz")
    renamed = f"(SELECT n, a AS xf, b AS xt, c AS yf, d AS yt FROM {values} p)"
    return _duck().execute(f"SELECT {', '.join(terms)} FROM {renamed} ORDER BY n").fetchall()


def test_vectors_of_the_sheet() -> None:
    """V11, with the relation, the overlap and the intersection of each pair; Allen's own is the model's too."""
    shown = _at_the_prompt([Model(x, y) for x, y, *_ in VECTORS], OPERATIONS)
    for (x, y, name, overlap, shared), row in zip(VECTORS, shown, strict=True):
        assert (row[4], row[0], row[5:7]) == (name, overlap, shared or (None, None))
        assert relation(x, y) == name


def test_prompts_and_the_driver_mean_what_the_model_does() -> None:
    """Every function of all pairs within five points, empty and reversed intervals included."""
    expected = [pair.row() for pair in PAIRS]
    assert _at_the_prompt(PAIRS, OPERATIONS) == expected
    assert _in_the_driver(PAIRS, OPERATIONS) == expected


def test_spark_means_what_the_model_does(spark: SparkSession) -> None:
    """Spark runs the view's own text over the same pairs, in one query."""
    written = [
        f"unix_micros({expression})" if ".valid_" in expression and "(interval" not in expression else expression
        for expression in OPERATIONS
    ]
    tables = _tables(PAIRS, "timestamp_micros")
    rows = spark.sql(for_spark(f"SELECT x.n, {', '.join(written)} FROM {tables}")).collect()
    assert [tuple(row)[1:] for row in sorted(rows, key=lambda row: row[0])] == [pair.row() for pair in PAIRS]


_BOUNDS = st.tuples(st.integers(-(10**15), 10**15), st.integers(1, 10**15)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@settings(deadline=None)
@given(st.lists(st.tuples(_BOUNDS, _BOUNDS), min_size=1, max_size=8))
def test_predicates_partition_all_pairs(pairs: list[tuple[tuple[int, int], tuple[int, int]]]) -> None:
    """Of two intervals that are not empty, one is before or after the other, or they overlap; one relation holds."""
    models = [Model(x, y) for x, y in pairs] + [Model(x, x) for x, _ in pairs]
    overlaps, before, after = "interval_overlaps(x, y)", "interval_before(x, y)", "interval_after(x, y)"
    for model, row in zip(models, _at_the_prompt(models, [overlaps, before, after, "interval_relation(x, y)"]), strict=True):
        assert sum(row[:3]) == 1
        assert row[3] == relation(model.x, model.y)
        assert row[0] == (row[3] not in {"before", "meets", "met-by", "after"})


def test_nulls_and_empty_intervals() -> None:
    """A null bound makes null; an intersection that is empty is null as a value, and false in predicates."""
    rows = for_duckdb(
        "SELECT duration(valid(f, t)), interval_overlaps(valid(f, t), valid(f, f)), "
        "interval_intersect(valid(f, t), valid(f, f)), interval_relation(valid(f, t), valid(f, t)), "
        "interval_overlaps(interval_intersect(valid(f, f), valid(f, f)), valid(f, t)) "
        "FROM (SELECT TIMESTAMPTZ '2024-01-01 00:00:00+00' AS f, NULL::TIMESTAMPTZ AS t)"
    )
    assert _duck().execute(rows).fetchall() == [(None, False, None, None, False)]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("interval_overlaps(a)", "with 1 arguments"),
        ("interval_overlaps(a, f + INTERVAL 1 HOUR)", "as an interval; allowed: valid"),
        ("duration()", "with 0 arguments"),
        ("duration(a, month)", "always of one length: microsecond"),
        ("interval_relation(valid(f), 3)", "3 as an interval"),
    ],
)
def test_wrong_arguments_are_refused_with_what_to_write(call: str, said: str) -> None:
    """What is no interval, too few arguments, months as a unit."""
    with pytest.raises(RefusedError, match=said.replace("(", r"\(")):
        with_plain_intervals(parse_query(f"SELECT {call} FROM a"))
    with pytest.raises(RefusedError, match="allowed"):
        for_duckdb(f"SELECT {call} FROM a")


def test_only_calls_are_replaced() -> None:
    """Texts, comments, columns and functions of a schema that are called so stay, and so does what no call is in."""
    sql = "SELECT valid, 'duration(a)', s.duration(x) /* valid(a) */ FROM t"
    assert for_duckdb(sql) == sql
    assert for_spark("SELECT k  FROM  a") == "SELECT k  FROM  a"
    replaced = for_duckdb("SELECT 'a'::VARCHAR, duration( \"t\" , 'hours') FROM t")
    assert replaced.startswith("SELECT 'a'::VARCHAR, (CAST(CASE WHEN \"t\".valid_from < \"t\".valid_to THEN")


HOURS = {"k": "string", "id": "string", "b": "timestamp", "e": "timestamp", "valid_from": "timestamp", "valid_to": "timestamp"}
R1 = [("55", 0, 6), ("57", 6, 10), ("55", 10, 20)]
R2 = [("55", 3, 12), ("57", 12, 15), ("55", 15, 19)]
JOINED = """
SELECT a.k, a.id AS one, b.id AS other, interval_intersect(a, b).valid_from AS f, interval_intersect(a, b).valid_to AS t,
  duration(interval_intersect(a, b), hour) AS hours, interval_relation(a, b) AS how
FROM a JOIN c AS b ON a.k = b.k AND interval_overlaps(a, b) AND duration(interval_intersect(a, b)) >= INTERVAL {} HOURS
"""


def test_a_temporal_join_is_a_view(tmp_path: Path, spark: SparkSession) -> None:
    """V11's join: only [15, 19) is shared for four hours; it is stored, verified and queried, and ends with its rows.

    ::

        hour  0.....3..6......10..12..15......19.20
        a     [55    )[57     )[55                )
        b           [55           )[57 )[55     )
    """
    streams = {name: stream(landing=f"landing/{name}", columns=HOURS, max_lifetime="40h") for name in ("a", "c")}
    views = {
        "four": view(JOINED.format(4)),
        "any": view(JOINED.format(0)),
        "shared": view("SELECT a.k, interval_intersect(a, b) AS both FROM a JOIN c b ON a.k = b.k AND interval_overlaps(a, b)"),
        "alike": view(
            "SELECT x.k, y.k AS other, x.v, duration(interval_intersect(x, y), 'hours') AS hours FROM spells x JOIN spells y "
            "ON x.v = y.v AND x.k < y.k AND interval_overlaps(x, y) AND duration(interval_intersect(x, y)) >= INTERVAL 2 HOURS"
        ),
        "long": view("SELECT k, duration(s.both, 'minutes') AS minutes FROM shared s WHERE duration(s.both) > INTERVAL 3 HOURS"),
    }
    columns = {"k": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
    streams["p"] = stream(landing="landing/p", columns=columns, max_lifetime="40h")
    spells: dict[str, object] = {"from": "p", "group_by": "k", "values": "v", "window": "2d", "how": "eager"}
    project = Project(tmp_path, spark, streams, views=views, coalesced={"spells": spells})
    points = [("x", 1, 0), ("x", 1, 3), ("x", 2, 5), ("x", 2, 9), ("y", 1, 2), ("y", 2, 6), ("y", 2, 7), ("z", 1, 4)]
    lines = [f"{k},{v},{text(-10 + hour)},{text(21)}" for k, v, hour in points]
    project.land("1.csv", "\n".join(["k,v,b,e", *lines]) + "\n", landing="landing/p")
    for name, rows in (("a", R1), ("c", R2)):
        lines = [f"{k},{name}{f},{text(0.5)},{text(21 if f < 11 else 30)},{text(f)},{text(t)}" for k, f, t in rows]
        project.land("1.csv", "\n".join([",".join(HOURS), *lines]) + "\n", landing=f"landing/{name}")
    project.update(1)
    for name in ("four", "any", "long"):
        assert stored(project, name) == asked(project, for_duckdb(str(views[name]["sql"])))
    with Warehouse.open(project.directory) as warehouse:
        assert [(row[1], row[2], row[5], row[6]) for row in warehouse.sql("FROM four")] == [("a10", "c15", 4.0, "contains")]
        assert sorted(row[5] for row in warehouse.sql('FROM "any"')) == [2.0, 3.0, 4.0]
        assert warehouse.sql("FROM long").all() == [("55", 240.0)]
        prompt = "SELECT count(*) FROM a, c WHERE a.k = c.k AND duration(interval_intersect(a, c)) >= INTERVAL 4 HOURS"
        assert warehouse.sql(prompt).all() == [(1,)]
        assert len(warehouse.scan("a", where="duration(a, 'hours') > 5.5")) == 2
        assert {row[0] for row in warehouse.sql("SELECT id FROM a WHERE duration(a) < INTERVAL 5 HOURS")} == {"a6"}
        with pytest.raises(QueryError, match="as an interval; allowed: valid"):
            warehouse.sql("SELECT duration(1) FROM a")
        assert sorted(warehouse.sql("FROM alike").all()) == [("x", "y", 1, 3.0)]
        assert sorted(warehouse.sql(str(views["alike"]["sql"])).all()) == [("x", "y", 1, 3.0)]
        longest = "SELECT k, duration(spells, hour) FROM spells WHERE duration(spells) >= INTERVAL 4 HOURS"
        assert sorted(warehouse.sql(longest).all()) == [("x", 4.0), ("x", 5.0), ("y", 4.0)]
        verdicts = warehouse.check_views(spark=spark)
        assert {verdict.view: verdict.outcome for verdict in verdicts} == dict.fromkeys(views, "same")
    project.update(22)
    assert sum(stored(project, "any").values()) == 0


def test_columns_that_a_table_lacks_are_told_with_their_place() -> None:
    """The alias of a table without valid_from is no interval: the unknown column is named where the alias stands."""
    with pytest.raises(Exception, match=r'unknown column "flights\.valid_from" \(line 1, column 41\)'):
        plan("SELECT tail FROM flights WHERE duration(flights) > INTERVAL 1 HOUR")


def test_a_column_of_a_prompt_is_called_as_it_is_written() -> None:
    """A call that is a whole item of a SELECT gets its text as its name; others, and those with a name, stay as they are."""
    query = for_duckdb("SELECT k, duration(a, 'hours'), (SELECT duration(a)), duration(a) AS d, 1 + duration(a, 'hours') FROM a")
    assert query.count(" AS \"duration(a, 'hours')\"") == 1
    assert query.count(' AS "duration(a)"') == 1
    assert query.count(" AS ") == 2 + query.count("CAST(") + 1
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE a AS SELECT 'x' AS k, TIMESTAMPTZ '2024-01-01' AS valid_from, now() AS valid_to")
        assert [column[0] for column in connection.execute(query).description][:2] == ["k", "duration(a, 'hours')"]
        connection.execute("ALTER TABLE a DROP valid_to")
        with pytest.raises(duckdb.BinderException) as bare:
            connection.execute(query)
    assert '"a" has no column valid_to, so its rows are no intervals; say between which columns' in str(query_error(bare.value))


def test_explain_shows_calls_as_they_are_written() -> None:
    """Not what they become."""
    both = "interval_intersect(valid(gone, gone + INTERVAL 1 HOUR), valid(gone, gone + INTERVAL 2 HOURS))"
    sql = f"SELECT tail, duration({both}, 'hours') AS d FROM flights"
    lines = describe(plan(sql), HOUR).lines
    assert any("d = duration(interval_intersect(valid(gone, gone + INTERVAL" in line.text for line in lines)
    assert not any("CASE" in line.text for line in lines)
