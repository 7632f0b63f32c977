"""Files of lines of fields, CSV, logs of Zeek and others, as a Spark data frame of typed rows (see :mod:`.reading`)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.encodings import java_name
from warehouse.catalog.model import LINE_FORMATS
from warehouse.ingest.columns import Fields, inputs_of_records, matched
from warehouse.ingest.conversion import from_text, from_zeek, is_number, says_more, says_what
from warehouse.ingest.dialect import delimiter_of, has_header_record, is_multiline, reader_options
from warehouse.ingest.headers import file_encoding
from warehouse.ingest.lines import LINE, STRANGE, WHY, line_names, line_records
from warehouse.ingest.multiline import look
from warehouse.ingest.quotes import has_doubtful_lines
from warehouse.ingest.record_parts import PLACE_OF_RECORD, SHAPE, Delimited, FileRecords, called_of, paths_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["Delimited", "delimited_records", "typed_fields"]


_OVER_LINES = (
    "a quote that is open at the end of its line, or closes what the line before began: a record is one line unless the table "
    "declares options = { multiline = true }"
)
_OTHER_COUNT = "the record does not have the {} fields of the header"
_OPEN = "_open"
"""The column that says whether a record leaves a quote open."""
_REST, _REST_SHAPE = "_rest", "_rest_shape"
_MARK = "x"


def delimited_records(
    session: SparkSession, stream: Stream, header: tuple[str, ...], files: Sequence[LandingFile]
) -> Iterator[FileRecords]:
    """Yield the fields of files with that header as text, by how they are read."""
    if stream.format in LINE_FORMATS:
        names = line_names(stream, header)
        yield FileRecords(line_records(session, stream, names, files), Delimited(names, None))
        return
    for shape, members in _by_shape(stream, header, files).items():
        read = _asked if shape.doubtful else _fields
        yield FileRecords(read(session, stream, shape, members), shape)


def _by_shape(stream: Stream, header: tuple[str, ...], files: Sequence[LandingFile]) -> dict[Delimited, list[LandingFile]]:
    """Return delimited files with that header by how they are read."""
    groups: dict[Delimited, list[LandingFile]] = {}
    multiline = is_multiline(stream.options)
    for file in files:
        try:
            wide = file_encoding(stream.landing / file.path, dict(stream.options))
        except (OSError, EOFError, zlib.error, ValueError):  # it was readable when it was planned: the read below fails too
            wide = "utf-16-le"
        lines = look(stream, file).ends if multiline else None
        shape = Delimited(header, wide, not multiline and has_doubtful_lines(stream, file), lines)
        groups.setdefault(shape, []).append(file)
    return groups


def _options(stream: Stream, wide: str | None) -> dict[str, str]:
    options = reader_options(stream)
    if wide:  # without this option Hadoop looks for one byte that ends a line, not for two
        options = {key: value for key, value in options.items() if key.lower() not in ("encoding", "charset")}
        options |= {"encoding": java_name(wide), "lineSep": "\n"}
    return options


def _stamps(stream: Stream, wide: str | None) -> dict[str, str]:
    """The options by their names in lower case."""
    return {key.lower(): value for key, value in (*stream.options, *_options(stream, wide).items())}


def _physical(shape: Delimited) -> list[str]:
    return [f"_c{index}" for index in range(len(shape.header))]


def _parsing(stream: Stream, shape: Delimited) -> dict[str, str]:
    """Return the options of Spark's parser of lines."""
    return {
        # A quote inside quotes is written twice (RFC 4180); Spark's own default is a backslash before it.
        "escape": _stamps(stream, shape.wide).get("quote", '"'),
        "emptyValue": "",
        # Any text that no file holds: so that only an unquoted empty field becomes null, not a quoted one.
        "nullValue": "\u0000",
        **_options(stream, shape.wide),
        "enforceSchema": "true",
        "mode": "PERMISSIVE",
        **_of_lines(stream, shape),
    }


def _of_lines(stream: Stream, shape: Delimited) -> dict[str, str]:
    """Return the options for records over several lines: their line end, and the bound on a field."""
    if shape.ends is None:
        return {}
    bound = {} if "maxcharspercolumn" in _stamps(stream, shape.wide) else {"maxCharsPerColumn": str(stream.max_record)}
    return {"multiLine": "true", "lineSep": shape.ends, **bound}


def _fields(session: SparkSession, stream: Stream, shape: Delimited, files: Sequence[LandingFile]) -> DataFrame:
    """Return the fields of each record as text, :data:`SHAPE`, :data:`_OPEN` and where it stands."""
    rows = _read(session, stream, shape, _physical(shape), files).selectExpr("*", f"false AS {_OPEN}", *PLACE_OF_RECORD)
    return rows if shape.ends is None else rows.where(f"{SHAPE} IS NULL OR trim({SHAPE}) != ''")


def _read(
    session: SparkSession, stream: Stream, shape: Delimited, physical: Sequence[str], files: Sequence[LandingFile]
) -> DataFrame:
    reader = session.read.schema(", ".join(f"{name} string" for name in [*physical, SHAPE])).options(
        **{
            **_parsing(stream, shape),
            "header": "true" if has_header_record(stream) else "false",
            "columnNameOfCorruptRecord": SHAPE,
            "recursiveFileLookup": "true",
            "__globPaths__": "false",
        },
    )
    return reader.csv(paths_of(stream, files))


