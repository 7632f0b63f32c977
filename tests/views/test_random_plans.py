"""Random queries: compiled they mean what DuckDB makes of them, and a view of each holds its answer at every window time.

``STREAM_WH_RANDOM_VIEWS=200`` and ``STREAM_WH_RANDOM_PLANS=5000`` look at so many, ``STREAM_WH_RANDOM_SEED`` at others.
"""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, stream, text
from warehouse.catalog.model import View
from warehouse.storage import lookup
from warehouse.views.rewrite import alternatives

from .catalogs import TABLES, plan, problems
from .evaluate import query_of, sql_of
from .random_queries import Query, random_query
from .test_meaning import _rows, duck  # noqa: F401 - the tables
from .warehouses import all_asked, all_served, land, view

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb
    from pyspark.sql import SparkSession

SEED = int(os.environ.get("STREAM_WH_RANDOM_SEED", "20"))
VIEWS = int(os.environ.get("STREAM_WH_RANDOM_VIEWS", "6"))
PLANS = int(os.environ.get("STREAM_WH_RANDOM_PLANS", "80"))
BY_SPARK = 2
"""The update in which nothing is looked up: Spark reads whole tables."""
READ = {name: TABLES[name] for name in ("calls",)} | {"events": TABLES["events"][:2]}
COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "int", "u": "int"}
OWN = (("k", "string"), ("v", "int"), ("u", "int"))


def test_random_plans_mean_their_queries(duck: duckdb.DuckDBPyConnection) -> None:  # noqa: F811 - the fixture
    """While nothing expires, no plan is refused; it, its nodes and its rewritings give DuckDB's rows for the SQL."""
    tables = {name: tuple(column for column, _ in typed_columns) for name, typed_columns in TABLES.items()}
    nonempty = 0
    for seed in range(SEED * 1000, SEED * 1000 + PLANS):
        query = random_query(random.Random(seed), READ, 3, windows=False)  # noqa: S311 - test data
        expected = _rows(duck, query.oracle)
        nonempty += bool(expected)
        assert problems(View("v", query.sql, (query.columns[0].name,))) == [], query.sql
        view_plan = plan(query.sql)
        columns = ", ".join(f'"{name}"' for name in view_plan.columns)
        assert _rows(duck, f"SELECT {columns} FROM ({sql_of(view_plan.tree)})") == expected, query.sql
        assert _rows(duck, query_of(view_plan.nodes)) == expected, query.sql
        for other in alternatives(view_plan.tree, tables):
            assert _rows(duck, f"SELECT {columns} FROM ({sql_of(other.tree)})") == expected, (other.name, query.sql)
    assert nonempty > PLANS // 2


def _lines(chance: random.Random, hour: int) -> list[str]:
    lines = []
    for number, minutes in enumerate(chance.sample(range(60), 4)):
        begins = hour - minutes / 60 - chance.choice([0, 0, 0, 1.5])
        ends = begins + chance.choice([0.2, 0.7, 1.5, 3])
        values = [chance.choice(["x", "y", "z", ""]), text(begins), text(ends), chance.choice(["0", "1", "2", "3", ""])]
        lines.append(",".join([*values, str(hour * 10 + number)]))
    return lines


def _queries() -> list[Query]:
    chance = random.Random(SEED)  # noqa: S311 - test data
    return [random_query(chance, dict.fromkeys("abc", OWN), 3, windows=True) for _ in range(VIEWS)]


def test_random_views_are_their_queries(tmp_path: Path, spark: SparkSession) -> None:
    """Rows are late, one update covers two slots, one finds no new rows; each time a view has the rows of its query."""
    queries = {f"v{number}": query for number, query in enumerate(_queries())}
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}", max_lifetime="4h") for name in "abc"}
    views = {name: view(query.sql, query.columns[0].name) for name, query in queries.items()}
    project = Project(tmp_path / "project", spark, streams, views=dict(views))
    chance = random.Random(SEED)  # noqa: S311 - test data
    wrong, nonempty = {}, set()
    for hour in (1, 2, 4, 5):
        if hour < 5:  # the last finds nothing
            land(project, hour, {name: _lines(chance, hour) for name in "abc"}, ",".join(COLUMNS))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lookup, "LARGE", -1 if hour == BY_SPARK else lookup.LARGE)
            report = project.update(hour)
        assert report.failed_views == ()
        answers = all_asked(project, {name: query.oracle.replace("{tau}", text(hour)) for name, query in queries.items()})
        held = all_served(project, queries)
        for name, query in queries.items():
            expected, rows = answers[name], held[name]
            nonempty |= {name} if expected else set()
            if rows != expected:
                wrong.setdefault(name, (hour, query.sql, rows - expected, expected - rows))
    assert wrong == {}
    assert len(nonempty) > len(queries) // 2
