"""Replays a table's log action by action, for code that needs the log's own actions instead of a reader's snapshot.

Invariant: the state at version v is the last checkpoint at or before v, then each commit up to v in order: an ``add`` puts a file
in, a ``remove`` takes it out, ``metaData`` and ``protocol`` replace those before, a ``txn`` the one of its application (the Delta
protocol, action reconciliation). Checkpoints above v never count. The actions are kept as they were written, with statistics as
JSON text, so that a removed file can be restored exactly. A commit or checkpoint with an action that violates the protocol counts
as damaged.
"""

from __future__ import annotations

import io
import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from warehouse.errors import MissingPartError
from warehouse.storage.entries import entry_path, raw_commit
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["UNREADABLE", "LogState", "advanced", "checkpointed", "checkpoints", "replay", "replayed", "sources_of"]

_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?\.parquet")
_ACTIONS = ("protocol", "metaData", "txn", "add")
_MAPS = ("configuration", "options", "partitionValues", "tags")
UNREADABLE = (msgspec.ValidationError, ValueError, KeyError, TypeError, AttributeError)
"""The errors that readers of an action raise if it is not as the protocol says."""


class _Add(msgspec.Struct, rename="camel"):
    path: str
    size: int
    partition_values: dict[str, str | None]
    stats: str | None = None


class _Remove(msgspec.Struct):
    path: str


class _MetaData(msgspec.Struct, rename="camel"):
    id: str
    schema_string: str
    partition_columns: list[str]
    configuration: dict[str, str | None] | None = None


class _Protocol(msgspec.Struct, rename="camel"):
    min_reader_version: int
    min_writer_version: int


class _Txn(msgspec.Struct, rename="camel"):
    app_id: str
    version: int


class _Bounds(msgspec.Struct):
    """The bounds that updates read."""

    exp_slot: int | None = msgspec.field(name="_exp_slot", default=None)
    ts: str | None = msgspec.field(name="_ts", default=None)


class _Statistics(msgspec.Struct, rename="camel"):
    num_records: int | None = None
    min_values: _Bounds | None = None
    max_values: _Bounds | None = None
    null_count: dict[str, Any] | None = None


class _Column(msgspec.Struct):
    name: str
    type: str | dict[str, Any]


class _Schema(msgspec.Struct):
    fields: list[_Column]


_TYPES: Mapping[str, type[msgspec.Struct]] = {
    "add": _Add, "remove": _Remove, "metaData": _MetaData, "protocol": _Protocol, "txn": _Txn,
}  # fmt: skip


@dataclass(frozen=True)
class LogState:
    """The state of a table's log at a version; ``files`` are ``add`` actions by the file's path relative to the table.

    ``transactions`` are ``txn`` actions by application.
    """

    version: int
    protocol: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    transactions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def replay(table: Path, version: int) -> LogState:
    """Return the state of a table (a directory) at a version.

    Raises
    ------
    MissingPartError
        When the log does not reach that version, or is damaged on the way to it.
    OSError, StoreBusyError
        When the disk or the store does not deliver its bytes: that may pass, and does not mean that the log is damaged.

    """
    return next(iter(replayed(table, (version,))))


def replayed(table: Path, versions: Iterable[int]) -> Iterator[LogState]:
    """Yield the states at several versions, ascending, reading the log once.

    Raises
    ------
    MissingPartError
        When the log does not reach one of them.

    """
    ascending = sorted(set(versions))
    if not ascending:
        return
    state = _start(table, ascending[0])
    for version in ascending:
        for number in range(state.version + 1, version + 1):
            state = _advanced(table, state, number)
        yield state


def sources_of(table: Path, version: int) -> tuple[LogState, list[Path]]:
    """Return the state of a table at a version, and the files of its log that are enough to open it.

    These are the newest readable checkpoint at or before the version, the commit of its version if it exists, and the commits
    that follow. A truncated checkpoint is skipped, as long as the commits exist.

    Raises
    ------
    MissingPartError
        When they do not reach that version.

    """
    log = table / "_delta_log"
    names_of = checkpoints(log)
    state = LogState(-1)
    files: list[Path] = []
    for start in sorted((candidate for candidate in names_of if candidate <= version), reverse=True):
        with suppress(MissingPartError):
            files = [log / name for name in names_of[start]]
            state = _checkpointed(start, files)
            break
    else:
        files = []
    commit = entry_path(table, state.version)
    files += [commit] if state.version >= 0 and commit.exists() else []
    for number in range(state.version + 1, version + 1):
        state = _advanced(table, state, number)
        files.append(entry_path(table, number))
    return state, files


