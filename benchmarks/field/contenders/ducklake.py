"""DuckLake: Parquet files with a DuckDB file as their catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.field.contender import NotHereError
from benchmarks.field.contenders.native_duckdb import NativeDuckDB
from benchmarks.field.contenders.tables import connect

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["DuckLake"]


class DuckLake(NativeDuckDB):
    """DuckDB 1.5.5 with its ducklake extension, in an environment of its own; the catalogue is a DuckDB file.

    Rows are inserted in the order of the key (file and row group bounds then exclude), a DELETE on ``until`` writes delete
    files. Housekeeping is the documentation's CHECKPOINT after each update: it expires snapshots, merges adjacent files,
    rewrites files of which many rows are deleted and removes old ones; nothing is retained, so that bytes compare. Files are
    forced to disk by the harness, the catalogue by DuckDB.
    """

    def open(self) -> None:
        """Attach the lake."""
        try:
            from duckdb_extensions import import_extension  # noqa: PLC0415 - only its own environment has it
        except ImportError as error:
            raise NotHereError("the environment has no extension wheel of DuckLake") from error
        self.place.mkdir(parents=True, exist_ok=True)
        import_extension("ducklake")
        self._connection = connect()
        self._connection.execute(
            f"LOAD ducklake; ATTACH 'ducklake:{self.place}/catalogue.ducklake' AS lake (DATA_PATH '{self.place}/data'); USE lake"
        )

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the table."""
        self._connection.execute("CALL lake.set_option('expire_older_than', '0 seconds')")
        self._connection.execute("CALL lake.set_option('delete_older_than', '0 seconds')")
        self._create(files, now)
        self.force()

    def load(self, file: Path, now: int) -> None:
        """Insert, sorted."""
        super().load(file, now)
        self.force()

    def expire(self, now: int) -> None:
        """Delete."""
        self._delete(now)
        self.force()

    def tidy(self, now: int) -> None:
        """Checkpoint."""
        del now
        self._connection.execute("CHECKPOINT lake")

    def stored(self) -> int:
        """Count what the files of the newest snapshot hold."""
        query = "SELECT sum(record_count) FROM __ducklake_metadata_lake.ducklake_data_file WHERE end_snapshot IS NULL"
        return int(self._connection.execute(query).fetchall()[0][0] or 0)
