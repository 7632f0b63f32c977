"""Finds the file and the record number of rejected and deferred rows; numbers begin with 1 after the header.

Spark numbers rows by task. A record's number is its position in its split plus the number of records of the splits before it. So
one small aggregate over the batch is collected, only if there are such rows. The driver counts its own rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.ingest.reading import relative_path
from warehouse.storage.arrow_types import local_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame

__all__ = ["with_record_numbers", "with_record_numbers_in_driver"]

_Split = tuple[str, int]
"""The URI of a file, and where a part of it starts that one task reads."""


def with_record_numbers(batch: DataFrame, chosen: DataFrame, landing: Path) -> DataFrame:
    """Return ``chosen`` rows of ``batch`` with ``file`` (relative) and ``record`` in place of the source columns.

    Rows that come from the deferred table have both values already (``_taken_file``, ``_taken_record``).
    """
    session = batch.sparkSession
    splits = (
        batch.where(F.col("_file").isNotNull())
        .groupBy("_file", "_start")
        .agg(F.min("_position").alias("first"), F.count("*").alias("rows"))
        .orderBy("_file", "_start")
        .collect()
    )
    firsts = _firsts((split["_file"], split["_start"], split["first"], split["rows"]) for split in splits)
    lines = [(uri, start, relative_path(uri, landing), first) for (uri, start), first in firsts]
    first_positions = local_frame(session, lines, "_file string, _start bigint, _path string, _first bigint")
    joined = chosen.join(F.broadcast(first_positions), ["_file", "_start"], "left")
    return (
        joined.withColumn("file", F.coalesce("_taken_file", "_path"))
        .withColumn("record", F.coalesce("_taken_record", F.col("_position") - F.col("_first") + 1))
        .drop("_path", "_first")
    )


def with_record_numbers_in_driver(batch: pa.Table, chosen: pa.ChunkedArray, landing: Path) -> tuple[pa.Table, pa.Array, pa.Array]:
    """Return chosen rows of a batch in the driver, and the file (relative) and record of each, as :func:`with_record_numbers`.

    Parameters
    ----------
    batch
        All rows, with the source columns and the columns of rows taken from the deferred table.
    chosen
        Whether each row is chosen.
    landing
        The directory that files are relative to.

    """
    read_rows = batch.filter(pc.is_valid(batch["_file"])).select(["_file", "_start", "_position"])
    splits = read_rows.group_by(["_file", "_start"]).aggregate([("_position", "min"), ([], "count_all")])
    columns = (splits[name].to_pylist() for name in ("_file", "_start", "_position_min", "count_all"))
    firsts = dict(_firsts(sorted(zip(*columns, strict=True))))
    paths = {uri: relative_path(uri, landing) for uri, _ in firsts}
    rows = batch.filter(chosen)
    names = ("_file", "_start", "_position", "_taken_file", "_taken_record")
    files, records = [], []
    for uri, start, position, taken_file, taken_record in zip(*(rows[name].to_pylist() for name in names), strict=True):
        files.append(paths[uri] if taken_file is None else taken_file)
        records.append(position - firsts[uri, start] + 1 if taken_record is None else taken_record)
    return rows, pa.array(files, pa.string()), pa.array(records, pa.int64())


def _firsts(splits: Iterable[tuple[str, int, int, int]]) -> Iterator[tuple[_Split, int]]:
    """Yield each split with the position of its file's first record, in the numbering of the task that reads the split.

    ``splits`` are (file, start, least position, rows), in order.
    """
    rows_before, last = 0, None
    for uri, start, first, rows in splits:
        rows_before = rows_before if uri == last else 0
        yield (uri, start), first - rows_before
        rows_before += rows
        last = uri
