"""Converts text of a file to a value of a column's type; text that cannot be converted gives null and a failure flag.

Every conversion is a ``try_`` function, so a bad value never fails the job (with ANSI on, it would). Text without an offset is
read in the session's time zone, which is the stream's, unless its column has one of its own.
"""

from __future__ import annotations

from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog import time_names, zeek
from warehouse.catalog.durations import DURATION, FORMS
from warehouse.catalog.source_columns import EPOCH_FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column as SparkColumn

    from warehouse.ingest.columns import Input

__all__ = [
    "JUST_TIME",
    "SEVERAL_ZONES",
    "from_text",
    "from_value",
    "from_zeek",
    "instant_of",
    "is_number",
    "local_instant",
    "says_more",
    "says_what",
]

JUST_TIME = r"^\s*T?[0-9]{1,2}:"
"""A time without a date, which Spark's cast would take for one of today."""
_DAYS_END = "([0-9][T ])24:00"
"""The end of a day as a time of that day."""
_OFFSET = r"[0-9][T ]\s*[0-9][0-9:.]*\s*[A-Za-z+-]"
"""A time of day with something behind it: an offset, or the name of a zone."""
SEVERAL_ZONES = time_names.SEVERAL_ZONES.pattern
"""A time that ends with the name of several zones."""
_SEVERAL_INSIDE = rf"(?i)(?<![A-Z/])({time_names.SEVERAL})(?![A-Z0-9])"
"""The same of a time in a format that says where the name stands; its case does not matter there, and BST is Bougainville's."""
_WITH_COMMA = r"^[+-]?([0-9]{1,3}([.][0-9]{3})+|[0-9]*)(,[0-9]*)?([eE][+-]?[0-9]+)?$"
"""A number with a decimal comma; points stand between thousands."""
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_ZONE_LETTERS = frozenset("XxZzVO")
_COUNT = "decimal(29,9)"
"""Seconds or nanoseconds since 1970, exactly."""
_AMOUNT = "decimal(18,9)"
_SECONDS = "decimal(28,9)"
_WITH_PARTS = ("float", "double")
_RESULTS = {"epoch_seconds": "1000000", "epoch_milliseconds": "1000", "epoch_microseconds": "1", "epoch_nanoseconds": "0.001"}


def from_text(text: SparkColumn, given: Input, options: Mapping[str, str]) -> tuple[SparkColumn, SparkColumn | None]:
    """Return the value of a text, and a column that says whether a text has no value (None if every text has one).

    Parameters
    ----------
    text
        The text, null if the record has none.
    given
        The input: its type, and the format of its times.
    options
        The options of the stream's reader, with names in lower case, and ``decimal``.

    """
    kind = given.type
    if kind == "string":
        return text, None
    filled = F.when(F.trim(text) != "", text)
    if kind == "binary":
        return filled.cast("binary"), None
    if kind in ("timestamp", "date"):
        formats = given.formats or tuple(
            options[key] for key in (f"{kind}format",) if key in options
        )
        counted = options.get("decimal") == "," and any(each in EPOCH_FORMATS for each in formats)
        written = F.coalesce(_with_point(filled), filled) if counted else filled
        value = _time(written, formats, given.timezone) if formats or kind == "timestamp" else filled.try_cast("date")
        value = value.cast("date") if formats and kind == "date" else value
    elif given.formats == (DURATION,):
        value = _seconds(filled, kind)
    else:
        value = (_with_point(filled) if options.get("decimal") == "," and is_number(kind) else filled).try_cast(kind)
    return value, filled.isNotNull() & value.isNull()


def from_zeek(text: SparkColumn, given: Input, options: Mapping[str, str]) -> tuple[SparkColumn, SparkColumn | None]:
    """Return the value of a field of Zeek's logs; as :func:`from_text`, with sets and vectors, and empty ones."""
    empty = text == F.lit(zeek.EMPTY)
    if not given.type.startswith("array<"):
        return from_text(F.when(empty, F.lit("")).otherwise(text), given, options)
    kind = given.type.removeprefix("array<").removesuffix(">")
    elements = F.split(text, zeek.SEPARATOR)
    known = F.transform(elements, lambda each: F.when(each != zeek.UNSET, each))
    value = F.when(empty, F.array().cast(given.type)).otherwise(F.transform(known, lambda each: each.try_cast(kind)))
    return value, ~empty & F.exists(known, lambda each: each.isNotNull() & each.try_cast(kind).isNull())


def from_value(value: SparkColumn, kind: str, given: Input) -> tuple[SparkColumn, SparkColumn | None]:
    """Return the value of the declared type that one of another type means, of a column of Parquet; as :func:`from_text`."""
    if kind == "timestamp_ntz" and given.type == "timestamp" and given.timezone is not None:
        return local_instant(value, given.timezone), None
    timed = kind in ("timestamp", "timestamp_ntz", "date")
    if kind == given.type or (given.formats and timed):
        return (value if kind == given.type else value.try_cast(given.type)), None
    if given.formats or (kind, given.type) == ("string", "timestamp"):
        return from_text(value.cast("string"), given, {})
    converted = value.try_cast(given.type)
    return converted, value.isNotNull() & converted.isNull()


