"""The metadata of a warehouse at an epoch: tables, their columns and layout, their live files and rejected rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import origin_of
from warehouse.serving.lazy_rows import lazy_error
from warehouse.serving.pin import require
from warehouse.serving.pruning import any_live
from warehouse.serving.sandbox import REJECTED_COLUMNS, Rejected, rejected_query
from warehouse.serving.statement import Statement
from warehouse.serving.table_status import live_row_count
from warehouse.serving.visible_tables import inputs_of_view, readable, state_of
from warehouse.time import format_instant

if TYPE_CHECKING:
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.serving.answer import Answer
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader
    from warehouse.storage.snapshot import DataFile

__all__ = [
    "ColumnDescription",
    "LiveFiles",
    "RelationDescription",
    "TableDescription",
    "ViewDescription",
    "describe",
    "files",
    "rejected",
    "tables",
]


@dataclass(frozen=True)
class ColumnDescription:
    """A column: its Spark SQL and DuckDB types, and its place in the search key from 1, or None.

    ``origin`` says where its values come from, in the words of the declaration, if not from a column of files of its name.
    """

    name: str
    type: str
    sql_type: str
    key: int | None
    origin: str | None = None


@dataclass(frozen=True)
class ViewDescription:
    """A view: its declared query, the tables that it reads, and how it handles short-lived results.

    A side table has ``restored`` short-lived results. ``state`` names the tables with the state of its operators. ``failed`` says
    why the last update could not maintain it.
    """

    sql: str
    inputs: tuple[str, ...]
    short_lived: str
    restored: int
    state: tuple[str, ...]
    failed: str | None = None


@dataclass(frozen=True)
class RelationDescription:
    """A relation: how its files name changes, whether changes are retroactive, and its current versions."""

    op: str
    retroactive: bool
    current_versions: int


@dataclass(frozen=True)
class TableDescription:
    """A table's declaration and layout as the epoch records them; ``layout`` by field name.

    A view has no ``arrival``; only views have ``view``, and only relations ``relation``.
    """

    name: str
    kind: str
    declared: bool
    label: str
    arrival: str | None
    expires: str | None
    max_lifetime: int | None
    search_key: tuple[str, ...]
    columns: tuple[ColumnDescription, ...]
    layout: dict[str, object]
    view: ViewDescription | None = None
    relation: RelationDescription | None = None


@dataclass(frozen=True)
class LiveFiles:
    """The files of a table that may hold live rows, and the filter that keeps only these rows.

    ``filter`` is SQL for any engine; ``slot_filter`` is the same condition on integers. The files do not have the partition
    columns; they are in the paths.
    """

    table: str
    epoch: int
    window_time: int
    version: int
    filter: str
    slot_filter: str
    files: tuple[DataFile, ...]


def tables(epoch: Epoch) -> tuple[str, ...]:
    """Return the names of an epoch's streams, relations and views."""
    return tuple(state.name for state in readable(epoch))


def describe(reader: Reader, table: str) -> TableDescription:
    """Return a table's columns, declaration and layout."""
    types = dict(reader.retrying(lambda pin: pin.table_columns(reader.connection, pin.recorded(table))))
    state = reader.pin.recorded(table)
    declaration = state.declaration
    key = declaration.search_key
    return TableDescription(
        name=state.name,
        kind=state.kind,
        declared=state.declared,
        label=declaration.label,
        arrival=declaration.arrival if state.view is None else None,
        expires=declaration.expires,
        max_lifetime=declaration.max_lifetime,
        search_key=key,
        columns=tuple(
            ColumnDescription(
                column.name,
                column.type,
                types.get(column.name, column.type),  # users do not query a synopsis's own columns
                key.index(column.name) + 1 if column.name in key else None,
                origin_of(column),
            )
            for column in declaration.columns
        ),
        layout=state.layout.to_json(),
        view=_view(reader.epoch, state),
        relation=reader.retrying(lambda pin: _relation(reader, pin, pin.recorded(table))),
    )


def _view(epoch: Epoch, state: TableState) -> ViewDescription | None:
    if state.view is None:
        return None
    return ViewDescription(
        sql=state.view.sql,
        inputs=inputs_of_view(epoch, state.owner),
        short_lived=state.view.short_lived,
        restored=state.restored.rows if state.restored else 0,
        state=tuple(state_table.name for state_table in state_of(epoch, state.owner)),
        failed=state.view.failed,
    )


def _relation(reader: Reader, pin: Pin, state: TableState) -> RelationDescription | None:
    declaration = state.declaration
    if declaration.op is None:
        return None
    current = live_row_count(reader, pin, pin.snapshot(state).files)
    return RelationDescription(declaration.op, declaration.retroactive, current)


def files(reader: Reader, table: str) -> LiveFiles:
    """Return the exact files that any engine needs for a table's rows at the epoch, and the filter over them."""

    def build(pin: Pin) -> LiveFiles:
        state, epoch = pin.state(table), pin.epoch
        if (lazy := pin.lazy(state)) is not None:
            raise lazy_error(state.name, f"its rows are made of the points in the files of {lazy.definition.source}")
        return LiveFiles(
            table=state.name,
            epoch=epoch.number,
            window_time=epoch.window_time,
            version=state.version,
            filter=f"_exp > TIMESTAMP '{format_instant(epoch.window_time)}'",
            slot_filter=f"_exp_slot > {epoch.slot}",
            files=tuple(file for file in pin.snapshot(state).files if any_live(file, epoch.slot)),
        )

    return reader.retrying(build)


def rejected(reader: Reader, table: str, limit: int | None = None) -> Answer:
    """Return a table's invalid rows: file, record, reason, message, raw text, epoch."""

    def build(pin: Pin) -> Answer:
        state = pin.state(table)
        paths = pin.side_files(state.rejected)
        require(paths)
        order = "" if limit is None else f" ORDER BY epoch, file, record LIMIT {int(limit)}"
        text = rejected_query([Rejected(state.name, paths)], with_table=False) + order
        return reader.answer(pin, reader.connection, Statement(text), REJECTED_COLUMNS)

    return reader.retrying(build)
