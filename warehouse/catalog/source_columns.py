"""``[streams.NAME.columns]``: how a column is declared, its type and where in a file its values come from.

``client = "string"`` is a column that files call by its name. The long form says more: ``{ type = "string", from =
"id.orig_h" }`` takes another name of the file, ``expr`` calculates from several, ``format`` and ``timezone`` say how times
are written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import BeforeValidator

from warehouse.catalog.durations import DURATION
from warehouse.catalog.model import Column
from warehouse.catalog.spelling import FaultError, as_written, nearest
from warehouse.catalog.types import canonical, parse_type

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EPOCH_FORMATS", "ColumnValue", "DeclaredColumn", "SourceValue", "format_fault", "time_zone"]

EPOCH_FORMATS = {
    "epoch_seconds": 1_000_000,
    "epoch_milliseconds": 1_000,
    "epoch_microseconds": 1,
    "epoch_nanoseconds": 0.001,
}
"""Numbers since 1970 by their unit, with the microseconds of one."""
_KEYS = ("type", "from", "expr", "format", "timezone")
_SOURCE_KEYS = ("type", "format", "timezone")
_TIMES = ("timestamp", "date")
_NUMBERS = ("int", "bigint", "float", "double")
_FORMAT = f'{", ".join(EPOCH_FORMATS)}, a pattern such as "dd.MM.yyyy HH:mm:ss", or a list of these'
_OF_NUMBERS = f'"{DURATION}": text such as "5m", "1h 30m", "PT5M" or "00:05:00" is read as seconds'
_LETTERS = {"y": 6, "u": 6, "M": 4, "L": 4, "d": 2, "D": 3, "H": 2, "k": 2, "K": 2, "h": 2, "m": 2, "s": 2, "S": 9}
_LETTERS |= {"a": 1, "G": 4, "X": 5, "x": 5, "Z": 5, "z": 4, "V": 2, "O": 4}
"""Letters of Spark's patterns that it parses by, with how often each can follow itself."""
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_RUN = re.compile(r"([A-Za-z])\1*")
_MEANT = {"Y": "y (the year)", "w": "MM and dd", "E": "no weekday: it says nothing that the date does not"}
_MOST_FORMATS = 8
_MAX_FROM = 1000


@dataclass(frozen=True)
class DeclaredColumn:
    """A column without its name: its canonical type and, where declared, its source, expression, formats and time zone."""

    type: str
    source: str | None = None
    expr: str | None = None
    formats: tuple[str, ...] = ()
    timezone: str | None = None

    def named(self, name: str) -> Column:
        """Return the column of that name."""
        source = None if self.source == name else self.source
        return Column(name, self.type, source, self.expr, self.formats, self.timezone)


def format_fault(text: str) -> FaultError | None:
    """Return a fault if a text is no format of times, else None.

    >>> format_fault("dd.MM.yyyy HH:mm"), format_fault("epoch_seconds")
    (None, None)
    >>> str(format_fault("DD/MM/YYYY"))[:27]
    'the letter Y in the pattern'
    """
    if text in EPOCH_FORMATS or text == DURATION:
        return None
    if text.startswith("epoch") or not text.strip():
        return FaultError(f'the format "{text}"', _FORMAT, nearest(text, EPOCH_FORMATS))
    if "%" in text:
        return FaultError(f'the pattern "{text}"', f'{_FORMAT}; "%Y-%m-%d" is written "yyyy-MM-dd"')
    plain = _QUOTED.sub("", text)
    if "'" in plain:
        return FaultError(f'the pattern "{text}" with one quote alone', "quotes in pairs: 'T' is the letter T")
    runs = [(match[1], len(match[0])) for match in _RUN.finditer(plain)]
    strange = next((letter for letter, _ in runs if letter not in _LETTERS), None)
    if strange is not None:
        allowed = _MEANT.get(strange, f"letters of times ({' '.join(_LETTERS)}); other text in quotes, 'T'")
        return FaultError(f'the letter {strange} in the pattern "{text}"', allowed)
    long = next(((letter, times) for letter, times in runs if times > _LETTERS[letter]), None)
    if long is not None:
        return FaultError(f'{long[1]} times {long[0]} in the pattern "{text}"', f"at most {_LETTERS[long[0]]} of them")
    if any(sign in plain for sign in "#{}"):
        return FaultError(f'the pattern "{text}"', "no #, { or } outside of quotes")
    if plain.count("[") != plain.count("]"):
        return FaultError(f'the pattern "{text}"', "brackets in pairs: what stands in them may be missing")
    if not {letter for letter, _ in runs} & {"y", "u"}:
        return FaultError(f'the pattern "{text}" without a year', f'{_FORMAT}; the year is "yyyy" or "yy"')
    return None


