"""Who takes part, and in which process: contenders of one group share a worker (Spark's share a JVM)."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.field.contender import NotHereError
from benchmarks.field.hosts import Worker
from warehouse.objects.client import cache_directory

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HOT", "OURS", "ROSTER", "Entry", "lake_is_ready", "worker_for"]

_PACKAGE = "benchmarks.field.contenders"
_LAKE = ("duckdb==1.5.5", "duckdb-extensions==1.5.5", "duckdb-extension-ducklake==1.5.5", "pyarrow>=26,<27", "numpy>=2")


@dataclass(frozen=True)
class Entry:
    """A contender: its name in results, its class as ``module:Class``, its title on the page, what process it needs.

    ``lake``: DuckLake's own environment; ``alone``: it goes by the clock, so it cannot take turns and starts again when a run
    goes on.
    """

    name: str
    spec: str
    title: str
    group: str = ""
    lake: bool = False
    alone: bool = False

    @property
    def shared(self) -> str:
        """The group; its own name if it has no group."""
        return self.group or self.name


def _entry(name: str, spec: str, title: str, group: str = "", *, lake: bool = False, alone: bool = False) -> Entry:
    return Entry(name, f"{_PACKAGE}.{spec}", title, group, lake, alone)


OURS = "norebuild"
"""The contender that ratios are relative to."""

HOT = "hot"
"""The same, read from memory."""

ROSTER: tuple[Entry, ...] = (
    _entry(OURS, "ours:NoRebuild", "stream-wh, norebuild", "spark"),
    _entry(HOT, "ours:Hot", "stream-wh, norebuild, in memory", "spark"),
    _entry("rebuild", "ours:Rebuild", "stream-wh, rebuild 4x4", "spark"),
    _entry("r-ins", "ours:RIns", "wave index R-ins4", "spark"),
    _entry("r-exp", "ours:RExp", "wave index R-exp4", "spark"),
    _entry("d-ins", "ours:DIns", "wave index D-ins4", "spark"),
    _entry("d-exp", "ours:DExp", "wave index D-exp4", "spark"),
    _entry("delta-delete", "delta_spark:DeltaSpark", "Delta, append + DELETE", "spark"),
    _entry("delta-vectors", "delta_spark:DeltaVectors", "Delta, deletion vectors", "spark"),
    _entry("delta-partitioned", "delta_spark:PartitionedDeltaSpark", "Delta by expiration", "spark"),
    _entry("delta-rs", "delta_rs:DeltaRs", "delta-rs, append + delete"),
    _entry("delta-rs-partitioned", "delta_rs:PartitionedDeltaRs", "delta-rs by expiration"),
    _entry("ducklake", "ducklake:DuckLake", "DuckLake", lake=True),
    _entry("clickhouse-partitions", "clickhouse:ClickHousePartitions", "ClickHouse by expiration"),
    _entry("clickhouse-ttl", "clickhouse:ClickHouseTtl", "ClickHouse TTL", alone=True),
    _entry("duckdb", "native_duckdb:NativeDuckDB", "DuckDB table"),
    _entry("duckdb-index", "native_duckdb:IndexedDuckDB", "DuckDB table, ART index"),
    _entry("sqlite", "sqlite:Lite", "SQLite"),
    _entry("postgres", "postgres:Postgres", "PostgreSQL by expiration"),
)


def worker_for(entry: Entry, work: Path, patience: float, lock: int | None = None) -> Worker:
    """Start the process that a contender needs.

    Raises
    ------
    NotHereError
        When its environment cannot be made.

    """
    python = str(_lake_environment()) if entry.lake else sys.executable
    return Worker(python, work / f"{entry.shared}.log", patience, lock)


def lake_is_ready() -> bool:
    """Tell whether DuckLake's environment has been made."""
    return (_lake_place() / "ready").exists()


def _lake_place() -> Path:
    return cache_directory() / "ducklake-1.5.5"


def _lake_environment() -> Path:
    """Return the Python of DuckLake's environment, which is made in the cache directory when first asked for."""
    directory = _lake_place()
    python = directory / "bin" / "python"
    if lake_is_ready():
        return python
    directory.parent.mkdir(parents=True, exist_ok=True)
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(directory)],
        [str(python), "-m", "pip", "install", "-q", "--only-binary", ":all:", *_LAKE],
    )
    for command in steps:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise NotHereError(f"DuckLake's environment could not be made: {(done.stderr or done.stdout)[-300:].strip()}")
    (directory / "ready").touch()
    return python
