"""The data files of a live table: shared with the table where all rows are live, else cut into pieces.

A file is shared by a hard link, which costs no bytes and stays if the table's own name is deleted. If the file system has no
links, and in an object store, it is copied (by the store itself). The Delta protocol allows paths outside a table's directory,
but not every reader supports them: *measured*, delta-rs' dataset and table readers, pandas, Polars and DuckDB over them look for
``../../tables/x/part.parquet`` and for absolute paths below the table; Spark and delta-rs' query engine find them.

The name of each file has the sum of its bytes (:mod:`warehouse.storage.fingerprint`), if the name of the table's file has one.

Files have columns that are not in the live table (``_load_slot``, ``_exp_slot``); readers of Delta use the columns of the schema.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import Schema

from warehouse.layout.columns import CELL
from warehouse.layout.tasks import FILE_ROWS
from warehouse.objects.path import path_of
from warehouse.publishing.live.log import WrittenFile
from warehouse.publishing.live.move import LiveFile, TableFile
from warehouse.serving.statement import instant
from warehouse.serving.visible_tables import is_user_column
from warehouse.storage.duckdb_sql import listed, quoted
from warehouse.storage.fingerprint import require_whole, sum_of_name, summed_name
from warehouse.storage.footers import bounded_leaves, file_statistics
from warehouse.storage.local_disk import undone_on_failure
from warehouse.storage.store import store_of
from warehouse.storage.tables import rows_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from warehouse.epochs.records import TableState
    from warehouse.publishing.live.move import Cut
    from warehouse.serving.pin import Pin
    from warehouse.storage.snapshot import DataFile

__all__ = ["cut_pieces", "require_sources", "share", "table_files"]

_BATCH = 65_536
_GROUP_ROWS = 100_000
_NO_BIT = 64


def table_files(state: TableState, files: Sequence[DataFile]) -> list[TableFile]:
    """Return a table's files in the form that the move of its live table takes."""
    norebuild = state.layout.technique == "norebuild"
    return [
        TableFile(
            identity=_identity(state.table_id, file.path.partition(f"/{state.path}/")[2]),
            path=file.path,
            group=f"b{file.exp_block}" if norebuild else f"s{file.sub_index}",
            min_exp_slot=file.min_exp_slot,
            max_exp_slot=file.max_exp_slot,
        )
        for file in files
    ]


def _identity(table_id: str, path: str) -> str:
    return hashlib.blake2b(f"{table_id}/{path}".encode(), digest_size=8).hexdigest()


def share(table: Path, files: Sequence[TableFile], statistics: Sequence[str]) -> Iterator[WrittenFile]:
    """Yield files of the table that get a name in the live table, too: a hard link, or a copy."""
    for file in files:
        source = path_of(file.path)
        target = table / f"{uuid.uuid4().hex}{sum_of_name(source.name)}.parquet"
        store_of(table).link_or_copy(source, target)
        live_file = LiveFile(target.name, frozenset((file.identity,)), file.group)
        yield _written(target, live_file, statistics)


def _written(target: Path, live_file: LiveFile, statistics: Sequence[str]) -> WrittenFile:
    status = target.stat()
    _, stats = file_statistics(target, statistics)
    return WrittenFile(target.name, status.st_size, status.st_mtime_ns // 1_000_000, stats, live_file)


def require_sources(table: Path, cut: Cut, pin: Pin) -> None:
    """Verify the files whose rows a cut writes again: the engine does not verify them, and the pieces get new checksums.

    Raises
    ------
    DamagedFileError, MissingPartError
        When a file is missing or changed since it was written.

    """
    require_whole([Path(path) for path in pin.local(_source_paths(table, cut))])


def _source_paths(table: Path, cut: Cut) -> list[str]:
    return [*(file.path for file in cut.files), *(str(table / piece.path) for piece in cut.pieces)]


def cut_pieces(
    table: Path, cut: Cut, pin: Pin, state: TableState, connection: duckdb.DuckDBPyConnection, statistics: Sequence[str]
) -> Iterator[WrittenFile]:
    """Write the live rows of a cut into pieces by the bit of their expiration slot, sorted by key and expiry; yield the pieces.

    The engine bounds the memory.
    """
    slot, tau = pin.epoch.slot, pin.epoch.window_time
    schema = _arrow_schema(state)
    columns = ", ".join(quoted(name) for name in schema.names)
    key = "".join(f"{quoted(name)} NULLS FIRST, " for name in state.declaration.search_key)
    paths = listed((pin.schema_file(state), *pin.local(_source_paths(table, cut))))
    differing = f"xor(_exp_slot, {slot}::BIGINT)"
    bit = f"CASE WHEN {differing} < 0 THEN {_NO_BIT} ELSE length(bin({differing})) END"
    query = (
        f'SELECT {columns}, {bit} AS "_bit" FROM read_parquet({paths}, union_by_name = true, hive_partitioning = false) '
        f'WHERE _exp > {instant(tau)} ORDER BY "_bit", {key}_exp'
    )
    reader = connection.sql(query).to_arrow_reader(_BATCH)
    for _, run in groupby(_runs_of_equal_bits(reader), key=itemgetter(0)):
        batches = map(itemgetter(1), run)
        for first in batches:
            name, low, high = _write_piece(table, chain((first,), _batches_of(batches, FILE_ROWS - first.num_rows)), schema)
            yield _written(table / name, LiveFile(name, cut.sources, cut.group, slot, low, high), statistics)


def _arrow_schema(state: TableState) -> pa.Schema:
    columns = [column for column in state.declaration.columns if is_user_column(column.name)]
    fields = rows_schema(columns)
    fields["fields"] = [field for field in fields["fields"] if field["name"] not in CELL]
    return pa.schema(Schema.from_json(json.dumps(fields)).to_arrow())


def _batches_of(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches until they have the given number of rows."""
    while rows > 0 and (batch := next(batches, None)) is not None:
        rows -= batch.num_rows
        yield batch


def _runs_of_equal_bits(reader: pa.RecordBatchReader) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in reader:
        bits = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
        rows = batch.select(batch.schema.names[:-1])
        begin = 0
        while begin < len(bits):
            end = begin + int((bits[begin:] == bits[begin]).sum())  # sorted
            yield int(bits[begin]), rows.slice(begin, end - begin)
            begin = end


def _write(file: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> tuple[int, int]:
    """Write a file and return its smallest and largest expiration slot."""
    lows, highs = [], []
    with pq.ParquetWriter(file, schema, write_page_checksum=True, write_statistics=bounded_leaves(schema)) as writer:
        for batch in batches:
            rows = pa.Table.from_batches([batch]).cast(schema)
            ends = pc.min_max(rows.column("_exp_slot")).as_py()
            lows.append(ends["min"])
            highs.append(ends["max"])
            writer.write_table(rows, row_group_size=_GROUP_ROWS)
    store_of(file).sync_file(file)
    return min(lows), max(highs)


def _write_piece(table: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> tuple[str, int, int]:
    """Write a file of the live table; return its name, which has the sum of its bytes, and its bounds as :func:`_write` does."""
    with store_of(table).writing_into(table) as directory:
        return _write_named_by_sum(directory, batches, schema)


def _write_named_by_sum(directory: Path, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> tuple[str, int, int]:
    file = directory / f"{uuid.uuid4().hex}.parquet"
    with undone_on_failure(lambda: file.unlink(missing_ok=True)):
        low, high = _write(file, batches, schema)
        name = summed_name(file, whole=True)
        file.rename(directory / name)
    return name, low, high
