"""Jars that Spark needs and does not ship; Spark's own resolver puts them into the cache directory once.

They are not resolved if ``spark.jars``, ``spark.jars.packages`` or the class path already has them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from warehouse.errors import PlatformError
from warehouse.objects.client import cache_directory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

__all__ = ["AVRO", "Needed", "jar_settings", "jars_of", "require_avro"]

_TIMEOUT = 600
_WHERE_FROM = ("spark.jars.ivySettings", "spark.jars.repositories")
_GIVEN = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath", "spark.executor.extraClassPath")


@dataclass(frozen=True)
class Needed:
    """Packages for one purpose: the names of their jars, their folder, and the work that is possible without them."""

    packages: tuple[str, ...]
    excluded: tuple[str, ...]
    known_by: str
    folder: str
    purpose: str


AVRO = Needed(
    ("org.apache.spark:spark-avro_2.13:4.2.0",),
    ("org.scala-lang.modules:*", "org.tukaani:*"),
    "spark-avro",
    "avro-4.2.0",
    "reads files of Avro",
)
"""The version of the required Spark; the dependencies of the jar ship with Spark."""
_AVRO_CLASS = "org.apache.spark.sql.avro.AvroFileFormat"


def jar_settings(needed: Needed, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that add jars to a session with the ``given`` settings; empty if it has the jars.

    Raises
    ------
    PlatformError
        When they cannot be resolved.

    """
    if any(needed.known_by in given.get(key, "") for key in _GIVEN):
        return {}
    jars = jars_of(needed, given)
    if given.get("spark.master", "local[*]").startswith("local"):
        before = given.get("spark.driver.extraClassPath")
        return {"spark.driver.extraClassPath": os.pathsep.join([*([before] if before else []), *jars])}
    return {"spark.jars": ",".join([*filter(None, [given.get("spark.jars")]), *jars])}


def jars_of(needed: Needed, given: Mapping[str, str]) -> list[str]:
    """Return the jars, resolved into the cache directory if they are not there; raises the errors of :func:`jar_settings`."""
    target = cache_directory() / "jars" / needed.folder
    if not target.is_dir():
        _resolve(needed, target, given)
    return sorted(str(jar) for jar in target.glob("*.jar"))


def require_avro(session: SparkSession) -> None:
    """Refuse to read Avro in a session that cannot: each file would seem to be damaged.

    Raises
    ------
    PlatformError
        When the session was started without the jar.

    """
    jvm: Any = session._jvm  # noqa: SLF001 - the gateway is the only way to the JVM's classes
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(_AVRO_CLASS)
    except Py4JError as error:
        raise PlatformError(
            f"the Spark session reads no Avro, since it was started without its jar; start it with "
            f"`spark.jars.packages` = {AVRO.packages[0]} (`--packages` of spark-submit)"
        ) from error


def _resolve(needed: Needed, target: Path, given: Mapping[str, str]) -> None:
    import pyspark  # noqa: PLC0415 - reading commands never import Spark

    home = Path(pyspark.__file__).parent
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stream-wh-jars-", dir=target.parent) as scratch:
        nothing = Path(scratch) / "nothing.py"
        nothing.write_text("pass\n")
        command = [
            str(home / "bin" / "spark-submit"), "--packages", ",".join(needed.packages),
            "--exclude-packages", ",".join(needed.excluded), "--conf", f"spark.jars.ivy={scratch}/ivy",
            *(part for key in _WHERE_FROM if key in given for part in ("--conf", f"{key}={given[key]}")),
            str(nothing),
        ]  # fmt: skip
        try:
            done = subprocess.run(  # noqa: S603 - Spark's own command, with names of packages that stand above
                command, env={**os.environ, "SPARK_HOME": str(home)}, capture_output=True, text=True, check=False,
                stdin=subprocess.DEVNULL, timeout=_TIMEOUT,
            )  # fmt: skip
            output = done.stderr
        except subprocess.TimeoutExpired:
            output = f"no answer in {_TIMEOUT} s"
        jars = sorted(Path(scratch).glob("ivy/jars/*.jar"))
        if not any(needed.known_by in jar.name for jar in jars):
            reason = next((line for line in reversed(output.splitlines()) if line.strip()), "no answer")
            raise PlatformError(
                f"the jars with which Spark {needed.purpose} cannot be resolved ({reason.strip()[:200]}); give them to "
                f"it by `spark.jars.packages` in [spark], or with spark-submit"
            )
        complete = Path(scratch) / "complete"
        complete.mkdir()
        for jar in jars:
            shutil.move(jar, complete / jar.name)
        if not target.is_dir():
            complete.replace(target)
