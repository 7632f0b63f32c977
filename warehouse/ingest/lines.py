"""Reads files with a record on each line by Spark, as fields of text: lines with a pattern, logfmt, syslog.

A line of syslog without a year gets the year of the file's last change (see :mod:`warehouse.catalog.syslog`). An object in a
store has no such time: the time of its copy is a number that represents its tag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog import logfmt, syslog
from warehouse.catalog.line_patterns import line_pattern, pattern_of
from warehouse.ingest.columns import inputs_of_records, known_names
from warehouse.ingest.record_parts import SHAPE, record_position

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream

__all__ = ["FAULT", "LINE", "UNDECLARED", "line_names", "line_records"]

LINE = "_line"
"""The column of the whole line."""
FAULT = "_why"
"""The column with the fault of an invalid line."""
UNDECLARED = "_strange"
"""The column with the undeclared names in a line; null if there are none."""
_NO_PATTERN = "the line does not match `pattern`"
_NO_LOGFMT = 'the line is not names and values alone, such as level=info msg="two words"'
_NO_SYSLOG = "the line is none of syslog: a time, a host, a program with a colon, a message"
_NO_YEAR = (
    "the line has no year, and an object in a store has no modification time that shows it; declare it in options, such as "
    '{ year = "2026" }'
)
_ALLOWED_AHEAD = "INTERVAL 1 DAY"
_MOMENT = "yyyy-MM-dd HH:mm:ss"


def line_names(stream: Stream, header: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the fields of :func:`line_records`; ``header`` has the fields of every line of the format."""
    if stream.format != "logfmt":
        return header
    return tuple(dict.fromkeys(input_.source for input_ in inputs_of_records(stream)))


def line_records(session: SparkSession, stream: Stream, names: Sequence[str], paths: list[str]) -> DataFrame:
    """Return the fields of each line as text, in the order of ``names``, with its fault and its position.

    Blank lines are skipped.
    """
    texts = session.read.option("recursiveFileLookup", "true").option("__globPaths__", "false").text(paths)
    lines = texts.select("value", "_metadata").where(F.col("value").rlike(r"\S"))
    columns_of_format = {"logfmt": _logfmt_columns, "syslog": _syslog_columns}.get(stream.format, _pattern_columns)
    fields, fault, undeclared = columns_of_format(stream, names)
    return lines.select(
        *[value.alias(f"_c{index}") for index, value in enumerate(fields)],
        F.when(fault.isNotNull(), F.col("value")).alias(SHAPE),
        fault.alias(FAULT),
        undeclared.alias(UNDECLARED),
        F.col("value").alias(LINE),
        *record_position(),
    )


_LineColumns = tuple[list["SparkColumn"], "SparkColumn", "SparkColumn"]
"""The fields of a line, its fault (null: none), and its undeclared names."""


def _null() -> SparkColumn:
    return F.lit(None).cast("string")


def _not_missing(stream: Stream, value: SparkColumn) -> SparkColumn:
    """Return a value, or null if it is empty or means a missing value."""
    absent = ["", *(text for key, text in stream.options if key.lower() == "nullvalue")]
    return F.when(~value.isin(absent), value)


def _pattern_columns(stream: Stream, names: Sequence[str]) -> _LineColumns:
    pattern = pattern_of(stream.options)
    if pattern is None or len(names) != len(pattern.group_numbers):
        raise ValueError("a stream of text has a pattern with these names")
    columns = [_not_missing(stream, F.regexp_extract("value", pattern.java, number)) for number in pattern.group_numbers]
    return columns, F.when(~F.col("value").rlike(pattern.java), F.lit(_NO_PATTERN)), _null()


