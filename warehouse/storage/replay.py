"""A table's log replayed action by action, for those who need what the log says rather than what a reader makes of it.

Invariant: the state at version v is the last checkpoint at or before v, then each commit up to v in order: an ``add`` puts
a file in, a ``remove`` takes it out, ``metaData`` and ``protocol`` replace those before (the Delta protocol, action
reconciliation). The actions are kept as they were written, statistics as their JSON text included, so that a file which
left a table can be put back exactly as it was.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from warehouse.errors import MissingPartError
from warehouse.objects.path import parquet_source
from warehouse.storage.deltalog import commit_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["LogState", "replay", "replayed"]

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_ADD_FIELDS = ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats")


@dataclass(frozen=True)
class LogState:
    """What a table's log says at a version; ``files`` are ``add`` actions by the file's path relative to the table."""

    version: int
    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def replay(table: Path, version: int) -> LogState:
    """Return the state of a table (a directory) at a version.

    Raises
    ------
    MissingPartError
        When the log does not reach that version, or is damaged on the way to it.

    """
    return next(iter(replayed(table, (version,))))


def replayed(table: Path, versions: Iterable[int]) -> Iterator[LogState]:
    """Yield the states at several versions, ascending, reading the log once.

    Raises
    ------
    MissingPartError
        When the log does not reach one of them.

    """
    wanted = sorted(set(versions))
    if not wanted:
        return
    state = _start(table, wanted[0])
    for version in wanted:
        for number in range(state.version + 1, version + 1):
            state = _advanced(table, state, number)
        yield state


def _start(table: Path, version: int) -> LogState:
    """The newest whole checkpoint at or before a version; without one, the empty table before the first commit."""
    log = table / "_delta_log"
    parts: dict[int, list[Path]] = {}
    expected: dict[int, int] = {}
    for entry in log.iterdir() if log.is_dir() else ():
        match = _CHECKPOINT.fullmatch(entry.name)
        if match and int(match[1]) <= version:
            parts.setdefault(int(match[1]), []).append(entry)
            expected[int(match[1])] = int(match[3] or 1)
    whole = [number for number, files in parts.items() if len(files) == expected[number]]
    return _checkpoint(max(whole), parts[max(whole)]) if whole else LogState(-1)


def _checkpoint(version: int, files: list[Path]) -> LogState:
    import pyarrow.parquet as pq  # noqa: PLC0415 - short logs have no checkpoint

    protocol: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    adds: dict[str, Mapping[str, Any]] = {}
    for file in files:
        try:
            rows = pq.ParquetFile(parquet_source(file))
            columns = [name for name in ("protocol", "metaData", "add") if name in rows.schema_arrow.names]
            batches = list(rows.iter_batches(columns=columns))
        except Exception as error:
            raise MissingPartError(
                f"{file}: the checkpoint cannot be read ({error}); restore it, or remove it if all commits are there"
            ) from error
        for row in (row for batch in batches for row in batch.to_pylist()):
            protocol = row.get("protocol") or protocol
            if row.get("metaData"):
                metadata = {**row["metaData"], "configuration": dict(row["metaData"].get("configuration") or ())}
            if row.get("add"):
                add = {name: row["add"].get(name) for name in _ADD_FIELDS if name in row["add"]}
                add["partitionValues"] = dict(add.get("partitionValues") or ())
                adds[unquote(add["path"])] = add
    return LogState(version, protocol, metadata, adds)


def _advanced(table: Path, state: LogState, version: int) -> LogState:
    path = commit_path(table, version)
    protocol, metadata, files = state.protocol, state.metadata, dict(state.files)
    try:
        actions = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for action in actions:
            if "add" in action:
                files[unquote(action["add"]["path"])] = action["add"]
            elif "remove" in action:
                files.pop(unquote(action["remove"]["path"]), None)
            elif "metaData" in action:
                metadata = action["metaData"]
            elif "protocol" in action:
                protocol = action["protocol"]
    except FileNotFoundError:
        raise MissingPartError(f"{path}: the commit is missing; restore the table's _delta_log from a copy") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MissingPartError(f"{path}: the commit cannot be read ({error}); restore it from a copy") from error
    if not actions:
        raise MissingPartError(f"{path}: the commit is empty; restore it from a copy")
    return LogState(version, protocol, metadata, files)
