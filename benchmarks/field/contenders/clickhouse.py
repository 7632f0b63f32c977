"""ClickHouse inside the process, by chdb: partitions of expiration, and TTL."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.field.contender import Contender, NotHereError
from warehouse.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ClickHousePartitions", "ClickHouseTtl"]

_COLUMNS = "k, at, until, a, b, v"
_DURABLE = "fsync_after_insert = 1, fsync_part_directory = 1, old_parts_lifetime = 1"


_LONG = 10_000_000
_SHORTEST = 2
_READS = 10
_ROOM = 1


class _ClickHouse(Contender):
    """A MergeTree table in a chdb session."""

    _session: Any
    _clauses: str

    def open(self) -> None:
        """Open a session over the directory."""
        try:
            from chdb.session import Session  # noqa: PLC0415 - the extra `bench` has it
        except ImportError as error:
            raise NotHereError("chdb is not installed; install the extra: pip install -e '.[bench]'") from error
        self.place.mkdir(parents=True, exist_ok=True)
        self._session = Session(str(self.place))
        self._session.query("CREATE DATABASE IF NOT EXISTS w ENGINE = Atomic")

    def _arrow(self, query: str) -> pa.Table:
        answer = self._session.query(query, "Arrow")
        return pa.ipc.open_file(pa.py_buffer(answer.bytes())).read_all()

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the table and merge the loaded rows."""
        self._session.query(
            "CREATE TABLE w.s (k String, at DateTime64(6, 'UTC'), until DateTime64(6, 'UTC'), a Int64, b Float64, v String) "
            f"ENGINE = MergeTree {self._clauses}"
        )
        for file in files:
            self._insert(file, f"WHERE until > fromUnixTimestamp64Micro({now}, 'UTC')")
        self._session.query("OPTIMIZE TABLE w.s FINAL")

    def load(self, file: Path, now: int) -> None:
        """Insert; background merges do the rest."""
        del now
        self._insert(file, "")

    def _insert(self, file: Path, where: str) -> None:
        self._session.query(
            f"INSERT INTO w.s SELECT {_COLUMNS} FROM file('{file}', Parquet) {where} "
            "SETTINGS max_partitions_per_insert_block = 0"
        )

    def _live(self, now: int) -> str:
        return f"until > fromUnixTimestamp64Micro({now}, 'UTC')"

    def probe(self, key: str, now: int) -> pa.Table:
        """Ask by the primary key."""
        return self._arrow(f"SELECT {_COLUMNS} FROM w.s WHERE k = '{key}' AND {self._live(now)}")

    def scan(self, now: int) -> pa.Table:
        """Read the table."""
        return self._arrow(f"SELECT {_COLUMNS} FROM w.s WHERE {self._live(now)}")

    def aggregate(self, now: int) -> tuple[int, float]:
        """Ask the table."""
        total, largest = self._arrow(f"SELECT sum(a) AS t, max(b) AS m FROM w.s WHERE {self._live(now)}").columns
        return int(total[0].as_py()), float(largest[0].as_py())

    def stored(self) -> int:
        """Count the rows of active parts."""
        query = "SELECT sum(rows) AS n FROM system.parts WHERE database = 'w' AND table = 's' AND active"
        return int(self._arrow(query).column(0)[0].as_py() or 0)

    def close(self) -> None:
        """Close the session."""
        self._session.close()


class ClickHousePartitions(_ClickHouse):
    """``PARTITION BY`` expiration in blocks of p/4 hours, ``ORDER BY k``; passed partitions are dropped.

    Partitions are for managing data, says the documentation, and should be few: so as wide as the expiry blocks of the
    warehouse. Rows of the current block are filtered by ``until``. Parts are forced to disk at every insert
    (``fsync_after_insert``); parts that merges replaced go after a second instead of eight minutes.
    """

    @property
    def _width(self) -> int:
        return -(-self.job.periods // 4) * HOUR

    @property
    def _clauses(self) -> str:  # type: ignore[override]
        block = f"intDiv(toUnixTimestamp64Micro(until) - 1, {self._width})"
        return f"PARTITION BY {block} ORDER BY k SETTINGS {_DURABLE}"

    def expire(self, now: int) -> None:
        """Drop the partitions that have passed."""
        query = "SELECT DISTINCT partition FROM system.parts WHERE database = 'w' AND table = 's' AND active"
        for name in self._arrow(query).column(0).to_pylist():
            block = int(name)
            if (block + 1) * self._width <= now:
                self._session.query(f"ALTER TABLE w.s DROP PARTITION {block}")


class ClickHouseTtl(_ClickHouse):
    """``TTL dies`` on a table ordered by the key; merges in the background remove expired rows, ``OPTIMIZE`` is not called.

    ClickHouse takes the time from the clock, so this contender runs by the clock: an update interval is a few seconds of it
    (the pace: several times what its questions take), updates wait for their time, and ``dies`` is a row's end on the clock.
    ``merge_with_ttl_timeout`` is one interval instead of four hours. It has the machine to itself after the others; an
    update's time has of the merges only what happens during it. Until a merge comes, expired rows are filtered.
    """

    def open(self) -> None:
        """Open a session; what an earlier process stored has died by the clock meanwhile."""
        super().open()
        self._pace, self._begin = 0, 0.0

    @property
    def _clauses(self) -> str:  # type: ignore[override]
        return (
            f"ORDER BY k TTL toDateTime({self._begin:.0f} + {self._pace} * ({self._hour} - {self._first_hour})) "
            f"SETTINGS {_DURABLE}, merge_with_ttl_timeout = {self._pace}"
        )

    @property
    def _hour(self) -> str:
        return f"(intDiv(toUnixTimestamp64Micro(until) - 1, {HOUR}) + 1)"

    @property
    def _first_hour(self) -> int:
        return self.job.instant(self.job.first_slot) // HOUR

    def build(self, files: Sequence[Path], now: int) -> None:
        """Find the pace by a table without TTL, then make the table with TTL."""
        self._pace, self._begin = _LONG, time.time()
        super().build(files, now)
        start = time.monotonic()
        self.scan(now)
        self.aggregate(now)
        self._pace = round(_SHORTEST + _READS * (time.monotonic() - start))
        self._session.query("DROP TABLE w.s SYNC")
        self._begin = time.time() + _ROOM
        super().build(files, now)
        if time.time() > self._due(now + HOUR):
            raise RuntimeError("the first build took longer than an interval of the clock")

    def _due(self, now: int) -> float:
        return self._begin + self._pace * (now // HOUR - self._first_hour)

    def ready(self, now: int) -> None:
        """Wait until it is time.

        Raises
        ------
        RuntimeError
            When that time has long passed: rows have died that the window still has.

        """
        wait = self._due(now) - time.time()
        if wait < -0.5:
            raise RuntimeError(f"an interval of {self._pace} s of the clock is too short for its questions")
        time.sleep(max(0.0, wait))
