"""Reads files that name and type their columns, Parquet, ORC and Avro, as data frames of typed rows (see :mod:`.reading`)."""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType

from warehouse.catalog.avro_files import avro_schema
from warehouse.catalog.identifiers import quoted
from warehouse.errors import FileProblem, PlatformError, UnreadableFilesError
from warehouse.ingest.avro_bounds import avro_bounds_problem
from warehouse.ingest.columns import Fields, header_problem, inputs_of_records, match_columns
from warehouse.ingest.conversion import expected_value, from_value
from warehouse.ingest.nested_values import instant, is_nanoseconds, nested_value
from warehouse.ingest.orc import is_local_time, orc_bounds_problem, orc_schema
from warehouse.ingest.parquet_bounds import parquet_bounds_problem
from warehouse.ingest.record_parts import name_in_messages, paths_of, record_position
from warehouse.storage.packages import require_avro

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.columns import Input
    from warehouse.ingest.files import LandingFile

__all__ = ["columnar_bounds_problem", "read_columnar", "schema_of"]

_FILE, _START, _POSITION, _ZERO = (f"_stream_wh_{name}" for name in ("file_path", "start", "position", "zero"))
"""Spark's metadata of a row, under names that no file has: `file_path` and `row_index` may be columns of one."""


def read_columnar(session: SparkSession, stream: Stream, files: Sequence[LandingFile]) -> list[DataFrame]:
    """Return frames of the rows of files, one for each schema: the values of each row, and its position.

    Raises
    ------
    UnreadableFilesError
        When a footer cannot be read, a bound is broken, or a column cannot become the declared type.

    """
    return [_rows_of_schema(session, stream, schema, group) for schema, group in _by_schema(stream, files).values()]


def schema_of(path: Path, form: str) -> Any:  # noqa: ANN401 - Arrow's
    """Return the Arrow schema of a file.

    Raises
    ------
    Exception
        The reader's exception for a damaged footer.

    """
    if form == "orc":
        return orc_schema(path)
    if form == "avro":
        return avro_schema(path)
    import pyarrow.parquet  # noqa: PLC0415 - only such landings need it

    return pyarrow.parquet.read_schema(path)


def columnar_bounds_problem(stream: Stream, file: LandingFile) -> tuple[str, str] | None:
    """Return why a file is beyond the bounds of its stream, (reason, message), or None.

    Raises
    ------
    Exception
        The reader's exception for a damaged footer.

    """
    check = {"orc": orc_bounds_problem, "avro": avro_bounds_problem}.get(stream.format, parquet_bounds_problem)
    return check(stream.landing / file.path, file.size, file.mtime_ns, stream.max_record, stream.max_expansion)


def _by_schema(stream: Stream, files: Sequence[LandingFile]) -> dict[str, tuple[Any, list[LandingFile]]]:
    groups: dict[str, tuple[Any, list[LandingFile]]] = {}
    problems = []
    for file in files:
        try:
            schema = schema_of(stream.landing / file.path, stream.format)
            bound_problem = columnar_bounds_problem(stream, file)
        except PlatformError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a damaged footer makes its reader raise is the finding
            part = "it" if stream.format == "avro" else "its footer"
            problems.append(FileProblem(file.path, "unreadable", f"{part} cannot be read: {error}"))
            continue
        problem = bound_problem or header_problem(stream, tuple(schema.names), _fields(schema))
        if problem:
            problems.append(FileProblem(file.path, *problem))
            continue
        written = (schema.metadata or {}).get(b"avro", b"").decode()  # Spark may read two of these that Arrow takes for the same
        fields = [(field.name, str(field.type)) for field in schema]
        key = json.dumps([written, _physical_times(stream, file, fields), *fields])
        groups.setdefault(key, (schema, []))[1].append(file)
    if problems:
        raise UnreadableFilesError(stream.name, problems)
    return groups


