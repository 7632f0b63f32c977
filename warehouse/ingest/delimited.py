"""Reads files of lines of fields, CSV, logs of Zeek and others, as data frames of typed rows (see :mod:`.reading`)."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.encodings import java_name
from warehouse.catalog.model import LINE_FORMATS
from warehouse.ingest.columns import Fields, inputs_of_records, match_columns
from warehouse.ingest.conversion import ambiguity_note, expected_value, from_text, from_zeek, is_number
from warehouse.ingest.dialect import delimiter_of, has_header_record, is_multiline, reader_options
from warehouse.ingest.headers import file_encoding
from warehouse.ingest.lines import FAULT, LINE, UNDECLARED, line_names, line_records
from warehouse.ingest.multiline import check_multiline
from warehouse.ingest.quotes import has_doubtful_lines
from warehouse.ingest.record_parts import (
    RECORD_POSITION,
    SHAPE,
    DelimitedShape,
    FileRecords,
    name_in_messages,
    paths_of,
    reading_rules,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["DelimitedShape", "delimited_records", "typed_fields"]


_OPEN_QUOTE = (
    "a quote that is open at the end of its line, or closes what the line before began: a record is one line unless the table "
    "declares options = { multiline = true }"
)
_WRONG_FIELD_COUNT = "the record does not have the {} fields of the header"
_OPEN = "_open"
"""The column that says whether a record leaves a quote open."""
_REST, _REST_SHAPE = "_rest", "_rest_shape"
_MARKER = "x"


def delimited_records(
    session: SparkSession, stream: Stream, header: tuple[str, ...], files: Sequence[LandingFile]
) -> Iterator[FileRecords]:
    """Yield the fields of files with one header as text, grouped by the way in which they are read."""
    if stream.format in LINE_FORMATS:
        names = line_names(stream, header)
        paths = paths_of(stream, files)
        read = partial(line_records, session, stream, names, paths)
        yield FileRecords(paths, read, DelimitedShape(names, None), (reading_rules(stream), names))
        return
    for shape, members in _by_shape(stream, header, files).items():
        reader = _checked_fields if shape.doubtful else _fields
        key = (stream.format, stream.options, stream.max_record, shape)
        paths = paths_of(stream, members)
        yield FileRecords(paths, partial(reader, session, stream, shape, paths), shape, key)


def _by_shape(stream: Stream, header: tuple[str, ...], files: Sequence[LandingFile]) -> dict[DelimitedShape, list[LandingFile]]:
    """Return delimited files with one header, grouped by the way in which they are read."""
    groups: dict[DelimitedShape, list[LandingFile]] = {}
    multiline = is_multiline(stream.options)
    for file in files:
        try:
            utf_16 = file_encoding(stream.landing / file.path, dict(stream.options))
        except (OSError, EOFError, zlib.error, ValueError):  # it was readable when it was planned: the read below fails too
            utf_16 = "utf-16-le"
        lines = check_multiline(stream, file).line_end if multiline else None
        shape = DelimitedShape(header, utf_16, not multiline and has_doubtful_lines(stream, file), lines)
        groups.setdefault(shape, []).append(file)
    return groups


def _options(stream: Stream, utf_16: str | None) -> dict[str, str]:
    options = reader_options(stream)
    if utf_16:  # without this option Hadoop expects a line end of one byte, not of two
        options = {key: value for key, value in options.items() if key.lower() not in ("encoding", "charset")}
        options |= {"encoding": java_name(utf_16), "lineSep": "\n"}
    return options


def _lower_case_options(stream: Stream, utf_16: str | None) -> dict[str, str]:
    """Return all reader options, with names in lower case."""
    return {key.lower(): value for key, value in (*stream.options, *_options(stream, utf_16).items())}


def _field_columns(shape: DelimitedShape) -> list[str]:
    return [f"_c{index}" for index in range(len(shape.header))]


def _parser_options(stream: Stream, shape: DelimitedShape) -> dict[str, str]:
    """Return the options of Spark's parser of lines."""
    return {
        # A quote inside quotes is written twice (RFC 4180); Spark's own default is a backslash before it.
        "escape": _lower_case_options(stream, shape.utf_16).get("quote", '"'),
        "emptyValue": "",
        # A text that no file has, so that only an unquoted empty field becomes null, not a quoted one.
        "nullValue": "\u0000",
        **_options(stream, shape.utf_16),
        "enforceSchema": "true",
        "mode": "PERMISSIVE",
        **_multiline_options(stream, shape),
    }


