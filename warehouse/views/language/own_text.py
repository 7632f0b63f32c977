"""The text of a view as Spark can read it: windows of ours are replaced by what they are over, and nothing else is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import TokenType

from warehouse.views.language.dialect import tokens_of
from warehouse.views.language.windows import WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import Token

__all__ = ["without_windows"]

_CLAUSES = frozenset(
    {
        TokenType.WHERE, TokenType.GROUP_BY, TokenType.JOIN, TokenType.ON, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.COMMA,
        TokenType.R_PAREN, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.HAVING, TokenType.QUALIFY,
        TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.INNER, TokenType.CROSS, TokenType.USING,
    },
)  # fmt: skip
"""What stands after an item of FROM that has no alias."""


def without_windows(sql: str) -> str:
    """Return a view's query over whole tables: the columns and their types are the same.

    Examples
    --------
    >>> without_windows("SELECT w.k FROM a JOIN time_window(b, INTERVAL 1 HOUR) w ON w.k = a.k")
    'SELECT w.k FROM a JOIN b w ON w.k = a.k'
    >>> without_windows("SELECT k FROM row_window((SELECT k FROM time_window(a, INTERVAL 2 HOURS)), 3, k)")
    'SELECT k FROM (SELECT k FROM a) AS row_window'

    """
    while (found := _first_window(tokens_of(sql))) is not None:
        start, end, first, last, bare = found
        source = sql[first : last + 1]
        alias = f" AS {sql[start:].split('(', maxsplit=1)[0].strip()}" if bare and source.startswith("(") else ""
        sql = f"{sql[:start]}{source}{alias}{sql[end + 1 :]}"
    return sql


def _first_window(tokens: Sequence[Token]) -> tuple[int, int, int, int, bool] | None:
    """Where a window begins and ends, where its first argument does, and whether no alias follows."""
    for number, word in enumerate(tokens[:-1]):
        if word.text.lower() not in WINDOW_FUNCTIONS or tokens[number + 1].token_type is not TokenType.L_PAREN:
            continue
        depth, comma = 0, None
        for place in range(number + 1, len(tokens)):
            kind = tokens[place].token_type
            depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
            if kind is TokenType.COMMA and depth == 1 and comma is None:
                comma = place
            if depth == 0:
                last = (comma or place) - 1
                after = tokens[place + 1] if place + 1 < len(tokens) else None
                bare = after is None or after.token_type in _CLAUSES
                return word.start, tokens[place].end, tokens[number + 2].start, tokens[last].end, bare
    return None
