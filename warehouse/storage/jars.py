"""Delta's jars: found in a cache directory, or resolved into it once by Spark's own resolver.

The delta-spark wheel has no jars. Only the table format itself and its storage layer are needed; everything they
depend on ships with PySpark (DESIGN 10).
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from warehouse.errors import PlatformError

__all__ = ["cache_directory", "jar_names", "jar_paths", "missing_jars", "resolve_jars"]

_SPARK_LINE = "4.2"
_SCALA = "2.13"


def cache_directory() -> Path:
    """Return where the jars are kept: ``$STREAM_WH_CACHE`` or the user's cache directory."""
    chosen = os.environ.get("STREAM_WH_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "stream-wh"


def jar_names() -> tuple[str, ...]:
    """Return the file names of the jars for the installed delta-spark."""
    version = importlib.metadata.version("delta-spark")
    return (f"delta-spark_{_SPARK_LINE}_{_SCALA}-{version}.jar", f"delta-storage-{version}.jar")


def missing_jars() -> list[str]:
    """Return the names of the jars that are not in the cache directory."""
    return [name for name in jar_names() if not (cache_directory() / "jars" / name).is_file()]


def jar_paths() -> list[Path]:
    """Return the jars' paths, resolving them first if one is missing.

    Raises
    ------
    PlatformError
        When they are missing and cannot be resolved.

    """
    if missing_jars():
        resolve_jars()
    return [cache_directory() / "jars" / name for name in jar_names()]


def resolve_jars() -> None:
    """Resolve the jars into the cache directory with Spark's resolver (needs the network, once)."""
    version = importlib.metadata.version("delta-spark")
    target = cache_directory() / "jars"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stream-wh-jars-") as scratch:
        nothing = Path(scratch) / "nothing.py"
        nothing.write_text("pass\n")
        import pyspark  # noqa: PLC0415 - only this function needs Spark's home

        command = [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"),
            "--packages",
            f"io.delta:delta-spark_{_SPARK_LINE}_{_SCALA}:{version}",
            "--exclude-packages",
            ",".join(_SHIPPED_WITH_SPARK),
            "--conf",
            f"spark.jars.ivy={scratch}/ivy",
            str(nothing),
        ]
        environment = {**os.environ, "SPARK_HOME": str(Path(pyspark.__file__).parent)}
        try:
            done = subprocess.run(  # noqa: S603 - a fixed command
                command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise PlatformError(f"Spark's launcher cannot be started ({error}); install Java 17") from error
        for name in jar_names():
            found = next(iter(Path(scratch).glob(f"ivy/jars/*_{name}")), None)
            if found is None:
                raise PlatformError(
                    f"{name} could not be resolved; connect to a Maven repository once, or put it into {target}. "
                    f"Spark's resolver said: {_last_words(done.stderr)}",
                )
            partial = target / f".{name}.{os.getpid()}.tmp"
            shutil.copyfile(found, partial)
            partial.replace(target / name)


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\tat ")]
    return " / ".join(lines[-3:]) or "nothing"


_SHIPPED_WITH_SPARK = (
    "com.fasterxml.jackson.core:jackson-annotations",
    "com.fasterxml.jackson.core:jackson-core",
    "com.fasterxml.jackson.core:jackson-databind",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8",
    "com.github.luben:zstd-jni",
    "com.google.code.findbugs:jsr305",
    "commons-logging:commons-logging",
    "commons-pool:commons-pool",
    "io.airlift:aircompressor",
    "io.delta:delta-kernel-api",
    "io.delta:delta-kernel-defaults",
    "io.delta:delta-kernel-unitycatalog",
    "io.unitycatalog:unitycatalog-client",
    "io.unitycatalog:unitycatalog-hadoop",
    "javax.annotation:javax.annotation-api",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    "org.apache.logging.log4j:log4j-api",
    "org.apache.logging.log4j:log4j-core",
    "org.apache.logging.log4j:log4j-slf4j2-impl",
    "org.apache.parquet:parquet-column",
    "org.apache.parquet:parquet-common",
    "org.apache.parquet:parquet-encoding",
    "org.apache.parquet:parquet-format-structures",
    "org.apache.parquet:parquet-hadoop",
    "org.apache.parquet:parquet-jackson",
    "org.locationtech.jts:jts-core",
    "org.roaringbitmap:RoaringBitmap",
    "org.roaringbitmap:shims",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)
