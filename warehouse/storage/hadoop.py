"""Spark's settings to read and write a root in an object store: Hadoop's file system, with the settings that obstore has.

The jars are resolved without the 500 MB bundle of all of Amazon's services.
Credentials come from Hadoop's default chain, which takes them from the same environment and never from a command line.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from warehouse.errors import PlatformError
from warehouse.objects.path import ObjectPath
from warehouse.storage.packages import Needed, jar_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
_NEEDED = Needed(PACKAGES, _EXCLUDED, "hadoop-aws", f"s3-3.5.0-{_SDK}", "reaches an object store")


def store_settings(root: Path, given: Mapping[str, str], *, launched: bool = False) -> dict[str, str]:
    """Return the settings of a session for a root: no setting for a local one.

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
        # Names are written once, since each staging has a new prefix, so no lookup is necessary before.
        "spark.hadoop.fs.s3a.performance.flags": "create,delete,mkdir",
    }
    if endpoint:
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
        settings["spark.hadoop.fs.s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
    if region:
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region
    settings = {key: value for key, value in settings.items() if key not in given}
    return settings if launched else settings | jar_settings(_NEEDED, given)
