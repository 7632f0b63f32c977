"""Rows that the driver writes: the files that Spark would write, without a job of Spark's.

They are distributed, sorted and encoded in the same way: one run for each (sub-index, expiry block), sorted by (search key,
``_exp``) with nulls first and NaN last, row groups, Bloom filters, the second version of Parquet's encodings, no dictionary for
key columns, page checksums, bounds that any reader can trust.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warehouse.layout.columns import CELL
from warehouse.storage.commit import staged_name, unstage
from warehouse.storage.fingerprint import name_of
from warehouse.storage.footers import leaves_of, nearly_unique
from warehouse.storage.recent_rows import SMALL, recent_rows
from warehouse.storage.side_by_side import each
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["EncodedRuns", "as_stored", "encoded_in_driver", "stage_in_driver", "stage_side_rows"]

_TELLING_ROWS = 20_000
"""Upper bound of the rows, or elements of lists, that decide which columns have no dictionary."""
_WHOLE_DIGITS = 18
"""Decimals of as many digits are stored as whole numbers."""
_SPARK_VERSION = "org.apache.spark.version"
"""Without it, and with a certain setting, Spark reads the dates of a file by another calendar."""


class EncodedRun(NamedTuple):
    """The directory of a file in its table, its bytes, and of a small file the rows as they are stored."""

    place: str
    content: pa.Buffer
    rows: pa.Table | None


EncodedRuns = Sequence[EncodedRun]
"""A table's next data files, in memory."""


def encoded_in_driver(
    rows: pa.Table, *, key: Sequence[str], filtered: Collection[str], file_rows: int, group_rows: int
) -> EncodedRuns:
    """Return rows as a table's next data files; several are sorted and encoded at a time.

    Parameters
    ----------
    rows
        The table's columns, partition columns included; types as Spark gives them to Arrow.
    key
        The search key.
    filtered
        The columns of it that get a Bloom filter and no dictionary.
    file_rows, group_rows
        The most rows of a file and of a row group.

    """
    order = [*key, "_exp"]
    in_order = _is_in_order(rows, [*CELL, *order])
    plain = rows.drop_columns(CELL) if in_order else rows.drop_columns(CELL).combine_chunks()

    def encoded(run: _Place) -> list[EncodedRun]:
        own = plain.slice(run.places[0], len(run.places)) if in_order else _sorted(plain, run.places, order)
        return [_encoded_run(run, own.slice(at, file_rows), key, filtered, group_rows) for at in range(0, len(own), file_rows)]

    return [file for files in each(encoded, _runs(rows, in_order=in_order)) for file in files]


def _encoded_run(run: _Place, rows: pa.Table, key: Sequence[str], filtered: Collection[str], group_rows: int) -> EncodedRun:
    stored = rows.cast(as_stored(rows.schema))
    content = _encoded(stored, key, filtered, group_rows)
    return EncodedRun(f"sub_index={run.cell}/exp_block={run.block}", content, stored if content.size <= SMALL else None)


def stage_in_driver(runs: EncodedRuns, table: Path) -> Path:
    """Write a table's next data files and return the directory of them, as :func:`warehouse.storage.commit.stage` does."""
    named = [(run, _name(table, number, run.content)) for number, run in enumerate(runs)]
    staged = _staged(table, ((run.place, name, run.content) for run, name in named))
    if store_of(table).local_paths:
        for run, name in named:  # where the files move to: the next steps look rows up there
            if run.rows is not None:
                recent_rows().keep(str(table / run.place / name), run.rows)
    return staged


