"""One Delta commit: data files that Spark wrote, removed files, and the commit's metadata.

Spark writes into the table's directory ``_staged``. The files move to their partitions, and one entry of the log, created
exclusively, adds them and removes others (Delta protocol, actions ``add``, ``remove``, ``txn``). Delta's own writer would do the
same, but reads the table's state by Spark jobs: *measured*, half a second of a warm update and several of a cold one. This module
reads the files of the last version without a JVM.

In an object store no file is moved: each staging has a new prefix ``staged-<random>``, and its files stay there. So no process
can take or overwrite the staged files of another one. Vacuum removes files that are never committed.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from warehouse.storage.cluster import is_data, on_cluster, write_shared
from warehouse.storage.fingerprint import with_sums
from warehouse.storage.footers import file_statistics
from warehouse.storage.key_summaries import write_summary
from warehouse.storage.local_disk import undone_on_failure
from warehouse.storage.side_by_side import each
from warehouse.storage.snapshot import stored_files
from warehouse.storage.store import store_of
from warehouse.storage.table_commit import TableCommit, carry_out

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from pyspark.sql import DataFrame

    from warehouse.storage.entries import LogEntry

__all__ = ["CommitFacts", "commit", "stage", "staged_name", "staged_place", "unstage"]

_PLAIN = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # A task's files appear together or not at all, by renaming directories: to show them one by one Hadoop makes each directory
    # once more, and starts a process of `chmod` for it.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
_SLASH = ","
"""In the name of a staged file: no partition has a comma."""
_FILE_BY_FILE = {"mapreduce.fileoutputcommitter.algorithm.version": "2"}
"""For an object store, where renaming is copying; on one machine a task that fails makes the update fail."""


@dataclass(frozen=True)
class CommitFacts:
    """The metadata of a commit; ``application`` and ``transaction`` identify it for Delta's own writers."""

    metadata: Mapping[str, Any]
    application: str | None = None
    transaction: int = 0


