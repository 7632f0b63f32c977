"""Search keys: from text or Python values to values that compare as the column does, and on to query parameters.

Types are DuckDB's names. Internally, a timestamp is an integer of microseconds; other values have their Python types.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeAlias

from warehouse.catalog.spelling import nearest
from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving.pruning import KeyRange, Keys
from warehouse.time import parse_instant, to_datetime, to_micros

__all__ = ["KeyColumn", "key_range", "keys_of", "parse_composite", "parse_key", "to_parameter"]

Key: TypeAlias = "tuple[Any, ...]"

TIMESTAMP = "TIMESTAMP WITH TIME ZONE"
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_SPARK_NAMES = {
    "STRING": "VARCHAR",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "INT": "INTEGER",
    "LONG": "BIGINT",
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
}
_EXACT = Context(prec=80)
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)(?:\((\d+)(?:,\s*(\d+))?\))?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class KeyColumn:
    """A column of a search key and its DuckDB type."""

    name: str
    type: str


def parse_key(text: str, sql_type: str) -> Any:  # noqa: ANN401 - any key value
    """Return the value of a text in a column of a type (DuckDB's or Spark SQL's name).

    Raises
    ------
    UsageError
        When the text is no value of the type; the message says what is allowed.

    Examples
    --------
    >>> parse_key("007", "VARCHAR"), parse_key("007", "BIGINT"), parse_key("2013-01-01", "DATE")
    ('007', 7, datetime.date(2013, 1, 1))
    """
    kind = _canonical(sql_type)
    if kind == "VARCHAR":
        return text
    value = _parsed(text.strip(), kind)
    if value is None:
        raise UsageError(f'"{text}" is no {kind}; allowed: {_allowed(kind)}')
    _checked(value, KeyColumn("key", kind))
    return value


def _parsed(text: str, kind: str) -> Any:  # noqa: ANN401 - any key value
    """Return the value of a text, or None if it is not of the type."""
    try:
        if kind in _BITS:
            return int(text) if _INTEGER.fullmatch(text) else None
        if kind == "BOOLEAN":
            return {"true": True, "false": False}.get(text.lower())
        if kind == "DATE":
            return date.fromisoformat(text) if _DATE.fullmatch(text) else None
        if kind == TIMESTAMP:
            return to_datetime(parse_instant(text))
        return Decimal(text) if _DECIMAL.fullmatch(kind) and _NUMBER.fullmatch(text) else None
    except (ValueError, InvalidOperation, OverflowError):
        return None


def parse_composite(given: str | Sequence[str], columns: Sequence[KeyColumn]) -> Key:
    """Return the key in a JSON array or in a list of ``column=value`` items; fewer parts are a prefix.

    Raises
    ------
    UsageError
        When it is no key; the message says what is allowed.
    UnknownNameError
        When an item names a column that is not in the key.

    Examples
    --------
    >>> parse_composite('["a", 1]', [KeyColumn("x", "VARCHAR"), KeyColumn("n", "BIGINT")])
    ('a', 1)
    >>> parse_composite(["n=1", "x=a"], [KeyColumn("x", "VARCHAR"), KeyColumn("n", "BIGINT")])
    ('a', 1)
    """
    parts = _array(given, columns) if isinstance(given, str) else _items(given, columns)
    return tuple(
        None if part is None else parse_key(part, column.type) for part, column in zip(parts, columns, strict=False)
    )


def _array(text: str, columns: Sequence[KeyColumn]) -> list[str | None]:
    try:
        parts = json.loads(text, parse_int=_Number, parse_float=_Number)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not 0 < len(parts) <= len(columns):
        raise UsageError(f"{text} is no key; allowed: a JSON array of 1 to {len(columns)} parts, {_described(columns)}")
    return [_part(part, column) for part, column in zip(parts, columns, strict=False)]


class _Number(str):
    """The digits of a JSON number, untouched."""

    __slots__ = ()


def _part(part: object, column: KeyColumn) -> str | None:
    if isinstance(part, bool):
        part = _Number("true" if part else "false")
    if isinstance(part, _Number) and _canonical(column.type) == "VARCHAR":
        raise UsageError(f'{part} stands for column "{column.name}", which holds text; quote it: "{part}"')
    if part is not None and not isinstance(part, str):
        raise UsageError(f"a part of a key is {json.dumps(part)}; allowed: texts, numbers, true, false, null")
    return None if part is None else str(part)


def _items(items: Sequence[str], columns: Sequence[KeyColumn]) -> list[str]:
    values: dict[str, str] = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign:
            raise UsageError(f'"{item}" is not column=value; the search key is {_described(columns)}')
        column = _column(name.strip(), columns)
        if column in values:
            raise UsageError(f'column "{column}" is given twice; give one value for each column')
        values[column] = value
    return _prefix(values, columns)


def _column(name: str, columns: Sequence[KeyColumn]) -> str:
    for column in columns:
        if column.name.lower() == name.lower():
            return column.name
    names = [column.name for column in columns]
    raise UnknownNameError("key column", name, names, nearest(name, names))


def _prefix(values: Mapping[str, Any], columns: Sequence[KeyColumn]) -> list[Any]:
    prefix = [column.name for column in columns][: len(values)]
    if not values or (missing := [name for name in prefix if name not in values]):
        fault = f'lacks "{missing[0]}"' if values else "is empty"
        raise UsageError(f"a key {fault}; allowed: the first columns of {_described(columns)}")
    return [values[name] for name in prefix]


def keys_of(given: Sequence[object], columns: Sequence[KeyColumn]) -> Keys:
    """Return distinct, sorted keys: scalars, tuples or lists of parts, or mappings of column to part.

    Raises
    ------
    UsageError
        When a value is not of its column's type.

    """
    distinct = {_key(key, columns) for key in given}
    return Keys(tuple(sorted(distinct, key=lambda key: [(part is not None, part) for part in key])))


def key_range(low: object, high: object, columns: Sequence[KeyColumn]) -> KeyRange:
    """Return a half-open range; a bound of None is open."""
    bounds = [None if bound is None else _key(bound, columns) for bound in (low, high)]
    if any(bound and None in bound for bound in bounds):
        raise UsageError("a range cannot begin or end at null; use null to find null keys")
    return KeyRange(*bounds)


def _key(key: object, columns: Sequence[KeyColumn]) -> Key:
    parts: Sequence[object]
    if isinstance(key, Mapping):
        part_of_column = {_column(str(name), columns): value for name, value in key.items()}
        parts = _prefix(part_of_column, columns)
    else:
        parts = key if isinstance(key, (tuple, list)) else (key,)
    if not 0 < len(parts) <= len(columns):
        raise UsageError(f"a key of {len(parts)} parts; allowed: 1 to {len(columns)} of {_described(columns)}")
    return tuple(_checked(part, column) for part, column in zip(parts, columns, strict=False))


def _checked(value: object, column: KeyColumn) -> Any:  # noqa: ANN401 - any comparable value
    """Return a value as it compares, if it is one of the column's type."""
    if value is None:
        return None
    kind = _canonical(column.type)
    comparable = _comparable(value, kind)
    if comparable is None:
        raise UsageError(f'{value!r} is no key for column "{column.name}" ({kind}); allowed: {_allowed(kind)}')
    return comparable


