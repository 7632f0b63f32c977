"""Reading a table at a version into Spark without Delta's own snapshot: the files are known, so they are simply read.

Delta builds a snapshot with a Spark job for each version that is read and runs another to choose files; here the log is
read without a JVM and files are left out by exact bounds of the two slots, which is all that maintaining views needs.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import CELL, SLOTS, WAITING_SLOT
from warehouse.limits import limits
from warehouse.storage.arrow_types import can_be_collected, frame_of
from warehouse.storage.fingerprint import damaged_of, has_sum, require_whole
from warehouse.storage.lookup import FILE, held_by, looked_up
from warehouse.storage.snapshot import read_snapshot
from warehouse.storage.store import store_of
from warehouse.storage.tables import deferred_schema, rejected_schema, rows_schema
from warehouse.storage.whole_files import fits_arrays, read_in_cells

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Column
    from warehouse.errors import DamagedFileError
    from warehouse.storage.lookup import Bound
    from warehouse.storage.snapshot import DataFile, Snapshot

__all__ = ["SlotBounds", "TableFiles", "few", "no_rows", "no_rows_in_driver"]

_VERIFIED = 256 << 20
"""Files of at most this many bytes are verified before a lookup."""
_KEPT = 64 << 20
"""Bytes of rows that are kept for the next view that asks for them."""


_CELL_TYPES = {"sub_index": pa.int32(), "exp_block": pa.int64()}


@lru_cache(maxsize=512)
def _schema_without(left_out: tuple[str, ...], *columns: tuple[str, str]) -> StructType:
    """The schema of a table of rows with these columns and types, without some of the system's."""
    full_schema = StructType.fromJson(rows_schema([ColumnRecord(*column) for column in columns]))
    return StructType([field for field in full_schema.fields if field.name not in left_out])


def _in_cells(rows: pa.Table, files: Sequence[DataFile]) -> pa.Table:
    """Add the partition columns to rows that name their files."""
    paths = pa.array([file.path for file in files], pa.string())
    file_numbers = pc.index_in(rows[FILE], paths)
    cells = {"sub_index": [file.sub_index for file in files], "exp_block": [file.exp_block for file in files]}
    for name in CELL:
        rows = rows.append_column(name, pa.array(cells[name], _CELL_TYPES[name]).take(file_numbers.combine_chunks()))
    return rows


def few(files: Sequence[DataFile]) -> bool:
    """Whether the driver reads files faster than a Spark job would."""
    rows = sum(limits().driver_rows + 1 if file.rows is None else file.rows for file in files)
    return limits().in_driver(rows, sum(file.size for file in files))


class SlotBounds:
    """Which files can hold rows loaded after a slot, or expiring after one; a file without bounds can."""

    @staticmethod
    def loaded_after(slot: int) -> Callable[[DataFile], bool]:
        """Return a test of files."""
        return lambda file: _above(file.of("_load_slot").high, slot)

    @staticmethod
    def expiring_after(slot: int) -> Callable[[DataFile], bool]:
        """Return a test of files."""
        return lambda file: _above(file.of("_exp_slot").high, slot)


def _above(high: int | None, slot: int) -> bool:
    return high is None or high > slot


