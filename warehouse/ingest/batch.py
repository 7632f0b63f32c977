"""A stream's batch: all rows that one update loads, read once, classified, counted.

The counts by (fate, sub-index, expiry block) are one small aggregate (:mod:`.counting`). They decide which partitions an update
seals and how the write is divided into tasks, and the epoch records them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from warehouse.catalog.identifiers import quoted
from warehouse.catalog.model import COLUMNAR, SELF_NAMING_FORMATS
from warehouse.errors import FileProblem, UnreadableFilesError
from warehouse.ingest.batch_counts import BatchCounts
from warehouse.ingest.bounds import beyond_bounds
from warehouse.ingest.classify import ACCEPTED_FATES, WindowMove, classify
from warehouse.ingest.collected_rows import NOTHING, Wanted, collected, writes_in_driver
from warehouse.ingest.counting import counted_by_spark, counted_in_driver, placed_counts
from warehouse.ingest.landing import unchanged
from warehouse.ingest.object_copies import copied
from warehouse.ingest.reading import SOURCE_COLUMNS, read_files, read_records, relative_path, typed, whole
from warehouse.ingest.record_numbers import records_of, with_records
from warehouse.ingest.unreadable_files import SPARK_FAILURES, unreadable
from warehouse.layout.columns import WAITING_SLOT
from warehouse.storage.arrow_types import can_be_collected, frame_of, with_names
from warehouse.storage.prepared import prepared
from warehouse.storage.tables import REJECTED_COLUMNS, rows_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column, Stream
    from warehouse.ingest.files import LandingFile
    from warehouse.layout import Layout

__all__ = [
    "Batch",
    "BatchSource",
    "classified",
    "collected_batch",
    "empty_batch",
    "placed_batch",
    "prepare",
    "reading_rules",
]


@dataclass(frozen=True, eq=False)
class BatchSource:
    """The inputs of a batch, and the values by which its rows are classified.

    Parameters
    ----------
    session, stream, layout
        The session of the stream's table, the stream, and its layout.
    move
        The times between which the update moves the stream.
    groups
        Landing files by their CSV header.
    taken, waiting
        The rows of the deferred table whose slot has come, and the number of its rows.
    judge
        Changes the fate of classified rows by stored rows; None: stored rows change no fate.

    """

    session: SparkSession
    stream: Stream
    layout: Layout
    move: WindowMove
    groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
    taken: DataFrame | None = None
    judge: Callable[[DataFrame], DataFrame] | None = None
    waiting: int = 0

    @property
    def files(self) -> list[LandingFile]:
        """All files."""
        return [file for _, members in self.groups for file in members]

    def require_readable(self) -> None:
        """Look at the files before they are read.

        Raises
        ------
        UnreadableFilesError
            With every file that changed, vanished or is beyond the bounds.

        """
        stream, files = self.stream, self.files
        _refuse(stream, copied(stream, files) or unchanged(stream.landing, files) or beyond_bounds(stream, files))

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Raise errors of files that cannot be read in place of the failures of Spark that they caused."""
        try:
            yield
        except SPARK_FAILURES as error:
            _refuse(self.stream, unreadable(self.session, self.stream, self.groups))
            raise error from None


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
    known, opened
        The rows, if the driver has them since they are few, and a function that returns the session for frames made from them.
    kept
        Some columns of all rows, with ``_ts`` and ``_fate``, which the driver has in addition to them.
    stored
        The rows of the table, with all of its columns, if the driver is to write them.

    """

    frame: DataFrame | None
    counts: BatchCounts
    persisted: bool = False
    known: pa.Table | None = None
    opened: Callable[[], SparkSession] | None = None
    kept: pa.Table | None = None
    stored: pa.Table | None = None

    @cached_property
    def rows(self) -> DataFrame:
        """All rows as a data frame."""
        if self.frame is not None:
            return self.frame
        if self.known is None or self.opened is None:
            raise ValueError("a batch without rows")
        return frame_of(self.opened(), self.known)

    def live(self, columns: Sequence[str], *, by_spark: bool = False) -> DataFrame | pa.Table:
        """Return some columns of the rows that go into the table: in the driver where it is to write them.

        ``by_spark`` says that it cannot write them with others: many rows are then Spark's.
        """
        if self.stored is not None and not by_spark:
            return with_names(self.stored, columns)
        if self.known is None:
            return self.rows.where("_fate = 'live'").select(*map(quoted, columns))
        return with_names(self.known.filter(pc.equal(self.known["_fate"], "live")), columns)

    def dead_in_driver(self) -> pa.Table | None:
        """Return the rows that began and ended since the last epoch, where the driver has them."""
        if self.known is None:
            return None
        lived = pc.greater(self.known["_exp"], self.known["_ts"])
        return self.known.filter(pc.and_(pc.equal(self.known["_fate"], "dead"), lived))

    def deferred(self, columns: Sequence[str], landing: Path) -> DataFrame | pa.Table:
        """Return some columns of the rows that wait for their slot, with ``_file``, ``_record`` and ``_slot``."""
        if self.known is None:
            rows = with_records(self.rows, self.rows.where("_fate = 'deferred'"), landing)
            found = {"_file": "file", "_record": "record", WAITING_SLOT: "_arrival_slot"}
            return rows.select(*map(quoted, columns), *[F.col(name).alias(told) for told, name in found.items()])
        waiting, files, records = records_of(self.known, pc.equal(self.known["_fate"], "deferred"), landing)
        kept = with_names(waiting, columns).append_column("_file", files).append_column("_record", records)
        return kept.append_column(WAITING_SLOT, waiting["_arrival_slot"])

    def rejected(self, landing: Path, epoch: int) -> DataFrame | pa.Table:
        """Return the invalid rows as an epoch's update keeps them; by file and record, where the driver has them."""
        sources = {"reason": "_fate", "message": "_message", "raw": "_raw"}
        if self.known is None:
            kept = with_records(self.rows, self.rows.where(~F.col("_fate").isin(*ACCEPTED_FATES)), landing)
            kept = kept.withColumns({name: F.col(own) for name, own in sources.items()} | {"epoch": F.lit(epoch).cast("bigint")})
            return kept.select(*[name for name, _ in REJECTED_COLUMNS])
        accepted = pc.is_in(self.known["_fate"], pa.array(ACCEPTED_FATES))
        rows, files, records = records_of(self.known, pc.invert(accepted), landing)
        found = {"file": files, "record": records, "epoch": pa.repeat(pa.scalar(epoch, pa.int64()), rows.num_rows)}
        found |= {name: rows[own] for name, own in sources.items()}
        kept = pa.table({name: found[name] for name, _ in REJECTED_COLUMNS})
        return kept.sort_by([("file", "ascending"), ("record", "ascending")])

    def release(self) -> None:
        """Let the kept rows go."""
        if self.persisted and self.frame is not None:
            self.frame.unpersist()


