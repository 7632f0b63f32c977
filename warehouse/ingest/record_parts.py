"""What all readers of landing files share: the file's path, the position of a record, the name of a value in messages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from warehouse.catalog.model import Stream
    from warehouse.ingest.columns import Input
    from warehouse.ingest.files import LandingFile

__all__ = [
    "RECORD_POSITION",
    "SHAPE",
    "DelimitedShape",
    "FileRecords",
    "name_in_messages",
    "paths_of",
    "reading_rules",
    "record_position",
]

RECORD_POSITION = (
    "_metadata.file_path AS _file",
    "_metadata.file_block_start AS _start",
    "monotonically_increasing_id() AS _position",
    "CAST(_metadata.file_block_start < 0 AS int) AS _zero",
)
"""The position of a record, and the number 0 (see :mod:`.reading`), as Spark SQL."""
SHAPE = "_shape"
"""The column of a record's text when it does not have the shape that was expected."""


@dataclass(frozen=True)
class FileRecords:
    """Records of files from Spark's reader, each with its position.

    Parameters
    ----------
    paths
        The files.
    read
        Returns the records as a frame.
    shape
        How records are made of lines; None for JSON.
    key
        Everything on which the frame depends besides the paths, so that its plan can read other files; None: it also depends on
        what is in the files.

    """

    paths: list[str]
    read: Callable[[], DataFrame]
    shape: DelimitedShape | None
    key: Hashable | None


@dataclass(frozen=True)
class DelimitedShape:
    """How lines of fields are read: the header's names, and the UTF-16 encoding (None: the encoding extends ASCII).

    ``doubtful``: a line may leave a quote open, so each line is checked. ``line_end``: the line end of records over several
    lines, or None if a record is a line.
    """

    header: tuple[str, ...]
    utf_16: str | None
    doubtful: bool = False
    line_end: str | None = None


def paths_of(stream: Stream, files: Sequence[LandingFile]) -> list[str]:
    """Return the paths of files for Spark's reader."""
    return [str(stream.landing / file.path) for file in files]


def reading_rules(stream: Stream) -> Stream:
    """Return the part of a stream's declaration that decides how its files are read and its rows are classified."""
    return replace(stream, name="", move_to=None, landing=stream.landing if stream.partitions else Path("/"))


def record_position() -> list[SparkColumn]:
    """Return the columns with the position of a record, and the number 0 (see :mod:`.reading`)."""
    return [F.expr(sql) for sql in RECORD_POSITION]


def name_in_messages(input_: Input) -> str:
    """Return the name of a value in messages: its column, or for a source column the name in the file."""
    return input_.source if input_.label.startswith("_source_") else input_.label
