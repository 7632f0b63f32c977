"""The JVM that all contenders on Spark share, each in a session of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.delta import delta_settings
from benchmarks.field.contender import NotHereError
from warehouse.errors import PlatformError
from warehouse.storage.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session"]

_MEMORY = "6g"
_ANY_SIZE = ("spark.driver.maxResultSize", "0")
"""Contenders that Spark reads give all of a large table to the client."""


def session() -> SparkSession:
    """Return the session of this process, with Delta's connector; started when first asked for.

    Raises
    ------
    NotHereError
        When Java or Delta's jars are missing.

    """
    try:
        return spark_session([("spark.driver.memory", _MEMORY), _ANY_SIZE, *delta_settings()])
    except (PlatformError, FileNotFoundError) as error:
        raise NotHereError(str(error)) from error
