"""Converts single values of ``warehouse.toml`` to the values with which the program computes."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator

from warehouse.catalog.sizes import LARGEST, parse_size
from warehouse.catalog.source_columns import time_zone
from warehouse.catalog.spelling import FaultError, as_written, nearest
from warehouse.time import DAY, parse_duration, parse_instant, to_micros

__all__ = [
    "FOREVER",
    "LONGEST",
    "Duration",
    "Durations",
    "Grid",
    "Instant",
    "Keep",
    "Names",
    "Options",
    "OutputWindow",
    "Partitions",
    "SearchKey",
    "Selected",
    "Size",
    "SqlText",
    "TimeZone",
    "Windows",
    "name_fault",
    "spark_settings",
]

FOREVER = "forever"
"""The value of ``keep`` for no bound."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_FINER = re.compile(r"\.\d{7,}")
_DURATION = 'a duration such as "90s", "10m", "1h", "7d", "2w" or "PT1H30M"'
_INSTANT = 'an instant such as "2013-01-01T00:00:00Z", to the microsecond'
_PAIR = 2
LONGEST = 400_000 * DAY
"""A thousand years: beyond it the calendar ends before a lifetime does."""
_SIZE = f'a size from "1KB" to "{LARGEST}", such as "16MB"'


def _duration(value: object) -> int:
    if not isinstance(value, str):
        raise FaultError(as_written(value), _DURATION)
    try:
        duration = parse_duration(value)
    except ValueError:
        raise FaultError(as_written(value), _DURATION, _shorter(value)) from None
    if duration > LONGEST:
        raise FaultError(as_written(value), f"{_DURATION}, at most 400000d; leave the key out for no bound where it may be")
    return duration


def _keep(value: object) -> int | str:
    if value == FOREVER:
        return FOREVER
    try:
        return _duration(value)
    except FaultError as fault:
        meant = nearest(value, [FOREVER]) if isinstance(value, str) else None
        raise FaultError(fault.found, f'{_DURATION}, or "{FOREVER}"', fault.suggestion or meant) from None


def _shorter(value: str) -> str | None:
    guess = re.sub(r"\s+", "", value.lower())
    guess = re.sub(r"(?<=\d)(sec|min|hour|day|week)[a-z]*", lambda match: match.group(1)[0], guess)
    try:
        parse_duration(guess)
    except ValueError:
        return None
    return guess


def _size(value: object) -> int:
    try:
        return parse_size(value)
    except ValueError:
        raise FaultError(as_written(value), _SIZE) from None


def _instant(value: object) -> int:
    if isinstance(value, datetime):
        return to_micros(value)
    if not isinstance(value, str) or _FINER.search(value):
        raise FaultError(as_written(value), _INSTANT)
    try:
        return parse_instant(value)
    except ValueError:
        raise FaultError(as_written(value), _INSTANT) from None


