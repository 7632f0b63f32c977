"""What each reader of landing files gives beside values: the files' paths, where a record stands, what a value is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn

    from warehouse.catalog.model import Stream
    from warehouse.ingest.columns import Input
    from warehouse.ingest.files import LandingFile

__all__ = ["SHAPE", "called_of", "paths_of", "place_of_record"]

SHAPE = "_shape"
"""The column of a record's text when it does not have the shape that was expected."""


def paths_of(stream: Stream, files: Sequence[LandingFile]) -> list[str]:
    """Return the paths that Spark is given."""
    return [str(stream.landing / file.path) for file in files]


def place_of_record() -> list[SparkColumn]:
    """Return the columns that say where a record stands, and the number 0 (see :mod:`.reading`)."""
    return [
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.file_block_start").alias("_start"),
        F.monotonically_increasing_id().alias("_position"),
        F.expr("CAST(_metadata.file_block_start < 0 AS int)").alias("_zero"),
    ]


def called_of(given: Input) -> str:
    """Return what messages call a value: its column, or of a source column the name in the file."""
    return given.source if given.label.startswith("_source_") else given.label
