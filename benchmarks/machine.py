"""What a run was made on: processor, memory, load, versions. No names, no paths."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

__all__ = ["commit", "load", "machine", "versions"]

_PACKAGES = ("pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow", "numpy")


def machine() -> dict[str, object]:
    """Return what is known of the machine."""
    return {
        "processor": _first("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def commit() -> str:
    """Return the commit that is measured, marked if files of the clone differ from it; "unknown" outside a clone."""
    directory = Path(__file__).parent

    def told(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False, cwd=directory).stdout.strip()

    try:
        name = told("rev-parse", "--short", "HEAD")
        return name + (" with changes" if name and told("status", "--porcelain", "--untracked-files=no") else "") or "unknown"
    except FileNotFoundError:
        return "unknown"


def load() -> float:
    """Return the load average of the last minute: a run on a busy machine tells little."""
    return os.getloadavg()[0]


def versions() -> dict[str, str]:
    """Return the versions of what is measured."""
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.splitlines()
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"python": platform.python_version(), "java": java[0] if java else "", **packages}


def _first(file: str, name: str) -> str | None:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
