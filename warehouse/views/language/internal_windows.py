"""Internal windows bound memory only, so results stay. This module says which queries can have them (update-patterns sheet, 4.1).

They are time windows, or row windows over rows that end in the order of their arrival, so that no row returns to the window. A
query with one is a selection, a flat join or a GROUP BY (each new value is then appended). A duplicate elimination or a negation
over one would give duplicates, or rows that the negation forbids; outer joins and first rows contain a negation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.algebra import Scan, Top
from warehouse.views.language.dialect import text
from warehouse.views.language.expressions import function_name
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.windows import WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.labels import Label
    from warehouse.views.language.scope import Item

__all__ = ["check_internal", "with_external_windows"]

_ALLOWED = "internal windows under a selection, an inner join or GROUP BY; elsewhere the window is external"


def check_internal(
    select: exp.Select, items: Sequence[Item], label: Callable[[Operator], Label], *, aggregated: bool, negated: str | None
) -> None:
    """Refuse operators that cannot be over an internal window.

    Parameters
    ----------
    select
        The view's own SELECT.
    items
        Its inputs.
    label
        Gives the state label of an input.
    aggregated
        Whether rows are grouped.
    negated
        A word for the part of the query that keeps it from being a flat join; None if there is no such part.

    Raises
    ------
    RefusedError
        For the first fault.

    """
    inside = [item for item in items if item.internal]
    if not inside:
        return
    for clause, word in (("distinct", "DISTINCT"), ("qualify", "QUALIFY"), ("limit", "ORDER BY ... LIMIT")):
        if select.args.get(clause):
            negated = negated or word
    if negated:
        raise RefusedError(inside[0].node, f"{negated} over an internal window", _ALLOWED, with_external_windows(select))
    for item in items:
        _check_other_input(item, label(item.operator), inside[0], aggregated=aggregated)
    if not aggregated:
        for item in inside:
            if isinstance(item.operator, Top):
                _check_row_window(item, item.operator, items, label)


def _check_other_input(item: Item, label: Label, inner: Item, *, aggregated: bool) -> None:
    if item.internal or (item.relation is not None and not item.relation.retroactive):
        return
    if label.kind == "STR":
        found = f"{item.alias}, whose rows can leave before their own end, beside the internal window {inner.alias}"
        raise RefusedError(item.node, found, "external windows, or inputs whose rows live to their own end")
    if aggregated and label.kind != "MON":
        found = f"{item.alias}, whose rows expire, grouped together with the internal window {inner.alias}"
        raise RefusedError(item.node, found, "internal windows over all inputs of a GROUP BY, or over none")


def _check_row_window(item: Item, window: Top, items: Sequence[Item], label: Callable[[Operator], Label]) -> None:
    below = window.input.table if isinstance(window.input, Scan) else "its input"
    if len(items) == 1:
        allowed = f"{below} itself: a selection over an internal window gives every row"
        raise RefusedError(item.node, "an internal row_window that nothing aggregates", allowed)
    if label(window.input).kind not in ("MON", "WKS"):
        found = f"an internal row_window over {below}, in which rows come back when newer ones end before them"
        raise RefusedError(item.node, found, "streams whose rows end in the order they came, or not at all; time_window")


def with_external_windows(select: exp.Expr) -> str:
    """Return a query whose windows are external."""
    copy = select.copy()
    for call in copy.find_all(exp.Anonymous):
        if function_name(call) in WINDOW_FUNCTIONS:
            call.set("expressions", [argument for argument in call.expressions if not isinstance(argument, exp.Kwarg)])
    return text(copy)
