"""The settings that ``options`` and ``[spark]`` may have, and the reasons against the others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warehouse.catalog.encodings import encoding_fault, is_wide
from warehouse.catalog.line_patterns import pattern_fault
from warehouse.catalog.spelling import FaultError, as_written, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "declared_field_names",
    "duplicate_options",
    "headerless_fault",
    "multiline_fault",
    "option_fault",
    "spark_fault",
    "value_fault",
]

_OPTIONS: dict[str, tuple[str, ...]] = {
    "csv": (
        "charset",
        "charToEscapeQuoteEscaping",
        "comment",
        "dateFormat",
        "decimal",
        "delimiter",
        "emptyValue",
        "encoding",
        "escape",
        "ignoreLeadingWhiteSpace",
        "ignoreTrailingWhiteSpace",
        "maxCharsPerColumn",
        "maxColumns",
        "multiline",
        "names",
        "nullValue",
        "quote",
        "sep",
        "timestampFormat",
        "unescapedQuoteHandling",
    ),
    "logfmt": ("dateFormat", "decimal", "nullValue", "timestampFormat"),
    "json": (
        "allowBackslashEscapingAnyCharacter",
        "allowComments",
        "allowNonNumericNumbers",
        "allowNumericLeadingZeros",
        "allowSingleQuotes",
        "allowUnquotedControlChars",
        "allowUnquotedFieldNames",
        "dateFormat",
        "locale",
        "multiline",
        "timestampFormat",
    ),
    "avro": (),
    "orc": (),
    "parquet": (),
    "syslog": ("dateFormat", "nullValue", "timestampFormat", "year"),
    "text": ("dateFormat", "decimal", "nullValue", "pattern", "timestampFormat"),
    "zeek": (),
}
_WAREHOUSE_CONVERTS = "not this one: the warehouse converts text as SQL casts do, and rejects the row that fails"
_DECLARED = "not this one: [streams.NAME.columns] declares names and types"
_ONE_LINE = "not this one: a record is a line, and a rejected row is named by its number"
_ONLY_CSV_AND_JSON = "not this one, which is of CSV and JSON"
_MULTILINE_FORMATS = (("multiline", "csv"), ("multiline", "json"))
_LISTED = "not this one: `landing` and `files` say which files are loaded, each once"
_UNREADABLE = "not this one: an unreadable file is reported and not loaded, never skipped in silence"
_REFUSED_OPTIONS = {
    "header": 'not this one: columns are matched by the names in the header; names = "a,b,c" is for files without a header',
    "enforceSchema": "not this one: columns are matched by the names in the header",
    "schema": _DECLARED,
    "inferSchema": _DECLARED,
    "samplingRatio": _DECLARED,
    "preferDate": _DECLARED,
    "prefersDecimal": _DECLARED,
    "primitivesAsString": _DECLARED,
    "dropFieldIfAllNull": _DECLARED,
    "mergeSchema": _DECLARED,
    "columnPruning": _DECLARED,
    "singleVariantColumn": _DECLARED,
    "mode": "not this one: a record that does not fit is a rejected row (`stream-wh rejected NAME`)",
    "columnNameOfCorruptRecord": "not this one: rejected rows keep their text (`stream-wh rejected NAME`)",
    "timeZone": "the key `timezone` of the stream",
    "multiLine": _ONLY_CSV_AND_JSON,
    "lineSep": _ONE_LINE,
    "compression": "not this one: a name that ends in .gz is a compressed file",
    "pathGlobFilter": _LISTED,
    "recursiveFileLookup": _LISTED,
    "modifiedAfter": _LISTED,
    "modifiedBefore": _LISTED,
    "basePath": _LISTED,
    "ignoreCorruptFiles": _UNREADABLE,
    "ignoreMissingFiles": _UNREADABLE,
    "nanValue": _WAREHOUSE_CONVERTS,
    "positiveInf": _WAREHOUSE_CONVERTS,
    "negativeInf": _WAREHOUSE_CONVERTS,
    "enableDateTimeParsingFallback": _WAREHOUSE_CONVERTS,
    "timestampNTZFormat": "timestampFormat",
}
_ALIASES = {"sep": "delimiter", "charset": "encoding"}
_ONE_CHARACTER = frozenset({"quote", "escape", "comment", "chartoescapequoteescaping"})
_OTHER_QUOTES = ("charToEscapeQuoteEscaping", "unescapedQuoteHandling")
_DECIMAL_SIGNS = (",", ".")
_COUNTS = frozenset({"maxcolumns", "maxcharspercolumn"})
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_YEAR = re.compile("[12][0-9]{3}")
_BREAKS = frozenset("\n\r")

_REFUSED_SPARK = (
    ("spark.sql.session.timeZone", "not this one: sessions are UTC, text without an offset is read in `timezone`"),
    ("spark.sql.timestampType", "not this one: timestamps are instants"),
    ("spark.sql.ansi.", "not this one: expressions mean the same everywhere, a row they fail on is rejected"),
    ("spark.sql.storeAssignmentPolicy", "not this one: values never change their type in silence"),
    ("spark.sql.caseSensitive", "not this one: column names are unique ignoring case"),
    ("spark.sql.legacy.", "not this one: rows mean the same whichever release reads them"),
    ("spark.sql.extensions", "not this one: rows mean the same whatever is installed"),
    ("spark.sql.catalog.", "not this one: tables are directories under `root`"),
    ("spark.sql.catalogImplementation", "not this one: tables are directories under `root`"),
    ("spark.sql.defaultCatalog", "not this one: tables are directories under `root`"),
    ("spark.sql.parquet.outputTimestampType", "not this one: timestamps are TIMESTAMP_MICROS, which have statistics"),
    ("spark.sql.parquet.datetimeRebase", "not this one: every engine reads the proleptic Gregorian calendar"),
    ("spark.sql.parquet.int96Rebase", "not this one: every engine reads the proleptic Gregorian calendar"),
    ("spark.sql.parquet.mergeSchema", _DECLARED),
    ("spark.sql.parquet.writeLegacyFormat", "not this one: readers expect the current Parquet format"),
    ("spark.sql.sources.partitionOverwriteMode", "not this one: the update's commit names what it replaces"),
    ("spark.sql.files.ignore", _UNREADABLE),
    ("spark.sql.csv.parser.columnPruning", _DECLARED),
    ("spark.hadoop.parquet.", "not this one: row groups and Bloom filters are chosen per table"),
    ("spark.databricks.", "not this one: the protocol, statistics and commits of tables are the warehouse's"),
)


def option_fault(name: str, format_: str | None) -> FaultError | None:
    """Return a fault if a stream cannot have a reader option, else None; Spark ignores the case of option names.

    Parameters
    ----------
    name
        The option as written.
    format_
        The stream's format; None if it has a fault.

    """
    refused = {option.lower(): reason for option, reason in _REFUSED_OPTIONS.items()}
    if name.lower() in refused and (name.lower(), format_) not in _MULTILINE_FORMATS:
        return FaultError(f'the option "{name}"', refused[name.lower()])
    formats = [format_] if format_ in _OPTIONS else list(_OPTIONS)
    allowed = tuple(option for reader_format in formats for option in _OPTIONS[reader_format])
    if name.lower() in (option.lower() for option in allowed):
        return None
    expected = ", ".join(allowed) if allowed else f"no option with format {format_}"
    return FaultError(f'the option "{name}"', expected, nearest(name, allowed))


def value_fault(name: str, value: str) -> FaultError | None:
    """Return why a reader option cannot have this value, or None; only Spark can check patterns of times."""
    canonical_name = _ALIASES.get(name.lower(), name.lower())
    if canonical_name == "delimiter" and (not value or _BREAKS.intersection(value)):
        return FaultError(as_written(value), "one character or several, without a line break")
    if canonical_name in _ONE_CHARACTER and (len(value) > 1 or _BREAKS.intersection(value)):
        return FaultError(as_written(value), "one character, or none")
    if canonical_name == "encoding":
        return encoding_fault(value)
    if canonical_name == "decimal" and value not in _DECIMAL_SIGNS:
        return FaultError(as_written(value), '"," where numbers are written 1.234,5, or "." (the default)')
    if canonical_name == "names":
        return _names_fault(value)
    if canonical_name == "pattern":
        return pattern_fault(value)
    if canonical_name == "year" and not _YEAR.fullmatch(value):
        return FaultError(as_written(value), 'the year of lines that say none, such as "2026"')
    if canonical_name == "multiline" and value.lower() not in ("true", "false"):
        return FaultError(as_written(value), "true where a text in quotes, or a JSON object, may go over several lines, or false")
    if canonical_name in _COUNTS and not (_COUNT.fullmatch(value) or (canonical_name, value) == ("maxcharspercolumn", "-1")):
        return FaultError(as_written(value), "a whole number from 1")
    return None


def declared_field_names(options: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names of the fields of files without a header, from the option ``names``; an empty tuple if files have a header.

    >>> declared_field_names([("delimiter", ";"), ("names", "at, host")])
    ('at', 'host')
    """
    listed = next((value for key, value in options if key.lower() == "names"), "")
    return tuple(name.strip() for name in listed.split(",")) if listed else ()


