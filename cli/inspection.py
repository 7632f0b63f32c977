"""Facts about the warehouse as rows: the tables, their columns, layout and files, epochs, rejected rows."""
# ruff: noqa: PLC0415 - a command imports what it uses, so that a probe starts fast

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast, get_args

from warehouse.cli.human import ago
from warehouse.cli.outcome import AnswerTime, Rows
from warehouse.cli.output import Figure, Records
from warehouse.cli.output.values import text
from warehouse.cli.reading import open_project
from warehouse.layout.layout import Label
from warehouse.layout.wording import leaving_text
from warehouse.storage.duckdb_sql import literal
from warehouse.time import format_duration, format_instant
from warehouse.units import count_text, counted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.serving import Reader
    from warehouse.serving.history import EpochRow
    from warehouse.serving.metadata import TableDescription

__all__ = ["describe", "files", "history", "rejected", "restored", "tables"]


@dataclass(frozen=True)
class BriefEpoch:
    """An epoch in one line for people; counts of rows as in `EpochRow`."""

    epoch: int
    cause: str
    window_time: str
    committed: str
    inserted: Figure
    expired: Figure
    rejected: Figure
    results: Figure
    took: Figure


@dataclass(frozen=True)
class NameRow:
    """A table's name and kind."""

    table: str
    kind: str


@dataclass(frozen=True)
class DescriptionRow:
    """One fact of a table: of the table itself, of a column, or of the layout."""

    of: str
    name: str
    value: str | None


@dataclass(frozen=True)
class ListedFile:
    """One file by its absolute path, and the condition by which any engine selects its live rows."""

    path: str
    bytes: int
    rows: int | None
    sub_index: int
    exp_block: int
    filter: str


def tables(directory: Path) -> Rows:
    """Return the names of the tables."""
    from warehouse.serving.visible_tables import readable

    reader = open_project(directory).reader()
    rows = [NameRow(state.name, state.kind) for state in readable(reader.epoch)]
    return Rows(Records.of(NameRow, rows), _moment(reader))


def describe(directory: Path, table: str) -> Rows:
    """Return a table's declaration, columns and layout."""
    from warehouse.serving.metadata import describe as describe_table

    reader = open_project(directory).reader()
    description = describe_table(reader, table)
    rows = tuple(_description(description))
    return Rows(Records.of(DescriptionRow, rows), _moment(reader), brief=Records.of(DescriptionRow, map(_for_people, rows)))


def files(directory: Path, table: str) -> Rows:
    """Return the files of a table that may hold live rows."""
    from warehouse.publishing.live.log import live_directory
    from warehouse.serving.metadata import files as table_files

    reader = open_project(directory).reader()
    listing = table_files(reader, table)
    rows = [
        ListedFile(file.path, file.size, file.rows, file.sub_index, file.exp_block, listing.filter) for file in listing.files
    ]
    facts = {"table version": listing.version, "filter": listing.filter, "or in slots": listing.slot_filter}
    live = live_directory(reader.root, table, reader.epoch)
    if live is not None:
        facts["live rows alone"] = str(live)
    return Rows(Records.of(ListedFile, rows), _moment(reader), lambda: facts)


def history(directory: Path, limit: int | None) -> Rows:
    """Return the readable epochs, newest first."""
    from warehouse.serving.history import EpochRow
    from warehouse.serving.history import history as epochs

    warehouse = open_project(directory)
    reader = warehouse.reader()
    rows = [replace(row, seconds=round(row.seconds, 3)) for row in epochs(warehouse.root, limit)]
    now = time.time_ns() // 1000
    return Rows(
        Records.of(EpochRow, rows), _moment(reader), brief=Records.of(BriefEpoch, [_brief_epoch(row, now) for row in rows])
    )