def checkpoints(log: Path) -> dict[int, list[str]]:
    """Return the complete checkpoints of a log (a directory): the names of their parts by version."""
    parts_of: dict[int, dict[int, list[str]]] = {}
    for name in sorted(store_of(log).entry_names(log)):
        match = _CHECKPOINT.fullmatch(name)
        if match:
            parts_of.setdefault(int(match[1]), {}).setdefault(int(match[3] or 1), []).append(name)
    complete = {version: [names for count, names in parts.items() if len(names) == count] for version, parts in parts_of.items()}
    return {version: names[0] for version, names in complete.items() if names}


def _start(table: Path, version: int) -> LogState:
    """The newest whole checkpoint at or before a version; without one, the empty table before the first commit."""
    log = table / "_delta_log"
    names_of = checkpoints(log)
    start = max((number for number in names_of if number <= version), default=-1)
    return _checkpointed(start, [log / name for name in names_of[start]]) if start >= 0 else LogState(-1)


def checkpointed(table: Path, version: int) -> LogState:
    """Return the state that the checkpoint of a version holds; the checkpoint must be complete.

    Raises
    ------
    MissingPartError
        When it is damaged.
    OSError, StoreBusyError
        When the disk or the store does not deliver its bytes: that may pass, and does not mean that the checkpoint is damaged.

    """
    log = table / "_delta_log"
    return _checkpointed(version, [log / name for name in checkpoints(log)[version]])


def _checkpointed(version: int, files: list[Path]) -> LogState:
    import pyarrow.parquet as pq  # noqa: PLC0415 - short logs have no checkpoint

    replay_state = _Taken(LogState(-1))
    for file in files:
        try:
            content = file.read_bytes()
        except FileNotFoundError as error:
            raise MissingPartError(f"{file}: the checkpoint is not there any more; restore it from a copy") from error
        try:
            rows = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True)
            columns = [name for name in _ACTIONS if name in rows.schema_arrow.names]
            for row in (row for batch in rows.iter_batches(columns=columns) for row in batch.to_pylist()):
                for name, action in row.items():
                    if action is not None:
                        replay_state.take({name: _written(action)})
        except MemoryError:
            raise
        except Exception as error:  # whatever damaged bytes make its reader raise
            raise MissingPartError(
                f"{file}: the checkpoint cannot be read ({error}); restore it, or remove it if all commits are there"
            ) from error
    return replay_state.at(version)


def _written(action: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action as a commit has it: maps as objects, without the fields that a checkpoint derives or leaves empty."""
    return {
        name: dict(value or ()) if name in _MAPS else _written(value) if isinstance(value, dict) else value
        for name, value in action.items()
        if (value is not None or name == "partitionValues") and not name.endswith("_parsed")
    }


def _advanced(table: Path, state: LogState, version: int) -> LogState:
    path = entry_path(table, version)
    try:
        commit = raw_commit(table, version)
        if commit.actions is not None:
            return advanced(state, version, commit.actions)
        problem, cause = commit.problem, None
    except FileNotFoundError:
        raise MissingPartError(f"{path}: the commit is missing; restore the table's _delta_log from a copy") from None
    except UNREADABLE as error:
        problem, cause = str(error), error
    raise MissingPartError(f"{path}: the commit cannot be read ({problem}); restore it from a copy") from cause


def advanced(state: LogState, version: int, actions: Iterable[Mapping[str, Any]]) -> LogState:
    """Return the state after the actions of one more commit.

    Raises
    ------
    UNREADABLE
        When an action is not as the protocol says.

    """
    replay_state = _Taken(state)
    for action in actions:
        replay_state.take(action)
    return replay_state.at(version)


def _require_understood(action: Mapping[str, Any]) -> None:
    """Raise one of UNREADABLE if a field that readers use has another type, or a text in it is not the JSON that it should be."""
    for name in _TYPES.keys() & action.keys():
        match msgspec.convert(action[name], _TYPES[name]):
            case _Add(stats=str(stats)) if stats:
                msgspec.convert(json.loads(stats), _Statistics)
            case _MetaData(schema_string=schema):
                msgspec.convert(json.loads(schema), _Schema)


class _Taken:
    """A state to which actions are added in order."""

    def __init__(self, state: LogState) -> None:
        self._protocol, self._metadata = state.protocol, state.metadata
        self._files, self._transactions = dict(state.files), dict(state.transactions)

    def take(self, action: Mapping[str, Any]) -> None:
        """Apply one action; actions that do not change the table's content are ignored."""
        _require_understood(action)
        if "add" in action:
            self._files[unquote(action["add"]["path"])] = action["add"]
        elif "remove" in action:
            self._files.pop(unquote(action["remove"]["path"]), None)
        elif "metaData" in action:
            self._metadata = action["metaData"]
        elif "protocol" in action:
            self._protocol = action["protocol"]
        elif "txn" in action:
            self._transactions[action["txn"]["appId"]] = action["txn"]

    def at(self, version: int) -> LogState:
        """Return the state."""
        return LogState(version, self._protocol, self._metadata, self._files, self._transactions)
