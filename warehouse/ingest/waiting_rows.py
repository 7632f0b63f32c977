"""Looks at waiting rows before anything is loaded: samples as an update would classify them, and the counts of a first build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.ingest.batch import classified, prepare
from warehouse.ingest.bounds import surely_few
from warehouse.ingest.classify import ACCEPTED_FATES

if TYPE_CHECKING:
    from warehouse.ingest.batch import BatchSource
    from warehouse.ingest.batch_counts import BatchCounts

__all__ = ["FirstLook", "SampledRow", "first_look", "sample_rows"]


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
    rows = classified(source, most=most)
    with source.blamed():
        key = F.array(*[F.col(quoted(name)).cast("string") for name in source.stream.search_key])
        found = rows.select(key, F.unix_micros("_ts"), F.unix_micros("_exp"), "_fate", "_message").collect()
    return tuple(SampledRow(tuple(values), ts, exp, fate, message) for values, ts, exp, fate, message in found)


@dataclass(frozen=True)
class FirstLook:
    """The counts of a first build, and the earliest ``ts`` (microseconds) of a valid row."""

    counts: BatchCounts
    earliest: int | None


def first_look(source: BatchSource) -> FirstLook:
    """Look at a batch before anything is loaded."""
    batch = prepare(source, few=surely_few(source.stream.format, source.files))
    if batch.known is not None:
        accepted = pc.is_in(batch.known["_fate"], pa.array(ACCEPTED_FATES))
        return FirstLook(batch.counts, pc.min(batch.known.filter(accepted)["_ts"].cast(pa.int64())).as_py())
    try:
        valid = batch.rows.where(F.col("_fate").isin(*ACCEPTED_FATES))
        row = valid.agg(F.min(F.unix_micros("_ts"))).first()
        return FirstLook(batch.counts, row[0] if row else None)
    finally:
        batch.release()
