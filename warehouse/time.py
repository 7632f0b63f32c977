"""Instants, durations and slots in exact integers of microseconds, UTC.

Slot ``j`` is the half-open interval ``(A + (j-1)D, A + jD]`` for anchor ``A`` and update interval ``D``; so
``slot(t) = ceil((t - A)/D)`` and update ``k`` happens at ``A + kD`` (doubly-partitioned-index sheet, 3.2).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DAY",
    "FIRST_INSTANT",
    "HOUR",
    "MICROSECOND",
    "MINUTE",
    "NEVER",
    "SECOND",
    "at_slot",
    "format_duration",
    "format_instant",
    "grid_slot",
    "parse_duration",
    "parse_instant",
    "rough",
    "slot",
    "superseded",
    "to_datetime",
    "to_micros",
]

MICROSECOND = 1
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = {"us": MICROSECOND, "ms": 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
_SHORT = re.compile(r"(?:\d+(?:us|ms|[smhdw]))+")
_SHORT_PART = re.compile(r"(\d+)(us|ms|[smhdw])")
_ISO = re.compile(
    r"P(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?(?:T(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+)(?:\.(?P<f>\d{1,6}))?S)?)?",
)

FIRST_INSTANT = -62_135_596_800_000_000
"""``0001-01-01T00:00:00Z``: the first instant that rows can have."""
NEVER = 253_402_300_799_999_999
"""``9999-12-31T23:59:59.999999Z``: the expiration time of a row that never expires."""


def slot(instant: int, anchor: int, interval: int) -> int:
    """Return the slot of an instant (all in microseconds).

    >>> slot(5 * MINUTE + 1, 0, 5 * MINUTE)
    2
    """
    return -((anchor - instant) // interval)


def at_slot(number: int, anchor: int, interval: int) -> int:
    """Return the instant that closes a slot, the time of update ``number``."""
    return anchor + number * interval


def grid_slot(instant: int, anchor: int, interval: int) -> int:
    """Return the slot whose closing instant is the last grid point at or before ``instant``."""
    return (instant - anchor) // interval


def parse_duration(text: str) -> int:
    """Return the microseconds of ``90s``, ``10m``, ``1h30m``, ``7d``, ``2w`` or an ISO 8601 duration without months.

    Raises
    ------
    ValueError
        When the text is neither.

    """
    compact = text.strip()
    if _SHORT.fullmatch(compact):
        return sum(int(count) * _UNITS[unit] for count, unit in _SHORT_PART.findall(compact))
    match = _ISO.fullmatch(compact)
    if match and any(match.groupdict().values()):
        parts = match.groupdict()
        whole = sum(int(parts[unit] or 0) * _UNITS[unit] for unit in "wdhms")
        return whole + int((parts["f"] or "").ljust(6, "0"))
    raise ValueError(f'"{text}" is not a duration such as 90s, 10m, 1h, 7d, 2w or PT1H30M')


def format_duration(duration: int) -> str:
    """Return the shortest text that :func:`parse_duration` reads back.

    >>> format_duration(90 * MINUTE)
    '1h30m'
    """
    if duration == 0:
        return "0s"
    parts, rest = [], duration
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, _UNITS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def rough(duration: int) -> str:
    """Return a duration as a person says it: to the hour from two days on, to the minute from two hours on, else to the second.

    >>> rough(3 * DAY + 5 * HOUR + MINUTE), rough(3 * HOUR + 61 * SECOND), rough(90 * SECOND + 1)
    ('3d5h', '3h1m', '1m30s')
    """
    unit = HOUR if duration >= 2 * DAY else MINUTE if duration >= 2 * HOUR else SECOND
    return format_duration(duration // unit * unit)


def parse_instant(text: str) -> int:
    """Return the microseconds since 1970 of an ISO 8601 instant; without an offset it is UTC.

    Raises
    ------
    ValueError
        When the text is not an instant.

    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f'"{text}" is not an instant such as 2013-01-01T12:00:00Z') from None
    return to_micros(moment)


def to_micros(moment: datetime) -> int:
    """Return the microseconds since 1970 of a datetime; without an offset it is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def to_datetime(instant: int) -> datetime:
    """Return the aware UTC datetime of an instant in microseconds."""
    return _EPOCH + timedelta(microseconds=instant)


def format_instant(instant: int) -> str:
    """Return ``YYYY-MM-DDTHH:MM:SS[.ffffff]Z``.

    >>> format_instant(0)
    '1970-01-01T00:00:00Z'
    """
    return to_datetime(instant).replace(tzinfo=None).isoformat() + "Z"


def superseded(successors: Iterable[int], retain: int, now: int) -> int:
    """Return how many items of a sequence, the oldest first, were superseded ``retain`` or longer ago.

    If the instant of a successor is after ``now``, the clock was ahead when the successor was made. Then the instant of the next
    successor that is not after ``now`` counts, so a clock that was wrong once does not delay retirement.

    Parameters
    ----------
    successors
        The instants at which the second item was made, the third one, and so on; only as many as needed are consumed.
    retain, now
        A duration and the clock's instant, in microseconds.

    Examples
    --------
    >>> superseded([10, 20, 30], retain=10, now=35), superseded([10, 900, 20, 30], retain=10, now=35)
    (2, 3)

    """
    count = ahead = 0
    for instant in successors:
        if instant > now:
            ahead += 1
            continue
        if instant + retain > now:
            break
        count += ahead + 1
        ahead = 0
    return count
