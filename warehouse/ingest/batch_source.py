"""The inputs of a stream's batch, and their rows as a frame of classified rows, before any of them is read."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.errors import FileProblem, UnreadableFilesError
from warehouse.ingest.bounds import bounds_problems
from warehouse.ingest.classify import WindowMove, classify
from warehouse.ingest.landing import changed_file_problems
from warehouse.ingest.object_copies import copy_objects
from warehouse.ingest.reading import SOURCE_COLUMNS, declared_rows, read_files, read_records, typed_rows
from warehouse.ingest.record_parts import reading_rules
from warehouse.ingest.unreadable_files import SPARK_FAILURES, unreadable_files
from warehouse.storage.prepared import planned, prepared
from warehouse.storage.prepared_scans import FileScan, scanned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile
    from warehouse.ingest.record_parts import FileRecords
    from warehouse.layout import Layout
    from warehouse.storage.prepared import PlannedRows

__all__ = ["BatchSource", "classified_rows", "raise_problems"]


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
    change_fates
        Changes the fate of classified rows by stored rows; None: stored rows change no fate.

    """

    session: SparkSession
    stream: Stream
    layout: Layout
    move: WindowMove
    groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
    taken: DataFrame | None = None
    change_fates: Callable[[DataFrame], DataFrame] | None = None
    waiting: int = 0

    @property
    def files(self) -> list[LandingFile]:
        """All files."""
        return [file for _, members in self.groups for file in members]

    def require_readable(self) -> None:
        """Check the files before they are read.

        Raises
        ------
        UnreadableFilesError
            With every file that changed, vanished or is beyond the bounds.

        """
        stream, files = self.stream, self.files
        raise_problems(
            stream, copy_objects(stream, files) or changed_file_problems(stream.landing, files) or bounds_problems(stream, files)
        )

    @contextmanager
    def naming_unreadable_files(self) -> Iterator[None]:
        """Replace failures of Spark by errors that name the files that cannot be read."""
        try:
            yield
        except SPARK_FAILURES as error:
            raise_problems(self.stream, unreadable_files(self.session, self.stream, self.groups))
            raise error from None


def classified_rows(source: BatchSource, *, few: bool = False, most_rows: int | None = None) -> DataFrame:
    """Return the rows of a batch, classified, before any of them is read; parameters and errors as of :func:`prepare_batch`.

    At most ``most_rows`` rows are read from files; None: all rows.
    """
    source.require_readable()
    with source.naming_unreadable_files():
        if few and source.change_fates is None and any(file.size for file in source.files):
            return _classified_by_cached_plan(source)
        rows = _classified(source, most_rows)
        return rows if source.change_fates is None else source.change_fates(rows)


def raise_problems(stream: Stream, problems: Sequence[FileProblem]) -> None:
    """Raise :class:`UnreadableFilesError` if files have problems."""
    if problems:
        raise UnreadableFilesError(stream.name, problems)


def _classified_by_cached_plan(source: BatchSource) -> DataFrame:
    """Return the rows of :func:`_classified`; the plan comes from the cache if a stream was read in the same way before."""
    session, stream, layout, deferred = source.session, source.stream, source.layout, source.taken
    move = replace(source.move, carried=True)
    records = read_records(session, stream, source.groups)
    shapes = tuple(record.shape for record in records)
    key = (reading_rules(stream), layout, move.rules, shapes, deferred is not None)

    def made(sources: Sequence[DataFrame]) -> DataFrame:
        parts = [typed_rows(rows, stream, shape) for rows, shape in zip(sources, shapes, strict=False)]
        read_rows = _without_deferred_rows(declared_rows(session, stream, parts))
        return classify(read_rows if deferred is None else read_rows.unionByName(sources[-1]), stream, layout, move)

    sources = [_records_with_values(record, session, move) for record in records]
    if deferred is not None:
        sources.append(planned(_with_values(_deferred_as_read(deferred, stream), move)))
    return prepared(key, sources, made)


def _with_values(rows: DataFrame, move: WindowMove) -> DataFrame:
    """Return rows with the values that change from one update to the next."""
    return rows.withColumn("_zero", F.expr(move.values))


def _records_with_values(records: FileRecords, session: SparkSession, move: WindowMove) -> PlannedRows:
    """Return records with the values that change from one update to the next; the plan comes from the cache, too."""
    if records.key is None:
        return planned(_with_values(records.read(), move))

    def read() -> DataFrame:
        return _with_values(records.read(), move)

    return scanned(FileScan(session, records.paths, read, records.key, "_zero", move.numbers))


def _classified(source: BatchSource, most_rows: int | None) -> DataFrame:
    stream, deferred = source.stream, source.taken
    read_rows = read_files(source.session, stream, source.groups)
    rows = _without_deferred_rows(read_rows if most_rows is None else read_rows.limit(most_rows))
    rows = rows if deferred is None else rows.unionByName(_deferred_as_read(deferred, stream))
    return classify(rows, stream, source.layout, source.move)


def _without_deferred_rows(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(
        "*", "false AS _taken", "CAST(NULL AS string) AS _taken_file", "CAST(NULL AS bigint) AS _taken_record"
    )


def _deferred_as_read(deferred: DataFrame, stream: Stream) -> DataFrame:
    """Return rows of the deferred table with the columns of rows that are read from files."""
    return deferred.selectExpr(
        *[quoted(column.name) for column in stream.columns],
        *[f"CAST({'0' if name == '_zero' else 'NULL'} AS {kind}) AS {name}" for name, kind in SOURCE_COLUMNS.items()],
        "true AS _taken",
        "_file AS _taken_file",
        "_record AS _taken_record",
    )
