"""Delta tables written by Spark with Delta's own connector, as a user has them today."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

from benchmarks.field.contenders.delta_rs import DeltaFiles
from benchmarks.field.contenders.spark import session
from benchmarks.field.contenders.tables import COLUMNS
from warehouse.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DeltaSpark", "DeltaVectors", "PartitionedDeltaSpark"]

_LISTING = 4
"""Tasks by which VACUUM lists files; the default, 10 000, took 109 s for a table of 28 files."""

_SCHEMA = "k STRING, `at` TIMESTAMP, until TIMESTAMP, a BIGINT, b DOUBLE, v STRING"


class DeltaSpark(DeltaFiles):
    """Append, then ``DELETE WHERE until <= T`` (copy-on-write), in a session with Spark's own defaults.

    As Delta's documentation advises against small files: ``autoOptimize.optimizeWrite`` and ``autoCompact``; VACUUM after
    each update without retention, so that bytes compare (it lists by 4 tasks instead of 10 000). Rows are sorted by the key
    within files, so that a probe skips row groups. DuckDB reads the snapshot's files as delta-rs tells them, which is faster
    than any Spark job. The harness forces new files to disk, which Delta does not.
    """

    _properties: ClassVar[dict[str, str]] = {"delta.enableDeletionVectors": "false"}
    _partition: ClassVar[str | None] = None

    def open(self) -> None:
        """Open a session."""
        super().open()
        self._spark: SparkSession = session().newSession()
        self._spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        self._spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", str(_LISTING))
        self._name = f"delta.`{self.place}`"

    def build(self, files: Sequence[Path], now: int) -> None:
        """Make the table."""
        properties = {
            "delta.autoOptimize.optimizeWrite": "true",
            "delta.autoOptimize.autoCompact": "true",
            **self._properties,
        }
        assignments = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        columns = _SCHEMA if self._partition is None else f"{_SCHEMA}, {self._partition} BIGINT"
        partitioned = "" if self._partition is None else f"PARTITIONED BY ({self._partition})"
        self._spark.sql(f"CREATE TABLE {self._name} ({columns}) USING delta {partitioned} TBLPROPERTIES ({assignments})")
        self._append(self._read(files).where(f"unix_micros(until) > {now}"))

    def load(self, file: Path, now: int) -> None:
        """Append."""
        del now
        self._append(self._read([file]))

    def _read(self, files: Sequence[Path]) -> DataFrame:
        return self._spark.read.schema(_SCHEMA).parquet(*(str(file) for file in files))

    def _append(self, rows: DataFrame) -> None:
        rows.sortWithinPartitions("k", "until").write.format("delta").mode("append").save(str(self.place))
        self.force()

    def expire(self, now: int) -> None:
        """Delete."""
        self._spark.sql(f"DELETE FROM {self._name} WHERE until <= timestamp_micros({now})")
        self.force()

    def tidy(self, now: int) -> None:
        """Remove what no snapshot needs."""
        del now
        self._spark.sql(f"VACUUM {self._name} RETAIN 0 HOURS")


class DeltaVectors(DeltaSpark):
    """The same with deletion vectors: a DELETE marks rows; ``REORG TABLE ... APPLY (PURGE)`` removes them every 9 updates.

    Read by Spark, since the files alone would serve deleted rows.
    """

    _properties: ClassVar[dict[str, str]] = {"delta.enableDeletionVectors": "true"}
    _PURGE = 9

    def tidy(self, now: int) -> None:
        """Purge when due."""
        if self.job.slot(now) % self._PURGE == 0:
            self._spark.sql(f"REORG TABLE {self._name} APPLY (PURGE)")
        super().tidy(now)

    def _ask(self, columns: str, where: str) -> pa.Table:
        return self._spark.sql(f"SELECT {columns} FROM {self._name} WHERE {where}").toArrow()

    def _live(self, now: int) -> str:
        del now
        return "true"

    def stored(self) -> int:
        """Count what the snapshot's files hold, as Spark names them."""
        uris = self._spark.read.format("delta").load(str(self.place)).inputFiles()
        return sum(pq.read_metadata(unquote(urlsplit(uri).path)).num_rows for uri in uris)

    def probe(self, key: str, now: int) -> pa.Table:
        """Ask Spark."""
        return self._ask(COLUMNS.replace('"', "`"), f"k = '{key}' AND {self._live(now)}")

    def scan(self, now: int) -> pa.Table:
        """Ask Spark."""
        return self._ask(COLUMNS.replace('"', "`"), self._live(now))


class PartitionedDeltaSpark(DeltaSpark):
    """Partitioned by the hour of expiration only: DELETE names partitions, so it edits the log and reads nothing.

    The hour is the update interval: no read needs a filter. Optimised writes put each partition's rows of an update in one
    file; automatic compaction keeps their number down.
    """

    _partition: ClassVar[str | None] = "slot"

    def _append(self, rows: DataFrame) -> None:
        super()._append(rows.selectExpr("*", f"(unix_micros(until) + {HOUR - 1}) DIV {HOUR} AS slot"))

    def expire(self, now: int) -> None:
        """Delete whole partitions."""
        self._spark.sql(f"DELETE FROM {self._name} WHERE slot <= {now // HOUR}")
        self.force()

    def _live(self, now: int) -> str:
        del now
        return "true"
