"""Reads landing files as a Spark data frame of typed rows, each with its file and position.

The columns are the declared ones, then :data:`SOURCE_COLUMNS`: the file's URI, where its split starts and the row's position in
its task (together they give the record's number, see :mod:`warehouse.ingest.record_numbers`), the record's text, and ``_fault``
with ``_fault_message`` if the record has the wrong shape or a value of the wrong type. ``_zero`` is the number 0, as a value that
the optimiser does not know (see :mod:`warehouse.ingest.classify`). A bad value never fails the job: every conversion is a
``try_`` function (with ANSI on, one bad value would fail the whole job).

Text files are read in two parts: the records from Spark's reader, and the rows made from the records. The second part does not
depend on the files, so few rows use a cached plan for it (:mod:`warehouse.storage.prepared`).
"""

from __future__ import annotations

from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.json_arrays import ELEMENT_BOUNDARY, OBJECT_BOUNDARY
from warehouse.catalog.model import COLUMNAR
from warehouse.ingest.calculated_columns import with_calculated
from warehouse.ingest.columnar import read_columnar
from warehouse.ingest.columns import inputs_of_records, known_names
from warehouse.ingest.conversion import SEVERAL_ZONES, TIME_WITHOUT_DATE, ambiguity_note, expected_value, from_text
from warehouse.ingest.delimited import DelimitedShape, delimited_records, typed_fields
from warehouse.ingest.dialect import is_delimited, is_multiline
from warehouse.ingest.folder_columns import with_folder_columns
from warehouse.ingest.json_fields import ParsedFields, exact_text, is_parsed_as_text, json_path, parsed_fields
from warehouse.ingest.record_parts import RECORD_POSITION, SHAPE, FileRecords, name_in_messages, paths_of
from warehouse.ingest.whole_json import is_read_whole, needs_exact_decimals
from warehouse.storage.arrow_types import local_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.columns import Input
    from warehouse.ingest.files import LandingFile

__all__ = ["SOURCE_COLUMNS", "declared_rows", "read_files", "read_records", "typed_rows"]

SOURCE_COLUMNS = {
    "_file": "string",
    "_start": "bigint",
    "_position": "bigint",
    "_raw": "string",
    "_fault": "string",
    "_fault_message": "string",
    "_zero": "int",
}
_BLANKS = " \t\r\f\v"
"""A line of nothing else is no record."""
_OBJECT_AFTER_OBJECT = r'\}[^{}"]*\{'
"""Finds lines in which another object may follow an object."""