def stage_side_rows(rows: pa.Table, table: Path, slots: str | None, *, file_rows: int, group_rows: int) -> Path:
    """Write rows of a side table, in their order, as its next data files and return the directory of the files.

    Parameters
    ----------
    rows
        The table's columns; types as Spark gives them to Arrow.
    table
        The table's directory.
    slots
        The column that partitions it; None for a table without partitions.
    file_rows, group_rows
        The most rows of a file and of a row group.

    """
    parts = _parts(rows, slots)
    pieces = ((directory, part.slice(at, file_rows)) for directory, part in parts for at in range(0, part.num_rows, file_rows))

    def files() -> Iterator[tuple[str, str, pa.Buffer]]:
        for number, (directory, piece) in enumerate(pieces):
            content = _encoded(piece.cast(as_stored(piece.schema)), (), (), group_rows)
            yield directory, _name(table, number, content), content

    return _staged(table, files())


def _parts(rows: pa.Table, slots: str | None) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each partition with its directory."""
    if slots is None:
        yield "", rows
        return
    for slot in pc.unique(rows[slots]).sort().to_pylist():
        yield f"{slots}={slot}", rows.filter(pc.equal(rows[slots], slot)).drop_columns([slots])


def _name(table: Path, number: int, content: pa.Buffer) -> str:
    name = f"part-{number:05d}-{uuid.uuid4()}.zstd.parquet"
    return name_of(name, content) if store_of(table).local_paths else name


def _staged(table: Path, files: Iterable[tuple[str, str, pa.Buffer]]) -> Path:
    """Write files, given as directory, name and content, to the staging directory, and return its path."""
    unstage(table)
    store = store_of(table)
    staged = store.staging_directory(table)
    if store.local_paths:
        staged.mkdir(parents=True, exist_ok=True)
    for directory, name, content in files:  # no sync on a disk: the files move to the partitions, and those are synced
        target = staged / staged_name(directory, name) if store.local_paths else staged / directory / name
        target.write_bytes(content)
    return staged


class _Place(NamedTuple):
    """A sub-index, an expiry block and the places of the rows that belong there."""

    cell: int
    block: int
    places: NDArray[np.int64]


def _runs(rows: pa.Table, *, in_order: bool) -> list[_Place]:
    """The runs of rows, by sub-index and expiry block."""
    cells, blocks = (rows[name].to_numpy() for name in CELL)
    numbers = np.arange(len(cells)) if in_order else np.lexsort((blocks, cells))
    cells, blocks = cells[numbers], blocks[numbers]
    edges = np.flatnonzero((cells[1:] != cells[:-1]) | (blocks[1:] != blocks[:-1])) + 1
    parts = np.split(numbers, edges) if len(numbers) else []
    return [_Place(int(cells[at]), int(blocks[at]), part) for at, part in zip([0, *edges.tolist()], parts, strict=False)]


def _sorted(rows: pa.Table, numbers: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
    """Return the rows with the given numbers, in Spark's order of columns."""
    compared = rows.select(columns).take(pa.array(numbers)).combine_chunks()
    if _are_whole(compared, columns):
        order = np.lexsort(_numbers(compared, columns)[::-1])
    else:
        order = _order(compared, columns).to_numpy()
    return rows.take(pa.array(numbers[order]))


def _is_in_order(rows: pa.Table, columns: Sequence[str]) -> bool:
    """Whether rows are in order of columns of whole numbers; of others it is not asked."""
    if not _are_whole(rows, columns):
        return False
    numbers = _numbers(rows, columns)
    later = np.ones(max(rows.num_rows - 1, 0), dtype=bool)
    for column in reversed(numbers):
        later = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & later)
    return bool(later.all())


def _are_whole(rows: pa.Table, columns: Sequence[str]) -> bool:
    """Whether columns are of whole numbers or times, without nulls."""
    kinds = [rows.schema.field(name).type for name in columns]
    whole = all(pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) for kind in kinds)
    return whole and not any(rows[name].null_count for name in columns)


def _numbers(rows: pa.Table, columns: Sequence[str]) -> list[NDArray[np.int64]]:
    return [rows[name].cast(pa.int64()).to_numpy() for name in columns]