def time_zone(value: object) -> str:
    """Return a time zone of the IANA database.

    Raises
    ------
    FaultError
        When there is no zone of that name.

    """
    allowed = 'a time zone of the IANA database, such as "UTC" or "Europe/Berlin"'
    if not isinstance(value, str):
        raise FaultError(as_written(value), allowed)
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise FaultError(as_written(value), allowed, nearest(value, available_timezones())) from None
    return value


def _column(value: object) -> DeclaredColumn:
    if isinstance(value, str):
        return DeclaredColumn(canonical(parse_type(value)))
    if not isinstance(value, dict):
        allowed = 'a Spark SQL type in quotes, such as "string", or { type = "string", from = "id.orig_h" }'
        raise FaultError(as_written(value), allowed)
    return _of_table(value, _KEYS)


def _source(value: object) -> DeclaredColumn:
    if isinstance(value, str):
        return DeclaredColumn(canonical(parse_type(value)))
    if not isinstance(value, dict):
        raise FaultError(as_written(value), 'a Spark SQL type in quotes, such as "array<double>"')
    return _of_table(value, _SOURCE_KEYS)


def _of_table(table: Mapping[str, Any], keys: tuple[str, ...]) -> DeclaredColumn:
    strange = next((key for key in table if key not in keys), None)
    if strange is not None:
        raise FaultError(f'the unknown key "{strange}"', ", ".join(keys), nearest(strange, keys))
    if not isinstance(table.get("type"), str):
        found = f"type = {as_written(table['type'])}" if "type" in table else "no type"
        raise FaultError(found, 'type = "string", or another Spark SQL type in quotes')
    kind = canonical(parse_type(table["type"]))
    source, expr = _text(table, "from"), _text(table, "expr")
    if source is not None and expr is not None:
        raise FaultError("both from and expr", "one of them: an expression names its source columns itself")
    if source is not None and len(source) > _MAX_FROM:
        raise FaultError(f"a from of {len(source)} characters", f"at most {_MAX_FROM}")
    formats = _formats(table["format"]) if "format" in table else ()
    timezone = time_zone(table["timezone"]) if "timezone" in table else None
    if DURATION in formats:
        _check_duration(kind, formats, expr)
    for key, present in (("format", formats and DURATION not in formats), ("timezone", timezone)):
        if present and key == "format" and _is_number(kind):
            raise FaultError(f"such a format with the type {kind}", f"{_OF_NUMBERS}; or the type timestamp or date")
        if present and kind not in _TIMES:
            raise FaultError(f"{key} with the type {kind}", f"{key} with the type timestamp or date; else no {key}")
        if present and expr is not None:
            raise FaultError(f"both {key} and expr", f"one of them: under `sources` {key} says how a source column is read")
    if timezone is not None and kind == "date":
        raise FaultError("timezone with the type date", "timezone with the type timestamp: a date is the same in every zone")
    return DeclaredColumn(kind, source, expr, formats, timezone)


def _is_number(kind: str) -> bool:
    return kind in _NUMBERS or kind.startswith("decimal(")


def _check_duration(kind: str, formats: tuple[str, ...], expr: str | None) -> None:
    if len(formats) > 1:
        raise FaultError(f'"{DURATION}" beside another format', f'format = "{DURATION}" alone')
    if not _is_number(kind):
        raise FaultError(f'format = "{DURATION}" with the type {kind}', "the type of the seconds: double or bigint")
    if expr is not None:
        raise FaultError("both format and expr", "one of them: under `sources` format says how a source column is read")


def _text(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if key in table and (not isinstance(value, str) or not value.strip()):
        expected = "a name of the file" if key == "from" else "an expression in Spark SQL"
        raise FaultError(f"{key} = {as_written(value)}", f"{expected}, in quotes")
    return value.strip() if key == "expr" and value is not None else value


def _formats(value: object) -> tuple[str, ...]:
    listed: list[Any] = value if isinstance(value, list) else [value]
    if not listed or len(listed) > _MOST_FORMATS or not all(isinstance(format_, str) for format_ in listed):
        raise FaultError(f"format = {as_written(value)}", f"{_FORMAT}, at most {_MOST_FORMATS}")
    for format_ in listed:
        if fault := format_fault(format_):
            raise fault
    return tuple(listed)


ColumnValue: TypeAlias = Annotated[DeclaredColumn, BeforeValidator(_column)]
SourceValue: TypeAlias = Annotated[DeclaredColumn, BeforeValidator(_source)]
