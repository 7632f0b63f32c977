"""Reads files with a record on each line by Spark, as fields of text: lines with a pattern, logfmt, syslog.

A line of syslog without a year gets it from the file's last change (see :mod:`warehouse.catalog.syslog`). An object in a store
has no such time: the time of its copy is a number for its tag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog import logfmt, syslog
from warehouse.catalog.line_patterns import line_pattern, pattern_of
from warehouse.ingest.columns import inputs_of_records, known_names
from warehouse.ingest.record_parts import SHAPE, paths_of, place_of_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["LINE", "STRANGE", "WHY", "line_names", "line_records"]

LINE = "_line"
"""The column of the whole line."""
WHY = "_why"
"""The column with the fault of an invalid line."""
STRANGE = "_strange"
"""The column with the undeclared names in a line; null if there are none."""
_NO_PATTERN = "the line does not match `pattern`"
_NO_LOGFMT = 'the line is not names and values alone, such as level=info msg="two words"'
_NO_SYSLOG = "the line is none of syslog: a time, a host, a program with a colon, a message"
_NO_YEAR = (
    "the line has no year, and an object in a store has no modification time that shows it; declare it in options, such as "
    '{ year = "2026" }'
)
_AHEAD = "INTERVAL 1 DAY"
_MOMENT = "yyyy-MM-dd HH:mm:ss"


def line_names(stream: Stream, header: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the fields that :func:`line_records` gives; ``header`` has the fields of every line of the format."""
    if stream.format != "logfmt":
        return header
    return tuple(dict.fromkeys(given.source for given in inputs_of_records(stream)))


def line_records(session: SparkSession, stream: Stream, names: Sequence[str], files: Sequence[LandingFile]) -> DataFrame:
    """Return the fields of each line as text, in the order of ``names``, with its fault and its position.

    Blank lines are skipped.
    """
    texts = session.read.option("recursiveFileLookup", "true").option("__globPaths__", "false").text(paths_of(stream, files))
    lines = texts.select("value", "_metadata").where(F.col("value").rlike(r"\S"))
    made = {"logfmt": _of_logfmt, "syslog": _of_syslog}.get(stream.format, _of_pattern)
    fields, wrong, strange = made(stream, names)
    return lines.select(
        *[value.alias(f"_c{index}") for index, value in enumerate(fields)],
        F.when(wrong.isNotNull(), F.col("value")).alias(SHAPE),
        wrong.alias(WHY),
        strange.alias(STRANGE),
        F.col("value").alias(LINE),
        *place_of_record(),
    )


_Read = tuple[list["SparkColumn"], "SparkColumn", "SparkColumn"]
"""The fields of a line, its fault (null: none), and its undeclared names."""


def _none() -> SparkColumn:
    return F.lit(None).cast("string")


def _known(stream: Stream, value: SparkColumn) -> SparkColumn:
    """Return a value, or null if it is empty or means a missing value."""
    absent = ["", *(text for key, text in stream.options if key.lower() == "nullvalue")]
    return F.when(~value.isin(absent), value)


def _of_pattern(stream: Stream, names: Sequence[str]) -> _Read:
    pattern = pattern_of(stream.options)
    if pattern is None or len(names) != len(pattern.group_numbers):
        raise ValueError("a stream of text has a pattern with these names")
    found = [_known(stream, F.regexp_extract("value", pattern.java, place)) for place in pattern.group_numbers]
    return found, F.when(~F.col("value").rlike(pattern.java), F.lit(_NO_PATTERN)), _none()


