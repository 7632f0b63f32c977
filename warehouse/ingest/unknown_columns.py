"""Undeclared columns of landing files, for ``unknown_columns = "add"``: their names, and the types that they get.

They are searched when an update is planned, in all files that it loads: in the header of CSV, the footer of Parquet, and the
fields of every line of JSON and logfmt. Text becomes ``string`` (for JSON the literal text, also of a number or an object); a
column of Parquet keeps its type.
"""

from __future__ import annotations

import io
import zlib
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from warehouse.catalog.codecs import open_decompressed
from warehouse.catalog.logfmt import logfmt_fields
from warehouse.catalog.model import SELF_NAMING_FORMATS, Column
from warehouse.catalog.types import unusable_name
from warehouse.errors import FileProblem
from warehouse.ingest.bounds import bounds_problems
from warehouse.ingest.columnar import schema_of
from warehouse.ingest.columns import known_names
from warehouse.ingest.dialect import has_one_header
from warehouse.ingest.landing import open_regular
from warehouse.ingest.whole_json import is_read_whole, object_texts
from warehouse.layout.columns import is_reserved

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["MOST_ADDED", "with_unknown_columns"]

MOST_ADDED = 200
"""Columns that files may add to a table in all; a file with more is left out."""
_CACHED_FILES = 10_000


def with_unknown_columns(
    stream: Stream, landing: Path, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> tuple[Stream, list[FileProblem]]:
    """Return a stream with the undeclared columns of files added, and the files whose columns cannot be added.

    Parameters
    ----------
    stream
        The stream, with the columns that files added before.
    landing
        Where the files are.
    groups
        The files by their CSV header, which is empty for other formats.

    """
    problems: list[FileProblem] = []
    for file, names in _columns_of_files(stream, landing, groups):
        used_names = {name.lower() for name in (*(column.name for column in stream.columns), *known_names(stream))}
        # If each record names its fields, their case counts; the columns of other formats match in any case.
        exact = stream.format in SELF_NAMING_FORMATS
        declared_names = {name if exact else name.lower() for name in known_names(stream)}
        new = {name: kind for name, kind in names.items() if (name if exact else name.lower()) not in declared_names}
        problem = _problem(stream, new, used_names)
        if problem is not None:
            problems.append(FileProblem(file.path, "unknown_columns", problem))
        elif new:
            columns = tuple(Column(name, kind or "") for name, kind in new.items())
            stream = replace(stream, columns=(*stream.columns, *columns), added=(*stream.added, *new))
    return stream, problems


def _problem(stream: Stream, new: Mapping[str, str | None], used_names: set[str]) -> str | None:
    for name, kind in new.items():
        fault = unusable_name(name)
        if fault is None and (is_reserved(name) or name.lower() == "ts"):
            fault = "a reserved name"
        if fault is None and name.lower() in used_names:
            is_known_column = any(column.name == name for column in stream.columns)
            elsewhere = "the name of a column that comes from elsewhere"
            fault = elsewhere if is_known_column else "a name that differs from another one's in case only"
        if fault is None and kind is None:
            fault = "a type that no table can have"
        if fault is not None:
            return f'its column "{name}" cannot be added: it has {fault}; rename it, or set unknown_columns = "ignore"'
    if len({name.lower() for name in new}) < len(new):
        return "it has columns whose names differ in case only; rename them"
    if len(stream.added) + len(new) > MOST_ADDED:
        return f"it brings {len(new)} undeclared columns; files may add {MOST_ADDED} to a table in all: declare them"
    return None


def _columns_of_files(
    stream: Stream, landing: Path, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> Iterator[tuple[LandingFile, Mapping[str, str | None]]]:
    """Yield each file with its columns and their types (None: a table cannot have the type); unreadable files are skipped."""
    for header, files in groups:
        if has_one_header(stream):
            for file in files:
                yield file, dict.fromkeys(header, "string")
        elif stream.format in SELF_NAMING_FORMATS:
            in_folder = replace(stream, landing=landing)
            beyond = {problem.path for problem in bounds_problems(in_folder, files)}
            for file in files:
                if file.size and file.path not in beyond:
                    path = landing / file.path
                    if stream.format == "logfmt":
                        names = _names_of_pairs(path, file.size, file.mtime_ns)
                    else:
                        names = _fields(path, file.size, file.mtime_ns, whole=is_read_whole(in_folder, file))
                    yield file, dict.fromkeys(names, "string")
        else:
            for file in files:
                yield file, _footer(landing / file.path, stream.format)


@lru_cache(maxsize=_CACHED_FILES)
def _fields(path: Path, size: int, mtime_ns: int, *, whole: bool) -> tuple[str, ...]:  # noqa: ARG001 - the file's identity
    """Return the fields of the objects in a file, in the order of their first occurrence."""
    names: dict[str, None] = {}
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    try:
        with open_regular(path) as raw:
            for line in object_texts(path) if whole else open_decompressed(raw, path.name):
                if line.strip() and len(names) <= 2 * MOST_ADDED:
                    try:
                        names.update(dict.fromkeys(decoder.decode(line)))
                    except msgspec.DecodeError:
                        continue  # the row is rejected
    except (OSError, EOFError, zlib.error, msgspec.DecodeError):
        return ()  # the reader of the file reports the fault
    return tuple(names)


@lru_cache(maxsize=_CACHED_FILES)
def _names_of_pairs(path: Path, size: int, mtime_ns: int) -> tuple[str, ...]:  # noqa: ARG001 - the file's identity
    """Return the names in the lines of a logfmt file, in the order of their first occurrence."""
    names: dict[str, None] = {}
    try:
        with open_regular(path) as raw, io.TextIOWrapper(open_decompressed(raw, path.name), "utf-8", "replace") as lines:
            for line in lines:
                if len(names) <= 2 * MOST_ADDED:
                    names.update(dict.fromkeys(logfmt_fields(line) or ()))
    except (OSError, EOFError, zlib.error):
        return ()  # the reader of the file reports the fault
    return tuple(names)


def _footer(path: Path, form: str) -> dict[str, str | None]:
    try:
        schema = schema_of(path, form)
    except Exception:  # noqa: BLE001 - whatever a damaged footer raises; reading the file reports what is wrong with it
        return {}
    return {field.name: _spark_type(field.type) for field in schema}


def _spark_type(kind: Any) -> str | None:  # noqa: ANN401 - a type of Arrow
    """Return the Spark SQL type for an Arrow type; None if no table can have it."""
    import pyarrow.types as at  # noqa: PLC0415 - only Parquet landings need it

    types = {"bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "uint8": "smallint"}
    types |= {"uint16": "int", "uint32": "bigint", "uint64": "decimal(20,0)", "float": "float", "double": "double"}
    types |= {"string": "string", "large_string": "string", "binary": "binary", "large_binary": "binary", "date32[day]": "date"}
    if str(kind) in types:
        return types[str(kind)]
    if at.is_timestamp(kind):
        return "timestamp"
    if at.is_decimal(kind) and kind.precision <= 38:  # noqa: PLR2004 - digits of Spark's decimals
        return f"decimal({kind.precision},{kind.scale})"
    if at.is_list(kind) or at.is_large_list(kind):
        inner = _spark_type(kind.value_type)
        return None if inner is None else f"array<{inner}>"
    if at.is_struct(kind):
        parts = [(field.name, _spark_type(field.type)) for field in kind]
        if any(inner is None or unusable_name(name) for name, inner in parts):
            return None
        return f"struct<{','.join(f'{name}:{inner}' for name, inner in parts)}>"
    return None
