"""Checks that the tables' Delta logs agree with the epochs.

Invariants: for every readable epoch and table the log reaches the recorded version. The table at this version has the recorded
identity and columns, only the partition columns partition it, and it stays at protocol reader 1, writer 2 with its original
properties. Its files add up to the recorded partitions. Each commit between two epochs belongs to the later one. Commits above
the newest epoch belong to an unfinished plan.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any

from warehouse.checking.findings import Finding, fault, note
from warehouse.epochs.journal import record_path
from warehouse.errors import MissingPartError, undo_foreign
from warehouse.layout.columns import CELL, WAITING_SLOT, cell_of
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import LogEntry, entry_path, is_replaced, raw_commits
from warehouse.storage.foreign import judged
from warehouse.storage.leftover import commits_beyond, left_above, went_on, wrong_checkpoints
from warehouse.storage.replay import replay, replayed
from warehouse.storage.reversal import counting
from warehouse.storage.tables import (
    PROPERTIES,
    deferred_schema,
    key_types,
    lacks_columns,
    rejected_schema,
    restored_schema,
    rows_schema,
    statistics_columns,
    table_properties,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.checking.records import ReadableRecords
    from warehouse.epochs.records import Epoch, SideTable, Stopped, TableState
    from warehouse.storage.replay import LogState

__all__ = ["NamedTable", "logs_findings", "named_tables"]

_RESTORE = "restore the table's directory from a copy of the warehouse"
_RESTORE_OR_ROLL_BACK = f"{_RESTORE}, or go back to an epoch before with `stream-wh rollback --to-epoch EPOCH`"


@dataclass
class NamedTable:
    """A directory that readable epochs name, with its role and versions.

    ``epochs`` are triples, in order: the epoch, its record of the table, and its record of the side table. Reading the log fills
    two fields: ``states`` has the table by version, and ``transient_files`` the files that commits between these versions added.
    Files that are in no version are removed with the epoch before.
    """

    path: str
    role: str
    name: str
    epochs: list[tuple[Epoch, TableState, SideTable | None]] = field(default_factory=list)
    states: dict[int, LogState] = field(default_factory=dict)
    transient_files: set[str] = field(default_factory=set)

    @property
    def newest(self) -> tuple[Epoch, TableState, SideTable | None]:
        """The newest epoch that names it, with its records."""
        return self.epochs[-1]


def named_tables(epochs: Sequence[Epoch]) -> list[NamedTable]:
    """Return the directories that epochs name, in the order of their first epoch."""
    tables: dict[str, NamedTable] = {}
    for epoch in epochs:
        for state in epoch.tables:
            tables.setdefault(state.path, NamedTable(state.path, "rows", state.name)).epochs.append((epoch, state, None))
            for role, side in (("deferred", state.deferred), ("rejected", state.rejected), ("restored", state.restored)):
                if side is not None:
                    tables.setdefault(side.path, NamedTable(side.path, role, state.name)).epochs.append((epoch, state, side))
    return list(tables.values())


def logs_findings(root: Path, records: ReadableRecords, table: NamedTable) -> Iterator[Finding]:
    """Yield the faults of one table's log; set its states and transient files, which the checks of its files need."""
    versions = sorted({_version(entry) for entry in table.epochs})
    try:
        for replayed_state in replayed(root / table.path, versions):
            table.states[replayed_state.version] = replayed_state
    except MissingPartError as error:
        subject = f"{table.path}/_delta_log"
        yield fault("log", subject, str(error), _RESTORE, table=table.name)
    yield from _invalid_partition_values(table)
    yield from _replaced_commits(root, table)
    for entry in table.epochs:
        log_state = table.states.get(_version(entry))
        if log_state is not None:
            yield from _other_table(table, entry, log_state)
            yield from _wrong_counts(table, entry, log_state)
    epoch, state, side = table.newest
    log_state = table.states.get(_version(table.newest))
    if log_state is not None and records.newest is not None and epoch.number == records.newest.number:
        yield from _wrong_definition(table, epoch, state, log_state)
        yield from _commits_above(root, epoch, table, side.version if side else state.version)
    if records.newest is not None and epoch.number == records.newest.number:
        yield from _wrong_checkpoints(root, table, side.version if side else state.version)
    yield from _misattributed_commits(root, table)


