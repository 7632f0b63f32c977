"""Handles executors that are separate processes, on this machine or others, and share only files.

A task that Spark believes lost can still write after its job has ended, or during the next one. So each write has a separate
directory; Spark's committer adds the output of one whole task at a time, and nobody reads the directory after the job. If an
executor does not share the table's directory, it writes to a local one, and Spark does not notice. So the rows that arrive are
counted.
"""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.errors import NotSharedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path, PurePath

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["cores", "is_data", "on_cluster", "write_shared"]


def on_cluster(session: SparkSession) -> bool:
    """Whether executors are other processes than the driver."""
    master = str(session.sparkContext.master)
    return master.startswith("local-cluster[") or not master.startswith("local")


def cores(session: SparkSession) -> int:
    """Return how many tasks can run at once: on a cluster that many as are asked for, since executors come one by one."""
    context = session.sparkContext
    if not on_cluster(session):
        return max(1, context.defaultParallelism)
    conf = context._conf  # noqa: SLF001 - `getConf` copies all settings, one call of the JVM each
    return asked_for(conf.get, context.defaultParallelism)


def asked_for(setting: Callable[[str], str | None], registered: int) -> int:
    """Return the number of cores in the settings, at least the cores of ``registered`` executors.

    >>> asked_for({"spark.cores.max": "16"}.get, 2)
    16
    >>> asked_for({"spark.executor.instances": "3", "spark.executor.cores": "4"}.get, 2)
    12
    >>> asked_for({"spark.cores.max": "16", "spark.default.parallelism": "8"}.get, 2)
    8
    """
    parallelism = setting("spark.default.parallelism")
    if parallelism is not None:
        return max(1, int(parallelism))
    executor_cores = int(setting("spark.executor.cores") or 1)
    executors = [int(setting(f"spark.{key}") or 0) for key in ("executor.instances", "dynamicAllocation.maxExecutors")]
    return max(1, registered, int(setting("spark.cores.max") or 0), *(executor_cores * count for count in executors))


def is_data(path: PurePath) -> bool:
    """Whether a path below Spark's output directory is a partition or a finished file, and not one of Spark's own files.

    >>> from pathlib import PurePath as P
    >>> is_data(P("_slot=7/part-0.parquet")), is_data(P("_temporary/0/part-0.parquet")), is_data(P(".part-0.crc"))
    (True, False, False)
    """
    return not any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in path.parts)


def write_shared(
    rows: DataFrame, staged: Path, partition_columns: Sequence[str], options: dict[str, str], order: Sequence[str]
) -> None:
    """Write rows as Parquet files below ``staged``, sorted within tasks by ``order``, on any executors.

    Raises
    ------
    NotSharedError
        When the driver does not see as many rows there as the executors wrote.

    """
    directory = staged / f".{uuid.uuid4().hex}"
    counted = Observation()
    rows = rows.observe(counted, F.count(F.lit(1)).alias("rows"))
    # Spark does not know that the count keeps an order, so the count comes before the sort.
    writer = (rows.sortWithinPartitions(*order) if order else rows).write.options(**options)
    if partition_columns:
        writer = writer.partitionBy(*partition_columns)
    writer.parquet(str(directory))
    visible = sum(
        pq.read_metadata(file).num_rows for file in directory.rglob("*.parquet") if is_data(file.relative_to(directory))
    )
    written = int(counted.get.get("rows", 0))  # Spark counts nothing if it knows beforehand that there are no rows
    if visible != written:
        raise NotSharedError(f"executors wrote {written} rows below {staged}, of which {visible} are there for the driver")
    for entry in directory.iterdir():
        if is_data(entry.relative_to(directory)):
            entry.rename(staged / entry.name)
    shutil.rmtree(directory, ignore_errors=True)