def _multiline_options(stream: Stream, shape: DelimitedShape) -> dict[str, str]:
    """Return the options for records over several lines: their line end, and the bound on a field."""
    if shape.line_end is None:
        return {}
    bound = (
        {} if "maxcharspercolumn" in _lower_case_options(stream, shape.utf_16) else {"maxCharsPerColumn": str(stream.max_record)}
    )
    return {"multiLine": "true", "lineSep": shape.line_end, **bound}


def _fields(session: SparkSession, stream: Stream, shape: DelimitedShape, paths: list[str]) -> DataFrame:
    """Return the fields of each record as text, :data:`SHAPE`, :data:`_OPEN` and the position."""
    rows = _read(session, stream, shape, _field_columns(shape), paths).selectExpr("*", f"false AS {_OPEN}", *RECORD_POSITION)
    return rows if shape.line_end is None else rows.where(f"{SHAPE} IS NULL OR trim({SHAPE}) != ''")


def _read(
    session: SparkSession, stream: Stream, shape: DelimitedShape, field_columns: Sequence[str], paths: list[str]
) -> DataFrame:
    reader = session.read.schema(", ".join(f"{name} string" for name in [*field_columns, SHAPE])).options(
        **{
            **_parser_options(stream, shape),
            "header": "true" if has_header_record(stream) else "false",
            "columnNameOfCorruptRecord": SHAPE,
            "recursiveFileLookup": "true",
            "__globPaths__": "false",
        },
    )
    return reader.csv(paths)


def _checked_fields(session: SparkSession, stream: Stream, shape: DelimitedShape, paths: list[str]) -> DataFrame:
    """Return the same as :func:`_fields`; a record that leaves a quote open is malformed.

    The reader is asked for one more field than the records have, so that it returns the text of each record. The text is parsed
    again with a marker as an additional last field: an open quote swallows the marker.
    """
    field_columns, lower_options = _field_columns(shape), _lower_case_options(stream, shape.utf_16)
    delimiter = delimiter_of(lower_options)
    records = _read(session, stream, shape, [*field_columns, _REST], paths).selectExpr("*", *RECORD_POSITION)
    schema = ", ".join(f"{name} string" for name in [*field_columns, _REST, _REST_SHAPE])
    marked = F.concat(F.col(SHAPE), F.lit(delimiter + _MARKER))
    options = {**_parser_options(stream, shape), "columnNameOfCorruptRecord": _REST_SHAPE}
    rows = records.withColumn("_marked", F.from_csv(marked, schema, options))
    parsed = {name: F.col(f"_marked.{name}") for name in field_columns}
    last = F.coalesce(F.col(f"_marked.{_REST}"), *[parsed[name] for name in reversed(field_columns)])
    is_complete = F.col(f"_marked.{_REST_SHAPE}").isNull() & (F.col(f"_marked.{_REST}") == _MARKER)
    written = _writer_options(lower_options)
    text = F.coalesce(SHAPE, F.to_csv(F.struct(*field_columns, _REST), written))
    return rows.select(
        *[F.when(is_complete, value).otherwise(F.col(name)).alias(name) for name, value in parsed.items()],
        F.when(~F.coalesce(is_complete, F.lit(False)), text).alias(SHAPE),  # noqa: FBT003 - a value
        F.coalesce(last.endswith(F.lit(delimiter + _MARKER)), F.lit(False)).alias(_OPEN),  # noqa: FBT003 - a value
        "_file",
        "_start",
        "_position",
        "_zero",
    )


