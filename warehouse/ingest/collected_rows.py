"""What the Spark job that reads and classifies many rows of a stream hands to the driver: counts, and columns of the rows.

If the rows are surely not too many, these are all columns of the table: the driver writes the rows, and no job reads them again.
How many rows there are at most is known before the job: from the footers of Parquet, and from the line ends of plain text. How
wide they are shows in the job: a row that is too wide comes without its texts, then Spark writes the rows of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    IntegerType,
    ShortType,
    StringType,
    StructType,
)

from warehouse.catalog.codecs import is_compressed
from warehouse.catalog.identifiers import quoted
from warehouse.catalog.model import COLUMNAR
from warehouse.ingest.landing import open_regular
from warehouse.ingest.unreadable_files import SPARK_FAILURES
from warehouse.ingest.whole_json import is_whole
from warehouse.layout.columns import CELL
from warehouse.limits import limits
from warehouse.storage.arrow_types import can_be_collected, with_names
from warehouse.storage.lookup import leave_to_spark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["NOTHING", "Collected", "Wanted", "collected", "writes_in_driver"]

_COUNTED = (*CELL, "_fate", "_taken", "_arrival_slot", "_late", "_over")
"""What is counted of rows."""
_WIDE = "_wide"
_TEXT_BYTES = 256
"""Bytes of a text, on average, that are expected where only some columns are asked for."""
_WIDTHS: dict[type[DataType], int] = {BooleanType: 1, ByteType: 1, ShortType: 2, IntegerType: 4, DecimalType: 16}
"""Bytes of values in memory; other values have 8 bytes, and texts their own bytes in addition."""
_CHUNK = 1 << 20
_KNOWN = 50_000


@dataclass(frozen=True)
class Wanted:
    """What is asked of a batch in addition to its counts.

    Parameters
    ----------
    some
        Columns that others need of all rows, if they are surely not too many or too wide.
    stored
        All columns of the table, for a step that the driver may execute; empty for others.
    again
        Whether other steps read the rows of the batch, too.

    """

    some: Sequence[str] = ()
    stored: Sequence[str] = ()
    again: bool = True


NOTHING = Wanted()


class Collected(NamedTuple):
    """Rows in the driver: what is counted of them; the columns that are asked for, if no row is too wide."""

    counted: pa.Table
    some: pa.Table | None
    live: pa.Table | None


class _Extent(NamedTuple):
    """Upper bound of the rows of files, and about how many bytes their values have."""

    rows: int
    values: int


def writes_in_driver(stream: Stream, files: Sequence[LandingFile], waiting: int) -> bool:
    """Whether the driver is expected to write the rows of landing files that Spark classifies, with some that wait."""
    size = _size_of(stream, files)
    kinds = [DataType.fromDDL(column.type) for column in stream.columns]
    return size is not None and not any(map(_is_nested, kinds)) and _fits(kinds, size, waiting)


def collected(rows: DataFrame, stream: Stream, files: Sequence[LandingFile], waiting: int, asked: Wanted) -> Collected | None:
    """Run the job that classifies a batch and return what it hands to the driver; None: Spark is to count the rows.

    Parameters
    ----------
    rows
        The classified rows.
    stream, files
        The stream and the landing files that the rows come from.
    waiting
        How many deferred rows may be among them.
    asked
        What is asked for.

    """
    size = _size_of(stream, files)
    names = [*asked.stored, *asked.some]
    if size is None or not names:
        return None
    kinds = {field.name.lower(): field.dataType for field in rows.schema}
    stored = bool(asked.stored) and not any(_is_nested(kinds[name.lower()]) for name in asked.stored)
    stored = stored and _fits([kinds[name.lower()] for name in asked.stored], size, waiting)
    own = {name.lower(): name for name in rows.columns}
    columns = list(dict.fromkeys(own[name.lower()] for name in ([*names, "_ts"] if stored else [*asked.some, "_ts"])))
    texts = [name for name in columns if isinstance(kinds[name.lower()], StringType | BinaryType)]
    most = size.rows + waiting
    if stored:
        widest = 2 * limits().written_bytes // max(1, most) - _width([kinds[name.lower()] for name in columns])
    elif asked.some and most * max(1, len(texts)) <= limits().array_points:
        widest = _TEXT_BYTES * len(texts)
    else:
        return None
    handed = _handed(rows, columns, texts, widest)
    if not can_be_collected(handed.schema):
        return None
    try:
        found = handed.toArrow()
    except (*SPARK_FAILURES, pa.ArrowException) as error:  # damage ends the next job, too, and is reported then
        leave_to_spark(error)
        return None
    whole = not pc.any(found[_WIDE]).as_py()
    some = with_names(found, [*asked.some, "_ts", "_fate"]) if asked.some and whole else None
    return Collected(found, some, _live(found, asked.stored) if stored and whole else None)


def _handed(rows: DataFrame, columns: Sequence[str], texts: Sequence[str], widest: int) -> DataFrame:
    """The rows that the job hands to the driver: without texts where these have more bytes than ``widest``."""
    length = " + ".join(f"coalesce(octet_length({quoted(name)}), 0)" for name in texts) or "0"
    own = [name for name in _COUNTED if name not in columns]
    measured = rows.selectExpr(*map(quoted, columns), *own, f"{length} > {widest}L AS {_WIDE}")
    values = {name: f"CASE WHEN NOT {_WIDE} THEN {quoted(name)} END AS {quoted(name)}" for name in texts}
    return measured.selectExpr(*[values.get(name, quoted(name)) for name in columns], *own, _WIDE)


def _live(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    live = pc.equal(rows["_fate"], "live")
    chosen = with_names(rows, columns)
    return chosen if pc.all(live).as_py() else chosen.filter(live)


def _fits(kinds: Sequence[DataType], size: _Extent, waiting: int) -> bool:
    rows = size.rows + waiting
    return limits().writes_in_driver(rows, rows * _width(kinds) + size.values)


def _width(kinds: Sequence[DataType]) -> int:
    """Bytes of a row without its texts, with what is counted of it."""
    longs = 10  # four columns of the system, the cell and what else is counted of a row
    return sum(_WIDTHS.get(type(kind), 8) for kind in kinds) + 8 * longs


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, ArrayType | StructType)


def _size_of(stream: Stream, files: Sequence[LandingFile]) -> _Extent | None:
    """How much landing files hold; None if it is not known."""
    try:
        if stream.format == "parquet":
            return _of_footers(stream, files)
        return None if stream.format in COLUMNAR else _of_lines(stream, files)
    except (pa.ArrowException, OSError):  # who reads the rows reports what is wrong with them
        return None


def _of_footers(stream: Stream, files: Sequence[LandingFile]) -> _Extent:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and those who load text need it later

    footers = [pq.read_metadata(stream.landing / file.path) for file in files if file.size]
    values = sum(footer.row_group(number).total_byte_size for footer in footers for number in range(footer.num_row_groups))
    return _Extent(sum(footer.num_rows for footer in footers), values)


def _of_lines(stream: Stream, files: Sequence[LandingFile]) -> _Extent | None:
    """Count line ends, of which a record has one or more; an array in JSON and a compressed file are not looked into."""
    values = sum(file.size for file in files)
    if values > limits().written_bytes or any(is_compressed(file.path) or is_whole(stream, file) for file in files):
        return None
    return _Extent(sum(_lines(stream.landing / file.path, file.size, file.mtime_ns) for file in files), values)


@lru_cache(maxsize=_KNOWN)
def _lines(path: Path, size: int, mtime_ns: int) -> int:  # noqa: ARG001 - the file's identity
    """Upper bound of the lines of a file, which ends each with one or two signs."""
    with open_regular(path) as content:
        return 1 + sum(chunk.count(b"\n") + chunk.count(b"\r") for chunk in iter(lambda: content.read(_CHUNK), b""))
