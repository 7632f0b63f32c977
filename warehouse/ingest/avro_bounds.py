"""Checks an Avro file: the bounds of :mod:`.bounds`, and that all its blocks are complete.

The beginning of each block has its number of records, so every file is walked from block to block without decompressing them. The
content of a block is checked only if it could exceed a bound. Other damage of a file is found when it is read.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from warehouse.catalog.avro_files import open_avro
from warehouse.catalog.avro_schemas import without_logical_types
from warehouse.ingest.bounds import HARMLESS, expands_too_much
from warehouse.ingest.landing import open_regular
from warehouse.ingest.parquet_bounds import value_too_long

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["avro_bounds_problem"]

_CACHED_FILES = 50_000
_EXPANSION_BOUNDS = {"null": 1, "deflate": 1032, "snappy": 64}
"""Upper bound of the bytes to which one byte of a block expands, by codec; the other codecs have no useful bound."""


@lru_cache(maxsize=_CACHED_FILES)
def avro_bounds_problem(
    path: Path, size: int, mtime_ns: int, longest: int, most: int  # noqa: ARG001 - the file's identity
) -> tuple[str, str] | None:
    """Return (reason, message) if an Avro file is not read, else None; as :func:`.parquet_bounds.parquet_bounds_problem`.

    Raises
    ------
    Exception
        The reader's exception for a truncated or damaged file.

    """
    with open_regular(path) as raw:
        file = open_avro(raw)
        rows = 0
        for block in file.blocks():
            rows += block.count
            if problem := expands_too_much(size, 0, rows, most):
                return "expands_too_much", problem
        if size * _EXPANSION_BOUNDS.get(file.codec, size + HARMLESS) <= min(longest, HARMLESS):
            return None
        total, schema = 0, without_logical_types(file.schema)
        for block in file.blocks():
            content = file.content(block)
            total += len(content)
            if problem := expands_too_much(size, total, 0, most):
                return "expands_too_much", problem
            if len(content) > longest:
                for record in file.records(block, content, schema):
                    for name, value in record.items():
                        if (length := _longest_text(value)) > longest:
                            return "record_too_long", value_too_long(name, length, longest)
    return None


def _longest_text(value: Any) -> int:  # noqa: ANN401 - any value of Avro
    """Return the bytes of the longest text in a value."""
    match value:
        case str():
            return len(value.encode())
        case bytes():
            return len(value)
        case dict():
            return max((_longest_text(part) for pair in value.items() for part in pair), default=0)
        case list():
            return max(map(_longest_text, value), default=0)
    return 0