def _asked(session: SparkSession, stream: Stream, shape: Delimited, files: Sequence[LandingFile]) -> DataFrame:
    """Return the same as :func:`_fields`; a record that leaves a quote open is malformed.

    One more field than there are is requested, so that the reader gives the text of each record. The text is parsed again with a
    marker as an additional last field: an open quote swallows the marker.
    """
    physical, stamps = _physical(shape), _stamps(stream, shape.wide)
    delimiter = delimiter_of(stamps)
    read = _read(session, stream, shape, [*physical, _REST], files).selectExpr("*", *PLACE_OF_RECORD)
    schema = ", ".join(f"{name} string" for name in [*physical, _REST, _REST_SHAPE])
    marked = F.concat(F.col(SHAPE), F.lit(delimiter + _MARK))
    options = {**_parsing(stream, shape), "columnNameOfCorruptRecord": _REST_SHAPE}
    rows = read.withColumn("_marked", F.from_csv(marked, schema, options))
    parsed = {name: F.col(f"_marked.{name}") for name in physical}
    last = F.coalesce(F.col(f"_marked.{_REST}"), *[parsed[name] for name in reversed(physical)])
    sound = F.col(f"_marked.{_REST_SHAPE}").isNull() & (F.col(f"_marked.{_REST}") == _MARK)
    written = _written(stamps)
    whole = F.coalesce(SHAPE, F.to_csv(F.struct(*physical, _REST), written))
    return rows.select(
        *[F.when(sound, value).otherwise(F.col(name)).alias(name) for name, value in parsed.items()],
        F.when(~F.coalesce(sound, F.lit(False)), whole).alias(SHAPE),  # noqa: FBT003 - a value
        F.coalesce(last.endswith(F.lit(delimiter + _MARK)), F.lit(False)).alias(_OPEN),  # noqa: FBT003 - a value
        "_file",
        "_start",
        "_position",
        "_zero",
    )


def _written(stamps: Mapping[str, str]) -> dict[str, str]:
    """Return the options by which fields are written as a record again."""
    quote = stamps.get("quote", '"')
    return {"sep": delimiter_of(stamps), "quote": quote, "escape": stamps.get("escape", quote)}


def typed_fields(rows: DataFrame, stream: Stream, shape: Delimited) -> DataFrame:
    """Return the values that are read of each record, and where it stands."""
    header, physical, stamps = shape.header, _physical(shape), _stamps(stream, shape.wide)
    inputs, quote = inputs_of_records(stream), stamps.get("quote", '"')
    if shape.wide and shape.ends is None:
        rows = rows.withColumns({name: _without_return(name, stamps) for name in (*physical[-1:], SHAPE)})
    position = {source: header.index(path[0]) for source, path in matched(stream, header, _flat(header)).paths.items()}
    values, faults = [], []
    for given in inputs:
        if given.source not in position:
            values.append(F.lit(None).cast(given.type).alias(given.label))
            continue
        text = F.col(physical[position[given.source]])
        value, failed = (from_zeek if stream.format == "zeek" else from_text)(text, given, stamps)
        values.append(value.alias(given.label))
        if failed is not None:
            faults.append((given, text, failed))
    rebuilt = F.to_csv(F.struct(*physical), _written(stamps)) if physical else F.lit(None).cast("string")
    misshapen = F.col(SHAPE).isNotNull()
    fault = F.when(misshapen, F.lit("malformed"))
    if stream.format in LINE_FORMATS:
        rebuilt = F.col(LINE)
        fault = fault.when(F.col(STRANGE).isNotNull(), F.lit("unknown_columns"))
        message = F.when(misshapen, F.col(WHY))
        message = message.when(F.col(STRANGE).isNotNull(), F.concat(F.lit("undeclared columns: "), F.col(STRANGE)))
    else:
        counted = quote and shape.ends is None
        quotes = F.length(SHAPE) - F.length(F.replace(F.col(SHAPE), F.lit(quote), F.lit(""))) if counted else F.lit(0)
        message = F.when((quotes % 2 == 1) | F.col(_OPEN), F.lit(_OVER_LINES))
        message = message.when(misshapen, F.lit(_OTHER_COUNT.format(len(header))))
    for given, text, failed in faults:
        comma = " with a decimal comma" if stamps.get("decimal") == "," and is_number(given.type) else ""
        meant = says_what(given) + comma
        fault = fault.when(failed, F.lit("mistyped"))
        message = message.when(
            failed,
            F.concat(
                F.lit(f'column "{called_of(given)}": "'),
                F.substring(text, 1, 100),
                F.lit(f'" is no {meant}'),
                says_more(text, given),
            ),
        )
    raw = F.when(misshapen, F.col(SHAPE)).when(fault.isNotNull(), rebuilt) if faults else F.col(SHAPE)
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


def _without_return(name: str, options: Mapping[str, str]) -> SparkColumn:
    """Return a field without a carriage return at its end, which Spark keeps if the option gives the line end."""
    nothing = [F.lit("\r"), F.lit(options.get("nullvalue", "\r") + "\r")]
    return F.when(~F.col(name).isin(nothing), F.regexp_replace(name, r"\r\z", ""))


def _flat(header: tuple[str, ...]) -> Fields:
    return {name: {} for name in header}
