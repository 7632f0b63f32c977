r"""Logs of Zeek: their header, and for ``init --from`` the query with which DuckDB reads one.

A log begins with lines that start with ``#``; ``#fields`` has the names and ``#types`` the types. Then each line has fields
separated by tabs. ``-`` is a missing value, ``(empty)`` an empty one. Commas separate the elements of a set or vector, and
nothing is quoted.
"""

from __future__ import annotations

import zlib
from itertools import takewhile
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import open_decompressed
from warehouse.catalog.duck_sql import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["EMPTY", "SEPARATOR", "UNSET", "is_zeek", "zeek_fields", "zeek_query"]

UNSET = "-"
EMPTY = "(empty)"
SEPARATOR = ","
_DEFAULTS = {"#set_separator": SEPARATOR, "#empty_field": EMPTY, "#unset_field": UNSET}
_BEGINNING_BYTES = 1 << 16
_TYPES = {"interval": "DOUBLE", "double": "DOUBLE", "count": "BIGINT", "int": "BIGINT", "port": "BIGINT", "bool": "BOOLEAN"}


def is_zeek(source: Path) -> bool:
    """Whether a file begins as Zeek's logs do."""
    try:
        return any(line.startswith("#fields\t") for line in _head(source))
    except (OSError, EOFError, zlib.error):
        return False


def _head(source: Path) -> list[str]:
    with source.open("rb") as raw:
        return open_decompressed(raw, source.name).read(_BEGINNING_BYTES).decode("utf-8-sig", errors="replace").split("\n")


def zeek_fields(lines: Iterable[str]) -> tuple[tuple[str, str], ...]:
    r"""Return the fields in the header of a log, each with its Zeek type.

    Raises
    ------
    ValueError
        When the header has no fields, or separators differ from Zeek's defaults.

    Examples
    --------
    >>> zeek_fields(["#separator \\x09", "#fields\tts\tid.orig_h", "#types\ttime\taddr", "1.5\t::1"])
    (('ts', 'time'), ('id.orig_h', 'addr'))

    """
    names: list[str] = []
    types: list[str] = []
    for line in takewhile(lambda text: text.startswith("#"), lines):
        key, _, rest = line.rstrip("\r").partition("\t")
        if key.startswith("#separator") and key.split(" ", 1)[-1].lower() != "\\x09":
            raise ValueError(f"{key} is another separator than a tab: let Zeek write tabs, or JSON")
        if key in _DEFAULTS and rest != _DEFAULTS[key]:
            raise ValueError(f'{key} is "{rest}", not "{_DEFAULTS[key]}": let Zeek write its defaults, or JSON')
        if key == "#fields":
            names = rest.split("\t")
        if key == "#types":
            types = rest.split("\t")
    if not names:
        raise ValueError("there is no line that begins with #fields before the first record")
    return tuple(zip(names, [*types, *["string"] * len(names)], strict=False))


def zeek_query(source: Path) -> str:
    """Return the query that reads a log, whose path is ``$file``.

    Raises
    ------
    ValueError
        As :func:`zeek_fields` does.

    """
    fields = zeek_fields(_head(source))
    columns = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(len(fields)))
    reader = (
        f"read_csv($file, delim = '\t', quote = '', escape = '', comment = '#', header = false, nullstr = {literal(UNSET)}, "
        f"ignore_errors = true, auto_detect = false, columns = {{{columns}}})"
    )
    listed = ", ".join(f"{_value(f'c{number}', kind)} AS {quoted(name)}" for number, (name, kind) in enumerate(fields))
    return f"SELECT {listed} FROM {reader}"


def _value(column: str, kind: str) -> str:
    inner = kind.partition("[")[2].removesuffix("]")
    if inner:
        element = _TYPES.get(inner, "VARCHAR")
        elements = f"TRY_CAST(string_split({column}, {literal(SEPARATOR)}) AS {element}[])"
        return f"CASE WHEN {column} = {literal(EMPTY)} THEN [] ELSE {elements} END"
    if kind == "time":
        return f"make_timestamptz(CAST(round(TRY_CAST({column} AS DOUBLE) * 1000000) AS BIGINT))"
    return f"TRY_CAST({column} AS {_TYPES.get(kind, 'VARCHAR')})"
