"""The stored rows of a synopsis as a query of DuckDB's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from warehouse.storage.duckdb_sql import listed
from warehouse.storage.tables import rows_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import duckdb
    from pyspark.sql import SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.storage.scan import TableFiles

__all__ = ["rows_in_duckdb"]


def rows_in_duckdb(
    connection: duckdb.DuckDBPyConnection,
    files: TableFiles,
    session: Callable[[], SparkSession],
    *,
    path: str,
    sides: Iterable[tuple[int, str]],
    columns: Sequence[ColumnRecord],
) -> str:
    """Return the query for rows of a table.

    Parameters
    ----------
    connection
        The connection for the query; data other than local files is registered there.
    files, session
        Readers of the table; in an object store Spark reads it.
    path
        The table's directory.
    sides
        Versions of the table, each with a condition on the rows to read.
    columns
        The columns of the result.

    """
    names = ", ".join(f'"{column.name}"' for column in columns)
    parts = []
    for number, (version, where) in enumerate(sides):
        data_files = files.files(path, version)
        if not files.local:
            rows = files.read(session(), path, version, columns, lambda _: True)
            connection.register(f"stored_{number}", rows.toArrow())
            parts.append(f"SELECT {names} FROM stored_{number} WHERE {where}")
        elif data_files:
            files.require_whole(data_files)
            source = f"read_parquet({listed(file.path for file in data_files)}, union_by_name = true, hive_partitioning = false)"
            parts.append(f"SELECT {names} FROM {source} WHERE {where}")
    if parts:
        return " UNION ALL ".join(parts)
    schema = StructType.fromJson(rows_schema(columns))
    connection.register("nothing", to_arrow_schema(schema, timezone="UTC").empty_table())
    return f"SELECT {names} FROM nothing"