def _invalid_partition_values(table: NamedTable) -> Iterator[Finding]:
    """Yield the versions with a file whose partition values are not numbers of a cell or slot, and drop their states."""
    for version, log_state in list(table.states.items()):
        for path, add in log_state.files.items():
            try:
                cell_of(add["partitionValues"])
                _waiting_slot(add)
            except ValueError:
                subject = f"{table.path}/_delta_log version {version}"
                message = f"it says that {path} has the partition values {dict(add['partitionValues'])}"
                yield fault("log", subject, message, _RESTORE, table=table.name)
                del table.states[version]
                break


def _waiting_slot(add: Mapping[str, Any]) -> int:
    """Return the slot for which the rows of a deferred table's file wait."""
    return int(add["partitionValues"].get(WAITING_SLOT) or 0)


def _replaced_commits(root: Path, table: NamedTable) -> Iterator[Finding]:
    """Yield the commits whose sums differ from those that epochs recorded."""
    for entry in table.epochs:
        epoch, version = entry[0], _version(entry)
        pinned = epoch.entry(table.path)
        if pinned is None or pinned.version != version or not entry_path(root / table.path, version).exists():
            continue
        if is_replaced(root / table.path, LogEntry(version, pinned.sha256)):
            subject = f"{table.path}/_delta_log version {version}"
            yield fault("log", subject, f"the commit is not the one that epoch {epoch.number} names", _RESTORE, table=table.name)


def _version(entry: tuple[Epoch, TableState, SideTable | None]) -> int:
    _, state, side = entry
    return side.version if side else state.version


def _other_table(table: NamedTable, entry: tuple[Epoch, TableState, SideTable | None], log_state: LogState) -> Iterator[Finding]:
    epoch, state, side = entry
    recorded = side.table_id if side else state.table_id
    if log_state.metadata.get("id") != recorded:
        message = f"at version {log_state.version} it is not the table that epoch {epoch.number} names (its Delta id differs)"
        yield fault("table_id", table.path, message, _RESTORE, table=table.name)


def _wrong_counts(table: NamedTable, entry: tuple[Epoch, TableState, SideTable | None], log_state: LogState) -> Iterator[Finding]:
    epoch, state, side = entry
    if side is None:
        problems = list(_partition_differences(state, log_state))
    else:
        rows = sum(_rows(add) for add in log_state.files.values())
        problems = [] if rows == side.rows else [f"{rows} rows, {side.rows} are recorded"]
        if table.role == "deferred":
            slots: dict[int, int] = {}
            for add in log_state.files.values():
                slot = _waiting_slot(add)
                slots[slot] = slots.get(slot, 0) + _rows(add)
            if slots != {waiting.slot: waiting.rows for waiting in side.waiting}:
                problems.append("the rows that wait for each slot are not those recorded")
            last_slot = state.stopped.slot if state.stopped else epoch.slot
            if any(slot <= last_slot for slot in slots):
                problems.append(f"rows wait for a slot at or before {last_slot}, which has passed")
    for message in problems:
        subject = f"{table.path} version {log_state.version}"
        yield fault("counts", subject, f"epoch {epoch.number}: {message}", _RESTORE_OR_ROLL_BACK, table=table.name)


def _partition_differences(state: TableState, log_state: LogState) -> Iterator[str]:
    files: dict[tuple[int, int], list[Mapping[str, Any]]] = {}
    for add in log_state.files.values():
        files.setdefault(cell_of(add["partitionValues"]), []).append(add)
    recorded = {(part.sub_index, part.exp_block): part for part in state.partitions}
    for cell in sorted(files.keys() | recorded.keys()):
        where = f"sub-index {cell[0]}, block {cell[1]}"
        part, adds = recorded.get(cell), files.get(cell, [])
        if part is None or not adds:
            yield f"{where}: {len(adds)} files, {part.files if part else 0} are recorded"
            continue
        counts = (len(adds), sum(map(_rows, adds)), sum(add["size"] for add in adds))
        if counts != (part.files, part.rows, part.bytes):
            expected = f"{part.files} files, {part.rows} rows, {part.bytes} bytes"
            yield f"{where}: {counts[0]} files, {counts[1]} rows, {counts[2]} bytes; recorded are {expected}"
        adopted = (log_state.files[name] for name in state.adopted if name in log_state.files)
        has_adopted = any(cell_of(add["partitionValues"]) == cell for add in adopted)
        if not 1 <= part.runs <= part.files + has_adopted:
            yield f"{where}: {part.runs} runs in {part.files} files"
        latest = max((_statistics(add).get("maxValues") or {}).get("_exp_slot", part.max_exp_slot) for add in adds)
        if latest > part.max_exp_slot:
            yield f"{where}: rows expire in slot {latest}, after the recorded last one {part.max_exp_slot}"


