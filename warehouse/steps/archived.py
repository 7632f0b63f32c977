"""The rows that a stream's archive gains: those of the stream's files that end in the slots of the update.

Files are left out by the exact bounds of their expiration slots; of the others every row is read. A table of the default
layout has its rows in blocks of w expiration slots, so a file is read by each of the up to w updates in which rows of it
end; without an archive it would go unread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import StorageLevel

from warehouse.catalog.archives import EXPIRED_AT
from warehouse.catalog.identifiers import quoted
from warehouse.errors import MissingPartError
from warehouse.ingest.batch import SPARK_FAILURES, Batch
from warehouse.ingest.batch_counts import BatchCounts
from warehouse.layout import exp_block_sql, sub_index_sql
from warehouse.objects.path import path_of
from warehouse.storage.tables import SYSTEM_COLUMNS
from warehouse.time import NEVER, slot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.epochs.records import TableState
    from warehouse.planning.steps import Plan, StreamPlan
    from warehouse.storage.scan import TableFiles
    from warehouse.storage.snapshot import DataFile

__all__ = ["archived"]


def archived(session: SparkSession, plan: Plan, planned: StreamPlan, source: TableState | None, files: TableFiles) -> Batch:
    """Return what an archive gains.

    Parameters
    ----------
    session
        A session with the archive's key settings.
    plan
        The plan of the update.
    planned
        That of the archive.
    source
        The stream's table at the last epoch; none before it exists.
    files
        The files of the warehouse's tables.

    Raises
    ------
    MissingPartError
        When a file is not there that holds such rows.

    """
    k0, k = planned.k0, plan.slot

    def ends_within(file: DataFile) -> bool:
        first, last = file.min_exp_slot, file.max_exp_slot
        return (last is None or last > k0) and (first is None or first <= k)

    if source is None:
        return _none(session, planned)
    wanted = [file.path for file in files.files(source.path, source.version) if ends_within(file)]
    missing = [path for path in wanted if not path_of(path).exists()]
    if missing:
        raise MissingPartError(
            f"{len(missing)} file(s) of rows to archive, which the last epoch names, are not there ({', '.join(missing[:3])}); "
            f"restore them from a copy, then update again"
        )
    own = [column for column in planned.declaration.columns if column.name != EXPIRED_AT]
    names = [quoted(column.name) for column in own]
    layout = planned.layout
    slots = ("_load_slot", "_exp_slot", "true")
    rows = (
        files.read(session, source.path, source.version, own, ends_within, rewritten=True)
        .where(f"_exp_slot > {k0}L AND _exp_slot <= {k}L")
        .selectExpr(
            *names, f"_exp AS {EXPIRED_AT}", "_ts", f"timestamp_micros({NEVER}L) AS _exp", "_exp_slot AS _load_slot",
            f"{slot(NEVER, plan.anchor, plan.update_interval)}L AS _exp_slot", "'live' AS _fate",
        )
        .selectExpr("*", f"{sub_index_sql(layout, *slots)} AS sub_index", f"{exp_block_sql(layout, *slots)} AS exp_block")
        .persist(StorageLevel.MEMORY_AND_DISK)
    )  # fmt: skip
    try:
        counted = rows.groupBy("sub_index", "exp_block").count().collect()
    except SPARK_FAILURES:
        rows.unpersist()
        raise
    cells = {(row["sub_index"], row["exp_block"]): row["count"] for row in counted}
    total = sum(cells.values())
    return Batch(rows, BatchCounts(rows=total, live=total, cells=cells), persisted=True)


def _none(session: SparkSession, planned: StreamPlan) -> Batch:
    columns = [*((column.name, column.type) for column in planned.declaration.columns), *SYSTEM_COLUMNS, ("_fate", "string")]
    rows: DataFrame = session.range(0).selectExpr(*[f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in columns])
    return Batch(rows, BatchCounts(), persisted=False)
