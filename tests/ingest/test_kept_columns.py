"""What the driver takes of a large batch beside its counts: rows of the table, columns of all rows, if they are surely small."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tests.operations.projects import Project, at, stream
from warehouse.limits import limited
from warehouse.operations.update import UpdateOptions
from warehouse.steps.stream_source import stream_source
from warehouse.steps.work_ahead import WorkAhead
from warehouse.storage.scan import TableFiles

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.ingest.batch import Batch


class Asking(WorkAhead):
    """A table that asks for some columns."""

    def __init__(self, *columns: str) -> None:
        super().__init__(lambda _: ())
        self.columns = columns

    def read(self, _: str) -> tuple[str, ...]:
        """Return the columns."""
        return self.columns


def test_columns_are_kept_where_they_are_surely_small(tmp_path: Path, spark: SparkSession) -> None:
    """A batch keeps rows of any fate, and counts as one that keeps no row. It keeps neither many rows nor long texts.

    Nor does it keep them where Spark writes the rows of the table.
    """
    project = Project(tmp_path, spark, {"a": stream(format="parquet")})
    hours = {"k": ["live", None, "dead", "deferred", "rejected"], "b": [1, 1, 1, 3, 1], "e": [3, 4, 2, 4, 0]}
    land(project, "1", hours)
    plain, kept = batch(project, Asking()), batch(project, Asking("K"))
    assert plain.driver_columns is None
    assert kept.counts == plain.counts
    assert (kept.counts.live, kept.counts.dead, kept.counts.deferred, kept.counts.rejected) == (2, 1, 1, 1)
    assert kept.driver_columns is not None
    fates = ["live", "live", "dead", "deferred", "expires_before_arrival"]
    rows = zip(hours["k"], [at(hour) for hour in hours["b"]], fates, strict=True)
    table = kept.driver_columns.append_column("at", kept.driver_columns["_ts"].cast(pa.int64())).select(["K", "at", "_fate"])
    assert sorted(map(repr, zip(*table.to_pydict().values(), strict=True))) == sorted(map(repr, rows))
    with limited(written_rows=0):
        assert batch(project, Asking("K")).driver_columns == kept.driver_columns
        with limited(array_points=4):
            many = batch(project, Asking("k"))
    assert (many.driver_columns, many.counts) == (None, plain.counts)
    land(project, "2", {"k": ["x" * 257], "b": [1], "e": [3]})
    with limited(written_rows=0):
        long = batch(project, Asking("k", "b"))
    assert (long.driver_columns, long.counts) == (None, batch(project, Asking()).counts)


def test_rows_of_the_table_are_taken_where_they_are_surely_small(tmp_path: Path, spark: SparkSession) -> None:
    """They are the rows that Spark would write. They are not taken if they are too many, or if a row turns out to be wide."""
    project = Project(tmp_path, spark, {"a": stream(format="parquet")})
    land(project, "1", {"k": ["live", None, "dead", "deferred", "rejected"], "b": [1, 1, 1, 3, 1], "e": [3, 4, 2, 4, 0]})
    in_driver = batch(project, Asking())
    with limited(written_rows=4):
        by_spark = batch(project, Asking())
    assert in_driver.table_rows is not None
    assert (by_spark.table_rows, by_spark.counts) == (None, in_driver.counts)
    names = in_driver.table_rows.column_names
    theirs = by_spark.live(names)
    assert not isinstance(theirs, pa.Table)
    assert sorted(map(repr, in_driver.table_rows.to_pylist())) == sorted(map(repr, theirs.toArrow().to_pylist()))
    assert not isinstance(in_driver.live(names, by_spark=True), pa.Table), "with stored rows that only Spark reads"
    land(project, "2", {"k": ["x" * 2000] * 3 + ["y"] * 17, "b": [1] * 20, "e": [3] * 20})  # a dictionary has it once
    with limited(written_bytes=8000):
        wide = batch(project, Asking("k"))
    assert (wide.table_rows, wide.driver_columns, wide.counts) == (None, None, batch(project, Asking()).counts)
    with limited(driver_rows=0):
        assert batch(project, Asking()).table_rows is None


def land(project: Project, name: str, hours: dict[str, list[str | None] | list[int]]) -> None:
    """Land a file of rows, whose times are hours."""
    times = {name: pa.array([at(hour) for hour in hours[name]], pa.timestamp("us", "UTC")) for name in ("b", "e")}
    content = pa.BufferOutputStream()
    pq.write_table(pa.table({"k": pa.array(hours["k"], pa.string()), **times}), content)
    project.land(f"{name}.parquet", content.getvalue().to_pybytes())


def batch(project: Project, ahead: WorkAhead) -> Batch:
    """What the next update would load."""
    plan, _ = project.updater().plan(UpdateOptions(at=at(2)))
    assert plan is not None
    assert project.spark is not None
    session, files = project.spark, TableFiles(project.root)
    return stream_source(plan, plan.stream("a"), project.root, None, lambda: session, {}, files, (), ahead).batch
