"""Options that make the JVM of a local Spark session start quickly.

Most of the time of a small update is Java loading and compiling the same classes as the time before. So the first update
of an installation leaves a class-data archive (about 200 MB) in the cache directory, and later updates use it; it saves
a third to a half of a small update's time. Jobs over little data are also compiled by the quick compiler only.
``STREAM_WH_CLASS_ARCHIVE=off`` does without the archive; ``read`` uses an existing archive and never writes one.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warehouse.objects.client import cache_directory

__all__ = ["SMALL_WORK", "ClassArchive", "class_archive", "java_options"]

SMALL_WORK = 64 * 1024 * 1024
"""Bytes of input below which compiling well costs more than it gains."""
_ABANDONED = 600
"""Seconds after the last write to a temporary archive from which on nobody can be writing it: a JVM writes it in some seconds."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""One compiler has a code cache of 48 MB by default: sweeping it took a quarter of the time of sessions of many updates."""


@dataclass(frozen=True)
class ClassArchive:
    """The archive, or the path to which the JVM writes it when it ends."""

    path: Path
    written: Path | None

    @property
    def options(self) -> str:
        """The JVM options that use or make it; ``-Xlog:disable`` keeps the JVM from explaining why it may not fit."""
        if self.written is not None:
            return f"-XX:ArchiveClassesAtExit={self.written} -Xlog:disable"
        return f"-XX:SharedArchiveFile={self.path} -Xlog:disable"

    def keep(self, *, useful: bool) -> None:
        """Keep the archive that the ended JVM wrote, if it executed an update; otherwise the next process tries again."""
        if self.written is None or not self.written.exists():
            return
        if useful and not self.path.exists():
            self.written.replace(self.path)
        for leftover in self.path.parent.glob(f".{self.path.stem}.*.jsa"):  # by this process, and by others that were killed
            leftover.unlink(missing_ok=True)


def class_archive(class_path: str) -> ClassArchive | None:
    """Return the archive for this Java, Spark and class path; None if it is switched off or cannot be kept."""
    java = _java()
    mode = os.environ.get("STREAM_WH_CLASS_ARCHIVE")
    if mode == "off" or java is None:
        return None
    facts = java.stat()
    pyspark = importlib.metadata.distribution("pyspark")
    identity = f"{java}|{facts.st_size}|{facts.st_mtime_ns}|{pyspark.version}|{pyspark.locate_file('')}|{class_path}"
    directory = cache_directory() / "classes"
    path = directory / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"
    if path.exists():
        return ClassArchive(path, None)
    if mode == "read":
        return None
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    if not os.access(directory, os.W_OK):
        return None
    _remove_leftovers(directory)
    return ClassArchive(path, directory / f".{path.stem}.{os.getpid()}.jsa")


def _remove_leftovers(directory: Path) -> None:
    """Remove archives whose processes were killed before they could keep them, of this installation and of others."""
    for leftover in directory.glob(".*.*.jsa"):
        with suppress(OSError):  # another process removed it
            if time.time() - leftover.stat().st_mtime > _ABANDONED:
                leftover.unlink()


def java_options(*, small: bool) -> str:
    """Return the JVM options for an amount of work."""
    return _QUICK if small else ""


def _java() -> Path | None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else shutil.which("java")
    if not java or not Path(java).exists():
        return None
    return Path(java).resolve()
