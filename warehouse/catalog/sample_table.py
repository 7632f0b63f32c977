"""Makes a table in DuckDB of the beginning of a file, in whatever format the file is."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from warehouse.catalog.avro_files import avro_batches, avro_schema
from warehouse.catalog.codecs import decompress_beginning, is_compressed, open_decompressed
from warehouse.catalog.csv_dialect import (
    SAMPLE,
    CsvDialect,
    csv_dialect,
    false_numbers,
    literal_path,
    misfitting_records,
    times_that_need_a_pattern,
)
from warehouse.catalog.duck_sql import literal, quoted
from warehouse.catalog.json_arrays import has_multiline_objects, is_array_file, jq_command, jq_hint, repeated_name
from warehouse.catalog.log_lines import fields_as_csv
from warehouse.catalog.model import MAX_RECORD
from warehouse.catalog.zeek import zeek_query
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

    from warehouse.catalog.log_lines import LogFormat
    from warehouse.catalog.model import Format

__all__ = ["make_sample_table", "refuse_unreadable"]

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
_FIELDS_AS_CSV = ", header = true, delim = ',', quote = '\"', escape = '\"'"
"""How fields of lines are written for DuckDB."""
_BREAKS = re.compile(r"[\r\n]")
_NUMBERED = re.compile(r"(.+)_[0-9]+")
_ALL_FIT = (0, "", "")


def make_sample_table(
    connection: DuckDBPyConnection, kind: Format, log: LogFormat | None, source: Path, folder: Path
) -> tuple[CsvDialect, tuple[int, str, str]]:
    """Make the table ``sample`` of a file; return how the file is read, and the records that do not fit.

    Parameters
    ----------
    connection
        A connection to a database without tables.
    kind
        The format of the file.
    log
        The format of the lines and its options if the file is a log, else None.
    source
        The file.
    folder
        A directory for copies of the beginning of the file.

    Returns
    -------
    tuple
        The dialect, and the number of records that do not fit, a column and an example, as of :func:`.misfitting_records`.

    """
    plain = source
    if is_compressed(source.name) and source.suffix != ".gz":  # which DuckDB does not read
        plain = decompress_beginning(source, folder / "plain")
    if kind in ("orc", "avro"):
        connection.register("landed", _orc_rows(plain) if kind == "orc" else _avro_rows(plain))
        connection.execute("CREATE TEMP TABLE sample AS FROM landed")
        return CsvDialect((), frozenset(), plain, ""), _ALL_FIT
    if kind == "csv":
        dialect = _csv_sample(connection, plain, folder)
        return dialect, misfitting_records(connection, dialect)
    if log is not None:
        fields = folder / "fields.csv"
        unfit = fields_as_csv(source, log, SAMPLE, fields)
        dialect = _csv_sample(connection, fields, folder, _FIELDS_AS_CSV)
        return replace(dialect, options=(*log[1], *dialect.options)), unfit
    if kind == "json":
        return _json_sample(connection, source, _without_byte_order_mark(plain, folder / "unmarked.json")), _ALL_FIT
    query = _zeek_query(plain, source) if kind == "zeek" else "SELECT * FROM read_parquet($file, hive_partitioning = false)"
    dialect = _make_sample(connection, CsvDialect((), frozenset(), plain, query))
    if kind == "parquet":
        _require_loadable(source, plain)
    return dialect, _ALL_FIT


def _json_sample(connection: DuckDBPyConnection, source: Path, plain: Path) -> CsvDialect:
    """Make the table ``sample`` of a JSON file; ``plain`` is the file, or a copy of its beginning, as DuckDB reads it."""
    form = _json_form(source)  # each record is one line to the warehouse, so it is here
    query = f"SELECT * FROM read_json($file, format = '{form}', hive_partitioning = false)"
    options = (("multiline", "true"),) if has_multiline_objects(source) else ()
    dialect = _make_sample(connection, CsvDialect(options, frozenset(), plain, query))
    if _is_map(connection):  # the objects have few fields in common
        query = query.removesuffix(")") + ", map_inference_threshold = -1)"
        dialect = _make_sample(connection, replace(dialect, query=query))
    return replace(dialect, file_names=_names_that_differ_in_case(connection, {"file": literal_path(plain)}, form))


def refuse_unreadable(kind: Format, source: Path, error: Exception) -> NoReturn:
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


def _require_loadable(source: Path, plain: Path) -> None:
    """Refuse a Parquet file that Spark cannot read, so that updates would leave it out; DuckDB reads more files."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - only Parquet files need it

    schema = pq.read_schema(plain)
    lower = [name.lower() for name in schema.names]
    if case_twins := sorted(name for name in schema.names if lower.count(name.lower()) > 1):
        raise UsageError(f"{source}: its columns {', '.join(case_twins)} differ in case only, or not at all; rename them")
    if wide := [field.name for field in schema if "decimal256(" in str(field.type)]:
        raise UsageError(f"{source}: {', '.join(wide)} has more than 38 digits; write it as a double or a string")


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


def _zeek_query(plain: Path, source: Path) -> str:
    try:
        return zeek_query(plain)
    except ValueError as error:
        raise UsageError(f"{source} cannot be read: {error}") from error


def _json_form(source: Path) -> str:
    """Return how objects are written in a JSON file, as DuckDB's option ``format``."""
    if not (is_array_file(source) or has_multiline_objects(source)):
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
    if texts := [*times_that_need_a_pattern(connection, dialect), *false_numbers(connection, dialect)]:
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
    broken = f"SELECT 1 FROM sample WHERE {' OR '.join(conditions)} LIMIT 1"
    return bool(conditions) and connection.execute(broken).fetchone() is not None
