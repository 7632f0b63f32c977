r"""Durations as people write them, such as ``5m``, ``1h 30m``, ``PT5M`` and ``00:05:00``: patterns that Spark and DuckDB share.

A column of a number with ``format = "duration"`` holds the seconds that such text means. Months and years have no length of
their own, and ``05:00`` could be minutes or hours: both are refused.
"""

from __future__ import annotations

from warehouse.catalog.duck_sql import literal

__all__ = ["DURATION", "FORMS", "WRITTEN_WITH_UNITS", "seconds_in_duckdb"]

DURATION = "duration"
"""The ``format`` of a number that is read from such text."""
_NUMBER = r"([0-9]{1,9}(?:[.][0-9]{1,9})?)"
_UNITS = (
    ("w|wks?|weeks?", "604800"),
    ("d|days?", "86400"),
    ("h|hrs?|hours?", "3600"),
    ("m|mins?|minutes?", "60"),
    ("s|secs?|seconds?", "1"),
    ("ms|msecs?|millis|milliseconds?", "0.001"),
    ("us|\u00b5s|\u03bcs|usecs?|micros|microseconds?", "0.000001"),
    ("ns|nsecs?|nanos|nanoseconds?", "0.000000001"),
)
_IN_WORDS = "".join(rf"(?:{_NUMBER} ?(?:{words})[ ,]*)?" for words, _ in _UNITS)
_SIZES = tuple(size for _, size in _UNITS)
WRITTEN_WITH_UNITS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (rf"^{_IN_WORDS}$", _SIZES),
    (rf"^p(?:{_NUMBER}w)?(?:{_NUMBER}d)?(?:t(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?)?$", _SIZES[:5]),
)
"""Forms that name their units."""
FORMS = (
    *WRITTEN_WITH_UNITS,
    (r"^(?:([0-9]{1,9})(?: days?,? | |[.]))?([0-9]{1,9}):([0-5]?[0-9]):([0-5]?[0-9](?:[.][0-9]{1,9})?)$", _SIZES[1:5]),
    (rf"^{_NUMBER}$", ("1",)),
)
"""Each form as a pattern of small letters, and the seconds that each of its groups counts; the last is a number of seconds."""


def seconds_in_duckdb(text: str, forms: tuple[tuple[str, tuple[str, ...]], ...] = FORMS) -> str:
    """Return the SQL of DuckDB that gives the seconds of a text, null where it is no duration."""
    small = f"lower(trim({text}))"
    cases = []
    for pattern, sizes in forms:
        parts = (
            f"coalesce(TRY_CAST(regexp_extract({small}, {literal(pattern)}, {number}) AS DOUBLE), 0) * {size}"
            for number, size in enumerate(sizes, start=1)
        )
        cases.append(f"WHEN regexp_matches({small}, {literal(pattern)}) THEN {' + '.join(parts)}")
    return f"CASE WHEN NOT regexp_matches({small}, '[0-9]') THEN NULL {' '.join(cases)} END"
