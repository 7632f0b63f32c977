"""What Spark needs to read and write a root in an object store: Hadoop's file system, with the settings that obstore has.

The jars are resolved once by Spark's own resolver into the cache directory, without the 500 MB bundle of all of Amazon's
services. They are not resolved if ``spark.jars``, ``spark.jars.packages`` or the class path already has ``hadoop-aws``.
Credentials come from Hadoop's default chain, which takes them from the same environment and never from a command line.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.errors import PlatformError
from warehouse.objects.client import cache_directory
from warehouse.objects.path import ObjectPath

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PACKAGES", "store_settings"]

_SDK = "2.35.4"
PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    f"software.amazon.awssdk:s3-transfer-manager:{_SDK}",
    f"software.amazon.awssdk:sts:{_SDK}",
)
"""The versions that belong to the Hadoop which PySpark ships."""
_EXCLUDED = (
    "software.amazon.awssdk:bundle",
    "org.slf4j:slf4j-api",
    "commons-logging:commons-logging",
    "commons-codec:commons-codec",
    "io.netty:*",
)
_TIMEOUT = 600
_WHERE_FROM = ("spark.jars.ivySettings", "spark.jars.repositories")
_GIVEN = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath", "spark.executor.extraClassPath")


def store_settings(root: Path, given: Mapping[str, str], *, launched: bool = False) -> dict[str, str]:
    """Return the settings of a session for a root: none for a local one.

    Parameters
    ----------
    root
        Where the tables are.
    given
        The user's settings, which stay.
    launched
        Whether the JVM runs already, with the jars that it was started with.

    Raises
    ------
    PlatformError
        When Spark cannot reach such a store, or its jars cannot be had.

    """
    if not isinstance(root, ObjectPath):
        return {}
    scheme = root.parts[0]
    if scheme != "s3:":
        key = f"spark.hadoop.fs.{scheme[:-1]}.impl"
        if key not in given:
            raise PlatformError(f'Spark has no file system of its own for {root}; give it one in [spark]: its jars, and "{key}"')
        return {}
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    settings = {
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        # Names are written once, each staging under a prefix of its own: nothing has to be looked up before.
        "spark.hadoop.fs.s3a.performance.flags": "create,delete,mkdir",
    }
    if endpoint:
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
        settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    if region:
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region
    settings = {key: value for key, value in settings.items() if key not in given}
    if not launched and not any("hadoop-aws" in given.get(key, "") for key in _GIVEN):
        jars = _jars(given)
        if given.get("spark.master", "local[*]").startswith("local"):
            before = given.get("spark.driver.extraClassPath")
            settings["spark.driver.extraClassPath"] = os.pathsep.join([*([before] if before else []), *jars])
        else:
            settings["spark.jars"] = ",".join([*filter(None, [given.get("spark.jars")]), *jars])
    return settings


def _jars(given: Mapping[str, str]) -> list[str]:
    """Return the jars, resolved into the cache directory if they are not there."""
    target = cache_directory() / "jars" / "-".join(("s3", PACKAGES[0].rpartition(":")[2], _SDK))
    if not target.is_dir():
        _resolve(target, given)
    return sorted(str(jar) for jar in target.glob("*.jar"))


def _resolve(target: Path, given: Mapping[str, str]) -> None:
    import pyspark  # noqa: PLC0415 - reading commands never import Spark

    home = Path(pyspark.__file__).parent
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stream-wh-jars-", dir=target.parent) as scratch:
        nothing = Path(scratch) / "nothing.py"
        nothing.write_text("pass\n")
        command = [
            str(home / "bin" / "spark-submit"), "--packages", ",".join(PACKAGES), "--exclude-packages", ",".join(_EXCLUDED),
            "--conf", f"spark.jars.ivy={scratch}/ivy",
            *(part for key in _WHERE_FROM if key in given for part in ("--conf", f"{key}={given[key]}")),
            str(nothing),
        ]  # fmt: skip
        try:
            done = subprocess.run(  # noqa: S603 - Spark's own command, with names of packages that stand above
                command, env={**os.environ, "SPARK_HOME": str(home)}, capture_output=True, text=True, check=False,
                stdin=subprocess.DEVNULL, timeout=_TIMEOUT,
            )  # fmt: skip
            told = done.stderr
        except subprocess.TimeoutExpired:
            told = f"no answer in {_TIMEOUT} s"
        found = sorted(Path(scratch).glob("ivy/jars/*.jar"))
        if not any("hadoop-aws" in jar.name for jar in found):
            reason = next((line for line in reversed(told.splitlines()) if line.strip()), "no answer")
            raise PlatformError(
                f"the jars with which Spark reaches an object store cannot be resolved ({reason.strip()[:200]}); give them to "
                f"it by `spark.jars.packages` in [spark], or with spark-submit"
            )
        complete = Path(scratch) / "complete"
        complete.mkdir()
        for jar in found:
            shutil.move(jar, complete / jar.name)
        if not target.is_dir():
            complete.replace(target)
