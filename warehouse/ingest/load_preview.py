"""Previews a load, before anything is written: a sample of rows as an update would classify them, and counts of a first build."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.ingest.batch import prepare_batch
from warehouse.ingest.batch_source import classified_rows
from warehouse.ingest.classify import ACCEPTED_FATES
from warehouse.ingest.record_parts import reading_rules
from warehouse.ingest.size_estimates import small_enough_for_driver

if TYPE_CHECKING:
    from warehouse.ingest.batch_counts import BatchCounts
    from warehouse.ingest.batch_source import BatchSource

__all__ = ["ClassifiedRows", "FirstBuildPreview", "SampledRow", "preview_first_build", "sample_rows"]


@dataclass(frozen=True)
class SampledRow:
    """A row of a sample: its search key as text, its times in microseconds (None if missing), and its fate.

    ``fate`` is ``live``, ``deferred``, ``dead``, or the reason of a rejection, with a ``message``.
    """

    key: tuple[str | None, ...]
    ts: int | None
    exp: int | None
    fate: str
    message: str | None


def sample_rows(source: BatchSource, most: int) -> tuple[SampledRow, ...]:
    """Return up to ``most`` rows of files as an update classifies them.

    Raises
    ------
    UnreadableFilesError
        With every file that changed, vanished or cannot be read.

    """
    rows = classified_rows(source, most_rows=most)
    with source.naming_unreadable_files():
        key = F.array(*[F.col(quoted(name)).cast("string") for name in source.stream.search_key])
        collected = rows.select(key, F.unix_micros("_ts"), F.unix_micros("_exp"), "_fate", "_message").collect()
    return tuple(SampledRow(tuple(values), ts, exp, fate, message) for values, ts, exp, fate, message in collected)


@dataclass(frozen=True)
class ClassifiedRows:
    """Few waiting rows, classified before their update was planned, and the source that they were read from."""

    source: BatchSource
    rows: pa.Table

    def are_of(self, source: BatchSource) -> bool:
        """Whether these are the rows that a source has now: from the same files, classified by the same rules.

        A later clock accepts rows that were too far ahead of the earlier one, and changes nothing else.
        """
        sampled = self.source
        if (
            source.taken is not None
            or source.change_fates is not None
            or replace(source.move, clock=sampled.move.clock) != sampled.move
        ):
            return False
        if (reading_rules(source.stream), source.layout) != (reading_rules(sampled.stream), sampled.layout):
            return False
        if [(header, [*files]) for header, files in source.groups] != [(header, [*files]) for header, files in sampled.groups]:
            return False
        if source.move.clock == sampled.move.clock:
            return True
        ahead = pc.any(pc.equal(self.rows["_fate"], "too_far_ahead")).as_py()
        return source.move.clock > sampled.move.clock and not ahead


@dataclass(frozen=True)
class FirstBuildPreview:
    """The counts of a first build, the earliest ``ts`` (microseconds) of a valid row, and the rows if they are few."""

    counts: BatchCounts
    earliest: int | None
    rows: ClassifiedRows | None = None


def preview_first_build(source: BatchSource) -> FirstBuildPreview:
    """Return the counts of a first build; nothing is written."""
    batch = prepare_batch(source, few=small_enough_for_driver(source.stream.format, source.files))
    if batch.driver_rows is not None:
        accepted = pc.is_in(batch.driver_rows["_fate"], pa.array(ACCEPTED_FATES))
        earliest = pc.min(batch.driver_rows.filter(accepted)["_ts"].cast(pa.int64())).as_py()
        return FirstBuildPreview(batch.counts, earliest, ClassifiedRows(source, batch.driver_rows))
    try:
        valid = batch.rows.where(F.col("_fate").isin(*ACCEPTED_FATES))
        row = valid.agg(F.min(F.unix_micros("_ts"))).first()
        return FirstBuildPreview(batch.counts, row[0] if row else None)
    finally:
        batch.release()
