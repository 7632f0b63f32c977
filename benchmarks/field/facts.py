"""When, on what machine and with which versions a run began."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from benchmarks.machine import commit, load, machine, versions

__all__ = ["facts"]


def facts() -> dict[str, object]:
    """Return the facts by which to judge a run's numbers: time, commit, machine, load, versions."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    run = {"started": started, "commit": commit(), "machine": machine(), "load": load()}
    return {**run, "versions": {**versions(), **_further()}}


def _further() -> dict[str, str]:
    """Return the versions of contenders that are installed."""
    installed = {"sqlite": sqlite3.sqlite_version, "duckdb of DuckLake": "1.5.5"}
    for name in ("chdb-core", "psycopg"):
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    with suppress(FileNotFoundError):
        words = subprocess.run(["postgres", "--version"], capture_output=True, text=True, check=False).stdout.split()
        installed["postgres"] = words[2] if len(words) > 2 else "unknown"
    return installed
