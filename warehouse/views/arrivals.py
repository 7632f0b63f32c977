"""Finds the columns of a view with arrival times: of its own rows, and of both parts of each result of a join.

Such a column is the unchanged arrival column of a stream. A result of a join arrives with the later of its parts, so no column of
it holds its arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from warehouse.views.algebra import Filter, Join, Project, Scan, TimeWindow, UnionAll, scanned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import Operator

__all__ = ["Parts", "arrival_columns", "part_columns"]

Parts: TypeAlias = tuple[tuple[str, str | None], tuple[str, str | None]]
_Shown: TypeAlias = tuple[str, frozenset[str]]


def arrival_columns(tree: Operator, tables: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the columns of an operator that say when its rows arrive.

    Parameters
    ----------
    tree
        The operator.
    tables
        The columns with arrival times of each stream and view.

    Examples
    --------
    >>> from warehouse.views.algebra import Named
    >>> sorted(arrival_columns(Project(Scan("s"), (Named("at", "`B`"), Named("x", "`b` + 1"))), {"s": frozenset({"b"})}))
    ['at']
    """
    match tree:
        case Scan(table=table):
            return tables.get(table, frozenset())
        case Filter() | TimeWindow():
            return arrival_columns(tree.input, tables)
        case Project():
            return _named(tree, arrival_columns(tree.input, tables))
        case UnionAll(inputs=inputs):
            return frozenset.intersection(*(arrival_columns(input_operator, tables) for input_operator in inputs))
        case _:
            return frozenset()


def part_columns(tree: Operator, tables: Mapping[str, frozenset[str]]) -> Parts | None:
    """Return the tables of both inputs of a join, each with a column of the arrival of its parts; None for another operator."""
    inputs = _both(tree, tables)
    if inputs is None:
        return None
    (left, left_columns), (right, right_columns) = inputs
    return (left, min(left_columns, default=None)), (right, min(right_columns, default=None))


def _both(tree: Operator, tables: Mapping[str, frozenset[str]]) -> tuple[_Shown, _Shown] | None:
    """Return the tables of both inputs, each with all columns that say when its parts arrived."""
    match tree:
        case Join(inputs=(left, right)):
            return _shown(left, tables), _shown(right, tables)
        case Filter():
            return _both(tree.input, tables)
        case Project():
            inputs = _both(tree.input, tables)
            return inputs and ((inputs[0][0], _named(tree, inputs[0][1])), (inputs[1][0], _named(tree, inputs[1][1])))
        case _:
            return None


def _shown(tree: Operator, tables: Mapping[str, frozenset[str]]) -> _Shown:
    return ", ".join(dict.fromkeys(scanned(tree))), arrival_columns(tree, tables)


def _named(tree: Project, columns: frozenset[str]) -> frozenset[str]:
    """Return the names that a projection gives to these columns of its input where it leaves them unchanged."""
    lower = {f"`{name}`".lower() for name in columns}
    return frozenset(column.name for column in tree.columns if column.sql.lower() in lower)
