"""S, the bound on the lifetimes of a plan's rows: it decides how finely a view's table is partitioned (DESIGN 9).

A join has the least bound of its inputs, since a result ends with the first of its parts; other operators have the largest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.views.algebra import AsOf, Changes, InternalRows, Join, OutputWindow, Scan, TimeWindow, inputs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import Operator

__all__ = ["lifetime"]


def lifetime(operator: Operator, tables: Mapping[str, int | None], *, output: bool = False) -> int | None:
    """Return S in microseconds; None if it is unbounded.

    Parameters
    ----------
    operator
        A plan.
    tables
        The bounds of the tables that it scans.
    output
        Whether to return the bound of the answer's rows (internal windows do not end them) instead of the state's.

    """
    match operator:
        case Scan(table=table):
            return tables[table]
        case TimeWindow(internal=True) | InternalRows() if output:
            return None
        case TimeWindow(length=length):
            below = lifetime(operator.input, tables, output=output)
            return length if below is None else min(below, length)
        case Changes():
            return None
        case OutputWindow(length=int() as length):
            return length
        case _:
            bounds = [lifetime(input_operator, tables, output=output) for input_operator in inputs_of(operator)]
    finite_bounds = [bound for bound in bounds if bound is not None]
    if isinstance(operator, (Join, AsOf)):
        return min(finite_bounds, default=None)
    return max(finite_bounds) if len(finite_bounds) == len(bounds) else None
