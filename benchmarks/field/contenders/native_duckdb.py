"""A native DuckDB table, without an index and with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.field.contender import Contender
from benchmarks.field.contenders.tables import COLUMNS, connect, instant_sql, parquet_sql

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb
    import pyarrow as pa

__all__ = ["IndexedDuckDB", "NativeDuckDB"]


class NativeDuckDB(Contender):
    """One table in a DuckDB file. Rows are inserted in the order of the key, so that zone maps exclude row groups ("Indexing").

    Expired rows are deleted by a DELETE on ``until`` and the file is checkpointed, which also makes it durable. Row groups of
    which most rows are deleted are given back by the checkpoint.
    """

    _connection: duckdb.DuckDBPyConnection

    def open(self) -> None:
        """Open the file."""
        self.place.mkdir(parents=True, exist_ok=True)
        self._connection = connect(self.place / "rows.duckdb")

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the table."""
        self._create(files, now)
        self._index()
        self._connection.execute("CHECKPOINT")

    def _create(self, files: Sequence[Path], now: int) -> None:
        rows = f"SELECT {COLUMNS} FROM {parquet_sql(files)} WHERE until > {instant_sql(now)} ORDER BY k, until"
        self._connection.execute(f"CREATE TABLE s AS {rows}")

    def _index(self) -> None:
        """Zone maps are enough."""

    def load(self, file: Path, now: int) -> None:
        """Insert, sorted."""
        del now
        self._connection.execute(f"INSERT INTO s SELECT {COLUMNS} FROM {parquet_sql([file])} ORDER BY k, until")

    def expire(self, now: int) -> None:
        """Delete, and checkpoint."""
        self._delete(now)
        self._connection.execute("CHECKPOINT")

    def _delete(self, now: int) -> None:
        self._connection.execute(f"DELETE FROM s WHERE until <= {instant_sql(now)}")

    def probe(self, key: str, now: int) -> pa.Table:
        """Ask the table."""
        del now
        return self._connection.sql(f"SELECT {COLUMNS} FROM s WHERE k = ?", params=[key]).to_arrow_table()

    def scan(self, now: int) -> pa.Table:
        """Read the table."""
        del now
        return self._connection.sql(f"SELECT {COLUMNS} FROM s").to_arrow_table()

    def aggregate(self, now: int) -> tuple[int, float]:
        """Ask the table."""
        del now
        total, largest = self._connection.execute("SELECT sum(a), max(b) FROM s").fetchall()[0]
        return int(total), float(largest)

    def stored(self) -> int:
        """Count the rows of row groups: a deleted row still takes space while its row group is kept."""
        query = "SELECT sum(count) FROM pragma_storage_info('s') WHERE column_name = 'k' AND segment_type <> 'VALIDITY'"
        return int(self._connection.execute(query).fetchall()[0][0] or 0)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class IndexedDuckDB(NativeDuckDB):
    """The same with an ART index on the key, which the documentation recommends for point lookups."""

    def _index(self) -> None:
        self._connection.execute("CREATE INDEX by_key ON s (k)")