def _physical_times(stream: Stream, file: LandingFile, fields: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the physical types of a Parquet file's times in nanoseconds: Spark reads INT96 as times, other ones as numbers."""
    if stream.format != "parquet" or not any("[ns" in kind for _, kind in fields):
        return []
    import pyarrow.parquet as pq  # noqa: PLC0415 - only such landings need it

    schema = pq.read_metadata(stream.landing / file.path).schema
    leaves = [schema.column(number) for number in range(len(schema))]
    return [(leaf.path, leaf.physical_type) for leaf in leaves if leaf.physical_type in ("INT64", "INT96")]


def _fields(parent: Iterable[Any]) -> Fields:
    """Return the names in a schema or struct of Arrow, each with the names below it."""
    import pyarrow.types  # noqa: PLC0415 - only such landings need it

    return {field.name: _fields(field.type) if pyarrow.types.is_struct(field.type) else {} for field in parent}


def _rows_of_schema(session: SparkSession, stream: Stream, schema: Any, files: Sequence[LandingFile]) -> DataFrame:  # noqa: ANN401 - Arrow's
    rows = _rows(session, stream, files, schema)
    names = tuple(name for name in schema.names if name in rows.columns)
    paths = match_columns(stream, names, _fields(schema)).paths
    inputs = inputs_of_records(stream)
    kinds = {source: _spark_type(rows.schema, path) for source, path in paths.items()}
    mistyped = [
        f"{name_in_messages(input_)} is {kinds[input_.source]}, declared {input_.type}"
        for input_ in inputs
        if input_.source in kinds and _is_nested_differently(kinds[input_.source], input_.type)
    ]
    if mistyped:
        raise UnreadableFilesError(stream.name, [FileProblem(file.path, "mistyped", ", ".join(mistyped)) for file in files])
    jvm: Any = session._jvm  # noqa: SLF001 - its time zone has no other handle
    zone = jvm.java.util.TimeZone.getDefault().getID() if stream.format == "orc" else ""
    values, faults = [], []
    for input_ in inputs:
        path = paths.get(input_.source)
        if path is None:
            values.append(F.lit(None).cast(input_.type).alias(input_.label))
            continue
        source, kind = reduce(lambda value, step: value.getField(step), path[1:], F.col(quoted(path[0]))), kinds[input_.source]
        if stream.format == "orc" and kind == "timestamp" and is_local_time(schema, path):
            source, kind = _local_time(source, zone), "timestamp_ntz"
        if kind == "bigint" and (local := _is_local_nanoseconds(schema, path)) is not None:
            source, kind = instant(source, local=local), "timestamp_ntz" if local else "timestamp"
        # A timestamp without time zone is local time of the stream: the session's time zone makes it an instant.
        if "<" in input_.type and kind != input_.type:
            types = _type_at(rows.schema, path), _arrow_type_at(schema, path), DataType.fromDDL(input_.type)
            value, failed = nested_value(source, *types)
        else:
            value, failed = from_value(source, kind, input_)
        values.append(_with_utf8(value, input_.type).alias(input_.label))
        if failed is not None:
            faults.append((input_, failed))
    return rows.select(
        *values,
        F.col(_FILE).alias("_file"),
        F.col(_START).alias("_start"),
        F.col(_POSITION).alias("_position"),
        F.to_json(F.struct(*[F.col(quoted(name)) for name in names])).alias("_raw"),
        *_fault_columns(faults),
        F.col(_ZERO).alias("_zero"),
    )


def _rows(session: SparkSession, stream: Stream, files: Sequence[LandingFile], schema: Any) -> DataFrame:  # noqa: ANN401 - Arrow's
    """Return all columns of files that Spark can read, and the position of each row."""
    reader = session.read.options(recursiveFileLookup="true", __globPaths__="false")
    if stream.format in ("orc", "avro"):
        position_columns = record_position()
        if stream.format == "avro":
            require_avro(session)
        return reader.format(stream.format).load(paths_of(stream, files)).select(
            "*", *[column.alias(name) for column, name in zip(position_columns, (_FILE, _START, _POSITION, _ZERO), strict=True)]
        )
    readable_columns = _readable_columns(schema, stream, files)
    if readable_columns is not None:
        reader = reader.schema(readable_columns)
    return reader.parquet(*paths_of(stream, files)).select(
        "*",
        F.col("_metadata.file_path").alias(_FILE),
        F.lit(0).cast("bigint").alias(_START),
        F.col("_metadata.row_index").alias(_POSITION),
        F.expr("CAST(_metadata.row_index < 0 AS int)").alias(_ZERO),
    )


def _readable_columns(schema: Any, stream: Stream, files: Sequence[LandingFile]) -> StructType | None:  # noqa: ANN401 - Arrow's
    """Return the columns of Parquet files whose types Spark can read; None if it can read all of them."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - only few files need it

    top = pq.read_metadata(stream.landing / files[0].path).schema
    leaves = [top.column(number) for number in range(len(top))]
    strange = {leaf.path.partition(".")[0] for leaf in leaves if "INTERVAL" in (leaf.converted_type, leaf.logical_type.type)}
    strange |= {leaf.path.partition(".")[0] for leaf in leaves if leaf.logical_type.type == "TIME"}
    if not strange:
        return None
    fields = [field for field in schema if field.name not in strange]
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
    counts = [is_nanoseconds(field.type) or pa.types.is_duration(field.type) for field in fields]
    fields = [field.with_type(pa.int64()) if count else field for field, count in zip(fields, counts, strict=True)]
    fields = [field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in fields]
    fields = [field.with_type(wider.get(field.type, field.type)) for field in fields]
    return from_arrow_schema(pa.schema(fields), prefer_timestamp_ntz=True)


def _is_local_nanoseconds(schema: Any, path: tuple[str, ...]) -> bool | None:  # noqa: ANN401 - Arrow's
    """Return whether a time in nanoseconds (Spark reads a number) is local time; None for columns of other types."""
    kind = _arrow_type_at(schema, path)
    return kind.tz is None if is_nanoseconds(kind) else None


def _arrow_type_at(schema: Any, path: tuple[str, ...]) -> Any:  # noqa: ANN401 - Arrow's
    return reduce(lambda kind, step: kind.field(step).type, path[1:], schema.field(path[0]).type)


def _with_utf8(value: SparkColumn, declared: str) -> SparkColumn:
    """Return a value whose texts are valid UTF-8, as in text files: Spark does not check, and other engines fail."""
    if "string" not in declared:
        return value
    return _as_utf8(value, StringType() if declared == "string" else DataType.fromDDL(declared))


def _as_utf8(value: SparkColumn, kind: DataType) -> SparkColumn:
    if isinstance(kind, StringType):
        return F.make_valid_utf8(value)
    if isinstance(kind, ArrayType) and "string" in kind.simpleString():
        inner = kind.elementType
        return F.transform(value, lambda element: _as_utf8(element, inner))
    if isinstance(kind, StructType) and "string" in kind.simpleString():
        plain = value.cast(StructType([StructField(f"_{number}", field.dataType) for number, field in enumerate(kind)]))
        fields = [_as_utf8(plain.getField(f"_{number}"), field.dataType).alias(field.name) for number, field in enumerate(kind)]
        return F.when(value.isNotNull(), F.struct(*fields))
    return value


def _fault_columns(faults: Sequence[tuple[Input, SparkColumn]]) -> tuple[SparkColumn, SparkColumn]:
    fault, message = F.lit(None).cast("string"), F.lit(None).cast("string")
    for input_, failed in reversed(faults):
        fault = F.when(failed, F.lit("mistyped")).otherwise(fault)
        text = f'column "{name_in_messages(input_)}": the value is no {expected_value(input_)}'
        message = F.when(failed, F.lit(text)).otherwise(message)
    return fault.alias("_fault"), message.alias("_fault_message")


def _local_time(value: SparkColumn, zone: str) -> SparkColumn:
    """Return the local time of a value that Spark read as a time in the JVM's zone."""
    micros = F.unix_micros(F.from_utc_timestamp(value, zone))
    return F.timestamp_add("MICROSECOND", micros, F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'"))


def _spark_type(schema: StructType, path: tuple[str, ...]) -> str:
    """Return the Spark type of a column or of a field nested in it."""
    return _type_at(schema, path).simpleString()


def _type_at(schema: StructType, path: tuple[str, ...]) -> DataType:
    kind: Any = schema
    for step in path:
        kind = kind[step].dataType
    found: DataType = kind
    return found


def _is_nested_differently(kind: str, declared: str) -> bool:
    """Whether only one of two types is nested, or both in different ways: then no value can be converted."""
    shapes = [text.split("<", 1)[0] if "<" in text else "" for text in (kind, declared)]
    return shapes[0] != shapes[1]
