"""A log of Zeek for ``init --from``: whether a file is one, and the query by which DuckDB reads it with its own types."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import decompressed
from warehouse.catalog.duck_sql import quoted

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["is_zeek", "zeek_query"]

_BEGINNING = 1 << 16
_TYPES = {"interval": "DOUBLE", "double": "DOUBLE", "count": "BIGINT", "int": "BIGINT", "port": "BIGINT", "bool": "BOOLEAN"}


def is_zeek(source: Path) -> bool:
    """Whether a file begins as Zeek's logs do."""
    try:
        return any(line.startswith("#fields\t") for line in _head(source))
    except (OSError, EOFError, zlib.error):
        return False


def _head(source: Path) -> list[str]:
    with source.open("rb") as raw:
        return decompressed(raw, source.name).read(_BEGINNING).decode(errors="replace").split("\n")


def zeek_query(source: Path) -> str:
    """Return the query that reads a log, whose path is ``$file``."""
    head = {key: rest.split("\t") for key, _, rest in (line.partition("\t") for line in _head(source) if line.startswith("#"))}
    names = head.get("#fields", [])
    types = head.get("#types", ["string"] * len(names))
    columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(len(names)))
    reader = (
        "read_csv($file, delim = '\t', quote = '', escape = '', comment = '#', header = false, nullstr = '-', "
        f"ignore_errors = true, auto_detect = false, columns = {{{columns}}})"
    )
    fields = enumerate(zip(names, types, strict=False))
    listed = ", ".join(f"{_value(f'c{number}', kind)} AS {quoted(name)}" for number, (name, kind) in fields)
    return f"SELECT {listed} FROM {reader}"


def _value(column: str, kind: str) -> str:
    inner = kind.partition("[")[2].removesuffix("]")
    if inner:
        element = _TYPES.get(inner, "VARCHAR")
        return f"CASE WHEN {column} = '(empty)' THEN [] ELSE TRY_CAST(string_split({column}, ',') AS {element}[]) END"
    if kind == "time":
        return f"make_timestamptz(CAST(round(TRY_CAST({column} AS DOUBLE) * 1000000) AS BIGINT))"
    return f"TRY_CAST({column} AS {_TYPES.get(kind, 'VARCHAR')})"
