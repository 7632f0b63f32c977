"""Grouping: one row for each group with live rows, replaced whenever one of its aggregates changes.

The operator emits (-old, +new) pairs, at most one for a group and instant; external results are the current rows, internal
ones every row that was ever current (update-patterns sheet, 2.3, 4.1, A8; TV-9). Nulls are left out of every aggregate of a
column, and the aggregate of nothing is null, except for counts, which are 0.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.reference.engine.changes import Change, minus, plus, timeline
from tests.reference.engine.tuples import Row, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["Measure", "appended", "avg_of", "count", "count_of", "group_by", "max_of", "min_of", "prune_for_max", "sum_of"]

Measure: TypeAlias = "Callable[[Sequence[Value]], Any]"
"""An aggregate: from the values of a group to a column."""


# --- aggregates ---


def count(values: Sequence[Value]) -> int:
    """``count(*)``."""
    return len(values)


def count_of(column: int) -> Measure:
    """``count(column)``, by the number of the column from 0."""
    return lambda values: len(_known(values, column))


def sum_of(column: int) -> Measure:
    """``sum(column)``."""
    return lambda values: sum(_known(values, column)) if _known(values, column) else None


def min_of(column: int) -> Measure:
    """``min(column)``."""
    return lambda values: min(_known(values, column), default=None)


def max_of(column: int) -> Measure:
    """``max(column)``."""
    return lambda values: max(_known(values, column), default=None)


def avg_of(column: int) -> Measure:
    """``avg(column)``, as an exact fraction."""
    return lambda values: Fraction(sum(_known(values, column)), len(_known(values, column))) if _known(values, column) else None


def _known(values: Sequence[Value], column: int) -> list[Any]:
    return [value[column] for value in values if value[column] is not None]


# --- the operator ---


def group_by(changes: Sequence[Change], by: Callable[[Value], Value] | None, measures: Sequence[Measure]) -> list[Change]:
    """Group an event list; external answers are those of :func:`.changes.answer`.

    Parameters
    ----------
    changes
        Any event list.
    by
        The grouping columns; none: a single group, which keeps its row when it is empty, from the first event on.
    measures
        The aggregates, in the order of the columns that follow the grouping columns.

    """
    stored: list[Row] = []
    current: dict[Value, Row] = {}
    result: list[Change] = []
    for tick in timeline(changes):
        stored = [row for row in stored if row.exp > tick.now]
        for _, change in tick.changes:
            if change.sign > 0:
                stored.append(change.row)
            else:
                stored.remove(change.row)
        groups: defaultdict[Value, list[Value]] = defaultdict(list)
        if by is None:
            groups[()] = []
        for row in stored:
            groups[by(row.value) if by else ()].append(row.value)
        fresh = {key: (*key, *(measure(values) for measure in measures)) for key, values in groups.items()}
        for key, row in list(current.items()):
            if fresh.get(key) != row.value:
                result.append(minus(current.pop(key), tick.now))
        for key, value in fresh.items():
            if key not in current:
                current[key] = Row(key, value, tick.now)
                result.append(plus(current[key]))
    return result


def appended(changes: Iterable[Change]) -> list[Change]:
    """The output over internal windows: what was emitted stays, so results only grow (4.1)."""
    return [change for change in changes if change.sign > 0]


def prune_for_max(rows: Sequence[Row], column: int) -> list[Row]:
    """The rows that may still become the maximum: no larger value lives as long or longer (1.5).

    >>> rows = [Row(1, (75,), 1, 7), Row(2, (60,), 2, 8), Row(3, (73,), 4, 10), Row(4, (61,), 5, 11)]
    >>> [row.value[0] for row in prune_for_max(rows, 0)]
    [75, 73, 61]
    """
    return [
        row for row in rows if not any(other.value[column] > row.value[column] and other.exp >= row.exp for other in rows)
    ]