def read_files(
    session: SparkSession, stream: Stream, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> DataFrame:
    """Return the rows of landing files; ``groups`` are (CSV header, files), and the header is empty for other formats.

    ``session`` must have the stream's time zone: text without an offset is in that zone.

    Raises
    ------
    UnreadableFilesError
        When a footer cannot be read or a column cannot become the declared type.

    """
    parts: list[DataFrame] = []
    if stream.format in COLUMNAR:
        for _, files in groups:
            if readable := [file for file in files if file.size]:
                parts.extend(read_columnar(session, stream, readable))
    else:
        records = read_records(session, stream, groups)
        parts = [typed_rows(record.read(), stream, record.shape) for record in records]
    return declared_rows(session, stream, parts)


def read_records(
    session: SparkSession, stream: Stream, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> list[FileRecords]:
    """Return the records of text files, grouped by the way in which they are read; ``groups`` as of :func:`read_files`."""
    records: list[FileRecords] = []
    for header, files in groups:
        readable = [file for file in files if file.size]
        if readable and is_delimited(stream):
            records.extend(delimited_records(session, stream, header, readable))
        elif readable:
            records.extend(_lines(session, stream, readable))
    return records


def typed_rows(rows: DataFrame, stream: Stream, shape: DelimitedShape | None) -> DataFrame:
    """Return the values of each record, with its position; ``rows`` come from :class:`FileRecords` with that shape."""
    return _json(rows, stream) if shape is None else typed_fields(rows, stream, shape)


def declared_rows(session: SparkSession, stream: Stream, parts: Sequence[DataFrame]) -> DataFrame:
    """Return the declared columns and the source columns of all parts."""
    if not parts:
        return empty_rows(session, stream)
    rows = reduce(lambda left, right: left.unionByName(right), parts)
    carried = tuple(SOURCE_COLUMNS)
    return with_calculated(with_folder_columns(rows, stream, carried), stream, carried)


def empty_rows(session: SparkSession, stream: Stream) -> DataFrame:
    """Return a data frame without rows that has the declared and the source columns."""
    columns = [f"`{column.name}` {column.type}" for column in stream.columns]
    columns += [f"{name} {kind}" for name, kind in SOURCE_COLUMNS.items()]
    return local_frame(session, [], ", ".join(columns))


def _json(lines: DataFrame, stream: Stream) -> DataFrame:
    inputs = inputs_of_records(stream)
    options = {
        "timeZone": stream.timezone,
        **{key: value for key, value in stream.options if key.lower() != "multiline"},
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": SHAPE,
    }
    groups = parsed_fields(inputs, SHAPE)
    # Spark ignores text after an object, which may be another record.
    is_one_object = F.json_array_length(F.concat(F.lit("["), F.col("value"), F.lit("]"))) == 1
    rows = lines.select(
        "*",
        *[group.column(F.col("value"), options) for group in groups],
        F.when(~F.col("value").rlike(_OBJECT_AFTER_OBJECT) | is_one_object, F.json_object_keys("value")).alias("_keys"),
    )
    # Spark finds a field of a JSON object by its exact name; a name that differs in case only is another field.
    unknown = F.array_except("_keys", F.array(*[F.lit(name) for name in sorted(known_names(stream))]))
    misfits = reduce(lambda left, right: left | right, [group.shape().isNotNull() for group in groups], F.expr("false"))
    no_object = F.col("_keys").isNull()
    parsed = {input_.label: _json_value(input_, groups) for input_ in inputs}
    # Joined, not nested: nested expressions would double in size with every column.
    mistyped = F.concat_ws(
        "",
        *[
            F.when(
                F.get_json_object("value", path_in_json).isNotNull() & group.value(input_).isNull(),
                F.lit(f' "{name_in_messages(input_)}"'),
            )
            for group in groups for input_, path in group.inputs
            if (path_in_json := json_path(path)) is not None
        ],
    )  # fmt: skip
    fault = F.when(no_object, F.lit("malformed")).when(misfits, F.lit("mistyped"))
    message = F.when(no_object, F.lit("the line is not one whole JSON object")).when(
        misfits,
        F.concat(F.lit("values of another type than declared in:"), mistyped),
    )
    for input_, has_both in _ambiguous_inputs(inputs, groups):
        fault = fault.when(has_both, F.lit("mistyped"))
        path = input_.source.partition(".")[0]
        message = message.when(
            has_both,
            F.lit(f'column "{name_in_messages(input_)}": a field "{input_.source}" and one within "{path}" are both there'),
        )
    values = []
    for input_ in inputs:
        value = parsed[input_.label]
        if is_parsed_as_text(input_):
            value, failed = from_text(parsed[input_.label], input_, {})
            if failed is not None:
                text = F.substring(parsed[input_.label], 1, 100)
                fault = fault.when(failed, F.lit("mistyped"))
                mismatch = F.concat(
                    F.lit(f'column "{name_in_messages(input_)}": "'),
                    text,
                    F.lit(f'" is no {expected_value(input_)}'),
                    ambiguity_note(parsed[input_.label], input_),
                )
                message = message.when(failed, mismatch)
        values.append(value.alias(input_.label))
    times = [input_ for input_ in inputs if input_.type == "timestamp" and not is_parsed_as_text(input_)]
    if times and not any(key.lower() == "timestampformat" for key, _ in stream.options):
        # Few lines have text like a time; only their columns are checked.
        texts = [F.get_json_object("value", json_path((input_.source,)) or "") for input_ in times]
        column_names = ", ".join(name_in_messages(input_) for input_ in times)
        for line, form, description in (
            (r'"\s*T?[0-9]{1,2}:', TIME_WITHOUT_DATE, "a time without a date"),
            (SEVERAL_ZONES.replace("$", '"'), SEVERAL_ZONES, "a time with the name of several zones"),
        ):
            timed = F.col("value").rlike(line) & reduce(
                lambda left, right: left | right, [F.coalesce(text.rlike(form), F.expr("false")) for text in texts]
            )
            fault = fault.when(timed, F.lit("mistyped"))
            message = message.when(timed, F.lit(f"{description} in one of the columns {column_names}"))
    if stream.unknown_columns == "reject":
        has_undeclared = F.size(unknown) > 0
        fault = fault.when(has_undeclared, F.lit("unknown_columns"))
        message = message.when(has_undeclared, F.concat(F.lit("undeclared columns: "), F.array_join(unknown, ", ")))
    return rows.select(
        *values,
        "_file",
        "_start",
        "_position",
        F.col("value").alias("_raw"),
        fault.alias("_fault"),
        message.alias("_fault_message"),
        "_zero",
    )


def _lines(session: SparkSession, stream: Stream, files: Sequence[LandingFile]) -> Iterator[FileRecords]:
    """Yield the text of each record: a line, or an object of a file that is read whole."""
    whole_files = [file for file in files if is_read_whole(stream, file)]
    plain = [file for file in files if file not in whole_files] if whole_files else files
    if plain:
        paths = paths_of(stream, plain)
        yield FileRecords(paths, partial(_read_lines, session, paths), None, "lines of JSON")
    if whole_files:
        read = partial(_whole_texts, session, stream, whole_files)
        yield FileRecords(paths_of(stream, whole_files), read, None, None)


def _texts(session: SparkSession) -> DataFrameReader:
    return session.read.option("recursiveFileLookup", "true").option("__globPaths__", "false")


def _read_lines(session: SparkSession, paths: list[str]) -> DataFrame:
    lines = _texts(session).text(paths).where(f"trim(BOTH '{_BLANKS}' FROM value) != ''")  # blank lines are not numbered
    return lines.selectExpr("value", *RECORD_POSITION)


def _whole_texts(session: SparkSession, stream: Stream, files: Sequence[LandingFile]) -> DataFrame:
    """Return the text of each object of files that are read whole."""
    texts = _texts(session)
    exact = [file for file in files if needs_exact_decimals(stream, file)]
    text = F.regexp_replace("value", "^\ufeff", "")
    if is_multiline(stream.options):
        joined = F.concat(F.lit("["), F.regexp_replace(text, OBJECT_BOUNDARY, ELEMENT_BOUNDARY), F.lit("]"))
        text = F.when(text.rlike(r"^\s*\["), text).otherwise(joined)
    elements = F.try_parse_json(text).try_cast("array<variant>")
    parsers = (
        ([file for file in files if file not in exact], F.from_json(text, "array<string>")),
        (exact, F.transform(elements, _as_json)),
    )
    parts = []
    for members, objects in parsers:
        if not members:
            continue
        contents = texts.text(paths_of(stream, members), wholetext=True).select("value", "_metadata")
        # A file that was an array when it was checked, and that Spark cannot read as one, is a rejected record.
        inner = F.coalesce(objects, F.array("value"))
        parts.append(contents.select(F.explode(inner).alias("value"), "_metadata"))
    return reduce(lambda left, right: left.unionByName(right), [part.selectExpr("value", *RECORD_POSITION) for part in parts])


def _as_json(element: SparkColumn) -> SparkColumn:
    return F.to_json(element)


def _json_value(input_: Input, groups: Sequence[ParsedFields]) -> SparkColumn:
    values = [exact_text(group.value(input_), input_, path) for group in groups for path in group.paths(input_)]
    return reduce(F.coalesce, values)


def _ambiguous_inputs(inputs: Sequence[Input], groups: Sequence[ParsedFields]) -> Iterator[tuple[Input, SparkColumn]]:
    """Yield the sources that can be a name and a path, and whether a record has both."""
    for input_ in inputs:
        values = [group.value(input_) for group in groups if group.holds(input_)]
        if len(values) > 1:
            yield input_, values[0].isNotNull() & values[1].isNotNull()


def relative_path(uri: str, landing: Path) -> str:
    """Return a file's path relative to its landing directory from the URI that Spark gives."""
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - only rejected and deferred rows need it

    return Path(unquote(urlsplit(uri).path)).relative_to(landing).as_posix()
