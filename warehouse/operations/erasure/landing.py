"""Finds landing files that still have a key: erased rows would return from them, or remain in them.

Files are read as text, record by record, without Spark. In a record with the header's shape the value of the search key counts,
in other records any text that shows the key. All files count: loaded, waiting, unreadable and archived ones.
"""

from __future__ import annotations

import csv
import io
import json
import zlib
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from warehouse.catalog.avro_files import avro_batches, avro_schema
from warehouse.catalog.avro_schemas import has_union
from warehouse.catalog.codecs import open_decompressed
from warehouse.catalog.declaration import stream_of
from warehouse.catalog.folder_values import folder_values
from warehouse.catalog.line_formats import line_reader
from warehouse.catalog.model import COLUMNAR
from warehouse.catalog.patterns import matches
from warehouse.errors import UsageError
from warehouse.ingest.bounds import bounds_problems
from warehouse.ingest.columnar import columnar_bounds_problem
from warehouse.ingest.columns import path_of
from warehouse.ingest.dialect import delimiter_of, has_header_record, is_delimited, is_multiline, reader_options, text_encoding
from warehouse.ingest.files import name_without_number
from warehouse.ingest.headers import csv_header, file_encoding, zeek_header
from warehouse.ingest.landing import list_landing
from warehouse.ingest.object_copies import copy_objects
from warehouse.ingest.whole_json import is_read_whole, object_texts
from warehouse.operations.erasure.key_matcher import text_matcher
from warehouse.serving.engine import Resources, connect
from warehouse.serving.keys import keys_of, parse_key
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.records import TableState
    from warehouse.ingest.files import LandingFile
    from warehouse.steps.erased_keys import ErasedKeys

__all__ = ["files_with_keys", "landing_files"]

_FIELD_LIMIT = 1 << 30
_NO_NUMBERS = ("string", "boolean", "binary", "date", "timestamp")


def landing_files(catalog: Catalog, state: TableState, keys: ErasedKeys) -> tuple[Path, ...]:
    """Return the files of a table's landing directories that hold one of the keys, declared or as recorded."""
    if state.archive_of is not None:
        return ()
    stream = catalog.source(state.name) or stream_of(state.declaration, state.name, catalog.root)
    directories = (stream.landing_path, *([stream.move_to] if stream.move_to else []))
    return tuple(files_with_keys(stream, directories, keys))


def files_with_keys(stream: Stream, directories: tuple[Path, ...], keys: ErasedKeys) -> Iterator[Path]:
    """Yield the files of a stream's directories that have one of the keys.

    A file that cannot be read, or exceeds the stream's bounds, is assumed to have one.

    Parameters
    ----------
    stream
        The declaration: format, options, pattern of names.
    directories
        The landing directory (or place in a store), and the directories to which loaded files were moved; missing ones are empty.
    keys
        The keys.

    """
    csv.field_size_limit(_FIELD_LIMIT)
    for directory in directories:
        if not directory.is_dir():
            continue
        for file in list_landing(directory, "*"):
            if not (matches(file.path, stream.files) or matches(name_without_number(file.path), stream.files)):
                continue
            try:
                with _local_landing(stream, directory, file) as local_stream:
                    has_key = local_stream is None or (
                        file.size and (_is_beyond(local_stream, file) or _holds(local_stream, file, keys))
                    )
            except (OSError, EOFError, zlib.error, csv.Error, duckdb.Error, ValueError, LookupError):
                has_key = True
            if has_key:
                yield directory / file.path


@contextmanager
def _local_landing(stream: Stream, directory: Path, file: LandingFile) -> Iterator[Stream | None]:
    """Yield the stream with a local directory as its landing; for a store, with a copy of the file in it. None: no copy."""
    if store_of(directory).local_paths:
        yield replace(stream, landing=directory)
        return
    with TemporaryDirectory(prefix="stream-wh-") as temporary_directory:
        local_stream = replace(stream, landing=Path(temporary_directory))
        yield None if copy_objects(local_stream, [file]) else local_stream


def _is_beyond(stream: Stream, file: LandingFile) -> bool:
    """Whether a file exceeds a bound of its stream, so that neither an update nor an erasure may read it."""
    if stream.format not in COLUMNAR:
        return bool(bounds_problems(stream, [file]))
    return columnar_bounds_problem(stream, file) is not None


