"""One job collects the results of several queries: each result is as if collected alone."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from warehouse.storage.collecting import Together, collected, collected_as_before
from warehouse.storage.session import table_session

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def jobs_of(spark: SparkSession, work: Callable[[], object]) -> int:
    """Return how many Spark jobs a function takes."""
    group, context = str(uuid.uuid4()), spark.sparkContext
    context.setJobGroup(group, group)
    try:
        work()
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    return len(context.statusTracker().getJobIdsForGroup(group))


@pytest.mark.parametrize("collect", [collected, collected_as_before])
def test_each_result_has_its_own_columns_types_and_rows(
    spark: SparkSession, collect: Callable[[list[DataFrame]], list[pa.Table]]
) -> None:
    """Also odd names, equal names in different queries, nulls, decimals, times, binaries, and a query without rows."""
    queries = [
        spark.sql("SELECT id, id * 2 AS `odd name`, CAST(id AS string) AS k FROM range(4)"),
        spark.sql("SELECT k, count(*) AS id, timestamp_micros(max(n)) AS t FROM VALUES ('a', 1), (NULL, 3) v(k, n) GROUP BY k"),
        spark.sql("SELECT CAST(1.5 AS decimal(10, 2)) AS d, X'00ff' AS s, CAST(NULL AS int) AS n, true AS b, 1.5D AS id"),
        spark.sql("SELECT k, CAST(k AS date) AS day FROM VALUES ('2024-01-01') AS v(k) WHERE k = 'x'"),
    ]
    results = collect(queries)
    for query, rows in zip(queries, results, strict=True):
        alone = query.toArrow()
        assert rows.schema.names == alone.schema.names
        assert rows.schema.types == alone.schema.types
        assert sorted(rows.to_pylist(), key=repr) == sorted(alone.to_pylist(), key=repr)


def test_one_job_collects_all_that_go_together(spark: SparkSession) -> None:
    """The first requested result collects the others; each is returned once."""
    session = table_session(spark, {})
    grouped = "SELECT id % {} AS k, count(*) AS n FROM range(20) GROUP BY 1"
    queries = {name: session.sql(grouped.format(number)) for number, name in ((2, "a"), (3, "b"))}
    together = Together(lambda _: queries)
    row_counts = []
    assert jobs_of(spark, lambda: row_counts.extend([together.of("a").num_rows, together.of("b").num_rows])) == 1
    assert row_counts == [2, 3]
