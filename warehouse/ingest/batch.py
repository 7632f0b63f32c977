"""A stream's batch: all rows that one update loads, read once, classified, counted.

The counts by (fate, sub-index, expiry block) are one small aggregate. They decide which partitions an update seals and how the
write is divided into tasks, and the epoch records them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from warehouse.catalog.identifiers import quoted
from warehouse.catalog.model import COLUMNAR, SELF_NAMING_FORMATS
from warehouse.errors import FileProblem
from warehouse.ingest.batch_counts import BatchCounts, summed_counts
from warehouse.ingest.batch_source import BatchSource, classified_rows, raise_problems
from warehouse.ingest.classify import ACCEPTED_FATES
from warehouse.ingest.collected_rows import NO_REQUEST, CollectRequest, collect_rows, writes_in_driver
from warehouse.ingest.landing import changed_file_problems
from warehouse.ingest.reading import relative_path
from warehouse.ingest.record_numbers import with_record_numbers, with_record_numbers_in_driver
from warehouse.layout.columns import CELL, WAITING_SLOT
from warehouse.storage.arrow_types import can_be_collected, frame_of, with_names
from warehouse.storage.tables import REJECTED_COLUMNS, rows_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column, Stream
    from warehouse.ingest.files import LandingFile

__all__ = [
    "Batch",
    "collected_batch",
    "empty_batch",
    "placed_batch",
    "prepare_batch",
]


@dataclass(frozen=True)
class Batch:
    """The classified rows of one update of one stream, cached in memory or on local disk until :meth:`release`.

    Parameters
    ----------
    frame
        The rows, if Spark has them.
    counts
        The number of rows of each kind.
    persisted
        Whether ``frame`` is cached, so that no file is read again.
    driver_rows
        The rows, if the driver has them since they are few.
    open_session
        Returns the session for data frames that are made from rows in the driver.
    driver_columns
        Some columns of all rows, with ``_ts`` and ``_fate``, if the driver has them although Spark has the rows.
    table_rows
        The live rows with all columns of the table, if the driver writes them.

    """

    frame: DataFrame | None
    counts: BatchCounts
    persisted: bool = False
    driver_rows: pa.Table | None = None
    open_session: Callable[[], SparkSession] | None = None
    driver_columns: pa.Table | None = None
    table_rows: pa.Table | None = None

    @cached_property
    def rows(self) -> DataFrame:
        """All rows as a data frame."""
        if self.frame is not None:
            return self.frame
        if self.driver_rows is None or self.open_session is None:
            raise ValueError("a batch without rows")
        return frame_of(self.open_session(), self.driver_rows)

    def live(self, columns: Sequence[str], *, by_spark: bool = False) -> DataFrame | pa.Table:
        """Return some columns of the rows that go into the table: an Arrow table if the driver writes them, else a data frame.

        ``by_spark``: Spark writes the rows with others, so many rows are a data frame.
        """
        if self.table_rows is not None and not by_spark:
            return with_names(self.table_rows, columns)
        if self.driver_rows is None:
            return self.rows.where("_fate = 'live'").select(*map(quoted, columns))
        return with_names(self.driver_rows.filter(pc.equal(self.driver_rows["_fate"], "live")), columns)

    def dead_in_driver(self) -> pa.Table | None:
        """Return the rows that began and ended since the last epoch; None if the driver does not have them."""
        if self.driver_rows is None:
            return None
        lived = pc.greater(self.driver_rows["_exp"], self.driver_rows["_ts"])
        return self.driver_rows.filter(pc.and_(pc.equal(self.driver_rows["_fate"], "dead"), lived))

    def deferred(self, columns: Sequence[str], landing: Path) -> DataFrame | pa.Table:
        """Return the rows that wait for their slot: the given columns, ``_file``, ``_record`` and ``_slot``."""
        if self.driver_rows is None:
            rows = with_record_numbers(self.rows, self.rows.where("_fate = 'deferred'"), landing)
            source_names = {"_file": "file", "_record": "record", WAITING_SLOT: "_arrival_slot"}
            return rows.select(*map(quoted, columns), *[F.col(name).alias(alias) for alias, name in source_names.items()])
        waiting, files, records = with_record_numbers_in_driver(
            self.driver_rows, pc.equal(self.driver_rows["_fate"], "deferred"), landing
        )
        table = with_names(waiting, columns).append_column("_file", files).append_column("_record", records)
        return table.append_column(WAITING_SLOT, waiting["_arrival_slot"])

    def rejected(self, landing: Path, epoch: int) -> DataFrame | pa.Table:
        """Return the invalid rows with the columns of the rejected table; sorted by file and record if they are in the driver."""
        sources = {"reason": "_fate", "message": "_message", "raw": "_raw"}
        if self.driver_rows is None:
            frame = with_record_numbers(self.rows, self.rows.where(~F.col("_fate").isin(*ACCEPTED_FATES)), landing)
            frame = frame.withColumns(
                {name: F.col(source) for name, source in sources.items()} | {"epoch": F.lit(epoch).cast("bigint")}
            )
            return frame.select(*[name for name, _ in REJECTED_COLUMNS])
        accepted = pc.is_in(self.driver_rows["_fate"], pa.array(ACCEPTED_FATES))
        rows, files, records = with_record_numbers_in_driver(self.driver_rows, pc.invert(accepted), landing)
        values = {"file": files, "record": records, "epoch": pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows)}
        values |= {name: rows[source] for name, source in sources.items()}
        table = pa.table({name: values[name] for name, _ in REJECTED_COLUMNS})
        return table.sort_by([("file", "ascending"), ("record", "ascending")])

    def release(self) -> None:
        """Remove the cached rows."""
        if self.persisted and self.frame is not None:
            self.frame.unpersist()


def prepare_batch(source: BatchSource, *, few: bool = False, request: CollectRequest = NO_REQUEST) -> Batch:
    """Return the batch of an update.

    Parameters
    ----------
    source
        The inputs.
    few
        Whether the rows are certainly few; then the driver collects all of them.
    request
        The columns that the driver collects from many rows, in the job that counts them, if they are certainly not too large.

    Raises
    ------
    UnreadableFilesError
        With every file that changed, vanished or cannot be read.

    """
    stream, files = source.stream, source.files
    rows = classified_rows(source, few=few)
    with source.naming_unreadable_files():
        if few and can_be_collected(rows.schema):
            return collected_batch(source.session, stream, rows.toArrow(), files)
        # Parsing text twice costs more than caching the rows; Parquet is read again faster than it is cached.
        worth_caching = stream.format not in COLUMNAR and bool(files)
        by_driver = bool(request.table_columns) and writes_in_driver(stream, files, source.waiting)
        persisted = worth_caching and (request.read_again or not by_driver)
        if persisted:
            rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        collected = collect_rows(rows, stream, files, source.waiting, request) if by_driver or not persisted else None
        counts = None if collected is None else _counted_in_driver(collected.counted)
        by_spark = (
            collected is None or collected.table_rows is None or (counts is not None and (counts.rejected or counts.deferred))
        )
        if worth_caching and not persisted and by_spark:  # counted again: that fills the cache before the files are compared
            rows, persisted, counts = rows.persist(StorageLevel.MEMORY_AND_DISK), True, None
        counts = _counted_by_spark(rows) if counts is None else counts
    raise_problems(stream, changed_file_problems(stream.landing, files))
    if stream.format in SELF_NAMING_FORMATS and counts.rejected:
        with_unknown_columns = rows.where("_fate = 'unknown_columns'")
        first_messages = with_unknown_columns.groupBy("_file").agg(F.first("_message").alias("message")).collect()
        raise_problems(stream, [_unknown_columns_problem(stream, file, message) for file, message in first_messages])
    if collected is None:
        return Batch(rows, counts, persisted)
    return Batch(rows, counts, persisted, driver_columns=collected.columns, table_rows=collected.table_rows)


def collected_batch(session: SparkSession, stream: Stream, driver_rows: pa.Table, files: Sequence[LandingFile]) -> Batch:
    """Return the batch of few rows, which a job has read from the files, classified and handed to the driver.

    Raises
    ------
    UnreadableFilesError
        With every file that changed meanwhile, or has undeclared columns.

    """
    raise_problems(stream, changed_file_problems(stream.landing, files))
    if stream.format in SELF_NAMING_FORMATS:
        with_unknown_columns = driver_rows.filter(pc.equal(driver_rows["_fate"], "unknown_columns"))
        messages = dict(zip(with_unknown_columns["_file"].to_pylist(), with_unknown_columns["_message"].to_pylist(), strict=True))
        raise_problems(stream, [_unknown_columns_problem(stream, file, message) for file, message in messages.items()])
    return Batch(None, _counted_in_driver(driver_rows), driver_rows=driver_rows, open_session=lambda: session)


def _unknown_columns_problem(stream: Stream, file: str, message: str) -> FileProblem:
    return FileProblem(relative_path(file, stream.landing), "unknown_columns", message)


def empty_batch(open_session: Callable[[], SparkSession], columns: Sequence[Column | ColumnRecord]) -> Batch:
    """Return a batch without rows for a table with these columns; a step with it may still remove rows.

    It is in the driver, unless Arrow lacks the type of a column.
    """
    fields = [*StructType.fromJson(rows_schema(columns)).fields, StructField("_fate", StringType())]
    schema = StructType(fields)
    if can_be_collected(schema):
        none = to_arrow_schema(schema, timezone="UTC").empty_table()
        return Batch(None, BatchCounts(), driver_rows=none, open_session=open_session)
    nulls = [f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in fields]
    return Batch(open_session().range(0).selectExpr(*nulls), BatchCounts())


def placed_batch(rows: DataFrame | pa.Table, open_session: Callable[[], SparkSession], *, persisted: bool = False) -> Batch:
    """Return the batch of rows that have ``_fate``, live or dead, and their cells.

    Parameters
    ----------
    rows
        The rows.
    open_session
        Returns the session for data frames that are made from rows in the driver.
    persisted
        Whether a frame is cached.

    """
    by = ["_fate", *CELL]
    if isinstance(rows, pa.Table):
        table = rows.select(by).group_by(by).aggregate([([], "count_all")]).select([*by, "count_all"])
        counts = _placed_counts(zip(*(column.to_pylist() for column in table.columns), strict=True))
        return Batch(None, counts, driver_rows=rows, open_session=open_session)
    return Batch(rows, _placed_counts(rows.groupBy(*by).count().collect()), persisted)


def _placed_counts(summary: Iterable[Sequence[Any]]) -> BatchCounts:
    return summed_counts((fate, False, cell, block, None, count, 0, 0) for fate, cell, block, count in summary)


def _counted_by_spark(rows: DataFrame) -> BatchCounts:
    """Return the counts of classified rows, by one Spark job."""
    summary = (
        rows.selectExpr(
            "_fate", "_taken", "sub_index", "exp_block", "_late", "_over",
            "CASE WHEN _fate = 'deferred' THEN _arrival_slot END AS slot",
        )
        .groupBy("_fate", "_taken", "sub_index", "exp_block", "slot")
        .agg(F.expr("count(*)"), F.expr("count_if(_late)"), F.expr("count_if(_over)"))
        .collect()
    )  # fmt: skip
    return summed_counts(summary)


def _counted_in_driver(rows: pa.Table) -> BatchCounts:
    """Return the counts of classified rows in the driver."""
    deferred = pc.equal(rows["_fate"], "deferred")
    by = rows.select(["_fate", "_taken", "sub_index", "exp_block"]).append_column(
        "slot", pc.if_else(deferred, rows["_arrival_slot"], None)
    )
    flags = {name: pc.fill_null(rows[name], False).cast(pa.int64()) for name in ("_late", "_over")}  # noqa: FBT003 - a value
    counted = (
        pa.table({**dict(zip(by.column_names, by.columns, strict=True)), **flags})
        .group_by(by.column_names)
        .aggregate([([], "count_all"), ("_late", "sum"), ("_over", "sum")])
        .select([*by.column_names, "count_all", "_late_sum", "_over_sum"])
    )
    return summed_counts(zip(*(column.to_pylist() for column in counted.columns), strict=True))