def _writer_options(lower_options: Mapping[str, str]) -> dict[str, str]:
    """Return the options for writing fields as a record again."""
    quote = lower_options.get("quote", '"')
    return {"sep": delimiter_of(lower_options), "quote": quote, "escape": lower_options.get("escape", quote)}


def typed_fields(rows: DataFrame, stream: Stream, shape: DelimitedShape) -> DataFrame:
    """Return the values that are read of each record, and its position."""
    header, field_columns, lower_options = shape.header, _field_columns(shape), _lower_case_options(stream, shape.utf_16)
    inputs, quote = inputs_of_records(stream), lower_options.get("quote", '"')
    if shape.utf_16 and shape.line_end is None:
        rows = rows.withColumns({name: _without_carriage_return(name, lower_options) for name in (*field_columns[-1:], SHAPE)})
    position = {
        source: header.index(path[0])
        for source, path in match_columns(stream, header, _without_nested_fields(header)).paths.items()
    }
    values, faults = [], []
    for input_ in inputs:
        if input_.source not in position:
            values.append(F.lit(None).cast(input_.type).alias(input_.label))
            continue
        text = F.col(field_columns[position[input_.source]])
        value, failed = (from_zeek if stream.format == "zeek" else from_text)(text, input_, lower_options)
        values.append(value.alias(input_.label))
        if failed is not None:
            faults.append((input_, text, failed))
    rebuilt = F.to_csv(F.struct(*field_columns), _writer_options(lower_options)) if field_columns else F.lit(None).cast("string")
    malformed = F.col(SHAPE).isNotNull()
    fault = F.when(malformed, F.lit("malformed"))
    if stream.format in LINE_FORMATS:
        rebuilt = F.col(LINE)
        fault = fault.when(F.col(UNDECLARED).isNotNull(), F.lit("unknown_columns"))
        message = F.when(malformed, F.col(FAULT))
        message = message.when(F.col(UNDECLARED).isNotNull(), F.concat(F.lit("undeclared columns: "), F.col(UNDECLARED)))
    else:
        counts_quotes = quote and shape.line_end is None
        quotes = F.length(SHAPE) - F.length(F.replace(F.col(SHAPE), F.lit(quote), F.lit(""))) if counts_quotes else F.lit(0)
        message = F.when((quotes % 2 == 1) | F.col(_OPEN), F.lit(_OPEN_QUOTE))
        message = message.when(malformed, F.lit(_WRONG_FIELD_COUNT.format(len(header))))
    for input_, text, failed in faults:
        comma = " with a decimal comma" if lower_options.get("decimal") == "," and is_number(input_.type) else ""
        expected = expected_value(input_) + comma
        fault = fault.when(failed, F.lit("mistyped"))
        message = message.when(
            failed,
            F.concat(
                F.lit(f'column "{name_in_messages(input_)}": "'),
                F.substring(text, 1, 100),
                F.lit(f'" is no {expected}'),
                ambiguity_note(text, input_),
            ),
        )
    raw = F.when(malformed, F.col(SHAPE)).when(fault.isNotNull(), rebuilt) if faults else F.col(SHAPE)
    return rows.select(
        *values,
        "_file",
        "_start",
        "_position",
        # A row can still be rejected because of its times, so its text is computed, but only if a later step reads it.
        F.coalesce(raw, rebuilt).alias("_raw"),
        fault.alias("_fault"),
        message.alias("_fault_message"),
        "_zero",
    )


def _without_carriage_return(name: str, options: Mapping[str, str]) -> SparkColumn:
    """Return a field without a carriage return at its end, which Spark keeps if the option gives the line end."""
    nothing = [F.lit("\r"), F.lit(options.get("nullvalue", "\r") + "\r")]
    return F.when(~F.col(name).isin(nothing), F.regexp_replace(name, r"\r\z", ""))


def _without_nested_fields(header: tuple[str, ...]) -> Fields:
    return {name: {} for name in header}
