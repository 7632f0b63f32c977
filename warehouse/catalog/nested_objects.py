"""Flattens nested objects of a sampled file for ``init --from``: each field becomes a column (``answer.ttl``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from warehouse.catalog.duck_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

__all__ = ["flatten_objects"]

_MOST_COLUMNS = 200
_PLAIN_NAME = re.compile(r"[^.]+")


def flatten_objects(connection: DuckDBPyConnection) -> None:
    """Replace the columns of the table ``sample`` that are objects by the objects' fields, which are named by their paths.

    An object remains one column, with a struct type, in these cases: a field's name is empty or has a dot, a path is another
    column's name (ignoring case), or there would be more than 200 columns.
    """
    import duckdb  # noqa: PLC0415 - only `init --from` looks at a file

    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    used_names = {name.lower() for name, _ in described}
    count, listed, flattened = len(described), [], False
    for name, kind in described:
        paths = list(_fields((name,), duckdb.sqltype(kind)))
        texts = [".".join(path) for path in paths]
        is_kept = paths == [(name,)] or count + len(paths) - 1 > _MOST_COLUMNS or not all(map(_has_plain_names, paths))
        if is_kept or len({text.lower() for text in texts}) < len(texts) or used_names & {text.lower() for text in texts}:
            listed.append(quoted(name))
            continue
        used_names |= {text.lower() for text in texts}
        count += len(paths) - 1
        flattened = True
        values = [".".join(map(quoted, ("sample", *path))) for path in paths]
        listed += [f"{value} AS {quoted(text)}" for value, text in zip(values, texts, strict=True)]
    if flattened:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE sample AS SELECT {', '.join(listed)} FROM sample")


def _has_plain_names(path: tuple[str, ...]) -> bool:
    return all(_PLAIN_NAME.fullmatch(name) for name in path)


def _fields(path: tuple[str, ...], kind: DuckDBPyType) -> Iterator[tuple[str, ...]]:
    if kind.id != "struct":
        yield path
        return
    parts: dict[str, Any] = dict(kind.children)
    for name, part in parts.items():
        yield from _fields((*path, name), part)
