"""The order of a step's joins, from its batch: the numbers of arrived rows and of their values, and the sizes of the windows.

Rates drift, so each step chooses again (window-joins sheet, 8.3). The cost is that of a batch of hash joins: intermediate
rows. Up to five inputs every order is costed; above that the sheet's heuristic chooses. If inputs join on several
attributes, the model assumes independent values. If the rows of each key are known from key summaries, orders are costed
by these counts in place of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.views.costs.join_order import JoinInput, all_costs, batch_cost, best_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.views.algebra import Join
    from warehouse.views.costs.join_order import KeyCounts

__all__ = ["InputStatistics", "chosen_order", "connecting", "equality_classes", "probes"]

_ALL_ORDERS_UP_TO = 5
_MOSTLY_DIFFERENT = 0.8


@dataclass(frozen=True)
class InputStatistics:
    """Figures of one input in one step: rows that arrived, distinct values of their join columns, rows in its window."""

    arrived: int
    distinct: Mapping[str, int]
    window: int


def equality_classes(join: Join) -> tuple[Mapping[str, str], ...]:
    """Return for each input its columns by equality class; all columns of a class must be equal.

    Examples
    --------
    >>> from warehouse.views.algebra import Equality, Join, Scan
    >>> equal = (Equality(0, "a", 1, "b"), Equality(1, "b", 2, "c"), Equality(1, "d", 2, "e"))
    >>> equality_classes(Join((Scan("x"), Scan("y"), Scan("z")), equal))
    ({'a': '0.a'}, {'b': '0.a', 'd': '1.d'}, {'c': '0.a', 'e': '1.d'})
    """
    parent: dict[tuple[int, str], tuple[int, str]] = {}

    def root(column: tuple[int, str]) -> tuple[int, str]:
        while parent.setdefault(column, column) != column:
            column = parent[column]
        return column

    for equality in join.equal:
        first, second = sorted((root((equality.left, equality.left_column)), root((equality.right, equality.right_column))))
        parent[second] = first
    classes: list[dict[str, str]] = [{} for _ in join.inputs]
    for number, column in sorted(parent):
        classes[number][column] = "{}.{}".format(*root((number, column)))
    return tuple(classes)


def connecting(join: Join, there: set[int], number: int) -> list[tuple[str, str]]:
    """Return the equalities that connect an input with the joined inputs ``there``: (column of a joined input, its column)."""
    pairs = []
    for equality in join.equal:
        if equality.right == number and equality.left in there:
            pairs.append((equality.left_column, equality.right_column))
        elif equality.left == number and equality.right in there:
            pairs.append((equality.right_column, equality.left_column))
    return pairs


def probes(join: Join, start: int, order: Sequence[int]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield the other inputs in the order in which they are joined with the first one, each as soon as an equality connects it.

    Yields
    ------
    tuple
        The number of an input, and the columns on which it is joined: (column so far, its column).

    Examples
    --------
    >>> from warehouse.views.algebra import Equality, Join, Scan
    >>> equal = (Equality(0, "a", 1, "b"), Equality(1, "c", 2, "d"))
    >>> list(probes(Join((Scan("x"), Scan("y"), Scan("z")), equal), 0, (2, 0, 1)))
    [(1, [('a', 'b')]), (2, [('c', 'd')])]
    """
    remaining = [number for number in order if number != start]
    joined = {start}
    while remaining:
        number = next((candidate for candidate in remaining if connecting(join, joined, candidate)), None)
        if number is None:
            raise ValueError(f"no equality connects input {remaining[0]} of the join with the others")
        remaining.remove(number)
        yield number, connecting(join, joined, number)
        joined.add(number)


def chosen_order(join: Join, statistics: Sequence[InputStatistics], counts: KeyCounts | None = None) -> tuple[int, ...]:
    """Return the cheapest order of a join's inputs, as their numbers.

    ``counts`` has the rows of each key, for inputs that are named by their numbers, if they are known; the cost then needs no
    assumption about the distribution of values.
    """
    classes = equality_classes(join)
    inputs = [
        JoinInput(
            name=str(number),
            rate=figures.arrived,
            lifetime=1,
            distinct={classes[number][column]: _values(count, figures) for column, count in figures.distinct.items()},
            rows=figures.window,
        )
        for number, figures in enumerate(statistics)
    ]
    cost = batch_cost(1) if counts is None else counts.cost
    if len(inputs) <= _ALL_ORDERS_UP_TO:
        order = min(all_costs(inputs, cost), key=lambda costed: costed[1])[0]
    else:
        order = (best_order(inputs, cost) if counts is None else best_order(inputs, cost, counts.matches)).order
    return tuple(int(join_input.name) for join_input in order)


def _values(distinct: int, statistics: InputStatistics) -> int:
    """Return the distinct values in the window: as many as in the batch, unless nearly all rows of the batch differ."""
    if statistics.arrived == 0 or distinct < _MOSTLY_DIFFERENT * statistics.arrived:
        return distinct
    return max(distinct, statistics.window * distinct // statistics.arrived)
