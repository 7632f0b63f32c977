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
    "SEVERAL_ZONES",
    "TIME_WITHOUT_DATE",
    "ambiguity_note",
    "expected_value",
    "from_text",
    "from_value",
    "from_zeek",
    "instant_of",
    "is_number",
    "local_instant",
]

TIME_WITHOUT_DATE = r"^\s*T?[0-9]{1,2}:"
"""A time without a date, for which Spark's cast would use today's date."""
_END_OF_DAY = "([0-9][T ])24:00"
"""The end of a day, written as a time of that day."""
_TIME_WITH_OFFSET = r"[0-9][T ]\s*[0-9][0-9:.]*\s*[A-Za-z+-]"
"""A time of day with an offset or the name of a zone after it."""
SEVERAL_ZONES = time_names.SEVERAL_ZONES.pattern
"""A time that ends with the name of several zones."""
_AMBIGUOUS_ZONE = rf"(?i)(?<![A-Z/])({time_names.SEVERAL})(?![A-Z0-9])"
"""Such a name in a time whose format says where the name is; Java then ignores its case, and takes BST for Bougainville's."""
_NUMBER_WITH_COMMA = r"^[+-]?([0-9]{1,3}([.][0-9]{3})+|[0-9]*)(,[0-9]*)?([eE][+-]?[0-9]+)?$"
"""A number with a decimal comma; points separate thousands."""
_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_FRACTIONAL_TYPES = ("float", "double")
_NUMBERS = _WHOLE.union(_FRACTIONAL_TYPES)
_ZONE_LETTERS = frozenset("XxZzVO")
_SINCE_1970 = "decimal(29,9)"
"""Seconds or nanoseconds since 1970, exactly."""
_DURATION_PART = "decimal(18,9)"
_TOTAL_SECONDS = "decimal(28,9)"
_MICROSECONDS = {
    "epoch_seconds": "1000000",
    "epoch_milliseconds": "1000",
    "epoch_microseconds": "1",
    "epoch_nanoseconds": "0.001",
}


def from_text(text: SparkColumn, input_: Input, options: Mapping[str, str]) -> tuple[SparkColumn, SparkColumn | None]:
    """Return the value of a text, and a column that says whether the text cannot be converted (None if every text can be).

    Parameters
    ----------
    text
        The text, null if the record has none.
    input_
        The input: its type, and the format of its times.
    options
        The options of the stream's reader, with names in lower case, and ``decimal``.

    """
    kind = input_.type
    if kind == "string":
        return text, None
    filled = F.when(F.trim(text) != "", text)
    if kind == "binary":
        return filled.cast("binary"), None
    if kind in ("timestamp", "date"):
        formats = input_.formats or tuple(
            options[key] for key in (f"{kind}format",) if key in options
        )
        has_comma = options.get("decimal") == "," and any(format_ in EPOCH_FORMATS for format_ in formats)
        written = F.coalesce(_with_point(filled), filled) if has_comma else filled
        value = _time(written, formats, input_.timezone) if formats or kind == "timestamp" else filled.try_cast("date")
        value = value.cast("date") if formats and kind == "date" else value
    elif input_.formats == (DURATION,):
        value = _seconds(filled, kind)
    else:
        value = (_with_point(filled) if options.get("decimal") == "," and is_number(kind) else filled).try_cast(kind)
    return value, filled.isNotNull() & value.isNull()


def from_zeek(text: SparkColumn, input_: Input, options: Mapping[str, str]) -> tuple[SparkColumn, SparkColumn | None]:
    """Return the value of a field of Zeek's logs, also for sets, vectors and empty fields; results as of :func:`from_text`."""
    empty = text == F.lit(zeek.EMPTY)
    if not input_.type.startswith("array<"):
        return from_text(F.when(empty, F.lit("")).otherwise(text), input_, options)
    kind = input_.type.removeprefix("array<").removesuffix(">")
    elements = F.split(text, zeek.SEPARATOR)
    set_elements = F.transform(elements, lambda element: F.when(element != zeek.UNSET, element))
    value = F.when(empty, F.array().cast(input_.type)).otherwise(
        F.transform(set_elements, lambda element: element.try_cast(kind))
    )
    return value, ~empty & F.exists(set_elements, lambda element: element.isNotNull() & element.try_cast(kind).isNull())


def from_value(value: SparkColumn, kind: str, input_: Input) -> tuple[SparkColumn, SparkColumn | None]:
    """Return the value of the declared type for a value of another type in a Parquet file; results as of :func:`from_text`."""
    if kind == "timestamp_ntz" and input_.type == "timestamp" and input_.timezone is not None:
        return local_instant(value, input_.timezone), None
    timed = kind in ("timestamp", "timestamp_ntz", "date")
    if kind == input_.type or (input_.formats and timed):
        return (value if kind == input_.type else value.try_cast(input_.type)), None
    if input_.formats or (kind, input_.type) == ("string", "timestamp"):
        return from_text(value.cast("string"), input_, {})
    converted = value.try_cast(input_.type)
    failed = value.isNotNull() & converted.isNull()
    if input_.type in _WHOLE and (kind in _FRACTIONAL_TYPES or kind.startswith("decimal(")):
        failed |= value != converted.try_cast(kind)  # the cast cuts the fraction off
    return converted, failed


