"""What the warehouse knows of itself, as rows: where tables stand, their layout, their files, epochs, invalid rows."""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NewType

from cli.library import opened
from cli.outcome import Moment, Rows
from cli.output import Records
from cli.output.values import text
from warehouse.errors import WarehouseError
from warehouse.time import SECOND, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.planning.inputs import LandingFacts
    from warehouse.project import Warehouse
    from warehouse.serving import Reader
    from warehouse.serving.catalogue import TableDescription, TableStatus

__all__ = ["describe", "files", "history", "rejected", "restored", "status", "tables"]

Instant = NewType("Instant", int)
CHECK_FAILED = 4


@dataclass(frozen=True)
class StatusRow:
    """Where a table stands; the counts of landing files are null where they cannot be listed, and of views.

    ``stale`` is null where no ``stale_after`` is declared. ``oldest_dead_row`` is since when the oldest row that
    expired and is still on disk is dead, at the latest by a slot. ``old_layout_rows`` are in layouts that a migration side by
    side has not emptied yet, of the rows that were there ``old_layout_share``, where ``old_layout_predicted`` is
    expected. ``live_table`` is the directory of the Delta table of exactly its live rows. ``failed`` says why the last update
    could not maintain a view.
    """

    table: str
    kind: str
    declared: bool
    window_time: Instant
    lag: str
    live_rows: int
    rows: int
    files: int
    bytes: int
    waiting_rows: int
    rejected_rows: int
    waiting_files: int | None
    changed_files: int | None
    unreadable_files: int | None
    expired_leave_within: str
    gone_from_disk_within: str
    newest_data: Instant | None
    stale: bool | None
    oldest_dead_row: Instant | None
    old_layout_rows: int | None
    old_layout_share: float | None
    old_layout_predicted: float | None
    live_table: str | None
    failed: str | None = None


@dataclass(frozen=True)
class PartitionRow:
    """One sub-index and expiry block of a table."""

    table: str
    sub_index: int
    exp_block: int
    runs: int
    files: int
    rows: int
    bytes: int
    max_exp_slot: int


@dataclass(frozen=True)
class NameRow:
    """The name of a table, and what it is."""

    table: str
    kind: str


@dataclass(frozen=True)
class DescriptionRow:
    """One fact of a table: of the table itself, of a column, or of the layout."""

    of: str
    name: str
    value: str | None


@dataclass(frozen=True)
class FileRow:
    """One file, absolute, and the condition that keeps the live rows of it in any engine."""

    path: str
    bytes: int
    rows: int | None
    sub_index: int
    exp_block: int
    filter: str


def status(directory: Path, *, verbose: bool, check: bool = False) -> Rows:
    """Return where every table stands, or with ``verbose`` its sub-indices, those of operators' state included.

    With ``check`` the exit code is 4 when a table's data is older than its declaration allows, or dead rows are on disk for
    longer than ``erase_within`` allows.
    """
    from warehouse.operations.erasure.overdue import dead_since, overdue
    from warehouse.operations.standing import foreign_told
    from warehouse.publishing.live.log import live_place
    from warehouse.serving.catalogue import status as stand
    from warehouse.serving.staleness import stale_tables

    warehouse = opened(directory)
    reader = warehouse.reader()
    found = stand(reader, retain=warehouse.catalog.retain)
    now, catalog = time.time_ns() // 1000, warehouse.catalog
    stale = stale_tables(reader.epoch, catalog.stale_after, now)
    differing = [each.told for each in warehouse.view_findings()]
    code = CHECK_FAILED if check and (stale or differing) else 0
    old = tuple(f'table "{name}" is stale: {why}' for name, why in stale.items())
    if verbose:
        rows = [PartitionRow(each.table, *_facts(part)) for each in found for part in each.partitions]
        return Rows(Records.of(PartitionRow, rows), _moment(reader), warnings=(*old, *differing), exit_code=code)
    landing, warnings = _landing(warehouse)
    found = tuple(each for each in found if each.kind != "state")
    found = (*found, *_never_built(warehouse, reader, {each.table for each in found}))
    known = {source.name for source in catalog.sources} | {view.name for view in catalog.views} | set(catalog.archives)
    frozen = [each.table for each in found if not each.declared or each.table not in known]
    is_stale = {name: name in stale for name in catalog.stale_after}
    told = [f'table "{name}" is no longer declared; `stream-wh drop {name}` forgets it' for name in frozen]
    told += [f'view "{each.table}" could not be maintained: {each.failed}' for each in found if each.failed]
    told += foreign_told(warehouse.root, reader.epoch)
    late = [row.told(now) for row in overdue(warehouse.root, catalog.erase_within, now)]
    dead, bounds = dead_since(warehouse.root), catalog.erase_within
    found = tuple(replace(each, on_disk_for=min(each.on_disk_for, bounds.get(each.table, each.on_disk_for))) for each in found)
    return Rows(
        Records.of(
            StatusRow,
            [
                _status_row(
                    each,
                    landing.get(each.table),
                    now,
                    is_stale.get(each.table),
                    dead.get(each.table),
                    live_place(warehouse.root, each.table, reader.epoch),
                )
                for each in found
            ],
        ),
        _moment(reader),
        warnings=(*warnings, *told, *differing, *old, *late, *_drift(warehouse, reader, now)),
        exit_code=CHECK_FAILED if check and (stale or late or differing) else 0,
    )


