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
        Those columns of each stream and view.

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
            return frozenset.intersection(*(arrival_columns(each, tables) for each in inputs))
        case _:
            return frozenset()


def part_columns(tree: Operator, tables: Mapping[str, frozenset[str]]) -> Parts | None:
    """Return the tables of both inputs of a join, each with a column of the arrival of its parts; None for another operator."""
    found = _both(tree, tables)
    if found is None:
        return None
    (first, own), (second, other) = found
    return (first, min(own, default=None)), (second, min(other, default=None))


def _both(tree: Operator, tables: Mapping[str, frozenset[str]]) -> tuple[_Shown, _Shown] | None:
    """Return the tables of both inputs, each with all columns that say when its parts arrived."""
    match tree:
        case Join(inputs=(left, right)):
            return _shown(left, tables), _shown(right, tables)
        case Filter():
            return _both(tree.input, tables)
        case Project():
            found = _both(tree.input, tables)
            return found and ((found[0][0], _named(tree, found[0][1])), (found[1][0], _named(tree, found[1][1])))
        case _:
            return None


def _shown(tree: Operator, tables: Mapping[str, frozenset[str]]) -> _Shown:
    return ", ".join(dict.fromkeys(scanned(tree))), arrival_columns(tree, tables)


def _named(tree: Project, columns: frozenset[str]) -> frozenset[str]:
    """Return the columns of a projection that are these of its input, unchanged."""
    lower = {f"`{name}`".lower() for name in columns}
    return frozenset(column.name for column in tree.columns if column.sql.lower() in lower)
