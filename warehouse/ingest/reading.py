"""Landing files as a Spark data frame of typed rows, each knowing where it came from.

The columns are the declared ones, then :data:`SOURCE_COLUMNS`: the file's URI, where its split starts and the row's
position in its task (together they give the record's number, see :mod:`warehouse.ingest.rejected`), the record's text,
and ``_fault`` with ``_fault_message`` when the record has the wrong shape or a value of the wrong type; ``_zero`` is the number
0, of which only the source knows that it is (see :mod:`warehouse.ingest.classify`). A bad value never
fails the job: every conversion is a ``try_`` one (with ANSI on, one bad value would fail it all).
"""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.errors import FileProblem, UnreadableFilesError
from warehouse.ingest.columns import header_problem
from warehouse.ingest.local import local_frame
from warehouse.ingest.parquet_bounds import beyond_parquet_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["SOURCE_COLUMNS", "read_files"]

SOURCE_COLUMNS = {
    "_file": "string",
    "_start": "bigint",
    "_position": "bigint",
    "_raw": "string",
    "_fault": "string",
    "_fault_message": "string",
    "_zero": "int",
}
_SHAPE = "_shape"
_JUST_TIME = r"^\s*T?[0-9]{1,2}:"
"""A time without a date, which Spark's cast would take for one of today."""


