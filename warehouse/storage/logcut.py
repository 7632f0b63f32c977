"""Cuts a table's Delta log: one checkpoint replaces all earlier entries.

The log has statistics of files: the smallest and largest keys, also of rows that were erased. A log cut at version v is ``{
checkpoint v, commit v, commits above v }``, which every reader of the Delta protocol can open at v; some also read the file of
commit v, so it stays. The checkpoint is a classic one, which this module writes from the log's own actions: statistics are copied
unchanged, and removed files are not mentioned. (deltalake writes the checkpoints of :mod:`.checkpoints`, which cut nothing: they
mention removed files as long as a VACUUM must spare them.)
"""

from __future__ import annotations

import io
import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from warehouse.errors import MissingPartError
from warehouse.objects.path import parquet_source
from warehouse.storage.leftover import wrong_checkpoints
from warehouse.storage.replay import checkpointed, checkpoints, replay, replayed
from warehouse.storage.store import store_of
from warehouse.storage.table_commit import TableCommit, carry_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from warehouse.storage.entries import LogEntry
    from warehouse.storage.replay import LogState

__all__ = ["commit_mark", "cut_log", "trim_log"]

_VERSIONED = re.compile(r"\.?(\d{20})\.")


def commit_mark(table: Path, base: LogEntry, metadata: Mapping[str, Any], at: int) -> LogEntry:
    """Commit, exclusively on an entry, no change: the log can be cut at this commit, since it names no file.

    ``at`` is in microseconds.
    """
    return carry_out(table, base, TableCommit("CUT LOG", at // 1000, metadata, appends=True))


def cut_log(table: Path, version: int) -> tuple[str, ...]:
    """Make a version the first of a table's log, and return the names of the log's files that were removed.

    No epoch may name an older version. After a crash at any point it can be called again.
    """
    _sum_up(table, version)
    log = table / "_delta_log"
    return _remove_below(log, version, also=(f"{version:020d}.crc", f".{version:020d}.crc.crc"))


def _sum_up(table: Path, version: int) -> None:
    """Write a checkpoint of a version that names only files of the table, no removed file; remove nothing.

    An existing checkpoint stays if it has exactly the state of the commits.
    """
    log = table / "_delta_log"
    name = f"{version:020d}.checkpoint.parquet"
    if not (log / name).exists():
        _write_checkpoint(log / name, replay(table, version))
    elif not _is_right(table, version):
        *_, state = replayed(table, (version - 1, version))  # from an earlier one: this one is damaged, or somebody else's
        _write_checkpoint(log / name, state)
    elif _names_removed(log / name):
        _write_checkpoint(log / name, replay(table, version))
    _point_to(log, version, name)


def _is_right(table: Path, version: int) -> bool:
    return _readable(table, version) and all(wrong.version != version for wrong in wrong_checkpoints(table, version))


def _names_removed(checkpoint: Path) -> bool:
    """Whether a checkpoint names removed files, as checkpoints of deltalake do until the files may be deleted."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - erasures and sweeps alone

    file = pq.ParquetFile(parquet_source(checkpoint))
    if "remove" not in file.schema_arrow.names:
        return False
    removed = file.read(columns=["remove.path"])["remove"]
    return any(entry is not None and entry["path"] is not None for entry in removed.to_pylist())


def trim_log(table: Path, oldest: int, *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove the files of a log below the newest checkpoint at or before version ``oldest``, and return their names.

    Every version from ``oldest`` on can still be opened: the checkpoint was read and has the state of the removed commits. A
    checkpoint of another writer is synced to the disk first.
    """
    log = table / "_delta_log"
    if not log.is_dir():
        return ()
    names_of = {version: names for version, names in checkpoints(log).items() if 0 < version <= oldest}
    wrong: set[int] | None = None
    for start in sorted(names_of, reverse=True):
        if not _remove_below(log, start, dry_run=True):
            return ()
        if wrong is None:
            wrong = {checkpoint.version for checkpoint in wrong_checkpoints(table, oldest)}
        if start in wrong or not _readable(table, start):
            continue
        if not dry_run:
            store_of(log).sync_tree(log, [PurePosixPath(name) for name in names_of[start]])
        return _remove_below(log, start, dry_run=dry_run)
    return ()


def _readable(table: Path, version: int) -> bool:
    """Whether the checkpoint of a version can be read to its end, and is of a table."""
    try:
        state = checkpointed(table, version)
    except MissingPartError:
        return False
    return bool(state.protocol and state.metadata)


def _remove_below(log: Path, version: int, also: Iterable[str] = (), *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove the oldest first: after a crash only files are left that a reader of the checkpoint does not need."""
    removed = []
    for name in sorted(entry.name for entry in log.iterdir()):
        match = _VERSIONED.match(name)
        if name in also or (match and int(match[1]) < version):
            removed.append(name)
            if not dry_run:
                (log / name).unlink(missing_ok=True)
    if removed and not dry_run:
        store_of(log).sync_directory(log)
    return tuple(removed)


def _point_to(log: Path, version: int, checkpoint: str) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    size = pq.read_metadata(parquet_source(log / checkpoint)).num_rows
    (log / "._last_checkpoint.crc").unlink(missing_ok=True)  # Hadoop's sum of the former one would deny it
    store_of(log).write_replacing(log / "_last_checkpoint", json.dumps({"version": version, "size": size}).encode())


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
        *({"txn": transaction} for transaction in state.transactions.values()),
        *({"add": {**add, "dataChange": False}} for add in state.files.values()),
    ]
    content = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist([_with_maps(action) for action in actions], schema=schema), content, write_page_checksum=True
    )
    store_of(path).write_replacing(path, content.getvalue())


_MAPS = ("partitionValues", "tags", "options", "configuration")


def _with_maps(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return an action with its maps as pairs, which is how Arrow takes them."""
    if not isinstance(value, dict):
        return value
    return {
        name: list(member.items()) if name in _MAPS and isinstance(member, dict) else _with_maps(member)
        for name, member in value.items()
    }
