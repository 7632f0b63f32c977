"""Which queries can have an output window: those whose results come and stay (update-patterns sheet, 4.2).

It keeps the results of the last while or the last so many, so the windows below are internal. Over a duplicate elimination
or a negation the answer would show duplicates or forbidden rows; an external aggregate has one current value only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.views.algebra import (
    AntiJoin,
    BagDifference,
    Changes,
    Distinct,
    Group,
    OuterJoin,
    Scan,
    Top,
    inputs_of,
)
from warehouse.views.labels import STR
from warehouse.views.language.dialect import text
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from warehouse.views.algebra import Operator
    from warehouse.views.labels import Label

__all__ = ["check_output_window"]

_WORDS: tuple[tuple[type[Operator], str], ...] = (
    (Distinct, "a duplicate elimination (DISTINCT, UNION, INTERSECT, EXISTS, IN)"),
    (AntiJoin, "a negation"),
    (BagDifference, "a negation"),
    (OuterJoin, "an outer join, which contains a negation"),
    (Top, "rows that others push out (LIMIT, QUALIFY, row_window)"),
    (Group, "an aggregate over external windows, which has one current value"),
)


def check_output_window(query: exp.Query, plan: Operator, labels: Mapping[str, Label]) -> None:
    """Refuse an output window over a plan whose results do not stay by themselves.

    Raises
    ------
    RefusedError
        With what stands in the way.

    """
    found = _obstacle(plan, labels)
    if found is None:
        return
    allowed = "an output window over a selection, a join or an aggregate over internal windows"
    raise RefusedError(query, f"output_window over {found}", allowed, text(query))


def _obstacle(plan: Operator, labels: Mapping[str, Label]) -> str | None:
    if isinstance(plan, Changes):
        return None
    if isinstance(plan, Scan):
        return f"{plan.table}, whose rows can leave before their own end" if labels[plan.table] == STR else None
    word = next((word for kind, word in _WORDS if isinstance(plan, kind)), None)
    return word or next((found for each in inputs_of(plan) if (found := _obstacle(each, labels))), None)
