"""Explains an aggregate: the synopses that it reads, the aggregates that share them, their contents, and when windows are due."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.aggregates.intervals import cover, upkeep
from warehouse.aggregates.sharing import assigned, missing
from warehouse.aggregates.synopses import needs
from warehouse.planning.aggregate_plans import compared, histories
from warehouse.time import at_slot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.aggregates.definition import AggregateDefinition, Window
    from warehouse.aggregates.predicates import Kind
    from warehouse.aggregates.synopses import ColumnState, Synopsis
    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch

__all__ = ["AggregateExplanation", "ExplainedSynopsis", "WindowDue", "explained_aggregate"]


@dataclass(frozen=True)
class ExplainedSynopsis:
    """A synopsis that an aggregate reads.

    ``table`` is None until an update has created it. ``counted`` is the column whose values are counted; a slot has the
    ``listed`` most frequent values (None: all). ``states`` are the states that are read. ``shared_with`` are other aggregates
    that read the synopsis. It keeps a row for ``slots`` slots, has ``rows`` rows, and all rows that arrived from ``full_from`` on
    (microseconds); None if the synopsis does not exist. ``where`` is its condition, if it differs from the aggregate's: several
    synopses together have the rows of the aggregate. With ``less`` its rows are subtracted from the others. Its rows are
    separated by the slots of ``parts``, columns of a join. Its longest intervals have ``2^levels`` slots.
    """

    table: str | None
    counted: str | None
    states: tuple[str, ...]
    shared_with: tuple[str, ...]
    slots: int
    rows: int | None
    full_from: int | None
    listed: int | None = None
    where: str | None = None
    parts: tuple[str, str] | None = None
    less: bool = False
    levels: int = 0


@dataclass(frozen=True)
class WindowDue:
    """A window: its length as declared, how many slots it reads, its period and its next due end, in microseconds.

    ``rows`` is the approximate number of rows of synopses that an answer reads; None if there are no rows yet. ``together`` are
    aggregates with common synopses that are due at the same end: one run merges the synopses for all of them. If synopses have
    intervals longer than a slot, ``pieces`` is the number of intervals that the window merges.
    """

    length: str
    slots: int
    every: int
    next_due: int | None
    rows: int | None = None
    together: tuple[str, ...] = ()
    pieces: int | None = None


@dataclass(frozen=True)
class AggregateExplanation:
    """How an aggregate is answered; ``epoch`` is the newest one, None before there is one."""

    name: str
    definition: AggregateDefinition
    synopses: tuple[ExplainedSynopsis, ...]
    windows: tuple[WindowDue, ...]
    epoch: int | None


def explained_aggregate(catalog: Catalog, name: str, epoch: Epoch | None) -> AggregateExplanation | None:
    """Explain a declared aggregate; None if there is no aggregate of that name."""
    aggregate = catalog.aggregate(name)
    if aggregate is None:
        return None
    definition = aggregate.definition
    same_source = {
        declared.name: declared.definition
        for declared in catalog.aggregates
        if declared.definition.source == definition.source
    }
    recorded = {
        state.name: state.synopsis
        for state in (epoch.tables if epoch else ())
        if state.synopsis is not None and state.owner == definition.source
    }
    stored = [record.synopsis for record in recorded.values()]
    kinds = compared(catalog, definition.source)
    synopses = [*stored, *missing([need for declared in same_source.values() for need in needs(declared)], stored, kinds)]
    begun = histories(epoch, [*recorded, *("" for _ in synopses[len(stored) :])])
    readers = _readers(same_source, synopses, kinds, begun)
    explained = []
    for number, states, savings in _read(definition, synopses, kinds, begun):
        table = [*recorded][number] if number < len(recorded) else None
        state = epoch.table(table) if epoch and table else None
        record = recorded[table] if table else None
        counted = synopses[number].counted
        needed_slots = max(need.slots for reading in readers[number] for need in needs(same_source[reading]))
        explained.append(
            ExplainedSynopsis(
                table=table,
                counted=counted[0] if counted else None,
                states=tuple(f"{aggregate_state.function}({aggregate_state.column})" for aggregate_state in states),
                shared_with=tuple(reading for reading in readers[number] if reading != name),
                slots=max(needed_slots, record.slots if record else 0),
                rows=sum(part.rows for part in state.partitions) if state else None,
                full_from=at_slot(record.full_from - 1, catalog.anchor, catalog.update_interval) if record else None,
                listed=synopses[number].listed,
                where=None if synopses[number].where == definition.where else synopses[number].where,
                parts=synopses[number].parts,
                less=savings,
                levels=synopses[number].levels,
            )
        )
    names = sorted({reading for synopsis in explained for reading in synopsis.shared_with})
    windows = tuple(_windows(catalog, definition, epoch, explained, {reading: same_source[reading] for reading in names}))
    return AggregateExplanation(name, definition, tuple(explained), windows, epoch.number if epoch else None)


def _read(
    definition: AggregateDefinition,
    synopses: Sequence[Synopsis],
    kinds: Mapping[str, Kind] | None,
    begun: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, tuple[ColumnState, ...], bool]]:
    """Yield the synopses that are read, with their states, and whether they are subtracted from the others."""
    for need in needs(definition):
        for served in assigned(need, synopses, kinds, begun):
            yield from ((number, served.states, number in served.less) for number in served.numbers)


def _readers(
    same_source: Mapping[str, AggregateDefinition],
    synopses: Sequence[Synopsis],
    kinds: Mapping[str, Kind] | None,
    begun: Sequence[tuple[int, int]],
) -> dict[int, list[str]]:
    """Return the aggregates that read each synopsis."""
    readers: dict[int, list[str]] = {}
    for name, definition in same_source.items():
        for number in dict.fromkeys(number for number, *_ in _read(definition, synopses, kinds, begun)):
            readers.setdefault(number, []).append(name)
    return readers


def _is_due(definition: AggregateDefinition, end: int) -> bool:
    return any(end % window.every == 0 for window in definition.windows)


def _windows(
    catalog: Catalog,
    definition: AggregateDefinition,
    epoch: Epoch | None,
    synopses: Sequence[ExplainedSynopsis],
    aggregates: Mapping[str, AggregateDefinition],
) -> Iterator[WindowDue]:
    for window in definition.windows:
        end = None if epoch is None else (epoch.slot // window.every + 1) * window.every
        due_names = [name for name, aggregate in aggregates.items() if end is not None and _is_due(aggregate, end)]
        due = None if end is None else at_slot(end, catalog.anchor, catalog.update_interval)
        row_counts = [_rows_of(window, end, synopsis) for synopsis in synopses if synopsis.rows is not None]
        rows = math.ceil(sum(row_counts)) if row_counts else None
        levels = max((synopsis.levels for synopsis in synopses), default=0)
        pieces = _pieces(window, end, levels) if levels else None
        yield WindowDue(window.text, window.slots, window.every * catalog.update_interval, due, rows, tuple(due_names), pieces)


def _rows_of(window: Window, end: int | None, synopsis: ExplainedSynopsis) -> float:
    """Return an estimate of the rows of a synopsis that a window reads; an interval is assumed to have as many rows as a slot."""
    stored_intervals = synopsis.slots * (1 + upkeep(synopsis.levels))
    return (synopsis.rows or 0) * min(_pieces(window, end, synopsis.levels), synopsis.slots) / stored_intervals


def _pieces(window: Window, end: int | None, levels: int) -> int:
    """Return the number of intervals of a window that ends with a slot."""
    last = end or window.every
    return sum(1 for _ in cover(last - window.slots + 1, last, levels))
