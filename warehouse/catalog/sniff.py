"""Finds the columns of a file with DuckDB: their Spark SQL types, and properties of their values.

A column whose name is not allowed in a table gets an allowed one (``id.orig_h`` becomes ``id_orig_h``); the original name is its
source. Numbers whose range and name fit become times since 1970, in the unit that fits.
"""

from __future__ import annotations

import codecs
import re
import zlib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

from warehouse.catalog.avro_files import avro_batches, avro_schema
from warehouse.catalog.codecs import decompress_beginning, is_compressed, open_decompressed
from warehouse.catalog.combined_times import combined_times
from warehouse.catalog.csv_dialect import (
    SAMPLE,
    CsvDialect,
    csv_dialect,
    literal_path,
    misfitting_records,
    times_that_need_a_pattern,
)
from warehouse.catalog.duck_sql import literal, quoted
from warehouse.catalog.duck_types import spark_type
from warehouse.catalog.file_format import format_of
from warehouse.catalog.json_arrays import has_multiline_objects, is_array_file, jq_command, jq_hint, repeated_name
from warehouse.catalog.log_lines import fields_as_csv, log_format_of
from warehouse.catalog.model import COLUMNAR, LINE_FORMATS, MAX_RECORD
from warehouse.catalog.nested_objects import flatten_objects
from warehouse.catalog.sniffed_file import SniffedColumn, SniffedFile
from warehouse.catalog.spelling import FaultError
from warehouse.catalog.syslog import TEXTS
from warehouse.catalog.time_detection import (
    duration_format,
    is_named_as_time,
    is_named_as_year,
    no_end_value,
    time_format,
    year_format,
)
from warehouse.catalog.types import unusable_name
from warehouse.catalog.zeek import zeek_query
from warehouse.errors import UsageError
from warehouse.layout.columns import is_reserved
from warehouse.time import DAY, FIRST_INSTANT, NEVER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.model import Format

__all__ = ["column_name", "is_amount", "sniff"]

_EXPECTED_CONTENT = {
    "csv": "it should have a header and records of fields",
    "json": "it should have one JSON object a line, or be one array of objects",
    "parquet": "it may be cut short",
    "orc": "it may be cut short",
    "avro": "it may be cut short",
    "text": "it should be lines of text in UTF-8",
    "logfmt": "it should be lines of text in UTF-8",
    "syslog": "it should be lines of text in UTF-8",
    "zeek": "it may be cut short",
}
_TEXTS = ("csv", "json", *LINE_FORMATS)
_NEARLY_ALL = 0.95
_HUNDREDTHS = [number / 100 for number in range(101)]
_MOST_BIGINT = 1 << 63
_TIME_OF_DAY = (
    r"\d{1,2}:\d\d(:\d\d([.,]\d+)?)?( ?[AaPp]\.?[Mm]\.?)?"
    r"|-?(\d+([.]\d+)?(ns|us|\x{b5}s|\x{3bc}s|ms|s|m|h))+"
)
"""Times of a day, and durations as programs log them, such as 12ms and 1m0.5s."""
_FIELDS_AS_CSV = ", header = true, delim = ',', quote = '\"', escape = '\"'"
"""How fields of lines are written for DuckDB."""
_BREAKS = re.compile(r"[\r\n]")
_NUMBERED = re.compile(r"(.+)_[0-9]+")


