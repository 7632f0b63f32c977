"""Where a rejected or deferred row stood: its file and the number of its record, from 1 without the header.

Spark numbers rows by task; a record's number is its position among the records of its split plus those of the splits
before it, so one small aggregate over the batch is collected (only when there are such rows).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.ingest.local import local_frame
from warehouse.ingest.reading import relative_path

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

__all__ = ["with_records"]



def with_records(batch: DataFrame, chosen: DataFrame, landing: Path) -> DataFrame:
    """Return ``chosen`` rows of ``batch`` with ``file`` (relative) and ``record`` in place of the source columns.

    Rows that come from the deferred table have both already (``_taken_file``, ``_taken_record``).
    """
    session = batch.sparkSession
    splits = (
        batch.where(F.col("_file").isNotNull())
        .groupBy("_file", "_start")
        .agg(F.min("_position").alias("first"), F.count("*").alias("rows"))
        .orderBy("_file", "_start")
        .collect()
    )
    lines, before, last = [], 0, None
    for split in splits:
        before = 0 if split["_file"] != last else before
        lines.append((split["_file"], split["_start"], relative_path(split["_file"], landing), split["first"] - before))
        before += split["rows"]
        last = split["_file"]
    known = local_frame(session, lines, "_file string, _start bigint, _path string, _first bigint")
    joined = chosen.join(F.broadcast(known), ["_file", "_start"], "left")
    return (
        joined.withColumn("file", F.coalesce("_taken_file", "_path"))
        .withColumn("record", F.coalesce("_taken_record", F.col("_position") - F.col("_first") + 1))
        .drop("_path", "_first")
    )