def _never_built(warehouse: Warehouse, reader: Reader, there: set[str]) -> Iterator[TableStatus]:
    """Yield the declared views that the epoch does not know: refused ones with the reason."""
    from warehouse.serving.catalogue import refused_status

    missing = [view.name for view in warehouse.catalog.views if view.name not in there]
    if not missing:
        return
    from warehouse.views.plans import judged_views

    refused = judged_views(warehouse.catalog)[0].refused
    for view in missing:
        why = refused.get(view, "it was declared after the last update; the next one builds it: `stream-wh update`")
        yield refused_status(reader.epoch, view, why)


def tables(directory: Path) -> Rows:
    """Return the names of the tables."""
    from warehouse.serving.visible_tables import visible

    reader = opened(directory).reader()
    rows = [NameRow(state.name, state.kind) for state in visible(reader.epoch)]
    return Rows(Records.of(NameRow, rows), _moment(reader))


def describe(directory: Path, table: str) -> Rows:
    """Return a table's declaration, columns and layout."""
    from warehouse.serving.catalogue import describe as described

    reader = opened(directory).reader()
    return Rows(Records.of(DescriptionRow, _description(described(reader, table))), _moment(reader))


def files(directory: Path, table: str) -> Rows:
    """Return the files of a table that may hold live rows."""
    from warehouse.publishing.live.log import live_place
    from warehouse.serving.catalogue import files as held

    reader = opened(directory).reader()
    found = held(reader, table)
    rows = [
        FileRow(file.path, file.size, file.rows, file.sub_index, file.exp_block, found.filter) for file in found.files
    ]
    facts = {"table version": found.version, "filter": found.filter, "or in slots": found.slot_filter}
    live = live_place(reader.root, table, reader.epoch)
    if live is not None:
        facts["live rows alone"] = str(live)
    return Rows(Records.of(FileRow, rows), _moment(reader), lambda: facts)


def history(directory: Path, limit: int | None) -> Rows:
    """Return the readable epochs, newest first."""
    from warehouse.serving.history import EpochRow
    from warehouse.serving.history import history as epochs

    warehouse = opened(directory)
    reader = warehouse.reader()
    rows = (replace(row, seconds=round(row.seconds, 3)) for row in epochs(warehouse.root, limit))
    return Rows(Records.of(EpochRow, rows), _moment(reader))


def rejected(directory: Path, table: str, limit: int | None) -> Rows:
    """Return the invalid rows of a table."""
    from warehouse.serving.catalogue import rejected as invalid

    reader = opened(directory).reader()
    return Rows(invalid(reader, table, limit), _moment(reader))


def restored(directory: Path, view: str, limit: int | None) -> Rows:
    """Return the short-lived results of a view; where none are kept, what to declare."""
    reader = opened(directory).reader()
    answer = reader.restored(view, limit=limit)
    record = reader.pin.recorded(view).view
    hints: tuple[str, ...] = ()
    if record is not None and record.short_lived != "report":
        hints = (f'short-lived results of "{view}" are not kept; `short_lived = "report"` in [views.{view}] keeps them',)
    return Rows(answer, _moment(reader), warnings=hints)