def _order(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The numbers of rows in Spark's order of columns."""
    values: dict[str, pa.ChunkedArray] = {}
    for number, name in enumerate(columns):
        if pa.types.is_floating(rows.schema.field(name).type):
            values[f"nan_{number}"] = pc.is_nan(rows[name])
        values[f"value_{number}"] = rows[name]
    return pc.sort_indices(pa.table(values), sort_keys=[(name, "ascending", "at_start") for name in values])


def _encoded(rows: pa.Table, key: Sequence[str], filtered: Collection[str], group_rows: int) -> pa.Buffer:
    """Encode stored rows as a Parquet file.

    A float column with a NaN gets no bounds, since readers would prune as if there were no NaN.
    """
    nan = [name for name, column in zip(rows.column_names, rows.columns, strict=True) if _has_nan(column)]
    leaves = leaves_of(rows.schema)
    filters = {name: {"ndv": min(group_rows, rows.num_rows), "fpp": 0.01} for name in key if name in filtered}
    differences = _differences(rows, filters, min(group_rows, _TELLING_ROWS))
    content = pa.BufferOutputStream()
    pq.write_table(
        rows,
        content,
        row_group_size=group_rows,
        compression="zstd",
        compression_level=1,
        use_dictionary=[leaf for leaf in leaves if leaf not in differences],
        column_encoding=differences or None,
        data_page_version="2.0",
        write_statistics=[leaf for leaf in leaves if not any(leaf == name or leaf.startswith(f"{name}.") for name in nan)],
        write_page_index=True,
        write_page_checksum=True,
        store_schema=False,
        store_decimal_as_integer=True,
        bloom_filter_options=filters or None,
    )
    return content.getvalue()


@cache
def _spark_version() -> str:
    return version("pyspark")


def _differences(rows: pa.Table, filtered: Collection[str], telling: int) -> dict[str, str]:
    """Return the encodings of columns without a dictionary: columns with a filter, and columns in which few values repeat.

    The first ``telling`` rows, or elements of lists, decide this: each row group has a dictionary.
    """
    encodings = {}
    first = rows.slice(0, telling)
    for name, column in zip(first.column_names, first.columns, strict=True):
        encoding = _encoding(column.type)
        if name in filtered or (encoding and nearly_unique(column)):
            encodings[name] = encoding or "PLAIN"
        if pa.types.is_list(column.type) and pa.types.is_integer(column.type.value_type):
            (leaf,) = leaves_of(pa.schema([rows.schema.field(name)]))
            values = pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)
            if len(values) and nearly_unique(values.slice(0, telling)):
                encodings[leaf] = "DELTA_BINARY_PACKED"
    return encodings


def _encoding(kind: pa.DataType) -> str | None:
    """Return the encoding of Parquet's version 2 for a type, other than dictionaries; None: there is none."""
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return "DELTA_BYTE_ARRAY"
    whole = pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    return "DELTA_BINARY_PACKED" if whole or (pa.types.is_decimal(kind) and kind.precision <= _WHOLE_DIGITS) else None


def as_stored(schema: pa.Schema) -> pa.Schema:
    """Return a schema as files have it, with the mark by which Spark knows how to read their dates."""
    fields = [pa.field(field.name, _nullable(field.type)) for field in schema]
    return pa.schema(fields, metadata={_SPARK_VERSION: _spark_version()})


def _nullable(kind: pa.DataType) -> pa.DataType:
    """A type as Spark writes it: every value may be null, and instants are of no zone."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _nullable(kind.value_type)))
    return pa.timestamp("us", "UTC") if pa.types.is_timestamp(kind) else kind


def _has_nan(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_floating(kind):
        return bool(pc.any(pc.is_nan(column)).as_py())
    if pa.types.is_list(kind):
        return any(_has_nan(pa.chunked_array([chunk.flatten()])) for chunk in column.chunks)
    if pa.types.is_struct(kind):
        return any(_has_nan(pa.chunked_array([child])) for chunk in column.chunks for child in chunk.flatten())
    return False
