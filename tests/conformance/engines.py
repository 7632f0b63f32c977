"""Changes that other engines make to a table or to a copy of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltalake import DeltaTable

from warehouse.storage.replay import replay

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from .tables import Stored

__all__ = ["alter", "clone", "optimize", "reopened", "vacuum", "vacuum_by_delta_rs"]


def clone(spark: SparkSession, stored: Stored, target: Path) -> None:
    """Clone a table without its files."""
    spark.sql(f"CREATE TABLE delta.`{target}` SHALLOW CLONE delta.`{stored.path}` VERSION AS OF {stored.version}")


def alter(spark: SparkSession, table: Path) -> None:
    """Set a property, add a column."""
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('team' = 'a')")
    spark.sql(f"ALTER TABLE delta.`{table}` ADD COLUMNS (of_another int)")


def optimize(spark: SparkSession, table: Path) -> None:
    """Compact the table with both writers."""
    spark.sql(f"OPTIMIZE delta.`{table}`")
    DeltaTable(str(table)).optimize.compact()


def vacuum(spark: SparkSession, table: Path) -> None:
    """Delete the files that the newest version does not need."""
    spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled = false")
    spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")
    spark.sql("RESET spark.databricks.delta.retentionDurationCheck.enabled")


def vacuum_by_delta_rs(_: SparkSession, table: Path) -> None:
    """Do the same with delta-rs."""
    DeltaTable(str(table)).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)


def reopened(stored: Stored, copy: Path) -> Stored:
    """Return a table's copy at its newest version."""
    version = DeltaTable(str(copy)).version()
    return replace(stored, path=copy, version=version, files=tuple(copy / unquote(file) for file in replay(copy, version).files))