def _statistics(add: Mapping[str, Any]) -> Mapping[str, Any]:
    statistics = json.loads(add.get("stats") or "{}")
    return statistics if isinstance(statistics, dict) else {}


def _rows(add: Mapping[str, Any]) -> int:
    return int(_statistics(add).get("numRecords", 0))


def _wrong_definition(table: NamedTable, epoch: Epoch, state: TableState, log_state: LogState) -> Iterator[Finding]:
    columns = state.stored_columns
    schema, partitions = {
        "rows": (rows_schema(columns), [*CELL]),
        "deferred": (deferred_schema(columns), [WAITING_SLOT]),
        "rejected": (rejected_schema(), []),
        "restored": (restored_schema(columns, owed=state.view is not None and state.view.budget is not None), []),
    }[table.role]
    yield from _missing_columns(table, state, log_state, schema)
    if list(log_state.metadata.get("partitionColumns") or ()) != partitions:
        message = f"it is partitioned by {log_state.metadata.get('partitionColumns')}, not by {partitions}"
        yield fault("partition_columns", table.path, message, _RESTORE, table=table.name)
    protocol = (log_state.protocol.get("minReaderVersion"), log_state.protocol.get("minWriterVersion"))
    if protocol != (1, 2):
        message = f"its protocol is reader {protocol[0]}, writer {protocol[1]}; other engines can no longer be relied on"
        yield fault("protocol", table.path, message, _RESTORE, table=table.name)
    key = statistics_columns(key_types(state.declaration.search_key, columns)) if table.role == "rows" else []
    if state.properties < PROPERTIES:
        message = "its Delta properties were set by an earlier build"
        yield note("properties", table.path, message, "the next update sets them", table=table.name, repair="update")
        return
    configuration = log_state.metadata.get("configuration") or {}
    for name, expected in table_properties(key, epoch.log_retain).items():
        value = configuration.get(name)
        if value != expected and not _is_longer(value, expected):
            message = f"property {name} is {value!r}, not {expected!r}"
            remedy = f"set it back with ALTER TABLE outside of updates, or {_RESTORE}"
            yield fault("property", table.path, message, remedy, table=table.name)