def _comparable(value: object, kind: str) -> Any:  # noqa: ANN401 - one case per type
    match value:
        case bool():
            return value if kind == "BOOLEAN" else None
        case int() if kind in _BITS:
            limit = 1 << (_BITS[kind] - 1)
            return value if -limit <= value < limit else None
        case int() | Decimal():
            return _decimal(Decimal(value), kind)
        case str():
            return value if kind == "VARCHAR" and _encodes(value) else None
        case datetime():
            return to_micros(value) if kind == TIMESTAMP else None
        case date():
            return value if kind == "DATE" else None
        case _:
            return None


def _decimal(value: Decimal, kind: str) -> Decimal | None:
    """Return a decimal with the column's decimals, if the column can hold it without rounding."""
    match = _DECIMAL.fullmatch(kind)
    if not match or not value.is_finite():
        return None
    precision, scale = int(match[1] or 18), int(match[2] or (0 if match[1] else 3))
    _, digits, exponent = value.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    first, last = len(digits) + int(exponent), int(exponent) + zeros
    if value and (-last > scale or first > precision - scale):
        return None
    return (value or Decimal()).quantize(Decimal(1).scaleb(-scale), context=_EXACT)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def to_parameter(part: Any, column: KeyColumn) -> Any:  # noqa: ANN401 - any key value
    """Return the query parameter for a part of a key; decimals become text, which DuckDB casts without rounding."""
    kind = _canonical(column.type)
    if part is None:
        return None
    if kind == TIMESTAMP:
        return to_datetime(part)
    return format(part, "f") if isinstance(part, Decimal) else part


def _canonical(sql_type: str) -> str:
    upper = sql_type.strip().upper()
    return _SPARK_NAMES.get(upper, upper)


def _described(columns: Sequence[KeyColumn]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)


def _allowed(kind: str) -> str:
    if kind in _BITS:
        limit = 1 << (_BITS[kind] - 1)
        return f"integers from {-limit} to {limit - 1}"
    if match := _DECIMAL.fullmatch(kind):
        return f"numbers with at most {match[2] or 0} decimals and {match[1] or 18} digits, such as 1.5"
    return {
        "VARCHAR": "texts",
        "BOOLEAN": "true, false",
        "DATE": "dates such as 2013-01-31",
        TIMESTAMP: "instants such as 2013-01-31T12:00:00Z (without an offset: UTC)",
    }.get(kind, "values of the types string, integer, date, timestamp, boolean, decimal")