def read_files(
    session: SparkSession, stream: Stream, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> DataFrame:
    """Return the rows of landing files; ``groups`` are (CSV header, files), the header empty for other formats.

    ``session`` must have the stream's time zone: text without an offset is read in it.

    Raises
    ------
    UnreadableFilesError
        When a Parquet footer cannot be read or a column cannot become the declared type.

    """
    readable = [(header, [file for file in files if file.size]) for header, files in groups]
    parts: list[DataFrame] = []
    for header, files in readable:
        if not files:
            continue
        if stream.format == "csv":
            parts.append(_csv(session, stream, header, files))
        elif stream.format == "json":
            parts.append(_json(session, stream, files))
        else:
            parts.extend(_parquet(session, stream, files))
    if not parts:
        return empty(session, stream)
    return reduce(lambda left, right: left.unionByName(right), parts)


def empty(session: SparkSession, stream: Stream) -> DataFrame:
    """Return a data frame of no rows with the declared and the source columns."""
    columns = [f"`{column.name}` {column.type}" for column in stream.columns]
    columns += [f"{name} {kind}" for name, kind in SOURCE_COLUMNS.items()]
    return local_frame(session, [], ", ".join(columns))


def _paths(stream: Stream, files: Sequence[LandingFile]) -> list[str]:
    return [str(stream.landing / file.path) for file in files]


def _source() -> list[SparkColumn]:
    return [
        F.col("_metadata.file_path").alias("_file"),
        F.col("_metadata.file_block_start").alias("_start"),
        F.monotonically_increasing_id().alias("_position"),
        F.expr("CAST(_metadata.file_block_start < 0 AS int)").alias("_zero"),
    ]


def _csv(session: SparkSession, stream: Stream, header: tuple[str, ...], files: Sequence[LandingFile]) -> DataFrame:
    declared = {column.name.lower(): column for column in stream.columns}
    physical = [f"_c{index}" for index in range(len(header))]
    stamps = {key.lower(): value for key, value in stream.options}
    quote = stamps.get("quote", '"')
    reader = session.read.schema(", ".join(f"{name} string" for name in [*physical, _SHAPE])).options(
        **{
            # A quote inside quotes is written twice (RFC 4180); Spark's own default is a backslash before it.
            "escape": quote,
            "emptyValue": "",
            # Any text that no file holds: so that only an unquoted empty field becomes null, not a quoted one.
            "nullValue": "\u0000",
            **dict(stream.options),
            "header": "true",
            "enforceSchema": "true",
            "mode": "PERMISSIVE",
            "columnNameOfCorruptRecord": _SHAPE,
            "recursiveFileLookup": "true",
            "__globPaths__": "false",
        },
    )
    rows = reader.csv(_paths(stream, files)).select("*", *_source())
    position = {name.lower(): index for index, name in enumerate(header)}
    values, faults = [], []
    for key, column in declared.items():
        if key not in position:
            values.append(F.lit(None).cast(column.type).alias(column.name))
            continue
        text = F.col(physical[position[key]])
        value, failed = _from_text(text, column.type, stamps)
        values.append(value.alias(column.name))
        if failed is not None:
            faults.append((column, text, failed))
    written = {
        "sep": stamps.get("delimiter", stamps.get("sep", ",")),
        "quote": quote,
        "escape": stamps.get("escape", quote),
    }
    rebuilt = F.to_csv(F.struct(*physical), written) if physical else F.lit(None).cast("string")
    misshapen = F.col(_SHAPE).isNotNull()
    fault = F.when(misshapen, F.lit("malformed"))
    message = F.when(misshapen, F.lit(f"the record does not have the {len(header)} fields of the header"))
    for column, text, failed in faults:
        fault = fault.when(failed, F.lit("mistyped"))
        message = message.when(
            failed,
            F.concat(F.lit(f'column "{column.name}": "'), F.substring(text, 1, 100), F.lit(f'" is no {column.type}')),
        )
    raw = F.when(misshapen, F.col(_SHAPE)).when(fault.isNotNull(), rebuilt) if faults else F.col(_SHAPE)
    return rows.select(
        *values,
        "_file",
        "_start",
        "_position",
        # A row can still be rejected by its times, so its text is kept whenever it is asked for, cheaply lazy.
        F.coalesce(raw, rebuilt).alias("_raw"),
        fault.alias("_fault"),
        message.alias("_fault_message"),
        "_zero",
    )


def _from_text(text: SparkColumn, kind: str, options: dict[str, str]) -> tuple[SparkColumn, SparkColumn | None]:
    if kind == "string":
        return text, None
    given = F.when(F.trim(text) != "", text)
    if kind == "timestamp" and "timestampformat" in options:
        value = F.try_to_timestamp(given, F.lit(options["timestampformat"]))
    elif kind == "date" and "dateformat" in options:
        value = F.try_to_timestamp(given, F.lit(options["dateformat"])).cast("date")
    elif kind == "timestamp":
        value = _instant_of(given)
    elif kind == "binary":
        return given.cast("binary"), None
    else:
        value = given.try_cast(kind)
    return value, given.isNotNull() & value.isNull()


def _instant_of(text: SparkColumn) -> SparkColumn:
    return F.when(~text.rlike(_JUST_TIME), text.try_cast("timestamp"))


def _json(session: SparkSession, stream: Stream, files: Sequence[LandingFile]) -> DataFrame:
    declared = [column.name for column in stream.columns]
    schema = ", ".join(f"{quoted(column.name)} {column.type}" for column in stream.columns)
    options = {
        "timeZone": stream.timezone,
        **dict(stream.options),
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _SHAPE,
    }
    lines = (
        session.read.option("recursiveFileLookup", "true")
        .option("__globPaths__", "false")
        .text(_paths(stream, files))
        .select("value", "_metadata")
        .where(F.trim("value") != "")  # before the rows are numbered: a blank line is no record
        .select("value", *_source())
    )
    rows = lines.select(
        "*",
        F.from_json("value", f"{schema}, {_SHAPE} string", options).alias("_parsed"),
        F.json_object_keys("value").alias("_keys"),
    )
    # Spark takes a field of a JSON object by its exact name, so one that differs in case only is another field.
    unknown = F.array_except("_keys", F.array(*[F.lit(name) for name in declared]))
    shape = F.col("_parsed").getField(_SHAPE)
    no_object = F.col("_keys").isNull()
    # Joined, not nested: an expression that holds the one before it twice doubles with every column.
    mistyped = F.concat_ws(
        "",
        *[
            F.when(
                F.get_json_object("value", f"$['{column}']").isNotNull() & F.col("_parsed").getField(column).isNull(),
                F.lit(f' "{column}"'),
            )
            for column in declared
        ],
    )
    fault = F.when(no_object, F.lit("malformed")).when(shape.isNotNull(), F.lit("mistyped"))
    message = F.when(no_object, F.lit("the line is not one whole JSON object")).when(
        shape.isNotNull(),
        F.concat(F.lit("values of another type than declared in:"), mistyped),
    )
    times = [column.name for column in stream.columns if column.type == "timestamp"]
    if times and not any(key.lower() == "timestampformat" for key, _ in stream.options):
        # Lines that hold text like a time at all are few; only these are looked at by column.
        texts = [F.get_json_object("value", f"$['{name}']") for name in times]
        timed = F.col("value").rlike(r'"\s*T?[0-9]{1,2}:') & reduce(
            lambda left, right: left | right, [F.coalesce(each.rlike(_JUST_TIME), F.expr("false")) for each in texts]
        )
        fault = fault.when(timed, F.lit("mistyped"))
        message = message.when(timed, F.lit(f"a time without a date in one of the columns {', '.join(times)}"))
    if stream.unknown_columns == "reject":
        strange = F.size(unknown) > 0
        fault = fault.when(strange, F.lit("unknown_columns"))
        message = message.when(strange, F.concat(F.lit("undeclared columns: "), F.array_join(unknown, ", ")))
    return rows.select(
        *[F.col("_parsed").getField(name).alias(name) for name in declared],
        "_file",
        "_start",
        "_position",
        F.col("value").alias("_raw"),
        fault.alias("_fault"),
        message.alias("_fault_message"),
        "_zero",
    )


def _parquet(session: SparkSession, stream: Stream, files: Sequence[LandingFile]) -> list[DataFrame]:
    return [
        _parquet_group(session, stream, list(names), group)
        for names, group in _by_footer(stream, files).values()
    ]


def _by_footer(
    stream: Stream, files: Sequence[LandingFile]
) -> dict[str, tuple[tuple[str, ...], list[LandingFile]]]:
    import pyarrow.parquet  # noqa: PLC0415 - only Parquet landings need it

    groups: dict[str, tuple[tuple[str, ...], list[LandingFile]]] = {}
    problems = []
    for file in files:
        path = stream.landing / file.path
        try:
            schema = pyarrow.parquet.read_schema(path)
            bomb = beyond_parquet_bounds(path, file.size, file.mtime_ns, stream.max_record, stream.max_expansion)
        except Exception as error:  # noqa: BLE001 - whatever a damaged footer makes its reader raise is the finding
            problems.append(FileProblem(file.path, "unreadable", f"its footer cannot be read: {error}"))
            continue
        problem = bomb or header_problem(stream, tuple(schema.names))
        if problem:
            problems.append(FileProblem(file.path, *problem))
            continue
        key = json.dumps([(field.name, str(field.type)) for field in schema])
        groups.setdefault(key, (tuple(schema.names), []))[1].append(file)
    if problems:
        raise UnreadableFilesError(stream.name, problems)
    return groups


def _parquet_group(
    session: SparkSession, stream: Stream, names: list[str], files: Sequence[LandingFile]
) -> DataFrame:
    rows = (
        session.read.options(recursiveFileLookup="true", __globPaths__="false")
        .parquet(*_paths(stream, files))
        .select("*", "_metadata.file_path", "_metadata.row_index")
    )
    kinds = {field.name.lower(): (field.name, field.dataType.simpleString()) for field in rows.schema.fields}
    values, faults = [], []
    nested = [
        f"{column.name} is {kinds[column.name.lower()][1]}, declared {column.type}"
        for column in stream.columns
        if column.name.lower() in kinds and _other_shape(kinds[column.name.lower()][1], column.type)
    ]
    if nested:
        raise UnreadableFilesError(stream.name, [FileProblem(file.path, "mistyped", ", ".join(nested)) for file in files])
    for column in stream.columns:
        found = kinds.get(column.name.lower())
        if found is None:
            values.append(F.lit(None).cast(column.type).alias(column.name))
            continue
        name, kind = found
        source = F.col(quoted(name))
        if kind == column.type:
            values.append(source.alias(column.name))
            continue
        # A timestamp without time zone is local time of the stream: the session's time zone makes it an instant.
        value = _instant_of(source) if (kind, column.type) == ("string", "timestamp") else source.try_cast(column.type)
        values.append(value.alias(column.name))
        faults.append((column, source.isNotNull() & value.isNull()))
    fault, message = F.lit(None).cast("string"), F.lit(None).cast("string")
    for column, failed in reversed(faults):
        fault = F.when(failed, F.lit("mistyped")).otherwise(fault)
        message = F.when(failed, F.lit(f'column "{column.name}": the value is no {column.type}')).otherwise(message)
    return rows.select(
        *values,
        F.col("file_path").alias("_file"),
        F.lit(0).cast("bigint").alias("_start"),
        F.col("row_index").alias("_position"),
        F.to_json(F.struct(*[F.col(quoted(name)) for name in names])).alias("_raw"),
        fault.alias("_fault"),
        message.alias("_fault_message"),
        F.expr("CAST(row_index < 0 AS int)").alias("_zero"),
    )


def _other_shape(kind: str, declared: str) -> bool:
    """Whether one type is nested and the other is not, or nested otherwise: no value of it can be meant."""
    shapes = [text.split("<", 1)[0] if "<" in text else "" for text in (kind, declared)]
    return shapes[0] != shapes[1]


def relative_path(uri: str, landing: Path) -> str:
    """Return a file's path relative to its landing directory from the URI that Spark gives."""
    from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - only rejected and deferred rows need it

    return Path(unquote(urlsplit(uri).path)).relative_to(landing).as_posix()