def headerless_fault(options: Iterable[tuple[str, str]]) -> FaultError | None:
    """Return a fault if files with these options need a header: in UTF-16 the byte order mark would be a part of a value."""
    pairs = list(options)
    wide = any(_ALIASES.get(key.lower(), key.lower()) == "encoding" and is_wide(value) for key, value in pairs)
    if not declared_field_names(pairs) or not wide:
        return None
    return FaultError("names with an encoding of UTF-16", "names of files in UTF-8, or a header in each file")


def multiline_fault(options: Iterable[tuple[str, str]]) -> FaultError | None:
    """Return a fault if records with these options cannot have several lines: under other quote rules they end elsewhere."""
    values = {key.lower(): value for key, value in options}
    other = next((name for name in _OTHER_QUOTES if name.lower() in values), None)
    if values.get("multiline", "").lower() != "true" or other is None:
        return None
    return FaultError(f"multiline with {other}", f"one of them: without {other} it is certain where a record ends")


def _names_fault(value: str) -> FaultError | None:
    names = declared_field_names([("names", value)])
    repeated = next((name for name in names if names.count(name) > 1), None)
    if not names or not all(names) or repeated is not None:
        found = f'"{repeated}" twice in names' if repeated else as_written(value)
        return FaultError(found, 'the names of all fields in their order, each once, such as names = "at,host,status"')
    return None


def duplicate_options(names: Iterable[str]) -> Iterator[FaultError]:
    """Yield a fault for each option that is given in two spellings: one of them would silently be ignored."""
    first: dict[str, str] = {}
    for name in names:
        canonical_name = _ALIASES.get(name.lower(), name.lower())
        if canonical_name in first:
            yield FaultError(f'"{first[canonical_name]}" and "{name}", which are the same option', "one of them")
        first.setdefault(canonical_name, name)


def spark_fault(key: str) -> FaultError | None:
    """Return why the user cannot declare a Spark setting, or None."""
    if not key.startswith("spark."):
        return FaultError(f'"{key}"', 'names of Spark settings, which begin with "spark."', f"spark.{key}")
    for beginning, reason in _REFUSED_SPARK:
        if key.startswith(beginning):
            return FaultError(f'"{key}"', reason) if reason else None
    return None