def stage(
    rows: DataFrame,
    table: Path,
    partition_columns: Sequence[str],
    file_rows: int,
    order: Sequence[str] = (),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Let Spark write rows as the table's next data files, at most ``file_rows`` each, and return their directory.

    Files that were staged before are removed. Tasks sort their rows by ``order``; ``settings`` are of Parquet, for this write.
    """
    unstage(table)
    options = {**_PLAIN, "maxRecordsPerFile": str(file_rows), **settings}
    store = store_of(table)
    staged = store.staging_directory(table)
    if not store.local_paths:
        options |= {} if on_cluster(rows.sparkSession) else _FILE_BY_FILE
    elif on_cluster(rows.sparkSession):
        write_shared(rows, staged, partition_columns, options, order)
        with_sums(staged, _data_below(staged), whole=False)
        return staged
    writer = (rows.sortWithinPartitions(*order) if order else rows).write.options(**options)
    if partition_columns:
        writer = writer.partitionBy(*partition_columns)
    writer.parquet(str(staged))
    if store.local_paths:
        with_sums(staged, _data_below(staged), whole=True)
    return staged


def _data_below(staged: Path) -> list[Path]:
    return sorted(file for path in staged.rglob("*.parquet") if is_data(file := path.relative_to(staged)))


def staged_name(place: str, name: str) -> str:
    """Return the name of a staged file that moves to a partition; staging makes no directory, which costs as much as a file.

    >>> staged_name("sub_index=1/exp_block=2", "part-0.parquet"), staged_name("", "part-0.parquet")
    ('sub_index=1,exp_block=2,part-0.parquet', 'part-0.parquet')
    """
    return f"{place}/{name}".lstrip("/").replace("/", _SLASH)


def staged_place(file: Path) -> Path:
    """Return where a staged file moves; both paths are relative, the file's to the staging directory, the place to the table."""
    return Path(*file.parts[:-1], *file.name.split(_SLASH))


def unstage(table: Path) -> None:
    """Delete the staged files in the table's directory; in an object store each staging has its own prefix."""
    store = store_of(table)
    if store.local_paths:
        store.remove_tree(store.staging_directory(table), ignore_errors=True)


def commit(
    table: Path,
    base: LogEntry,
    *,
    statistics: Sequence[str],
    leaving: Callable[[Mapping[str, int]], bool] | None,
    facts: CommitFacts,
    staged: Path | None = None,
    table_metadata: Mapping[str, Any] | None = None,
    gone: Container[str] = (),
    summarized: Sequence[str] = (),
) -> LogEntry:
    """Commit the staged files, if ``base`` is still the newest entry of the log, and return the new entry.

    Parameters
    ----------
    table
        The table's directory.
    base
        Its newest entry; removed files belong to that version.
    statistics
        The columns whose bounds the log keeps.
    leaving
        The partitions whose files are removed. None: the commit only adds.
    facts
        The commit's metadata.
    staged
        The directory in which :func:`stage` has put the new files; None: the table's own staging directory, if the store has one.
    table_metadata
        The action that also changes the table's columns or key; None: they stay.
    gone
        Further files to remove, relative to the table.
    summarized
        The search key for which the new files get summaries; empty: no summaries.

    Raises
    ------
    ForeignChangeError
        When the base was replaced, or another writer has committed on it.
    NotDurableError
        When the disk does not confirm the files or the entry; then both are removed.
    LockHeldError
        When another process has carried out the same plan, which is possible only in a store without file locks.

    """
    now = int(time.time() * 1000)
    placed = _move_staged(table, staged)
    with undone_on_failure(lambda: store_of(table).take_back(table, placed)):
        store_of(table).sync_tree(table, placed)
        each(lambda file: write_summary(table / file, summarized), placed if summarized else ())
        return _write_entry(table, base, placed, now, statistics, leaving, facts, table_metadata, gone)


def _write_entry(
    table: Path,
    base: LogEntry,
    placed: Sequence[Path],
    now: int,
    statistics: Sequence[str],
    leaving: Callable[[Mapping[str, int]], bool] | None,
    facts: CommitFacts,
    table_metadata: Mapping[str, Any] | None,
    gone: Container[str],
) -> LogEntry:
    """Write the log's entry that names the files; they are on the disk."""
    added = [_added(table, file, statistics) for file in placed]
    appends = leaving is None and not gone
    removed = [] if appends else [
        file.add
        for file in stored_files(table, base.version)
        if unquote(file.path) in gone
        or (leaving is not None and leaving({name: int(value) for name, value in file.partition.items()}))
    ]  # fmt: skip
    metrics = {
        "numFiles": str(len(added)),
        "numRemovedFiles": str(len(removed)),
        "numOutputRows": str(sum(json.loads(add["stats"])["numRecords"] for add in added)),
        "numOutputBytes": str(sum(add["size"] for add in added)),
    }
    commit = TableCommit(
        "WRITE",
        now,
        facts.metadata,
        appends=appends,
        parameters={"mode": "Append" if appends else "Overwrite"},
        facts={"readVersion": base.version, "isolationLevel": "Serializable", "operationMetrics": metrics},
        definitions=[*_transaction(facts, now), *([] if table_metadata is None else [table_metadata])],
        added=added,
        removed=removed,
    )
    return carry_out(table, base, commit)


def _move_staged(table: Path, staged: Path | None) -> list[Path]:
    """Move the staged files to where the table has them, where they are not yet; return them relative to the table."""
    store = store_of(table)
    if staged is None:
        if not store.local_paths:
            return []
        staged = store.staging_directory(table)
    files = _data_below(staged)
    if not store.local_paths:
        return [(staged / file).relative_to(table) for file in files]
    placed = [staged_place(file) for file in files]
    for directory in {file.parent for file in placed}:
        (table / directory).mkdir(parents=True, exist_ok=True)
    for file, place in zip(files, placed, strict=True):
        (staged / file).replace(table / place)
    unstage(table)
    return placed


def _added(table: Path, file: Path, statistics: Sequence[str]) -> dict[str, Any]:
    facts = (table / file).stat()
    _, stats = file_statistics(table / file, statistics)
    return {
        "path": quote(file.as_posix(), safe="/=:@!$&'()*+,;~"),
        "partitionValues": dict(part.split("=", 1) for part in file.parts[:-1] if "=" in part),
        "size": facts.st_size,
        "modificationTime": facts.st_mtime_ns // 1_000_000,
        "dataChange": True,
        "stats": stats,
    }


def _transaction(facts: CommitFacts, now: int) -> list[dict[str, Any]]:
    if facts.application is None:
        return []
    return [{"txn": {"appId": facts.application, "version": facts.transaction, "lastUpdated": now}}]
