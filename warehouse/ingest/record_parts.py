"""Values that each reader of landing files adds: the file's path, the place of a record, the name of a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from warehouse.catalog.model import Stream
    from warehouse.ingest.columns import Input
    from warehouse.ingest.files import LandingFile

__all__ = ["PLACE_OF_RECORD", "SHAPE", "Delimited", "FileRecords", "called_of", "paths_of", "place_of_record"]

PLACE_OF_RECORD = (
    "_metadata.file_path AS _file",
    "_metadata.file_block_start AS _start",
    "monotonically_increasing_id() AS _position",
    "CAST(_metadata.file_block_start < 0 AS int) AS _zero",
)
"""Where a record stands, and the number 0 (see :mod:`.reading`), as Spark SQL."""
SHAPE = "_shape"
"""The column of a record's text when it does not have the shape that was expected."""


@dataclass(frozen=True)
class FileRecords:
    """Records of files as Spark's reader gives them, each with where it stands; ``shape``: how they are read, None for JSON."""

    rows: DataFrame
    shape: Delimited | None


@dataclass(frozen=True)
class Delimited:
    """How lines of fields are read: the header's names, and the UTF-16 encoding (None: the encoding extends ASCII).

    ``doubtful``: a line may leave a quote open, so each line is checked. ``ends``: the line end of records over several lines, or
    None if a record is a line.
    """

    header: tuple[str, ...]
    wide: str | None
    doubtful: bool = False
    ends: str | None = None


def paths_of(stream: Stream, files: Sequence[LandingFile]) -> list[str]:
    """Return the paths that Spark is given."""
    return [str(stream.landing / file.path) for file in files]


def place_of_record() -> list[SparkColumn]:
    """Return the columns that say where a record stands, and the number 0 (see :mod:`.reading`)."""
    return [F.expr(sql) for sql in PLACE_OF_RECORD]


def called_of(given: Input) -> str:
    """Return the name of a value in messages: its column, or for a source column the name in the file."""
    return given.source if given.label.startswith("_source_") else given.label
