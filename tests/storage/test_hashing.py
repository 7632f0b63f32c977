"""The hash in Python equals the hash by which Spark divided the keyed tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.types import parse_type
from warehouse.storage.hashing import spark_xxhash64

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VALUES = {
    "string": ["'x'", "''", "'ä€𝄞'", "repeat('long', 100)", "NULL"],
    "boolean": ["true", "false"],
    "tinyint": ["-128", "7"],
    "smallint": ["-3", "32767"],
    "int": ["-2147483648", "0", "5"],
    "bigint": ["-9223372036854775808", "1", "NULL"],
    "float": ["-0.0", "0.1", "'NaN'", "'-Infinity'"],
    "double": ["-0.0", "0.1", "'NaN'", "1e300"],
    "decimal(10,2)": ["-12.30", "0", "99999999.99"],
    "decimal(30,5)": ["-12.30", "0", "1234567890123456789012345.12345", "-128", "127.99999", "-0.00256", "0.00255"],
    "date": ["'1969-12-31'", "'2013-01-01'", "'0001-01-01'"],
    "timestamp": ["'1969-12-31 23:59:59.999999Z'", "'2013-01-01 00:00:00.000001Z'", "'9999-12-31 23:59:59.999999Z'"],
    "binary": ["X'00FF10'", "X''"],
    "array<int>": ["array(1, NULL, 3)", "array()", "NULL"],
    "struct<a:string,b:array<bigint>>": ["named_struct('a', 'x', 'b', array(1, 2))", "named_struct('a', NULL, 'b', NULL)"],
}


def test_each_type_is_hashed_as_spark_does(spark: SparkSession) -> None:
    """Alone and after another column, whose hash is the seed; values come through Parquet types from DuckDB."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    shown = [(kind, f"CAST({value} AS {kind})") for kind, values in VALUES.items() for value in values]
    columns = [f"xxhash64({sql}) AS h{n}, xxhash64('before', {sql}) AS s{n}" for n, (_, sql) in enumerate(shown)]
    hashes = session.sql(f"SELECT {', '.join(columns)}").first()
    assert hashes is not None
    import duckdb  # noqa: PLC0415 - values as the check reads them

    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'")
    for number, (kind, text) in enumerate(shown):
        value = _in_duckdb(engine, session, kind, text)
        parsed = parse_type(kind)
        assert spark_xxhash64([value], [parsed]) == hashes[f"h{number}"], text
        assert spark_xxhash64(["before", value], [parse_type("string"), parsed]) == hashes[f"s{number}"], text


def _in_duckdb(engine: object, session: SparkSession, kind: str, text: str) -> object:
    """Return the value as DuckDB gives it to Python: through Arrow, as through a file."""
    table = session.sql(f"SELECT {text} AS v").toArrow()
    assert kind
    engine.register("given", table)  # type: ignore[attr-defined]
    return engine.execute("SELECT v FROM given").fetchall()[0][0]  # type: ignore[attr-defined]
