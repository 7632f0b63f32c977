"""Commits that change the definition of a table: they create or replace it, or change its columns or properties."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from warehouse.storage.entries import NO_ENTRY, LogEntry
from warehouse.storage.replay import replay
from warehouse.storage.snapshot import stored_files
from warehouse.storage.table_commit import TableCommit, carry_out, metadata_action

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["create_table", "replace_table", "set_columns", "set_properties"]


def create_table(
    table: Path,
    *,
    table_id: str,
    schema: Mapping[str, Any],
    partition_columns: Sequence[str],
    properties: Mapping[str, str],
    metadata: Mapping[str, Any],
    created_at: int,
    base: LogEntry = NO_ENTRY,
) -> LogEntry:
    """Write commit 0 of an empty table at protocol reader 1, writer 2, exclusively, and return its entry.

    ``schema`` is the Spark struct type as JSON, ``created_at`` microseconds; partition columns come last in it. deltalake would
    choose the table's identity itself.
    """
    commit = TableCommit(
        "CREATE TABLE",
        created_at // 1000,
        metadata,
        appends=True,
        parameters={"partitionBy": json.dumps(list(partition_columns))},
        definitions=(
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            metadata_action(table_id, schema, partition_columns, properties, created_at),
        ),
    )
    return carry_out(table, base, commit)


def replace_table(
    table: Path,
    base: LogEntry,
    *,
    table_id: str,
    schema: Mapping[str, Any],
    partition_columns: Sequence[str],
    properties: Mapping[str, str],
    metadata: Mapping[str, Any],
    at: int,
) -> LogEntry:
    """Commit, exclusively on an entry, other columns and no rows; identity and partition columns stay.

    ``schema`` is the Spark struct type as JSON, ``at`` microseconds. The files stay for the epochs that name them. deltalake
    refuses files to remove in overwrite mode.
    """
    commit = TableCommit(
        "REPLACE TABLE",
        at // 1000,
        metadata,
        parameters={"partitionBy": json.dumps(list(partition_columns))},
        definitions=(metadata_action(table_id, schema, partition_columns, properties, at),),
        removed=[file.add for file in stored_files(table, base.version)],
    )
    return carry_out(table, base, commit)


def set_properties(
    table: Path, base: LogEntry, properties: Mapping[str, str], metadata: Mapping[str, Any], at: int
) -> LogEntry:
    """Commit changed properties of a table on an entry, exclusively; ``at`` is in microseconds."""
    current = replay(table, base.version).metadata
    changed = {**current, "configuration": {**(current.get("configuration") or {}), **properties}}
    commit = TableCommit(
        "SET TBLPROPERTIES",
        at // 1000,
        metadata,
        appends=True,
        parameters={"properties": json.dumps(properties)},
        definitions=({"metaData": changed},),
    )
    return carry_out(table, base, commit)


def set_columns(
    table: Path, base: LogEntry, action: Mapping[str, Any], metadata: Mapping[str, Any], at: int
) -> LogEntry:
    """Commit other columns (a :func:`metadata_action`) and the same rows on an entry, exclusively; ``at`` in microseconds.

    deltalake ignores a wider schema in append mode.
    """
    return carry_out(table, base, TableCommit("CHANGE COLUMNS", at // 1000, metadata, appends=True, definitions=(action,)))
