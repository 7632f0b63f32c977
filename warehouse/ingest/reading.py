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

from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.json_arrays import ELEMENT_BOUNDARY, OBJECT_BOUNDARY
from warehouse.catalog.model import COLUMNAR
from warehouse.ingest.calculated_columns import with_calculated
from warehouse.ingest.columnar import read_columnar
from warehouse.ingest.columns import inputs_of_records, known_names
from warehouse.ingest.conversion import JUST_TIME, SEVERAL_ZONES, from_text, says_more, says_what
from warehouse.ingest.delimited import Delimited, delimited_records, typed_fields
from warehouse.ingest.dialect import is_delimited, is_multiline
from warehouse.ingest.folder_columns import with_folder_columns
from warehouse.ingest.json_fields import Parsed, exact_text, json_path, parsed, seen_text
from warehouse.ingest.record_parts import PLACE_OF_RECORD, SHAPE, FileRecords, called_of, paths_of
from warehouse.ingest.whole_json import is_exact, is_whole
from warehouse.storage.arrow_types import local_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.columns import Input
    from warehouse.ingest.files import LandingFile

__all__ = ["SOURCE_COLUMNS", "read_files", "read_records", "typed", "whole"]

SOURCE_COLUMNS = {
    "_file": "string",
    "_start": "bigint",
    "_position": "bigint",
    "_raw": "string",
    "_fault": "string",
    "_fault_message": "string",
    "_zero": "int",
}
_ANOTHER = r'\}[^{}"]*\{'
"""Finds lines in which another object may follow an object."""


