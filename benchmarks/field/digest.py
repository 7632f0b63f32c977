"""An answer as one small value, the same for the same bag of rows whatever system gave it, and in whatever order.

The digest is (number of rows, sum of the low 64 bits of the MD5 of each row's text). DuckDB computes it; every version of
it does alike.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Answer", "Digest", "as_table", "digest_of", "digest_sql"]

Answer = pa.Table | list[tuple[object, ...]]
"""Rows as (k, at, until, a, b, v), an Arrow table or tuples; instants as timestamps or microseconds."""

Digest = tuple[int, int]

_NAMES = ("k", "at", "until", "a", "b", "v")
_QUOTED = tuple(f'"{name}"' for name in _NAMES)
_INSTANTS = (1, 2)


def as_table(answer: Answer) -> pa.Table:
    """Return an answer as an Arrow table with instants as microseconds."""
    if isinstance(answer, pa.Table):
        columns = answer.columns
    else:
        columns = [pa.array(column) for column in zip(*answer, strict=True)] or [pa.array([], pa.int64()) for _ in _NAMES]
    return pa.table(dict(zip(_NAMES, (_plain(position, column) for position, column in enumerate(columns)), strict=True)))


def _plain(position: int, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    if position in _INSTANTS and pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    if pa.types.is_binary(column.type):
        return column.cast(pa.string())
    return column


def digest_sql(columns: Sequence[str] = _QUOTED) -> str:
    """Return the two aggregates of a digest over columns; instants as microseconds."""
    text = ", ".join(f"CAST({column} AS VARCHAR)" for column in columns)
    return f"count(*), coalesce(sum(CAST(md5_number_lower(concat_ws('|', {text})) AS HUGEINT)), 0)"


def digest_of(answer: Answer) -> Digest:
    """Return the digest of an answer."""
    connection = _engine()
    connection.register("answer", as_table(answer))
    rows, total = connection.execute(f"SELECT {digest_sql()} FROM answer").fetchall()[0]
    connection.unregister("answer")
    return int(rows), int(total)


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()
