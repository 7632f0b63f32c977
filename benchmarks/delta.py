"""Delta's own Spark connector, by which contenders and tests read and write Delta tables as others do.

The warehouse itself does without it. The delta-spark wheel has no jars: they are found in the cache directory, or resolved
into it once by Spark's own resolver. Everything they depend on ships with PySpark.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.objects.client import cache_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["delta_settings"]

_SPARK_LINE = "4.2"
_SCALA = "2.13"


def delta_settings() -> tuple[tuple[str, str], ...]:
    """Return the settings of a session that has Delta, resolving its jars first if one is missing."""
    directory = cache_directory() / "jars"
    version = importlib.metadata.version("delta-spark")
    names = (f"delta-spark_{_SPARK_LINE}_{_SCALA}-{version}.jar", f"delta-storage-{version}.jar")
    if not all((directory / name).is_file() for name in names):
        _resolve(version, names, directory)
    return (
        ("spark.driver.extraClassPath", os.pathsep.join(str(directory / name) for name in names)),
        ("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"),
        ("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"),
        ("spark.databricks.delta.snapshotPartitions", "2"),
    )


def _resolve(version: str, names: Sequence[str], target: Path) -> None:
    """Resolve the jars into a directory (needs the network, once)."""
    import pyspark  # noqa: PLC0415 - pure tests never import Spark

    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stream-wh-jars-") as scratch:
        nothing = Path(scratch) / "nothing.py"
        nothing.write_text("pass\n")
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
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        for name in names:
            jar = next(iter(Path(scratch).glob(f"ivy/jars/*_{name}")), None)
            if jar is None:
                raise FileNotFoundError(f"{name} could not be resolved: {done.stderr[-500:]}")
            partial = target / f".{name}.{os.getpid()}.tmp"
            shutil.copyfile(jar, partial)
            partial.replace(target / name)


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
