"""The definition of what a view answers: a one-time relational query over the rows that are live.

An expression is a function from the live values of each source to a bag of values; it knows nothing of time, which only
:func:`snapshot` does (Def. 2.1; update-patterns sheet, 1.3). Everything else in this package, and every view of the
warehouse, has to agree with it at every instant.

>>> from tests.reference.engine.tuples import Row
>>> sources = {"w1": [Row(1, ("a",), 1, 11), Row(2, ("b",), 3, 13)], "w2": [Row(3, ("a",), 4, 14)]}
>>> query = except_all(scan("w1"), scan("w2"))
>>> [dict(snapshot(query, sources, tau)) for tau in (1, 3, 4)]
[{('a',): 1}, {('a',): 1, ('b',): 1}, {('b',): 1}]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tests.reference.engine.tuples import Key, Value, bag, first, live_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tests.reference.engine.aggregates import Measure
    from tests.reference.engine.tuples import Row

__all__ = [
    "Expression",
    "anti_join",
    "distinct",
    "except_all",
    "group",
    "intersect",
    "join",
    "matches",
    "outer_join",
    "project",
    "scan",
    "select",
    "semi_join",
    "snapshot",
    "top",
    "union",
]

Live: TypeAlias = "Mapping[str, Counter[Value]]"
"""The bag of live values of each source."""

Expression: TypeAlias = "Callable[[Live], Counter[Value]]"
"""A relational query."""

On: TypeAlias = "Callable[[Value, Value], bool]"
"""A join condition on a left and a right value."""


def snapshot(expression: Expression, sources: Mapping[str, Iterable[Row]], tau: int) -> Counter[Value]:
    """The answer at an instant: the query over the rows of each source that are live then."""
    return expression({name: bag(live_rows(rows, tau)) for name, rows in sources.items()})


def matches(left: Key = first, right: Key = first) -> On:
    """Return the condition that two keys are equal; null matches nothing.

    >>> on = matches()
    >>> on(("a", 1), ("a", 2)), on(("a",), ("b",)), on((None,), (None,))
    (True, False, False)
    """
    return lambda left_value, right_value: left(left_value) is not None and left(left_value) == right(right_value)


def scan(source: str) -> Expression:
    """The live rows of a source."""
    return lambda live: live[source]


def select(expression: Expression, condition: Callable[[Value], bool]) -> Expression:
    """``WHERE``."""
    return lambda live: Counter({value: n for value, n in expression(live).items() if condition(value)})


def project(expression: Expression, columns: Callable[[Value], Value]) -> Expression:
    """``SELECT``, duplicates kept."""
    return lambda live: Counter(columns(value) for value in expression(live).elements())


def union(*expressions: Expression) -> Expression:
    """``UNION ALL``."""
    return lambda live: sum((expression(live) for expression in expressions), Counter())


def join(left: Expression, right: Expression, on: On) -> Expression:
    """Inner join: the columns of both."""

    def joined(live: Live) -> Counter[Value]:
        result: Counter[Value] = Counter()
        for left_value, n in left(live).items():
            for right_value, m in right(live).items():
                if on(left_value, right_value):
                    result[left_value + right_value] += n * m
        return result

    return joined


def distinct(expression: Expression) -> Expression:
    """``SELECT DISTINCT``."""
    return lambda live: Counter(set(expression(live)))


def except_all(left: Expression, right: Expression) -> Expression:
    """``EXCEPT ALL``: bag difference."""
    return lambda live: left(live) - right(live)


def intersect(left: Expression, right: Expression) -> Expression:
    """``INTERSECT``: the values on both sides, each once."""
    return lambda live: Counter(set(left(live)) & set(right(live)))


def semi_join(left: Expression, right: Expression, on: On) -> Expression:
    """``EXISTS``: the left rows with a partner."""
    return _filtered(left, right, on, wanted=True)


def anti_join(left: Expression, right: Expression, on: On) -> Expression:
    """``NOT EXISTS``: the left rows without a partner."""
    return _filtered(left, right, on, wanted=False)


def outer_join(
    left: Expression,
    right: Expression,
    on: On,
    *,
    kind: Literal["left", "right", "full"],
    widths: tuple[int, int],
) -> Expression:
    """Outer join: the matches, and rows without a partner padded with nulls.

    Parameters
    ----------
    left, right
        The inputs.
    on
        The join condition.
    kind
        The side or sides of which all rows are kept.
    widths
        Columns of the left and of the right input, for padding.

    """
    parts = [join(left, right, on)]
    if kind in {"left", "full"}:
        parts.append(project(anti_join(left, right, on), lambda value: value + (None,) * widths[1]))
    if kind in {"right", "full"}:
        lonely = anti_join(right, left, lambda right_value, left_value: on(left_value, right_value))
        parts.append(project(lonely, lambda value: (None,) * widths[0] + value))
    return union(*parts)


def group(expression: Expression, by: Callable[[Value], Value] | None, measures: Sequence[Measure]) -> Expression:
    """``GROUP BY``: the grouping columns, then the aggregates; without grouping one row, also of no rows."""

    def grouped(live: Live) -> Counter[Value]:
        groups: defaultdict[Value, list[Value]] = defaultdict(list)
        if by is None:
            groups[()] = []
        for value in expression(live).elements():
            groups[by(value) if by else ()].append(value)
        return Counter((*key, *(measure(values) for measure in measures)) for key, values in groups.items())

    return grouped


def top(expression: Expression, k: int, order: Callable[[Value], Any], by: Callable[[Value], Value] | None = None) -> Expression:
    """``ORDER BY order LIMIT k``, or the first k of each group; ties in the order of the whole value.

    Parameters
    ----------
    expression
        The input.
    k
        Rows to keep.
    order
        What rows are sorted by, ascending; values of equal order must be comparable.
    by
        The grouping; none: one group.

    """

    def ranked(live: Live) -> Counter[Value]:
        groups: defaultdict[Value, list[Value]] = defaultdict(list)
        for value in expression(live).elements():
            groups[by(value) if by else ()].append(value)
        return Counter(
            value for values in groups.values() for value in sorted(values, key=lambda value: (order(value), value))[:k]
        )

    return ranked


def _filtered(left: Expression, right: Expression, on: On, *, wanted: bool) -> Expression:
    def filtered(live: Live) -> Counter[Value]:
        partners = right(live)
        return Counter({value: n for value, n in left(live).items() if any(on(value, partner) for partner in partners) == wanted})

    return filtered