def sniff(source: Path) -> SniffedFile:
    """Return the columns of a file, and the properties of their values in a sample.

    Raises
    ------
    UsageError
        When the file does not exist, has another format, or cannot be read.

    """
    import duckdb  # noqa: PLC0415 - only this command looks at a file

    kind, endings = format_of(source)
    log = log_format_of(source) if kind == "csv" else None
    kind = log[0] if log is not None else kind
    try:
        with duckdb.connect() as connection, TemporaryDirectory(prefix="stream-wh-") as folder:
            plain = source
            if is_compressed(source.name) and source.suffix != ".gz":  # which DuckDB does not read
                plain = decompress_beginning(source, Path(folder) / "plain")
            if kind == "json":
                plain = _without_byte_order_mark(plain, Path(folder) / "unmarked.json")
            connection.execute("SET TimeZone = 'UTC'")
            # Each record of JSON is one line to the warehouse, so it is to the sniffer.
            reader = {
                "json": f"SELECT * FROM read_json($file, format = '{_json_form(kind, source)}')",
                "parquet": "SELECT * FROM read_parquet($file)",
            }.get(kind) or (_zeek_query(plain, source) if kind == "zeek" else "")
            unfit = (0, "", "")
            if kind in ("orc", "avro"):
                dialect = CsvDialect((), frozenset(), plain, "")
                connection.register("landed", _orc_rows(plain) if kind == "orc" else _avro_rows(plain))
                connection.execute("CREATE TEMP TABLE sample AS FROM landed")
            elif kind == "csv":
                dialect = _csv_sample(connection, plain, Path(folder))
                unfit = misfitting_records(connection, dialect)
            elif log is not None:
                fields = Path(folder) / "fields.csv"
                unfit = fields_as_csv(source, log, SAMPLE, fields)
                dialect = _csv_sample(connection, fields, Path(folder), _FIELDS_AS_CSV)
                dialect = replace(dialect, options=(*log[1], *dialect.options))
            else:
                parameters = {"file": literal_path(plain)}
                connection.execute(f"CREATE TEMP TABLE sample AS {reader} LIMIT {SAMPLE}", parameters)
                if kind == "json" and _is_map(connection):  # the objects have few fields in common
                    reader = reader.removesuffix(")") + ", map_inference_threshold = -1)"
                    connection.execute(f"CREATE OR REPLACE TEMP TABLE sample AS {reader} LIMIT {SAMPLE}", parameters)
                file_names = (
                    _names_that_differ_in_case(connection, parameters, _json_form(kind, source)) if kind == "json" else {}
                )
                options = (("multiline", "true"),) if kind == "json" and has_multiline_objects(source) else ()
                dialect = CsvDialect(options, frozenset(), plain, reader, file_names=file_names)
            if kind in ("json", *COLUMNAR):
                flatten_objects(connection)
            columns = _columns(connection, kind, dialect)
            if kind == "parquet":
                _require_loadable(source, plain)
                columns = _with_duration_units(columns, plain)
            combined = tuple(
                replace(_summary(connection, SniffedColumn(name, "timestamp")), expression=sql, parts=parts)
                for name, sql, parts in (combined_times(connection, columns) if kind in _TEXTS else ())
            )
            gaps = _gaps(connection, (*columns, *combined))
            (rows,) = _row(connection, "SELECT count(*) FROM sample")
            sample = _sample_table(connection, (*columns, *combined))
            return SniffedFile(kind, endings, dialect.options, columns, gaps, rows, dialect.guessed, sample, combined, unfit)
    except (duckdb.Error, OSError, EOFError, zlib.error) as error:
        _refuse(kind, source, error)


def _refuse(kind: Format, source: Path, error: Exception) -> NoReturn:
    """Raise an error that says why a file cannot be read, and what to do."""
    if kind == "json" and (name := repeated_name(source)) is not None:
        raise UsageError(f'{source}: an object has the field "{name}" twice; write one of them under another name') from error
    if kind == "json" and (command := jq_command(source)) is not None:
        message = f"{source} has records that go over several lines"
        raise UsageError(f"{message}; `{command}` makes a line of each, for --from rows.jsonl") from error
    raise UsageError(
        f"{source} cannot be read as {kind} ({str(error).splitlines()[0].rstrip('.')}); {_EXPECTED_CONTENT[kind]}"
    ) from error


