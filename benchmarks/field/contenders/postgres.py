"""PostgreSQL with range partitions of expiration, started by the harness on a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from benchmarks.field.contender import Contender, NotHereError
from warehouse.time import HOUR, format_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Postgres"]

_COLUMNS = 'k, "at", until, a, b, v'
_PLACES = "/usr/lib/postgresql/*/bin"
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "1GB",
    "maintenance_work_mem": "256MB",
    "max_wal_size": "4GB",
    "wal_compression": "on",
    "jit": "off",
}
_START_SECONDS = 60


class Postgres(Contender):
    """``PARTITION BY RANGE (until)``, one partition for each update interval, a B-tree on the key in each.

    As "Table Partitioning" advises for data that leaves by age: whatever has expired is whole partitions, which are dropped;
    so no row is deleted and no read needs a filter. Rows come by COPY. ``shared_buffers`` 1 GB and ``max_wal_size`` 4 GB as
    "Populating a Database" advises; commits are durable (``fsync``, ``synchronous_commit`` as they are by default).
    VACUUM ANALYZE after the build; each partition is analysed by autovacuum later.
    """

    _connection: Any
    _socket: Path

    def open(self) -> None:
        """Start the server and connect."""
        try:
            import psycopg  # noqa: PLC0415 - the extra `bench` has it
        except ImportError as error:
            raise NotHereError("psycopg is not installed; install the extra: pip install -e '.[bench]'") from error
        self._programs = _programs()
        self._user = _user()
        self._socket = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        data = self.place / "data"
        if not data.exists():
            self.place.mkdir(parents=True, exist_ok=True)
            self._own(self.place)
            self._run("initdb", "-D", str(data), "-E", "UTF8", "--locale=C", "-A", "trust", "-U", "postgres", "-N")
        self._own(self._socket)
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(data), "-k", str(self._socket), *settings]
        self._log = (self._socket / "log").open("ab")
        self._server = subprocess.Popen(command, stdout=self._log, stderr=self._log, user=self._user, cwd="/")
        self._connection = self._connected(psycopg)
        self._connection.execute("SET TIME ZONE 'UTC'")

    def _connected(self, psycopg: Any) -> Any:  # noqa: ANN401 - the driver, which may not be there
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return psycopg.connect(f"host={self._socket} user=postgres dbname=postgres", autocommit=True)
            except psycopg.OperationalError as error:
                if self._server.poll() is not None or time.monotonic() > deadline:
                    log = (self._socket / "log").read_text()[-300:]
                    raise NotHereError(f"PostgreSQL does not start: {log or error}") from error
                time.sleep(0.05)

    def _own(self, path: Path) -> None:
        if self._user is not None:
            shutil.chown(path, self._user)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, user=self._user, cwd="/")
        if done.returncode:
            raise NotHereError(f"{program} failed as user {self._user or 'this one'}: {done.stderr[-300:].strip()}")

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the table with the partitions to come, fill it, index it."""
        self._connection.execute(
            'CREATE TABLE s (k text NOT NULL, "at" timestamptz NOT NULL, until timestamptz NOT NULL, '
            "a bigint, b double precision, v text) PARTITION BY RANGE (until)"
        )
        self._partitions(now)
        for file in files:
            rows = pq.read_table(file)
            self._copy(rows.filter(pc.greater(rows["until"].cast(pa.int64()), now)))
        self._connection.execute("CREATE INDEX by_key ON s (k)")
        self._connection.execute("VACUUM ANALYZE s")
        self._connection.execute("CHECKPOINT")

    def _partitions(self, now: int) -> None:
        """Make the partitions of the hours in which rows that arrived in the last one can end; the first is dead on arrival."""
        last = now // HOUR - 1
        for hour in range(last, last + self.job.periods + 1):
            low, high = (format_instant(edge * HOUR + 1) for edge in (hour, hour + 1))
            bounds = f"FROM ('{low}') TO ('{high}')"
            self._connection.execute(f"CREATE TABLE IF NOT EXISTS s_{hour} PARTITION OF s FOR VALUES {bounds}")

    def load(self, file: Path, now: int) -> None:
        """Copy in one transaction."""
        self._partitions(now)
        self._copy(pq.read_table(file))

    def _copy(self, rows: pa.Table) -> None:
        text = pa.BufferOutputStream()
        pa_csv.write_csv(rows, text, pa_csv.WriteOptions(include_header=False))
        with (
            self._connection.transaction(),
            self._connection.cursor() as cursor,
            cursor.copy(f"COPY s ({_COLUMNS}) FROM STDIN (FORMAT csv)") as copy,
        ):
            copy.write(memoryview(text.getvalue()))

    def expire(self, now: int) -> None:
        """Drop the partitions that have passed."""
        query = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 's'::regclass"
        for (name,) in self._connection.execute(query).fetchall():
            if (int(name.removeprefix("s_")) + 1) * HOUR <= now:
                self._connection.execute(f"DROP TABLE {name}")

    def probe(self, key: str, now: int) -> list[tuple[object, ...]]:
        """Ask by the indexes."""
        del now
        rows: list[tuple[object, ...]] = self._connection.execute(f"SELECT {_COLUMNS} FROM s WHERE k = %s", [key]).fetchall()
        return rows

    def scan(self, now: int) -> list[tuple[object, ...]]:
        """Read the table."""
        del now
        rows: list[tuple[object, ...]] = self._connection.execute(f"SELECT {_COLUMNS} FROM s").fetchall()
        return rows

    def aggregate(self, now: int) -> tuple[int, float]:
        """Ask the table."""
        del now
        total, largest = self._connection.execute("SELECT sum(a), max(b) FROM s").fetchone()
        return int(total), float(largest)

    def stored(self) -> int:
        """Count rows: a dropped partition leaves nothing."""
        return int(self._connection.execute("SELECT count(*) FROM s").fetchone()[0])

    def footprint(self) -> tuple[int, int]:
        """Return files and bytes of the database with its catalogue (8 MB), without the write-ahead log."""
        (oid,) = self._connection.execute("SELECT oid FROM pg_database WHERE datname = 'postgres'").fetchone()
        sizes = [path.stat().st_size for path in (self.place / "data" / "base" / str(oid)).iterdir()]
        return len(sizes), sum(sizes)

    def close(self) -> None:
        """Stop the server."""
        self._connection.close()
        self._server.send_signal(signal.SIGINT)  # a fast shutdown
        self._server.wait()
        self._log.close()
        shutil.rmtree(self._socket, ignore_errors=True)


def _programs() -> Path:
    """Return the directory of the newest server's programs."""
    directories = sorted(Path("/").glob(_PLACES.lstrip("/")), key=lambda path: float(path.parent.name))
    for directory in reversed(directories):
        if (directory / "initdb").exists() and (directory / "postgres").exists():
            return directory
    raise NotHereError("PostgreSQL's server is not installed; install it: apt-get install postgresql")


def _user() -> str | None:
    """Return the user to run the server as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError as error:
        raise NotHereError("PostgreSQL does not run as root, and there is no user postgres") from error
