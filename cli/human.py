"""Instants for people on a terminal: how long ago they were. Programs get the exact values."""

from __future__ import annotations

from warehouse.time import DAY, format_instant, rough

__all__ = ["ago"]

_LONG = 2 * 365 * DAY
"""From this age on a date is shown instead of a number of days."""


def ago(instant: int, now: int) -> str:
    """Return how long ago an instant was, or its date if it is years ago; parameters are microseconds.

    >>> from warehouse.time import HOUR, MINUTE, SECOND
    >>> ago(0, 90 * SECOND), ago(0, 26 * HOUR + 5 * MINUTE), ago(5 * MINUTE, 0), ago(0, 20_000 * DAY)
    ('1m30s ago', '1d2h5m ago', 'in 5m', '1970-01-01')
    """
    age = abs(now - instant)
    if age >= _LONG:
        return format_instant(instant)[:10]
    return f"{rough(age)} ago" if instant <= now else f"in {rough(age)}"
