"""Collects rows in the driver by the Spark job that reads and classifies many rows of a stream: the counts, and columns.

If the rows are surely not too many, these are all columns of the table: the driver writes the rows, and no job reads them again.
An upper bound of the rows is known before the job: from the footers of Parquet, and from the line ends of plain text. Their width
is only known in the job: a row that is too wide comes without its texts, and then Spark writes the rows of the batch.
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
from warehouse.ingest.whole_json import is_read_whole
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

__all__ = ["NO_REQUEST", "CollectRequest", "CollectedRows", "collect_rows", "writes_in_driver"]

_COUNTED_COLUMNS = (*CELL, "_fate", "_taken", "_arrival_slot", "_late", "_over")
"""The columns by which rows are counted."""
_WIDE = "_wide"
_TEXT_BYTES = 256
"""Bytes that a text has on average, by assumption, if only some columns are requested."""
_WIDTHS: dict[type[DataType], int] = {BooleanType: 1, ByteType: 1, ShortType: 2, IntegerType: 4, DecimalType: 16}
"""Bytes of values in memory; other values have 8 bytes, and texts their own bytes in addition."""
_CHUNK = 1 << 20
_CACHED_FILES = 50_000


@dataclass(frozen=True)
class CollectRequest:
    """What the driver needs of a batch in addition to its counts.

    Parameters
    ----------
    columns
        Columns that other steps need of all rows, if these are surely not too many or too wide.
    table_columns
        All columns of the table, for a step that the driver may execute; empty for others.
    read_again
        Whether other steps read the rows of the batch, too.

    """

    columns: Sequence[str] = ()
    table_columns: Sequence[str] = ()
    read_again: bool = True


NO_REQUEST = CollectRequest()


class CollectedRows(NamedTuple):
    """Rows in the driver: the counted columns and, if no row is too wide, the requested columns and the rows of the table."""

    counted: pa.Table
    columns: pa.Table | None
    table_rows: pa.Table | None


class _Extent(NamedTuple):
    """Upper bound of the rows in files, and about how many bytes their values have."""

    rows: int
    values: int


def writes_in_driver(stream: Stream, files: Sequence[LandingFile], waiting: int) -> bool:
    """Whether the driver is expected to write the rows of landing files and ``waiting`` deferred rows, which Spark classifies."""
    extent = _extent_of(stream, files)
    kinds = [DataType.fromDDL(column.type) for column in stream.columns]
    return extent is not None and not any(map(_is_nested, kinds)) and _fits(kinds, extent, waiting)


def collect_rows(
    rows: DataFrame, stream: Stream, files: Sequence[LandingFile], waiting: int, request: CollectRequest
) -> CollectedRows | None:
    """Run the job that classifies a batch, and return the rows that the driver collects; None if Spark has to count the rows.

    Parameters
    ----------
    rows
        The classified rows.
    stream, files
        The stream and the landing files that the rows come from.
    waiting
        The number of deferred rows that may be among them.
    request
        The columns that are needed.

    """
    extent = _extent_of(stream, files)
    requested = [*request.table_columns, *request.columns]
    if extent is None or not requested:
        return None
    kinds = {field.name.lower(): field.dataType for field in rows.schema}
    table_kinds = [kinds[name.lower()] for name in request.table_columns]
    by_driver = bool(table_kinds) and not any(map(_is_nested, table_kinds)) and _fits(table_kinds, extent, waiting)
    stored_names = {name.lower(): name for name in rows.columns}
    names = list(dict.fromkeys(stored_names[name.lower()] for name in (*(requested if by_driver else request.columns), "_ts")))
    texts = [name for name in names if isinstance(kinds[name.lower()], StringType | BinaryType)]
    most_rows = extent.rows + waiting
    if by_driver:
        widest = 2 * limits().written_bytes // max(1, most_rows) - _width([kinds[name.lower()] for name in names])
    elif request.columns and most_rows * max(1, len(texts)) <= limits().array_points:
        widest = _TEXT_BYTES * len(texts)
    else:
        return None
    for_driver = _rows_for_driver(rows, names, texts, widest)
    if not can_be_collected(for_driver.schema):
        return None
    try:
        collected = for_driver.toArrow()
    except (*SPARK_FAILURES, pa.ArrowException) as error:  # damage ends the next job, too, and is reported then
        leave_to_spark(error)
        return None
    if pc.any(collected[_WIDE]).as_py():
        return CollectedRows(collected, None, None)
    columns = with_names(collected, [*request.columns, "_ts", "_fate"]) if request.columns else None
    return CollectedRows(collected, columns, _live_rows(collected, request.table_columns) if by_driver else None)


def _rows_for_driver(rows: DataFrame, columns: Sequence[str], texts: Sequence[str], widest: int) -> DataFrame:
    """Return the rows for the driver; a row whose texts have more than ``widest`` bytes comes without them."""
    length = " + ".join(f"coalesce(octet_length({quoted(name)}), 0)" for name in texts) or "0"
    counted = [name for name in _COUNTED_COLUMNS if name not in columns]
    measured = rows.selectExpr(*map(quoted, columns), *counted, f"{length} > {widest}L AS {_WIDE}")
    values = {name: f"CASE WHEN NOT {_WIDE} THEN {quoted(name)} END AS {quoted(name)}" for name in texts}
    return measured.selectExpr(*[values.get(name, quoted(name)) for name in columns], *counted, _WIDE)


def _live_rows(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    live = pc.equal(rows["_fate"], "live")
    chosen = with_names(rows, columns)
    return chosen if pc.all(live).as_py() else chosen.filter(live)


def _fits(kinds: Sequence[DataType], extent: _Extent, waiting: int) -> bool:
    rows = extent.rows + waiting
    return limits().writes_in_driver(rows, rows * _width(kinds) + extent.values)


def _width(kinds: Sequence[DataType]) -> int:
    """Return the bytes of a row without its texts, with the columns that are counted."""
    longs = 10  # four system columns, the cell, and the other counted columns
    return sum(_WIDTHS.get(type(kind), 8) for kind in kinds) + 8 * longs


def _is_nested(kind: DataType) -> bool:
    return isinstance(kind, ArrayType | StructType)


def _extent_of(stream: Stream, files: Sequence[LandingFile]) -> _Extent | None:
    """Return how much landing files hold; None if it is not known."""
    try:
        if stream.format == "parquet":
            return _extent_of_footers(stream, files)
        return None if stream.format in COLUMNAR else _extent_of_lines(stream, files)
    except (pa.ArrowException, OSError):  # the reader of the rows reports the fault
        return None


def _extent_of_footers(stream: Stream, files: Sequence[LandingFile]) -> _Extent:
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and those who load text need it later

    footers = [pq.read_metadata(stream.landing / file.path) for file in files if file.size]
    values = sum(footer.row_group(number).total_byte_size for footer in footers for number in range(footer.num_row_groups))
    return _Extent(sum(footer.num_rows for footer in footers), values)


def _extent_of_lines(stream: Stream, files: Sequence[LandingFile]) -> _Extent | None:
    """Return the extent by counting line ends: a record has one or more; None for compressed files and JSON arrays."""
    values = sum(file.size for file in files)
    if values > limits().written_bytes or any(is_compressed(file.path) or is_read_whole(stream, file) for file in files):
        return None
    return _Extent(sum(_lines(stream.landing / file.path, file.size, file.mtime_ns) for file in files), values)


@lru_cache(maxsize=_CACHED_FILES)
def _lines(path: Path, extent: int, mtime_ns: int) -> int:  # noqa: ARG001 - the file's identity
    """Return an upper bound of the lines of a file; each line ends with one or two characters."""
    with open_regular(path) as content:
        return 1 + sum(chunk.count(b"\n") + chunk.count(b"\r") for chunk in iter(lambda: content.read(_CHUNK), b""))
