"""Temporal functions as plain expressions over the bounds of intervals (temporal-coalescing sheet, section 9).

An interval is half-open, ``[from, to)``. It is written as ``valid(from, to)``, as the alias of a table with the columns
``valid_from`` and ``valid_to`` (or as a structure of these fields), or as ``interval_intersect`` of intervals. An interval whose
end is not after its start is empty: its duration is 0, every predicate of it is false, it has no relation to another, and an
empty intersection is null. Results that depend on a null bound are null.

Both engines compute the same plain expressions, so labels, lifetimes and plans of views only see columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import reduce
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.time import DAY, HOUR, MICROSECOND, MINUTE, SECOND
from warehouse.views.language.dialect import as_written, parse_query, text
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.intervals import microseconds

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BOUNDS", "DOTTED", "FUNCTIONS", "PREDICATES", "SPARK", "Engine", "called", "spoken_calls", "with_plain_intervals"]

BOUNDS = ("valid_from", "valid_to")
"""The columns, or fields, that an interval has."""
PREDICATES = ("interval_overlaps", "interval_contains", "interval_before", "interval_after")
_INTERVALS = ("valid", "interval_intersect")
FUNCTIONS = frozenset({*_INTERVALS, *PREDICATES, "duration", "interval_relation"})
"""The temporal functions, in lower case."""
DOTTED = r"(?:[A-Za-z_]\w*|\"[^\"]+\"|`[^`]+`)(?:\s*\.\s*(?:[A-Za-z_]\w*|\"[^\"]+\"|`[^`]+`))*"
"""A name as it is written, perhaps of several parts."""
_UNITS = {
    "microsecond": MICROSECOND, "millisecond": 1000 * MICROSECOND, "second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY,
    "week": 7 * DAY,
}  # fmt: skip
_AN_INTERVAL = "valid(from, to), the alias of a table with valid_from and valid_to, or interval_intersect(x, y)"
_ATOMS = (exp.Column, exp.Literal, exp.Paren, exp.Anonymous, exp.Dot, exp.Cast, exp.Case, exp.Var)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


@dataclass(frozen=True)
class Engine:
    """The parts of the SQL that differ between the engines.

    ``micros`` gives the function that makes microseconds of an instant; ``length`` makes an interval of start, end; ``row`` a
    structure of named values.
    """

    micros: str
    length: Callable[[exp.Expr, exp.Expr], exp.Expr]
    row: Callable[[tuple[exp.Expr, exp.Expr]], exp.Expr]


def _spark_row(values: tuple[exp.Expr, exp.Expr]) -> exp.Expr:
    parts = [part for name, value in zip(BOUNDS, values, strict=True) for part in (exp.Literal.string(name), value)]
    return _call("named_struct", *parts)


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=list(arguments))


SPARK = Engine("unix_micros", lambda start, end: exp.Paren(this=exp.Sub(this=end, expression=start)), _spark_row)


@dataclass(frozen=True)
class _Interval:
    """The intersection of intervals with these starts and ends; most often there is one interval."""

    starts: tuple[exp.Expr, ...]
    ends: tuple[exp.Expr, ...]

    @property
    def start(self) -> exp.Expr:
        """Its start; for an intersection, only if it is not empty."""
        return _copied(self.starts[0]) if len(self.starts) == 1 else _call("greatest", *map(_copied, self.starts))

    @property
    def end(self) -> exp.Expr:
        """Its end; for an intersection, only if it is not empty."""
        return _copied(self.ends[0]) if len(self.ends) == 1 else _call("least", *map(_copied, self.ends))

    @property
    def filled(self) -> list[exp.Expr]:
        """Return the conditions under which it is not empty: every part starts before each part ends."""
        return [_compared(exp.LT, start, end) for start, end in product(self.starts, self.ends)]

    def where_filled(self, value: exp.Expr) -> exp.Expr:
        """Return a value of the interval, null where the interval is empty."""
        return _chosen([(_all(self.filled), value)])


def with_plain_intervals(query: exp.Query) -> exp.Query:
    """Return a view's query without calls of temporal functions.

    Comparisons of a duration with a constant compare whole microseconds, before anything is rounded.

    Raises
    ------
    RefusedError
        For wrong arguments.

    Examples
    --------
    >>> from warehouse.views.language.dialect import parse_query
    >>> text(with_plain_intervals(parse_query("SELECT k FROM a WHERE duration(valid(f, t)) >= INTERVAL 2 HOURS")).args["where"])
    'WHERE CASE WHEN f < t THEN unix_micros(t) - unix_micros(f) WHEN f >= t THEN CAST(0 AS BIGINT) END >= 7200000000'

    """
    if not any(_name(node) in FUNCTIONS for node in query.find_all(exp.Anonymous)):
        return query
    copy = query.copy()
    _Writer(SPARK).plain(copy)
    return copy


def spoken_calls(sql: str) -> tuple[tuple[str, str], ...]:
    """Return (expression, text) of each call of a temporal function in a view's query, the longest expression first.

    >>> spoken_calls("SELECT duration(valid(f, t), 'seconds') AS d FROM a")[0][1]
    "duration(valid(f, t), 'seconds')"
    """
    query = parse_query(sql)
    calls = [node for node in query.find_all(exp.Anonymous) if _name(node) in FUNCTIONS]
    outer = [node for node in calls if not _is_inner(node)]
    pairs = [(as_written(text(_Writer(SPARK).called(node.copy()))), as_written(text(node))) for node in outer]
    return tuple(sorted(dict(pairs).items(), key=lambda pair: -len(pair[0])))


def _is_inner(node: exp.Expr) -> bool:
    above = node.find_ancestor(exp.Anonymous)
    return above is not None and (_name(above) in FUNCTIONS or _is_inner(above))


def called(node: exp.Anonymous, engine: Engine) -> exp.Expr:
    """Return one call of a temporal function as a plain expression of an engine.

    Raises
    ------
    RefusedError
        For wrong arguments.

    """
    return _Writer(engine).called(node)


def _name(node: exp.Expr | None) -> str | None:
    return str(node.this).lower() if isinstance(node, exp.Anonymous) else None


@dataclass(frozen=True)
class _Writer:
    engine: Engine

    def plain(self, node: exp.Expr) -> exp.Expr:
        """Return a tree without calls; the nodes of the given tree are replaced."""
        match node:
            case exp.Anonymous() if _name(node) in FUNCTIONS:
                return self.called(node)
            case exp.Dot(this=inner, expression=field) if field.name.lower() in BOUNDS and _name(_bare(inner)) in _INTERVALS:
                interval = self.interval(inner)
                value = interval.start if field.name.lower() == BOUNDS[0] else interval.end
                return value if len(interval.starts) == 1 else interval.where_filled(value)
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.Between():
                self._count(node)
        for child in list(node.iter_expressions()):
            replacement = self.plain(child)
            if replacement is not child:
                child.replace(replacement)
        return node

    def called(self, node: exp.Anonymous) -> exp.Expr:
        """Return a call of a temporal function as a value."""
        match _name(node):
            case "duration":
                return self._duration(node)
            case "interval_relation":
                return _relation(*self._pair(node))
            case "interval_overlaps":
                first, second = self._pair(node)
                return _wrapped(_all(_both(first, second).filled))
            case "interval_contains":
                first, second = self._pair(node)
                inside = [_compared(exp.LTE, first.start, second.start), _compared(exp.LTE, second.end, first.end)]
                return _wrapped(_all([*inside, *first.filled, *second.filled]))
            case "interval_before" | "interval_after" as name:
                first, second = self._pair(node) if name == "interval_before" else reversed(self._pair(node))
                return _wrapped(_all([_compared(exp.LTE, first.end, second.start), *first.filled, *second.filled]))
            case _:
                interval = self.interval(node)
                row = self.engine.row((interval.start, interval.end))
                return row if len(interval.starts) == 1 else interval.where_filled(row)

    def interval(self, node: exp.Expr) -> _Interval:
        """Return an argument as an interval."""
        bare = _bare(node)
        match bare:
            case exp.Column():
                start, end = (_field(bare, name) for name in BOUNDS)
            case exp.Var() if re.fullmatch(DOTTED, bare.name):
                start, end = (exp.Var(this=f"{bare.name}.{name}") for name in BOUNDS)
            case exp.Anonymous(expressions=[_, _]) if _name(bare) == "interval_intersect":
                return _both(*self._pair(bare))
            case exp.Anonymous(expressions=[only]) if _name(bare) == "valid":
                return self.interval(only)
            case exp.Anonymous(expressions=[_, _]) if _name(bare) == "valid":
                start, end = (self.plain(argument.copy()) for argument in bare.expressions)
            case _:
                raise RefusedError(node, f"{text(node)} as an interval", _AN_INTERVAL)
        return _Interval((start,), (end,))

    def _pair(self, node: exp.Anonymous) -> tuple[_Interval, _Interval]:
        if len(node.expressions) != 2:  # noqa: PLR2004 - two intervals
            found = f"{_name(node)}() with {len(node.expressions)} arguments"
            raise RefusedError(node, found, f"{_name(node)}(x, y), each {_AN_INTERVAL}")
        first, second = (self.interval(argument) for argument in node.expressions)
        return first, second

    def _duration(self, node: exp.Anonymous) -> exp.Expr:
        interval, unit = self._measured(node)
        if unit is None:
            length = self.engine.length
            return _by_length(interval, length(interval.start, interval.end), length(interval.start, interval.start))
        return exp.Paren(this=exp.Div(this=_double(self._micros(interval)), expression=_double(_whole(unit))))

    def _measured(self, node: exp.Anonymous) -> tuple[_Interval, int | None]:
        """Return the interval of a duration, and the microseconds of the unit in which it is counted."""
        interval, *units = node.expressions or [None]
        if interval is None or len(units) > 1:
            found = f"duration() with {len(node.expressions)} arguments"
            raise RefusedError(node, found, f"duration(x) or duration(x, unit), x being {_AN_INTERVAL}")
        if not units:
            return self.interval(interval), None
        word = _bare(units[0]).name
        unit = _UNITS.get(word.strip("'").lower().removesuffix("s"))
        if unit is None:
            allowed = f"a unit that is always of one length: {', '.join(_UNITS)}"
            raise RefusedError(node, f"the unit {text(units[0])} of a duration", allowed)
        return self.interval(interval), unit

    def _micros(self, interval: _Interval) -> exp.Expr:
        """Return the microseconds of an interval."""
        start, end = (_call(self.engine.micros, bound) for bound in (interval.start, interval.end))
        zero = exp.Cast(this=exp.Literal.number(0), to=exp.DataType.build("bigint"))
        return _by_length(interval, exp.Sub(this=end, expression=start), zero)

    def _count(self, node: exp.Expr) -> None:
        """Compare durations as microseconds if the other side is a duration or a constant."""
        keys = ("this", "low", "high") if isinstance(node, exp.Between) else ("this", "expression")
        sides = {key: node.args[key] for key in keys}
        bare = {key: _bare(side) for key, side in sides.items()}
        measured = {
            key: self._measured(side)
            for key, side in bare.items()
            if isinstance(side, exp.Anonymous) and _name(side) == "duration"
        }
        units = {unit for _, unit in measured.values()}
        if len(units) != 1:
            return
        unit = units.pop()
        constants = {key: _constant(side, unit) for key, side in sides.items() if key not in measured}
        if None in constants.values():
            return
        for key in keys:
            micros = self._micros(measured[key][0]) if key in measured else constants[key]
            sides[key].replace(micros)


def _by_length(interval: _Interval, length: exp.Expr, empty: exp.Expr) -> exp.Expr:
    """Return a length if an interval is not empty; an empty intersection has no length."""
    choices = [(_all(interval.filled), length)]
    if len(interval.starts) == 1:
        choices.append((_compared(exp.GTE, interval.start, interval.end), empty))
    return _chosen(choices)


def _constant(node: exp.Expr, unit: int | None) -> exp.Expr | None:
    """Return a constant as microseconds: an interval, or a number of units."""
    if unit is None:
        micros = microseconds(node)
        return None if micros is None else _whole(micros)
    bare, sign = _bare(node), 1
    if isinstance(bare, exp.Neg):
        bare, sign = _bare(bare.this), -1
    if not isinstance(bare, exp.Literal) or bare.is_string:
        return None
    try:
        exact = sign * unit * Decimal(bare.name)
    except InvalidOperation:
        return None
    return _number(exact) if abs(exact) < 2**63 else None


def _number(value: Decimal) -> exp.Expr:
    digits = format(value, "f")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    literal = exp.Literal.number(digits.lstrip("-"))
    return exp.Neg(this=literal) if value < 0 else literal


def _whole(value: int) -> exp.Expr:
    return _number(Decimal(value))


def _double(node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build("double"))


def _relation(first: _Interval, second: _Interval) -> exp.Expr:
    """Return the name of Allen's relation: the first relation that holds, in this order."""
    a, b, c, d = first.start, first.end, second.start, second.end

    def is_(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
        return _compared(kind, left, right)

    same_start, same_end = is_(exp.EQ, a, c), is_(exp.EQ, b, d)
    names = [
        (is_(exp.LT, b, c), "before"),
        (is_(exp.EQ, b, c), "meets"),
        (is_(exp.GT, a, d), "after"),
        (is_(exp.EQ, a, d), "met-by"),
        (_all([same_start, same_end]), "equals"),
        (_all([same_start, is_(exp.LT, b, d)]), "starts"),
        (same_start, "started-by"),
        (_all([same_end, is_(exp.GT, a, c)]), "finishes"),
        (same_end, "finished-by"),
        (_all([is_(exp.LT, a, c), is_(exp.GT, b, d)]), "contains"),
        (_all([is_(exp.GT, a, c), is_(exp.LT, b, d)]), "during"),
        (is_(exp.LT, a, c), "overlaps"),
        (is_(exp.GT, a, c), "overlapped-by"),
    ]
    name = _chosen([(condition, exp.Literal.string(word)) for condition, word in names])
    return _chosen([(_all([*first.filled, *second.filled]), name)])


def _both(first: _Interval, second: _Interval) -> _Interval:
    return _Interval((*first.starts, *second.starts), (*first.ends, *second.ends))


def _field(column: exp.Column, name: str) -> exp.Expr:
    """Return a field of the column that a name means, or the column of that name if the name means a table."""
    *outer, inner = [part.copy() for part in column.parts]
    identifier = exp.to_identifier(name)
    identifier.meta.update(inner.meta)
    parts = [identifier, inner, *reversed(outer)]
    keys = ("this", "table", "db", "catalog")
    if len(parts) > len(keys):
        raise RefusedError(column, f"{text(column)} as an interval", _AN_INTERVAL)
    return exp.Column(**dict(zip(keys, parts, strict=False)))


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _copied(node: exp.Expr) -> exp.Expr:
    copy = node.copy()
    return copy if isinstance(copy, _ATOMS) else exp.Paren(this=copy)


def _compared(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return kind(this=_copied(left), expression=_copied(right))


def _all(conditions: list[exp.Expr]) -> exp.Expr:
    return reduce(lambda left, right: exp.And(this=left, expression=right), [condition.copy() for condition in conditions])


def _wrapped(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node)


def _chosen(choices: list[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy()) for condition, value in choices])