def _holds(stream: Stream, file: LandingFile, keys: ErasedKeys) -> bool:
    path = stream.landing / file.path
    columns = {column.name.lower(): column for column in stream.columns}
    key_columns = [columns[key_column.name.lower()] for key_column in keys.columns if key_column.name.lower() in columns]
    if any(column.expr is not None or column.formats or column.timezone is not None for column in key_columns):
        return True  # the file may spell the key in another way
    comma = any(key.lower() == "decimal" and value == "," for key, value in stream.options)
    if comma and any(column.type not in _NO_NUMBERS for column in key_columns):
        return True  # the text 1.234,5 does not contain 1234.5
    folders = _folders(stream, file.path, {column.name for column in key_columns})
    if folders is None:
        return True  # the path lacks a part of the key
    sources = {column.name.lower(): column.source_name for column in key_columns}
    moved = any(column.source_name != column.name for column in key_columns)  # an older file may have the key under another name
    if stream.format in ("orc", "avro") and any(column.type == "timestamp" for column in key_columns):
        return True  # this reader does not know all forms of times
    if stream.format == "syslog" and any(column.source_name.lower() == "moment" for column in key_columns):
        return True  # its text has no year
    if stream.format in COLUMNAR:
        return _columnar_holds(stream, path, keys, sources, folders, moved=moved)
    test = text_matcher(keys)
    records = _csv_records(stream, path) if is_delimited(stream) else _json_records(path, whole=is_read_whole(stream, file))
    folder_text = " ".join(filter(None, folders.values()))
    for values, record in records:
        text = f"{folder_text} {record}" if folders else record
        if values is None or (key := _key(values | folders, keys, stream.timezone, sources)) is None:
            if test(text):
                return True
        elif any(key[: len(erased)] == erased for erased in keys.keys) or (moved and None in key and test(text)):
            return True
    return False


def _folders(stream: Stream, relative: str, key: set[str]) -> dict[str, str | None] | None:
    """Return the parts of the key that are folders on a file's path, by name in lower case; None if folders are missing."""
    if not key.intersection(stream.partitions):
        return {}
    values = folder_values(relative, stream.partitions)
    if values is None:
        return None
    return {name.lower(): value for name, value in zip(stream.partitions, values, strict=True) if name in key}


def _key(values: dict[str, Any], keys: ErasedKeys, timezone: str, sources: dict[str, str]) -> tuple[Any, ...] | None:
    """Return the search key of a record; None if a part of it does not have its column's type, as far as this reader knows."""
    parts = []
    for column in keys.columns:
        value = _value(values, sources.get(column.name.lower(), column.name))
        text = value if isinstance(value, str) else json.dumps(value)
        if column.type.startswith("TIMESTAMP"):
            text = _with_offset(text, timezone)
        try:
            parts.append(None if value is None else parse_key(text, column.type))
        except UsageError:
            return None
    return keys_of([tuple(parts)], keys.columns).keys[0]


def _value(values: dict[str, Any], source: str) -> Any:  # noqa: ANN401 - a value of a record
    """Return the value of a source, ignoring case: by its whole name, else by its path."""
    if values.get(source.lower()) is not None:
        return values[source.lower()]
    value_of_step: Any = values
    for step in path_of(source) or ():
        lower = {str(name).lower(): value for name, value in value_of_step.items()} if isinstance(value_of_step, dict) else {}
        value_of_step = lower.get(step.lower())
    return None if value_of_step is values else value_of_step


