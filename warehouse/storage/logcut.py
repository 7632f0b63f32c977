"""Cutting a table's Delta log: one checkpoint in place of all that led to it.

Statistics of files stand in the log: the smallest and largest keys of rows that may be gone for good. A log cut at
version v is ``{ checkpoint v, commit v, commits above v }``, which every reader of the Delta protocol opens at v; some
ask for the file of commit v too, so it stays.
The checkpoint is a classic one, written from the log's own actions: statistics are copied as they stand, and files that
have left the table are not mentioned.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from warehouse.objects.path import parquet_source
from warehouse.storage.deltalog import whole_parquet
from warehouse.storage.durable import sync_directory, sync_tree, write_replacing
from warehouse.storage.entries import append_entry
from warehouse.storage.replay import checkpoints, replay

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from warehouse.storage.entries import LogEntry
    from warehouse.storage.replay import LogState

__all__ = ["commit_mark", "cut_log", "sum_up", "trim_log"]

_VERSIONED = re.compile(r"\.?(\d{20})\.")


def commit_mark(table: Path, base: LogEntry, metadata: Mapping[str, Any], at: int) -> LogEntry:
    """Commit on an entry, exclusively, what changes nothing: a log can be cut at it, since it names no file.

    ``at`` is in microseconds.
    """
    info = {
        "timestamp": at // 1000,
        "operation": "CUT LOG",
        "operationParameters": {},
        "isBlindAppend": True,
        "userMetadata": json.dumps(metadata),
        "engineInfo": "stream-wh",
    }
    return append_entry(table, base, [{"commitInfo": info}])


def cut_log(table: Path, version: int) -> tuple[str, ...]:
    """Make a version the first of a table's log and return the names of the log's files that are gone.

    No epoch may name an older version. It may be called again after a crash anywhere.
    """
    sum_up(table, version)
    log = table / "_delta_log"
    return _remove_below(log, version, also=(f"{version:020d}.crc", f".{version:020d}.crc.crc"))


def sum_up(table: Path, version: int) -> None:
    """Write a checkpoint of a version, from the log's own actions, and remove nothing."""
    log = table / "_delta_log"
    name = f"{version:020d}.checkpoint.parquet"
    if not (log / name).exists():
        _write_checkpoint(log / name, replay(table, version))
    _point_to(log, version, name)


def trim_log(table: Path, oldest: int, *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove what a log holds below the newest checkpoint at or before version ``oldest``, and return its names.

    Every version from ``oldest`` on can still be opened. A checkpoint that was cut short does not count, and one that another
    writer has made is forced to the disk before anything relies on it.
    """
    log = table / "_delta_log"
    if not log.is_dir():
        return ()
    held = {version: names for version, names in checkpoints(log).items() if version <= oldest}
    start = max((each for each, names in held.items() if all(whole_parquet(log / name) for name in names)), default=-1)
    if start <= 0:
        return ()
    if not dry_run:
        sync_tree(log, [PurePosixPath(name) for name in held[start]])
    return _remove_below(log, start, dry_run=dry_run)


def _remove_below(log: Path, version: int, also: Iterable[str] = (), *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove the oldest first, so that what a crash leaves is what a reader that comes from the checkpoint passes over."""
    gone = []
    for name in sorted(entry.name for entry in log.iterdir()):
        match = _VERSIONED.match(name)
        if name in also or (match and int(match[1]) < version):
            gone.append(name)
            if not dry_run:
                (log / name).unlink(missing_ok=True)
    if gone and not dry_run:
        sync_directory(log)
    return tuple(gone)


def _point_to(log: Path, version: int, checkpoint: str) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    size = pq.read_metadata(parquet_source(log / checkpoint)).num_rows
    (log / "._last_checkpoint.crc").unlink(missing_ok=True)  # Hadoop's sum of the former one would deny it
    write_replacing(log / "_last_checkpoint", json.dumps({"version": version, "size": size}).encode())


def _write_checkpoint(path: Path, state: LogState) -> None:
    import pyarrow as pa  # noqa: PLC0415 - same
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    texts = pa.map_(pa.string(), pa.string())
    schema = pa.schema(
        {
            "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
            "add": pa.struct(
                {
                    "path": pa.string(),
                    "partitionValues": texts,
                    "size": pa.int64(),
                    "modificationTime": pa.int64(),
                    "dataChange": pa.bool_(),
                    "tags": texts,
                    "stats": pa.string(),
                }
            ),
            "remove": pa.struct(
                {
                    "path": pa.string(),
                    "deletionTimestamp": pa.int64(),
                    "dataChange": pa.bool_(),
                    "extendedFileMetadata": pa.bool_(),
                    "partitionValues": texts,
                    "size": pa.int64(),
                }
            ),
            "metaData": pa.struct(
                {
                    "id": pa.string(),
                    "name": pa.string(),
                    "description": pa.string(),
                    "format": pa.struct({"provider": pa.string(), "options": texts}),
                    "schemaString": pa.string(),
                    "partitionColumns": pa.list_(pa.string()),
                    "configuration": texts,
                    "createdTime": pa.int64(),
                }
            ),
            "protocol": pa.struct({"minReaderVersion": pa.int32(), "minWriterVersion": pa.int32()}),
        }
    )
    actions = [
        {"protocol": state.protocol},
        {"metaData": state.metadata},
        *({"txn": each} for each in state.transactions.values()),
        *({"add": {**each, "dataChange": False}} for each in state.files.values()),
    ]
    content = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([_with_maps(each) for each in actions], schema=schema), content, write_page_checksum=True)
    write_replacing(path, content.getvalue())


_MAPS = ("partitionValues", "tags", "options", "configuration")


def _with_maps(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return an action with its maps as pairs, which is how Arrow takes them."""
    if not isinstance(value, dict):
        return value
    return {
        name: list(each.items()) if name in _MAPS and isinstance(each, dict) else _with_maps(each) for name, each in value.items()
    }
