"""Quotes names and texts for DuckDB's SQL."""

from __future__ import annotations

from functools import cache

__all__ = ["is_sql_keyword", "literal", "quoted"]


def quoted(name: str) -> str:
    """Return a name as a quoted identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def is_sql_keyword(name: str) -> bool:
    """Whether a name without quotes is a keyword of DuckDB's SQL.

    >>> is_sql_keyword("order"), is_sql_keyword("SEMI"), is_sql_keyword("orders")
    (True, True, False)
    """
    return name.lower() in _keywords()


@cache
def _keywords() -> frozenset[str]:
    import duckdb  # noqa: PLC0415 - few callers ask

    with duckdb.connect() as connection:
        query = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
        return frozenset(word for (word,) in connection.execute(query).fetchall())


def literal(text: str) -> str:
    """Return a text as a string literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