def _moment(reader: Reader) -> Moment:
    return Moment(reader.epoch.number, reader.epoch.window_time)


def _landing(warehouse: Warehouse) -> tuple[Mapping[str, LandingFacts], tuple[str, ...]]:
    """Return what is known of the landing directories, or a warning where they cannot be listed."""
    try:
        return {facts.stream: facts for facts in warehouse.landing()}, ()
    except (WarehouseError, OSError) as error:
        return {}, (f"landing files are not counted: {error}",)


def _drift(warehouse: Warehouse, reader: Reader, now: int) -> tuple[str, ...]:
    """Return what tells that layouts do not fit any more, or a warning where that cannot be seen."""
    from warehouse.advice.drift import drift_warnings

    catalog = warehouse.catalog
    try:
        target = catalog.target_file_size
        return drift_warnings(reader, spark=dict(catalog.spark), retain=catalog.retain, now=now, target_file_size=target)
    except (WarehouseError, OSError) as error:
        return (f"whether layouts still fit is not known: {error}",)


def _facts(part: object) -> tuple[int, ...]:
    return tuple(
        getattr(part, name) for name in ("sub_index", "exp_block", "runs", "files", "rows", "bytes", "max_exp_slot")
    )


def _status_row(
    found: TableStatus, landing: LandingFacts | None, now: int, stale: bool | None, dead: int | None, live: Path | None
) -> StatusRow:
    return StatusRow(
        table=found.table,
        kind=found.kind,
        declared=found.declared,
        window_time=Instant(found.window_time),
        lag=_whole_seconds(max(0, now - found.window_time)),
        live_rows=found.live_rows,
        rows=found.rows,
        files=found.files,
        bytes=found.bytes,
        waiting_rows=found.waiting,
        rejected_rows=found.rejected,
        waiting_files=landing.waiting if landing else None,
        changed_files=len(landing.changed) if landing else None,
        unreadable_files=len(landing.unreadable) if landing else None,
        expired_leave_within=_whole_seconds(max(found.dead_for, found.overflow_dead_for)),
        gone_from_disk_within=_whole_seconds(found.on_disk_for),
        newest_data=None if found.newest is None else Instant(found.newest),
        stale=stale,
        oldest_dead_row=None if dead is None else Instant(dead),
        old_layout_rows=sum(each.rows for each in found.former) if found.former else None,
        old_layout_share=round(found.former[-1].share, 4) if found.former else None,
        old_layout_predicted=round(found.former[-1].predicted, 4) if found.former else None,
        live_table=None if live is None else str(live),
        failed=found.failed,
    )


def _whole_seconds(duration: int) -> str:
    return format_duration(duration // SECOND * SECOND)


def _description(found: TableDescription) -> Iterator[DescriptionRow]:
    own = {
        "kind": found.kind,
        "label": found.label,
        "search_key": ", ".join(found.search_key),
        "arrival": found.arrival,
        "expires": found.expires,
        "max_lifetime": None if found.max_lifetime is None else format_duration(found.max_lifetime),
        "declared": str(found.declared).lower(),
    }
    if found.view is not None:
        del own["arrival"], own["expires"]
        own |= {
            "sql": found.view.sql,
            "inputs": ", ".join(found.view.inputs),
            "short_lived": found.view.short_lived,
            "restored_rows": str(found.view.restored),
            "state_tables": ", ".join(found.view.state) or None,
            "failed": found.view.failed,
        }
    if found.relation is not None:
        del own["label"], own["arrival"], own["expires"], own["max_lifetime"]  # those of the stream of its changes
        own |= {
            "changed_at": found.arrival,
            "op": found.relation.op,
            "retroactive": str(found.relation.retroactive).lower(),
            "current_versions": str(found.relation.current_versions),
        }
    if found.kind == "archive":
        del own["arrival"], own["expires"], own["max_lifetime"]  # no file is loaded into it, and its rows never expire
    yield from (DescriptionRow("table", name, value) for name, value in own.items())
    yield from (DescriptionRow("column", column.name, column.type) for column in found.columns)
    yield from (DescriptionRow("layout", name, text(value)) for name, value in found.layout.items())