def _missing_columns(table: NamedTable, state: TableState, log_state: LogState, expected: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the fault of missing or other columns; a table of short-lived results may also have former columns of its view."""
    schema = json.loads(log_state.metadata.get("schemaString") or "{}")
    if table.role != "restored":
        if _column_types(schema) != _column_types(expected):
            yield fault("columns", table.path, "its columns are not those recorded", _RESTORE, table=table.name)
        return
    is_rebuilt = not log_state.files or (state.view is not None and state.view.failed is not None)  # the next update adds them
    if lacks_columns(schema, expected) and not is_rebuilt:
        remedy = f"`stream-wh rebuild {state.owner}` brings them, and the rows that are there stay"
        yield fault("columns", table.path, "it lacks columns of its view", remedy, table=table.name)


def _column_types(schema: Mapping[str, Any]) -> list[tuple[str, str]]:
    return sorted((column["name"], json.dumps(column["type"], sort_keys=True)) for column in schema.get("fields", ()))


def _is_longer(value: str | None, expected: str) -> bool:
    """Return whether a retention is at least as long as wanted; both are ``interval N seconds``."""
    parts = [(text or "").split() for text in (value, expected)]
    if not all(len(part) == 3 and part[0] == "interval" and part[2] == "seconds" for part in parts):  # noqa: PLR2004
        return False
    return int(parts[0][1]) >= int(parts[1][1])


def _commits_above(root: Path, newest: Epoch, table: NamedTable, version: int) -> Iterator[Finding]:
    following = newest.number + 1
    if record_path(root, following, "epoch").exists():
        return  # the epoch was written meanwhile, or is damaged: the check of records reports that
    commits = list(commits_after(root / table.path, version))
    # only now: an update may have begun after the records were read
    planned = record_path(root, following, "plan").exists()
    outsiders = []
    for commit in counting(commits):
        if planned and (commit.metadata.get("epoch") == following or not commit.readable):
            subject = entry_path(root / table.path, commit.version).relative_to(root).as_posix()
            message = f"a commit of the update to epoch {following}, which is not finished"
            yield note("unfinished", subject, message, "the next update completes it", table=table.name, repair="update")
        else:
            outsiders.append(commit)
    if outsiders:
        yield _foreign_finding(root, table, outsiders[0].version, table.newest[1].stopped)
    yield from _entries_beyond(root, table, version + len(commits))


def _foreign_finding(root: Path, table: NamedTable, version: int, stopped: Stopped | None) -> Finding:
    """Return the finding about commits of outsiders from a version on; the next update adopts changes that concern no row."""
    subject = entry_path(root / table.path, version).relative_to(root).as_posix()
    change = judged(replay(root / table.path, version - 1), raw_commits(root / table.path, version - 1))
    message = f"the table was changed from outside: {change.message}"
    if change.kind == "none":
        return note("foreign_commit", subject, message, "the next update passes it over", table=table.name, repair="update")
    if change.kind == "layout" and stopped is None:
        remedy = "the next update compares the rows, and adopts it if they are the same"
        return note("foreign_commit", subject, message, remedy, table=table.name, repair="update")
    if stopped is not None:
        message = f"the table stands still: {stopped.reason}"
    return fault("foreign_commit", subject, message, undo_foreign(table.path), table=table.name)


def _entries_beyond(root: Path, table: NamedTable, top: int) -> Iterator[Finding]:
    """Yield entries above the log's newest commit: checkpoints of commits that were removed, and commits above a gap."""
    log = root / table.path / "_delta_log"
    leftovers = left_above(root / table.path, top)
    if leftovers and not went_on(root / table.path, top):
        subject = (log / leftovers[0]).relative_to(root).as_posix()
        message = f"{len(leftovers)} file(s) sum up commits that are not there; a reader would take them for the next commits"
        yield fault("checkpoint_above", subject, message, "the next update removes them", table=table.name, repair="update")
    beyond = commits_beyond(root / table.path, top)
    if beyond:
        subject = entry_path(root / table.path, beyond[0]).relative_to(root).as_posix()
        message = f"the log has commit {beyond[0]}, but not commit {top + 1}"
        yield fault("foreign_commit", subject, message, undo_foreign(table.path), table=table.name)


def _wrong_checkpoints(root: Path, table: NamedTable, version: int) -> Iterator[Finding]:
    """Yield the checkpoints up to a version that contradict the commits, as far back as the log has commits."""
    table_directory = root / table.path
    for differing in wrong_checkpoints(table_directory, version):
        subject = (table_directory / "_delta_log" / differing.name).relative_to(root).as_posix()
        message = f"the checkpoint of version {differing.version} is not what the commits lead to: {differing.message}"
        remedy = "`stream-wh check --repair` removes it: the commits are all there"
        yield fault("checkpoint_differs", subject, message, remedy, table=table.name, repair="repair")


def _misattributed_commits(root: Path, table: NamedTable) -> Iterator[Finding]:
    """Yield the commits between the versions of two epochs that do not belong to the later epoch."""
    versions = [(epoch.number, _version((epoch, state, side))) for epoch, state, side in table.epochs]
    for (_, low), (number, high) in pairwise(versions):
        if high <= low:
            if high < low:
                message = f"epoch {number} names version {high}, the epoch before {low}"
                yield fault("version", table.path, message, _RESTORE, table=table.name)
            continue
        commits = list(takewhile(lambda commit: commit.version <= high, commits_after(root / table.path, low)))  # noqa: B023
        table.transient_files.update(file.path for commit in commits for file in commit.added)
        foreign = next((epoch.foreign for epoch, *_ in table.epochs if epoch.number == number), ())
        for commit in counting(commits):
            adopted = any(record.covers(table.path, commit.version) for record in foreign)
            if not adopted and commit.metadata.get("epoch") != number:
                subject = entry_path(root / table.path, commit.version).relative_to(root).as_posix()
                message = f"the commit is not of epoch {number}, which names the version"
                yield fault("foreign_commit", subject, message, _RESTORE, table=table.name)
