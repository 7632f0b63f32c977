"""Nested objects of a sampled file, each of their fields as a column of its own (``answer.ttl``), for ``init --from``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from warehouse.catalog.duck_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection
    from duckdb.sqltypes import DuckDBPyType

__all__ = ["spread_objects"]

_MOST_COLUMNS = 200
_STEP = re.compile(r"[^.]+")


def spread_objects(connection: DuckDBPyConnection) -> None:
    """Replace the objects among the columns of the table ``sample`` by their fields, named by their paths.

    An object stays as it is if a field's name has a dot in it or is empty, if a path is another column's name (in any case), or
    if there would be more than 200 columns: then it is one column with a type of its own.
    """
    import duckdb  # noqa: PLC0415 - only `init --from` looks at a file

    described = connection.execute("SELECT column_name, column_type FROM (DESCRIBE sample)").fetchall()
    taken = {name.lower() for name, _ in described}
    count, listed, spread = len(described), [], False
    for name, kind in described:
        paths = list(_fields((name,), duckdb.sqltype(kind)))
        texts = [".".join(path) for path in paths]
        alone = paths == [(name,)] or count + len(paths) - 1 > _MOST_COLUMNS or not all(map(_is_plain, paths))
        if alone or len({text.lower() for text in texts}) < len(texts) or taken & {text.lower() for text in texts}:
            listed.append(quoted(name))
            continue
        taken |= {text.lower() for text in texts}
        count += len(paths) - 1
        spread = True
        values = [".".join(map(quoted, ("sample", *path))) for path in paths]
        listed += [f"{value} AS {quoted(text)}" for value, text in zip(values, texts, strict=True)]
    if spread:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE sample AS SELECT {', '.join(listed)} FROM sample")


def _is_plain(path: tuple[str, ...]) -> bool:
    return all(_STEP.fullmatch(step) for step in path)


def _fields(path: tuple[str, ...], kind: DuckDBPyType) -> Iterator[tuple[str, ...]]:
    if kind.id != "struct":
        yield path
        return
    parts: dict[str, Any] = dict(kind.children)
    for name, part in parts.items():
        yield from _fields((*path, name), part)