def says_what(given: Input) -> str:
    """Return the expected type and format of a value, for messages.

    >>> from warehouse.ingest.columns import Input
    >>> says_what(Input("seen", "ts", "timestamp", ("epoch_seconds",)))
    'timestamp of the format epoch_seconds'
    """
    return given.type + (f" of the format {' or '.join(given.formats)}" if given.formats else "")


def says_more(text: SparkColumn, given: Input) -> SparkColumn:
    """Return an addition to the message about a text that is no value: how an ambiguous zone name is read."""
    if given.type not in ("timestamp", "date"):
        return F.lit("")
    way = "; such a name means several zones: write it in quotes in `format` ('BST'), and declare `timezone`"
    named = any(_has_zone(each, "z") for each in given.formats)
    return F.when(text.rlike(_SEVERAL_INSIDE if named else SEVERAL_ZONES), F.lit(way)).otherwise(F.lit(""))


def is_number(kind: str) -> bool:
    """Whether a Spark SQL type is one of numbers."""
    return kind in _NUMBERS or kind.startswith("decimal(")


def _with_point(text: SparkColumn) -> SparkColumn:
    """Return a number with a decimal comma as a number with a point, else null: ``1.234,5`` is one, ``1.5`` is not."""
    trimmed = F.trim(text)
    return F.when(trimmed.rlike(_WITH_COMMA), F.translate(trimmed, ",.", ".")).when(~trimmed.rlike("[.,]"), trimmed)


def instant_of(text: SparkColumn) -> SparkColumn:
    """Return the instant of text as SQL's cast reads it, in the session's time zone where it has no offset."""
    return F.when(~text.rlike(JUST_TIME) & ~text.rlike(SEVERAL_ZONES), text.try_cast("timestamp"))


def local_instant(local: SparkColumn, timezone: str) -> SparkColumn:
    """Return the instant of a local time in a zone: one that daylight saving skips moves forward, of a double one the first."""
    # Convert via text: Spark's other ways use an instant in the session's zone, which has gaps in local time.
    return F.concat(local.cast("string"), F.lit(f" {timezone}")).try_cast("timestamp")


def _time(text: SparkColumn, formats: tuple[str, ...], timezone: str | None) -> SparkColumn:
    if timezone is None:
        read = _in_formats(text, formats) if formats else instant_of(text)
        early = F.regexp_replace(text, _DAYS_END, "$100:00")
        next_day = _in_formats(early, formats) if formats else instant_of(early)
        return F.coalesce(read, F.when(text.rlike(_DAYS_END), F.timestamp_add("DAY", F.lit(1), next_day)))
    if formats:
        return _in_formats(text, formats, timezone)
    in_zone = local_instant(F.when(~text.rlike(JUST_TIME), text.try_cast("timestamp_ntz")), timezone)
    return F.when(text.rlike(_OFFSET), instant_of(text)).otherwise(in_zone)


def _in_formats(text: SparkColumn, formats: tuple[str, ...], timezone: str | None = None) -> SparkColumn:
    return reduce(F.coalesce, [_formatted(text, each, timezone) for each in formats])


def _formatted(text: SparkColumn, pattern: str, timezone: str | None) -> SparkColumn:
    if pattern in EPOCH_FORMATS:
        micros = F.floor(F.try_multiply(text.try_cast(_COUNT), F.lit(_RESULTS[pattern]).cast("decimal(10,3)")))
        return F.timestamp_micros(micros.try_cast("bigint"))
    if _has_zone(pattern):
        certain = F.when(~text.rlike(_SEVERAL_INSIDE), F.trim(text)) if _has_zone(pattern, "z") else F.trim(text)
        return F.try_to_timestamp(certain, F.lit(pattern))
    if timezone is None:
        return F.try_to_timestamp(F.trim(text), F.lit(pattern))
    return F.try_to_timestamp(F.concat(F.trim(text), F.lit(f" {timezone}")), F.lit(f"{pattern} VV"))


def _seconds(text: SparkColumn, kind: str) -> SparkColumn:
    """Return the seconds of a duration in text; null if it is no duration, or a fraction where whole seconds are needed."""
    small = F.lower(F.trim(text))
    total = F.lit(None).cast(_SECONDS)
    for pattern, sizes in reversed(FORMS):
        parts = (
            F.coalesce(F.regexp_extract(small, pattern, number).try_cast(_AMOUNT), F.lit(0).cast(_AMOUNT)) * F.lit(Decimal(size))
            for number, size in enumerate(sizes, start=1)
        )
        total = F.when(small.rlike(pattern), reduce(lambda left, right: left + right, parts).try_cast(_SECONDS)).otherwise(total)
    whole = (total == F.floor(total)) | F.lit(kind in _WITH_PARTS or kind.startswith("decimal("))
    return F.when(small.rlike("[0-9]") & whole, total).try_cast(kind)


def _has_zone(pattern: str, letters: Iterable[str] = _ZONE_LETTERS) -> bool:
    plain = "".join(pattern.split("'")[::2])
    return any(letter in plain for letter in letters)
