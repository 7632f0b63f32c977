"""Messages of a session's JVM are passed on and never block it; the settings of a table's session."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkConf

from warehouse.storage.session import _forward, table_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _FullDisk:
    """A standard error on a disk that is full."""

    def __init__(self) -> None:
        self.asked = 0

    def write(self, _: str) -> int:
        """Fail."""
        self.asked += 1
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.timeout(30)
def test_what_cannot_be_said_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe holds 64 KiB: without a reader the JVM would wait for ever."""
    full = _FullDisk()
    monkeypatch.setattr(sys, "stderr", full)
    read_end, write_end = os.pipe()
    forwarding = threading.Thread(target=_forward, args=(read_end,), daemon=True)
    forwarding.start()
    for _ in range(3000):
        os.write(write_end, b"WARN something that the JVM has to say, in some more words than this\n")
    os.close(write_end)
    forwarding.join(10)
    assert not forwarding.is_alive()
    assert full.asked == 3000


def test_the_codec_is_ours_unless_the_user_says_another(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The codec of Parquet files and its level: settings of Spark or of Hadoop."""
    codec, level = "spark.sql.parquet.compression.codec", "parquet.compression.codec.zstd.level"
    own = table_session(spark, {})
    assert (own.conf.get(codec), own.conf.get(level)) == ("zstd", "1")
    configured = {codec, f"spark.hadoop.{level}"}
    monkeypatch.setattr(SparkConf, "contains", lambda _, key: key in configured)
    monkeypatch.setattr("warehouse.storage.session._sessions", OrderedDict())  # none is kept from before
    other = table_session(spark, {})
    assert (other.conf.get(codec), other.conf.get(level, None)) == (spark.conf.get(codec), None)


def test_joins_of_few_rows_leave_the_heap_to_others(spark: SparkSession) -> None:
    """A hash table of a few rows takes 4 MB, not 64, and finished queries are forgotten."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    assert jvm.org.apache.spark.SparkEnv.get().memoryManager().pageSizeBytes() <= 4 * 1024 * 1024
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.sql.ui.retainedExecutions") == "1"