def _of_logfmt(stream: Stream, names: Sequence[str]) -> _Read:
    there = F.regexp_extract_all("value", F.lit(f"(?s){logfmt.PAIR}"), F.lit(1))
    texts = F.regexp_extract_all("value", F.lit(f"(?s){logfmt.PAIR}"), F.lit(2))
    found = []
    for name in names:
        text = F.get(texts, F.array_position(there, F.lit(name)).cast("int") - 1)
        found.append(F.when(text.startswith('"'), _unquoted(text)).otherwise(_known(stream, text)))
    read = F.filter(there, lambda each: each.isin(*names)) if names else F.array().cast("array<string>")
    twice = F.filter(read, lambda each: F.size(F.filter(read, lambda other: other == each)) > 1)
    more = F.size(read) > F.size(F.array_distinct(read))
    no_line = ~F.col("value").rlike(rf"\A(?s:{logfmt.LINE})\z")
    wrong = F.when(no_line, F.lit(_NO_LOGFMT)).when(more, F.concat(F.lit("the line has twice: "), F.get(twice, F.lit(0))))
    if stream.unknown_columns != "reject":
        return found, wrong, _none()
    strange = F.array_except(there, F.array(*[F.lit(name) for name in sorted(known_names(stream))]))
    return found, wrong, F.when(F.size(strange) > 0, F.array_join(strange, ", "))


def _unquoted(text: SparkColumn) -> SparkColumn:
    """Return the value of a text in quotes; escapes that JSON does not know stay as they are written."""
    plain = F.substring(text, F.lit(2), F.length(text) - 2)
    # One after the other, so that of two backslashes the second begins nothing.
    known = F.regexp_replace(text, rf"\G((?s:[^\\]|\\(?:{logfmt.ESCAPES}))*+)\\", r"$1\\\\")
    whole = F.concat(F.lit("["), known, F.lit("]"))
    value = F.get(F.from_json(whole, "array<string>", {"allowUnquotedControlChars": "true"}), F.lit(0))
    return F.when(text.contains("\\"), F.coalesce(value, plain)).otherwise(plain)


def _of_syslog(stream: Stream, names: Sequence[str]) -> _Read:
    first, other = (line_pattern(text) for text in syslog.PATTERNS)
    line = F.col("value")
    is_first, is_other = line.rlike(first.java), line.rlike(other.java)
    found = []
    for name in names:
        value = _none()
        if name in other.names:
            value = F.when(is_other, F.regexp_extract(line, other.java, other.group_numbers[other.names.index(name)]))
        of_first = F.regexp_extract(line, first.java, first.group_numbers[first.names.index(name)])
        if name != "message":
            of_first = F.when(of_first != syslog.NOTHING, of_first)
        value = F.when(is_first, of_first).otherwise(value)
        found.append(_known(stream, _with_year(stream, value) if name == "moment" else value))
    wrong = F.when(~is_first & ~is_other, F.lit(_NO_SYSLOG))
    if stream.store is not None and syslog.declared_year(stream.options) is None and "moment" in known_names(stream):
        moment = F.regexp_extract(line, other.java, other.group_numbers[other.names.index("moment")])
        said = F.regexp_extract(moment, syslog.YEARLESS, 3)
        wrong = wrong.when(~is_first & moment.rlike(rf"\A{syslog.YEARLESS}\z") & (said == ""), F.lit(_NO_YEAR))
    return found, wrong, _none()


def _with_year(stream: Stream, moment: SparkColumn) -> SparkColumn:
    """Return times with their years, as :func:`warehouse.catalog.syslog.with_year`; the session has the stream's time zone."""
    month, day, said, clock = (F.regexp_extract(moment, syslog.YEARLESS, place) for place in (1, 2, 3, 4))
    number = ((F.instr(F.lit(syslog.MONTHS), month) + 2) / 3).cast("int").cast("string")
    rest = F.concat(F.lpad(number, 2, "0"), F.lit("-"), F.lpad(F.trim(day), 2, "0"), F.lit(" "), clock)
    declared = syslog.declared_year(stream.options)
    limit = F.date_format(F.expr(f"_metadata.file_modification_time + {_AHEAD}"), _MOMENT)
    latest = F.substring(limit, 1, 4).cast("int") - (F.substring(rest, 1, 14) > F.substring(limit, 6, 14)).cast("int")
    latest = F.when(rest.startswith("02-29"), latest - latest % 4).otherwise(latest)
    year = F.when(said != "", said).otherwise(F.lit(declared) if declared else latest.cast("string"))
    return F.when(moment.rlike(rf"\A{syslog.YEARLESS}\z"), F.concat(year, F.lit("-"), rest)).otherwise(moment)
