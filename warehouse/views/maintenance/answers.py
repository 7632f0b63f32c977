"""The answer of each operator that keeps state, defined once: Spark runs it, or the driver over few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.time import NEVER
from warehouse.views.algebra import AntiJoin, BagDifference, Group, Join, OuterJoin, Top
from warehouse.views.maintenance.groups import recomputed
from warehouse.views.maintenance.joins import joined, outer_joined
from warehouse.views.maintenance.keys import numbered
from warehouse.views.maintenance.negation import difference, uncovered
from warehouse.views.maintenance.pipelines import CARRIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.views.algebra import Operator, Order
    from warehouse.views.maintenance.driver_rows import Frame
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["answer", "for_ever", "newest_rows", "terms_of"]


def answer(core: Operator, inputs: Sequence[Frame], move: Move) -> Frame:
    """Return the answer of an operator that keeps state over its inputs, with the carried columns.

    Parameters
    ----------
    core
        The operator.
    inputs
        The live rows of each of its inputs, of all keys or of some; for an anti-join the rows that lived since the last epoch.
    move
        The times between which the step moves.

    """
    match core:
        case Join():
            return joined(core, inputs)
        case OuterJoin():
            return outer_joined(core, inputs[0], inputs[1])
        case Group():
            return for_ever(recomputed(core, inputs[0]), move)
        case Top():
            return _ranked(inputs[0], core.partition, terms_of(core.order), core.limit)
        case AntiJoin():
            return uncovered(inputs[0], inputs[1], core.on, move)
        case BagDifference():
            return difference(inputs[0], inputs[1], [name for name in inputs[0].columns if name not in CARRIED])
        case _:
            raise TypeError(f"{type(core).__name__} is not maintained by keys")


def for_ever(rows: Frame, move: Move | None) -> Frame:
    """Return rows that do not end by themselves; with ``move`` they begin at its end."""
    never = f"timestamp_micros({NEVER}L)"
    begins = [] if move is None else [f"timestamp_micros({move.now}L) AS _ts"]
    return rows.selectExpr(*map(quoted, rows.columns), *begins, f"{never} AS _exp", f"{never} AS _out")


def newest_rows(rows: Frame, limit: int) -> Frame:
    """Return the rows generated last (update-patterns sheet, 4.2)."""
    return _ranked(rows, (), [], limit)


def terms_of(order: Sequence[Order]) -> list[str]:
    """Return the terms of an order as Spark SQL."""
    return [
        f"{quoted(term.column)} {'DESC' if term.descending else 'ASC'} NULLS {'FIRST' if term.nulls_first else 'LAST'}"
        for term in order
    ]


def _ranked(rows: Frame, partition: Sequence[str], terms: Sequence[str], limit: int) -> Frame:
    """Return the first rows of each partition; of equal rows in the order the newest comes first, then all columns decide."""
    last: list[str] = [quoted(name) for name in rows.columns if not name.startswith("_")]
    ranked = numbered(rows, partition, [*terms, "_ts DESC", "_exp DESC", *last], "_rank")
    return ranked.where(f"_rank <= {limit}").selectExpr(*map(quoted, rows.columns))