def _without_byte_order_mark(source: Path, target: Path) -> Path:
    """Return a file that DuckDB reads as JSON: the source, or a copy of its beginning without the mark, which Spark ignores."""
    with source.open("rb") as raw:
        marked = open_decompressed(raw, source.name).read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    if not marked:
        return source
    target.write_bytes(decompress_beginning(source, target).read_bytes().removeprefix(codecs.BOM_UTF8))
    return target


def _sample_table(connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]) -> Any:  # noqa: ANN401 - a table of Arrow
    names = ", ".join(quoted(column.name) for column in columns if column.type) or "NULL AS nothing"
    return connection.sql(f"SELECT {names} FROM sample").to_arrow_table()


def _orc_rows(source: Path) -> Any:  # noqa: ANN401 - a table of Arrow
    import pyarrow as pa  # noqa: PLC0415 - only ORC files need it
    import pyarrow.dataset as ds  # noqa: PLC0415 - same

    try:
        return _in_microseconds(ds.dataset(source, format="orc").head(SAMPLE))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{source} cannot be read as orc ({reason}); {_EXPECTED_CONTENT['orc']}") from error


def _avro_rows(source: Path) -> Any:  # noqa: ANN401 - a table of Arrow
    import pyarrow as pa  # noqa: PLC0415 - only Avro files need it

    try:
        batches, rows = [], 0
        for batch in avro_batches(source):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= SAMPLE:
                break
        return _in_microseconds(pa.Table.from_batches(batches, None if batches else avro_schema(source)))
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"{source} cannot be read as avro ({reason}); {_EXPECTED_CONTENT['avro']}") from error


def _in_microseconds(rows: Any) -> Any:  # noqa: ANN401 - a table of Arrow
    """Return rows with times in microseconds, the unit of tables."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    kinds = [pa.timestamp("us", field.type.tz) if pa.types.is_timestamp(field.type) else field.type for field in rows.schema]
    return rows.cast(pa.schema(list(zip(rows.column_names, kinds, strict=True))), safe=False)


def _require_loadable(source: Path, plain: Path) -> None:
    """Refuse a Parquet file that Spark cannot read, so that updates would leave it out; DuckDB reads more files."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only Parquet files need it

    schema = pq.read_schema(plain)
    lower = [name.lower() for name in schema.names]
    if case_twins := sorted(name for name in schema.names if lower.count(name.lower()) > 1):
        raise UsageError(f"{source}: its columns {', '.join(case_twins)} differ in case only, or not at all; rename them")
    if wide := [field.name for field in schema if "decimal256(" in str(field.type)]:
        raise UsageError(f"{source}: {', '.join(wide)} has more than 38 digits; write it as a double or a string")


def _with_duration_units(columns: tuple[SniffedColumn, ...], plain: Path) -> tuple[SniffedColumn, ...]:
    """Return the columns with the units of durations, which Parquet stores as numbers: Arrow's schema in the file has them."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only Parquet files need it
    import pyarrow.types  # noqa: PLC0415 - same

    steps = {field.name: field.type.unit for field in pq.read_schema(plain) if pyarrow.types.is_duration(field.type)}
    return tuple(replace(column, duration_unit=steps.get(column.source or column.name)) for column in columns)


def _zeek_query(plain: Path, source: Path) -> str:
    try:
        return zeek_query(plain)
    except ValueError as error:
        raise UsageError(f"{source} cannot be read: {error}") from error


def _json_form(kind: Format, source: Path) -> str:
    """Return how objects are written in a JSON file, as DuckDB's option ``format``."""
    if kind != "json" or not (is_array_file(source) or has_multiline_objects(source)):
        return "newline_delimited"
    with source.open("rb") as raw:
        content = open_decompressed(raw, source.name).read(MAX_RECORD + 1)
    if len(content) > MAX_RECORD:
        more = f"more than {MAX_RECORD} bytes, which no task reads whole"
        raise UsageError(f"{source} has no object a line, and {more}; {jq_hint(content)}")
    return f"{'array' if is_array_file(source) else 'unstructured'}', maximum_object_size = '{MAX_RECORD}"