def prepare(source: BatchSource, *, few: bool = False, asked: Wanted = NOTHING) -> Batch:
    """Return the batch of an update. The driver takes all rows when they are surely ``few``.

    Else it takes what is ``asked`` for by the job that counts the rows, where that is surely not too much.

    Raises
    ------
    UnreadableFilesError
        With every file that changed, vanished or cannot be read.

    """
    stream, files = source.stream, source.files
    rows = classified(source, few=few)
    with source.blamed():
        if few and can_be_collected(rows.schema):
            return collected_batch(source.session, stream, rows.toArrow(), files)
        # Parsing text twice costs more than caching the rows; Parquet is read again faster than it is cached.
        cached = stream.format not in COLUMNAR and bool(files)
        written = bool(asked.stored) and writes_in_driver(stream, files, source.waiting)
        persisted = cached and (asked.again or not written)
        if persisted:
            rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        told = collected(rows, stream, files, source.waiting, asked) if written or not persisted else None
        counts = None if told is None else counted_in_driver(told.counted)
        by_spark = told is None or told.live is None or (counts is not None and (counts.rejected or counts.deferred))
        if cached and not persisted and by_spark:  # counted again: that fills the cache before the files are compared
            rows, persisted, counts = rows.persist(StorageLevel.MEMORY_AND_DISK), True, None
        counts = counted_by_spark(rows) if counts is None else counts
    _refuse(stream, unchanged(stream.landing, files))
    if stream.format in SELF_NAMING_FORMATS and counts.rejected:
        strange = rows.where("_fate = 'unknown_columns'")
        found = strange.groupBy("_file").agg(F.first("_message").alias("message")).collect()
        _refuse(stream, [_strange(stream, file, message) for file, message in found])
    if told is None:
        return Batch(rows, counts, persisted)
    return Batch(rows, counts, persisted, kept=told.some, stored=told.live)


def classified(source: BatchSource, *, few: bool = False, most: int | None = None) -> DataFrame:
    """Return the rows of a batch, classified, before any of them is read; parameters and errors as of :func:`prepare`.

    ``most`` is the greatest number of rows that are read from files; None: all are.
    """
    source.require_readable()
    with source.blamed():
        if few and source.files and source.judge is None:
            return _classified_as_before(source)
        rows = _classified(source, most)
        return rows if source.judge is None else source.judge(rows)


