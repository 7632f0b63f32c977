"""How DuckDB's SQL quotes names and texts."""

from __future__ import annotations

from functools import cache

__all__ = ["is_word_of_sql", "literal", "quoted"]


def quoted(name: str) -> str:
    """Return an identifier.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def is_word_of_sql(name: str) -> bool:
    """Whether a name means something else where it stands without quotes.

    >>> is_word_of_sql("order"), is_word_of_sql("SEMI"), is_word_of_sql("orders")
    (True, True, False)
    """
    return name.lower() in _words()


@cache
def _words() -> frozenset[str]:
    import duckdb  # noqa: PLC0415 - few callers ask

    with duckdb.connect() as connection:
        query = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
        return frozenset(word for (word,) in connection.execute(query).fetchall())


def literal(text: str) -> str:
    """Return a string literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