def rejected(directory: Path, table: str, limit: int | None) -> Rows:
    """Return the invalid rows of a table."""
    from warehouse.serving.metadata import rejected as rejected_rows

    reader = open_project(directory).reader()
    answer = rejected_rows(reader, table, limit)
    query = f"SELECT reason, count(*) FROM _rejected WHERE table_name = {literal(table)} GROUP BY ALL ORDER BY 2 DESC, 1"
    counts = [(str(reason), int(rows)) for reason, rows in reader.sql(query).all()]
    total = counted(sum(rows for _, rows in counts), "rejected row")
    line = f"{total}: {', '.join(f'{rows:,} {reason}' for reason, rows in counts)}" if counts else f"{total} of {table}"
    return Rows(answer, _moment(reader), headline=(line,))


def restored(directory: Path, view: str, limit: int | None) -> Rows:
    """Return the short-lived results of a view, with a hint at the key to declare if the view keeps none."""
    from warehouse.views.plans import judged_views

    warehouse = open_project(directory)
    reader = warehouse.reader()
    answer = reader.restored(view, limit=limit)
    record = reader.pin.recorded(view).view
    hints: tuple[str, ...] = ()
    if record is not None and record.short_lived != "report":
        plan = judged_views(warehouse.catalog)[0].view(view)
        remedy = f'`short_lived = "report"` in [views.{view}] keeps them'
        reason = "it is recomputed where its inputs changed, so they are not known"
        why = remedy if plan is None or plan.counts_short_lived else reason
        hints = (f'short-lived results of "{view}" are not kept; {why}',)
    return Rows(answer, _moment(reader), warnings=hints)


def _brief_epoch(row: EpochRow, now: int) -> BriefEpoch:
    return BriefEpoch(
        epoch=row.number,
        cause=row.cause,
        window_time=format_instant(row.window_time),
        committed=ago(row.committed_at, now),
        inserted=Figure(count_text(row.inserted)),
        expired=Figure(count_text(row.expired)),
        rejected=Figure(count_text(row.rejected)),
        results=Figure(count_text(row.results)),
        took=Figure(f"{row.seconds:.1f} s"),
    )


def _moment(reader: Reader) -> AnswerTime:
    return AnswerTime(reader.epoch.number, reader.epoch.window_time)


def _for_people(row: DescriptionRow) -> DescriptionRow:
    """Return a row of a description in words for people; other rows as they are."""
    if (row.of, row.name) != ("table", "label") or row.value not in get_args(Label):
        return row
    return DescriptionRow("table", "its rows", leaving_text(cast("Label", row.value)))


def _description(description: TableDescription) -> Iterator[DescriptionRow]:
    facts = {
        "kind": description.kind,
        "label": description.label,
        "search_key": ", ".join(description.search_key),
        "arrival": description.arrival,
        "expires": description.expires,
        "max_lifetime": None if description.max_lifetime is None else format_duration(description.max_lifetime),
        "declared": str(description.declared).lower(),
    }
    if description.view is not None:
        del facts["arrival"], facts["expires"]
        facts |= {
            "sql": description.view.sql,
            "inputs": ", ".join(description.view.inputs),
            "short_lived": description.view.short_lived,
            "restored_rows": str(description.view.restored),
            "state_tables": ", ".join(description.view.state) or None,
            "failed": description.view.failed,
        }
    if description.relation is not None:
        del facts["label"], facts["arrival"], facts["expires"], facts["max_lifetime"]  # the keys of the stream of its changes
        facts |= {
            "changed_at": description.arrival,
            "op": description.relation.op,
            "retroactive": str(description.relation.retroactive).lower(),
            "current_versions": str(description.relation.current_versions),
        }
    if description.kind == "archive":
        del facts["arrival"], facts["expires"], facts["max_lifetime"]  # no file is loaded into it, and its rows never expire
    yield from (DescriptionRow("table", name, value) for name, value in facts.items())
    yield from (DescriptionRow("column", column.name, column.type) for column in description.columns)
    yield from (DescriptionRow("origin", column.name, column.origin) for column in description.columns if column.origin)
    yield from (DescriptionRow("layout", name, text(value)) for name, value in description.layout.items())
