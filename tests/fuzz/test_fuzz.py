"""Random views are their queries at every update, whichever engine serves; so is each query that once was not.

Fifty: ``pytest -m long``; a thousand: ``python -m tests.fuzz --queries 1000``.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from warehouse.views.language.dialect import parse_query, text

from .grammar import random_query
from .house import DRIVER, SPARK, House
from .plans import compare_plans
from .shrink import smaller

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

FIFTY = range(50)
CHOSEN = (
    0, 2, 3, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 19, 21, 22, 23, 25, 26, 28, 29, 31, 32, 33, 38, 44, 45,
)  # fmt: skip
"""These have, with the cases, what all fifty have: each pair of operators, one upon the other; each branch of
``warehouse/views`` that compiles them; each reason of a refusal."""
CASES = {
    # An index after array(...) was read as an array of it.
    "indexed": "SELECT k AS c, array(n, 2L)[0] AS d FROM a t",
    "grouped_by_index": "SELECT array(q, 2)[0] AS c, count(*) AS n FROM m t GROUP BY 1",
    # A lookup that finds no row of a table with nested columns ended the update.
    "no_rows": "SELECT l.k AS k, l.ar AS ar, r.st AS st FROM a l JOIN w r ON l.st.y = r.st.y AND r.q > 1",
    # INTERSECT and EXCEPT ALL of columns of different types were refused.
    "intersect": "SELECT q AS c FROM w INTERSECT SELECT CAST(q AS bigint) AS c FROM w t",
    "except": "SELECT k AS c, q FROM w EXCEPT ALL SELECT k AS c, n FROM a t",
    # So was EXCEPT ALL of what size(...) and named_struct(...).n give and a wider number.
    "except_size": "SELECT k AS c, size(ar) AS n FROM a t EXCEPT ALL SELECT k AS c, q FROM m t",
    "except_field": "SELECT k AS c, named_struct('n', length(k)).n AS n FROM a t EXCEPT ALL SELECT k AS c, q FROM m t",
    # Fields of struct(...) had the names of internal columns.
    "structs": "SELECT t.k AS c, struct(t.n, s.q) AS st FROM a t JOIN m s ON t.k = s.k",
    # A kept column that equals two others was taken twice, which ended the second update.
    "twice": "SELECT s.q AS c, t.k AS c2 FROM a t LEFT JOIN m s ON s.y = t.k AND s.k = t.k",
    "twice_right": "SELECT t.q AS c, s.k AS c2 FROM m t RIGHT JOIN a s ON t.y = s.k AND t.k = s.k",
}


@pytest.mark.parametrize("seeds", [CHOSEN, pytest.param(FIFTY, marks=pytest.mark.long)], ids=["chosen", "fifty"])
def test_random_views_are_their_queries(tmp_path: Path, spark: SparkSession, seeds: Sequence[int]) -> None:
    """At both updates; the driver serves where rows are few, and nothing where Spark is to read everything.

    In the second rows come, others end, and what was read before is looked up; more updates are the command's.
    """
    drawn = {f"v{seed}": random_query(random.Random(seed), 2) for seed in seeds}  # noqa: S311 - test data
    queries = {name: query.sql for name, query in drawn.items()} | CASES
    keys = {name: query.columns[0].name for name, query in drawn.items()}
    keys |= {name: "k" if name == "no_rows" else "c" for name in CASES}
    house = House(tmp_path / "project", spark, queries, keys)
    outcome = house.run([1, 2], [SPARK, DRIVER], rests=False)
    assert not outcome.found, "\n".join(map(str, outcome.found))
    assert outcome.served[DRIVER, "looked_up"] > 0
    assert outcome.served[SPARK, "looked_up"] == outcome.served[SPARK, "local_results"] == 0
    assert outcome.compared > len(seeds)
    assert outcome.not_empty > outcome.compared // 2
    assert not CASES.keys() & outcome.refused.keys()
    assert outcome.judges["both"] > outcome.compared // 2  # the other engine says so too


def test_the_fuzzer_finds_a_wrong_view(tmp_path: Path, spark: SparkSession) -> None:
    """A view with other rows than its query is found; without this test a run without findings proves nothing."""
    house = House(tmp_path / "project", spark, {"v": "SELECT k AS c FROM m t"}, {"v": "c"})
    right = house.queries
    house.project.views["v"]["sql"] = "SELECT k AS c FROM m t WHERE q > 1"
    house.project.declare()
    assert right["v"] == "SELECT k AS c FROM m t"
    outcome = house.run([1, 2], [SPARK, DRIVER])
    assert [(difference.view, difference.problem) for difference in outcome.found] == [("v", "differs")] * 2


def test_plans_of_random_views_are_their_texts(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan and text give the same rows over the same data, without a table; a plan with other rows or names is found."""
    drawn = {f"v{seed}": random_query(random.Random(seed), 3) for seed in range(5_000, 5_010)}  # noqa: S311 - test data
    queries = {name: query.sql for name, query in drawn.items()} | {"intersect": CASES["intersect"]}
    keys = {name: query.columns[0].name for name, query in drawn.items()} | {"intersect": "c"}
    house = House(tmp_path / "project", spark, queries, keys)
    seen = compare_plans(house)
    assert not seen.found, "\n".join(map(str, seen.found))
    assert seen.same > len(queries) // 2
    assert seen.untold == 0
    planned = {"right": "", "rows": " WHERE q > 1", "names": " WHERE x <=> x"}
    written = {"right": "", "rows": "", "names": " WHERE q <=> q"}
    base = "SELECT k AS c FROM m t"
    house = House(tmp_path / "other", spark, {name: base + rest for name, rest in planned.items()}, dict.fromkeys(written, "c"))
    monkeypatch.setattr(house, "queries", {name: base + rest for name, rest in written.items()})
    assert {difference.view for difference in compare_plans(house).found} == {"rows", "names"}


@pytest.mark.parametrize("seed", range(3))
def test_smaller_queries_are_smaller(seed: int) -> None:
    """Each smaller query is a valid query, and the whole query is not among them."""
    sql = random_query(random.Random(seed), 3).sql  # noqa: S311 - test data
    whole, queries = text(parse_query(sql)), list(smaller(sql))  # as it is written again, with every implied word
    assert queries
    assert whole not in queries
    assert all(len(query) < len(whole) for query in queries)
    assert sorted(queries, key=len) == queries
