"""Delta tables written by delta-rs, without Spark or Java: append and DELETE, and partitioned by expiration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from benchmarks.field.contender import Contender
from benchmarks.field.contenders.tables import COLUMNS, connect, instant_sql, read_only_files
from warehouse.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

__all__ = ["DeltaFiles", "DeltaRs", "PartitionedDeltaRs"]


class DeltaFiles(Contender):
    """What Delta tables of plain Parquet files share: reading them by DuckDB, which delta-rs tells the files."""

    _duckdb: duckdb.DuckDBPyConnection

    def open(self) -> None:
        """Open an engine."""
        self._duckdb = connect()

    @property
    def table(self) -> DeltaTable:
        """The newest snapshot."""
        return DeltaTable(str(self.place))

    def _live(self, now: int) -> str:
        """Return the condition that leaves live rows only."""
        return f"until > {instant_sql(now)}"

    def _ask(self, columns: str, where: str) -> pa.Table:
        return read_only_files(self._duckdb, self.table.file_uris(), f"SELECT {columns} FROM {{files}} WHERE {where}")

    def probe(self, key: str, now: int) -> pa.Table:
        """Read the rows of a key."""
        return self._ask(COLUMNS, f"k = '{key}' AND {self._live(now)}")

    def scan(self, now: int) -> pa.Table:
        """Read all files."""
        return self._ask(COLUMNS, self._live(now))

    def aggregate(self, now: int) -> tuple[int, float]:
        """Read two columns."""
        total, largest = self._ask("sum(a) AS total, max(b) AS largest", self._live(now)).columns
        return int(total[0].as_py()), float(largest[0].as_py())

    def stored(self) -> int:
        """Count what the snapshot's files hold."""
        return sum(pq.read_metadata(path).num_rows for path in self.table.file_uris())

    def close(self) -> None:
        """Close the engine."""
        self._duckdb.close()


class DeltaRs(DeltaFiles):
    """Append and DELETE (copy-on-write) by delta-rs; rows sorted by the key, so that row group bounds exclude most of a file.

    As its documentation has it: ``write_deltalake(mode="append")``, ``DeltaTable.delete``, and now and then
    ``optimize.compact`` (here every 12 updates) and ``vacuum`` (after each update, without retention, so that bytes compare).
    DuckDB reads the snapshot's files.
    """

    _COMPACT = 12

    def build(self, files: Sequence[Path], now: int) -> None:
        """Write the first version."""
        live = pa.concat_tables(pq.read_table(file) for file in files)
        self._write(live.filter(pc.greater(live["until"].cast(pa.int64()), now)))
        self.force()

    def load(self, file: Path, now: int) -> None:
        """Append."""
        del now
        self._write(pq.read_table(file))
        self.force()

    def _write(self, rows: pa.Table) -> None:
        write_deltalake(str(self.place), rows.sort_by([("k", "ascending"), ("until", "ascending")]), mode="append")

    def expire(self, now: int) -> None:
        """Delete."""
        self.table.delete(f"until <= arrow_cast({now}, 'Timestamp(Microsecond, Some(\"UTC\"))')")
        self.force()

    def tidy(self, now: int) -> None:
        """Compact when due; remove what no snapshot needs."""
        table = self.table
        if self.job.slot(now) % self._COMPACT == 0:
            table.optimize.compact()
        table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        table.create_checkpoint()
        table.cleanup_metadata()


class PartitionedDeltaRs(DeltaRs):
    """Partitioned by the hour of expiration, so that the DELETE of an hour names a partition and only edits the log.

    The hour is the update interval: what has expired are whole partitions, and no read needs a filter. Each append writes a
    file for each of the p hours to come; ``optimize.compact`` every 12 updates keeps their number down.
    """

    def _live(self, now: int) -> str:
        del now
        return "true"

    def _write(self, rows: pa.Table) -> None:
        slots = pc.cast(pc.divide(pc.add(rows["until"].cast(pa.int64()), HOUR - 1), HOUR), pa.int64())
        table = rows.append_column("slot", slots).sort_by([("slot", "ascending"), ("k", "ascending")])
        write_deltalake(str(self.place), table, mode="append", partition_by=["slot"])

    def expire(self, now: int) -> None:
        """Delete whole partitions."""
        self.table.delete(f"slot <= {now // HOUR}")
        self.force()
