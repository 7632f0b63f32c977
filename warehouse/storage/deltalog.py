"""Delta's log as files: the commits of a table one by one, creating a table, undoing commits no epoch names.

The log's commit ``v`` is ``_delta_log/<20 digits>.json``, one JSON action a line (the Delta protocol). Reading commits
one by one tells what an unfinished update has done; table snapshots are read by :mod:`warehouse.storage.snapshot`.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from warehouse.errors import LockHeldError, MissingPartError
from warehouse.objects.path import object_path
from warehouse.storage.actions import ENGINE, commit_info, metadata_action, remove_action
from warehouse.storage.entries import NO_ENTRY, LogEntry, append_entry, digest, entry_lines, entry_path
from warehouse.storage.fingerprint import damage
from warehouse.storage.local_disk import undone_on_failure
from warehouse.storage.replay import replay
from warehouse.storage.store import store_of
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "AddedFile",
    "Commit",
    "StoredFile",
    "commits_after",
    "create_table",
    "make_durable",
    "missing_files",
    "replace_table",
    "set_columns",
    "set_properties",
    "stored_files",
    "undo_commits",
    "void_commit",
    "whole",
    "whole_parquet",
]

_PARQUET_MAGIC = b"PAR1"
_VOID = "VOID"



@dataclass(frozen=True)
class AddedFile:
    """A data file of a commit: its path relative to the table, partition values, bytes and statistics.

    ``max_ts`` is the largest ``_ts`` in microseconds, as Delta records it: cut to the millisecond.
    """

    path: str
    size: int
    partition: Mapping[str, str | None]
    rows: int
    max_exp_slot: int | None
    max_ts: int | None = None
    min_exp_slot: int | None = None


@dataclass(frozen=True)
class Commit:
    """One commit of a table's log; ``metadata`` is its ``userMetadata`` decoded, empty when it has none of ours.

    One that is not ``readable`` was cut short by a power loss: nobody can read the table with it.
    """

    version: int
    metadata: Mapping[str, Any]
    added: tuple[AddedFile, ...]
    removed: tuple[str, ...]
    removed_partitions: frozenset[tuple[tuple[str, str | None], ...]]
    table_id: str | None = None
    operation: str = ""
    transactions: Mapping[str, int] = field(default_factory=dict)
    readable: bool = True
    sha256: str | None = None
    engine: str = ""

    @property
    def void(self) -> bool:
        """Whether it stands in place of one that was undone where a log has no gaps, and changes nothing."""
        return self.operation == _VOID

    @property
    def ours(self) -> bool:
        """Whether it says that this warehouse made it."""
        return self.engine == ENGINE

    @property
    def reverses(self) -> int | None:
        """The version whose content this commit of ours brings back; none when it takes no commit back."""
        version = self.metadata.get("reverses")
        return version if isinstance(version, int) and self.ours else None

    @property
    def entry(self) -> LogEntry:
        """The entry of the log that it is."""
        return LogEntry(self.version, self.sha256)


def commits_after(table: Path, version: int) -> Iterator[Commit]:
    """Yield the commits above ``version`` (-1: all), in order."""
    number = version + 1
    while True:
        try:
            content = entry_path(table, number).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            yield _parsed(number, content)
        except (ValueError, TypeError, KeyError, AttributeError):
            yield Commit(number, {}, (), (), frozenset(), readable=False, sha256=digest(content))
        number += 1


def _parsed(version: int, content: bytes) -> Commit:
    added: list[AddedFile] = []
    removed: list[str] = []
    partitions: set[tuple[tuple[str, str | None], ...]] = set()
    metadata: Mapping[str, Any] = {}
    table_id, operation, engine = None, "", ""
    transactions: dict[str, int] = {}
    some = False
    for line in entry_lines(content.decode()):
        action = json.loads(line)
        if "add" in action:
            added.append(_added(action["add"]))
        elif "remove" in action:
            removed.append(unquote(action["remove"]["path"]))
            partitions.add(tuple(sorted((action["remove"].get("partitionValues") or {}).items())))
        elif "commitInfo" in action:
            metadata = _decoded(action["commitInfo"].get("userMetadata"))
            operation = str(action["commitInfo"].get("operation", ""))
            engine = str(action["commitInfo"].get("engineInfo", ""))
        elif "metaData" in action:
            table_id = action["metaData"]["id"]
        elif "txn" in action:
            transactions[action["txn"]["appId"]] = action["txn"]["version"]
        some = True
    if not some:
        raise ValueError("an empty commit")
    return Commit(
        version,
        metadata,
        tuple(added),
        tuple(removed),
        frozenset(partitions),
        table_id,
        operation,
        transactions,
        sha256=digest(content),
        engine=engine,
    )


def _added(action: Mapping[str, Any]) -> AddedFile:
    stats = json.loads(action.get("stats") or "{}")
    largest = stats.get("maxValues") or {}
    return AddedFile(
        path=unquote(action["path"]),
        size=action["size"],
        partition=action.get("partitionValues") or {},
        rows=stats.get("numRecords", 0),
        max_exp_slot=largest.get("_exp_slot"),
        max_ts=parse_instant(largest["_ts"]) if "_ts" in largest else None,
        min_exp_slot=(stats.get("minValues") or {}).get("_exp_slot"),
    )


def _decoded(text: str | None) -> Mapping[str, Any]:
    try:
        value = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


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

    An entry of ours, since deltalake chooses the table's identity itself.
    ``schema`` is the Spark struct type as JSON, ``created_at`` microseconds; partition columns come last in it.
    """
    milliseconds = created_at // 1000
    actions = (
        commit_info(
            "CREATE TABLE", milliseconds, metadata, appends=True, parameters={"partitionBy": json.dumps(list(partition_columns))}
        ),
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        metadata_action(table_id, schema, partition_columns, properties, created_at),
    )  # fmt: skip
    return append_entry(table, base, actions)


