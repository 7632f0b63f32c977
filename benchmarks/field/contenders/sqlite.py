"""SQLite."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from benchmarks.field.contender import Contender
from benchmarks.field.digest import as_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["Lite"]

_COLUMNS = 'k, "at", until, a, b, v'


class Lite(Contender):
    """One table in a SQLite file with indexes on the key and on ``until``; instants as integers, as its documentation has them.

    Write-ahead log, ``synchronous = FULL`` (a commit is durable), 256 MB of cache; one transaction inserts an update's rows
    with one prepared statement, another deletes what expired. Pages that become free are used again (the file does not
    shrink without VACUUM, which would rewrite all of it).
    """

    _connection: sqlite3.Connection

    def open(self) -> None:
        """Open the file."""
        self.place.mkdir(parents=True, exist_ok=True)
        self._connection = sqlite3.connect(self.place / "rows.sqlite", isolation_level=None)
        self._connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -262144; PRAGMA temp_store = MEMORY"
        )

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make table and indexes; indexes after the rows."""
        self._connection.execute('CREATE TABLE s (k TEXT, "at" INTEGER, until INTEGER, a INTEGER, b REAL, v TEXT)')
        self._insert(row for file in files for row in _rows(file) if row[2] > now)
        self._connection.execute("CREATE INDEX by_key ON s (k)")
        self._connection.execute("CREATE INDEX by_end ON s (until)")
        self._connection.execute("PRAGMA optimize = 0x10002")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def load(self, file: Path, now: int) -> None:
        """Insert in one transaction."""
        del now
        self._insert(_rows(file))

    def _insert(self, rows: Iterable[tuple[object, ...]]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._connection.execute("COMMIT")

    def expire(self, now: int) -> None:
        """Delete in one transaction."""
        self._connection.execute("DELETE FROM s WHERE until <= ?", [now])

    def tidy(self, now: int) -> None:
        """Empty the write-ahead log."""
        del now
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def probe(self, key: str, now: int) -> list[tuple[object, ...]]:
        """Ask by the index."""
        del now
        return self._connection.execute(f"SELECT {_COLUMNS} FROM s WHERE k = ?", [key]).fetchall()

    def scan(self, now: int) -> list[tuple[object, ...]]:
        """Read the table."""
        del now
        return self._connection.execute(f"SELECT {_COLUMNS} FROM s").fetchall()

    def aggregate(self, now: int) -> tuple[int, float]:
        """Ask the table."""
        del now
        total, largest = self._connection.execute("SELECT sum(a), max(b) FROM s").fetchone()
        return int(total), float(largest)

    def stored(self) -> int:
        """Count rows; what is deleted is free for the next rows."""
        return int(self._connection.execute("SELECT count(*) FROM s").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _rows(file: Path) -> list[tuple[object, ...]]:
    table = as_table(pq.read_table(file))
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
