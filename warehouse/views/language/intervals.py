"""Constant day-time intervals of Spark SQL as microseconds."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.errors import SqlglotError

from warehouse.time import DAY, HOUR, MICROSECOND, MINUTE, SECOND
from warehouse.views.language.dialect import parse_query
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["interval_of", "microseconds"]

_UNITS = {
    "MICROSECOND": MICROSECOND,
    "MILLISECOND": 1000 * MICROSECOND,
    "SECOND": SECOND,
    "MINUTE": MINUTE,
    "HOUR": HOUR,
    "DAY": DAY,
    "WEEK": 7 * DAY,
}
_ORDER = ("DAY", "HOUR", "MINUTE", "SECOND")
_PARTS = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def interval_of(sql: str) -> int | None:
    """Return the microseconds of a written interval; None if it is no interval, or has units above days.

    >>> interval_of("INTERVAL 1 HOUR"), interval_of("INTERVAL '1 02:30:00' DAY TO SECOND"), interval_of("INTERVAL 1 MONTH")
    (3600000000, 95400000000, None)
    """
    try:
        tree = parse_query(f"SELECT {sql}")
    except (RefusedError, SqlglotError):
        return None
    expressions: Sequence[exp.Expr] = tree.expressions
    return microseconds(expressions[0]) if len(expressions) == 1 else None


def microseconds(node: exp.Expr) -> int | None:
    """Return the microseconds of a constant interval, or None."""
    match node:
        case exp.Paren():
            return microseconds(node.this)
        case exp.Add():
            left, right = microseconds(node.this), microseconds(node.expression)
            return None if left is None or right is None else left + right
        case exp.Interval():
            return _single(node)
        case _:
            return None


def _single(node: exp.Interval) -> int | None:
    value, unit = node.this, node.args.get("unit")
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        literal, sign = value.this.name, -1
    elif isinstance(value, exp.Literal):
        literal, sign = value.name, 1
    else:
        return None
    if unit is None:
        return _listed(literal, sign)
    if isinstance(unit, exp.IntervalSpan):
        return _spanned(literal.strip(), _unit(unit.this.name), _unit(unit.expression.name), sign)
    scale = _UNITS.get(_unit(unit.name))
    return None if scale is None else _scaled(literal, scale, sign)


def _unit(word: str) -> str:
    return word.upper().removesuffix("S")


def _scaled(number: str, scale: int, sign: int) -> int | None:
    try:
        exact = Decimal(number.strip()) * scale * sign
    except InvalidOperation:
        return None
    return int(exact) if exact == exact.to_integral_value() else None


def _listed(literal: str, sign: int) -> int | None:
    """Return the microseconds of a literal such as ``'1 hour 30 minutes'``."""
    body = re.sub(r"^\s*interval\b", "", literal, flags=re.IGNORECASE).strip()
    parts = _PARTS.findall(body)
    if not parts or _PARTS.sub("", body):
        return None
    amounts = [_scaled(number, _UNITS.get(_unit(unit), 0), sign) for number, unit in parts]
    units_known = all(_unit(unit) in _UNITS for _, unit in parts)
    return sum(amount for amount in amounts if amount is not None) if units_known and None not in amounts else None


def _spanned(literal: str, first: str, last: str, sign: int) -> int | None:
    """Return the microseconds of a literal such as ``'1 02:03:04.5' DAY TO SECOND``, and of shorter spans."""
    if first not in _ORDER or last not in _ORDER or _ORDER.index(first) >= _ORDER.index(last):
        return None
    if literal[:1] in {"+", "-"}:
        sign = -sign if literal[0] == "-" else sign
        literal = literal[1:]
    units = _ORDER[_ORDER.index(first) : _ORDER.index(last) + 1]
    numbers = re.split(r"[ :]+", literal)
    if len(numbers) != len(units) or not all(re.fullmatch(r"\d+(\.\d+)?", number) for number in numbers):
        return None
    amounts = [_scaled(number, _UNITS[unit], sign) for number, unit in zip(numbers, units, strict=True)]
    return sum(amount for amount in amounts if amount is not None) if None not in amounts else None