class TableFiles:
    """The files of a warehouse's tables, each version's list read once, and few rows that several views ask for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._snapshots: dict[tuple[str, int], Snapshot] = {}
        self._whole: set[str] = set()
        self._found: dict[tuple[object, ...], pa.Table | None] = {}
        self._kept_bytes = 0

    @property
    def local(self) -> bool:
        """Whether other engines read the files by their paths."""
        return store_of(self._root).local_paths

    def read(
        self,
        session: SparkSession,
        path: str,
        version: int,
        columns: Sequence[Column | ColumnRecord],
        wanted: Callable[[DataFile], bool],
        *,
        placed: bool = False,
        rewritten: bool = False,
        keys: pa.Table | None = None,
    ) -> DataFrame:
        """Return the rows of a table's wanted files: the given columns and the system columns.

        With ``placed`` they include the partition columns, from the files' paths. Files of any size are verified first if their
        rows will be written again (always with ``placed``, and with ``rewritten``). With ``keys``, rows without one of them may
        be missing (:mod:`warehouse.storage.lookup`).
        """
        fields = rows_schema(columns)
        if not placed:
            fields["fields"] = [field for field in fields["fields"] if field["name"] not in CELL]
        files = [file for file in self.files(path, version) if wanted(file)]
        schema = StructType.fromJson(fields)
        if placed or rewritten:
            self.require_whole(files)
        if keys is not None and not placed and can_be_collected(schema):
            matches = looked_up(self._verified_for_lookup(files), schema, keys)
            if matches is not None:
                return frame_of(session, matches, schema)
        return self._parquet(session, path, fields, [file.path for file in files])

    def require_whole(self, files: Sequence[DataFile]) -> None:
        """Verify files whose rows will be written again, each once.

        Raises
        ------
        DamagedFileError
            When a file is damaged.

        """
        if not store_of(self._root).cheap_requests:
            return
        new = [file.path for file in files if file.path not in self._whole]
        require_whole(map(Path, new))
        self._whole.update(new)

    def _verified_for_lookup(self, files: Sequence[DataFile]) -> Sequence[DataFile]:
        """Return the files for a lookup by DuckDB, which verifies nothing: only few bytes are verified, to keep it quick."""
        if sum(file.size for file in files) <= _VERIFIED:
            self.require_whole([file for file in files if has_sum(file.path)])
        return files

    def damaged(self, error: BaseException) -> DamagedFileError | None:
        """Return which of the files that were asked for is damaged, after something failed with an error."""
        if not store_of(self._root).cheap_requests:
            return None
        files = [Path(file.path) for snapshot in self._snapshots.values() for file in snapshot.files]
        return damaged_of(files, unquote(str(error)))

    def found(
        self,
        path: str,
        version: int,
        columns: Sequence[Column | ColumnRecord],
        wanted: Callable[[DataFile], bool],
        *,
        keys: pa.Table | None = None,
        where: Sequence[Bound] = (),
        most: int | None = None,
    ) -> pa.Table | None:
        """Return few rows of a table's wanted files, read by this process; None if Spark must read them.

        They have the given columns, ``_ts`` and ``_exp``; other parameters as in :func:`warehouse.storage.lookup.looked_up`.
        """
        schema = _schema_without((*CELL, *SLOTS), *((column.name, column.type) for column in columns))
        if not can_be_collected(schema):
            return None
        files = [file for file in self.files(path, version) if wanted(file)]
        if keys is not None:
            return looked_up(self._verified_for_lookup(files), schema, keys, where, most)
        lookup_key = (path, version, tuple(schema.names), tuple(file.path for file in files), tuple(where), most)
        if lookup_key not in self._found:
            rows = looked_up(self._verified_for_lookup(files), schema, None, where, most)
            self._kept_bytes += 0 if rows is None else rows.nbytes
            if self._kept_bytes > _KEPT:
                return rows
            self._found[lookup_key] = rows
        return self._found[lookup_key]

    def to_rewrite(
        self,
        path: str,
        version: int,
        columns: Sequence[Column | ColumnRecord],
        wanted: Callable[[DataFile], bool],
        where: Sequence[Bound],
    ) -> pa.Table | None:
        """Return few rows that are to be written again, read by this process; None if Spark must read them.

        They have the given columns and all of the system's; ``where`` are conditions on these. Files are verified first.
        """
        typed_names = [(column.name, column.type) for column in columns]
        schema, stored = _schema_without((), *typed_names), _schema_without(CELL, *typed_names)
        files = [file for file in self.files(path, version) if wanted(file)]
        if not few(files) or not can_be_collected(schema):
            return None
        self.require_whole(files)
        rows = looked_up(files, stored, None, where, with_file=True)
        return None if rows is None else _in_cells(rows, files).select(to_arrow_schema(schema, timezone="UTC").names)

    def as_many_to_rewrite(
        self,
        path: str,
        version: int,
        columns: Sequence[Column | ColumnRecord],
        wanted: Callable[[DataFile], bool],
        where: Sequence[Bound],
    ) -> pa.Table | None:
        """Return the same as :meth:`to_rewrite`, for up to as many rows as the driver writes for a stream."""
        files = [file for file in self.files(path, version) if wanted(file)]
        most = limits().written_rows
        if sum(most + 1 if file.rows is None else file.rows for file in files) > most:
            return None
        rows = self.many_to_rewrite(path, version, columns, wanted, most_bytes=2 * limits().written_bytes)
        return None if rows is None else held_by(rows, where)

    def many_to_rewrite(
        self,
        path: str,
        version: int,
        columns: Sequence[Column | ColumnRecord],
        wanted: Callable[[DataFile], bool],
        *,
        present: Callable[[DataFile], bool] = lambda _: False,
        most_bytes: int | None = None,
    ) -> pa.Table | None:
        """Return the same as :meth:`to_rewrite`, for many rows: all rows of the wanted files; None if Spark must read them.

        The driver takes at most ``most_bytes`` of rows, by default ``array_bytes``. The rows of the ``present`` files count as
        well: they are in the driver already.
        """
        most_bytes = limits().array_bytes if most_bytes is None else most_bytes
        schema = _schema_without((), *((column.name, column.type) for column in columns))
        all_files = self.files(path, version)
        files = [file for file in all_files if wanted(file)]
        present_files = [file for file in all_files if present(file)]
        if not can_be_collected(schema) or not fits_arrays([*files, *present_files], most_bytes):
            return None
        self.require_whole(files)
        return read_in_cells(files, to_arrow_schema(schema, timezone="UTC"), most_bytes=most_bytes)

    def some_columns(self, path: str, version: int, wanted: Callable[[DataFile], bool], columns: pa.Schema) -> pa.Table | None:
        """Return some columns, and the cells, of all rows of the wanted files; None if this process cannot read them."""
        files = [file for file in self.files(path, version) if wanted(file)]
        schema = pa.schema([*columns, *(pa.field(name, kind) for name, kind in _CELL_TYPES.items())])
        return read_in_cells(files, schema, whole=False)

    def deferred(
        self, session: SparkSession, path: str, version: int, columns: Sequence[Column | ColumnRecord]
    ) -> DataFrame:
        """Return the rows of a table of deferred rows."""
        self.require_whole(files := self.files(path, version))
        return self._parquet(session, path, deferred_schema(columns), [file.path for file in files])

    def rejected(self, session: SparkSession, path: str, version: int) -> DataFrame:
        """Return the rows of a table of rejected rows."""
        self.require_whole(files := self.files(path, version))
        return self._parquet(session, path, rejected_schema(), [file.path for file in files])

    def _parquet(self, session: SparkSession, path: str, fields: dict[str, Any], files: Sequence[str]) -> DataFrame:
        schema = StructType.fromJson(fields)
        if not files:
            return _empty(session, schema)
        if not store_of(self._root).local_paths:
            return _placed_apart(session, schema, files)
        reader = session.read.schema(schema).option("basePath", str(self._root / path))
        return reader.parquet(*[_escaped(file) for file in files])

    def files(self, path: str, version: int) -> tuple[DataFile, ...]:
        """Return a table's files with the bounds of their slots."""
        snapshot = self._snapshots.get((path, version))
        if snapshot is None:
            snapshot = self._snapshots[path, version] = read_snapshot(self._root, path, version, SLOTS)
        return snapshot.files


