"""Explains a coalesced table at an epoch: how its points are compared, where its window begins, and which points it ignored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.serving.accuracy import shed_figures
from warehouse.serving.table_status import lazy_count

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Coalesced
    from warehouse.coalescing.choosing import Choice
    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.epochs.records import Epoch
    from warehouse.serving.accuracy import ShedFigures
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader

__all__ = ["CoalescedExplanation", "explained_coalesced"]


@dataclass(frozen=True)
class CoalescedExplanation:
    """A coalesced table; ``epoch`` is the newest one, or None if the table does not exist yet.

    Instants are microseconds. ``begins`` is the least time in its window (None for a window of rows). It has every point from
    ``full_from`` on (None: from the first). ``rows`` counts the stored rows, also expired ones that are not removed yet. ``late``
    points had left the window before they were loaded, ``repeated`` points had the group and the time of another. ``shed`` has
    the figures of a table with a budget; its last update kept ``over`` members above it. A ``lazy`` table has no files, and
    ``rows`` counts the rows made from the points of its stream. ``choice`` is the decision of an update about a table with ``how
    = "auto"``.
    """

    name: str
    definition: CoalescedDefinition
    epoch: int | None = None
    begins: int | None = None
    full_from: int | None = None
    rows: int = 0
    late: int = 0
    repeated: int = 0
    shed: ShedFigures | None = None
    how: Literal["eager", "lazy"] = "eager"
    over: int = 0
    choice: Choice | None = None


def explained_coalesced(catalog: Catalog, name: str, reader: Reader | None) -> CoalescedExplanation | None:
    """Explain a declared coalesced table; None if there is no table of that name. ``reader`` is of the newest epoch."""
    epoch = reader.epoch if reader else None
    declared = catalog.coalesced_table(name)
    if declared is None:
        return None
    definition, state = declared.definition, epoch.table(name) if epoch else None
    record = state.coalesced if state else None
    lazy = epoch.lazy_table(name) if epoch else None
    if reader is not None and epoch is not None and lazy is not None:
        return CoalescedExplanation(
            name,
            lazy.definition,
            epoch=epoch.number,
            begins=None if definition.window is None else epoch.window_time - definition.window,
            full_from=lazy.full_from,
            rows=reader.retrying(lambda pin: lazy_count(pin, reader.connection, pin.state(name))),
            how="lazy",
            choice=_choice(epoch, declared),
        )
    if reader is None or epoch is None or state is None or record is None:
        return CoalescedExplanation(name, definition, how="lazy" if declared.how == "lazy" else "eager")
    return CoalescedExplanation(
        name,
        definition,
        epoch=epoch.number,
        begins=None if definition.window is None else epoch.window_time - definition.window,
        full_from=record.full_from,
        rows=sum(part.rows for part in state.partitions),
        late=record.late,
        repeated=record.repeated,
        over=record.over,
        choice=_choice(epoch, declared),
        shed=None if record.definition.budget is None else reader.retrying(lambda pin: _shed(reader, pin, name)),
    )


def _shed(reader: Reader, pin: Pin, name: str) -> ShedFigures:
    return shed_figures(pin, reader.connection, pin.state(name))


def _choice(epoch: Epoch, table: Coalesced) -> Choice | None:
    """Return the decision about a table, if its declaration leaves it open."""
    return next((choice for choice in epoch.choices if choice.table == table.name), None) if table.how == "auto" else None
