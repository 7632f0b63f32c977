"""The checks of ``doctor``: small functions that each check one thing and return the finding and what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from warehouse.cli import reading
from warehouse.errors import WarehouseError
from warehouse.storage.store import store_of
from warehouse.time import format_instant

__all__ = ["CHECKS", "Check", "CheckResult"]

_PYTHON = (3, 11)
_JAVA = 17
_EARLIEST_CLOCK = 1_735_689_600_000_000  # 2025-01-01: nothing of this project is older
_CLOCK_TOLERANCE_SECONDS = 2.0


@dataclass(frozen=True)
class CheckResult:
    """The finding, and what to do about it; None if the check passed."""

    found: str
    to_do: str | None = None


Check = Callable[[Path], CheckResult]
"""A check; the argument is the project directory."""


def python(_: Path) -> CheckResult:
    """Python is new enough."""
    version = platform.python_version()
    required = ".".join(map(str, _PYTHON))
    return CheckResult(version, None if sys.version_info >= _PYTHON else f"install Python {required} or newer")


def java(_: Path) -> CheckResult:
    """The Java that Spark would start is version 17."""
    to_do = f"install Java {_JAVA} (e.g. package openjdk-{_JAVA}-jre-headless) and set JAVA_HOME to it"
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        return CheckResult("no java on PATH and no JAVA_HOME", to_do)
    try:
        output = subprocess.run(  # noqa: S603 - the program Spark runs too
            [program, "-version"], capture_output=True, text=True, check=True, timeout=30
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return CheckResult(f"{program} does not run ({error})", to_do)
    version = re.search(r'version "(\d+)[^"]*"', output)
    if version is None:
        return CheckResult(f"{program} does not report its version", to_do)
    return CheckResult(version.group().removeprefix("version ").strip('"'), None if int(version[1]) == _JAVA else to_do)


def spark(_: Path) -> CheckResult:
    """PySpark is installed, in the version that this release goes with."""
    return _versions("pyspark")


def duckdb(_: Path) -> CheckResult:
    """DuckDB runs, and so does the reader of Delta logs."""
    finding = _versions("duckdb", "deltalake")
    if finding.to_do is None:
        import deltalake  # noqa: F401, PLC0415 - importing it is the check
        import duckdb as engine  # noqa: PLC0415

        engine.connect().execute("select 1").fetchall()
    return finding


def root(directory: Path) -> CheckResult:
    """The root, or the nearest directory that exists above it, can be written."""
    if not (directory / reading.CONFIGURATION).exists():
        return CheckResult(f"no {reading.CONFIGURATION} here: no root to check")
    try:
        target = reading.open_project(directory).root
    except WarehouseError as error:
        return CheckResult(str(error).splitlines()[0], "run `stream-wh validate`")
    if not store_of(target).local_paths:
        return _store_result(target)
    existing = next(path for path in (target, *target.parents) if path.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".stream-wh-doctor-"):
            pass
    except OSError as error:
        return CheckResult(
            f"{existing}: {error.strerror}", "make it writable for the user who updates; reading needs no more"
        )
    free = shutil.disk_usage(existing).free // 2**20
    return CheckResult(f"{target} writable, {free} MiB free")


def _store_result(target: Path) -> CheckResult:
    """Return whether a root in an object store can be written, and whether the store refuses to overwrite a name."""
    store, file = store_of(target), target / f".stream-wh-doctor-{uuid.uuid4().hex}"
    to_do = "set credentials, region and endpoint in the environment (docs/object-storage.md)"
    try:
        store.write_exclusive(file, b"first")
        try:
            store.write_exclusive(file, b"second")
        except FileExistsError:
            return CheckResult(f"{target} writable, with conditional puts")
        finally:
            file.unlink()
    except (WarehouseError, OSError) as error:
        return CheckResult(str(error).splitlines()[0], to_do)
    return CheckResult(f"{target} does not heed If-None-Match", "use a store with conditional puts, or two updates can collide")


def clock(directory: Path) -> CheckResult:
    """The clock is plausible and not behind the newest file."""
    now = time.time_ns() // 1000
    to_do = "set the clock (e.g. with NTP): updates and `retain` go by it"
    file = directory / reading.CONFIGURATION
    touched = file.stat().st_mtime if file.exists() else 0.0
    plausible = now >= _EARLIEST_CLOCK and touched <= now / 1e6 + _CLOCK_TOLERANCE_SECONDS
    return CheckResult(format_instant(now // 1_000_000 * 1_000_000), None if plausible else to_do)


def _versions(*packages: str) -> CheckResult:
    required = _requirements()
    versions, wrong = [], []
    for package in packages:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"no {package}")
            wrong.append(package)
            continue
        versions.append(f"{package} {version}")
        pinned = required.get(package)
        if pinned and not f"{version}.".startswith(f"{pinned}."):
            wrong.append(f"{package}=={pinned}.*")
    to_do = f"pip install {' '.join(repr(name) for name in wrong)}, or reinstall stream-wh" if wrong else None
    return CheckResult(", ".join(versions), to_do)


def _requirements() -> dict[str, str]:
    """Return the major and minor version that this installation requires, by package."""
    try:
        lines = importlib.metadata.requires("stream-wh") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    pins: dict[str, str] = {}
    for line in lines:
        match = re.match(r"([A-Za-z0-9_.-]+)[^=>]*(?:==|>=)([\d.]+)", line)
        if match and "extra ==" not in line:
            pins[match[1].lower()] = ".".join(match[2].split(".")[:2])
    return pins


CHECKS: tuple[tuple[str, Check], ...] = (
    ("python", python),
    ("java", java),
    ("spark", spark),
    ("duckdb", duckdb),
    ("root", root),
    ("clock", clock),
)