def expected_value(input_: Input) -> str:
    """Return the expected type and format of a value, for messages.

    >>> from warehouse.ingest.columns import Input
    >>> expected_value(Input("seen", "ts", "timestamp", ("epoch_seconds",)))
    'timestamp of the format epoch_seconds'
    """
    return input_.type + (f" of the format {' or '.join(input_.formats)}" if input_.formats else "")


def ambiguity_note(text: SparkColumn, input_: Input) -> SparkColumn:
    """Return how to declare an ambiguous zone name, as an addition to the message about a text that cannot be converted."""
    if input_.type not in ("timestamp", "date"):
        return F.lit("")
    hint = "; such a name means several zones: write it in quotes in `format` ('BST'), and declare `timezone`"
    has_zone_name = any(_has_zone(format_, "z") for format_ in input_.formats)
    return F.when(text.rlike(_AMBIGUOUS_ZONE if has_zone_name else SEVERAL_ZONES), F.lit(hint)).otherwise(F.lit(""))


def is_number(kind: str) -> bool:
    """Whether a Spark SQL type is numeric."""
    return kind in _NUMBERS or kind.startswith("decimal(")


def _with_point(text: SparkColumn) -> SparkColumn:
    """Return a number with a decimal comma as a number with a point, else null: ``1.234,5`` is one, ``1.5`` is not."""
    trimmed = F.trim(text)
    return F.when(trimmed.rlike(_NUMBER_WITH_COMMA), F.translate(trimmed, ",.", ".")).when(~trimmed.rlike("[.,]"), trimmed)


def instant_of(text: SparkColumn) -> SparkColumn:
    """Return the instant of text as SQL's cast reads it, in the session's time zone where it has no offset."""
    return F.when(~text.rlike(TIME_WITHOUT_DATE) & ~text.rlike(SEVERAL_ZONES), text.try_cast("timestamp"))


def local_instant(local: SparkColumn, timezone: str) -> SparkColumn:
    """Return the instant of a local time in a zone: a skipped time moves forward, a time that occurs twice means the first."""
    # Convert via text: Spark's other ways use an instant in the session's zone, which has gaps in local time.
    return F.concat(local.cast("string"), F.lit(f" {timezone}")).try_cast("timestamp")


def _time(text: SparkColumn, formats: tuple[str, ...], timezone: str | None) -> SparkColumn:
    if timezone is None:
        instant = _in_formats(text, formats) if formats else instant_of(text)
        start_of_day = F.regexp_replace(text, _END_OF_DAY, "$100:00")
        next_day = _in_formats(start_of_day, formats) if formats else instant_of(start_of_day)
        return F.coalesce(instant, F.when(text.rlike(_END_OF_DAY), F.timestamp_add("DAY", F.lit(1), next_day)))
    if formats:
        return _in_formats(text, formats, timezone)
    in_zone = local_instant(F.when(~text.rlike(TIME_WITHOUT_DATE), text.try_cast("timestamp_ntz")), timezone)
    return F.when(text.rlike(_TIME_WITH_OFFSET), instant_of(text)).otherwise(in_zone)


def _in_formats(text: SparkColumn, formats: tuple[str, ...], timezone: str | None = None) -> SparkColumn:
    return reduce(F.coalesce, [_in_format(text, format_, timezone) for format_ in formats])


def _in_format(text: SparkColumn, pattern: str, timezone: str | None) -> SparkColumn:
    if pattern in EPOCH_FORMATS:
        micros = F.floor(F.try_multiply(text.try_cast(_SINCE_1970), F.lit(_MICROSECONDS[pattern]).cast("decimal(10,3)")))
        return F.timestamp_micros(micros.try_cast("bigint"))
    if _has_zone(pattern):
        certain = F.when(~text.rlike(_AMBIGUOUS_ZONE), F.trim(text)) if _has_zone(pattern, "z") else F.trim(text)
        return F.try_to_timestamp(certain, F.lit(pattern))
    if timezone is None:
        return F.try_to_timestamp(F.trim(text), F.lit(pattern))
    return F.try_to_timestamp(F.concat(F.trim(text), F.lit(f" {timezone}")), F.lit(f"{pattern} VV"))


def _seconds(text: SparkColumn, kind: str) -> SparkColumn:
    """Return the seconds of a duration in text; null for other texts, and for a fraction if whole seconds are needed."""
    lower = F.lower(F.trim(text))
    total = F.lit(None).cast(_TOTAL_SECONDS)
    for pattern, sizes in reversed(FORMS):
        parts = (
            F.coalesce(F.regexp_extract(lower, pattern, number).try_cast(_DURATION_PART), F.lit(0).cast(_DURATION_PART))
            * F.lit(Decimal(size))
            for number, size in enumerate(sizes, start=1)
        )
        total = F.when(lower.rlike(pattern), reduce(lambda left, right: left + right, parts).try_cast(_TOTAL_SECONDS)).otherwise(
            total
        )
    is_exact = (total == F.floor(total)) | F.lit(kind in _FRACTIONAL_TYPES or kind.startswith("decimal("))
    return F.when(lower.rlike("[0-9]") & is_exact, total).try_cast(kind)


def _has_zone(pattern: str, letters: Iterable[str] = _ZONE_LETTERS) -> bool:
    unquoted = "".join(pattern.split("'")[::2])
    return any(letter in unquoted for letter in letters)