def set_properties(
    table: Path, base: LogEntry, properties: Mapping[str, str], metadata: Mapping[str, Any], at: int
) -> LogEntry:
    """Commit changed properties of a table on an entry, exclusively; ``at`` is in microseconds."""
    current = replay(table, base.version).metadata
    actions = (
        commit_info(
            "SET TBLPROPERTIES", at // 1000, metadata, appends=True, parameters={"properties": json.dumps(properties)}
        ),
        {"metaData": {**current, "configuration": {**(current.get("configuration") or {}), **properties}}},
    )  # fmt: skip
    return append_entry(table, base, actions)


def set_columns(
    table: Path, base: LogEntry, action: Mapping[str, Any], metadata: Mapping[str, Any], at: int
) -> LogEntry:
    """Commit other columns (a :func:`metadata_action`) and the same rows on an entry, exclusively; ``at`` in microseconds.

    An entry of ours: deltalake ignores a wider schema in append mode.
    """
    info = commit_info("CHANGE COLUMNS", at // 1000, metadata, appends=True)
    return append_entry(table, base, (info, action))


@dataclass(frozen=True)
class StoredFile:
    """A data file of a table: its path as the log has it, bytes, partition values."""

    path: str
    size: int
    partition: Mapping[str, str]

    @property
    def add(self) -> dict[str, Any]:
        """What removes it again, as far as that needs to know it."""
        return {"path": self.path, "size": self.size, "partitionValues": self.partition}


def stored_files(table: Path, version: int) -> list[StoredFile]:
    """Return the data files of a table at a version."""
    from deltalake import DeltaTable  # noqa: PLC0415 - not needed to read the log one by one

    actions = DeltaTable(str(table), version=version).get_add_actions()
    count = actions.num_rows
    partitions: Any = [{}] * count
    if "partition" in actions.schema.names:
        partitions = actions.column("partition").to_pylist()
    return [
        StoredFile(str(path), size, {name: str(value) for name, value in values.items()})
        for path, size, values in zip(
            actions.column("path").to_pylist(), actions.column("size_bytes").to_pylist(), partitions, strict=True
        )
    ]


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
    """Commit no rows, other columns, the same identity and partition columns on an entry, exclusively.

    An entry of ours: in overwrite mode deltalake refuses files to remove.
    ``schema`` is the Spark struct type as JSON, ``at`` microseconds. The files stay for the epochs that name them.
    """
    milliseconds, partitioning = at // 1000, {"partitionBy": json.dumps(list(partition_columns))}
    content = [
        commit_info("REPLACE TABLE", milliseconds, metadata, appends=False, parameters=partitioning),
        metadata_action(table_id, schema, partition_columns, properties, at),
        *(remove_action(file.add, milliseconds) for file in stored_files(table, base.version)),
    ]  # fmt: skip
    return append_entry(table, base, content)


def whole(table: Path, commit: Commit, *, hashed: bool = False) -> bool:
    """Whether a commit can be read, and each file it adds is there with the bytes that were written.

    After a power loss that may not be so. The bytes are not read where this process wrote and ``hashed`` them just before.
    """
    files = ((table / file.path, file.size) for file in commit.added)
    return commit.readable and all(
        _has_size(path, size) and whole_parquet(path) and (hashed or _undamaged(path)) for path, size in files
    )


def _undamaged(path: Path) -> bool:
    try:
        return not store_of(path).cheap_requests or damage(path) is None
    except OSError:
        return False


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False


def whole_parquet(path: Path) -> bool:
    """Whether a file is there and ends as Parquet files do, which one that was cut short does not."""
    try:
        with path.open("rb") as stream:
            stream.seek(-len(_PARQUET_MAGIC), os.SEEK_END)
            return stream.read() == _PARQUET_MAGIC
    except (OSError, ValueError):
        return False


def missing_files(table: Path, version: int) -> list[str]:
    """Return the data files of a table at a version that are not there, relative to it."""
    names = [unquote(file.path) for file in stored_files(table, version)]
    return [name for name in names if not (table / name).exists()]


def undo_commits(table: Path, from_version: int, *, pinned: int) -> None:
    """Remove the commits at and above ``from_version``, newest first, of which the first cannot be read or is not on the disk.

    What is there for good is taken back by a commit that follows it (:mod:`warehouse.storage.reversal`); beyond one that was cut
    short by a power loss nobody reads.

    Raises
    ------
    MissingPartError
        When version ``pinned``, which an epoch names, would be among them.

    """
    log = table / "_delta_log"
    if from_version <= pinned:
        raise MissingPartError(f"{log}: version {from_version} cannot be read, and an epoch names it; restore it from a copy")
    numbered = [entry for entry in log.iterdir() if _version_of(entry.name) >= from_version]
    for entry in sorted(numbered, key=lambda path: _version_of(path.name), reverse=True):
        entry.unlink()
    (log / "_last_checkpoint").unlink(missing_ok=True)
    store_of(log).sync_directory(log)


def void_commit(table: Path, commit: Commit) -> None:
    """Replace a commit that no epoch names by one that changes nothing: its number stays taken, as a log has no gaps.

    That is how a commit is undone in an object store. The object is replaced as it was judged and no other (``If-Match``): a
    process that was held up between looking and writing changes nothing.

    Raises
    ------
    LockHeldError
        When it is another one by now.

    """
    path = object_path(entry_path(table, commit.version))
    taken = LockHeldError(f"another process, which replaced {path} first")
    info = {"timestamp": 0, "operation": _VOID, "operationParameters": {}, "engineInfo": ENGINE}
    content, tag = path.read_with_tag()
    if _parsed(commit.version, content) != commit:
        raise taken
    try:
        path.put((json.dumps({"commitInfo": info}) + "\n").encode(), {"e_tag": tag})
    except FileExistsError:
        raise taken from None


def _version_of(name: str) -> int:
    digits = name.lstrip(".").split(".", 1)[0]
    return int(digits) if digits.isdigit() else -1


def make_durable(table: Path, commits: Sequence[Commit]) -> None:
    """Force commits that an earlier process made, and the files they add, with their directories, to the disk.

    That process may have ended between giving an entry its name and syncing it. Hadoop's sums of the log's files go: a power
    loss could leave one that denies its file. Objects are durable already.

    Raises
    ------
    NotDurableError
        When the disk does not confirm it: these commits, and those after them, are undone then.

    """
    if not store_of(table).local_paths or not commits:
        return
    for commit in commits:
        log_file = entry_path(table, commit.version)
        for name in (log_file.name, log_file.with_suffix(".crc").name):
            log_file.with_name(f".{name}.crc").unlink(missing_ok=True)
    first = min(commit.version for commit in commits)
    with undone_on_failure(lambda: undo_commits(table, first, pinned=first - 1)):
        store_of(table).sync_tree(table, [PurePosixPath(file.path) for commit in commits for file in commit.added])
        store_of(table).sync_tree(table, [entry_path(table, commit.version).relative_to(table) for commit in commits])