def no_rows_in_driver(columns: Sequence[Column | ColumnRecord], *, rewritten: bool = False) -> pa.Table | None:
    """Return no rows, with the columns of :meth:`TableFiles.found`, or of :meth:`TableFiles.to_rewrite` if ``rewritten``.

    None: Arrow does not have the type of a column.
    """
    schema = _schema_without(() if rewritten else (*CELL, *SLOTS), *((column.name, column.type) for column in columns))
    return to_arrow_schema(schema, timezone="UTC").empty_table() if can_be_collected(schema) else None


def no_rows(session: SparkSession, columns: Sequence[Column | ColumnRecord]) -> DataFrame:
    """Return an empty frame with these columns and the system columns except partition columns."""
    schema = StructType.fromJson(rows_schema(columns))
    return _empty(session, StructType([field for field in schema.fields if field.name not in CELL]))


def _empty(session: SparkSession, schema: StructType) -> DataFrame:
    return _of_nulls(session, tuple((field.name, field.dataType.simpleString()) for field in schema.fields))


@lru_cache(maxsize=64)
def _of_nulls(session: SparkSession, columns: tuple[tuple[str, str], ...]) -> DataFrame:
    """No rows with some columns and types: analysed once, since each view of a plan reads tables without rows."""
    return session.range(0).selectExpr(*[f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in columns])


def _placed_apart(session: SparkSession, schema: StructType, files: Sequence[str]) -> DataFrame:
    """Read files whose partitions lie under several prefixes: Spark must not infer partitions, or it reports a conflict."""
    partitioned = [field for field in schema.fields if field.name in (*CELL, WAITING_SLOT)]
    stored = StructType([field for field in schema.fields if field not in partitioned])
    rows = session.read.schema(stored).option("recursiveFileLookup", "true").parquet(*[_escaped(file) for file in files])
    for field in partitioned:
        value = F.regexp_extract("_metadata.file_path", rf"/{field.name}=(-?\d+)/", 1)
        rows = rows.withColumn(field.name, value.cast(field.dataType))
    return rows


def _escaped(path: str) -> str:
    """Return a path for Spark, with escaped pattern characters."""
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in path)
