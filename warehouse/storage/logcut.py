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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from warehouse.errors import MissingPartError
from warehouse.objects.path import parquet_source
from warehouse.storage.deltalog import commit_path
from warehouse.storage.durable import sync_directory, write_exclusive, write_replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["LogState", "commit_mark", "cut_log", "log_state", "trim_log"]

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_VERSIONED = re.compile(r"\.?(\d{20})\.")


@dataclass
class LogState:
    """What a log says of a table at a version: its actions as the protocol spells them, files by path."""

    protocol: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def take(self, action: Mapping[str, Any]) -> None:
        """Take one action of the log, in order."""
        if action.get("add"):
            self.files[unquote(action["add"]["path"])] = action["add"]
        elif action.get("remove"):
            self.files.pop(unquote(action["remove"]["path"]), None)
        elif action.get("metaData"):
            self.metadata = action["metaData"]
        elif action.get("protocol"):
            self.protocol = action["protocol"]
        elif action.get("txn"):
            self.transactions[action["txn"]["appId"]] = action["txn"]


def commit_mark(table: Path, version: int, metadata: Mapping[str, Any], at: int) -> None:
    """Commit a version, exclusively, that changes nothing: a log can be cut at it, since it names no file.

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
    write_exclusive(commit_path(table, version), (json.dumps({"commitInfo": info}) + "\n").encode())


def log_state(table: Path, version: int) -> LogState:
    """Return what a table's log says at a version.

    Raises
    ------
    MissingPartError
        When the log does not reach that version.

    """
    state = LogState()
    log = table / "_delta_log"
    start = max((each for each in _checkpoints(log) if each <= version), default=-1)
    for part in _checkpoints(log).get(start, ()):
        for action in _checkpointed(log / part):
            state.take(action)
    for number in range(start + 1, version + 1):
        try:
            lines = commit_path(table, number).read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            raise MissingPartError(f"{commit_path(table, number)}: the commit is missing; restore it from a copy") from None
        for line in lines:
            state.take(json.loads(line))
    if not state.metadata or not state.protocol:
        raise MissingPartError(f"{log}: the log does not reach version {version}; restore it from a copy")
    return state


def _checkpoints(log: Path) -> dict[int, list[str]]:
    """Return the complete checkpoints: the names of their parts by version."""
    found: dict[int, dict[int, list[str]]] = {}
    for name in sorted(entry.name for entry in log.iterdir()):
        match = _CHECKPOINT.fullmatch(name)
        if match:
            found.setdefault(int(match[1]), {}).setdefault(int(match[3] or 1), []).append(name)
    whole = {version: [names for count, names in parts.items() if len(names) == count] for version, parts in found.items()}
    return {version: names[0] for version, names in whole.items() if names}


def _checkpointed(file: Path) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - only where a log is cut

    for row in pq.ParquetFile(parquet_source(file)).read().to_pylist(maps_as_pydicts="strict"):
        yield {name: _given(action) for name, action in row.items() if action is not None}


def _given(action: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in action.items() if value is not None}


def cut_log(table: Path, version: int) -> tuple[str, ...]:
    """Make a version the first of a table's log and return the names of the log's files that are gone.

    No epoch may name an older version. It may be called again after a crash anywhere.
    """
    log = table / "_delta_log"
    name = f"{version:020d}.checkpoint.parquet"
    if not (log / name).exists():
        state = log_state(table, version)
        _write_checkpoint(log / name, state)
    _point_to(log, version, name)
    return _remove_below(log, version, also=(f"{version:020d}.crc", f".{version:020d}.crc.crc"))


def trim_log(table: Path, oldest: int, *, dry_run: bool = False) -> tuple[str, ...]:
    """Remove what a log holds below the newest checkpoint at or before version ``oldest``, and return its names.

    Every version from ``oldest`` on can still be opened.
    """
    log = table / "_delta_log"
    if not log.is_dir():
        return ()
    start = max((each for each in _checkpoints(log) if each <= oldest), default=-1)
    return _remove_below(log, start, dry_run=dry_run) if start > 0 else ()


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
    pq.write_table(pa.Table.from_pylist([_with_maps(each) for each in actions], schema=schema), content)
    write_replacing(path, content.getvalue())


_MAPS = ("partitionValues", "tags", "options", "configuration")


def _with_maps(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return an action with its maps as pairs, which is how Arrow takes them."""
    if not isinstance(value, dict):
        return value
    return {
        name: list(each.items()) if name in _MAPS and isinstance(each, dict) else _with_maps(each) for name, each in value.items()
    }
