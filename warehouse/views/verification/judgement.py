"""Whether a view is its query, as far as that can be said: two right answers can differ, and then a difference is no fault."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.views.algebra import scanned
from warehouse.views.maintenance.inputs import user_columns
from warehouse.views.verification.comparison import Difference, difference
from warehouse.views.verification.sums import Open, open_of
from warehouse.views.verification.ties import has_ties

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.views.algebra import Node
    from warehouse.views.language.types import Types
    from warehouse.views.verification.question import Question

__all__ = ["Doubt", "judged"]

_ERROR = 1e-12
"""The error of a sum of floats for each unit of what is added: some thousand additions of the worst kind."""


@dataclass(frozen=True)
class Doubt:
    """Why an answer that differs may be right."""

    reason: str


def judged(
    session: SparkSession,
    question: Question,
    nodes: Sequence[Node],
    rows: Callable[[str], DataFrame],
    now: int,
    names: Mapping[str, str],
) -> Difference | Doubt | None:
    """Return how a view differs from its query, or why that cannot be said; nothing when it is its query.

    Parameters
    ----------
    session, question, rows, now, names
        As in :func:`warehouse.views.verification.comparison.difference`.
    nodes
        The tables that keep the view.

    """
    held = rows(next(node.table for node in nodes if not node.hidden))

    def compared(without: frozenset[str] = frozenset(), error: float = 0.0) -> Difference | None:
        return difference(session, question, rows, held, now, names=names, without=without, error=error)

    found = compared()
    if found is None or found.refused:
        return found
    if has_ties([node.operator for node in nodes], rows, now):
        return Doubt("its order does not tell rows apart of which it takes the first: it has more than one answer")
    types = {name: _types(rows(name)) for node in nodes for name in {node.table, *scanned(node.operator)}}
    open_ = _open(nodes, types)
    if open_.rows:
        return Doubt("it chooses rows by a sum of floats, whose last digits depend on the order of addition")
    error = _error([rows(names[table]) for table in question.tables if table in names]) if open_.columns else 0.0
    if error and compared(error=error) is None:
        return None
    if open_.values and compared(open_.values, error) is None:
        columns = ", ".join(name for name in held.columns if name.lower() in open_.values)
        return Doubt(f"only {columns} differs, computed from a sum of floats, whose last digits depend on the order of addition")
    return found


def _open(nodes: Sequence[Node], types: Mapping[str, Types]) -> Open:
    """What sums leave open; nothing where that cannot be told, because the difference is there."""
    try:
        return open_of(nodes, types)
    except Exception as error:  # a view that cannot be analysed never takes the others down
        logging.getLogger("warehouse").debug("the sums of a view cannot be told", exc_info=error)
        return Open()


def _types(rows: DataFrame) -> Types:
    own = user_columns(rows)
    return {name: kind for name, kind in rows.dtypes if name in own}


def _error(tables: Sequence[DataFrame]) -> float:
    """By how much sums of the floats of some tables can differ."""
    largest = 0.0
    for rows in tables:
        floats = [f"`{name}`" for name, kind in rows.dtypes if kind in {"float", "double"}]
        if floats:
            finite = [f"sum(CASE WHEN abs({name}) < double('Infinity') THEN abs(double({name})) END)" for name in floats]
            (sums,) = rows.selectExpr(*finite).collect()
            largest = max(largest, *(each or 0.0 for each in sums))
    return largest * _ERROR