def collected_batch(session: SparkSession, stream: Stream, known: pa.Table, files: Sequence[LandingFile]) -> Batch:
    """Return the batch of few rows, which a job has read from the files, classified and handed to the driver.

    Raises
    ------
    UnreadableFilesError
        With every file that changed meanwhile, or has columns that nobody knows.

    """
    _refuse(stream, unchanged(stream.landing, files))
    if stream.format in SELF_NAMING_FORMATS:
        strange = known.filter(pc.equal(known["_fate"], "unknown_columns"))
        messages = dict(zip(strange["_file"].to_pylist(), strange["_message"].to_pylist(), strict=True))
        _refuse(stream, [_strange(stream, file, message) for file, message in messages.items()])
    return Batch(None, counted_in_driver(known), known=known, opened=lambda: session)


def _strange(stream: Stream, file: str, message: str) -> FileProblem:
    return FileProblem(relative_path(file, stream.landing), "unknown_columns", message)


def empty_batch(opened: Callable[[], SparkSession], columns: Sequence[Column | ColumnRecord]) -> Batch:
    """Return a batch without rows for a table with these columns; a step with it may still remove rows.

    It is in the driver, except if Arrow does not have the type of a column.
    """
    fields = [*StructType.fromJson(rows_schema(columns)).fields, StructField("_fate", StringType())]
    schema = StructType(fields)
    if can_be_collected(schema):
        none = to_arrow_schema(schema, timezone="UTC").empty_table()
        return Batch(None, BatchCounts(), known=none, opened=opened)
    nulls = [f"CAST(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in fields]
    return Batch(opened().range(0).selectExpr(*nulls), BatchCounts())


def placed_batch(rows: DataFrame | pa.Table, opened: Callable[[], SparkSession], *, persisted: bool = False) -> Batch:
    """Return the batch of rows that are placed: with ``_fate``, live or dead, and their cells.

    Parameters
    ----------
    rows
        The rows.
    opened
        Gives the session of frames that are made of rows in the driver.
    persisted
        Whether a frame is cached.

    """
    counts = placed_counts(rows)
    if isinstance(rows, pa.Table):
        return Batch(None, counts, known=rows, opened=opened)
    return Batch(rows, counts, persisted)


def _refuse(stream: Stream, problems: Sequence[FileProblem]) -> None:
    if problems:
        raise UnreadableFilesError(stream.name, problems)


def _classified_as_before(source: BatchSource) -> DataFrame:
    """Return the same as :func:`_classified`, by a cached plan if a stream was read in the same way before."""
    session, stream, layout, taken = source.session, source.stream, source.layout, source.taken
    move = replace(source.move, carried=True)
    records = read_records(session, stream, source.groups)
    shapes = tuple(each.shape for each in records)
    key = (reading_rules(stream), layout, move.rules, shapes, taken is not None)

    def with_values(rows: DataFrame) -> DataFrame:
        return rows.selectExpr(*[quoted(name) for name in rows.columns if name != "_zero"], f"{move.values} AS _zero")

    def made(sources: Sequence[DataFrame]) -> DataFrame:
        parts = [typed(rows, stream, shape) for rows, shape in zip(sources, shapes, strict=False)]
        read = _untaken(whole(session, stream, parts))
        return classify(read if taken is None else read.unionByName(sources[-1]), stream, layout, move)

    sources = [with_values(each.rows) for each in records]
    if taken is not None:
        sources.append(with_values(_as_read(taken, stream)))
    return prepared(key, sources, made) if records else classify(sources[-1], stream, layout, move)


def reading_rules(stream: Stream) -> Stream:
    """Return a stream's declaration without what does not change how its files are read and its rows classified."""
    return replace(stream, name="", move_to=None, landing=stream.landing if stream.partitions else Path("/"))


def _classified(source: BatchSource, most: int | None) -> DataFrame:
    stream, taken = source.stream, source.taken
    read = read_files(source.session, stream, source.groups)
    rows = _untaken(read if most is None else read.limit(most))
    rows = rows if taken is None else rows.unionByName(_as_read(taken, stream))
    return classify(rows, stream, source.layout, source.move)


def _untaken(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(
        "*", "false AS _taken", "CAST(NULL AS string) AS _taken_file", "CAST(NULL AS bigint) AS _taken_record"
    )


def _as_read(taken: DataFrame, stream: Stream) -> DataFrame:
    """Rows of the deferred table, with the columns of rows that are read."""
    return taken.selectExpr(
        *[quoted(column.name) for column in stream.columns],
        *[f"CAST({'0' if name == '_zero' else 'NULL'} AS {kind}) AS {name}" for name, kind in SOURCE_COLUMNS.items()],
        "true AS _taken",
        "_file AS _taken_file",
        "_record AS _taken_record",
    )