def _with_offset(text: str, timezone: str) -> str:
    """Return an instant with an offset: an instant without an offset is in the stream's time zone."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return text
    return text if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(timezone)).isoformat()


def _csv_records(stream: Stream, path: Path) -> Iterator[tuple[dict[str, str | None] | None, str]]:
    if (read := line_reader(stream.format, stream.options)) is not None:
        with _opened(path, "utf-8-sig") as lines:
            for line in lines:
                fields_of_line = read(line.rstrip("\r\n"))
                lower = {name.lower(): value for name, value in (fields_of_line or {}).items()}
                yield (lower if fields_of_line and len(lower) == len(fields_of_line) else None), line
        return
    options = {name.lower(): value for name, value in reader_options(stream).items()}
    names = zeek_header(path) if stream.format == "zeek" else csv_header(path, dict(stream.options))
    header = [name.lower() for name in names]
    delimiter = delimiter_of(options)
    quote = options.get("quote", '"') or None
    null = options.get("nullvalue", "")
    encoding = file_encoding(path, dict(stream.options)) or text_encoding(options)
    if is_multiline(stream.options):
        yield from _records_over_lines(stream, path, encoding, header)
        return
    with _opened(path, encoding) as lines:
        began = not has_header_record(stream)
        for line in lines:
            text = line.rstrip("\r\n")
            if began and options.get("comment") and text.startswith(options["comment"]):
                continue
            if not began and text.strip() and not (options.get("comment") and text.startswith(options["comment"])):
                began = True  # the header
                continue
            fields = _fields(text, delimiter, quote, options.get("escape"))
            if fields is None or len(fields) != len(header) or len(set(header)) < len(header):
                yield None, text
            else:
                values = (None if field == null else field for field in fields)
                yield dict(zip(header, values, strict=True)), text


def _records_over_lines(
    stream: Stream, path: Path, encoding: str, header: Sequence[str]
) -> Iterator[tuple[dict[str, str | None] | None, str]]:
    """Yield the same as :func:`_csv_records`; for records that this reader cannot parse, each line."""
    options = {name.lower(): value for name, value in reader_options(stream).items()}
    delimiter, quote = delimiter_of(options), options.get("quote", '"')
    null, escape = options.get("nullvalue", ""), options.get("escape", quote)
    with _opened(path, encoding, newline="") as lines:
        if len(delimiter) != 1 or not quote or escape not in (quote, "\\") or options.get("comment"):
            yield from ((None, line) for line in lines)
            return
        escaping: Any = {"escapechar": "\\", "doublequote": False} if escape != quote else {}
        records = csv.reader(lines, delimiter=delimiter, quotechar=quote, strict=True, **escaping)
        if has_header_record(stream):
            next((record for record in records if record), None)
        for fields in records:
            text = delimiter.join(fields)
            if len(fields) != len(header) or len(set(header)) < len(header):
                yield None, text
            else:
                values = (None if field == null else field for field in fields)
                yield dict(zip(header, values, strict=True)), text


def _fields(line: str, delimiter: str, quote: str | None, escape: str | None) -> list[str] | None:
    """Return the fields of a line; None if this reader cannot parse them."""
    if len(delimiter) != 1 or escape not in (None, "", '"', "\\"):
        return None
    try:
        return next(
            csv.reader(
                [line],
                delimiter=delimiter,
                quotechar=quote,
                quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
                escapechar="\\" if escape == "\\" else None,
                strict=True,
            ),
            [],
        )
    except csv.Error:
        return None


def _json_records(path: Path, *, whole: bool) -> Iterator[tuple[dict[str, Any] | None, str]]:
    with _opened(path, "utf-8-sig") as file:
        lines = (document.decode(errors="replace") for document in object_texts(path)) if whole else iter(file)
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            lower = {str(name).lower(): value for name, value in record.items()} if isinstance(record, dict) else {}
            yield (lower if isinstance(record, dict) and len(lower) == len(record) else None), line


@contextmanager
def _opened(path: Path, encoding: str, newline: str = "\n") -> Iterator[io.TextIOWrapper]:
    with path.open("rb") as raw, open_decompressed(raw, path.name) as content:
        yield io.TextIOWrapper(content, encoding=encoding, errors="replace", newline=newline)


def _columnar_holds(
    stream: Stream, path: Path, keys: ErasedKeys, sources: dict[str, str], folders: dict[str, str | None], *, moved: bool
) -> bool:
    connection = connect(Resources())
    try:
        landed = f"read_parquet({literal(str(path))})"
        if stream.format == "orc":
            landed = "landed"
            connection.register(landed, ds.dataset(path, format="orc"))
        elif stream.format == "avro":
            landed = "landed"
            connection.register(landed, pa.RecordBatchReader.from_batches(avro_schema(path), avro_batches(path)))
        described = connection.execute(f"DESCRIBE FROM {landed}").fetchall()
        stored = {str(row[0]).lower() for row in described}
        file_columns = [column for column in keys.columns if column.name.lower() not in folders]
        names = {column.name: sources.get(column.name.lower(), column.name) for column in file_columns}
        paths = {name: (source,) if source.lower() in stored else path_of(source) or (source,) for name, source in names.items()}
        if {parts[0].lower() for parts in paths.values()} - stored:
            return moved
        if stream.format == "avro" and any(has_union(avro_schema(path).field(parts[0]).type) for parts in paths.values()):
            return True  # a value of several types is not examined
        expressions = {name: ".".join(map(quoted, parts)) for name, parts in paths.items()}
        constants = ((column.name, folders[column.name.lower()]) for column in keys.columns if column.name.lower() in folders)
        expressions |= {name: "NULL" if value is None else literal(value) for name, value in constants}
        cast = ", ".join(
            f"TRY_CAST({expressions[column.name]} AS {column.type}) AS {quoted(column.name)}" for column in keys.columns
        )
        condition = keys.condition
        match = connection.execute(
            f"SELECT 1 FROM (SELECT {cast} FROM {landed}) WHERE {condition.sql} LIMIT 1",
            list(condition.parameters),
        ).fetchone()
    finally:
        connection.close()
    return match is not None
