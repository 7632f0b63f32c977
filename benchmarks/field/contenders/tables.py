"""What contenders share: the columns, DuckDB over Parquet files of the live rows, a connection with its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

__all__ = ["COLUMNS", "connect", "files_sql", "instant_sql", "parquet_sql", "read_only_files"]

COLUMNS = 'k, "at", until, a, b, v'
"""The columns in their order; ``at`` is a word of SQL."""


def connect(database: Path | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection in UTC that keeps Parquet footers, as a server would."""
    connection = duckdb.connect() if database is None else duckdb.connect(str(database))
    connection.execute("SET TimeZone = 'UTC'; SET parquet_metadata_cache = true; SET preserve_insertion_order = false")
    return connection


def instant_sql(now: int) -> str:
    """Return an instant as DuckDB reads it."""
    return f"make_timestamptz({now})"


def parquet_sql(files: Sequence[Path]) -> str:
    """Return landing files as a table of DuckDB."""
    return files_sql([str(file) for file in files])


def files_sql(paths: Sequence[str]) -> str:
    """Return Parquet files as a table of DuckDB."""
    return f"read_parquet([{', '.join(_quoted(path) for path in paths)}])"


def read_only_files(connection: duckdb.DuckDBPyConnection, paths: Sequence[str], query: str) -> pa.Table:
    """Return the answer of ``SELECT ... FROM {files} ...`` over Parquet files."""
    return connection.sql(query.format(files=files_sql(paths))).to_arrow_table()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