def _is_map(connection: DuckDBPyConnection) -> bool:
    """Whether DuckDB made one column of all fields of the table ``sample``."""
    described = connection.execute("SELECT column_type FROM (DESCRIBE sample)").fetchall()
    return len(described) == 1 and described[0][0].startswith("MAP(")


def _names_that_differ_in_case(connection: DuckDBPyConnection, parameters: dict[str, str], form: str) -> dict[int, str]:
    """Return, by position, the names of fields that DuckDB renames because they differ from other names in case only."""
    columns = [name for (name,) in connection.execute("SELECT column_name FROM (DESCRIBE sample)").fetchall()]
    numbered = {index: match[1] for index, name in enumerate(columns) if (match := _NUMBERED.fullmatch(name))}
    if not any(base.lower() in (name.lower() for name in columns) for base in numbered.values()):
        return {}
    objects_query = f"SELECT json FROM read_json_objects($file, format = '{form}') LIMIT {SAMPLE}"
    keys = {
        key
        for (key,) in connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM ({objects_query})", parameters).fetchall()
    }
    return {index: base for index, base in numbered.items() if columns[index] not in keys and base in keys}


def _csv_sample(connection: DuckDBPyConnection, source: Path, folder: Path, known_arguments: str = "") -> CsvDialect:
    """Make the table ``sample`` of a CSV file, and return the file's dialect; parameters as of :func:`.csv_dialect`."""
    import duckdb  # noqa: PLC0415 - only this command looks at a file

    try:
        dialect = _make_sample(connection, csv_dialect(connection, source, folder, known_arguments=known_arguments))
    except duckdb.InvalidInputException:
        dialect = _make_sample(connection, csv_dialect(connection, source, folder, strict=False, known_arguments=known_arguments))
    parameters = {"file": literal_path(dialect.path)}
    if _has_line_breaks(connection):
        dialect = replace(dialect, options=(*dialect.options, ("multiline", "true")))
    if texts := times_that_need_a_pattern(connection, dialect):
        types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in texts)
        query = dialect.query.removesuffix(")") + f", types = {{{types}}})"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE sample AS {query} LIMIT {SAMPLE}", parameters)
    return dialect


def _make_sample(connection: DuckDBPyConnection, dialect: CsvDialect) -> CsvDialect:
    """Make the table ``sample`` of a CSV file, and return its dialect."""
    query = f"CREATE OR REPLACE TEMP TABLE sample AS {dialect.query} LIMIT {SAMPLE}"
    connection.execute(query, {"file": literal_path(dialect.path)})
    return dialect


def _has_line_breaks(connection: DuckDBPyConnection) -> bool:
    """Whether a name or a text of the table ``sample`` has a line break."""
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    if any(_BREAKS.search(name) for name, _ in described):
        return True
    conditions = [f"regexp_matches({quoted(name)}, '[\\r\\n]')" for name, kind in described if kind == "VARCHAR"]
    return bool(conditions) and _row(connection, f"SELECT count(*) FROM sample WHERE {' OR '.join(conditions)}")[0] > 0


def _columns(connection: DuckDBPyConnection, kind: Format, dialect: CsvDialect) -> tuple[SniffedColumn, ...]:
    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    has_times = any(duck.startswith("TIMESTAMP") or is_named_as_time(source) for source, duck in described)
    columns: list[SniffedColumn] = []
    used_names: set[str] = set()
    for index, (source, duck) in enumerate(described):
        if index in dialect.refused:
            columns.append(SniffedColumn(source, None, dialect.refused[index]))
            continue
        try:
            sql = _type(connection, source, duck, kind, dialect)
        except FaultError as fault:
            columns.append(SniffedColumn(source, None, str(fault)))
            continue
        times_known = has_times or any(column.type == "timestamp" for column in columns)
        no_end = no_end_value(connection, source, sql)
        format_ = time_format(connection, source, sql, digits=kind in ("csv", *LINE_FORMATS), has_times=times_known)
        if kind == "zeek" and sql == "timestamp":
            format_ = "epoch_seconds"
        duration = duration_format(connection, source, sql) if format_ is None and kind in _TEXTS else None
        sql, format_ = duration or ("timestamp" if format_ else sql, format_)
        name, end = dialect.file_names.get(index, source), no_end if sql == "timestamp" else None
        column = SniffedColumn(name, sql, format=format_, no_end=end)
        columns.append(_renamed(connection, column, source, described, used_names))
    if not any(column.type in ("timestamp", "date") for column in columns):
        columns = [_years_as_times(connection, column) for column in columns]
    return tuple(_summary(connection, column) if column.type else column for column in columns)