def read_files(
    session: SparkSession, stream: Stream, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> DataFrame:
    """Return the rows of landing files; ``groups`` are (CSV header, files), the header empty for other formats.

    ``session`` must have the stream's time zone: text without an offset is read in it.

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
        parts = [typed(each.rows, stream, each.shape) for each in records]
    return whole(session, stream, parts)


def read_records(
    session: SparkSession, stream: Stream, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> list[FileRecords]:
    """Return the records of text files, by the way in which they are read; ``groups`` as of :func:`read_files`."""
    found: list[FileRecords] = []
    for header, files in groups:
        readable = [file for file in files if file.size]
        if readable and is_delimited(stream):
            found.extend(delimited_records(session, stream, header, readable))
        elif readable:
            found.append(FileRecords(_lines(session, stream, readable), None))
    return found


def typed(rows: DataFrame, stream: Stream, shape: Delimited | None) -> DataFrame:
    """Return the values of each record, with its position; ``rows`` are as in :class:`FileRecords` of that shape."""
    return _json(rows, stream) if shape is None else typed_fields(rows, stream, shape)


def whole(session: SparkSession, stream: Stream, parts: Sequence[DataFrame]) -> DataFrame:
    """Return the declared columns and the source columns of all that was read."""
    if not parts:
        return empty(session, stream)
    rows = reduce(lambda left, right: left.unionByName(right), parts)
    carried = tuple(SOURCE_COLUMNS)
    return with_calculated(with_folder_columns(rows, stream, carried), stream, carried)


def empty(session: SparkSession, stream: Stream) -> DataFrame:
    """Return a data frame of no rows with the declared and the source columns."""
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
    parses = parsed(inputs, SHAPE)
    # Spark ignores text after an object, which may be another record.
    alone = F.json_array_length(F.concat(F.lit("["), F.col("value"), F.lit("]"))) == 1
    rows = lines.select(
        "*",
        *[each.column(F.col("value"), options) for each in parses],
        F.when(~F.col("value").rlike(_ANOTHER) | alone, F.json_object_keys("value")).alias("_keys"),
    )
    # Spark takes a field of a JSON object by its exact name, so one that differs in case only is another field.
    unknown = F.array_except("_keys", F.array(*[F.lit(name) for name in sorted(known_names(stream))]))
    misfits = reduce(lambda left, right: left | right, [each.shape().isNotNull() for each in parses], F.expr("false"))
    no_object = F.col("_keys").isNull()
    found = {given.label: _json_value(given, parses) for given in inputs}
    # Joined, not nested: an expression that holds the one before it twice doubles with every column.
    mistyped = F.concat_ws(
        "",
        *[
            F.when(
                F.get_json_object("value", way).isNotNull() & each.value(given).isNull(),
                F.lit(f' "{called_of(given)}"'),
            )
            for each in parses for given, path in each.given
            if (way := json_path(path)) is not None
        ],
    )  # fmt: skip
    fault = F.when(no_object, F.lit("malformed")).when(misfits, F.lit("mistyped"))
    message = F.when(no_object, F.lit("the line is not one whole JSON object")).when(
        misfits,
        F.concat(F.lit("values of another type than declared in:"), mistyped),
    )
    for given, both in _said_twice(inputs, parses):
        fault = fault.when(both, F.lit("mistyped"))
        path = given.source.partition(".")[0]
        message = message.when(
            both, F.lit(f'column "{called_of(given)}": a field "{given.source}" and one within "{path}" are both there')
        )
    values = []
    for given in inputs:
        value = found[given.label]
        if seen_text(given):
            value, failed = from_text(found[given.label], given, {})
            if failed is not None:
                text = F.substring(found[given.label], 1, 100)
                fault = fault.when(failed, F.lit("mistyped"))
                said = F.concat(
                    F.lit(f'column "{called_of(given)}": "'),
                    text,
                    F.lit(f'" is no {says_what(given)}'),
                    says_more(found[given.label], given),
                )
                message = message.when(failed, said)
        values.append(value.alias(given.label))
    times = [given for given in inputs if given.type == "timestamp" and not seen_text(given)]
    if times and not any(key.lower() == "timestampformat" for key, _ in stream.options):
        # Lines that hold text like a time at all are few; only these are looked at by column.
        texts = [F.get_json_object("value", json_path((given.source,)) or "") for given in times]
        named = ", ".join(called_of(given) for given in times)
        for line, form, what in (
            (r'"\s*T?[0-9]{1,2}:', JUST_TIME, "a time without a date"),
            (SEVERAL_ZONES.replace("$", '"'), SEVERAL_ZONES, "a time with the name of several zones"),
        ):
            timed = F.col("value").rlike(line) & reduce(
                lambda left, right: left | right, [F.coalesce(each.rlike(form), F.expr("false")) for each in texts]
            )
            fault = fault.when(timed, F.lit("mistyped"))
            message = message.when(timed, F.lit(f"{what} in one of the columns {named}"))
    if stream.unknown_columns == "reject":
        strange = F.size(unknown) > 0
        fault = fault.when(strange, F.lit("unknown_columns"))
        message = message.when(strange, F.concat(F.lit("undeclared columns: "), F.array_join(unknown, ", ")))
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


def _lines(session: SparkSession, stream: Stream, files: Sequence[LandingFile]) -> DataFrame:
    """Return the text of each record: a line, or an object of a file that is read whole."""
    texts = session.read.option("recursiveFileLookup", "true").option("__globPaths__", "false")
    wholes = [file for file in files if is_whole(stream, file)]
    plain = [file for file in files if file not in wholes] if wholes else files
    parts = []
    if plain:  # blank lines are skipped before the rows are numbered
        parts.append(texts.text(paths_of(stream, plain)).selectExpr("value", "_metadata").where("trim(value) != ''"))
    exact = [file for file in wholes if is_exact(stream, file)]
    text = F.regexp_replace("value", "^\ufeff", "")
    if is_multiline(stream.options):
        joined = F.concat(F.lit("["), F.regexp_replace(text, OBJECT_BOUNDARY, ELEMENT_BOUNDARY), F.lit("]"))
        text = F.when(text.rlike(r"^\s*\["), text).otherwise(joined)
    elements = F.try_parse_json(text).try_cast("array<variant>")
    ways = (
        ([file for file in wholes if file not in exact], F.from_json(text, "array<string>")),
        (exact, F.transform(elements, _as_json)),
    )
    for members, objects in ways:
        if not members:
            continue
        whole = texts.text(paths_of(stream, members), wholetext=True).select("value", "_metadata")
        # A file that was an array when it was checked, and that Spark cannot read as one, is a rejected record.
        inner = F.coalesce(objects, F.array("value"))
        parts.append(whole.select(F.explode(inner).alias("value"), "_metadata"))
    return reduce(lambda left, right: left.unionByName(right), [part.selectExpr("value", *PLACE_OF_RECORD) for part in parts])


def _as_json(element: SparkColumn) -> SparkColumn:
    return F.to_json(element)


def _json_value(given: Input, parses: Sequence[Parsed]) -> SparkColumn:
    values = [exact_text(each.value(given), given, path) for each in parses for path in each.paths(given)]
    return reduce(F.coalesce, values)


def _said_twice(inputs: Sequence[Input], parses: Sequence[Parsed]) -> Iterator[tuple[Input, SparkColumn]]:
    """Yield the sources that can be a name and a path, and whether a record has both."""
    for given in inputs:
        values = [each.value(given) for each in parses if each.holds(given)]
        if len(values) > 1:
            yield given, values[0].isNotNull() & values[1].isNotNull()


def relative_path(uri: str, landing: Path) -> str:
    """Return a file's path relative to its landing directory from the URI that Spark gives."""
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - only rejected and deferred rows need it

    return Path(unquote(urlsplit(uri).path)).relative_to(landing).as_posix()