def _logfmt_columns(stream: Stream, names: Sequence[str]) -> _LineColumns:
    names_in_line = F.regexp_extract_all("value", F.lit(f"(?s){logfmt.PAIR}"), F.lit(1))
    texts = F.regexp_extract_all("value", F.lit(f"(?s){logfmt.PAIR}"), F.lit(2))
    columns = []
    for name in names:
        text = F.get(texts, F.array_position(names_in_line, F.lit(name)).cast("int") - 1)
        columns.append(F.when(text.startswith('"'), _unquoted(text)).otherwise(_not_missing(stream, text)))
    read_names = F.filter(names_in_line, lambda element: element.isin(*names)) if names else F.array().cast("array<string>")
    repeated_names = F.filter(read_names, lambda element: F.size(F.filter(read_names, lambda other: other == element)) > 1)
    has_repeated = F.size(read_names) > F.size(F.array_distinct(read_names))
    is_not_logfmt = ~F.col("value").rlike(rf"\A(?s:{logfmt.LINE})\z")
    fault = F.when(is_not_logfmt, F.lit(_NO_LOGFMT)).when(
        has_repeated, F.concat(F.lit("the line has twice: "), F.get(repeated_names, F.lit(0)))
    )
    if stream.unknown_columns != "reject":
        return columns, fault, _null()
    undeclared = F.array_except(names_in_line, F.array(*[F.lit(name) for name in sorted(known_names(stream))]))
    return columns, fault, F.when(F.size(undeclared) > 0, F.array_join(undeclared, ", "))


def _unquoted(text: SparkColumn) -> SparkColumn:
    """Return the value of a text in quotes; escapes that JSON does not know stay unchanged."""
    plain = F.substring(text, F.lit(2), F.length(text) - 2)
    # From left to right, so that the second of two backslashes begins no escape.
    escaped = F.regexp_replace(text, rf"\G((?s:[^\\]|\\(?:{logfmt.ESCAPES}))*+)\\", r"$1\\\\")
    array = F.concat(F.lit("["), escaped, F.lit("]"))
    value = F.get(F.from_json(array, "array<string>", {"allowUnquotedControlChars": "true"}), F.lit(0))
    return F.when(text.contains("\\"), F.coalesce(value, plain)).otherwise(plain)


def _syslog_columns(stream: Stream, names: Sequence[str]) -> _LineColumns:
    first, other = (line_pattern(text) for text in syslog.PATTERNS)
    line = F.col("value")
    is_first, is_other = line.rlike(first.java), line.rlike(other.java)
    columns = []
    for name in names:
        value = _null()
        if name in other.names:
            value = F.when(is_other, F.regexp_extract(line, other.java, other.group_numbers[other.names.index(name)]))
        of_first = F.regexp_extract(line, first.java, first.group_numbers[first.names.index(name)])
        if name != "message":
            of_first = F.when(of_first != syslog.NOTHING, of_first)
        value = F.when(is_first, of_first).otherwise(value)
        columns.append(_not_missing(stream, _with_year(stream, value) if name == "moment" else value))
    fault = F.when(~is_first & ~is_other, F.lit(_NO_SYSLOG))
    if stream.store is not None and syslog.declared_year(stream.options) is None and "moment" in known_names(stream):
        moment = F.regexp_extract(line, other.java, other.group_numbers[other.names.index("moment")])
        written_year = F.regexp_extract(moment, syslog.YEARLESS, 3)
        fault = fault.when(~is_first & moment.rlike(rf"\A{syslog.YEARLESS}\z") & (written_year == ""), F.lit(_NO_YEAR))
    return columns, fault, _null()


def _with_year(stream: Stream, moment: SparkColumn) -> SparkColumn:
    """Return times with their years, as :func:`warehouse.catalog.syslog.with_year`; the session has the stream's time zone."""
    month, day, written_year, clock = (F.regexp_extract(moment, syslog.YEARLESS, group) for group in (1, 2, 3, 4))
    number = ((F.instr(F.lit(syslog.MONTHS), month) + 2) / 3).cast("int").cast("string")
    rest = F.concat(F.lpad(number, 2, "0"), F.lit("-"), F.lpad(F.trim(day), 2, "0"), F.lit(" "), clock)
    declared = syslog.declared_year(stream.options)
    limit = F.date_format(F.expr(f"_metadata.file_modification_time + {_ALLOWED_AHEAD}"), _MOMENT)
    latest = F.substring(limit, 1, 4).cast("int") - (F.substring(rest, 1, 14) > F.substring(limit, 6, 14)).cast("int")
    latest = F.when(rest.startswith("02-29"), latest - latest % 4).otherwise(latest)
    year = F.when(written_year != "", written_year).otherwise(F.lit(declared) if declared else latest.cast("string"))
    return F.when(moment.rlike(rf"\A{syslog.YEARLESS}\z"), F.concat(year, F.lit("-"), rest)).otherwise(moment)
