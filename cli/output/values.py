"""How a value of the warehouse is written: one rule per type, the same in every text format (DESIGN 8).

Timestamps are ``YYYY-MM-DDTHH:MM:SS[.ffffff]Z``, dates ``YYYY-MM-DD``, decimals strings, integers beyond 64 bits
strings, NaN and infinities null, binary base64. Types are DuckDB's; all times are UTC.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64encode
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Convert", "converter", "csv_field", "encode_json", "plain", "text"]

Convert = "Callable[[object], object]"

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_FLOAT_DIGITS = range(6, 10)
_DISTANT_INSTANT = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( \(BC\))?(?: (\d\d:\d\d:\d\d(?:\.\d+)?)(?:[+-]00(?::00)?)?)?")
_NEEDS_QUOTES = re.compile(r'[",\r\n]')
_INTEGERS = frozenset(sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT"))
_PLAIN_TYPES = _INTEGERS | {"BOOLEAN", "VARCHAR", "JSON", "BIT"}

encode_json = msgspec.json.Encoder().encode
"""The JSON bytes of a value that :func:`plain` returned."""


def plain(value: object) -> object:
    """Return the value of null, booleans, 64-bit integers, finite floats, strings, lists and string-keyed dicts.

    >>> plain([Decimal("1.50"), float("nan"), b"abc", 2**64])
    ['1.50', None, 'YWJj', '18446744073709551616']
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if _SMALLEST <= value <= _LARGEST else str(value)
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return _instant(value)
        case date() | time():
            return value.isoformat()
        case Decimal():
            return format(value, "f") if value.is_finite() else None
        case bytes() | bytearray() | memoryview():
            return b64encode(value).decode()
        case timedelta():
            return str(msgspec.to_builtins(value))
        case dict():
            return {_name(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return str(value)


def converter(sql_type: str) -> Callable[[object], object] | None:
    """Return the function that makes values of a DuckDB type plain, or None if they are plain already."""
    if sql_type in _PLAIN_TYPES:
        return None
    if sql_type == "FLOAT":
        return _shortest_double
    if sql_type == "DATE" or sql_type.startswith("TIMESTAMP"):
        return _date_or_timestamp
    return plain


def text(value: object) -> str:
    """Return the text of a plain value that is not null; lists and structs are JSON."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case list() | dict():
            return encode_json(value).decode()
        case _:
            return str(value)


def csv_field(value: object) -> str:
    """Return a plain value as a field of RFC 4180: null empty, the empty string ``""``.

    >>> csv_field(None), csv_field(""), csv_field('a"b'), csv_field(7)
    ('', '""', '"a""b"', '7')
    """
    if value is None:
        return ""
    field = text(value)
    if not field or _NEEDS_QUOTES.search(field):
        return '"' + field.replace('"', '""') + '"'
    return field


def _name(key: object) -> str:
    name = plain(key)
    return "null" if name is None else text(name)


def _instant(value: datetime) -> str:
    utc = value.astimezone(UTC) if value.tzinfo else value
    return utc.replace(tzinfo=None).isoformat() + "Z"


def _shortest_double(value: object) -> object:
    """Return the shortest double that is this 32-bit float: 0.1 stays 0.1."""
    if not isinstance(value, float):
        return plain(value)
    if not math.isfinite(value):
        return None
    bits = struct.pack("f", value)
    for digits in _FLOAT_DIGITS:
        short = float(f"{value:.{digits}g}")
        if struct.pack("f", short) == bits:
            return short
    return value


def _date_or_timestamp(value: object) -> object:
    """Return a date or timestamp; DuckDB hands over those outside the years 1 to 9999 as text."""
    if isinstance(value, str) and (match := _DISTANT_INSTANT.fullmatch(value)):
        year, month, day, before, clock = match.groups()
        number = 1 - int(year) if before else int(year)
        # ISO 8601 signs years of more than four digits and those before year 0
        signed = f"{number:+05d}" if number < 0 or len(year) > 4 else f"{number:04d}"  # noqa: PLR2004 - digits
        return f"{signed}-{month}-{day}" + (f"T{clock}Z" if clock else "")
    return plain(value)
