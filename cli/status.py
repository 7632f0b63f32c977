"""``status`` and ``health``: one verdict on top, then a line a table for people, or every fact of every table."""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NewType

import msgspec

from warehouse.cli.accuracy import AccuracyOptions
from warehouse.cli.human import ago
from warehouse.cli.outcome import AnswerTime, Report, Rows
from warehouse.cli.output import Figure, Records
from warehouse.cli.reading import open_project
from warehouse.errors import WarehouseError
from warehouse.time import SECOND, format_duration, format_instant
from warehouse.units import count_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.health import Health
    from warehouse.planning.inputs import LandingFacts
    from warehouse.project import Warehouse
    from warehouse.serving import Reader
    from warehouse.serving.expiring_rows import ExpiringRows
    from warehouse.serving.table_status import TableStatus

__all__ = ["health", "status"]

Instant = NewType("Instant", int)
CHECK_FAILED = 4
_MAX_NAME_LENGTH = 26


@dataclass(frozen=True)
class StatusRow:
    """The state of a table; counts of landing files are null for views, and if the files cannot be listed.

    ``stale`` is null if no ``stale_after`` is declared. ``oldest_dead_row`` is when the oldest expired row that is still on disk
    expired, at the latest by a slot. ``old_layout_rows`` are in layouts that a migration side by side has not emptied yet; they
    are the share ``old_layout_share`` of the rows that were there, and ``old_layout_predicted`` is the expected share.
    ``live_table`` is the directory of the Delta table of exactly its live rows. ``failed`` says why the last update could not
    move it: a view that could not be maintained, a table changed from outside. ``accuracy`` is the share that shedding has left
    of a coalesced table.
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
    accuracy: float | None = None
    owed_least: int | None = None
    owed_most: int | None = None
    share_least: float | None = None
    owed_units: int | None = None
    owed_rows: int | None = None
    given_up_rows: int | None = None
    incomplete_least: int | None = None


@dataclass(frozen=True)
class BriefRow:
    """A table in one line for people; ``waiting`` are landing files, ``health`` names the kinds of its concerns."""

    table: str
    kind: str
    live_rows: Figure
    size: Figure
    files: Figure
    newest_row: str
    waiting: Figure
    health: str


@dataclass(frozen=True)
class EndingRow:
    """The rows of a table that expire next, and their bytes, in one line of text."""

    table: str
    live_rows: Figure
    next_update: Figure
    within_6h: Figure
    within_24h: Figure
    dead_rows: Figure


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


def status(
    directory: Path, *, verbose: bool, expanded: bool, check: bool = False, accuracy: AccuracyOptions | None = None
) -> Rows:
    """Return a row for every table, or with ``verbose`` for each sub-index, the state tables of operators included.

    On a terminal the result has a line for each table, and with ``verbose`` the rows that expire next; with ``expanded`` it has
    every fact. With ``check`` the exit code is 4 if something needs a person, or if shedding has lowered a table's accuracy below
    a given minimum.
    """
    from warehouse.serving.table_status import accuracies
    from warehouse.serving.table_status import status as table_states

    warehouse = open_project(directory)
    reader, now = warehouse.reader(), _now()
    landing_facts = _landing_facts(warehouse)
    verdict = warehouse.health(reader, landing=landing_facts)
    landing = {facts.stream: facts for facts in landing_facts or ()}
    states = table_states(reader, retain=warehouse.catalog.retain)
    visible = tuple(state for state in states if state.kind != "state")
    visible = (*visible, *_unbuilt_tables(warehouse, reader))
    accuracy = accuracy or AccuracyOptions()
    shares = accuracies(reader, accuracy.at_least or 0)
    owed = (table.owed for table in visible)
    messages = (*accuracy.lines(shares), *(view.text for view in owed if view is not None and not view.complete))
    if verbose:
        parts = [PartitionRow(state.table, *_partition_values(part)) for state in states for part in state.partitions]
        result = Records.of(PartitionRow, parts)
        brief = Records.of(EndingRow, _ending_rows(reader, visible))
    else:
        result = Records.of(StatusRow, _status_rows(warehouse, reader, visible, landing, now, shares))
        brief = Records.of(BriefRow, [_brief_row(table, landing.get(table.table), verdict, now) for table in visible])
    return Rows(
        result,
        _moment(reader),
        brief=None if expanded else brief,
        headline=(*_headline(verdict, reader, now), *(f"  {line}" for line in messages)),
        warnings=tuple(str(concern) for concern in verdict.concerns),
        notes=(*verdict.notes, *messages),
        exit_code=CHECK_FAILED if accuracy.any_below_minimum(shares) or (check and verdict.level != "ok") else 0,
    )


def health(directory: Path) -> Report:
    """Return the verdict, and each concern with the command that helps; exit code 4 if something needs a person."""
    warehouse = open_project(directory)
    reader, now = warehouse.reader(), _now()
    verdict = warehouse.health(reader)
    record = {
        "health": verdict.level,
        "concerns": msgspec.to_builtins(verdict.concerns),
        "notes": list(verdict.notes),
        "epoch": reader.epoch.number,
        "window_time": format_instant(reader.epoch.window_time),
        "committed_at": format_instant(reader.epoch.committed_at),
    }
    return Report(record, _headline(verdict, reader, now), data=True, exit_code=0 if verdict.level == "ok" else CHECK_FAILED)


def _headline(verdict: Health, reader: Reader, now: int) -> tuple[str, ...]:
    epoch = reader.epoch
    window = format_instant(epoch.window_time)
    first = f"{verdict.headline}; epoch {epoch.number} of window time {window}, updated {ago(epoch.committed_at, now)}"
    return (first, *(f"  {concern.level}: {concern}" for concern in verdict.concerns), *(f"  {note}" for note in verdict.notes))


def _landing_facts(warehouse: Warehouse) -> tuple[LandingFacts, ...] | None:
    """Return the state of the landing directories; None if they cannot be listed, which the verdict reports."""
    try:
        return warehouse.landing()
    except (WarehouseError, OSError):
        return None


def _unbuilt_tables(warehouse: Warehouse, reader: Reader) -> Iterator[TableStatus]:
    """Yield the declared views that no update has built yet, and the views that cannot be built."""
    from warehouse.operations.health import unbuilt_views
    from warehouse.serving.table_status import refused_status

    refused = dict(reader.epoch.refused)
    for view, why in unbuilt_views(warehouse.catalog, reader.epoch).items():
        if view not in refused:  # the epoch reports those itself
            text = why or "it was declared after the last update; the next one builds it: `stream-wh update`"
            yield refused_status(reader.epoch, view, text)


# --- for programs: every fact ---


def _status_rows(
    warehouse: Warehouse,
    reader: Reader,
    tables: tuple[TableStatus, ...],
    landing: Mapping[str, LandingFacts],
    now: int,
    shares: Mapping[str, float],
) -> Iterator[StatusRow]:
    from warehouse.operations.erasure.overdue import dead_since
    from warehouse.publishing.live.log import live_directory
    from warehouse.serving.staleness import stale_tables

    catalog = warehouse.catalog
    dead, bounds = dead_since(warehouse.root), catalog.erase_within
    stale = stale_tables(reader.epoch, catalog.stale_after, now)
    for table in tables:
        bounded = replace(table, on_disk_for=min(table.on_disk_for, bounds.get(table.table, table.on_disk_for)))
        is_stale = table.table in stale if table.table in catalog.stale_after else None
        live = live_directory(warehouse.root, table.table, reader.epoch)
        row = _status_row(bounded, landing.get(table.table), now, is_stale, dead.get(table.table), live)
        yield replace(row, accuracy=shares.get(table.table))


def _status_row(
    facts: TableStatus, landing: LandingFacts | None, now: int, stale: bool | None, dead: int | None, live: Path | None
) -> StatusRow:
    return StatusRow(
        table=facts.table,
        kind=facts.kind,
        declared=facts.declared,
        window_time=Instant(facts.window_time),
        lag=_whole_seconds(max(0, now - facts.window_time)),
        live_rows=facts.live_rows,
        rows=facts.rows,
        files=facts.files,
        bytes=facts.bytes,
        waiting_rows=facts.waiting,
        rejected_rows=facts.rejected,
        waiting_files=landing.waiting if landing else None,
        changed_files=len(landing.changed) if landing else None,
        unreadable_files=len(landing.unreadable) if landing else None,
        expired_leave_within=_whole_seconds(max(facts.dead_for, facts.overflow_dead_for)),
        gone_from_disk_within=_whole_seconds(facts.on_disk_for),
        newest_data=None if facts.newest is None else Instant(facts.newest),
        stale=stale,
        oldest_dead_row=None if dead is None else Instant(dead),
        old_layout_rows=sum(former.rows for former in facts.former) if facts.former else None,
        old_layout_share=round(facts.former[-1].share, 4) if facts.former else None,
        old_layout_predicted=round(facts.former[-1].predicted, 4) if facts.former else None,
        live_table=None if live is None else str(live),
        failed=facts.failed,
        owed_least=None if facts.owed is None else facts.owed.least,
        owed_most=None if facts.owed is None else facts.owed.most,
        share_least=None if facts.owed is None else facts.owed.share_least,
        owed_units=None if facts.owed is None else facts.owed.units,
        owed_rows=None if facts.owed is None else facts.owed.rows,
        given_up_rows=None if facts.owed is None else facts.owed.ended,
        incomplete_least=None if facts.owed is None else facts.owed.incomplete,
    )


def _whole_seconds(duration: int) -> str:
    return format_duration(duration // SECOND * SECOND)


def _partition_values(part: object) -> tuple[int, ...]:
    return tuple(
        getattr(part, name) for name in ("sub_index", "exp_block", "runs", "files", "rows", "bytes", "max_exp_slot")
    )


# --- for people: a line a table ---


def _brief_row(facts: TableStatus, landing: LandingFacts | None, verdict: Health, now: int) -> BriefRow:
    kinds = dict.fromkeys(concern.kind.replace("_", " ") for concern in verdict.concerns if concern.table == facts.table)
    return BriefRow(
        table=_shortened(facts.table),
        kind=facts.kind,
        live_rows=Figure(count_text(facts.live_rows)),
        size=Figure(size_text(facts.bytes)),
        files=Figure(count_text(facts.files)),
        newest_row="" if facts.newest is None else ago(facts.newest, now),
        waiting=Figure(count_text(landing.waiting) if landing and landing.waiting else ""),
        health=", ".join(kinds) or "ok",
    )


def _ending_rows(reader: Reader, tables: tuple[TableStatus, ...]) -> Iterator[EndingRow]:
    from warehouse.serving.expiring_rows import HORIZONS, expiring_rows

    horizons = (reader.epoch.update_interval, *HORIZONS)
    ends = {(ending.table, ending.within): ending for ending in expiring_rows(reader, horizons)}
    for table in tables:
        following, six_hours, day = (_ending_text(ends.get((table.table, horizon))) for horizon in horizons)
        yield EndingRow(
            table=_shortened(table.table),
            live_rows=Figure(count_text(table.live_rows)),
            next_update=Figure(following),
            within_6h=Figure(six_hours),
            within_24h=Figure(day),
            dead_rows=Figure(count_text(table.rows - table.live_rows)),
        )


def _ending_text(rows: ExpiringRows | None) -> str:
    if rows is None:
        return ""
    return f"{count_text(rows.rows)} ({size_text(rows.bytes)})" if rows.rows else "0"


def _shortened(name: str) -> str:
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"


def _moment(reader: Reader) -> AnswerTime:
    return AnswerTime(reader.epoch.number, reader.epoch.window_time)


def _now() -> int:
    return time.time_ns() // 1000
