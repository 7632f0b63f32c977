"""Kept plans run over other rows, in any thread."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

from warehouse.storage.prepared import planned, prepared
from warehouse.storage.session import table_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession


def test_a_kept_plan_gives_the_rows_of_each_source_in_any_thread(spark: SparkSession) -> None:
    """It is planned once; a thread without a session, as in scheduled jobs and notebooks, runs it too."""
    session = table_session(spark, {})
    calls: list[int] = []

    def made(sources: Sequence[DataFrame]) -> DataFrame:
        calls.append(len(sources))
        return sources[0].selectExpr("id * 10 AS n")

    def rows(first: int) -> list[int]:
        return [row.n for row in prepared("tens", [planned(session.range(first, first + 2))], made).collect()]

    assert rows(1) == [10, 20]
    results: list[list[int]] = []
    thread = Thread(target=lambda: results.append(rows(5)))
    thread.start()
    thread.join()
    assert results == [[50, 60]]
    assert calls == [1]
