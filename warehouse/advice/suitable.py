"""Says which tables have a layout to choose: those that a grid of lifetimes partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.advice.what_if import MAX_PERIODS
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from warehouse.epochs.records import TableState

__all__ = ["refuse_unsuitable", "unsuitable_reason"]


def refuse_unsuitable(state: TableState) -> None:
    """Raise an error for a table whose layout cannot be chosen.

    Raises
    ------
    UsageError
        When it is not on a grid of lifetimes, or has too many update intervals in its window.

    """
    reason = unsuitable_reason(state)
    if reason is not None:
        raise UsageError(f'"{state.name}" {reason}; name one of the streams and views whose rows expire at their own time')
    if state.layout.periods > MAX_PERIODS:
        raise UsageError(
            f'"{state.name}" has a window of p = {state.layout.periods} update intervals, and up to {MAX_PERIODS} are '
            "compared; look with --what-if and a longer interval= at what fits then"
        )


def unsuitable_reason(state: TableState) -> str | None:
    """Return why a table is not cut on a grid of lifetimes, or None if it is."""
    if state.kind == "relation":
        return "is a relation, which is cut by its key"
    if state.kind == "coalesced":
        return "is a coalesced table, which is cut by its search key"
    if state.kind == "state":
        return "keeps the state of a view's operator"
    match state.declaration.label:
        case "STR":
            return "is a view whose rows can leave before their own end, so it is cut by its search key"
        case "MON":
            return "has rows that never expire"
        case _:
            return None