def _type(connection: DuckDBPyConnection, source: str, duck: str, kind: Format, dialect: CsvDialect) -> str:
    """Return the Spark SQL type of a column; DuckDB's type is corrected where it is too wide or too narrow for the text."""
    column = quoted(source)
    if kind == "syslog" and source in TEXTS:
        connection.execute(f"ALTER TABLE sample ALTER {column} TYPE VARCHAR")
        return "string"
    if duck == "JSON":  # values of several types; Spark reads texts without their quotes
        connection.execute(f"ALTER TABLE sample ALTER {column} TYPE VARCHAR USING json_extract_string({column}, '$')")
    sql = spark_type(duck, text=kind not in COLUMNAR)
    if sql in dialect.unreadable:
        return "string"
    if sql == "boolean" and kind == "csv":  # F alone is more likely female, or a mark
        (distinct,) = _row(connection, f"SELECT count(DISTINCT {column}) FROM sample")
        letters = f"count(*) FILTER (length(trim(text)) = 1) FROM ({dialect.texts_query(source)})"
        if distinct == 1 and _row(connection, f"SELECT {letters}", dialect.parameters)[0]:
            letter = f"CASE {column} WHEN true THEN 'T' ELSE 'F' END"
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE VARCHAR USING {letter}")
            return "string"
    if sql == "decimal(38,0)" and kind not in COLUMNAR:  # DuckDB takes negative numbers in JSON for such
        low, high = _row(connection, f"SELECT min({column}), max({column}) FROM sample")
        if low is not None and -_MOST_BIGINT <= low <= high < _MOST_BIGINT:
            connection.execute(f"ALTER TABLE sample ALTER {column} TYPE BIGINT")
            return "bigint"
    if duck.startswith("TIMESTAMP_"):  # in other units than microseconds
        connection.execute(f"ALTER TABLE sample ALTER {column} TYPE TIMESTAMP")
    return sql


def _renamed(
    connection: DuckDBPyConnection, column: SniffedColumn, read: str, described: Sequence[tuple[str, str]], used_names: set[str]
) -> SniffedColumn:
    """Rename a column of the table ``sample`` to a name that a table can have; ``read`` is DuckDB's name for it."""
    source = column.name
    other_names = {other.lower() for other, _ in described if other != read}
    name = column_name(source, used_names | other_names, time=column.type == "timestamp")
    used_names.add(name.lower())
    if name != read:
        connection.execute(f"ALTER TABLE sample RENAME {quoted(read)} TO {quoted(name)}")
    return replace(column, name=name, source=source if name != source else None)


def _years_as_times(connection: DuckDBPyConnection, column: SniffedColumn) -> SniffedColumn:
    """Convert a column of years to times, for a file without other times."""
    if column.type != "bigint" or not is_named_as_year(column.source or column.name):
        return column
    format_ = year_format(connection, column.name)
    return replace(column, type="timestamp", format=format_) if format_ else column


