"""What an update is compared with: plain Spark writes of the same rows, in the same JVM, in a user's own session."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.data import COLUMNS
from benchmarks.project import instant
from warehouse.storage.session import COMPRESSION
from warehouse.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Cost", "PlainWrites", "cpu_seconds", "measured"]


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds, and seconds of processor time of the JVM and of Python."""

    wall: float
    cpu: float


def cpu_seconds(session: SparkSession) -> float:
    """Return the processor time that the JVM and this process have used."""
    jvm: Any = session._jvm  # noqa: SLF001 - the gateway knows its process
    fields = Path(f"/proc/{jvm.java.lang.ProcessHandle.current().pid()}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / _TICKS + time.process_time()


_SYSTEM = ("_ts", "_exp", "_load_slot", "_exp_slot")
_TICKS = 100
"""Of a second, in Linux's process statistics."""


def measured(session: SparkSession, work: Callable[[], object]) -> Cost:
    """Return what some work costs."""
    cpu, wall = cpu_seconds(session), time.perf_counter()
    work()
    return Cost(time.perf_counter() - wall, cpu_seconds(session) - cpu)


class PlainWrites:
    """Sorted Parquet writes as a user would make them; the files are removed after each.

    ``tuned`` is a session with the two settings that an update gives its own: no adaptive execution, as many shuffle
    partitions as cores.
    """

    def __init__(self, session: SparkSession, scratch: Path) -> None:
        self.session = session.newSession()
        self.tuned = session.newSession()
        self.tuned.conf.set("spark.sql.adaptive.enabled", "false")
        self.tuned.conf.set("spark.sql.shuffle.partitions", str(session.sparkContext.defaultParallelism))
        self._out = scratch / "plain"

    def _sorted(self, session: SparkSession, directory: Path) -> DataFrame:
        schema = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
        return session.read.schema(schema).parquet(str(directory)).sort("k", "until")

    def write(self, place: Path) -> Cost:
        """Read landing files, sort by key and expiry, write."""
        return self._written(self._sorted(self.session, place))

    def write_tuned(self, place: Path) -> Cost:
        """Do the same with the settings of an update."""
        return self._written(self._sorted(self.tuned, place))

    def write_cached(self, place: Path) -> Cost:
        """Write rows that are sorted and in memory."""
        rows = self._sorted(self.session, place).persist()
        try:
            rows.count()
            return self._written(rows)
        finally:
            rows.unpersist(blocking=True)

    def bytes_of(self, place: Path, slot: int, *, system_columns: bool) -> int:
        """Return the bytes of the rows that an update at a slot stores, written plainly with the same codec."""
        rows = self._sorted(self.session, place).where(f"unix_micros(until) > {instant(slot)}")
        if system_columns:
            exp_slot = f"ceil((unix_micros(until) - {instant(0)}) / {HOUR})"
            rows = rows.selectExpr(
                "*",
                "at AS _ts",
                "until AS _exp",
                f"{slot}L AS _load_slot",
                f"CAST({exp_slot} AS bigint) AS _exp_slot",
            )
        return self._bytes(rows)

    def bytes_of_live(self, files: Sequence[str], slot: int, *, system_columns: bool) -> int:
        """Return the bytes of the live rows of a table's files, sorted by key in files of their own."""
        rows = self.session.read.parquet(*files).where(f"unix_micros(_exp) > {instant(slot)}")
        return self._bytes(rows.select(*COLUMNS, *(_SYSTEM if system_columns else ())).sort("k", "until"))

    def _bytes(self, rows: DataFrame) -> int:
        rows.write.options(**COMPRESSION, compression=COMPRESSION["spark.sql.parquet.compression.codec"]).parquet(str(self._out))
        written = sum(file.stat().st_size for file in self._out.glob("*.parquet"))
        shutil.rmtree(self._out)
        return written

    def _written(self, rows: DataFrame) -> Cost:
        cost = measured(self.session, lambda: rows.write.parquet(str(self._out)))
        shutil.rmtree(self._out)
        return cost