def _search_key(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise FaultError(as_written(value), "a column, or a list of columns")
    return tuple(names)


def _partitions(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise FaultError(as_written(value), 'a list of columns, such as ["day"]')
    return tuple(value)


def _names(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise FaultError(as_written(value), "a column, or a list of columns")
    return tuple(names)


def _selected(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise FaultError(as_written(value), 'a table of values such as { flights = "count(*)", late = "max(delay)" }')
    return tuple(value.items())


def _durations(value: object) -> tuple[tuple[str, int], ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise FaultError(as_written(value), f"{_DURATION}, or a list of them")
    return tuple((str(text), _duration(text)) for text in texts)


def _windows(value: object) -> tuple[tuple[tuple[str, int], ...], ...]:
    lengths = value if isinstance(value, list) and any(isinstance(item, list) for item in value) else None
    if lengths is None:
        return tuple((length,) for length in _durations(value))
    if any(isinstance(item, list) and len(item) != _PAIR for item in lengths):
        raise FaultError(as_written(value), 'lengths such as "1h", or pairs of them such as ["1h", "1d"]')
    return tuple(_durations(item) for item in lengths)


def _grid(value: object) -> tuple[int, int]:
    is_pair = isinstance(value, list) and len(value) == _PAIR and all(type(part) is int for part in value)
    if not isinstance(value, list) or not is_pair:
        raise FaultError(as_written(value), "[G, E], two whole numbers")
    return value[0], value[1]


def _sql_text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise FaultError(as_written(value), "a query in Spark SQL")
    return value


def _output_window(value: object) -> tuple[int | None, int | None]:
    allowed = f"{_DURATION} longer than zero, or a whole number of rows from 1"
    if type(value) is int and value >= 1:
        return None, value
    length = _duration(value) if isinstance(value, str) else 0
    if not length:
        raise FaultError(as_written(value), allowed)
    return length, None


def _text_of(value: object, description: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise FaultError(as_written(value), f"{description}: a string, a number, true or false")


def _options(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise FaultError(as_written(value), 'a table such as { delimiter = ";" }')
    return tuple((name, _text_of(setting, f"a value of {name}")) for name, setting in value.items())


def spark_settings(value: object) -> tuple[tuple[str, str], ...]:
    """Return the dotted names and the values of ``[spark]``.

    Raises
    ------
    FaultError
        When the value is no table, or one of its values is neither text, number nor boolean.

    """
    # TOML reads an unquoted spark.master = ... as a table of tables; it means the dotted name, too.
    if not isinstance(value, dict):
        raise FaultError(as_written(value), 'a table of Spark settings such as "spark.master" = "local[2]"')
    flat: dict[str, str] = {}
    for name, setting in value.items():
        inner = spark_settings(setting) if isinstance(setting, dict) else ()
        flat.update({f"{name}.{rest}": text for rest, text in inner})
        if not isinstance(setting, dict):
            flat[name] = _text_of(setting, f"a value of {name}")
    return tuple(flat.items())


Duration: TypeAlias = Annotated[int, BeforeValidator(_duration)]
"""Microseconds."""
Keep: TypeAlias = Annotated[int | Literal["forever"], BeforeValidator(_keep)]
"""Microseconds, or forever."""
Size: TypeAlias = Annotated[int, BeforeValidator(_size)]
"""Bytes."""
Instant: TypeAlias = Annotated[int, BeforeValidator(_instant)]
"""Microseconds since 1970, UTC."""
TimeZone: TypeAlias = Annotated[str, BeforeValidator(time_zone)]
SearchKey: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_search_key)]
Partitions: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_partitions)]
SqlText: TypeAlias = Annotated[str, BeforeValidator(_sql_text)]
OutputWindow: TypeAlias = Annotated[tuple[int | None, int | None], BeforeValidator(_output_window)]
"""(length in microseconds, rows): one of them."""
Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_names)]
Selected: TypeAlias = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_selected)]
"""(name, expression) of each value."""
Durations: TypeAlias = Annotated[tuple[tuple[str, int], ...], BeforeValidator(_durations)]
"""(as written, microseconds) of each."""
Windows: TypeAlias = Annotated[tuple[tuple[tuple[str, int], ...], ...], BeforeValidator(_windows)]
"""(as written, microseconds) of each window, or of each input of a join."""
Grid: TypeAlias = Annotated[tuple[int, int], BeforeValidator(_grid)]
Options: TypeAlias = Annotated[tuple[tuple[str, str], ...], BeforeValidator(_options)]


def name_fault(name: str) -> FaultError | None:
    """Return why a table cannot have this name, or None."""
    if _NAME.fullmatch(name):
        return None
    guess = re.sub(r"[^a-z0-9_]+", "_", name.lower()).lstrip("_0123456789")[:63]
    allowed = "a letter a-z, then at most 62 letters a-z, digits and underscores"
    return FaultError(f'the name "{name}"', allowed, guess or None)