def column_name(source: str, taken: set[str], *, time: bool) -> str:
    """Return the column name for a name in a file; it differs from the ``taken`` names (in lower case).

    >>> [column_name(source, set(), time=False) for source in ("id.orig_h", "TTL [s]", "ts")]
    ['id_orig_h', 'ttl_s', 'ts_value']
    """
    name = source
    if unusable_name(name) or is_reserved(name):
        name = re.sub(r"[^0-9a-z\u00df-\uffff]+", "_", source.lower()).strip("_")[:200] or "column"
        name = "column" if unusable_name(name) else name
    if name.lower() == "ts" and (not time or name != "ts"):  # ts is the arrival time
        name = "ts_value"
    if name.lower() in taken or is_reserved(name):
        name = next(candidate for number in range(2, len(taken) + 3) if (candidate := f"{name}_{number}").lower() not in taken)
    return name


def _summary(connection: DuckDBPyConnection, sniffed: SniffedColumn) -> SniffedColumn:
    column = quoted(sniffed.name)
    kind = sniffed.type or ""
    bounds = {
        "timestamp": _in_calendar(f"epoch_us({column})"),
        "date": _in_calendar(f"epoch_us({column})"),
        "bigint": column,
        "int": column,
    }.get(kind, "NULL::BIGINT")
    distinct_values = f"least(approx_count_distinct({column}), count({column}))"  # the estimate may be too high
    query = f"SELECT min({bounds}), max({bounds}), {distinct_values}, avg({bounds}) FROM sample"
    low, high, distinct, mean = _row(connection, query)
    amount = f"list_min({column})" if kind.startswith("array<") else column
    percentiles: tuple[float, ...] = ()
    unset = 0.0
    if is_amount(kind.removeprefix("array<").removesuffix(">")):
        share = f"avg(CAST({amount} IS NULL AS INTEGER))"
        listed, unset = _row(connection, f"SELECT quantile_cont({amount}::DOUBLE, {_HUNDREDTHS}), {share} FROM sample")
        percentiles = tuple(listed or ())
    elif kind in ("timestamp", "date"):
        (unset,) = _row(connection, f"SELECT avg(CAST({column} IS NULL AS INTEGER)) FROM sample")
    elif kind == "string":
        clocks = f"count(*) FILTER (regexp_full_match(CAST({column} AS VARCHAR), {literal(_TIME_OF_DAY)}))"
        clock_count, filled = _row(connection, f"SELECT {clocks}, count({column}) FROM sample")
        sniffed = replace(sniffed, is_time_of_day=bool(clock_count) and clock_count == filled)
    return replace(sniffed, low=low, high=high, distinct=distinct, mean=mean, percentiles=percentiles, unset=unset or 0.0)


def _in_calendar(micros: str) -> str:
    return f"CASE WHEN {micros} BETWEEN {FIRST_INSTANT} AND {NEVER} THEN {micros} END"


def is_amount(kind: str) -> bool:
    """Whether a Spark SQL type is that of numbers that can be amounts of time."""
    return kind in ("int", "bigint", "float", "double", "smallint") or kind.startswith("decimal")


def _gaps(connection: DuckDBPyConnection, columns: tuple[SniffedColumn, ...]) -> dict[tuple[str, str], tuple[float, ...]]:
    times = {column.name: DAY if column.type == "date" else 0 for column in columns if column.type in ("timestamp", "date")}
    gaps = {}
    for first in times:
        for second, day in times.items():  # a date as an end is the end of its day
            gap = f"epoch_us({quoted(second)}) + {day} - epoch_us({quoted(first)})"
            ordered = f"count(*) FILTER ({gap} >= 0), count({gap}), max({gap})"
            follow, pairs, high = _row(connection, f"SELECT {ordered} FROM sample")
            if first != second and pairs and follow >= _NEARLY_ALL * pairs and high > 0:
                (percentiles,) = _row(connection, f"SELECT quantile_cont(greatest({gap}, 0)::DOUBLE, {_HUNDREDTHS}) FROM sample")
                gaps[first, second] = tuple(percentiles)
    return gaps


def _row(connection: DuckDBPyConnection, query: str, parameters: dict[str, str] | None = None) -> tuple[Any, ...]:
    return next(iter(connection.execute(query, parameters or {}).fetchall()), ())
