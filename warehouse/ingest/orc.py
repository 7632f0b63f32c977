"""Reads the schema of an ORC file without Spark, and checks the bounds of :mod:`.bounds`.

ORC has the number of rows, but not the size of their values: a dictionary has a long value once, and a run of equal values takes
a few bytes. So texts are read, few rows at a time; for other columns the number of rows is enough. Spark reads the values, since
pyarrow has times in nanoseconds, which cannot represent the year 9999.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from warehouse.ingest.bounds import expands_too_much
from warehouse.ingest.parquet_bounds import text_lengths, value_too_long

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["is_local_time", "orc_batches", "orc_bounds_problem", "orc_schema"]

_CACHED_FILES = 50_000
_ROWS_PER_BATCH = 128


def orc_schema(path: Path) -> Any:  # noqa: ANN401 - Arrow's
    """Return the schema of a file, Arrow's.

    Raises
    ------
    Exception
        The reader's exception for a damaged footer.

    """
    import pyarrow.orc  # noqa: PLC0415 - only ORC landings need it

    return pyarrow.orc.ORCFile(path).schema


def orc_batches(path: Path, columns: list[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a file as small batches of Arrow, all columns or some.

    Raises
    ------
    Exception
        The reader's exception for a damaged file.

    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - only ORC landings need it

    source = ds.dataset(path, format="orc")
    yield from source.to_batches(columns=columns, batch_size=_ROWS_PER_BATCH, batch_readahead=0, use_threads=False)


def is_local_time(schema: Any, path: tuple[str, ...]) -> bool:  # noqa: ANN401 - Arrow's
    """Whether a column or a field nested in it is a timestamp without time zone."""
    kind = schema.field(path[0]).type
    for step in path[1:]:
        kind = kind.field(step).type
    return getattr(kind, "tz", None) is None


@lru_cache(maxsize=_CACHED_FILES)
def orc_bounds_problem(
    path: Path, size: int, mtime_ns: int, longest: int, most: int  # noqa: ARG001 - the file's identity
) -> tuple[str, str] | None:
    """Return (reason, message) if an ORC file is not read, else None; as :func:`.parquet_bounds.parquet_bounds_problem`.

    Raises
    ------
    Exception
        The reader's exception for a damaged file.

    """
    import pyarrow.orc  # noqa: PLC0415 - only ORC landings need it

    file = pyarrow.orc.ORCFile(path)
    if bomb := expands_too_much(size, 0, file.nrows, most):
        return "expands_too_much", bomb
    columns = [field.name for field in file.schema if _may_be_long(field.type)]
    total = 0
    for batch in orc_batches(path, columns) if columns else ():
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            total += column.nbytes
            for _, length in text_lengths(column):
                if length > longest:
                    return "record_too_long", value_too_long(name, length, longest)
        if problem := expands_too_much(size, total, 0, most):
            return "expands_too_much", problem
    return None


def _may_be_long(kind: Any) -> bool:  # noqa: ANN401 - Arrow's
    """Whether values of a type may have any number of bytes."""
    import pyarrow.types as at  # noqa: PLC0415 - as above

    return bool(at.is_nested(kind) or at.is_string(kind) or at.is_binary(kind))
