"""Advice on coalesced tables: whether a table costs less if it is stored, or if each read makes its rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from warehouse.coalescing.choosing import Choice, PointCounts, choose
from warehouse.errors import UsageError
from warehouse.planning.lazy_tables import lazy_table
from warehouse.serving.pin import require
from warehouse.serving.statement import select
from warehouse.serving.view_figures import retained
from warehouse.views.language.dialect import parse_query
from warehouse.views.language.faults import RefusedError
from warehouse.views.lazy_conditions import lazy_fault
from warehouse.views.plans import named_in

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from warehouse.catalog.model import Catalog, Coalesced
    from warehouse.epochs.records import TableState
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader

__all__ = ["advise_coalesced", "can_be_lazy", "current_choices", "first_choices", "switch_signs", "undecided_tables"]


def can_be_lazy(catalog: Catalog, table: Coalesced) -> bool:
    """Return whether a table may be lazy: its stream stores every point, no view reads it, and it sheds nothing."""
    if table.definition.budget is not None or any(True for _ in lazy_fault(catalog, table)):
        return False
    return not any(table.name.lower() in _tables_named_in(view.sql) for view in catalog.views)


def _tables_named_in(sql: str) -> set[str]:
    """Return the tables that a query names, in lower case; an empty set if it cannot be parsed."""
    try:
        return named_in(parse_query(sql))
    except RefusedError:
        return set()


def undecided_tables(catalog: Catalog, known: Collection[str], streams: Collection[str]) -> list[Coalesced]:
    """Return the tables with ``how = "auto"`` that do not exist yet and may be lazy, over streams that exist."""
    return [
        table
        for table in catalog.coalesced
        if table.how == "auto"
        and table.name not in known
        and table.definition.source in streams
        and can_be_lazy(catalog, table)
    ]


def first_choices(reader: Reader, catalog: Catalog, tables: Sequence[Coalesced]) -> tuple[Choice, ...]:
    """Return the choices for tables before their first build, from the points that are stored at the reader's epoch.

    There is no choice for a table without points.
    """

    def build(pin: Pin) -> tuple[Choice, ...]:
        counted = []
        for table in tables:
            stream, tau = pin.state(table.definition.source), pin.epoch.window_time
            source = replace(pin.live_source(stream, tau), lazy=lazy_table(catalog, table), points_at=tau)
            require((source.schema_file, *source.files))
            counts = _count_points(reader, select(source, ["members", "open"]), stream.name)
            counted += [(table.name, counts)] if counts.members else []
        return choose(counted)

    return reader.retrying(build)


def current_choices(reader: Reader, catalog: Catalog) -> tuple[Choice, ...]:
    """Return for each table that may be lazy whether it is eager or lazy at the reader's epoch, and the costs of both now."""

    def build(pin: Pin) -> tuple[Choice, ...]:
        counted = []
        for table in (*catalog.coalesced, *catalog.lazy):
            state = _existing_state(pin, table.name)
            if state is not None and can_be_lazy(catalog, table):
                source = pin.live_source(state, pin.epoch.window_time)
                require((source.schema_file, *source.files))
                counts = _count_points(reader, select(source, ["members", "open"]), table.definition.source)
                counted += [(table.name, counts)] if counts.members else []
        return tuple(replace(choice, how=_current_how(pin, choice.table)) for choice in choose(counted))

    return reader.retrying(build)


def advise_coalesced(reader: Reader, catalog: Catalog, table: str) -> Choice:
    """Return whether a coalesced table is eager or lazy, and the costs of both by its current points.

    Raises
    ------
    UsageError
        When it cannot be lazy, or has no point.

    """
    choice = next((choice for choice in current_choices(reader, catalog) if choice.table == table), None)
    if choice is None:
        reason = "it is new, has no point, sheds, is read by a view, or its stream does not store every point for the window"
        raise UsageError(f'"{table}" is stored in any case: {reason}')
    return choice


def switch_signs(reader: Reader, catalog: Catalog) -> tuple[tuple[str, str], ...]:
    """Return each table with ``how = "auto"`` that would cost a tenth less the other way, switch included, and the remedy."""
    choices = [choice for choice in current_choices(reader, catalog) if choice.better is not None]
    autos = {table.name for table in (*catalog.coalesced, *catalog.lazy) if table.how == "auto"}
    return tuple(
        (choice.table, f"would cost less {_WAYS[choice.better]}: `stream-wh migrate {choice.table}`")
        for choice in choices
        if choice.table in autos and choice.better is not None
    )


_WAYS = {"eager": "if it were stored", "lazy": "if each read made it"}


def _existing_state(pin: Pin, name: str) -> TableState | None:
    exists = pin.epoch.table(name) is not None or pin.epoch.lazy_table(name) is not None
    return pin.state(name) if exists else None


def _current_how(pin: Pin, name: str) -> Literal["eager", "lazy"]:
    return "eager" if pin.epoch.lazy_table(name) is None else "lazy"


def _count_points(reader: Reader, rows: str, stream: str) -> PointCounts:
    query = f"SELECT coalesce(sum(members), 0)::BIGINT, count(*), count(*) FILTER (open) FROM ({rows})"
    members, number, groups = reader.connection.execute(query).fetchall()[0]
    return PointCounts(members, number, groups, _late_share(reader, stream))


def _late_share(reader: Reader, stream: str) -> float:
    """Return the share of a stream's points that came late, in the readable updates of one slot each."""
    counts = [
        entry
        for epoch in retained(reader)
        if epoch.cause == "update" and epoch.slot - epoch.previous_slot == 1
        for entry in epoch.counts
        if entry.stream == stream
    ]
    inserted = sum(entry.inserted for entry in counts)
    return sum(entry.late for entry in counts) / inserted if inserted else 0.0
